//! RESP, the protocol of Redis and Valkey: requests that arrive together are run together, and their replies are sent
//! together.
//!
//! - `pipeline`: the requests of one read
//! - `later`: what has to be waited for before replies are sent, or more requests run
//!
//! It knows requests and the command table. Sockets and buffers are for `snugly_net`, commands for `commands`.

mod later;
mod pipeline;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use snugly_net::{Connection, Next, Service, Socket, Step};
use snugly_protocol::resp::RequestParser;
use snugly_store::{Session, system_time};
use tracing::error;

use crate::clients::ClientInfo;
use crate::commands::{self, Client, Context, REGISTRY};
use crate::counters::{WorkerStats, count};
use crate::key_watch;
use crate::replies::Replies;
use crate::state::Server;
use later::{Later, Unsent};
use pipeline::{Pipeline, Progress, Stop};

/// State that the connections of one thread share.
pub(crate) struct Resp {
    server: Arc<Server>,
    session: Session,
    pipeline: Pipeline,
    replies: Replies,
    stats: Arc<WorkerStats>,
    /// Number of MEMORY PURGEs that the thread has followed.
    purges: u64,
}

/// One connection.
pub(crate) struct RespClient {
    server: Arc<Server>,
    client: Client,
    /// The request that has arrived in part.
    parser: RequestParser,
    /// Whether the keys of the next requests were just fetched from disk.
    fetched: bool,
}

impl Resp {
    /// The reply to a connection from elsewhere in protected mode.
    pub(crate) const DENIED: &[u8] = b"-DENIED Running in protected mode because protected mode is enabled and no password \
is set. In this mode connections are only accepted from the loopback interface. If you want to connect from external \
computers, you may adopt one of the following solutions: 1) Set a password with --password, or with 'CONFIG SET \
requirepass' from the loopback interface. 2) Disable protected mode with --protected-mode no, or with 'CONFIG SET \
protected-mode no' from the loopback interface; however MAKE SURE the server is not publicly accessible from internet \
if you do so.\r\n";

    /// The reply to a connection for which there is no place.
    pub(crate) const TOO_MANY_CLIENTS: &[u8] = b"-ERR max number of clients reached\r\n";

    /// The service of one more thread of a server.
    pub(crate) fn new(server: Arc<Server>) -> Resp {
        let stats = Arc::new(WorkerStats::new(REGISTRY.rows().iter().map(|row| &row.full_name[..])));
        server.register(stats.clone());
        Resp {
            session: server.store().session(),
            pipeline: Pipeline::default(),
            replies: Replies::default(),
            stats,
            purges: server.purges.load(Ordering::Relaxed),
            server,
        }
    }
}

impl RespClient {
    fn info(&self) -> &Arc<ClientInfo> {
        &self.client.info
    }
}

impl Drop for RespClient {
    /// Leaves whatever knows the client, however the connection has ended.
    fn drop(&mut self) {
        commands::discard_all(&mut self.client, self.server.key_watch());
        self.server.key_watch().untrack(&self.client.info);
        self.server.monitors().leave(&self.client.info);
        self.server.clients().leave(self.client.info.id);
    }
}

impl Service for Resp {
    type Client = RespClient;
    type Later = Later;

    fn open(&mut self, socket: &Arc<Socket>) -> io::Result<RespClient> {
        let configuration = self.server.configuration();
        if configuration.tcp_keepalive > 0 {
            socket.keep_alive(Duration::from_secs(configuration.tcp_keepalive))?;
        }
        let info = self.server.clients().enter(socket.clone());
        let client = Client::new(info, configuration.password.is_empty());
        Ok(RespClient {
            server: self.server.clone(),
            client,
            parser: RequestParser::default(),
            fetched: false,
        })
    }

    fn begin_turn(&mut self, client: &mut RespClient) {
        let now = system_time();
        self.session.set_now(Some(now));
        self.replies.set_limits(self.server.longest_replies(), self.server.most_replies());
        key_watch::act_for(client.info());
        client.info().last_active.store(now, Ordering::Relaxed);
    }

    fn run(&mut self, client: &mut RespClient, input: &[u8]) -> Step<Later> {
        let Resp { server, session, pipeline, replies, stats, .. } = self;
        let RespClient { client, parser, fetched, .. } = client;
        let limits = server.limits(client.authenticated);
        let fetched = std::mem::take(fetched);
        let mut context = Context { session, client, server, replies, stats };
        let Progress { taken, stop } = pipeline.run(parser, input, &limits, fetched, &mut context);
        if replies.is_over() {
            *replies = Replies::default();
            server.end_over_output_limit(&client.info);
            return Step { taken, next: Next::Close };
        }
        server.key_watch().broadcast();
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

    fn finish(connection: &mut Connection<Resp>, later: Later) -> impl Future<Output = io::Result<()>> {
        later.finish(connection)
    }

    fn output(&mut self) -> &mut Vec<u8> {
        self.replies.as_mut_vec()
    }

    fn recover(&mut self, client: &RespClient) {
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

    fn is_closing(client: &RespClient) -> bool {
        client.client.closing
    }

    fn wanted(client: &RespClient) -> usize {
        client.parser.wanted()
    }

    fn idle_timeout(&self) -> Option<Duration> {
        self.server.idle_timeout()
    }

    fn read_ahead(&mut self, client: &RespClient, bytes: usize) -> io::Result<()> {
        if bytes > self.server.limits(client.client.authenticated).max_request {
            self.server.end_over_input_limit(client.info());
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    fn received(&mut self, client: &RespClient, bytes: usize) {
        client.info().bytes_in.add(bytes as u64);
        self.stats.bytes_in.add(bytes as u64);
    }

    fn sent(&mut self, client: &RespClient, bytes: usize) {
        client.info().bytes_out.add(bytes as u64);
        self.stats.bytes_out.add(bytes as u64);
    }

    fn holds_input(client: &RespClient, bytes: usize) {
        client.info().buffered_input.store(bytes, Ordering::Relaxed);
    }

    fn holds_output(client: &RespClient, bytes: usize) {
        client.info().buffered_output.store(bytes, Ordering::Relaxed);
    }
}
