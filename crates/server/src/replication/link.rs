//! One link to a primary, from its beginning to its end: connect, agree, take all keys if it must be, then follow.
//!
//! It knows the order of these, and where the stream goes on after it. Another attempt is for its caller.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use snugly_protocol::escape::escape;
use snugly_protocol::resp::encode_command;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tracing::info;

use super::handshake::{Had, Handshake, Next, Refusal, Wishes};
use super::incoming::{Extent, Incoming};
use super::snapshot;
use super::wire::{LOOK_EVERY, Wire};
use crate::commands::Fault;
use crate::counters::WorkerStats;
use crate::dialects::{PrimaryStream, Ran, Settled};
use crate::listeners::Protocol;
use crate::rdb::KeepError;
use crate::replica::{Followed, Stage};
use crate::state::Server;

/// Time that is waited at once for the end of a pause, or for the disk.
const STALLED: Duration = Duration::from_millis(100);
/// Bytes of a transfer's keep-alive, which a primary takes for an empty request.
const SIGN_OF_LIFE: &[u8] = b"\n";

/// Reason why a link has ended, or was not made.
#[derive(Debug, Error)]
pub(super) enum LinkError {
    #[error("the connection has ended: {}", told(.0))]
    Connection(#[from] io::Error),
    #[error("the primary is not to be followed yet: {0}")]
    Later(String),
    #[error("the primary is not followed: {0}")]
    Refused(String),
    #[error("the keys of the primary are not loaded: {0}")]
    Keys(#[source] KeepError),
    #[error("{0}")]
    Unsupported(String),
    /// A request that failed here.
    #[error("{0}")]
    Failed(String),
    #[error("the stream of the primary is broken: {0}")]
    Broken(String),
    #[error("another server is to be followed, or none")]
    Superseded,
}

/// The error of a connection in words that are the same however the primary has closed it.
fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
            "the primary has closed it".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The place in a stream where another link may go on.
#[derive(Clone, Debug)]
pub(super) struct Position {
    had: Had,
    database: usize,
}

impl Position {
    /// Number of bytes of the stream whose requests have run.
    pub(super) fn offset(&self) -> u64 {
        self.had.offset
    }
}

/// What a link is made of.
pub(super) struct Link<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) runtime: &'a Runtime,
    pub(super) stats: &'a Arc<WorkerStats>,
    pub(super) followed: &'a Followed,
    /// Number of changes of what is followed.
    pub(super) version: u64,
}

