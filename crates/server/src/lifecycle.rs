//! The server's life: listen, start the threads, hand connections to the workers, do the regular work, stop.

use std::convert::Infallible;
use std::fs;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use snugly_codec::SelectError;
use snugly_net::{Address, Endpoint, Slot, TlsSettings, Workers};
use snugly_store::{Config, KeyChange, Observer, OpenError, Store, StoreError, system_time};
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::accounts::Accounts;
use crate::admin;
use crate::allocator::Allocator;
use crate::commands::{self, UsersError};
use crate::counters::count;
use crate::dialects::{Dialects, denied, too_many_clients};
use crate::key_events::KeyEvents;
use crate::key_watch::KeyWatch;
use crate::latency::Event;
use crate::learning;
use crate::listeners::{Listeners, Protocol};
use crate::listening::{ListenError, PassedSocket, Sockets};
use crate::rdb::{self, LoadError};
use crate::replication;
use crate::scripts;
use crate::settings::{Sources, denies};
use crate::state::Server;
use crate::threads::{self, SystemError};
use crate::tls::{self, TlsError};

/// Reason why the server could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The compression settings are wrong.
    #[error(transparent)]
    Compression(#[from] SelectError),
    /// The store on disk could not be opened.
    #[error(transparent)]
    Storage(#[from] OpenError),
    /// The RDB file was not loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is nothing to listen on, or an address could not be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Connections cannot be encrypted.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The users are wrong.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The system does not give what the server needs.
    #[error(transparent)]
    System(#[from] SystemError),
}

/// A started server: its threads, to be waited for.
pub struct Running {
    server: Arc<Server>,
    /// The last one is the listener's, which ends first.
    threads: Vec<JoinHandle<()>>,
}

/// Interval of the store's regular work: expired keys, entries in sparse pages.
const HOUSEKEEPING_EVERY: Duration = Duration::from_millis(100);
const EXPIRED_AT_ONCE: usize = 20_000;
const DEFRAGMENTED_AT_ONCE: usize = 20_000;
/// Threads that wait for the disk in the place of a worker.
const COLD_READERS: usize = 8;

impl Server {
    /// Loads what there is to load, listens, and starts the threads. Loading may take minutes; `stopping` ends it. Sockets that
    /// are passed take the place of those that the settings would have it open for the same purpose.
    ///
    /// # Errors
    /// [`StartError`], before anything was started.
    pub fn start(
        sources: Sources,
        allocator: Allocator,
        passed: Vec<PassedSocket>,
        stopping: &AtomicBool,
    ) -> Result<Running, StartError> {
        let configuration = sources.configuration();
        let settings = configuration.store_settings()?;
        let users = commands::read_users(configuration)?;
        let mut sockets = Sockets::open(configuration, passed)?;
        let admin_listeners = std::mem::take(&mut sockets.admin);
        let tls = match sockets.need_tls() {
            true => Some(Arc::new(TlsSettings::new(tls::server_config(configuration)?))),
            false => None,
        };
        let (listeners, endpoints) = sockets.into_endpoints(tls.as_ref())?;
        let key_watch = Arc::<KeyWatch>::default();
        let key_events = Arc::<KeyEvents>::default();
        let observer = Arc::new(Observers { key_watch: key_watch.clone(), key_events: key_events.clone() });
        let observer = Some(observer as Arc<dyn Observer>);
        let config = Config { databases: configuration.databases, shards: None, observer, settings };
        let store = match configuration.disk() {
            Some(storage) => Store::open(config, storage)?,
            None => Store::new(config),
        };
        let has_part = match configuration.load_rdb.as_str() {
            "" if configuration.replica_of.is_some() => rdb::has_part(&store)?,
            "" => rdb::refuse_part(&store).map(|()| false)?,
            path => {
                rdb::load(&store, Path::new(path), configuration.max_value_bytes, stopping).map(|()| false)?
            }
        };
        let threads = match configuration.threads {
            0 => thread::available_parallelism().map_or(1, |n| n.get()),
            threads => threads,
        };
        let server = Server::new(
            store,
            sources,
            Accounts::new(users),
            key_watch,
            key_events,
            allocator,
            Listeners {
                clients: listeners,
                admin: admin_listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect(),
                tls,
            },
        );
        server.replica().set_loading(has_part);
        let started = server.start_threads(threads, endpoints, admin_listeners).inspect_err(|_| {
            // Threads that were started already end, which is then no accident.
            server.stopping.store(true, Ordering::SeqCst);
        })?;
        Ok(Running { server, threads: started })
    }

    fn start_threads(
        self: &Arc<Server>,
        workers: usize,
        endpoints: Vec<Endpoint>,
        admin_listeners: Vec<std::net::TcpListener>,
    ) -> Result<Vec<JoinHandle<()>>, SystemError> {
        // Fallible steps come first: a thread that has begun must not end before the server stops.
        let event_loops: Result<Vec<Runtime>, SystemError> =
            (0..=workers).map(|_| threads::event_loop(COLD_READERS)).collect();
        let (event_loops, accepting, admin, following) =
            (event_loops?, threads::event_loop(1)?, threads::event_loop(1)?, threads::event_loop(1)?);
        // The admin endpoint serves on until all workers have dropped their end.
        let (serving, served) = oneshot::channel::<Infallible>();
        let serving = Arc::new(serving);
        let mut handles = Vec::new();
        let mut started = Vec::new();
        let occupied: Vec<Arc<AtomicBool>> = (0..=workers).map(|_| Arc::default()).collect();
        for (number, event_loop) in event_loops.into_iter().enumerate() {
            let is_occupied = occupied[number].clone();
            let (handle, assignments) = snugly_net::channel();
            handles.push(handle);
            let (server, serving) = (self.clone(), serving.clone());
            let run = move || {
                scripts::show_occupied(is_occupied);
                snugly_net::run(Dialects::new(server), &event_loop, assignments);
                drop(serving);
            };
            let name = if number < workers { format!("worker-{number}") } else { "spare-worker".to_owned() };
            started.push(threads::start(self, &name, run)?);
        }
        let server = self.clone();
        started.push(threads::start(self, "dictionaries", move || learning::run(&server))?);
        let server = self.clone();
        started.push(threads::start(self, "replica", move || replication::run(&server, &following))?);
        if !admin_listeners.is_empty() {
            let server = self.clone();
            let run = move || admin::run(&server, admin, admin_listeners, served);
            started.push(threads::start(self, "admin", run)?);
        }
        let server = self.clone();
        started.push(threads::start(self, "housekeeping", move || housekeeping(&server))?);
        let server = self.clone();
        let spare = handles.pop().expect("there is one more than workers");
        let workers = Workers::new(handles, spare, move |worker| {
            server.scripts().running.is_busy() || occupied[worker].load(Ordering::Relaxed)
        });
        let server = self.clone();
        let run = move || accept_until_stopped(&server, &accepting, endpoints, workers);
        started.push(threads::start(self, "listener", run)?);
        Ok(started)
    }
}

impl Running {
    /// The server, to look at and to stop.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Waits until the server begins to end, and accepts no more connections.
    pub fn wait_for_stop(&mut self) {
        self.threads.pop().into_iter().for_each(join);
    }

    /// Waits until the server has ended, and what it was given is on disk if there is one.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if something could not be written.
    pub fn wait(self) -> Result<(), StoreError> {
        self.threads.into_iter().for_each(join);
        self.server.backups().stop();
        for listener in self.server.listeners() {
            if let (Address::Unix(path), false) = (&listener.address, listener.is_passed) {
                // It may be gone already.
                let _ = fs::remove_file(path);
            }
        }
        self.server.store().close()
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        warn!("a thread of the server has panicked");
    }
}

/// The listener's thread: accepts connections. It takes no locks of the store, which a script may hold for long.
fn accept_until_stopped(server: &Arc<Server>, runtime: &Runtime, endpoints: Vec<Endpoint>, workers: Workers) {
    runtime.block_on(async {
        let workers = Arc::new(workers);
        let mut tasks = JoinSet::new();
        for endpoint in endpoints {
            let (server, protocol) = (server.clone(), server.listeners()[endpoint.number].protocol);
            let admit = move |address: &Address| admit(&server, protocol, address);
            tasks.spawn(snugly_net::accept(endpoint, workers.clone(), admit));
        }
        let mut stopped = pin!(server.stopped());
        let is_stopped = poll_fn(|context| match stopped.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => tasks.poll_join_next(context).map(|_| false),
        });
        if !is_stopped.await {
            // A task has panicked. The thread ends early, which is reported.
            return;
        }
        info!("stopping: no more connections are accepted");
        tasks.shutdown().await;
        // Workers whose handles are dropped give their clients the last replies, and end.
        server.stopping.store(true, Ordering::SeqCst);
        server.scripts().running.end_with_server();
        server.replica().wake();
    });
}

/// Admits a connection to a slot, or returns the reason why there is none.
fn admit(server: &Server, protocol: Protocol, address: &Address) -> Result<Slot, &'static [u8]> {
    let configuration = server.configuration();
    let slot = if denies(&configuration, server.is_open(), address) {
        Err(denied(protocol))
    } else {
        let most_of_address = configuration.max_clients_per_address;
        let slot = server.places().take(configuration.max_clients, address.ip(), most_of_address);
        slot.ok_or(too_many_clients(protocol))
    };
    let counters = &server.connections;
    count(if slot.is_ok() { &counters.accepted } else { &counters.refused });
    slot
}

