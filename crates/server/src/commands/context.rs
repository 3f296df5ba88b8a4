//! The context of a command's function: the connection that sent it, the store, the server, and the reply's
//! destination.
//!
//! It knows how values are looked up, changed and answered. It knows no command.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use snugly_acl::User;
use snugly_protocol::resp::Protocol;
use snugly_store::{Kind, Session, StoreError, Value};

use super::transactions::{Transaction, WatchList};
use super::{Failure, Outcome, Reply};
use crate::accounts::Accounts;
use crate::clients::{ClientInfo, State};
use crate::counters::WorkerStats;
use crate::replies::Replies;
use crate::state::Server;

/// State that a command can see and change.
pub(crate) struct Context<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) client: &'a mut Client,
    pub(crate) server: &'a Arc<Server>,
    pub(crate) replies: &'a mut Replies,
    pub(crate) stats: &'a WorkerStats,
}

/// The effect of [`Context::edit`] on a value, and its result.
pub(crate) enum Edit<R> {
    /// The part begins at this offset.
    Changed {
        offset: usize,
        result: R,
    },
    Unchanged(R),
}

/// Reserves room for `len` more bytes.
///
/// # Errors
/// [`StoreError::NoMemory`] if the system has none for them.
pub(crate) fn reserve<T>(vector: &mut Vec<T>, len: usize) -> Result<(), StoreError> {
    vector
        .try_reserve_exact(len)
        .map_err(|_| StoreError::NoMemory { len: len.saturating_mul(size_of::<T>()) })
}

/// Reason why an edited value is not written.
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
    /// Whether it may run commands, as its user.
    pub(crate) authenticated: bool,
    pub(crate) user: Arc<User>,
    /// Whether there is something that its user may not do.
    pub(crate) is_limited: bool,
    /// Version of the users that `user` is one of.
    pub(crate) users_version: u64,
    pub(crate) reply_mode: ReplyMode,
    /// The transaction that MULTI has begun.
    pub(crate) transaction: Option<Box<Transaction>>,
    pub(crate) watched: WatchList,
    /// Whether the connection ends once what was answered is sent.
    pub(crate) closing: bool,
    /// The link to the primary, if this is no client but that.
    pub(crate) primary: Option<PrimaryLink>,
    /// Beginning of the script whose command runs, if there is one: the time that its commands are told.
    pub(crate) script_began: Option<SystemTime>,
}

/// The link to the primary, whose requests run whatever clients may.
pub(crate) struct PrimaryLink {
    /// Number of changes of what is followed when it was made; after another one its requests run no more.
    pub(crate) version: u64,
    /// Reason why a request was not taken, and none behind it is.
    pub(crate) fault: Option<Fault>,
    pub(crate) place: Place,
}

/// The place of the next request in the stream of a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In front of a request that stands for itself.
    Between,
    /// In front of a MULTI, where another link may go on.
    AtTransaction,
    /// Behind a MULTI, whose EXEC has not run.
    Within,
}

/// Reason why a request of the primary was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) reason: String,
    /// Whether it is of a kind that this server does not have, which is not to be passed over; otherwise it may be tried
    /// again.
    pub(crate) is_unsupported: bool,
    /// Whether a part of its transaction has run.
    pub(crate) is_torn: bool,
}

/// Whether replies are sent (CLIENT REPLY).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    On,
    Off,
    /// Off for the next command, then on.
    SkipNext,
    /// Off for the command that runs, then on.
    Skip,
}

impl Client {
    /// A client that is the user `default` of these, if that needs no password.
    pub(crate) fn new(info: Arc<ClientInfo>, accounts: &Accounts) -> Client {
        // In this order, so that a change in between is followed.
        let users_version = accounts.version();
        let user = accounts.users().default_user().clone();
        Client {
            info,
            database: 0,
            authenticated: user.is_on && user.needs_no_password,
            is_limited: !user.can_everything(),
            user,
            users_version,
            reply_mode: ReplyMode::On,
            transaction: None,
            watched: WatchList::default(),
            closing: false,
            primary: None,
            script_began: None,
        }
    }

    /// Returns whether the command that runs is part of a transaction, a script or the primary's stream, where nothing can
    /// be waited for.
    pub(crate) fn denies_blocking(&self) -> bool {
        self.is_in_script() || self.info.states.has(State::IN_TRANSACTION) || self.primary.is_some()
    }

    /// Returns whether the command that runs is one of a script.
    pub(crate) fn is_in_script(&self) -> bool {
        self.script_began.is_some()
    }

    /// Gives it the permissions of a user.
    pub(crate) fn become_user(&mut self, user: Arc<User>) {
        self.is_limited = !user.can_everything();
        self.info.labels.lock().user.clone_from(&user.name);
        self.user = user;
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
        value.as_ref().map_or(Ok(()), |value| value.expect_kind(Kind::String))?;
        Ok(value)
    }

    /// A value's bytes: the stored ones if it is not compressed, else decompressed into `buffer`. Empty if there is no
    /// value.
    pub(crate) fn bytes<'v>(
        &mut self,
        value: Option<&'v Value>,
        buffer: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], StoreError> {
        buffer.clear();
        let Some(value) = value else { return Ok(buffer) };
        if let Some(bytes) = value.plain() {
            return Ok(bytes);
        }
        self.session.read(value, buffer)?;
        Ok(buffer)
    }

    /// Changes a part of a value by what the value was, unless `edit` says that it stays as it is, or fails. `edit` sees the
    /// current value, which is empty if there is none, and fills the part; it runs again if the key changes meanwhile.
    pub(crate) fn edit<R>(
        &mut self,
        key: &[u8],
        mut edit: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Edit<R>, StoreError>,
    ) -> Result<R, Failure> {
        let result = self.session.update_part(self.client.database, key, |current, part| {
            match edit(current.unwrap_or_default(), part)? {
                Edit::Changed { offset, result } => Ok((offset, result)),
                Edit::Unchanged(result) => Err(NotWritten::Unchanged(result)),
            }
        });
        match result {
            Ok(result) | Err(NotWritten::Unchanged(result)) => Ok(result),
            Err(NotWritten::Failed(error)) => Err(error.into()),
        }
    }

    /// Like [`Context::bytes`], for callers that need a part of them, and probably another one soon.
    pub(crate) fn bytes_in_parts<'v>(
        &mut self,
        value: &'v mut Option<Value>,
        buffer: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], StoreError> {
        *value = match value.take() {
            Some(value) => Some(self.session.as_draft(self.client.database, value)?),
            None => None,
        };
        self.bytes(value.as_ref(), buffer)
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
        self.replies.value(self.session, value)?;
        Ok(Reply::Now)
    }

    /// Answers a value, or null if there is none.
    pub(crate) fn reply_optional(&mut self, value: Option<&Value>) -> Outcome {
        match value {
            Some(value) => self.reply_value(value),
            None => {
                self.replies.null();
                Ok(Reply::Now)
            }
        }
    }

    pub(crate) fn ok(&mut self) -> Outcome {
        self.replies.simple("OK");
        Ok(Reply::Now)
    }

    pub(crate) fn integer(&mut self, value: i64) -> Outcome {
        self.replies.integer(value);
        Ok(Reply::Now)
    }
}
