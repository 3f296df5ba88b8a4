//! What a command's function is given: the connection that sent it, the store, the server, and where the reply goes.
//!
//! It knows how values are looked up, changed and answered. It knows no command.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use snugly_protocol::resp::Protocol;
use snugly_store::{Session, StoreError, Value};

use super::transactions::{Transaction, WatchList};
use super::{Failure, Outcome};
use crate::clients::{ClientInfo, State};
use crate::interest::Waiter;
use crate::replies::Replies;
use crate::server::Server;
use crate::worker::WorkerStats;

/// What a command can see and change.
pub(crate) struct Context<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) client: &'a mut Client,
    pub(crate) server: &'a Arc<Server>,
    pub(crate) replies: &'a mut Replies,
    pub(crate) stats: &'a WorkerStats,
}

/// What [`Context::edit`] did to a value, and what it found out.
pub(crate) enum Edit<R> {
    Changed(R),
    Unchanged(R),
}

/// Why an edited value is not written.
enum NotWritten<R> {
    Unchanged(R),
    Failed(StoreError),
}

impl<R> From<StoreError> for NotWritten<R> {
    fn from(error: StoreError) -> NotWritten<R> {
        NotWritten::Failed(error)
    }
}

/// A connection as its own commands see it.
pub(crate) struct Client {
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) database: usize,
    pub(crate) authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    /// What MULTI has begun.
    pub(crate) transaction: Option<Box<Transaction>>,
    pub(crate) watched: WatchList,
    /// Whether the connection ends once what was answered is sent.
    pub(crate) closing: bool,
    /// How long the last reply is held back.
    pub(crate) delay: Option<Delay>,
    /// What its last command waits for.
    pub(crate) wait: Option<Wait>,
}

/// A wait for a list, before the command that asked for it has an answer.
pub(crate) struct Wait {
    pub(crate) waiter: Arc<Waiter>,
    /// How long at most.
    pub(crate) timeout: Duration,
    /// Whether the client does not want the answer.
    pub(crate) silent: bool,
}

/// A wait of one connection, before its last reply is sent.
#[derive(Clone, Copy)]
pub(crate) struct Delay {
    pub(crate) length: Duration,
    /// Whether it counts as time that the command took, rather than waited.
    pub(crate) busy: bool,
}

/// Whether replies are sent (CLIENT REPLY).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    On,
    Off,
    /// Off for the next command, then on.
    SkipNext,
}

impl Client {
    pub(crate) fn new(info: Arc<ClientInfo>, authenticated: bool) -> Client {
        Client {
            info,
            database: 0,
            authenticated,
            reply_mode: ReplyMode::On,
            transaction: None,
            watched: WatchList::default(),
            closing: false,
            delay: None,
            wait: None,
        }
    }

    /// How long the last reply is held back by commands that are busy.
    pub(super) fn busy_time(&self) -> Duration {
        self.delay.filter(|delay| delay.busy).map_or(Duration::ZERO, |delay| delay.length)
    }

    /// Whether the command that runs is part of a transaction, where nothing can be waited for.
    pub(crate) fn denies_blocking(&self) -> bool {
        self.info.states.has(State::IN_TRANSACTION)
    }

    /// Whether the command that ran last is not over.
    pub(crate) fn is_waiting(&self) -> bool {
        self.delay.is_some() || self.wait.is_some()
    }

    pub(crate) fn select(&mut self, database: usize) {
        self.database = database;
        self.info.database.store(database, Ordering::Relaxed);
    }

    pub(crate) fn speak(&mut self, protocol: Protocol) {
        self.info.resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    }
}

impl Context<'_> {
    /// Looks a key up in the client's database, for reading.
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.session.get(self.client.database, key)
    }

    /// Looks a string up in the client's database, which does not count as a use of it.
    pub(crate) fn peek_string(&mut self, key: &[u8]) -> Result<Option<Value>, StoreError> {
        let value = self.session.peek(self.client.database, key)?;
        if value.as_ref().is_some_and(Value::is_list) { Err(StoreError::WrongType) } else { Ok(value) }
    }

    /// A value's bytes: as they are stored if they are stored as they are, else decompressed into `buffer`. Where there is
    /// no value there are no bytes.
    pub(crate) fn bytes<'v>(
        &mut self,
        value: Option<&'v Value>,
        buffer: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], StoreError> {
        buffer.clear();
        let Some(value) = value else { return Ok(buffer) };
        if let Some(bytes) = value.record().as_identity() {
            return Ok(bytes);
        }
        self.session.read(value, buffer)?;
        Ok(buffer)
    }

    /// Changes a value by what it was, unless `edit` says that it stays as it is. `edit` sees the current value, if there
    /// is one, and fills the new one; it runs again if the key changes meanwhile.
    pub(crate) fn edit<R>(
        &mut self,
        key: &[u8],
        mut edit: impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Edit<R>,
    ) -> Result<R, Failure> {
        let result =
            self.session.update(self.client.database, key, |current, edited| match edit(current, edited) {
                Edit::Changed(result) => Ok(result),
                Edit::Unchanged(result) => Err(NotWritten::Unchanged(result)),
            });
        match result {
            Ok(result) | Err(NotWritten::Unchanged(result)) => Ok(result),
            Err(NotWritten::Failed(error)) => Err(error.into()),
        }
    }

    /// Runs several steps on these keys as one, see [`Session::exclusively`].
    pub(crate) fn exclusively<'k, R>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        steps: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        let Context { session, client, server, replies, stats } = self;
        session.exclusively(keys, |session| steps(&mut Context { session, client, server, replies, stats }))
    }

    /// Answers a value.
    pub(crate) fn reply_value(&mut self, value: &Value) -> Outcome {
        Ok(self.replies.value(self.session, value)?)
    }

    /// Answers a value, or null if there is none.
    pub(crate) fn reply_optional(&mut self, value: Option<&Value>) -> Outcome {
        match value {
            Some(value) => self.reply_value(value),
            None => {
                self.replies.null();
                Ok(())
            }
        }
    }

    pub(crate) fn ok(&mut self) -> Outcome {
        self.replies.simple("OK");
        Ok(())
    }

    pub(crate) fn integer(&mut self, value: i64) -> Outcome {
        self.replies.integer(value);
        Ok(())
    }
}
