//! The connected clients and their state: shown by CLIENT LIST, ended by CLIENT KILL.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use snugly_net::{Address, Full, Socket};
use snugly_protocol::resp::Protocol;
use snugly_store::system_time;
use tracing::warn;

use crate::counters::Counter;
use crate::subscriptions::{Kind, Subscriptions};

/// One connection, as the others may see it.
pub(crate) struct ClientInfo {
    pub(crate) id: u64,
    pub(crate) address: Address,
    pub(crate) local_address: Address,
    connected_at: u64,
    pub(crate) labels: Mutex<Labels>,
    pub(crate) database: AtomicUsize,
    pub(crate) resp3: AtomicBool,
    pub(crate) states: States,
    /// The channels and patterns that it listens to. Held while it enters or leaves one.
    pub(crate) subscriptions: Mutex<Subscriptions>,
    /// Number of keys it watches.
    pub(crate) watched: AtomicUsize,
    /// Number of requests in its transaction; -1 before its first.
    pub(crate) queued: AtomicI64,
    /// Bytes that these take.
    pub(crate) queued_bytes: AtomicUsize,
    /// The number of the client that gets its messages of changed keys; 0 is itself.
    pub(crate) redirect: AtomicU64,
    pub(crate) last_active: AtomicU64,
    pub(crate) commands: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    pub(crate) buffered_input: AtomicUsize,
    pub(crate) buffered_output: AtomicUsize,
    /// The length of the large value that it is being sent, which others may be sent as well.
    pub(crate) shared_output: AtomicUsize,
    /// The identity of that value.
    pub(crate) shared_value: AtomicUsize,
    /// Time since which its output has been over the soft limit, in Unix milliseconds; 0 if it is not.
    pub(crate) over_soft_since: AtomicU64,
    /// The last command's place in the command registry.
    pub(crate) last_command: AtomicUsize,
    pub(crate) socket: Arc<Socket>,
}

/// Something that is true of a connection or not.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct State(u32);

impl State {
    /// The client listens for messages.
    pub(crate) const SUBSCRIBED: State = State(1 << 0);
    /// Its requests are queued until EXEC.
    pub(crate) const IN_TRANSACTION: State = State(1 << 1);
    /// Its requests wait for the end of a pause.
    pub(crate) const POSTPONED: State = State(1 << 2);
    /// The client is notified of changed keys.
    pub(crate) const TRACKING: State = State(1 << 3);
    /// The connection that was to get its messages has gone.
    pub(crate) const BROKEN_REDIRECT: State = State(1 << 4);
    /// The client is notified by prefixes of keys, not by the keys that it has read.
    pub(crate) const BROADCASTING: State = State(1 << 5);
    /// A key that it watches has changed: its transaction must not run.
    pub(crate) const DIRTY: State = State(1 << 6);
    pub(crate) const NO_EVICT: State = State(1 << 7);
    /// Reading or overwriting a key does not count as a use of it.
    pub(crate) const NO_TOUCH: State = State(1 << 8);
    /// Reads are tracked only after CLIENT CACHING YES.
    pub(crate) const OPT_IN: State = State(1 << 9);
    /// Reads are tracked unless after CLIENT CACHING NO.
    pub(crate) const OPT_OUT: State = State(1 << 10);
    /// CLIENT CACHING was said of the next request.
    pub(crate) const CACHING: State = State(1 << 11);
    /// The client is not notified of its own changes.
    pub(crate) const NO_LOOP: State = State(1 << 12);
    /// The client says that it can follow a redirection to another server.
    pub(crate) const CAN_REDIRECT: State = State(1 << 13);
    /// The client is shown every command that runs.
    pub(crate) const MONITOR: State = State(1 << 14);
    /// The client waits for a list.
    pub(crate) const BLOCKED: State = State(1 << 15);
    /// It is no client, but the server that this one follows.
    pub(crate) const PRIMARY: State = State(1 << 16);

    /// The states that CLIENT TRACKING ON sets again.
    pub(crate) const TRACKING_MODES: State = State::BROKEN_REDIRECT
        .and(State::BROADCASTING)
        .and(State::OPT_IN)
        .and(State::OPT_OUT)
        .and(State::NO_LOOP);

    /// The letters of the field `flags` in CLIENT LIST, in Valkey's order.
    #[rustfmt::skip]
    const LETTERS: &[(State, char)] = &[
        (State::MONITOR, 'O'), (State::PRIMARY, 'M'), (State::SUBSCRIBED, 'P'), (State::IN_TRANSACTION, 'x'), (State::POSTPONED, 'b'), (State::BLOCKED, 'b'), (State::TRACKING, 't'),
        (State::BROKEN_REDIRECT, 'R'), (State::BROADCASTING, 'B'), (State::DIRTY, 'd'), (State::NO_EVICT, 'e'),
        (State::NO_TOUCH, 'T'),
    ];

