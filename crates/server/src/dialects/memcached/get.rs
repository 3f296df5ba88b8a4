//! Reading values, and what meta's get changes meanwhile: the expiry, the right to fill a stale item, a version that is
//! asked for. A plain get changes nothing, and takes the path of RESP's GET.

use snugly_memcached::{Get, Item, KeyBuffer, ReplyForm};
use snugly_store::{Condition, Expiry, Kept, Metadata, StoreError, Value};
use tracing::error;

use super::expiry::{end_of, expiry, seconds_left};
use super::{DATABASE, fail};
use crate::commands::Context;
use crate::counters::MemcachedEvent;

pub(super) fn execute(context: &mut Context<'_>, get: &Get<'_>, form: &ReplyForm<'_>, key: &mut KeyBuffer) {
    let key = get.key.bytes(key);
    context.session.set_touches(get.counts_as_use);
    let found = match find(context, get, form, key) {
        Err(StoreError::WrongType) => {
            context.stats.memcached.count(MemcachedEvent::GetList);
            Ok(None)
        }
        found => found,
    };
    count(context, get, found.as_ref().is_ok_and(Option::is_some));
    let before = context.replies.as_bytes().len();
    let answered = found.and_then(|found| match found {
        Some((value, item)) => {
            form.begin_hit(&item, context.replies.as_mut_vec());
            if let Some(value) = value.filter(|_| get.wants_value) {
                context.replies.raw_value(context.session, &value)?;
            }
            form.end_hit(context.replies.as_mut_vec());
            Ok(())
        }
        None => {
            form.miss(context.replies.as_mut_vec());
            Ok(())
        }
    });
    if let Err(error) = answered {
        context.replies.truncate(before);
        // In a line of keys an error would be taken for the end of the values.
        if form.is_text() {
            error!(%error, "a key of memcached's get could not be read, and was answered as missing");
            form.miss(context.replies.as_mut_vec());
        } else {
            fail(context, &error, form);
        }
    }
}

fn count(context: &Context<'_>, get: &Get<'_>, is_hit: bool) {
    let counters = &context.stats.memcached;
    counters.count(MemcachedEvent::Get);
    counters.count(if is_hit { MemcachedEvent::GetHit } else { MemcachedEvent::GetMiss });
    if get.touch.is_some() {
        counters.count(MemcachedEvent::Touch);
        counters.count(if is_hit { MemcachedEvent::TouchHit } else { MemcachedEvent::TouchMiss });
    }
}

/// Finds a value, or creates an empty one where that is asked for, and what there is to tell of it.
fn find(
    context: &mut Context<'_>,
    get: &Get<'_>,
    form: &ReplyForm<'_>,
    key: &[u8],
) -> Result<Option<(Option<Value>, Item)>, StoreError> {
    let now = context.session.now();
    // The look at the value counts as its use, so what was before is looked at first.
    let earlier = if form.tells_use() { context.session.peek(DATABASE, key)? } else { None };
    let earlier = earlier.map(|value| (value.was_read(), value.idle_seconds(now)));
    loop {
        if let Some((value, metadata, claim)) = look(context, get, form, key)? {
            let mut item = item(&value, &metadata, now);
            if let Some(touch) = get.touch {
                item.ttl = seconds_left(end_of(expiry(touch, now)), now);
            }
            item.was_hit = earlier.map(|(was_read, _)| was_read);
            item.idle = earlier.map(|(_, seconds)| seconds.into());
            item.is_won = claim == Claim::Won;
            item.is_taken = claim == Claim::Taken;
            return Ok(Some((Some(value), item)));
        }
        let Some(vivify) = get.vivify else { return Ok(None) };
        if let Some(item) = create(context, get, key, expiry(vivify, now))? {
            return Ok(Some((None, item)));
        }
        // Somebody else was faster.
    }
}

