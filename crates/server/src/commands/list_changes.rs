//! Lists, changed: elements added at their ends, and put, replaced or removed anywhere.

use snugly_protocol::resp::Args;
use snugly_store::{End, Inserted, ListSet};

use super::lists::has_list;
use super::options::{integer, integer_within, is};
use super::{Command, Context, Failure, Flags, ONE_KEY, Outcome, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("lpush", -3, Flags::WRITE_MEMORY_FAST, ONE_KEY, lpush),
    command("rpush", -3, Flags::WRITE_MEMORY_FAST, ONE_KEY, rpush),
    command("lpushx", -3, Flags::WRITE_MEMORY_FAST, ONE_KEY, lpushx),
    command("rpushx", -3, Flags::WRITE_MEMORY_FAST, ONE_KEY, rpushx),
    command("lset", 4, Flags::WRITE_MEMORY, ONE_KEY, lset),
    command("linsert", 5, Flags::WRITE_MEMORY, ONE_KEY, linsert),
    command("lrem", 4, Flags::WRITE, ONE_KEY, lrem),
    command("ltrim", 4, Flags::WRITE, ONE_KEY, ltrim),
];

fn lpush(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    push(context, args, End::Left, false)
}

fn rpush(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    push(context, args, End::Right, false)
}

fn lpushx(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    push(context, args, End::Left, true)
}

fn rpushx(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    push(context, args, End::Right, true)
}

fn push(context: &mut Context<'_>, args: Args<'_>, end: End, must_exist: bool) -> Outcome {
    let elements = args.from(2);
    let len =
        context.session.list_push(context.client.database, &args[1], end, elements.iter(), must_exist)?;
    context.integer(len as i64)
}

fn lset(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let index = match integer(&args[2]) {
        Ok(index) => index,
        Err(failure) if has_list(context, &args[1])? => return Err(failure),
        Err(_) => return Err(Failure::NO_SUCH_KEY),
    };
    match context.session.list_set(context.client.database, &args[1], index, &args[3])? {
        ListSet::NoList => Err(Failure::NO_SUCH_KEY),
        ListSet::OutOfRange => Err(Failure::fixed("ERR index out of range")),
        ListSet::Replaced => context.ok(),
    }
}

fn linsert(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let behind = match &args[2] {
        word if is(word, "AFTER") => true,
        word if is(word, "BEFORE") => false,
        _ => return Err(Failure::SYNTAX),
    };
    let database = context.client.database;
    match context.session.list_insert(database, &args[1], &args[3], behind, &args[4])? {
        Inserted::NoList => context.integer(0),
        Inserted::NoPivot => context.integer(-1),
        Inserted::Of(len) => context.integer(len as i64),
    }
}

fn lrem(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let count = integer_within(&args[2], -i64::MAX..=i64::MAX)?;
    let removed = context.session.list_remove(context.client.database, &args[1], count, &args[3])?;
    context.integer(removed as i64)
}

fn ltrim(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (start, stop) = (integer(&args[2])?, integer(&args[3])?);
    context.session.list_trim(context.client.database, &args[1], start, stop)?;
    context.ok()
}
