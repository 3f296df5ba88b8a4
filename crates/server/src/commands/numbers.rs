//! Strings that are numbers.

use snugly_protocol::resp::{Args, parse_integer};

use super::options::integer;
use super::{Command, Context, Failure, Flags, ONE_KEY, Outcome, Reply, command};
use crate::long_double::LongDouble;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("incr", 2, Flags::WRITE_MEMORY_FAST, ONE_KEY, incr),
    command("decr", 2, Flags::WRITE_MEMORY_FAST, ONE_KEY, decr),
    command("incrby", 3, Flags::WRITE_MEMORY_FAST, ONE_KEY, incrby),
    command("decrby", 3, Flags::WRITE_MEMORY_FAST, ONE_KEY, decrby),
    command("incrbyfloat", 3, Flags::WRITE_MEMORY_FAST, ONE_KEY, incrbyfloat),
];

fn incr(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    add(context, &args[1], 1)
}

fn decr(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    add(context, &args[1], -1)
}

fn incrby(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    add(context, &args[1], integer(&args[2])?)
}

fn decrby(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let amount = integer(&args[2])?;
    add(context, &args[1], amount.checked_neg().ok_or(Failure::DECREMENT_OVERFLOW)?)
}

fn add(context: &mut Context<'_>, key: &[u8], amount: i64) -> Outcome {
    let sum = context.session.update(context.client.database, key, |current, edited| {
        let number = match current {
            Some(text) => parse_integer(text).ok_or(Failure::NOT_AN_INTEGER)?,
            None => 0,
        };
        let sum = number.checked_add(amount).ok_or(Failure::OVERFLOW)?;
        edited.extend_from_slice(itoa::Buffer::new().format(sum).as_bytes());
        Ok::<_, Failure>(sum)
    })?;
    context.integer(sum)
}

fn incrbyfloat(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let sum = context.session.update(context.client.database, &args[1], |current, edited| {
        let number = LongDouble::parse(current.unwrap_or(b"0")).ok_or(Failure::NOT_A_FLOAT)?;
        let amount = LongDouble::parse(&args[2]).ok_or(Failure::NOT_A_FLOAT)?;
        let sum = number.add(amount).to_decimal().ok_or(Failure::NAN_OR_INFINITY)?;
        edited.extend_from_slice(sum.as_bytes());
        Ok::<_, Failure>(sum)
    })?;
    context.replies.bulk(sum.as_bytes());
    Ok(Reply::Now)
}