/// Everybody who hears of changes from the store.
struct Observers {
    key_watch: Arc<KeyWatch>,
    key_events: Arc<KeyEvents>,
}

impl Observer for Observers {
    fn changed(&self, database: usize, key: &[u8], change: KeyChange) {
        self.key_watch.changed(database, key, change);
        self.key_events.changed(database, key, change);
    }

    fn missed(&self, database: usize, key: &[u8]) {
        self.key_events.missed(database, key);
    }

    fn flushed(&self, database: Option<usize>) {
        self.key_watch.flushed(database);
    }
}

/// The thread of the store's regular work.
fn housekeeping(server: &Server) {
    while !server.is_stopping() {
        thread::sleep(HOUSEKEEPING_EVERY);
        let started = Instant::now();
        // In a pause nothing changes.
        server.store().keep_expired(server.pause().current().is_some());
        // Only then: other changes are told behind the requests that made them.
        server.flush_if_due(system_time());
        if server.store().expire_due(system_time(), EXPIRED_AT_ONCE) > 0 {
            server.tell_of_changes();
        }
        let expired = Instant::now();
        server.store().defragment(DEFRAGMENTED_AT_ONCE);
        server.latency().note(Event::ExpireCycle, expired - started);
        server.latency().note(Event::ActiveDefragmentation, expired.elapsed());
        server.limit_clients();
        server.take_samples();
    }
}
