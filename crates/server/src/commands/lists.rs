//! Reads of lists. Elements are decoded after the list is released.

use snugly_protocol::resp::Args;
use snugly_store::{End, Kind, Search};

use super::options::{integer, integer_within, is};
use super::{Command, Context, Failure, Flags, ONE_KEY, Outcome, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("llen", 2, Flags::READ_FAST, ONE_KEY, llen),
    command("lrange", 4, Flags::READONLY, ONE_KEY, lrange),
    command("lindex", 3, Flags::READONLY, ONE_KEY, lindex),
    command("lpos", -3, Flags::READONLY, ONE_KEY, lpos),
];

const NO_RANK: Failure = Failure::fixed(
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list",
);

/// Returns whether there is a list; it does not count as a use of it.
pub(super) fn has_list(context: &mut Context<'_>, key: &[u8]) -> Result<bool, Failure> {
    match context.session.peek(context.client.database, key)? {
        Some(value) => {
            value.expect_kind(Kind::List)?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Reads `LEFT` or `RIGHT`.
pub(super) fn end(arg: &[u8]) -> Result<End, Failure> {
    match arg {
        _ if is(arg, "LEFT") => Ok(End::Left),
        _ if is(arg, "RIGHT") => Ok(End::Right),
        _ => Err(Failure::SYNTAX),
    }
}

/// A number of elements, at least `least`; whatever else it is, the error is `otherwise`.
pub(super) fn count(arg: &[u8], least: i64, otherwise: Failure) -> Result<u64, Failure> {
    match integer(arg) {
        Ok(count) if count >= least => Ok(count.unsigned_abs()),
        _ => Err(otherwise),
    }
}

fn llen(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let len = context.session.list_len(context.client.database, &args[1])?;
    context.integer(len as i64)
}

fn lrange(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (start, stop) = (integer(&args[2])?, integer(&args[3])?);
    let Some(elements) = context.session.list_range(context.client.database, &args[1], start, stop)? else {
        context.replies.array(0);
        return Ok(Reply::Now);
    };
    context.replies.elements(context.session, elements)?;
    Ok(Reply::Now)
}

fn lindex(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let index = match integer(&args[2]) {
        Err(failure) if has_list(context, &args[1])? => return Err(failure),
        // A missing list has no element.
        Err(_) => 0,
        Ok(index) => index,
    };
    let Context { session, client, replies, .. } = context;
    let shown = session.list_get(client.database, &args[1], index, |element| {
        element.with_bytes(|bytes| replies.bulk(bytes));
    })?;
    if shown.is_none() {
        context.replies.null();
    }
    Ok(Reply::Now)
}

/// The options of LPOS.
struct Options {
    rank: i64,
    count: Option<u64>,
    max_len: u64,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Options, Failure> {
        let mut options = Options { rank: 1, count: None, max_len: 0 };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let value = rest.next().ok_or(Failure::SYNTAX)?;
            if is(arg, "RANK") {
                options.rank = integer_within(value, -i64::MAX..=i64::MAX)?;
                if options.rank == 0 {
                    return Err(NO_RANK);
                }
            } else if is(arg, "COUNT") {
                options.count = Some(count(value, 0, Failure::fixed("ERR COUNT can't be negative"))?);
            } else if is(arg, "MAXLEN") {
                options.max_len = count(value, 0, Failure::fixed("ERR MAXLEN can't be negative"))?;
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(options)
    }
}

fn lpos(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let Options { rank, count, max_len } = Options::parse(args.from(3))?;
    let search = Search { rank, count: count.unwrap_or(1), max_len };
    let places = context.session.list_positions(context.client.database, &args[1], &args[2], search)?;
    let places = places.unwrap_or_default();
    match (count, places.first()) {
        (Some(_), _) => {
            context.replies.array(places.len());
            places.iter().for_each(|&place| context.replies.integer(place as i64));
        }
        (None, Some(&place)) => context.replies.integer(place as i64),
        (None, None) => context.replies.null(),
    }
    Ok(Reply::Now)
}
