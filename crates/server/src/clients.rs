//! Who is connected: what CLIENT LIST shows and CLIENT KILL ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use snugly_protocol::resp::Protocol;
use snugly_store::system_time;
use socket2::SockRef;
use tokio::net::TcpStream;
use tracing::warn;

use crate::outbox::Outbox;

/// One connection, as the others may see it.
pub(crate) struct ClientInfo {
    pub(crate) id: u64,
    pub(crate) address: SocketAddr,
    pub(crate) local_address: SocketAddr,
    connected_at: u64,
    pub(crate) labels: Mutex<Labels>,
    pub(crate) database: AtomicUsize,
    pub(crate) resp3: AtomicBool,
    pub(crate) no_evict: AtomicBool,
    pub(crate) no_touch: AtomicBool,
    pub(crate) last_active: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) buffered_input: AtomicUsize,
    pub(crate) buffered_output: AtomicUsize,
    /// The last command's place in the command registry.
    pub(crate) last_command: AtomicUsize,
    pub(crate) outbox: Outbox,
    stream: Arc<TcpStream>,
}

/// What a client says of itself.
#[derive(Default)]
pub(crate) struct Labels {
    pub(crate) name: Vec<u8>,
    pub(crate) library: Vec<u8>,
    pub(crate) library_version: Vec<u8>,
}

impl ClientInfo {
    /// Ends the connection: its thread sees the end of the input, and sends nothing more.
    pub(crate) fn kill(&self) {
        self.shut_down(Shutdown::Both);
    }

    /// Sends the client a message that answers none of its requests, from any thread. A client that does not take its
    /// messages is disconnected.
    pub(crate) fn tell(&self, message: &[u8]) {
        if self.outbox.push(message).is_err() {
            warn!(client = self.id, address = %self.address, "closed a connection that does not take its messages");
            self.kill();
        }
    }

    /// Ends the connection once the requests that have arrived are answered.
    pub(crate) fn stop_reading(&self) {
        self.shut_down(Shutdown::Read);
    }

    fn shut_down(&self, how: Shutdown) {
        // An error means that it has ended already.
        let _ = SockRef::from(&*self.stream).shutdown(how);
    }

    pub(crate) fn protocol(&self) -> Protocol {
        if self.resp3.load(Ordering::Relaxed) { Protocol::Resp3 } else { Protocol::Resp2 }
    }

    pub(crate) fn age_seconds(&self, now: u64) -> u64 {
        now.saturating_sub(self.connected_at) / 1000
    }

    pub(crate) fn idle_seconds(&self, now: u64) -> u64 {
        now.saturating_sub(self.last_active.load(Ordering::Relaxed)) / 1000
    }

    pub(crate) fn flags(&self) -> String {
        let mut flags = String::new();
        for (set, letter) in [(&self.no_evict, 'e'), (&self.no_touch, 'T')] {
            if set.load(Ordering::Relaxed) {
                flags.push(letter);
            }
        }
        if flags.is_empty() { "N".to_owned() } else { flags }
    }

    /// The line of CLIENT LIST and CLIENT INFO, without a line end.
    pub(crate) fn describe(&self, last_command: &str, now: u64) -> Vec<u8> {
        let labels = self.labels.lock();
        let mut head = String::new();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Writing to a String cannot fail.
        let _ = write!(head, "id={} addr={} laddr={} fd=-1 name=", self.id, self.address, self.local_address);
        let mut tail = String::new();
        let output = self.buffered_output.load(Ordering::Relaxed) + self.outbox.len();
        let _ = write!(
            tail,
            " age={} idle={} flags={} capa= db={} sub=0 psub=0 ssub=0 multi=-1 watch=0 qbuf={} qbuf-free=0 argv-mem=0 \
             multi-mem=0 rbs=0 rbp=0 obl={} oll=0 omem={} tot-mem={} events=r cmd={} user=default redir=-1 resp={} lib-name=",
            self.age_seconds(now),
            self.idle_seconds(now),
            self.flags(),
            self.database.load(Ordering::Relaxed),
            self.buffered_input.load(Ordering::Relaxed),
            self.buffered_output.load(Ordering::Relaxed),
            output,
            self.buffered_input.load(Ordering::Relaxed) + output,
            last_command,
            if self.protocol() == Protocol::Resp3 { 3 } else { 2 },
        );
        let counters = format!(
            " tot-net-in={} tot-net-out={} tot-cmds={}",
            load(&self.bytes_in),
            load(&self.bytes_out),
            load(&self.commands)
        );
        [
            head.as_bytes(),
            &labels.name,
            tail.as_bytes(),
            &labels.library,
            b" lib-ver=",
            &labels.library_version,
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
    pub(crate) fn enter(
        &self,
        stream: Arc<TcpStream>,
        address: SocketAddr,
        local_address: SocketAddr,
    ) -> Arc<ClientInfo> {
        let now = system_time();
        let info = Arc::new(ClientInfo {
            id: self.last_id.fetch_add(1, Ordering::Relaxed) + 1,
            address,
            local_address,
            connected_at: now,
            labels: Mutex::default(),
            database: AtomicUsize::new(0),
            resp3: AtomicBool::new(false),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            last_active: AtomicU64::new(now),
            commands: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            buffered_input: AtomicUsize::new(0),
            buffered_output: AtomicUsize::new(0),
            last_command: AtomicUsize::new(usize::MAX),
            outbox: Outbox::default(),
            stream,
        });
        self.connected.lock().insert(info.id, info.clone());
        info
    }

    pub(crate) fn leave(&self, id: u64) {
        self.connected.lock().remove(&id);
    }

    pub(crate) fn len(&self) -> usize {
        self.connected.lock().len()
    }

    /// All connections, oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<ClientInfo>> {
        self.connected.lock().values().cloned().collect()
    }
}
