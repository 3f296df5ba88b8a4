//! State that all threads of a server share: the store, the settings in force, the connected clients, and the counters.
//!
//! It starts and stops nothing: that is for `lifecycle`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use snugly_protocol::resp::Limits;
use snugly_store::{Durability, Settings, Stats, Store, system_time};
use thiserror::Error;
use tokio::sync::Notify;

use crate::accounts::Accounts;
use crate::allocator::Allocator;
use crate::background::Background;
use crate::backups::Backups;
use crate::channels::Channels;
use crate::clients::Clients;
use crate::command_log::{CommandLog, Kind};
use crate::counters::{ConnectionCounters, EVENTS, WorkerStats};
use crate::delayed_flush::DelayedFlush;
use crate::freeing::Freeing;
use crate::key_events::KeyEvents;
use crate::key_watch::KeyWatch;
use crate::latency::LatencyMonitor;
use crate::listeners::{Listener, Listeners, Protocol};
use crate::log_limit::LogLimit;
use crate::memory::Memory;
use crate::monitors::Monitors;
use crate::pause::Pause;
use crate::places::Places;
use crate::replica::Replica;
use crate::replies::DecodedValues;
use crate::samples::{Samples, Totals};
use crate::saves::Saves;
use crate::scripts::Scripts;
use crate::settings::{
    Configuration, LogSettings, Reload, ReplyLimits, RewriteError, SettingsError, Sources,
};
use crate::tls::{self, TlsError};
use crate::turns::Turns;

/// Reason why no setting was changed.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// A source of settings is wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Certificates or keys cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A server, and what its threads share.
pub struct Server {
    store: Arc<Store>,
    configuration: RwLock<Arc<Configuration>>,
    /// Held from where a change to the configuration reads it until all follow the change.
    sources: Mutex<Sources>,
    /// That of the sources, which may be held while a slow disk is waited for.
    configuration_file: Option<PathBuf>,
    accounts: Accounts,
    clients: Clients,
    channels: Arc<Channels>,
    places: Places,
    key_watch: Arc<KeyWatch>,
    key_events: Arc<KeyEvents>,
    pause: Pause,
    replica: Replica,
    turns: Turns,
    workers: Mutex<Vec<Arc<WorkerStats>>>,
    listeners: Listeners,
    allocator: Allocator,
    monitors: Monitors,
    scripts: Scripts,
    command_log: CommandLog,
    latency: LatencyMonitor,
    tracks_latency: AtomicBool,
    samples: Mutex<Samples>,
    saves: Saves,
    backups: Backups,
    /// Different for every start of a server, in hexadecimal digits.
    pub(crate) run_id: String,
    stop: Notify,
    pub(crate) stopping: AtomicBool,
    /// Rounds of the regular work that are done.
    pub(crate) started: Instant,
    /// The same moment, as Unix time in milliseconds.
    pub(crate) started_at: u64,
    /// Limit of the buffer with the replies to one client, and of all its replies, in bytes.
    longest_replies: AtomicUsize,
    most_replies: AtomicUsize,
    /// Connections whose command waits.
    pub(crate) blocked_clients: AtomicUsize,
    pub(crate) connections: ConnectionCounters,
    pub(crate) background: Background,
    pub(crate) freeing: Arc<Freeing>,
    pub(crate) delayed_flush: DelayedFlush,
    pub(crate) failed_logins_log: LogLimit,
    pub(crate) refused_handshakes_log: LogLimit,
    pub(crate) wrong_tokens_log: LogLimit,
    pub(crate) http_probes: LogLimit,
    pub(crate) heavy_clients_log: LogLimit,
    pub(crate) decoded: DecodedValues,
    /// Number of MEMORY PURGEs, which each thread follows.
    pub(crate) purges: AtomicU64,
    /// The store's counters at the last CONFIG RESETSTAT; they themselves never go back.
    baseline: Mutex<Stats>,
}