impl Link<'_> {
    /// Follows the primary as long as that goes well. `position` is where it goes on, if there is such a place.
    pub(super) fn follow(&self, position: &mut Option<Position>) -> LinkError {
        match self.try_follow(position) {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    fn try_follow(&self, position: &mut Option<Position>) -> Result<std::convert::Infallible, LinkError> {
        snapshot::settle(self.server);
        self.enter(Stage::Connecting);
        let wire = Wire::connect(self.server, self.runtime, self.followed, self.version)?;
        let socket = wire.socket();
        self.enter(Stage::Handshake);
        let mut incoming = Incoming::new(wire);
        match self.agree(&mut incoming, position.as_ref().map(|position| position.had.clone()))? {
            Next::Full(had) => {
                *position = None;
                self.load(&mut incoming)?;
                info!(primary = %self.followed.primary, offset = had.offset, "the keys of the primary are there: following its changes");
                *position = Some(Position { had, database: 0 });
            }
            Next::Resumed(stream) => {
                let Some(position) = position.as_mut() else {
                    return Err(LinkError::Broken("it goes on from nowhere".to_owned()));
                };
                if let Some(stream) = stream {
                    position.had.stream = stream;
                }
                self.server.replica().resumed_links.fetch_add(1, Ordering::Relaxed);
                info!(primary = %self.followed.primary, offset = position.had.offset, "the link to the primary is there again: nothing was missed");
            }
            Next::Send(_) | Next::Listen => {
                return Err(LinkError::Broken("the handshake has no end".to_owned()));
            }
        }
        let Some(place) = position else { return Err(LinkError::Superseded) };
        let settled = Settled { offset: place.had.offset, database: place.database };
        let stream = PrimaryStream::new(self.server, self.stats, socket, self.version, settled);
        let ended = self.run(incoming, stream, place);
        position.take_if(|place| place.had.stream.is_empty());
        ended
    }

    fn enter(&self, stage: Stage) {
        self.server.replica().enter(self.version, stage);
    }

    /// Says what is to be said before keys or the stream come.
    fn agree(&self, incoming: &mut Incoming<Wire<'_>>, had: Option<Had>) -> Result<Next, LinkError> {
        let listeners = self.server.listeners().iter();
        let port = listeners
            .filter(|listener| listener.protocol == Protocol::Resp)
            .find_map(|listener| listener.port());
        let wishes = Wishes { login: self.followed.login.clone(), port: port.unwrap_or(0), had };
        let (mut handshake, first) = Handshake::new(wishes);
        incoming.source.send(&first)?;
        loop {
            let line = incoming.line()?;
            match handshake.reply(&line) {
                Ok(Next::Send(request)) => incoming.source.send(&request)?,
                Ok(Next::Listen) => {}
                Ok(next) => return Ok(next),
                Err(Refusal::Later(reason)) => return Err(LinkError::Later(reason)),
                Err(Refusal::Refused(reason)) => return Err(LinkError::Refused(reason)),
            }
        }
    }

    /// Takes all keys of the primary.
    fn load(&self, incoming: &mut Incoming<Wire<'_>>) -> Result<(), LinkError> {
        self.enter(Stage::Loading);
        let extent = loop {
            let line = incoming.line()?;
            if let Some(extent) = Extent::parse(&line) {
                break extent;
            }
            if !line.is_empty() {
                return Err(LinkError::Broken(format!(
                    "in the place of its keys it sends {}",
                    escape(&line)
                )));
            }
        };
        incoming.source.keep_alive(Some(SIGN_OF_LIFE));
        let loaded = snapshot::load(self.server, self.followed, self.version, incoming, extent);
        incoming.source.keep_alive(None);
        loaded.map_err(|error| match error {
            KeepError::Unsupported { .. } => LinkError::Unsupported(error.to_string()),
            error => LinkError::Keys(error),
        })
    }

    /// Runs the stream behind the place, which goes along.
    fn run(
        &self,
        mut incoming: Incoming<Wire<'_>>,
        mut stream: PrimaryStream,
        place: &mut Position,
    ) -> Result<std::convert::Infallible, LinkError> {
        let replica = self.server.replica();
        replica.set_stream(&place.had.stream);
        replica.set_offset(place.had.offset);
        self.enter(Stage::Up);
        self.tell_offset(&mut incoming, place)?;
        let mut told_at = Instant::now();
        loop {
            let (taken, ran) = stream.run(incoming.waiting());
            incoming.take(taken);
            Settled { offset: place.had.offset, database: place.database } = stream.settled();
            replica.set_offset(place.had.offset);
            if replica.take_question() || told_at.elapsed() >= LOOK_EVERY {
                told_at = Instant::now();
                stream.rest();
                self.tell_offset(&mut incoming, place)?;
            }
            match ran {
                Ran::All => {
                    let most = LOOK_EVERY.saturating_sub(told_at.elapsed());
                    let read = |wire: &mut Wire<'_>, buffer: &mut [u8]| wire.read_within(buffer, most);
                    let received = incoming.more_by(stream.wanted(), read)?;
                    stream.received(received, incoming.waiting().len());
                }
                Ran::Behind => {
                    self.runtime.block_on(async {
                        timeout(STALLED, self.server.store().ready_to_write()).await.ok()
                    });
                }
                Ran::Paused => {
                    self.runtime
                        .block_on(async { timeout(STALLED, self.server.pause().changed()).await.ok() });
                }
                Ran::Superseded => return Err(LinkError::Superseded),
                Ran::Failed(Fault { reason, is_unsupported, is_torn }) => {
                    if is_torn {
                        place.had.stream.clear();
                    }
                    return Err(match is_unsupported {
                        true => LinkError::Unsupported(reason),
                        false => LinkError::Failed(reason),
                    });
                }
                Ran::Malformed(reason) => {
                    place.had.stream.clear();
                    return Err(LinkError::Broken(reason));
                }
            }
        }
    }

    /// Tells the primary how far its stream has run here.
    fn tell_offset(&self, incoming: &mut Incoming<Wire<'_>>, place: &Position) -> Result<(), LinkError> {
        let mut request = Vec::new();
        encode_command(&["REPLCONF", "ACK", &place.had.offset.to_string()], &mut request);
        Ok(incoming.source.send(&request)?)
    }
}
