//! Writing values, and changing them by what they were. What a value is compressed with, and whether, is for the store.

use snugly_memcached::{
    Arithmetic, Delete, Direction, Exptime, Item, KeyBuffer, Outcome, ReplyForm, Store, StoreMode,
};
use snugly_store::{Condition, DeleteOutcome, Expiry, Kept, Metadata, StoreError, Value};

use super::expiry::{end_of, expiry, seconds_left};
use super::get::item;
use super::{DATABASE, fail};
use crate::commands::Context;
use crate::counters::MemcachedEvent;

/// Longest number that is added to, in bytes: as many digits as 64 bits have.
const LONGEST_NUMBER: usize = 20;

/// Reason why a change is not made.
enum Unchanged {
    Outcome(Outcome),
    Failed(StoreError),
}

impl From<StoreError> for Unchanged {
    fn from(error: StoreError) -> Unchanged {
        match error {
            // These protocols know no other kinds, and do not see them.
            StoreError::WrongType => Unchanged::Outcome(Outcome::NotFound),
            error => Unchanged::Failed(error),
        }
    }
}

impl From<Outcome> for Unchanged {
    fn from(outcome: Outcome) -> Unchanged {
        Unchanged::Outcome(outcome)
    }
}

/// Writes the outcome of a change.
fn answer(context: &mut Context<'_>, outcome: Result<Outcome, Unchanged>, form: &ReplyForm<'_>) {
    match outcome {
        Ok(outcome) | Err(Unchanged::Outcome(outcome)) => form.outcome(outcome, context.replies.as_mut_vec()),
        Err(Unchanged::Failed(error)) => fail(context, &error, form),
    }
}

/// Returns the version that a written value gets: that of the client, or a new one if the reply tells it.
fn version(context: &Context<'_>, given: Option<u64>, form: &ReplyForm<'_>) -> u64 {
    given.unwrap_or_else(|| if form.tells_cas() { context.session.new_version() } else { 0 })
}

pub(super) fn store(context: &mut Context<'_>, store: &Store<'_>, form: &ReplyForm<'_>, key: &mut KeyBuffer) {
    let key = store.key.bytes(key);
    context.stats.memcached.count(MemcachedEvent::Set);
    let outcome = match store.mode {
        StoreMode::Set | StoreMode::Add | StoreMode::Replace => put(context, store, form, key),
        StoreMode::Append | StoreMode::Prepend => extend(context, store, form, key),
    };
    if store.compare.is_some() {
        count_comparison(context, &outcome);
    }
    if let (StoreMode::Set, Err(Unchanged::Failed(_))) = (store.mode, &outcome) {
        supersede(context, key);
    }
    answer(context, outcome, form);
}

fn count_comparison(context: &Context<'_>, outcome: &Result<Outcome, Unchanged>) {
    let event = match outcome {
        Ok(Outcome::Stored { .. }) => MemcachedEvent::CasHit,
        Ok(Outcome::Exists) | Err(Unchanged::Outcome(Outcome::Exists)) => MemcachedEvent::CasBadValue,
        Ok(_) | Err(Unchanged::Outcome(_)) => MemcachedEvent::CasMiss,
        Err(Unchanged::Failed(_)) => return,
    };
    context.stats.memcached.count(event);
}

/// Removes a value that a newer one was to replace which could not be stored, so that nobody takes the old one for it.
pub(super) fn supersede(context: &mut Context<'_>, key: &[u8]) {
    // The client hears of the failure itself; a value that cannot be removed either is told of when it is read.
    let _ = context.session.take(DATABASE, key);
}

