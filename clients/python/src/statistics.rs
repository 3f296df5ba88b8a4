//! The counters of one codec, and those of all codecs of the process.
//!
//! [`Counters`] want one writer at a time. That is whoever holds the interpreter's lock: nothing here is written
//! without it, which each function shows by asking for [`Python`].

use std::sync::{LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use snugly_codec::{Counters, DESCRIPTORS, Descriptor, Ended, Family, Snapshot, Started, Stopwatch};

static PROCESS: LazyLock<Counters> = LazyLock::new(Counters::default);

/// What one codec counts; the process counts the same.
#[derive(Default)]
pub(crate) struct Statistics {
    counters: Counters,
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

    pub fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        named(py, &self.counters.snapshot())
    }
}

fn start(stopwatch: &Mutex<Stopwatch>) -> Started {
    stopwatch.lock().unwrap_or_else(PoisonError::into_inner).start()
}

/// The counters of all codecs of this process, by name.
#[pyfunction]
pub(crate) fn process_statistics(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    named(py, &PROCESS.snapshot())
}

/// Name, family, codec and text of each counter.
type Description = (String, &'static str, Option<&'static str>, &'static str);

/// What is counted: for each name of the statistics its family, the codec if the family has one counter a codec, and
/// what it means.
#[pyfunction]
pub(crate) fn counters() -> Vec<Description> {
    let codec = |row: &Descriptor| row.codec.map(|codec| codec.name());
    let describe = |row: &Descriptor| (row.to_string(), row.family, codec(row), row.help);
    DESCRIPTORS.iter().map(describe).collect()
}

fn named<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyDict>> {
    let names = PyDict::new(py);
    for descriptor in &DESCRIPTORS {
        names.set_item(descriptor.to_string(), descriptor.value(snapshot))?;
    }
    Ok(names)
}
