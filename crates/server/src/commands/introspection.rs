//! OBJECT: how values are stored.

use snugly_protocol::resp::{Args, parse_integer};
use snugly_store::{StoreError, Value};

use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, SUBCOMMAND_KEY, command, container};

const EVICTION_COUNTS_FREQUENCY: Failure = Failure::fixed(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const EVICTION_COUNTS_IDLE_TIME: Failure = Failure::fixed(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("object", &[
        command("encoding", 3, Flags::READONLY, SUBCOMMAND_KEY, encoding),
        command("freq", 3, Flags::READONLY, SUBCOMMAND_KEY, freq),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("idletime", 3, Flags::READONLY, SUBCOMMAND_KEY, idletime),
        command("refcount", 3, Flags::READONLY, SUBCOMMAND_KEY, refcount),
        command("compression", 3, Flags::READONLY, SUBCOMMAND_KEY, compression),
    ]),
];

/// Valkey keeps a value beside its key if both fit this, in bytes,
const EMBEDDED: usize = 113;
/// less these for the length of a key that is longer than the second.
const LONG_KEY_HEADER: usize = 2;
const LONGEST_SHORT_KEY: usize = 31;
/// The codec of a list without compressed nodes.
pub(super) const UNCOMPRESSED: &str = "none";
/// The longest text of an integer.
const LONGEST_INTEGER: usize = 20;

/// Looks a key up without using it; the subcommand's key is its second argument.
pub(super) fn look_at(context: &mut Context<'_>, args: Args<'_>) -> Result<Option<Value>, StoreError> {
    context.session.peek(context.client.database, &args[2])
}

fn encoding(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let Some(value) = look_at(context, args)? else { return null(context) };
    context.replies.bulk(encoding_name(args[2].len(), &value).as_bytes());
    Ok(Reply::Now)
}

/// The encoding that Valkey would have chosen for a value.
pub(super) fn encoding_name(key_len: usize, value: &Value) -> &'static str {
    if let Some(list) = value.list() {
        return if list.is_large { "quicklist" } else { "listpack" };
    }
    let integer =
        value.len() <= LONGEST_INTEGER && value.plain().is_some_and(|text| parse_integer(text).is_some());
    match integer {
        true => "int",
        false if is_embedded(key_len, value.len()) => "embstr",
        false => "raw",
    }
}

fn is_embedded(key_len: usize, value_len: usize) -> bool {
    let header = if key_len > LONGEST_SHORT_KEY { LONG_KEY_HEADER } else { 0 };
    key_len + header + value_len <= EMBEDDED
}

fn freq(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let Some(value) = look_at(context, args)? else { return null(context) };
    if !context.server.configuration().max_memory_policy.counts_frequency() {
        return Err(EVICTION_COUNTS_IDLE_TIME);
    }
    context.integer(value.frequency().into())
}

fn idletime(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let Some(value) = look_at(context, args)? else { return null(context) };
    if context.server.configuration().max_memory_policy.counts_frequency() {
        return Err(EVICTION_COUNTS_FREQUENCY);
    }
    context.integer(value.idle_seconds(context.session.now()).into())
}

fn refcount(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    match look_at(context, args)? {
        Some(_) => context.integer(1),
        None => null(context),
    }
}

fn compression(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let Some(value) = look_at(context, args)? else { return null(context) };
    let (codec, stored, original) = match (value.record(), value.list()) {
        (Some(record), _) => (record.codec().name(), record.payload().len() as u64, value.len() as u64),
        (None, Some(list)) => (list.codec.unwrap_or(UNCOMPRESSED), list.stored_bytes, list.raw_bytes),
        (None, None) => return null(context),
    };
    context.replies.map(3);
    context.replies.bulk(b"codec");
    context.replies.bulk(codec.as_bytes());
    context.replies.bulk(b"stored_bytes");
    context.replies.integer(stored as i64);
    context.replies.bulk(b"original_bytes");
    context.replies.integer(original as i64);
    Ok(Reply::Now)
}

fn null(context: &mut Context<'_>) -> Outcome {
    context.replies.null();
    Ok(Reply::Now)
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    super::registry::reply_help(context, "object")
}
