//! Keys, whatever their values.

use snugly_glob::Pattern;
use snugly_protocol::resp::{Args, parse_integer};
use snugly_store::{Session, StoreError, Value};

use super::options::{integer, is};
use super::registry::as_c_string;
use super::{ALL_KEYS, Command, Context, Failure, Flags, NO_KEYS, ONE_KEY, Outcome, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("del", -2, Flags::WRITE, ALL_KEYS, del),
    command("unlink", -2, Flags::WRITE_FAST, ALL_KEYS, del),
    command("exists", -2, Flags::READ_FAST, ALL_KEYS, exists),
    command("touch", -2, Flags::READ_FAST, ALL_KEYS, touch),
    command("type", 2, Flags::READ_FAST, ONE_KEY, type_of),
    command("scan", -2, Flags::READONLY, NO_KEYS, scan),
    command("keys", 2, Flags::READONLY, NO_KEYS, keys),
    command("randomkey", 1, Flags::READONLY, NO_KEYS, randomkey),
    command("dbsize", 1, Flags::READ_FAST, NO_KEYS, dbsize),
    command("flushdb", -1, Flags::WRITE, NO_KEYS, flushdb),
    command("flushall", -1, Flags::WRITE, NO_KEYS, flushall),
];

/// The types that a client may ask for, whether or not there are such values.
const TYPES: [&str; 6] = ["string", "list", "set", "zset", "hash", "stream"];
/// Keys that one call of the store returns while all are scanned.
const SCAN_STEP: usize = 1000;

fn del(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    count(context, args, Session::delete)
}

/// Answers for how many of the keys the operation is true.
fn count(
    context: &mut Context<'_>,
    args: Args<'_>,
    mut operation: impl FnMut(&mut Session, usize, &[u8]) -> Result<bool, StoreError>,
) -> Outcome {
    let mut found = 0;
    for key in args.from(1).iter() {
        found += i64::from(operation(context.session, context.client.database, key)?);
    }
    context.integer(found)
}

fn exists(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    count(context, args, |session, database, key| Ok(session.peek(database, key)?.is_some()))
}

fn touch(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    // The command counts as a use even for a client that otherwise leaves no trace (CLIENT NO-TOUCH).
    context.session.set_touches(true);
    count(context, args, |session, database, key| Ok(session.touch(database, key)?.is_some()))
}

fn type_of(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let value = context.session.peek(context.client.database, &args[1])?;
    context.replies.simple(value.as_ref().map_or("none", type_name));
    Ok(Reply::Now)
}

fn type_name(value: &Value) -> &'static str {
    value.kind().name()
}

fn scan(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let cursor = parse_cursor(&args[1]).ok_or(Failure::INVALID_CURSOR)?;
    let options = ScanOptions::parse(args.from(2))?;
    let database = context.client.database;
    let mut found = context.replies.begin_strings();
    let (mut next, mut left) = (cursor, options.count);
    loop {
        let mut keys = Vec::new();
        let step = left.min(SCAN_STEP);
        next = context.session.scan(database, next, step, |key| {
            if options.pattern.as_ref().is_none_or(|pattern| pattern.matches(key)) {
                keys.push(key.to_vec());
            }
        })?;
        if let Some(kind) = options.kind {
            keys = of_type(context, keys, kind)?;
        }
        keys.iter().for_each(|key| found.push(key));
        left -= step;
        if next == 0 || left == 0 || found.is_over() {
            break;
        }
    }
    context.replies.array(2);
    context.replies.bulk(next.to_string().as_bytes());
    context.replies.strings(found);
    Ok(Reply::Now)
}

/// A cursor as Valkey reads it: a plain integer, or else what C's `strtoull` takes whole.
fn parse_cursor(arg: &[u8]) -> Option<u64> {
    if let Some(number) = parse_integer(arg) {
        return u64::try_from(number).ok();
    }
    let text = as_c_string(arg, usize::MAX);
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r'))?;
    let (negative, digits) = match &text[start..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.first().filter(|byte| byte.is_ascii_digit()).and(std::str::from_utf8(digits).ok())?;
    let number: u64 = digits.parse().ok()?;
    Some(if negative { number.wrapping_neg() } else { number })
}

struct ScanOptions {
    pattern: Option<Pattern>,
    count: usize,
    /// The type that is asked for, one of [`TYPES`].
    kind: Option<&'static str>,
}

impl ScanOptions {
    fn parse(args: Args<'_>) -> Result<ScanOptions, Failure> {
        let mut options = ScanOptions { pattern: None, count: 10, kind: None };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let value = rest.next().ok_or(Failure::SYNTAX)?;
            if is(arg, "COUNT") {
                let count = integer(value)?;
                if count < 1 {
                    return Err(Failure::SYNTAX);
                }
                options.count = count as usize;
            } else if is(arg, "MATCH") {
                options.pattern = Some(Pattern::new(value, false));
            } else if is(arg, "TYPE") {
                let kind = TYPES.into_iter().find(|name| is(value, name));
                options.kind = Some(kind.ok_or_else(|| {
                    Failure::new([b"ERR unknown type name '", as_c_string(value, usize::MAX), b"'"].concat())
                })?);
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(options)
    }
}

/// The keys that have a value of this type now.
fn of_type(
    context: &mut Context<'_>,
    mut keys: Vec<Vec<u8>>,
    kind: &str,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut outcome = Ok(());
    keys.retain(|key| match context.session.peek(context.client.database, key) {
        Ok(value) => value.is_some_and(|value| type_name(&value) == kind),
        Err(error) => {
            outcome = Err(error);
            false
        }
    });
    outcome.map(|()| keys)
}

fn keys(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let mut found = context.replies.begin_strings();
    let pattern = Pattern::new(&args[1], false);
    let mut cursor = 0;
    loop {
        cursor = context.session.scan(context.client.database, cursor, SCAN_STEP, |key| {
            if pattern.matches(key) {
                found.push(key);
            }
        })?;
        if cursor == 0 || found.is_over() {
            break;
        }
    }
    context.replies.strings(found);
    Ok(Reply::Now)
}

fn randomkey(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    match context.session.random(context.client.database)? {
        Some(value) => context.replies.bulk(value.key()),
        None => context.replies.null(),
    }
    Ok(Reply::Now)
}

fn dbsize(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let stats = context.server.store().database_stats(context.client.database)?;
    context.integer(stats.keys as i64)
}

fn flushdb(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    flush(context, args, Some(context.client.database))
}

fn flushall(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    flush(context, args, None)
}

fn flush(context: &mut Context<'_>, args: Args<'_>, database: Option<usize>) -> Outcome {
    let asynchronous = match args.get(1) {
        None => false,
        Some(mode) if args.len() == 2 && is(mode, "ASYNC") => true,
        Some(mode) if args.len() == 2 && is(mode, "SYNC") => false,
        Some(_) => return Err(Failure::SYNTAX),
    };
    let flushed = context.session.flush(database);
    if asynchronous {
        context.server.freeing.free(flushed);
    }
    context.ok()
}