/// Writes a whole value.
fn put(
    context: &mut Context<'_>,
    store: &Store<'_>,
    form: &ReplyForm<'_>,
    key: &[u8],
) -> Result<Outcome, Unchanged> {
    let version = version(context, store.new_cas, form);
    let metadata = Metadata { version, client_flags: store.flags, ..Metadata::default() };
    let mut kept = Kept { expiry: expiry(store.exptime, context.session.now()), metadata };
    let mut compared = store.compare;
    loop {
        let condition = match (store.mode, compared) {
            (StoreMode::Add, _) => Condition::IfAbsent,
            (_, Some(version)) => Condition::IfVersion(version),
            (StoreMode::Replace, None) => Condition::IfPresent,
            _ => Condition::Always,
        };
        let outcome = match context.session.set_with(DATABASE, key, store.value, kept, condition) {
            Err(StoreError::WrongType) if compared.is_none() => return Err(Outcome::NotStored.into()),
            outcome => outcome?,
        };
        return Ok(match (outcome.written, compared) {
            (true, _) => Outcome::Stored { cas: version, len: store.value.len() },
            (false, None) => Outcome::NotStored,
            (false, Some(_)) if outcome.previous.is_none() => Outcome::NotFound,
            (false, Some(given)) => match newer(context, store, key, given)? {
                // Unless it is changed again, it is replaced by what is stale from the start, and lives as long.
                Some(newer) => {
                    compared = Some(newer.version);
                    kept.expiry = Expiry::Keep;
                    kept.metadata.is_stale = true;
                    kept.metadata.is_claimed = newer.is_claimed;
                    continue;
                }
                None => Outcome::Exists,
            },
        });
    }
}

/// Returns what is kept beside the key's value if that one is newer, and the value to be stored as stale instead.
fn newer(
    context: &mut Context<'_>,
    store: &Store<'_>,
    key: &[u8],
    given: u64,
) -> Result<Option<Metadata>, StoreError> {
    if !store.invalidate {
        return Ok(None);
    }
    context.session.set_touches(false);
    let fresh = context.session.new_version();
    let current = context.session.alter(DATABASE, key, |_, kept| {
        if kept.metadata.version == 0 {
            kept.metadata.version = fresh;
        }
        kept.metadata
    })?;
    context.session.set_touches(true);
    Ok(current.map(|(_, metadata)| metadata).filter(|metadata| metadata.version > given))
}

/// Appends or prepends to a value.
fn extend(
    context: &mut Context<'_>,
    store: &Store<'_>,
    form: &ReplyForm<'_>,
    key: &[u8],
) -> Result<Outcome, Unchanged> {
    let version = version(context, store.new_cas, form);
    loop {
        let extended = match (store.mode, store.compare, version) {
            (StoreMode::Append, None, 0) => append(context, store, key),
            _ => extend_versioned(context, store, key, version),
        };
        let missing = match extended {
            Ok(len) => return Ok(Outcome::Stored { cas: version, len }),
            Err(Unchanged::Outcome(Outcome::NotFound)) => store.vivify,
            Err(Unchanged::Failed(StoreError::ValueTooLong { .. })) => None,
            Err(unchanged) => return Err(unchanged),
        };
        let Some(vivify) = missing else { return Err(Outcome::NotStored.into()) };
        let metadata = Metadata { version, client_flags: store.flags, ..Metadata::default() };
        let kept = Kept { expiry: expiry(vivify, context.session.now()), metadata };
        if context.session.set_with(DATABASE, key, store.value, kept, Condition::IfAbsent)?.written {
            return Ok(Outcome::Stored { cas: version, len: store.value.len() });
        }
        if context
            .session
            .peek(DATABASE, key)?
            .is_some_and(|value| value.expect_kind(snugly_store::Kind::String).is_err())
        {
            return Err(Outcome::NotStored.into());
        }
    }
}

/// Appends to a value in place, where that can be done; returns its new length.
fn append(context: &mut Context<'_>, store: &Store<'_>, key: &[u8]) -> Result<usize, Unchanged> {
    context.session.update_part(DATABASE, key, |current, part| {
        let len = current.ok_or(Outcome::NotFound)?.len();
        part.extend_from_slice(store.value);
        Ok::<_, Unchanged>((len, len + store.value.len()))
    })
}

fn extend_versioned(
    context: &mut Context<'_>,
    store: &Store<'_>,
    key: &[u8],
    version: u64,
) -> Result<usize, Unchanged> {
    context.session.update_with(DATABASE, key, |current, edited| {
        let (value, bytes) = current.ok_or(Outcome::NotFound)?;
        compare(value, store.compare)?;
        let [first, second] = match store.mode {
            StoreMode::Prepend => [store.value, bytes],
            _ => [bytes, store.value],
        };
        edited.extend_from_slice(first);
        edited.extend_from_slice(second);
        Ok((changed(value, version, None), edited.len()))
    })
}

