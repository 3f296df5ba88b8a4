//! What is read in the format of RDB, from wherever it comes, to keys of a store.
//!
//! It knows the format's events and the store. Who may see the keys meanwhile, and what becomes of them if it fails, is for
//! its callers.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use snugly_protocol::escape::escape;
use snugly_protocol::rdb::{Content, Entry, Event, FileError, Node, Reader, Value};
use snugly_store::{Condition, Expiry, Session, Store, StoreError};
use thiserror::Error;
use tracing::{info, warn};

/// Reason why keys were not kept, or not all of them.
#[derive(Debug, Error)]
pub enum KeepError {
    /// What is read is not in the format, or is damaged.
    #[error(transparent)]
    File(#[from] FileError),
    /// A key cannot be kept.
    #[error("the key {key:?} cannot be kept: {reason}", key = escape(key))]
    Store {
        /// The key.
        key: Vec<u8>,
        /// Error of the store.
        reason: StoreError,
    },
    /// A key is of a type that there is not, which is not to be left out.
    #[error("the key {key:?} is a {kind}, and snugly keeps strings and lists", key = escape(key))]
    Unsupported {
        /// The key.
        key: Vec<u8>,
        /// The type.
        kind: &'static str,
    },
    /// There are more databases than the store has.
    #[error("there are keys in database {database}, and there are {databases} databases: start with --databases {wanted}", wanted = database.saturating_add(1))]
    Database {
        /// The number of the database.
        database: u64,
        /// Number of databases of the store.
        databases: usize,
    },
    /// What is behind the keys does not arrive.
    #[error("it broke off behind the keys: {0}")]
    BrokenOff(io::Error),
    /// It was not to go on.
    #[error("it was ended before all keys were there")]
    Stopped,
}

/// Reason why there cannot be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// It is of another type.
    Type,
    /// It is longer than may be, or its value is.
    TooLong,
}

/// Decisions of whoever wants keys to be kept.
pub(crate) trait Rules {
    /// Returns whether to go on, after so many bytes.
    fn goes_on(&mut self, read: u64) -> bool;

    /// Bytes in all, if that is known.
    fn total(&self) -> Option<u64>;

    /// Notes a key that there cannot be; returns whether to go on without it.
    fn leave_out(&mut self, why: LeftOut) -> bool;
}

/// Interval of reports on progress.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// What was read so far.
#[derive(Default)]
struct Found {
    strings: u64,
    lists: u64,
    expired: u64,
    too_long: u64,
    /// Keys of other types.
    skipped: BTreeMap<&'static str, u64>,
}

/// Keeps all that is read; says how far it is, and in the end what was kept and what was left out.
///
/// # Errors
/// [`KeepError`]; what was read before it is kept.
pub(crate) fn keep_all<R: Read>(
    store: &Arc<Store>,
    reader: &mut Reader<R>,
    rules: &mut impl Rules,
) -> Result<(), KeepError> {
    let (started, mut told) = (Instant::now(), Instant::now());
    let (mut session, mut found, mut database) = (store.session(), Found::default(), 0);
    session.answer_nobody();
    if reader.is_newer() {
        warn!(
            version = reader.version(),
            "the file is of a newer version than is known here: it is loaded if nothing in it is unknown"
        );
    }
    while let Some(event) = reader.next() {
        if !rules.goes_on(reader.offset()) {
            return Err(KeepError::Stopped);
        }
        match event? {
            Event::Database(number) => {
                let databases = store.databases();
                let known = usize::try_from(number).ok().filter(|number| *number < databases);
                database = known.ok_or(KeepError::Database { database: number, databases })?;
            }
            Event::Entry(entry) => found.keep(&mut session, database, entry, rules)?,
            Event::Ignored(what) => warn!(what, "there is no place for this here: it is left out"),
            Event::Aux { .. } | Event::Sizes { .. } => {}
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let percent = rules.total().map(|total| reader.offset() * 100 / total.max(1));
            info!(percent, bytes = reader.offset(), keys = found.strings + found.lists, "loading keys");
        }
    }
    let Found { strings, lists, expired, too_long, skipped } = found;
    let seconds = started.elapsed().as_secs_f64();
    info!(strings, lists, expired, seconds, "keys are loaded");
    for (kind, keys) in skipped {
        warn!(kind, keys, "snugly keeps strings and lists: keys of this type are left out");
    }
    if too_long > 0 {
        warn!(
            keys = too_long,
            "keys that are longer than max-key-bytes, or whose values are longer than max-value-bytes, are left out"
        );
    }
    Ok(())
}

impl Found {
    fn keep(
        &mut self,
        session: &mut Session,
        database: usize,
        entry: Entry,
        rules: &mut impl Rules,
    ) -> Result<(), KeepError> {
        let value = match &entry.content {
            Content::Value(value) => value,
            Content::Skipped(kind) => {
                *self.skipped.entry(kind).or_default() += 1;
                return match rules.leave_out(LeftOut::Type) {
                    true => Ok(()),
                    false => Err(KeepError::Unsupported { key: entry.key, kind }),
                };
            }
        };
        if entry.expiry.is_some_and(|at| at <= session.now()) {
            self.expired += 1;
            return Ok(());
        }
        let expiry = entry.expiry.map_or(Expiry::Never, Expiry::At);
        let (kept, count) = match value {
            Value::String(bytes) => {
                let kept = session.set(database, &entry.key, bytes, expiry, Condition::Always).map(drop);
                (kept, &mut self.strings)
            }
            Value::List(nodes) => {
                let elements = nodes.iter().flat_map(Node::elements);
                (session.list_write(database, &entry.key, elements, expiry), &mut self.lists)
            }
        };
        match kept {
            Ok(()) => *count += 1,
            Err(StoreError::KeyTooLong { .. } | StoreError::ValueTooLong { .. })
                if rules.leave_out(LeftOut::TooLong) =>
            {
                self.too_long += 1;
            }
            Err(reason) => return Err(KeepError::Store { key: entry.key, reason }),
        }
        Ok(())
    }
}
