//! Operations: what a request asks of a server, whatever protocol it came in.
//!
//! It knows the meaning of requests as far as protocol.txt defines it, and no bytes of any protocol.
//! Everything borrows from the bytes of the request.

use crate::exptime::Exptime;
use crate::key::Key;
use crate::refusal::Refusal;
use crate::reply::ReplyForm;

/// A request: what is to be done, and how the reply is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What is to be done.
    pub operation: Operation<'a>,
    /// Writes the reply.
    pub form: ReplyForm<'a>,
}

/// What is to be done. Each variant names the methods of [`ReplyForm`] that answer it;
/// [`server_error`](ReplyForm::server_error) and [`unauthenticated`](ReplyForm::unauthenticated) answer any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Gives the value of a key, or what is known about it. A line of several keys (`get a b`) is several of
    /// these, whose forms know which is the last one.
    ///
    /// [`begin_hit`](ReplyForm::begin_hit), the value if it is wanted, [`end_hit`](ReplyForm::end_hit);
    /// or [`miss`](ReplyForm::miss).
    Get(Get<'a>),
    /// Stores a value. [`Outcome`](crate::Outcome): `Stored`, `NotStored`, `Exists`, `NotFound`, `TooLarge`,
    /// `OutOfMemory`.
    ///
    /// With a password in memcached's text protocol, the first of these is the login: whatever the key, the
    /// value is the user's name, a space and the password (protocol.txt, "Authentication").
    /// [`authenticated`](ReplyForm::authenticated) or
    /// [`authentication_failed`](ReplyForm::authentication_failed).
    Store(Store<'a>),
    /// Deletes a key, or marks it as stale. `Deleted`, `NotFound`, `Exists`.
    Delete(Delete<'a>),
    /// Adds to a number that is stored as decimal digits, or subtracts from it.
    /// [`number`](ReplyForm::number); or `NotFound`, `NotNumeric`, `Exists` (memcached looks for them in this
    /// order), `NotStored`, `OutOfMemory`.
    Arithmetic(Arithmetic<'a>),
    /// Sets when a key expires. [`touched`](ReplyForm::touched), or `NotFound`.
    Touch {
        /// The key.
        key: Key<'a>,
        /// When it is to expire.
        exptime: Exptime,
    },
    /// Deletes everything that was stored until now, or until `delay`. [`ok`](ReplyForm::ok).
    FlushAll {
        /// When, if not now: as a time of expiry, so up to 30 days count from now. 0 and what is over are
        /// now.
        delay: Exptime,
    },
    /// Tells about the server. [`stat`](ReplyForm::stat) any number of times, then
    /// [`end_stats`](ReplyForm::end_stats); [`reset`](ReplyForm::reset) for the topic `reset`;
    /// `UnknownTopic`.
    Stats {
        /// What about: empty for the usual, else words such as `settings` or `detail on`.
        topic: &'a [u8],
    },
    /// Tells the server's version. [`version`](ReplyForm::version).
    Version,
    /// Sets how much the server logs. [`ok`](ReplyForm::ok).
    Verbosity {
        /// From 0, little, up.
        level: u32,
    },
    /// Sets the memory for items. [`ok`](ReplyForm::ok).
    CacheMemoryLimit {
        /// Megabytes (1,048,576 bytes).
        megabytes: u32,
    },
    /// Asks only for a reply, which tells that everything before has been answered.
    /// [`no_op`](ReplyForm::no_op).
    NoOp,
    /// Tells what is known about a key, for people. [`debug`](ReplyForm::debug), or
    /// [`miss`](ReplyForm::miss).
    MetaDebug {
        /// The key.
        key: Key<'a>,
    },
    /// Ends the connection, when what was asked before is answered. [`quit`](ReplyForm::quit), then it is
    /// closed.
    Quit,
    /// Tells the ways to authenticate. [`mechanisms`](ReplyForm::mechanisms).
    ListMechanisms,
    /// Authenticates (SASL). [`authenticated`](ReplyForm::authenticated) or
    /// [`authentication_failed`](ReplyForm::authentication_failed).
    Authenticate {
        /// The way, such as `PLAIN`.
        mechanism: &'a [u8],
        /// What it says; for PLAIN an identity that may be empty, the name and the password, with NUL between
        /// them.
        response: &'a [u8],
        /// Whether this continues an authentication that needs more than one step, which PLAIN does not.
        is_step: bool,
    },
    /// Was asked for wrongly, or for too much. [`refused`](ReplyForm::refused).
    Refused(Refused<'a>),
}

impl<'a> Operation<'a> {
    /// Returns the key that it is about, if it is about one.
    pub fn key(&self) -> Option<Key<'a>> {
        match self {
            Operation::Get(get) => Some(get.key),
            Operation::Store(store) => Some(store.key),
            Operation::Delete(delete) => Some(delete.key),
            Operation::Arithmetic(arithmetic) => Some(arithmetic.key),
            Operation::Touch { key, .. } | Operation::MetaDebug { key } => Some(*key),
            _ => None,
        }
    }

    /// Returns whether it is asked for to change something.
    pub fn writes(&self) -> bool {
        match self {
            Operation::Get(get) => get.touch.is_some() || get.vivify.is_some() || get.recache.is_some(),
            Operation::Store(_)
            | Operation::Delete(_)
            | Operation::Arithmetic(_)
            | Operation::Touch { .. }
            | Operation::FlushAll { .. } => true,
            _ => false,
        }
    }
}

/// See [`Operation::Get`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// The key.
    pub key: Key<'a>,
    /// Whether the value itself is wanted, or only what is known about it.
    pub wants_value: bool,
    /// When it is to expire from now on (`gat`, `mg` with T).
    pub touch: Option<Exptime>,
    /// Creates a missing key with an empty value that expires so, and tells this client that it has
    /// [won](crate::Item::is_won) the right to fill it (`mg` with N; if T stands behind N, T's).
    pub vivify: Option<Exptime>,
    /// If less than this is left until the key expires, the first client that asks has won the right to fill
    /// it again (`mg` with R).
    pub recache: Option<Recache>,
    /// The token that a created key gets instead of the server's next one (`mg` with E).
    pub new_cas: Option<u64>,
    /// Whether this counts as a use of the key, for eviction and for what is told of its last use. False with
    /// `mg`'s u.
    pub counts_as_use: bool,
}

/// See [`Get::recache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recache {
    /// Least time left that is enough; with less the item is due.
    pub left: Exptime,
    /// Whether it is what is left after the `touch`, as R stands behind T; else before it.
    pub of_touched: bool,
}

/// What may be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreMode {
    /// Whatever there is.
    #[default]
    Set,
    /// Only if there is no such key, else `NotStored` (in binary, the form writes `Exists` of it).
    Add,
    /// Only if there is such a key, else `NotStored` (in binary, the form writes `NotFound` of it).
    Replace,
    /// Behind the value that there is, whose flags and expiry remain; else `NotStored`.
    Append,
    /// Before the value that there is, whose flags and expiry remain; else `NotStored`.
    Prepend,
}

