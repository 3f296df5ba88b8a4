//! Values from one server to another: DUMP and RESTORE.

use snugly_protocol::rdb::{self, Node, RestoreError, Value};
use snugly_protocol::resp::{Args, ReplyBuffer};
use snugly_store::{Condition, Expiry, Kind, Session, StoreError, Usage};

use super::options::{integer, is};
use super::{Command, Context, Failure, Flags, ONE_KEY, Outcome, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("dump", 2, Flags::READONLY, ONE_KEY, dump),
    command("restore", -4, Flags::WRITE_MEMORY, ONE_KEY, restore),
];

const BUSY_KEY: Failure = Failure::fixed("BUSYKEY Target key name already exists.");

fn dump(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let Some(value) = context.session.touch(context.client.database, &args[1])? else {
        context.replies.null();
        return Ok(Reply::Now);
    };
    if value.kind() == Kind::List {
        return dump_list(context, &args[1]);
    }
    let mut buffer = Vec::new();
    let bytes = context.bytes(Some(&value), &mut buffer)?;
    reply_payload(context.replies, &Value::String(bytes.into()));
    Ok(Reply::Now)
}

fn dump_list(context: &mut Context<'_>, key: &[u8]) -> Outcome {
    // The nodes, and the payload that is made of them.
    let len = context.session.list_raw_bytes(context.client.database, key)?;
    if len > context.server.longest_replies() as u64 {
        context.replies.give_up();
        return Ok(Reply::Now);
    }
    let Some(elements) = context.session.list_range(context.client.database, key, 0, -1)? else {
        context.replies.null();
        return Ok(Reply::Now);
    };
    let mut listpacks = Vec::new();
    context.session.show_nodes(&elements, |listpack| listpacks.push(listpack.to_vec()))?;
    let nodes = listpacks.iter().flat_map(|listpack| Node::of_listpack(listpack)).collect();
    reply_payload(context.replies, &Value::List(nodes));
    Ok(Reply::Now)
}

fn reply_payload(replies: &mut ReplyBuffer, value: &Value<'_>) {
    if let Some(out) = replies.begin_bulk(rdb::dumped_len(value)) {
        rdb::dump(value, out);
        replies.end_bulk();
    }
}

/// The options of RESTORE.
#[derive(Default)]
struct RestoreOptions {
    replace: bool,
    /// Whether the time to live is a time instead, in Unix milliseconds.
    absolute: bool,
    usage: Option<Usage>,
}

impl RestoreOptions {
    fn parse(args: Args<'_>) -> Result<RestoreOptions, Failure> {
        let mut options = RestoreOptions::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if is(arg, "REPLACE") {
                options.replace = true;
            } else if is(arg, "ABSTTL") {
                options.absolute = true;
            } else if is(arg, "IDLETIME")
                && rest.len() >= 1
                && !matches!(options.usage, Some(Usage::Frequency(_)))
            {
                let seconds = u64::try_from(integer(rest.next().unwrap_or_default())?);
                let seconds =
                    seconds.map_err(|_| Failure::fixed("ERR Invalid IDLETIME value, must be >= 0"))?;
                options.usage = Some(Usage::IdleSeconds(seconds));
            } else if is(arg, "FREQ")
                && rest.len() >= 1
                && !matches!(options.usage, Some(Usage::IdleSeconds(_)))
            {
                let frequency = u8::try_from(integer(rest.next().unwrap_or_default())?);
                let frequency = frequency
                    .map_err(|_| Failure::fixed("ERR Invalid FREQ value, must be >= 0 and <= 255"))?;
                options.usage = Some(Usage::Frequency(frequency));
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(options)
    }

    fn expiry(&self, ttl: u64, now: u64) -> Expiry {
        match ttl {
            0 => Expiry::Never,
            at if self.absolute => Expiry::At(at),
            // For Valkey, a time beyond what 64 bits with a sign can say has come.
            ttl => Expiry::At((now as i64).checked_add(ttl as i64).map_or(0, |at| at as u64)),
        }
    }
}

fn restore(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let options = RestoreOptions::parse(args.from(4))?;
    let (database, key) = (context.client.database, &args[1]);
    if !options.replace && context.session.peek(database, key)?.is_some() {
        return Err(BUSY_KEY);
    }
    let ttl = u64::try_from(integer(&args[2])?)
        .map_err(|_| Failure::fixed("ERR Invalid TTL value, must be >= 0"))?;
    let configuration = context.server.configuration();
    let (payload, longest) = (&args[3], configuration.max_value_bytes);
    // Bytes that the payload holds uncompressed are in memory already.
    let limit = longest.min(context.session.most_transient().max(payload.len()));
    // A list may be as long as a request that could write it.
    let restored =
        rdb::restore(payload, limit, configuration.max_request_bytes, configuration.rdb_version_check);
    if let Err(RestoreError::TooLong { len, .. }) = restored
        && len <= longest
    {
        context.session.check_transient(len)?;
    }
    let value = restored?;
    let now = context.session.now();
    let expiry = options.expiry(ttl, now);
    if matches!(expiry, Expiry::At(at) if at <= now) {
        context.session.delete(database, key)?;
        return context.ok();
    }
    if !put(context.session, database, key, &value, expiry, options.replace)? {
        return Err(BUSY_KEY);
    }
    let counts_frequency = context.server.configuration().max_memory_policy.counts_frequency();
    if let Some(usage) = options.usage
        && counts_frequency == matches!(usage, Usage::Frequency(_))
    {
        context.session.set_usage(database, key, usage)?;
    }
    context.ok()
}

/// Writes a key's value, unless it has one that is not to be replaced; returns whether it did.
fn put(
    session: &mut Session,
    database: usize,
    key: &[u8],
    value: &Value<'_>,
    expiry: Expiry,
    replace: bool,
) -> Result<bool, StoreError> {
    let nodes = match value {
        Value::String(bytes) => {
            let condition = if replace { Condition::Always } else { Condition::IfAbsent };
            return session.set(database, key, bytes, expiry, condition);
        }
        Value::List(nodes) => nodes,
    };
    session.exclusively(std::iter::once(key), |session| {
        if !replace && session.peek(database, key)?.is_some() {
            return Ok(false);
        }
        session.list_write(database, key, nodes.iter().flat_map(Node::elements), expiry)?;
        Ok(true)
    })
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Failure {
        match error {
            RestoreError::TooLong { .. } => Failure::TOO_LONG,
            RestoreError::NoMemory { .. } => Failure::new(format!("OOM {error}")),
            RestoreError::UnsupportedType(_) => {
                Failure::new(format!("ERR {error}. Only strings and lists can be restored"))
            }
            _ => Failure::new(format!("ERR {error}")),
        }
    }
}
