//! What all threads share, and the server's life: listen, hand connections to the workers, stop.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use snugly_codec::SelectError;
use snugly_protocol::resp::Limits;
use snugly_store::{
    Config, Durability, Observer, OpenError, Settings, Stats, Store, StoreError, system_time,
};
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::access;
use crate::admin;
use crate::client_memory::longest_replies;
use crate::clients::Clients;
use crate::command_log::{CommandLog, Kind};
use crate::connection_counters::{ConnectionCounters, count};
use crate::freeing::Freeing;
use crate::interest::Interest;
use crate::latency::{Event, LatencyMonitor};
use crate::learning;
use crate::log_limit::LogLimit;
use crate::memory::Memory;
use crate::monitors::Monitors;
use crate::pause::Pause;
use crate::rdb::{self, LoadError, Saves};
use crate::replies::DecodedValues;
use crate::samples::{Samples, Totals};
use crate::settings::{Configuration, LogSettings};
use crate::slots::{Slot, Slots};
use crate::threads;
use crate::worker::{self, WorkerHandle, WorkerStats};

/// Why the server could not start.
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
    /// An address could not be listened on.
    #[error("cannot listen on {address}: {reason}{hint}")]
    Listen {
        /// The address, as it was given.
        address: String,
        /// What the system said.
        reason: io::Error,
        /// What to do.
        hint: String,
    },
    /// The system does not give what the server needs.
    #[error("the system refuses {what}: {reason}; {hint}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What the system said.
        reason: io::Error,
        /// What to do.
        hint: &'static str,
    },
}

/// What the allocator says of the whole process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllocatorStats {
    /// Allocated by the program.
    pub allocated: u64,
    /// In pages that hold allocations.
    pub active: u64,
    /// In physical memory.
    pub resident: u64,
}

/// The allocator of the process, as the server asks it.
#[derive(Clone, Copy)]
pub struct Allocator {
    /// What it is called, as INFO shows it.
    pub name: &'static str,
    /// What it counts at this moment.
    pub stats: fn() -> AllocatorStats,
    /// Its own report on itself, for people.
    pub report: fn() -> String,
    /// Lets it give unused pages back to the system.
    pub purge: fn(),
}

/// A server, and what its threads share.
pub struct Server {
    store: Arc<Store>,
    configuration: RwLock<Arc<Configuration>>,
    /// Held from where a change to the configuration reads it until all follow the change.
    changes_configuration: Mutex<()>,
    clients: Clients,
    slots: Slots,
    interest: Arc<Interest>,
    pause: Pause,
    workers: Mutex<Vec<Arc<WorkerStats>>>,
    addresses: Vec<SocketAddr>,
    admin_addresses: Vec<SocketAddr>,
    allocator: Allocator,
    monitors: Monitors,
    command_log: CommandLog,
    latency: LatencyMonitor,
    tracks_latency: AtomicBool,
    samples: Mutex<Samples>,
    saves: Saves,
    /// Different for every start of a server, in hexadecimal digits.
    pub(crate) run_id: String,
    stop: Notify,
    pub(crate) stopping: AtomicBool,
    pub(crate) started: Instant,
    /// The same moment, as Unix time in milliseconds.
    pub(crate) started_at: u64,
    /// Bytes that the replies to one client may take before they are sent.
    longest_replies: AtomicUsize,
    /// Connections whose command waits.
    pub(crate) blocked_clients: AtomicUsize,
    pub(crate) connections: ConnectionCounters,
    pub(crate) freeing: Arc<Freeing>,
    pub(crate) failed_logins_log: LogLimit,
    pub(crate) http_probes: LogLimit,
    pub(crate) heavy_clients_log: LogLimit,
    pub(crate) decoded: DecodedValues,
    /// The store's counters at the last CONFIG RESETSTAT; they themselves never go back.
    baseline: Mutex<Stats>,
}

/// A started server: its threads, to be waited for.
pub struct Running {
    server: Arc<Server>,
    threads: Vec<JoinHandle<()>>,
}

/// How often the store's regular work is done: keys whose time has come, entries in sparse pages.
const HOUSEKEEPING_EVERY: Duration = Duration::from_millis(100);
const EXPIRED_AT_ONCE: usize = 20_000;
const DEFRAGMENTED_AT_ONCE: usize = 20_000;
const BACKLOG: i32 = 1024;
/// How long clients may take their last replies when the server stops.
const LAST_REPLIES_WITHIN: Duration = Duration::from_secs(5);

