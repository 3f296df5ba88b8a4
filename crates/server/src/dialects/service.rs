//! The connections of one thread. Each speaks one protocol; they share the thread's session, its replies and its counters.
//!
//! It knows which protocol a connection speaks, and what happens between two stretches of input. Requests are for the
//! protocols.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use snugly_net::{Connection, Next, Service, Socket, Step};
use snugly_protocol::resp::RequestParser;
use snugly_store::{Session, StoreError, system_time};
use tracing::{error, warn};

use super::memcached::Conversation;
use super::resp::Pipeline;
use super::{Later, Progress, Stop, Unsent, memcached, resp};
use crate::clients::{ClientInfo, State};
use crate::commands::{self, Client, Context, REGISTRY};
use crate::counters::{WorkerStats, count};
use crate::key_watch;
use crate::listeners::Protocol;
use crate::replies::{Outgoing, Replies};
use crate::state::Server;
use crate::turns::Turn;

/// State that the connections of one thread share.
pub(crate) struct Dialects {
    server: Arc<Server>,
    pub(super) session: Session,
    pipeline: Pipeline,
    replies: Replies,
    pub(super) stats: Arc<WorkerStats>,
    turn: Turn,
    /// Number of MEMORY PURGEs that the thread has followed.
    purges: u64,
}

/// One connection.
pub(crate) struct Served {
    pub(super) server: Arc<Server>,
    pub(super) client: Client,
    pub(super) dialect: Dialect,
    /// Whether the keys of the next requests were just fetched from disk.
    pub(super) fetched: bool,
}

/// The protocol that a connection speaks, and the request that has arrived in part.
pub(super) enum Dialect {
    Resp(RequestParser),
    Memcached(Conversation),
}

/// The reply to a connection from elsewhere in protected mode.
pub(crate) fn denied(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Resp => resp::DENIED,
        Protocol::Memcached => memcached::DENIED,
    }
}

/// The reply to a connection for which there is no place.
pub(crate) fn too_many_clients(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Resp => resp::TOO_MANY_CLIENTS,
        Protocol::Memcached => memcached::TOO_MANY_CLIENTS,
    }
}

impl Dialect {
    /// The reply in the place of others that tell of a write that could not be kept.
    pub(super) fn not_kept(&self, error: &StoreError) -> Vec<u8> {
        match self {
            Dialect::Resp(_) => resp::not_kept(error),
            Dialect::Memcached(conversation) => conversation.not_kept(error),
        }
    }
}

impl Dialects {
    /// The service of one more thread of a server.
    pub(crate) fn new(server: Arc<Server>) -> Dialects {
        let stats =
            Arc::new(WorkerStats::new(REGISTRY.rows().iter().map(|row| (&row.full_name[..], row.family))));
        server.register(stats.clone());
        Dialects {
            session: server.store().session(),
            pipeline: Pipeline::default(),
            replies: Replies::default(),
            stats,
            turn: server.turns().enter(),
            purges: server.purges.load(Ordering::Relaxed),
            server,
        }
    }
}

impl Dialects {
    /// Uses the memory of replies that were sent for the next ones.
    pub(super) fn reuse(&mut self, sent: Outgoing) {
        self.replies.reuse(sent);
    }
}

impl Served {
    pub(super) fn info(&self) -> &Arc<ClientInfo> {
        &self.client.info
    }

    /// Decides by the first byte of a connection, which no request of RESP begins with, whether it is memcached's binary
    /// protocol, where that is to be served.
    fn recognise(&mut self, input: &[u8]) {
        if let Dialect::Resp(_) = self.dialect
            && input.first().is_some_and(|&first| {
                snugly_memcached::Protocol::of(first) == snugly_memcached::Protocol::Binary
            })
            && self.info().bytes_in.get() == input.len() as u64
            && self.server.configuration().protocols.binary
        {
            self.dialect = Dialect::Memcached(Conversation::default());
        }
    }
}

impl Drop for Served {
    /// Leaves whatever knows the client, however the connection has ended.
    fn drop(&mut self) {
        commands::discard_all(&mut self.client, self.server.key_watch());
        self.server.key_watch().untrack(&self.client.info);
        self.server.monitors().leave(&self.client.info);
        self.server.channels().leave_all(&self.client.info);
        self.server.clients().leave(self.client.info.id);
    }
}

impl Service for Dialects {
    type Client = Served;
    type Later = Later;

    fn open(&mut self, socket: &Arc<Socket>) -> io::Result<Served> {
        let configuration = self.server.configuration();
        if configuration.tcp_keepalive > 0 {
            socket.keep_alive(Duration::from_secs(configuration.tcp_keepalive))?;
        }
        let dialect = match self.server.listeners()[socket.listener()].protocol {
            Protocol::Resp => Dialect::Resp(RequestParser::default()),
            Protocol::Memcached => Dialect::Memcached(Conversation::default()),
        };
        let info = self.server.clients().enter(socket.clone());
        let client = Client::new(info, self.server.accounts());
        Ok(Served { server: self.server.clone(), client, dialect, fetched: false })
    }