    pub(crate) const fn and(self, other: State) -> State {
        State(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: State) -> bool {
        self.0 & other.0 == other.0
    }
}

/// All that is true of a connection.
#[derive(Default)]
pub(crate) struct States(AtomicU32);

impl States {
    pub(crate) fn has(&self, state: State) -> bool {
        State(self.0.load(Ordering::Relaxed)).has(state)
    }

    pub(crate) fn set(&self, state: State) {
        self.0.fetch_or(state.0, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self, state: State) {
        self.0.fetch_and(!state.0, Ordering::Relaxed);
    }

    /// Sets or clears a state; says what it was.
    pub(crate) fn replace(&self, state: State, on: bool) -> bool {
        let before = match on {
            true => self.0.fetch_or(state.0, Ordering::Relaxed),
            false => self.0.fetch_and(!state.0, Ordering::Relaxed),
        };
        State(before).has(state)
    }

    pub(crate) fn switch(&self, state: State, on: bool) {
        if on { self.set(state) } else { self.clear(state) }
    }

    /// The letters of what is true; `N` for nothing.
    pub(crate) fn letters(&self) -> String {
        let letters: String =
            State::LETTERS.iter().filter(|(state, _)| self.has(*state)).map(|(_, letter)| letter).collect();
        if letters.is_empty() { "N".to_owned() } else { letters }
    }
}

/// The client's own description.
#[derive(Default)]
pub(crate) struct Labels {
    pub(crate) name: Vec<u8>,
    pub(crate) lib_name: Vec<u8>,
    pub(crate) lib_ver: Vec<u8>,
    /// Name of the user that it has logged in as.
    pub(crate) user: Vec<u8>,
}

impl ClientInfo {
    /// Sends the client a message that answers none of its requests, from any thread. A client that does not take its
    /// messages is disconnected.
    pub(crate) fn tell(&self, message: &[u8]) {
        if self.socket.outbox.push(message).is_err() {
            warn!(client = self.id, address = %self.address, "closed a connection that does not take its messages");
            self.socket.kill();
        }
    }

    /// Sends the client a message, unless `most` bytes of output wait for it already: then it gets no more messages, and is
    /// to be disconnected.
    ///
    /// # Errors
    /// [`Full`], once.
    pub(crate) fn tell_within(&self, message: &[u8], most: usize) -> Result<(), Full> {
        let most = most.saturating_sub(self.buffered_output.load(Ordering::Relaxed));
        self.socket.outbox.push_within(message, most)
    }

    pub(crate) fn protocol(&self) -> Protocol {
        if self.resp3.load(Ordering::Relaxed) { Protocol::Resp3 } else { Protocol::Resp2 }
    }

    pub(crate) fn database(&self) -> usize {
        self.database.load(Ordering::Relaxed)
    }

    /// The client that gets its messages of changed keys: a client's number, 0 for itself, -1 if it does not track any.
    pub(crate) fn redirect(&self) -> i64 {
        if self.states.has(State::TRACKING) { self.redirect.load(Ordering::Relaxed) as i64 } else { -1 }
    }

    /// The letters of what the client can do.
    pub(crate) fn capabilities(&self) -> &'static str {
        if self.states.has(State::CAN_REDIRECT) { "r" } else { "" }
    }

    /// Bytes that it holds: what it has sent, and what is to be sent to it and to nobody else.
    pub(crate) fn held(&self) -> usize {
        let requests =
            self.buffered_input.load(Ordering::Relaxed) + self.queued_bytes.load(Ordering::Relaxed);
        requests + self.waiting_output() + self.subscriptions.lock().memory()
    }

    /// Bytes that it holds, and of a large value that others may be sent as well.
    pub(crate) fn held_and_shared(&self) -> usize {
        self.held() + self.shared_output.load(Ordering::Relaxed)
    }

    /// The identity and the length of the large value that it is being sent.
    pub(crate) fn shared(&self) -> Option<(usize, usize)> {
        let len = self.shared_output.load(Ordering::Relaxed);
        (len > 0).then(|| (self.shared_value.load(Ordering::Relaxed), len))
    }

    /// Bytes that are to be sent to it.
    pub(crate) fn output(&self) -> usize {
        self.waiting_output() + self.shared_output.load(Ordering::Relaxed)
    }

    /// Bytes that wait to be sent, but for values that others may be sent as well.
    pub(crate) fn waiting_output(&self) -> usize {
        self.buffered_output.load(Ordering::Relaxed) + self.socket.outbox.len()
    }