impl Server {
    /// Loads what there is to load, listens, and starts the threads. Loading may take minutes; `stopping` ends it.
    ///
    /// # Errors
    /// [`StartError`], before anything was started.
    pub fn start(
        configuration: Configuration,
        allocator: Allocator,
        stopping: &AtomicBool,
    ) -> Result<Running, StartError> {
        let settings = configuration.store_settings()?;
        let listeners = listen(&configuration)?;
        let admin_listeners = listen_for_admin(&configuration)?;
        let interest = Arc::<Interest>::default();
        let observer = Some(interest.clone() as Arc<dyn Observer>);
        let config = Config { databases: configuration.databases, shards: None, observer, settings };
        let store = match configuration.disk() {
            Some(storage) => Store::open(config, storage)?,
            None => Store::new(config),
        };
        match configuration.load_rdb.as_str() {
            "" => rdb::refuse_part(&store)?,
            path => rdb::load(&store, Path::new(path), configuration.max_value_bytes, stopping)?,
        }
        let threads = match configuration.threads {
            0 => thread::available_parallelism().map_or(1, |n| n.get()),
            threads => threads,
        };
        let server = Arc::new(Server {
            store,
            configuration: RwLock::new(Arc::new(configuration)),
            changes_configuration: Mutex::default(),
            clients: Clients::default(),
            slots: Slots::default(),
            interest,
            pause: Pause::default(),
            workers: Mutex::default(),
            addresses: local_addresses(&listeners),
            admin_addresses: local_addresses(&admin_listeners),
            allocator,
            monitors: Monitors::default(),
            command_log: CommandLog::default(),
            latency: LatencyMonitor::default(),
            tracks_latency: AtomicBool::new(true),
            samples: Mutex::default(),
            saves: Saves::default(),
            run_id: format!("{:032x}{:08x}", fastrand::u128(..), fastrand::u32(..)),
            stop: Notify::new(),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            started_at: system_time(),
            longest_replies: AtomicUsize::new(usize::MAX),
            blocked_clients: AtomicUsize::new(0),
            connections: ConnectionCounters::default(),
            freeing: Arc::default(),
            failed_logins_log: LogLimit::default(),
            http_probes: LogLimit::default(),
            heavy_clients_log: LogLimit::default(),
            decoded: DecodedValues::default(),
            baseline: Mutex::default(),
        });
        server.follow(&server.configuration());
        server.store.exclude_from_dictionaries(server.configuration().excluded_keys());
        let memory = server.memory();
        server.samples.lock().start(memory);
        let started = server.start_threads(threads, listeners, admin_listeners).inspect_err(|_| {
            // Threads that were started already end, which is then no accident.
            server.stopping.store(true, Ordering::SeqCst);
        })?;
        Ok(Running { server, threads: started })
    }

    fn start_threads(
        self: &Arc<Server>,
        workers: usize,
        listeners: Vec<std::net::TcpListener>,
        admin_listeners: Vec<std::net::TcpListener>,
    ) -> Result<Vec<JoinHandle<()>>, StartError> {
        // What can fail comes first: a thread that has begun must not end before the server stops.
        let event_loops: Result<Vec<Runtime>, StartError> =
            (0..workers).map(|_| threads::event_loop(worker::COLD_READERS)).collect();
        let (event_loops, accepting, admin) =
            (event_loops?, threads::event_loop(1)?, threads::event_loop(1)?);
        let mut handles = Vec::new();
        let mut started = Vec::new();
        for (number, event_loop) in event_loops.into_iter().enumerate() {
            let (handle, assignments) = worker::channel();
            handles.push(handle);
            let server = self.clone();
            let run = move || worker::run(&server, event_loop, assignments);
            started.push(threads::start(self, &format!("worker-{number}"), run)?);
        }
        let server = self.clone();
        started.push(threads::start(self, "dictionaries", move || learning::run(&server))?);
        // Whoever holds the one end lets the thread at the other serve on.
        let (serving, served) = oneshot::channel();
        if !admin_listeners.is_empty() {
            let server = self.clone();
            let run = move || admin::run(&server, admin, admin_listeners, served);
            started.push(threads::start(self, "admin", run)?);
        }
        let server = self.clone();
        let run = move || accept_until_stopped(&server, accepting, listeners, handles, serving);
        started.push(threads::start(self, "listener", run)?);
        Ok(started)
    }

    /// The store behind the server.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where it answers HTTP for those who watch it.
    pub fn admin_addresses(&self) -> &[SocketAddr] {
        &self.admin_addresses
    }

    /// The settings in force.
    pub fn configuration(&self) -> Arc<Configuration> {
        self.configuration.read().clone()
    }

