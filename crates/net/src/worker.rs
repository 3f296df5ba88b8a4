//! One thread that serves connections: a single-threaded runtime, the thread's service, and the buffer that its
//! connections take turns in reading into (so that an idle connection holds none).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::timeout;
use tracing::warn;

use crate::connection::{Connection, Shared};
use crate::service::Service;
use crate::slots::{Slot, Slots};
use crate::socket::Socket;
use crate::stream::{Address, Unwatched};
use crate::transport::Transport;

/// Interval of a service's housekeeping if there are no new connections.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(1);
/// Time that a client may take to agree on keys.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Time in which a client may take the last reply of a connection that the service ends.
const LAST_REPLY_WITHIN: Duration = Duration::from_secs(1);

/// The way to hand a worker its connections. A worker ends once this is dropped, and its connections have ended.
pub struct WorkerHandle {
    assigned: UnboundedSender<Assigned>,
    /// Connections that it serves or is about to.
    connections: Slots,
}

/// A connection that was accepted.
pub(crate) struct Accepted {
    pub(crate) stream: Unwatched,
    /// Address of the client.
    pub(crate) address: Address,
    /// Number of the listener.
    pub(crate) listener: usize,
    pub(crate) tls: Option<Arc<ServerConfig>>,
}

/// A connection that a worker is to serve, and the places that it takes up as long as it lives.
struct Assigned {
    accepted: Accepted,
    _among_all: Slot,
    _at_worker: Option<Slot>,
}

impl WorkerHandle {
    /// Number of connections of the worker.
    pub(crate) fn connections(&self) -> usize {
        self.connections.taken()
    }

    pub(crate) fn serve(&self, accepted: Accepted, slot: Slot) {
        let at_worker = self.connections.take(usize::MAX);
        // Fails only once the worker has ended, in a shutdown; the connection is then dropped.
        let _ = self.assigned.send(Assigned { accepted, _among_all: slot, _at_worker: at_worker });
    }
}

/// The workers that connections are handed to.
pub struct Workers {
    usual: Vec<WorkerHandle>,
    spare: WorkerHandle,
    is_stuck: Box<dyn Fn(usize) -> bool + Send + Sync>,
}

impl Workers {
    /// The usual workers, and a spare one for the connections that come while all of the others are stuck: so that
    /// somebody can be told so, and can do something about it. `is_stuck` is asked about a usual one, by its place.
    pub fn new(
        usual: Vec<WorkerHandle>,
        spare: WorkerHandle,
        is_stuck: impl Fn(usize) -> bool + Send + Sync + 'static,
    ) -> Workers {
        Workers { usual, spare, is_stuck: Box::new(is_stuck) }
    }

    /// The worker for the next connection: of the usual ones that are not stuck that with the fewest.
    pub(crate) fn next(&self) -> &WorkerHandle {
        let usual = self.usual.iter().enumerate().filter(|(place, _)| !(self.is_stuck)(*place));
        usual.map(|(_, worker)| worker).min_by_key(|worker| worker.connections()).unwrap_or(&self.spare)
    }
}

/// Makes the two ends between the listener and a worker.
pub fn channel() -> (WorkerHandle, Assignments) {
    let (assigned, receiver) = unbounded_channel();
    (WorkerHandle { assigned, connections: Slots::default() }, Assignments(receiver))
}

/// The worker's end.
pub struct Assignments(UnboundedReceiver<Assigned>);

/// The sockets of a thread's connections, to be ended when the thread is.
#[derive(Default)]
struct Sockets {
    open: RefCell<HashMap<*const Socket, Arc<Socket>>>,
    /// Whether connections end once the requests that have arrived are answered.
    is_draining: Cell<bool>,
}

/// A socket among those of its thread.
struct Entry<'s> {
    sockets: &'s Sockets,
    socket: *const Socket,
}