impl Server {
    /// A server with this store, whose threads are yet to be started.
    pub(crate) fn new(
        store: Arc<Store>,
        sources: Sources,
        accounts: Accounts,
        key_watch: Arc<KeyWatch>,
        key_events: Arc<KeyEvents>,
        allocator: Allocator,
        listeners: Listeners,
    ) -> Arc<Server> {
        let server = Arc::new(Server {
            store,
            configuration: RwLock::new(Arc::new(sources.configuration().clone())),
            configuration_file: sources.file().map(Path::to_owned),
            sources: Mutex::new(sources),
            accounts,
            clients: Clients::default(),
            channels: key_events.channels().clone(),
            places: Places::default(),
            key_watch,
            key_events,
            pause: Pause::default(),
            replica: Replica::default(),
            turns: Turns::default(),
            workers: Mutex::default(),
            listeners,
            allocator,
            monitors: Monitors::default(),
            scripts: Scripts::default(),
            command_log: CommandLog::default(),
            latency: LatencyMonitor::default(),
            tracks_latency: AtomicBool::new(true),
            samples: Mutex::default(),
            saves: Saves::default(),
            backups: Backups::default(),
            run_id: format!("{:032x}{:08x}", fastrand::u128(..), fastrand::u32(..)),
            stop: Notify::new(),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            started_at: system_time(),
            longest_replies: AtomicUsize::new(usize::MAX),
            most_replies: AtomicUsize::new(usize::MAX),
            blocked_clients: AtomicUsize::new(0),
            connections: ConnectionCounters::default(),
            background: Background::default(),
            freeing: Arc::default(),
            delayed_flush: DelayedFlush::default(),
            failed_logins_log: LogLimit::default(),
            refused_handshakes_log: LogLimit::default(),
            wrong_tokens_log: LogLimit::default(),
            http_probes: LogLimit::default(),
            heavy_clients_log: LogLimit::default(),
            decoded: DecodedValues::default(),
            purges: AtomicU64::new(0),
            baseline: Mutex::default(),
        });
        server.apply(&server.configuration());
        server.store.exclude_from_dictionaries(server.configuration().excluded_keys());
        let memory = server.memory();
        server.samples.lock().start(memory);
        server
    }

