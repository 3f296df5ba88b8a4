//! The counters of one codec, and those of all codecs of the process.
//!
//! [`Counters`] have one writer at a time: the holder of the interpreter's lock. Nothing here is written
//! without it, which each function shows by asking for [`Python`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use snugly_codec::{Counters, DESCRIPTORS, Descriptor, Ended, Family, Snapshot, Started, Stopwatch};

static PROCESS: LazyLock<Counters> = LazyLock::new(Counters::default);
static PROCESS_OWN: [AtomicU64; OWN.len()] = [const { AtomicU64::new(0) }; OWN.len()];

/// Counters that only clients have, beside those of every codec.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Own {
    Fetched,
    PutBack,
    Published,
    Mended,
}

/// The name and the meaning of each, in their order.
const OWN: [(&str, &str); 4] = [
    ("dictionaries_fetched", "dictionaries that were fetched from a server or a folder"),
    ("dictionaries_put_back", "dictionaries that were not in the server any more and were put back"),
    ("dictionaries_published", "dictionaries that were trained and published"),
    ("dictionaries_mended", "keys of dictionaries that had something else and were overwritten"),
];

/// Counters of one codec; the process counts the same.
#[derive(Default)]
pub(crate) struct Statistics {
    counters: Counters,
    own: [AtomicU64; OWN.len()],
    encoding: Mutex<Stopwatch>,
    decoding: Mutex<Stopwatch>,
}

/// Something that is being done, and counted under `family` if it is timed.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    started: Started,
    family: Family,
}

/// Something that has been done.
pub(crate) struct Done {
    ended: Ended,
    family: Family,
}

impl Operation {
    /// Starts only now, on any thread.
    pub fn begin(self) -> Operation {
        Operation { started: self.started.again(), ..self }
    }

    pub fn end(self) -> Done {
        Done { ended: self.started.ended(), family: self.family }
    }
}

impl Statistics {
    pub fn encoding(&self) -> Operation {
        Operation { started: start(&self.encoding), family: Family::EncodeNanoseconds }
    }

    pub fn decoding(&self) -> Operation {
        Operation { started: start(&self.decoding), family: Family::DecodeNanoseconds }
    }

    /// Counts what has been done, as `count` says, and the time that it took.
    pub fn count(&self, _: Python<'_>, done: &Done, count: impl Fn(&Counters)) {
        for counters in [&self.counters, &*PROCESS] {
            count(counters);
            done.ended.count(counters, done.family);
        }
    }

    /// Counts what takes no time of its own.
    pub fn add(&self, _: Python<'_>, count: impl Fn(&Counters)) {
        [&self.counters, &*PROCESS].into_iter().for_each(count);
    }

    pub fn add_own(&self, _: Python<'_>, counter: Own) {
        for counters in [&self.own, &PROCESS_OWN] {
            counters[counter as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of values read for each written one.
    pub fn reads(&self) -> f64 {
        let snapshot = self.counters.snapshot();
        let [read, written] =
            [Family::DecodedValues, Family::EncodedValues].map(|family| snapshot.total(family));
        read as f64 / written.max(1) as f64
    }

    pub fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        named(py, &self.counters.snapshot(), &self.own)
    }
}

fn start(stopwatch: &Mutex<Stopwatch>) -> Started {
    stopwatch.lock().unwrap_or_else(PoisonError::into_inner).start()
}

/// The counters of all codecs of this process, by name.
#[pyfunction]
pub(crate) fn process_statistics(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    named(py, &PROCESS.snapshot(), &PROCESS_OWN)
}

/// Name, family, codec and text of each counter.
type Description = (String, &'static str, Option<&'static str>, &'static str);

/// Returns the descriptions of all counters: for each name of the statistics its family, the codec if the
/// family has one counter a codec, and its meaning.
#[pyfunction]
pub(crate) fn counters() -> Vec<Description> {
    let codec = |row: &Descriptor| row.codec.map(|codec| codec.name());
    let describe = |row: &Descriptor| (row.to_string(), row.family, codec(row), row.help);
    let own = OWN.iter().map(|&(name, help)| (name.to_owned(), name, None, help));
    DESCRIPTORS.iter().map(describe).chain(own).collect()
}

fn named<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    own: &[AtomicU64; OWN.len()],
) -> PyResult<Bound<'py, PyDict>> {
    let names = PyDict::new(py);
    for descriptor in &DESCRIPTORS {
        names.set_item(descriptor.to_string(), descriptor.value(snapshot))?;
    }
    for ((name, _), count) in OWN.iter().zip(own) {
        names.set_item(*name, count.load(Ordering::Relaxed))?;
    }
    Ok(names)
}