/// See [`Operation::Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// The key.
    pub key: Key<'a>,
    /// What may be stored.
    pub mode: StoreMode,
    /// The client's own bits.
    pub flags: u32,
    /// When it is to expire.
    pub exptime: Exptime,
    /// The value.
    pub value: &'a [u8],
    /// Stores only if the key has this token, else `Exists`; if there is no key, `NotFound` (for `Append` and
    /// `Prepend` `NotStored`). Means nothing for `Add`.
    pub compare: Option<u64>,
    /// The token that the item gets instead of the server's next one (`ms` with E).
    pub new_cas: Option<u64>,
    /// If the token compared is older (smaller) than the key's, the value is stored and marked as stale (`ms`
    /// with I).
    pub invalidate: bool,
    /// Stores the value, expiring so, if there is none to append or prepend to (`ms` with N).
    pub vivify: Option<Exptime>,
}

impl<'a> Store<'a> {
    /// A store of `mode` that asks for nothing special; its value is to be filled in.
    pub(crate) fn plain(key: Key<'a>, mode: StoreMode) -> Store<'a> {
        Store {
            key,
            mode,
            flags: 0,
            exptime: Exptime::NEVER,
            value: b"",
            compare: None,
            new_cas: None,
            invalidate: false,
            vivify: None,
        }
    }

    /// The key whose value is out of date if this one is not stored.
    pub(crate) fn superseded(&self) -> Option<Key<'a>> {
        (self.mode == StoreMode::Set && self.compare.is_none()).then_some(self.key)
    }
}

impl<'a> Get<'a> {
    /// A get of the value that asks for nothing special.
    #[inline]
    pub(crate) fn plain(key: Key<'a>, touch: Option<Exptime>) -> Get<'a> {
        Get { key, wants_value: true, touch, vivify: None, recache: None, new_cas: None, counts_as_use: true }
    }
}

impl<'a> Delete<'a> {
    /// A delete that asks for nothing special.
    pub(crate) fn plain(key: Key<'a>) -> Delete<'a> {
        Delete { key, compare: None, invalidate: false, exptime: None, new_cas: None, keeps_item: false }
    }
}

/// See [`Operation::Delete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The key.
    pub key: Key<'a>,
    /// Deletes only if the key has this token, else `Exists`.
    pub compare: Option<u64>,
    /// Marks the item as stale and gives it a new token, instead of deleting it; the next client that asks
    /// wins the right to fill it again (`md` with I).
    pub invalidate: bool,
    /// When an item that is not deleted is to expire from now on (`md` with T).
    pub exptime: Option<Exptime>,
    /// The token that an item that is not deleted gets instead of the server's next one (`md` with E).
    pub new_cas: Option<u64>,
    /// Empties the value and sets its flags to 0, instead of deleting the item (`md` with x).
    pub keeps_item: bool,
}

/// Whether to add or to subtract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Adds, and begins at 0 again beyond 64 bits.
    Increment,
    /// Subtracts, and ends at 0.
    Decrement,
}

/// What a missing number is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initial {
    /// The number to store and to answer, without adding anything.
    pub value: u64,
    /// When it expires.
    pub exptime: Exptime,
}

/// See [`Operation::Arithmetic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic<'a> {
    /// The key.
    pub key: Key<'a>,
    /// Whether to add or to subtract.
    pub direction: Direction,
    /// How much.
    pub delta: u64,
    /// What a missing key is created with; without, `NotFound`.
    pub initial: Option<Initial>,
    /// Changes the number only if the key has this token, else `Exists`.
    pub compare: Option<u64>,
    /// When it is to expire from now on (`ma` with T); without, it remains.
    pub exptime: Option<Exptime>,
    /// The token that the item gets instead of the server's next one (`ma` with E).
    pub new_cas: Option<u64>,
}

/// See [`Operation::Refused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<'a> {
    /// What is wrong.
    pub refusal: Refusal,
    /// Whether the connection is to be closed after the reply; the parser finds no more requests.
    pub closes: bool,
    /// The key that a value too large was meant for: it is to be deleted, so that nobody takes the old value
    /// for the new one. Not if the client has yet to authenticate.
    pub superseded: Option<Key<'a>>,
}
