//! Counters of the threads that serve connections: bytes, commands, errors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::{Counter, MemcachedCounters};

/// Counters of one thread. Only the thread writes, so there is no contention.
pub(crate) struct WorkerStats {
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    pub(crate) memcached: MemcachedCounters,
    /// By the command's place in the registry.
    pub(crate) commands: Vec<CommandStats>,
    /// Errors that were answered, by their code (`ERR`, `OOM`, ...).
    errors: Mutex<BTreeMap<String, u64>>,
}

/// Totals of the calls of one command.
pub(crate) struct CommandStats {
    pub(crate) name: &'static str,
    /// What it is counted with where not every command is worth numbers of its own.
    pub(crate) family: &'static str,
    pub(crate) calls: Counter,
    pub(crate) nanoseconds: Counter,
    pub(crate) rejected: Counter,
    pub(crate) failed: Counter,
    /// Durations of calls, in nanoseconds; it takes no memory before the first call, and then as much as the longest.
    latencies: Mutex<Option<Histogram<u64>>>,
}

/// The range of a histogram, in nanoseconds: a longer call counts as one of a second, as in Valkey.
const LONGEST_LATENCY: u64 = 1_000_000_000;
/// Significant decimal digits of a latency.
const LATENCY_PRECISION: u8 = 2;

impl CommandStats {
    fn new((name, family): (&'static str, &'static str)) -> CommandStats {
        CommandStats {
            name,
            family,
            calls: Counter::default(),
            nanoseconds: Counter::default(),
            rejected: Counter::default(),
            failed: Counter::default(),
            latencies: Mutex::default(),
        }
    }

    /// Notes how long a call took.
    pub(crate) fn note_latency(&self, elapsed: Duration) {
        let nanoseconds = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).clamp(1, LONGEST_LATENCY);
        let mut latencies = self.latencies.lock();
        latencies
            .get_or_insert_with(new_histogram)
            .record(nanoseconds)
            .expect("a histogram grows to a second");
    }

    fn reset(&self) {
        for counter in [&self.calls, &self.nanoseconds, &self.rejected, &self.failed] {
            counter.reset();
        }
        *self.latencies.lock() = None;
    }
}

/// Durations of the calls of a command on all threads, in nanoseconds; `None` if it was not called.
pub(crate) fn latencies(workers: &[Arc<WorkerStats>], place: usize) -> Option<Histogram<u64>> {
    let mut all: Option<Histogram<u64>> = None;
    for worker in workers {
        if let Some(part) = &*worker.commands[place].latencies.lock() {
            all.get_or_insert_with(new_histogram)
                .add(part)
                .expect("histograms of one precision can be added");
        }
    }
    all
}

/// Durations of the calls of each family's commands on all threads, in nanoseconds; none before a thread has begun to count.
pub(crate) fn family_latencies(workers: &[Arc<WorkerStats>]) -> BTreeMap<&'static str, Histogram<u64>> {
    let mut all = BTreeMap::new();
    let families = workers.iter().take(1).flat_map(|worker| &worker.commands).map(|command| command.family);
    for (place, family) in families.enumerate() {
        let sum = all.entry(family).or_insert_with(new_histogram);
        if let Some(part) = latencies(workers, place) {
            sum.add(part).expect("histograms of one precision can be added");
        }
    }
    all
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new(LATENCY_PRECISION).expect("the precision is one that there is")
}

impl WorkerStats {
    /// Counters for commands of these names and families, in the order of their registry.
    pub(crate) fn new(commands: impl Iterator<Item = (&'static str, &'static str)>) -> WorkerStats {
        let commands = commands.map(CommandStats::new).collect();
        WorkerStats {
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            memcached: MemcachedCounters::default(),
            commands,
            errors: Mutex::default(),
        }
    }

    pub(crate) fn reset(&self) {
        self.commands.iter().for_each(CommandStats::reset);
        for counter in [&self.bytes_in, &self.bytes_out] {
            counter.reset();
        }
        self.memcached.reset();
        self.errors.lock().clear();
    }

    /// Counts an error by the code that its text starts with.
    pub(crate) fn note_error(&self, text: &[u8]) {
        let code = text.split(|&byte| byte == b' ').next().unwrap_or_default();
        let code = String::from_utf8_lossy(code);
        *self.errors.lock().entry(code.into_owned()).or_default() += 1;
    }
}

/// The names of the commands, in the order of their registry; none before a thread has begun to count.
pub(crate) fn command_names(workers: &[Arc<WorkerStats>]) -> impl Iterator<Item = &'static str> {
    workers.iter().take(1).flat_map(|worker| &worker.commands).map(|command| command.name)
}

/// Number of errors that all threads answered, by code.
pub(crate) fn errors(workers: &[Arc<WorkerStats>]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for worker in workers {
        for (code, count) in &*worker.errors.lock() {
            *all.entry(code.clone()).or_default() += count;
        }
    }
    all
}