/// Looks a value up, and changes what is kept beside it only where that is needed.
fn look(
    context: &mut Context<'_>,
    get: &Get<'_>,
    form: &ReplyForm<'_>,
    key: &[u8],
) -> Result<Option<(Value, Metadata, Claim)>, StoreError> {
    if get.touch.is_some() || get.recache.is_some() {
        return alter(context, get, form, key);
    }
    let Some(value) = context.session.get(DATABASE, key)? else { return Ok(None) };
    let metadata = value.metadata();
    if !needs_change(&metadata, form) {
        return Ok(Some((value, metadata, Claim::None)));
    }
    match alter(context, get, form, key) {
        // A value can be read where nothing can be kept beside it; its token is good for no write.
        Err(StoreError::OutOfMemory { .. } | StoreError::DiskFull { .. }) => {
            let version = context.session.new_version();
            Ok(Some((value, Metadata { version, ..metadata }, Claim::None)))
        }
        altered => altered,
    }
}

/// The right to fill an item again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Nobody has it.
    None,
    /// This client has it from now on.
    Won,
    /// Another client has it.
    Taken,
}

/// Returns whether a get changes what is kept beside a value.
fn needs_change(metadata: &Metadata, form: &ReplyForm<'_>) -> bool {
    form.tells_cas() && metadata.version == 0 || form.is_meta() && (metadata.is_stale || metadata.is_claimed)
}

/// Gets a value and changes what is kept beside it.
fn alter(
    context: &mut Context<'_>,
    get: &Get<'_>,
    form: &ReplyForm<'_>,
    key: &[u8],
) -> Result<Option<(Value, Metadata, Claim)>, StoreError> {
    let (now, version) = (context.session.now(), context.session.new_version());
    let altered = context.session.alter(DATABASE, key, |value, kept| {
        let metadata = &mut kept.metadata;
        if form.tells_cas() && metadata.version == 0 {
            metadata.version = version;
        }
        let is_due = get.recache.is_some_and(|recache| {
            let touch = get.touch.filter(|_| recache.of_touched);
            let ends = touch.map_or(value.expiry(), |touch| end_of(expiry(touch, now)));
            seconds_left(ends, now).is_some_and(|left| (left as i64) < recache.left.0)
        });
        let claim = match (metadata.is_claimed, metadata.is_stale || is_due) {
            (true, _) => Claim::Taken,
            (false, true) if form.is_meta() => Claim::Won,
            (false, _) => Claim::None,
        };
        metadata.is_claimed |= claim == Claim::Won;
        if let Some(touch) = get.touch {
            kept.expiry = expiry(touch, now);
        }
        (kept.metadata, claim)
    })?;
    Ok(altered.map(|(value, (metadata, claim))| (value, metadata, claim)))
}

/// Creates an empty item that this client is to fill, and has read it; `None` if there is one already.
fn create(
    context: &mut Context<'_>,
    get: &Get<'_>,
    key: &[u8],
    expiry: Expiry,
) -> Result<Option<Item>, StoreError> {
    let version = get.new_cas.unwrap_or_else(|| context.session.new_version());
    let metadata = Metadata { version, is_claimed: true, ..Metadata::default() };
    let kept = Kept { expiry, metadata };
    if !context.session.set_with(DATABASE, key, b"", kept, Condition::IfAbsent)?.written {
        return Ok(None);
    }
    // Marks it as read.
    context.session.get(DATABASE, key)?;
    let ttl = seconds_left(end_of(expiry), context.session.now());
    Ok(Some(Item { cas: version, ttl, is_won: true, ..Item::default() }))
}

/// What there is to tell of a value.
pub(super) fn item(value: &Value, metadata: &Metadata, now: u64) -> Item {
    Item {
        flags: metadata.client_flags,
        cas: metadata.version,
        len: value.len(),
        ttl: seconds_left(value.expiry(), now),
        is_stale: metadata.is_stale,
        ..Item::default()
    }
}