/// Refuses a change of a value that has another version than was compared.
fn compare(value: &Value, compared: Option<u64>) -> Result<(), Unchanged> {
    let version = value.metadata().version;
    match compared {
        Some(compared) if compared != version || version == 0 => Err(Outcome::Exists.into()),
        _ => Ok(()),
    }
}

/// What is kept beside a value of which a part is changed.
fn changed(value: &Value, version: u64, at: Option<Expiry>) -> Kept {
    let metadata = Metadata { version, client_flags: value.metadata().client_flags, ..Metadata::default() };
    Kept { expiry: at.unwrap_or(Expiry::Keep), metadata }
}

pub(super) fn delete(
    context: &mut Context<'_>,
    delete: &Delete<'_>,
    form: &ReplyForm<'_>,
    key: &mut KeyBuffer,
) {
    let key = delete.key.bytes(key);
    let outcome = match (delete.keeps_item, delete.invalidate, delete.compare) {
        (true, ..) => empty(context, delete, key),
        (false, true, _) => mark_stale(context, delete, key),
        (false, false, Some(version)) => remove_version(context, key, version),
        (false, false, None) => remove(context, key),
    };
    let is_hit = matches!(outcome, Ok(Outcome::Deleted));
    context.stats.memcached.count(if is_hit {
        MemcachedEvent::DeleteHit
    } else {
        MemcachedEvent::DeleteMiss
    });
    answer(context, outcome, form);
}

fn remove(context: &mut Context<'_>, key: &[u8]) -> Result<Outcome, Unchanged> {
    match context.session.take(DATABASE, key) {
        Ok(Some(_)) | Err(StoreError::Damaged { .. }) => Ok(Outcome::Deleted),
        Ok(None) => Ok(Outcome::NotFound),
        Err(error) => Err(error.into()),
    }
}

fn remove_version(context: &mut Context<'_>, key: &[u8], version: u64) -> Result<Outcome, Unchanged> {
    Ok(match context.session.delete_version(DATABASE, key, version)? {
        DeleteOutcome::Missing => Outcome::NotFound,
        DeleteOutcome::Refused => Outcome::Exists,
        DeleteOutcome::Removed => Outcome::Deleted,
    })
}

/// Marks an item as stale, which changes its version; nothing is decoded.
fn mark_stale(context: &mut Context<'_>, delete: &Delete<'_>, key: &[u8]) -> Result<Outcome, Unchanged> {
    let now = context.session.now();
    let version = delete.new_cas.unwrap_or_else(|| context.session.new_version());
    let marked = context.session.alter(DATABASE, key, |value, kept| {
        compare(value, delete.compare)?;
        kept.metadata = Metadata { version, is_stale: true, is_claimed: false, ..kept.metadata };
        if let Some(exptime) = delete.exptime {
            kept.expiry = expiry(exptime, now);
        }
        Ok(Outcome::Deleted)
    })?;
    marked.map_or(Ok(Outcome::NotFound), |(_, outcome)| outcome)
}

/// Empties an item, and takes its flags away.
fn empty(context: &mut Context<'_>, delete: &Delete<'_>, key: &[u8]) -> Result<Outcome, Unchanged> {
    let at = delete.exptime.map_or(Expiry::Keep, |exptime| expiry(exptime, context.session.now()));
    let version = delete.new_cas.unwrap_or_else(|| context.session.new_version());
    let metadata = Metadata { version, is_stale: delete.invalidate, ..Metadata::default() };
    context.session.update_with(DATABASE, key, |current, _| {
        let (value, _) = current.ok_or(Outcome::NotFound)?;
        compare(value, delete.compare)?;
        Ok((Kept { expiry: at, metadata }, Outcome::Deleted))
    })
}