    fn refused_handshake(&mut self, socket: &Socket, error: &io::Error) {
        count(&self.server.connections.refused_handshakes);
        if let Some(count) = self.server.refused_handshakes_log.note(system_time()) {
            warn!(address = %socket.address(), %error, count, "clients did not agree with the server on TLS");
        }
    }

    fn last_replies_within(&self) -> Duration {
        Duration::from_secs(self.server.configuration().shutdown_timeout)
    }

    fn begin_turn(&mut self, client: &mut Served) {
        let now = system_time();
        self.session.set_now(Some(now));
        self.replies.set_limits(self.server.longest_replies(), self.server.most_replies());
        key_watch::act_for(client.info());
        client.info().last_active.store(now, Ordering::Relaxed);
    }

    fn run(&mut self, client: &mut Served, input: &[u8]) -> Step<Later> {
        client.recognise(input);
        let Dialects { server, session, pipeline, replies, stats, turn, .. } = self;
        let _turn = turn.begin();
        let Served { client, dialect, fetched, .. } = client;
        let fetched = std::mem::take(fetched);
        let mut context = Context { session, client, server, replies, stats };
        let Progress { taken, stop } = match dialect {
            Dialect::Resp(parser) => pipeline.run(parser, input, fetched, &mut context),
            Dialect::Memcached(conversation) => {
                commands::named_as_of_memcached(server, || conversation.run(input, fetched, &mut context))
            }
        };
        if replies.is_over() {
            *replies = Replies::default();
            server.end_over_output_limit(&client.info);
            return Step { taken, next: Next::Close };
        }
        server.tell_of_changes();
        client.info.socket.outbox.drain_into(replies.as_mut_vec());
        let ticket = session.take_ticket().filter(|_| server.answers_durably());
        let next = match stop {
            Stop::Reply(wait) => {
                Next::Later(Later::Send(Unsent { replies: replies.take(), ticket, wait: Some(wait) }))
            }
            // The wait of the next request is found again when these are sent.
            _ if ticket.is_some() || replies.has_late() => {
                Next::Later(Later::Send(Unsent { replies: replies.take(), ticket, wait: None }))
            }
            Stop::Read => Next::Read,
            Stop::Send => Next::Run,
            Stop::Fetch(keys) => Next::Later(Later::Fetch(keys)),
            Stop::CatchUp => Next::Later(Later::CatchUp),
            Stop::EndPause => Next::Later(Later::EndPause),
        };
        Step { taken, next }
    }

    fn finish(connection: &mut Connection<Dialects>, later: Later) -> impl Future<Output = io::Result<()>> {
        later.finish(connection)
    }

    fn output(&mut self) -> &mut Vec<u8> {
        self.replies.as_mut_vec()
    }

    fn recover(&mut self, client: &Served) {
        self.session = self.server.store().session();
        self.pipeline = Pipeline::default();
        self.replies = Replies::default();
        count(&self.server.connections.broken);
        error!(client = client.info().id, "a command panicked: its connection is closed");
    }

    fn housekeeping(&mut self) {
        // Even if nobody asks for anything: the session holds what other threads may have no use for any more.
        self.session.follow();
        let purges = self.server.purges.load(Ordering::Relaxed);
        let is_purge = std::mem::replace(&mut self.purges, purges) != purges;
        if is_purge {
            self.session.give_back();
        }
        if self.session.rest() || is_purge {
            self.replies.as_mut_vec().shrink_to_fit();
        }
    }

    fn is_closing(client: &Served) -> bool {
        client.client.closing
    }

    fn wanted(client: &Served) -> usize {
        match &client.dialect {
            Dialect::Resp(parser) => parser.wanted(),
            Dialect::Memcached(conversation) => conversation.wanted(),
        }
    }

    fn idle_timeout(&self, client: &Served) -> Option<Duration> {
        // Clients that listen have no reason to ask for anything.
        if client.info().states.has(State::SUBSCRIBED) { None } else { self.server.idle_timeout() }
    }

    fn read_ahead(&mut self, client: &Served, bytes: usize) -> io::Result<()> {
        if bytes > self.server.limits(client.client.authenticated).max_request {
            self.server.end_over_input_limit(client.info());
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    fn received(&mut self, client: &Served, bytes: usize) {
        client.info().bytes_in.add(bytes as u64);
        self.stats.bytes_in.add(bytes as u64);
    }

    fn sent(&mut self, client: &Served, bytes: usize) {
        client.info().bytes_out.add(bytes as u64);
        self.stats.bytes_out.add(bytes as u64);
    }

    fn holds_input(client: &Served, bytes: usize) {
        client.info().buffered_input.store(bytes, Ordering::Relaxed);
    }

    fn holds_output(client: &Served, bytes: usize) {
        client.info().buffered_output.store(bytes, Ordering::Relaxed);
    }
}