    /// Ends the server: it accepts no more connections, and those that there are end once their requests are answered.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Changes settings, while nobody else does. `change` gives what the store is to follow; if it fails, nothing is
    /// changed.
    pub(crate) fn change_configuration<E>(
        &self,
        change: impl FnOnce(&mut Configuration) -> Result<Settings, E>,
    ) -> Result<(), E> {
        let _alone = self.changes_configuration.lock();
        let mut changed = Configuration::clone(&self.configuration());
        let settings = change(&mut changed)?;
        self.follow(&changed);
        let changed = Arc::new(changed);
        let before = std::mem::replace(&mut *self.configuration.write(), changed.clone());
        self.store.change_settings(|current| *current = settings);
        if changed.dictionary_exclude != before.dictionary_exclude {
            self.store.exclude_from_dictionaries(changed.excluded_keys());
        }
        Ok(())
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn interest(&self) -> &Interest {
        &self.interest
    }

    pub(crate) fn pause(&self) -> &Pause {
        &self.pause
    }

    /// Hands settings on to those who do not look them up.
    fn follow(&self, configuration: &Configuration) {
        self.interest.limit_tracked_keys(configuration.tracking_table_max_keys);
        for kind in Kind::ALL {
            let LogSettings { threshold, most } = configuration.command_log[kind as usize];
            self.command_log.configure(kind, threshold, most);
        }
        self.longest_replies.store(longest_replies(configuration), Ordering::Relaxed);
        self.latency.set_threshold(configuration.latency_monitor_threshold);
        self.tracks_latency.store(configuration.latency_tracking, Ordering::Relaxed);
    }

    pub(crate) fn allocator(&self) -> Allocator {
        self.allocator
    }

    pub(crate) fn monitors(&self) -> &Monitors {
        &self.monitors
    }

    pub(crate) fn saves(&self) -> &Saves {
        &self.saves
    }

    pub(crate) fn command_log(&self) -> &CommandLog {
        &self.command_log
    }

    pub(crate) fn latency(&self) -> &LatencyMonitor {
        &self.latency
    }

    /// Whether the times of commands are collected for LATENCY HISTOGRAM and INFO.
    pub(crate) fn tracks_latency(&self) -> bool {
        self.tracks_latency.load(Ordering::Relaxed)
    }

    /// What memory is used for at this moment. As somebody is told of it, it counts for the peak.
    pub(crate) fn memory(&self) -> Memory {
        let memory = Memory::now((self.allocator.stats)(), &self.store);
        self.samples.lock().note(memory);
        memory
    }

    /// What is known only by looking again and again: rates and the peak of memory.
    pub(crate) fn samples(&self) -> Samples {
        self.samples.lock().clone()
    }

    fn take_samples(&self) {
        let totals = Totals::of(&self.worker_stats());
        let memory = Memory::now((self.allocator.stats)(), &self.store);
        self.samples.lock().take(Instant::now(), totals, memory);
    }

    pub(crate) fn register(&self, stats: Arc<WorkerStats>) {
        self.workers.lock().push(stats);
    }

    /// What the store's sessions counted since the last CONFIG RESETSTAT.
    pub(crate) fn stats(&self) -> Stats {
        // In this order, so that no less is counted than was at the reset; and not held, since EXEC asks with shards held.
        let baseline = *self.baseline.lock();
        self.store.stats().since(&baseline)
    }

    /// Starts all statistics anew.
    pub(crate) fn reset_stats(&self) {
        *self.baseline.lock() = self.store.stats();
        self.workers.lock().iter().for_each(|worker| worker.reset());
        self.connections.reset();
        self.freeing.reset();
        self.samples.lock().reset();
    }

    pub(crate) fn worker_stats(&self) -> Vec<Arc<WorkerStats>> {
        self.workers.lock().clone()
    }

    pub(crate) fn limits(&self, authenticated: bool) -> Limits {
        let configuration = self.configuration.read();
        Limits {
            max_bulk: configuration.max_value_bytes,
            max_request: configuration.max_request_bytes,
            authenticated,
            ..Limits::default()
        }
    }

    /// Whether a write is answered only once it is on disk.
    pub(crate) fn answers_durably(&self) -> bool {
        self.store.durability() == Some(Durability::Fsync)
    }

    /// Bytes that the replies to one client may take before they are sent.
    pub(crate) fn longest_replies(&self) -> usize {
        self.longest_replies.load(Ordering::Relaxed)
    }

    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        match self.configuration.read().timeout {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        }
    }
}

impl Running {
    /// The server, to look at and to stop.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Waits until the server has ended, and what it was given is on disk if there is one.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if something could not be written.
    pub fn wait(self) -> Result<(), StoreError> {
        for thread in self.threads {
            if thread.join().is_err() {
                warn!("a thread of the server has panicked");
            }
        }
        self.server.store.close()
    }
}

fn listen(configuration: &Configuration) -> Result<Vec<std::net::TcpListener>, StartError> {
    let mut listeners = Vec::new();
    for host in configuration.bind.split([' ', ',']).filter(|host| !host.is_empty()) {
        let found = (host, configuration.port).to_socket_addrs();
        listeners.extend(listen_on_all(&format!("{host}:{}", configuration.port), found, "--port")?);
    }
    Ok(listeners)
}