pub(super) fn arithmetic(
    context: &mut Context<'_>,
    arithmetic: &Arithmetic<'_>,
    form: &ReplyForm<'_>,
    key: &mut KeyBuffer,
) {
    let key = arithmetic.key.bytes(key);
    let now = context.session.now();
    let version = version(context, arithmetic.new_cas, form);
    let mut is_hit = false;
    let outcome = context.session.update_with(DATABASE, key, |current, edited| {
        is_hit = current.is_some();
        let (number, kept, at) = match (current, arithmetic.initial) {
            (Some((value, bytes)), _) => {
                if bytes.is_empty() {
                    return Err(Outcome::NotNumeric.into());
                }
                compare(value, arithmetic.compare)?;
                let number = counted(bytes, arithmetic)?;
                let at = arithmetic.exptime.map(|exptime| expiry(exptime, now));
                write_number(number, bytes.len(), edited);
                let ends = at.map_or(value.expiry(), end_of);
                (number, changed(value, version, at), ends)
            }
            (None, Some(initial)) => {
                let at = expiry(arithmetic.exptime.unwrap_or(initial.exptime), now);
                write_number(initial.value, 0, edited);
                let metadata = Metadata { version, ..Metadata::default() };
                (initial.value, Kept { expiry: at, metadata }, end_of(at))
            }
            (None, None) => return Err(Unchanged::Outcome(Outcome::NotFound)),
        };
        let ttl = seconds_left(at, now);
        Ok((kept, (number, Item { cas: version, ttl, ..Item::default() })))
    });
    let counters = &context.stats.memcached;
    counters.count(match (arithmetic.direction, is_hit) {
        (Direction::Increment, true) => MemcachedEvent::IncrHit,
        (Direction::Increment, false) => MemcachedEvent::IncrMiss,
        (Direction::Decrement, true) => MemcachedEvent::DecrHit,
        (Direction::Decrement, false) => MemcachedEvent::DecrMiss,
    });
    match outcome {
        Ok((number, item)) => form.number(number, &item, context.replies.as_mut_vec()),
        Err(unchanged) => answer(context, Err(unchanged), form),
    }
}

/// The number that a value becomes. As in memcached a plus may stand before the digits, and spaces around them, behind
/// which nothing counts.
fn counted(bytes: &[u8], arithmetic: &Arithmetic<'_>) -> Result<u64, Unchanged> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let text = &bytes[bytes.iter().take_while(|byte| is_space(byte)).count()..];
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let digits = text.split(is_space).next().unwrap_or_default();
    let is_number = digits.len() <= LONGEST_NUMBER && digits.iter().all(u8::is_ascii_digit);
    let number =
        std::str::from_utf8(digits).ok().filter(|_| is_number).and_then(|digits| digits.parse().ok());
    let number: u64 = number.ok_or(Outcome::NotNumeric)?;
    Ok(match arithmetic.direction {
        Direction::Increment => number.wrapping_add(arithmetic.delta),
        Direction::Decrement => number.saturating_sub(arithmetic.delta),
    })
}

/// Writes a number, in at least as many bytes as it had, which are filled with spaces.
fn write_number(number: u64, len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(number.to_string().as_bytes());
    out.resize(out.len().max(len), b' ');
}

pub(super) fn touch(context: &mut Context<'_>, key: &[u8], exptime: Exptime, form: &ReplyForm<'_>) {
    let now = context.session.now();
    let at = expiry(exptime, now);
    let version = context.session.new_version();
    let touched = context.session.alter(DATABASE, key, |value, kept| {
        kept.expiry = at;
        if form.tells_cas() && kept.metadata.version == 0 {
            kept.metadata.version = version;
        }
        item(value, &kept.metadata, now)
    });
    let counters = &context.stats.memcached;
    counters.count(MemcachedEvent::Touch);
    counters.count(match touched {
        Ok(Some(_)) => MemcachedEvent::TouchHit,
        _ => MemcachedEvent::TouchMiss,
    });
    match touched {
        Ok(Some((_, item))) => form.touched(&item, context.replies.as_mut_vec()),
        Ok(None) => form.outcome(Outcome::NotFound, context.replies.as_mut_vec()),
        Err(error) => answer(context, Err(error.into()), form),
    }
}