    /// The store behind the server.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The sockets that it listens on for clients. A connection knows the number of its own.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners.clients
    }

    /// The ports at which it speaks memcached's protocols.
    pub(crate) fn memcached_ports(&self) -> Vec<u16> {
        let memcached = self.listeners().iter().filter(|listener| listener.protocol == Protocol::Memcached);
        memcached.filter_map(Listener::port).collect()
    }

    /// The address that answers HTTP for monitoring.
    pub fn admin_addresses(&self) -> &[SocketAddr] {
        &self.listeners.admin
    }

    /// The settings in force.
    pub fn configuration(&self) -> Arc<Configuration> {
        self.configuration.read().clone()
    }

    /// Ends the server: it accepts no more connections, and those that there are end once their requests are answered.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Whether the server is about to end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Time since the regular work was last done, which is some times a second until the server stops; `None` right after the
    /// start and a reset of statistics. The work takes the locks that commands take: if it stands still, so do they.
    pub fn work_age(&self) -> Option<Duration> {
        self.samples.lock().age()
    }

    /// Waits until the server is to end.
    pub(crate) async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// Changes settings, while nobody else does. `change` gives what the store is to follow; if it fails, nothing is
    /// changed.
    pub(crate) fn change_configuration<E: From<TlsError>>(
        &self,
        change: impl FnOnce(&mut Configuration) -> Result<Settings, E>,
    ) -> Result<(), E> {
        let _alone = self.sources.lock();
        let mut changed = Configuration::clone(&self.configuration());
        let settings = change(&mut changed)?;
        if changed.tls_settings() != self.configuration().tls_settings() {
            self.read_certificates(&changed)?;
        }
        self.follow(changed, settings);
        Ok(())
    }

    /// Reads the configuration file, the password's file, certificates and keys again, and applies what has changed in them
    /// and may change while the server runs. A setting that CONFIG SET has changed stays until its source changes.
    ///
    /// # Errors
    /// What is wrong with the sources; then nothing has changed.
    pub fn reload(&self) -> Result<Reload, ChangeError> {
        let mut sources = self.sources.lock();
        let mut changed = Configuration::clone(&self.configuration());
        let outcome = sources
            .reload(&mut changed, |changed| self.read_certificates(changed).map_err(ChangeError::from))?;
        let settings = changed.store_settings().map_err(SettingsError::from)?;
        self.follow(changed, settings);
        Ok(outcome)
    }

    /// Uses the certificates and keys as they are now for new connections.
    fn read_certificates(&self, configuration: &Configuration) -> Result<(), TlsError> {
        if let Some(tls) = &self.listeners.tls {
            tls.replace(tls::server_config(configuration)?);
        }
        Ok(())
    }

    /// Writes into the configuration file what CONFIG SET has changed; returns the settings whose value a flag or the
    /// environment will beat at the next start.
    pub(crate) fn rewrite_configuration(&self) -> Result<Vec<&'static str>, RewriteError> {
        self.sources.lock().rewrite(&self.configuration())
    }

    /// Brings settings into force. It is for the holder of `sources`.
    fn follow(&self, changed: Configuration, settings: Settings) {
        self.apply(&changed);
        let changed = Arc::new(changed);
        let before = std::mem::replace(&mut *self.configuration.write(), changed.clone());
        self.store.change_settings(|current| *current = settings);
        if changed.password != before.password {
            self.accounts.set_default_password(&changed.password);
        }
        if changed.dictionary_exclude != before.dictionary_exclude {
            self.store.exclude_from_dictionaries(changed.excluded_keys());
        }
    }

    /// The configuration file.
    pub fn configuration_file(&self) -> Option<&Path> {
        self.configuration_file.as_deref()
    }

    /// Returns whether clients are let in without a password.
    pub fn is_open(&self) -> bool {
        self.accounts.users().default_user().needs_no_password
    }

    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Places for connections, of which `max-clients` may be taken.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn key_watch(&self) -> &KeyWatch {
        &self.key_watch
    }

    pub(crate) fn key_events(&self) -> &KeyEvents {
        &self.key_events
    }

    /// Tells clients of the changes since the last call, where that is not done at once, and disconnects those who did not
    /// take what they were told. The thread of a change calls this before anybody gets an answer.
    pub(crate) fn tell_of_changes(&self) {
        self.key_watch.broadcast();
        self.key_events.take_overfull().iter().for_each(|client| self.end_over_output_limit(client));
    }

    pub(crate) fn pause(&self) -> &Pause {
        &self.pause
    }

    pub(crate) fn replica(&self) -> &Replica {
        &self.replica
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Hands settings on to those who do not look them up.
    fn apply(&self, configuration: &Configuration) {
        self.key_watch.limit_tracked_keys(configuration.tracking_table_max_keys);
        self.replica.follow(configuration);
        for kind in Kind::ALL {
            let LogSettings { threshold, most } = configuration.command_log[kind as usize];
            self.command_log.configure(kind, threshold, most);
        }
        self.key_events.set_classes(configuration.notify_keyspace_events);
        self.channels.limit_output(configuration.client_output_buffer_limit.of(true).hard);
        let replies = ReplyLimits::of(configuration);
        self.longest_replies.store(replies.buffer, Ordering::Relaxed);
        self.most_replies.store(replies.all, Ordering::Relaxed);
        self.latency.set_threshold(configuration.latency_monitor_threshold);
        self.tracks_latency.store(configuration.latency_tracking, Ordering::Relaxed);
    }

    pub(crate) fn allocator(&self) -> Allocator {
        self.allocator
    }

    pub(crate) fn monitors(&self) -> &Monitors {
        &self.monitors
    }

    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    pub(crate) fn saves(&self) -> &Saves {
        &self.saves
    }

    pub(crate) fn backups(&self) -> &Backups {
        &self.backups
    }

    pub(crate) fn command_log(&self) -> &CommandLog {
        &self.command_log
    }

    pub(crate) fn latency(&self) -> &LatencyMonitor {
        &self.latency
    }

    /// Returns whether the times of commands are collected for LATENCY HISTOGRAM and INFO.
    pub(crate) fn tracks_latency(&self) -> bool {
        self.tracks_latency.load(Ordering::Relaxed)
    }

    /// Memory in use at this moment. Also updates the peak, so that a reported value never exceeds it.
    pub(crate) fn memory(&self) -> Memory {
        let memory = Memory::now((self.allocator.stats)(), &self.store);
        self.samples.lock().note(memory);
        memory
    }

    /// Numbers known only by sampling: rates and the peak of memory.
    pub(crate) fn samples(&self) -> Samples {
        self.samples.lock().clone()
    }

    pub(crate) fn take_samples(&self) {
        let totals = Totals::of(&self.worker_stats());
        let memory = Memory::now((self.allocator.stats)(), &self.store);
        self.samples.lock().take(Instant::now(), totals, memory);
    }

    pub(crate) fn register(&self, stats: Arc<WorkerStats>) {
        self.workers.lock().push(stats);
    }

    /// Events in memcached's protocols on all threads, by name.
    pub(crate) fn memcached_events(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut all = [0; EVENTS.len()];
        for worker in self.worker_stats() {
            all.iter_mut().zip(worker.memcached.counts()).for_each(|(sum, count)| *sum += count);
        }
        EVENTS.into_iter().zip(all)
    }

    /// Flushes the database of memcached's protocols if that was to happen by now.
    pub(crate) fn flush_if_due(&self, now: u64) {
        if self.delayed_flush.is_due(now) && !self.replica.refuses_writes() {
            self.freeing.free(self.store.flush(Some(0)));
        }
    }

    /// Counters of the store's sessions since the last CONFIG RESETSTAT.
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

    /// Limits of the requests of the primary, which has limits of its own: at least Valkey's.
    pub(crate) fn limits_of_primary(&self) -> Limits {
        let (own, least) = (self.limits(true), Limits::default());
        Limits {
            max_bulk: own.max_bulk.max(least.max_bulk),
            max_request: own.max_request.max(least.max_request),
            ..least
        }
    }

    /// Returns whether a write is answered only once it is on disk.
    pub(crate) fn answers_durably(&self) -> bool {
        self.store.durability() == Some(Durability::Fsync)
    }

    /// Limits of the replies to one client before they are sent, in bytes.
    pub(crate) fn longest_replies(&self) -> usize {
        self.longest_replies.load(Ordering::Relaxed)
    }

    /// Bytes that the replies to one client may take before they are sent, chunks included.
    pub(crate) fn most_replies(&self) -> usize {
        self.most_replies.load(Ordering::Relaxed)
    }

    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        match self.configuration.read().timeout {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        }
    }
}
