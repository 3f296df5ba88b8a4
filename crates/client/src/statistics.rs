//! The counters of one client's codec, and those of all codecs of the process.
//!
//! Timed work may run on any thread; it is counted afterwards, by whoever may wait for a short lock. A library whose
//! process may fork must not count where another thread can be in the middle of it: in Python, that is without the
//! interpreter's lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use snugly_codec::{Counters, DESCRIPTORS, Descriptor, Ended, Family, Snapshot, Started, Stopwatch};

static PROCESS: LazyLock<Counters> = LazyLock::new(Counters::default);
static PROCESS_OWN: [AtomicU64; OWN.len()] = [const { AtomicU64::new(0) }; OWN.len()];
/// Held while counters are written: they have one writer at a time.
static WRITER: Mutex<()> = Mutex::new(());

/// Counters that only clients have, beside those of every codec.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Own {
    /// Dictionaries that were fetched from a server or a folder.
    Fetched,
    /// Dictionaries that were not in the server any more and were put back.
    PutBack,
    /// Dictionaries that were trained and published.
    Published,
    /// Keys of dictionaries that had something else and were overwritten.
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
#[derive(Debug, Default)]
pub struct Statistics {
    counters: Counters,
    own: [AtomicU64; OWN.len()],
    encoding: Mutex<Stopwatch>,
    decoding: Mutex<Stopwatch>,
}

/// Something that is being done, and counted under `family` if it is timed.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    started: Started,
    family: Family,
}

/// Something that has been done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    ended: Ended,
    family: Family,
}

impl Operation {
    /// Starts only now, on any thread.
    pub(crate) fn begin(self) -> Operation {
        Operation { started: self.started.again(), ..self }
    }

    pub(crate) fn end(self) -> Done {
        Done { ended: self.started.ended(), family: self.family }
    }
}

impl Statistics {
    pub(crate) fn encoding(&self) -> Operation {
        Operation { started: start(&self.encoding), family: Family::EncodeNanoseconds }
    }

    pub(crate) fn decoding(&self) -> Operation {
        Operation { started: start(&self.decoding), family: Family::DecodeNanoseconds }
    }

    /// Counts what has been done, as `count` says, and the time that it took.
    pub(crate) fn count(&self, done: Done, count: impl Fn(&Counters)) {
        let _writing = lock(&WRITER);
        for counters in [&self.counters, &*PROCESS] {
            count(counters);
            done.ended.count(counters, done.family);
        }
    }

    /// Adds one to a family of every codec's.
    pub fn increment(&self, family: Family) {
        let _writing = lock(&WRITER);
        [&self.counters, &*PROCESS].into_iter().for_each(|counters| counters.increment(family));
    }

    /// Counts values that were read and were no envelopes, for a library that sees that itself.
    pub fn count_plain(&self, values: u64, bytes: u64) {
        let _writing = lock(&WRITER);
        [&self.counters, &*PROCESS]
            .into_iter()
            .for_each(|counters| counters.decoded_as_they_are(values, bytes));
    }

    /// Adds one to a counter that only clients have.
    pub fn add_own(&self, counter: Own) {
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

    /// Returns each counter of this codec, by name.
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> {
        named(self.counters.snapshot(), &self.own)
    }
}

fn start(stopwatch: &Mutex<Stopwatch>) -> Started {
    lock(stopwatch).start()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the counters of all codecs of this process, by name.
pub fn process_statistics() -> impl Iterator<Item = (String, u64)> {
    named(PROCESS.snapshot(), &PROCESS_OWN)
}

/// Description of a counter.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name in the statistics.
    pub name: String,
    /// Name without the codec.
    pub family: &'static str,
    /// The codec, if the family has one counter a codec.
    pub codec: Option<&'static str>,
    /// Meaning.
    pub help: &'static str,
}

/// Returns the descriptions of all counters, in their order.
pub fn descriptions() -> impl Iterator<Item = Description> {
    let describe = |row: &Descriptor| Description {
        name: row.to_string(),
        family: row.family,
        codec: row.codec.map(|codec| codec.name()),
        help: row.help,
    };
    let own = OWN.iter().map(|&(name, help)| Description {
        name: name.to_owned(),
        family: name,
        codec: None,
        help,
    });
    DESCRIPTORS.iter().map(describe).chain(own)
}

fn named(snapshot: Snapshot, own: &[AtomicU64; OWN.len()]) -> impl Iterator<Item = (String, u64)> {
    let counted = DESCRIPTORS.iter().map(move |row| (row.to_string(), row.value(&snapshot)));
    let own =
        OWN.iter().zip(own).map(|((name, _), count)| ((*name).to_owned(), count.load(Ordering::Relaxed)));
    counted.chain(own.collect::<Vec<_>>())
}
