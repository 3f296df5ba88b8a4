//! One thread that serves connections: a single-threaded runtime, the thread's session of the store, and the buffers
//! that its connections take turns in using (so that an idle connection holds none).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use snugly_store::Session;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::commands::REGISTRY;
use crate::connection::Connection;
use crate::counter::Counter;
use crate::pipeline::Pipeline;
use crate::replies::Replies;
use crate::server::Server;
use crate::slots::{Slot, Slots};

/// Threads that wait for the disk in the place of a worker.
pub(crate) const COLD_READERS: usize = 8;
/// How often a worker follows what has changed in the store if nobody asks it anything.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// What a read takes at most; requests that are longer continue in a buffer of their connection's own.
pub(crate) const READ_BUFFER: usize = 64 << 10;

/// What the connections of one thread share.
pub(crate) struct Worker {
    pub(crate) session: Session,
    pub(crate) input: Box<[u8]>,
    pub(crate) pipeline: Pipeline,
    pub(crate) replies: Replies,
    pub(crate) stats: Arc<WorkerStats>,
}

impl Worker {
    /// Makes the shared parts as they were before a turn that panicked, so that nothing of it reaches another connection.
    pub(crate) fn recover(&mut self, server: &Server) {
        self.session = server.store().session();
        self.pipeline = Pipeline::default();
        self.replies = Replies::default();
    }
}

/// What one thread counts. Only the thread writes, so there is no contention.
pub(crate) struct WorkerStats {
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    /// By the command's place in the registry.
    pub(crate) commands: Vec<CommandStats>,
    /// Errors that were answered, by their code (`ERR`, `OOM`, ...).
    errors: Mutex<BTreeMap<String, u64>>,
}

#[derive(Default)]
pub(crate) struct CommandStats {
    pub(crate) calls: Counter,
    pub(crate) nanoseconds: Counter,
    pub(crate) rejected: Counter,
    pub(crate) failed: Counter,
    /// How long calls took, in nanoseconds; it takes no memory before the first call, and then as much as the longest.
    latencies: Mutex<Option<Histogram<u64>>>,
}

/// What a histogram takes, in nanoseconds: a longer call counts as one of a second, as in Valkey.
const LONGEST_LATENCY: u64 = 1_000_000_000;
/// Significant decimal digits of a latency.
const LATENCY_PRECISION: u8 = 2;

impl CommandStats {
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

/// How long the calls of a command took on all threads, in nanoseconds; `None` if it was not called.
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

fn new_histogram() -> Histogram<u64> {
    Histogram::new(LATENCY_PRECISION).expect("the precision is one that there is")
}

impl WorkerStats {
    fn new() -> WorkerStats {
        let commands = REGISTRY.rows().iter().map(|_| CommandStats::default()).collect();
        WorkerStats {
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            commands,
            errors: Mutex::default(),
        }
    }

    pub(crate) fn reset(&self) {
        self.commands.iter().for_each(CommandStats::reset);
        for counter in [&self.bytes_in, &self.bytes_out] {
            counter.reset();
        }
        self.errors.lock().clear();
    }

    /// Counts an error by the code that its text starts with.
    pub(crate) fn note_error(&self, text: &[u8]) {
        let code = text.split(|&byte| byte == b' ').next().unwrap_or_default();
        let code = String::from_utf8_lossy(code);
        *self.errors.lock().entry(code.into_owned()).or_default() += 1;
    }
}

/// How many errors all threads answered, by code.
pub(crate) fn errors(workers: &[Arc<WorkerStats>]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for worker in workers {
        for (code, count) in &*worker.errors.lock() {
            *all.entry(code.clone()).or_default() += count;
        }
    }
    all
}

/// The way to hand a worker its connections.
pub(crate) struct WorkerHandle {
    assigned: UnboundedSender<Assigned>,
    /// Connections that it serves or is about to.
    pub(crate) connections: Slots,
}

/// A connection that a worker is to serve, and the places that it takes up as long as it lives.
struct Assigned {
    stream: std::net::TcpStream,
    _among_clients: Slot,
    _at_worker: Option<Slot>,
}

impl WorkerHandle {
    pub(crate) fn serve(&self, stream: std::net::TcpStream, slot: Slot) {
        let at_worker = self.connections.take(usize::MAX);
        // Fails only once the worker has ended, in a shutdown; the connection is then dropped.
        let _ = self.assigned.send(Assigned { stream, _among_clients: slot, _at_worker: at_worker });
    }
}

/// Makes the two ends between the listener and a worker.
pub(crate) fn channel() -> (WorkerHandle, Assignments) {
    let (assigned, receiver) = unbounded_channel();
    (WorkerHandle { assigned, connections: Slots::default() }, Assignments(receiver))
}

/// The worker's end.
pub(crate) struct Assignments(UnboundedReceiver<Assigned>);

/// Serves connections on the calling thread until the listener lets go of its end and all of them are closed.
pub(crate) fn run(server: &Arc<Server>, runtime: Runtime, mut assignments: Assignments) {
    let stats = Arc::new(WorkerStats::new());
    server.register(stats.clone());
    let worker = Rc::new(RefCell::new(Worker {
        session: server.store().session(),
        input: vec![0; READ_BUFFER].into_boxed_slice(),
        pipeline: Pipeline::default(),
        replies: Replies::default(),
        stats,
    }));
    let tasks = LocalSet::new();
    let assigning = tasks.spawn_local({
        let (server, worker) = (server.clone(), worker.clone());
        async move {
            loop {
                let assigned = timeout(FOLLOW_EVERY, assignments.0.recv()).await;
                // Even if nobody asks it anything: it holds what other workers may have no use for any more.
                worker.borrow_mut().session.follow();
                let assigned = match assigned {
                    Ok(Some(assigned)) => assigned,
                    Ok(None) => break,
                    Err(_) => continue,
                };
                let (server, worker) = (server.clone(), worker.clone());
                tokio::task::spawn_local(async move {
                    let Assigned { stream, _among_clients, _at_worker } = assigned;
                    if let Ok(stream) = TcpStream::from_std(stream)
                        && let Some(connection) = Connection::open(stream, server, worker)
                    {
                        connection.serve().await;
                    }
                });
            }
        }
    });
    if runtime.block_on(tasks.run_until(assigning)).is_ok() {
        runtime.block_on(tasks);
    }
    // Else it has panicked, and the thread ends before its time, which is told.
}