fn listen_for_admin(configuration: &Configuration) -> Result<Vec<std::net::TcpListener>, StartError> {
    match configuration.admin_address.as_str() {
        "" => Ok(Vec::new()),
        address => listen_on_all(address, address.to_socket_addrs(), "--admin-address"),
    }
}

/// Listens on what was found for an address that `flag` gives.
fn listen_on_all(
    address: &str,
    found: io::Result<impl Iterator<Item = SocketAddr>>,
    flag: &str,
) -> Result<Vec<std::net::TcpListener>, StartError> {
    let listeners = found.and_then(|found| found.map(listen_on).collect());
    listeners.map_err(|reason| StartError::Listen {
        hint: match reason.kind() {
            io::ErrorKind::AddrInUse => {
                format!("; is another server running there? Choose another port with {flag}")
            }
            io::ErrorKind::PermissionDenied => {
                format!("; ports below 1024 are for root, choose another with {flag}")
            }
            _ => String::new(),
        },
        address: address.to_owned(),
        reason,
    })
}

fn local_addresses(listeners: &[std::net::TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
}

fn listen_on(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The listener's thread: accepts connections and does the store's regular work. It lets go of `_serving` when all
/// clients are gone.
fn accept_until_stopped(
    server: &Arc<Server>,
    runtime: Runtime,
    listeners: Vec<std::net::TcpListener>,
    workers: Vec<WorkerHandle>,
    _serving: oneshot::Sender<Infallible>,
) {
    runtime.block_on(async {
        let workers = Arc::new(workers);
        let mut tasks = JoinSet::new();
        for listener in listeners {
            let listener = TcpListener::from_std(listener).expect("a listening socket can be watched");
            tasks.spawn(accept(server.clone(), listener, workers.clone()));
        }
        tasks.spawn(keep_house(server.clone()));
        let mut stopped = pin!(server.stop.notified());
        let is_stopped = poll_fn(|context| match stopped.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => tasks.poll_join_next(context).map(|_| false),
        });
        if !is_stopped.await {
            // A task has panicked. The thread ends before its time, which is told.
            return;
        }
        info!("stopping: no more connections are accepted");
        tasks.shutdown().await;
        server.stopping.store(true, Ordering::SeqCst);
        // A worker ends when its connections and the listener's end of its channel are gone.
        drop(workers);
        server.clients.list().iter().for_each(|client| client.stop_reading());
        let deadline = Instant::now() + LAST_REPLIES_WITHIN;
        while server.clients.len() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let late = server.clients.list();
        if !late.is_empty() {
            warn!(
                connections = late.len(),
                "closing connections that did not take their last replies in time"
            );
        }
        late.iter().for_each(|client| client.kill());
    });
}

async fn accept(server: Arc<Server>, listener: TcpListener, workers: Arc<Vec<WorkerHandle>>) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) if access::denies(&server.configuration(), address.ip()) => {
                count(&server.connections.refused);
                let _ = stream.try_write(access::DENIED);
            }
            Ok((stream, _)) => match server.slots.take(server.configuration().max_clients) {
                Some(slot) => {
                    count(&server.connections.accepted);
                    assign(stream, slot, &workers);
                }
                None => {
                    count(&server.connections.refused);
                    // The refusal is a courtesy; a client that is gone already misses nothing.
                    let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
                }
            },
            Err(error) => {
                warn!(%error, "cannot accept a connection; if files ran out, raise the limit (ulimit -n)");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn assign(stream: TcpStream, slot: Slot, workers: &[WorkerHandle]) {
    // The socket moves from the listener's event loop to its worker's.
    let stream = stream.into_std();
    let idlest = workers.iter().min_by_key(|worker| worker.connections.taken());
    if let (Ok(stream), Some(worker)) = (stream, idlest) {
        worker.serve(stream, slot);
    }
}

async fn keep_house(server: Arc<Server>) {
    loop {
        tokio::time::sleep(HOUSEKEEPING_EVERY).await;
        let started = Instant::now();
        // In a pause nothing changes.
        server.store.keep_expired(server.pause().current().is_some());
        // Only then: other changes are told behind the requests that made them.
        if server.store.expire_due(system_time(), EXPIRED_AT_ONCE) > 0 {
            server.interest.broadcast();
        }
        let expired = Instant::now();
        server.store.defragment(DEFRAGMENTED_AT_ONCE);
        server.latency.note(Event::ExpireCycle, expired - started);
        server.latency.note(Event::ActiveDefragmentation, expired.elapsed());
        server.limit_clients();
        server.take_samples();
    }
}
