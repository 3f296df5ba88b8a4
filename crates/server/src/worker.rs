//! One thread that serves connections: a single-threaded runtime, the thread's session of the store, and the buffers
//! that its connections take turns in using (so that an idle connection holds none).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use snugly_protocol::resp::ReplyBuffer;
use snugly_store::Session;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

use crate::commands::REGISTRY;
use crate::connection::Connection;
use crate::pipeline::Pipeline;
use crate::server::Server;

/// Threads that wait for the disk in the place of a worker.
const COLD_READERS: usize = 8;
/// What a read takes at most; requests that are longer continue in a buffer of their connection's own.
pub(crate) const READ_BUFFER: usize = 64 << 10;

/// What the connections of one thread share.
pub(crate) struct Worker {
    pub(crate) session: Session,
    pub(crate) input: Box<[u8]>,
    pub(crate) pipeline: Pipeline,
    pub(crate) replies: ReplyBuffer,
    pub(crate) stats: Arc<WorkerStats>,
}

/// What one thread counts. Only the thread writes, so there is no contention.
pub(crate) struct WorkerStats {
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    /// By the command's place in the registry.
    pub(crate) commands: Vec<CommandStats>,
}

#[derive(Default)]
pub(crate) struct CommandStats {
    pub(crate) calls: AtomicU64,
    pub(crate) nanoseconds: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl WorkerStats {
    fn new() -> WorkerStats {
        let commands = REGISTRY.rows().iter().map(|_| CommandStats::default()).collect();
        WorkerStats { bytes_in: AtomicU64::new(0), bytes_out: AtomicU64::new(0), commands }
    }

    pub(crate) fn reset(&self) {
        let commands = self.commands.iter().flat_map(|c| [&c.calls, &c.nanoseconds, &c.rejected, &c.failed]);
        for counter in commands.chain([&self.bytes_in, &self.bytes_out]) {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Adds to a counter that only this thread writes.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

/// The way to hand a worker its connections.
pub(crate) struct WorkerHandle {
    streams: UnboundedSender<std::net::TcpStream>,
    /// Connections that it serves or is about to.
    pub(crate) connections: Arc<AtomicUsize>,
}

impl WorkerHandle {
    pub(crate) fn serve(&self, stream: std::net::TcpStream) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        // Fails only once the worker has ended, in a shutdown; the connection is then dropped.
        let _ = self.streams.send(stream);
    }
}

/// Makes the two ends between the listener and a worker.
pub(crate) fn channel() -> (WorkerHandle, Assignments) {
    let (streams, receiver) = unbounded_channel();
    let connections = Arc::<AtomicUsize>::default();
    (
        WorkerHandle { streams, connections: connections.clone() },
        Assignments { streams: receiver, connections },
    )
}

/// The worker's end.
pub(crate) struct Assignments {
    streams: UnboundedReceiver<std::net::TcpStream>,
    connections: Arc<AtomicUsize>,
}

/// Serves connections on the calling thread until the listener lets go of its end and all of them are closed.
pub(crate) fn run(server: &Arc<Server>, mut assignments: Assignments) {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(COLD_READERS)
        .build()
        .expect("a thread's event loop needs file descriptors; raise the limit of open files");
    let stats = Arc::new(WorkerStats::new());
    server.register(stats.clone());
    let worker = Rc::new(RefCell::new(Worker {
        session: server.store().session(),
        input: vec![0; READ_BUFFER].into_boxed_slice(),
        pipeline: Pipeline::default(),
        replies: ReplyBuffer::default(),
        stats,
    }));
    let tasks = LocalSet::new();
    let connections = assignments.connections;
    tasks.spawn_local({
        let (server, worker) = (server.clone(), worker.clone());
        async move {
            while let Some(stream) = assignments.streams.recv().await {
                let (server, worker, connections) = (server.clone(), worker.clone(), connections.clone());
                tokio::task::spawn_local(async move {
                    if let Ok(stream) = TcpStream::from_std(stream)
                        && let Some(connection) = Connection::open(stream, server, worker)
                    {
                        connection.serve().await;
                    }
                    connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        }
    });
    runtime.block_on(tasks);
}