impl Sockets {
    fn enter(&self, socket: &Arc<Socket>) -> Entry<'_> {
        if self.is_draining.get() {
            socket.stop_reading();
        }
        self.open.borrow_mut().insert(Arc::as_ptr(socket), socket.clone());
        Entry { sockets: self, socket: Arc::as_ptr(socket) }
    }

    fn drain(&self) {
        self.is_draining.set(true);
        self.open.borrow().values().for_each(|socket| socket.stop_reading());
    }

    /// Ends all of them; returns how many there are.
    fn kill(&self) -> usize {
        let open = self.open.borrow();
        open.values().for_each(|socket| socket.kill());
        open.len()
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.sockets.open.borrow_mut().remove(&self.socket);
    }
}

/// Serves connections on the calling thread until the worker's handle is dropped. Then the requests that have arrived are
/// answered, except those that wait, and connections whose clients do not take these replies in time are closed.
pub fn run<S: Service>(service: S, runtime: &Runtime, mut assignments: Assignments) {
    let shared = Rc::new(RefCell::new(Shared::new(service)));
    let sockets = Rc::<Sockets>::default();
    let mut tasks = LocalSet::new();
    let assigning = tasks.spawn_local({
        let (sockets, shared) = (sockets.clone(), shared.clone());
        async move {
            loop {
                let assigned = timeout(HOUSEKEEPING_EVERY, assignments.0.recv()).await;
                shared.borrow_mut().service.housekeeping();
                match assigned {
                    Ok(Some(assigned)) => {
                        tokio::task::spawn_local(serve(assigned, shared.clone(), sockets.clone()));
                    }
                    Ok(None) => break,
                    Err(_) => {}
                }
            }
        }
    });
    if runtime.block_on(tasks.run_until(assigning)).is_err() {
        // The service has panicked, and the thread ends early, which its owner notices.
        return;
    }
    sockets.drain();
    let patience = shared.borrow().service.last_replies_within();
    if runtime.block_on(async { timeout(patience, &mut tasks).await }).is_err() {
        let connections = sockets.kill();
        warn!(connections, "closing connections that did not take their last replies in time");
        runtime.block_on(tasks);
    }
}

async fn serve<S: Service>(assigned: Assigned, shared: Rc<RefCell<Shared<S>>>, sockets: Rc<Sockets>) {
    let Assigned { accepted, _among_all, _at_worker } = assigned;
    let Accepted { stream, address, listener, tls } = accepted;
    // A connection that cannot be opened has ended already.
    let Ok(socket) = stream.watch().and_then(|stream| Socket::accepted(stream, address, listener)) else {
        return;
    };
    let socket = Arc::new(socket);
    let _entry = sockets.enter(&socket);
    let Some(transport) = open_transport(&socket, tls, &shared).await else { return };
    if let Ok(connection) = Connection::open(transport, shared)
        && let Some(transport) = connection.serve().await
    {
        // Its end means that the client has closed as well, and the time that it is not waited for. In a box, since its buffer
        // would take room in every connection from the beginning.
        let _ = timeout(LAST_REPLY_WITHIN, Box::pin(drop_input(transport))).await;
    }
}

/// The transport of a connection, once its client has agreed on keys where there are some.
async fn open_transport<S: Service>(
    socket: &Arc<Socket>,
    tls: Option<Arc<ServerConfig>>,
    shared: &RefCell<Shared<S>>,
) -> Option<Transport> {
    let opened = async {
        let mut transport = Transport::new(socket.clone(), tls)?;
        transport.shake_hands().await?;
        Ok(transport)
    };
    let opened = timeout(HANDSHAKE_WITHIN, opened).await.unwrap_or_else(|elapsed| Err(elapsed.into()));
    let refused = |error: &io::Error| shared.borrow_mut().service.refused_handshake(socket, error);
    opened.inspect_err(refused).ok()
}

/// Sends no more, and drops what the client still sends until it closes: a socket that is closed with bytes unread resets the
/// connection, and the client may lose the reply that tells why it ends.
async fn drop_input(mut transport: Transport) -> io::Result<()> {
    transport.stop_writing();
    let mut dropped = [0; 4096];
    loop {
        poll_fn(|context| transport.poll_readable(context)).await?;
        match transport.receive(&mut dropped) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}
