//! Commands for the expiry of keys.

use snugly_protocol::resp::Args;
use snugly_store::{ExpireConditions, ExpireOutcome, Expiry};

use super::options::{
    MILLISECONDS, SECONDS, TimeUnit, UNIX_MILLISECONDS, UNIX_SECONDS, integer, is, unix_time,
};
use super::{Command, Context, Failure, Flags, ONE_KEY, Outcome, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("expire", -3, Flags::WRITE_FAST, ONE_KEY, expire),
    command("pexpire", -3, Flags::WRITE_FAST, ONE_KEY, pexpire),
    command("expireat", -3, Flags::WRITE_FAST, ONE_KEY, expireat),
    command("pexpireat", -3, Flags::WRITE_FAST, ONE_KEY, pexpireat),
    command("ttl", 2, Flags::READ_FAST, ONE_KEY, ttl),
    command("pttl", 2, Flags::READ_FAST, ONE_KEY, pttl),
    command("expiretime", 2, Flags::READ_FAST, ONE_KEY, expiretime),
    command("pexpiretime", 2, Flags::READ_FAST, ONE_KEY, pexpiretime),
    command("persist", 2, Flags::WRITE_FAST, ONE_KEY, persist),
];

/// Replies to commands about a key's expiry for a key that does not exist, and for one that does not expire.
const NO_KEY: i64 = -2;
const NO_EXPIRY: i64 = -1;

fn expire(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_expiry(context, args, SECONDS, "expire")
}

fn pexpire(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_expiry(context, args, MILLISECONDS, "pexpire")
}

fn expireat(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_expiry(context, args, UNIX_SECONDS, "expireat")
}

fn pexpireat(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_expiry(context, args, UNIX_MILLISECONDS, "pexpireat")
}

fn set_expiry(context: &mut Context<'_>, args: Args<'_>, unit: TimeUnit, name: &str) -> Outcome {
    let conditions = conditions(args.from(3))?;
    let amount = integer(&args[2])?;
    let at = unix_time(amount, unit, context.session.now()).ok_or_else(|| Failure::invalid_expire(name))?;
    // A time before 1970 has come as surely as 1970 itself.
    let expiry = Expiry::At(at.max(0) as u64);
    let outcome = context.session.expire(context.client.database, &args[1], expiry, conditions)?;
    context.integer(matches!(outcome, ExpireOutcome::Changed | ExpireOutcome::Removed).into())
}

fn conditions(args: Args<'_>) -> Result<ExpireConditions, Failure> {
    let mut conditions = ExpireConditions::default();
    for arg in args {
        if is(arg, "NX") {
            conditions.if_none = true;
        } else if is(arg, "XX") {
            conditions.if_some = true;
        } else if is(arg, "GT") {
            conditions.if_later = true;
        } else if is(arg, "LT") {
            conditions.if_earlier = true;
        } else {
            return Err(Failure::new([b"ERR Unsupported option ", arg].concat()));
        }
    }
    if conditions.if_none && (conditions.if_some || conditions.if_later || conditions.if_earlier) {
        return Err(Failure::fixed("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if conditions.if_later && conditions.if_earlier {
        return Err(Failure::fixed("ERR GT and LT options at the same time are not compatible"));
    }
    Ok(conditions)
}

fn ttl(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let now = context.session.now();
    reply_expiry(context, &args[1], |at| (at.saturating_sub(now) + 500) / 1000)
}

fn pttl(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let now = context.session.now();
    reply_expiry(context, &args[1], |at| at.saturating_sub(now))
}

fn expiretime(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    reply_expiry(context, &args[1], |at| at.saturating_add(500) / 1000)
}

fn pexpiretime(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    reply_expiry(context, &args[1], |at| at)
}

fn reply_expiry(context: &mut Context<'_>, key: &[u8], show: impl Fn(u64) -> u64) -> Outcome {
    let answer = match context.session.peek(context.client.database, key)? {
        None => NO_KEY,
        Some(value) => value.expiry().map_or(NO_EXPIRY, |at| show(at) as i64),
    };
    context.integer(answer)
}

fn persist(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let if_some = ExpireConditions { if_some: true, ..ExpireConditions::default() };
    let outcome = context.session.expire(context.client.database, &args[1], Expiry::Never, if_some)?;
    context.integer((outcome == ExpireOutcome::Changed).into())
}
