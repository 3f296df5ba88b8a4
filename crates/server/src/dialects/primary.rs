//! The stream of the primary that the server follows: requests as of a client's pipeline, whose replies nobody reads.
//!
//! It knows the state of the stream: the database, the transaction, how far its requests have run. The connection that it
//! comes from is its caller's.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use snugly_net::Socket;
use snugly_protocol::resp::RequestParser;
use snugly_store::{Session, system_time};

use super::Stop;
use super::resp::Pipeline;
use crate::clients::State;
use crate::commands::{self, Client, Context, Fault, Place, PrimaryLink, REGISTRY};
use crate::counters::WorkerStats;
use crate::key_watch;
use crate::replies::Replies;
use crate::state::Server;

/// Reason why no more requests are run yet.
pub(crate) enum Ran {
    /// The rest holds no complete request.
    All,
    /// The disk has to catch up with the changes that wait for it.
    Behind,
    /// A pause has to end.
    Paused,
    /// Another server is followed, or none.
    Superseded,
    /// A request was not taken.
    Failed(Fault),
    /// The bytes are no request, for this reason.
    Malformed(String),
}

/// The stream of one link. A client of this server in the eyes of others, until it is dropped.
pub(crate) struct PrimaryStream {
    server: Arc<Server>,
    session: Session,
    pipeline: Pipeline,
    parser: RequestParser,
    replies: Replies,
    stats: Arc<WorkerStats>,
    client: Client,
    /// Bytes of the stream that were taken.
    taken: u64,
    settled: Settled,
}

/// The place in a stream up to which everything has run and nothing has begun: the next link may go on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Bytes of the stream before it.
    pub(crate) offset: u64,
    /// The database of the next request.
    pub(crate) database: usize,
}

/// Counters for the requests of all links.
pub(crate) fn stats(server: &Server) -> Arc<WorkerStats> {
    let stats = WorkerStats::new(REGISTRY.rows().iter().map(|row| (&row.full_name[..], row.family)));
    let stats = Arc::new(stats);
    server.register(stats.clone());
    stats
}

impl PrimaryStream {
    /// The stream over a socket, for what is followed since so many changes of that. It goes on from this place.
    pub(crate) fn new(
        server: &Arc<Server>,
        stats: &Arc<WorkerStats>,
        socket: Arc<Socket>,
        version: u64,
        settled: Settled,
    ) -> PrimaryStream {
        let info = server.clients().enter(socket);
        info.states.set(State::PRIMARY);
        info.states.set(State::NO_EVICT);
        let mut client = Client::new(info, server.accounts());
        client.primary = Some(PrimaryLink { version, fault: None, place: Place::Between });
        client.authenticated = true;
        client.select(settled.database);
        PrimaryStream {
            server: server.clone(),
            session: server.store().session(),
            pipeline: Pipeline::default(),
            parser: RequestParser::default(),
            replies: Replies::default(),
            stats: stats.clone(),
            client,
            taken: settled.offset,
            settled,
        }
    }

    /// The place from which another link may go on.
    pub(crate) fn settled(&self) -> Settled {
        self.settled
    }

    fn place(&self) -> Place {
        self.client.primary.as_ref().map_or(Place::Between, |link| link.place)
    }

    /// Bytes that the request that has arrived in part is known to need.
    pub(crate) fn wanted(&self) -> usize {
        self.parser.wanted()
    }

    /// Counts bytes that have arrived, and notes how many are held.
    pub(crate) fn received(&self, bytes: usize, held: usize) {
        self.client.info.bytes_in.add(bytes as u64);
        self.stats.bytes_in.add(bytes as u64);
        self.client.info.buffered_input.store(held, Ordering::Relaxed);
    }

    /// Gives back what the stream holds and has no use for at this moment.
    pub(crate) fn rest(&mut self) {
        self.session.follow();
        self.session.rest();
    }

    /// Runs complete requests at the start of `input`, which begins with what was not taken the last time; returns the
    /// number of bytes taken.
    pub(crate) fn run(&mut self, input: &[u8]) -> (usize, Ran) {
        let server = self.server.clone();
        let _applying = server.replica().apply();
        let now = system_time();
        self.session.set_now(Some(now));
        key_watch::act_for(&self.client.info);
        self.client.info.last_active.store(now, Ordering::Relaxed);
        let (mut taken, mut fetched) = (0, false);
        let ran = loop {
            let before = self.place();
            let PrimaryStream { session, pipeline, parser, replies, stats, client, .. } = self;
            let mut context = Context { session, client, server: &server, replies, stats };
            let progress = pipeline.run(parser, &input[taken..], std::mem::take(&mut fetched), &mut context);
            taken += progress.taken;
            self.taken += progress.taken as u64;
            if self.place() != Place::Within {
                self.settled = Settled { offset: self.taken, database: self.client.database };
            }
            if let Some(ended) = self.ended() {
                break ended;
            }
            self.replies.truncate(0);
            match progress.stop {
                Stop::Read => break Ran::All,
                Stop::Send | Stop::Reply(_) => {}
                Stop::Fetch(keys) => {
                    keys.iter().for_each(|key| server.store().fetch(self.client.database, key, now));
                    fetched = true;
                }
                Stop::CatchUp => break Ran::Behind,
                Stop::EndPause if before != self.place() => {}
                Stop::EndPause => break Ran::Paused,
            }
        };
        server.tell_of_changes();
        // Nobody is told of these writes, so nobody waits for the disk.
        self.session.take_ticket();
        (taken, ran)
    }

    /// Returns why no request is run any more, if so.
    fn ended(&mut self) -> Option<Ran> {
        let link = self.client.primary.as_mut()?;
        if let Some(fault) = link.fault.take() {
            return Some(Ran::Failed(fault));
        }
        if link.version != self.server.replica().version() {
            return Some(Ran::Superseded);
        }
        self.client.closing.then(|| {
            let error = String::from_utf8_lossy(self.replies.as_bytes())
                .trim_start_matches('-')
                .trim_end()
                .to_owned();
            Ran::Malformed(error)
        })
    }
}

impl Drop for PrimaryStream {
    fn drop(&mut self) {
        commands::discard_all(&mut self.client, self.server.key_watch());
        self.server.clients().leave(self.client.info.id);
    }
}