    pub(crate) fn age_seconds(&self, now: u64) -> u64 {
        now.saturating_sub(self.connected_at) / 1000
    }

    pub(crate) fn idle_seconds(&self, now: u64) -> u64 {
        now.saturating_sub(self.last_active.load(Ordering::Relaxed)) / 1000
    }

    /// The line of CLIENT LIST and CLIENT INFO, without a line end.
    pub(crate) fn describe(&self, last_command: &str, now: u64) -> Vec<u8> {
        let labels = self.labels.lock();
        let mut head = String::new();
        // Writing to a String cannot fail.
        let _ = write!(head, "id={} addr={} laddr={} fd=-1 name=", self.id, self.address, self.local_address);
        let mut tail = String::new();
        let queued_bytes = self.queued_bytes.load(Ordering::Relaxed);
        let output = self.output();
        let listens_to = |kind| self.subscriptions.lock().of(kind).len();
        let _ = write!(
            tail,
            " age={} idle={} flags={} capa={} db={} sub={} psub={} ssub={} multi={} watch={} qbuf={} qbuf-free=0 argv-mem=0 \
             multi-mem={queued_bytes} rbs=0 rbp=0 obl={} oll=0 omem={} tot-mem={} events=r cmd={} user={} redir={} resp={} lib-name=",
            self.age_seconds(now),
            self.idle_seconds(now),
            self.states.letters(),
            self.capabilities(),
            self.database(),
            listens_to(Kind::Channel),
            listens_to(Kind::Pattern),
            listens_to(Kind::ShardChannel),
            self.queued.load(Ordering::Relaxed),
            if self.states.has(State::DIRTY) { 0 } else { self.watched.load(Ordering::Relaxed) },
            self.buffered_input.load(Ordering::Relaxed),
            self.buffered_output.load(Ordering::Relaxed),
            output,
            self.buffered_input.load(Ordering::Relaxed) + output + queued_bytes,
            last_command,
            String::from_utf8_lossy(&labels.user),
            self.redirect(),
            if self.protocol() == Protocol::Resp3 { 3 } else { 2 },
        );
        let counters = format!(
            " tot-net-in={} tot-net-out={} tot-cmds={}",
            self.bytes_in.get(),
            self.bytes_out.get(),
            self.commands.get()
        );
        [
            head.as_bytes(),
            &labels.name,
            tail.as_bytes(),
            &labels.lib_name,
            b" lib-ver=",
            &labels.lib_ver,
            counters.as_bytes(),
        ]
        .concat()
    }
}

/// All connections, by their numbers.
#[derive(Default)]
pub(crate) struct Clients {
    connected: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    last_id: AtomicU64,
}

impl Clients {
    /// Enters a new connection.
    pub(crate) fn enter(&self, socket: Arc<Socket>) -> Arc<ClientInfo> {
        let now = system_time();
        let info = Arc::new(ClientInfo {
            id: self.last_id.fetch_add(1, Ordering::Relaxed) + 1,
            address: socket.address().clone(),
            local_address: socket.local_address().clone(),
            connected_at: now,
            labels: Mutex::new(Labels { user: b"default".to_vec(), ..Labels::default() }),
            database: AtomicUsize::new(0),
            resp3: AtomicBool::new(false),
            states: States::default(),
            subscriptions: Mutex::default(),
            watched: AtomicUsize::new(0),
            queued: AtomicI64::new(-1),
            queued_bytes: AtomicUsize::new(0),
            redirect: AtomicU64::new(0),
            last_active: AtomicU64::new(now),
            commands: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            buffered_input: AtomicUsize::new(0),
            buffered_output: AtomicUsize::new(0),
            shared_output: AtomicUsize::new(0),
            shared_value: AtomicUsize::new(0),
            over_soft_since: AtomicU64::new(0),
            last_command: AtomicUsize::new(usize::MAX),
            socket,
        });
        self.connected.lock().insert(info.id, info.clone());
        info
    }

    /// Ends a connection, which is not among the others from now on.
    pub(crate) fn kill(&self, client: &ClientInfo) {
        self.leave(client.id);
        client.socket.kill();
    }

    pub(crate) fn leave(&self, id: u64) {
        self.connected.lock().remove(&id);
    }

    pub(crate) fn len(&self) -> usize {
        self.connected.lock().len()
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.connected.lock().get(&id).cloned()
    }

    /// Number of connections this is true of.
    pub(crate) fn count(&self, state: State) -> usize {
        self.connected.lock().values().filter(|client| client.states.has(state)).count()
    }

    /// Memory that all connections hold.
    pub(crate) fn held(&self) -> usize {
        self.list().iter().map(|client| client.held()).sum()
    }

    /// All connections, oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<ClientInfo>> {
        self.connected.lock().values().cloned().collect()
    }
}
