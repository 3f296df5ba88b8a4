//! Strings: whole values in and out.

use snugly_protocol::resp::{Args, parse_integer};
use snugly_store::{Condition, Expiry, Kind, ManyCondition};

use super::context::reserve;
use super::events::look_up;
use super::options::{GetexOptions, MILLISECONDS, SECONDS, SetOptions, TimeUnit, expiry};
use super::{
    ALL_KEYS, COUNTED_KEYS_AND_VALUES, Command, Context, Failure, Flags, KEYS_AND_VALUES, ONE_KEY, Outcome,
    Reply, command,
};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("get", 2, Flags::READ_FAST, ONE_KEY, get),
    command("mget", -2, Flags::READ_FAST, ALL_KEYS, mget),
    command("set", -3, Flags::WRITE_MEMORY, ONE_KEY, set),
    command("setnx", 3, Flags::WRITE_MEMORY_FAST, ONE_KEY, setnx),
    command("setex", 4, Flags::WRITE_MEMORY, ONE_KEY, setex),
    command("psetex", 4, Flags::WRITE_MEMORY, ONE_KEY, psetex),
    command("mset", -3, Flags::WRITE_MEMORY, KEYS_AND_VALUES, mset),
    command("msetnx", -3, Flags::WRITE_MEMORY, KEYS_AND_VALUES, msetnx),
    command("msetex", -4, Flags::WRITE_MEMORY.and(Flags::MOVABLE_KEYS), COUNTED_KEYS_AND_VALUES, msetex),
    command("getset", 3, Flags::WRITE_MEMORY_FAST, ONE_KEY, getset),
    command("getex", -2, Flags::WRITE_FAST, ONE_KEY, getex),
    command("getdel", 2, Flags::WRITE_FAST, ONE_KEY, getdel),
    command("delifeq", 3, Flags::WRITE_FAST, ONE_KEY, delifeq),
    command("append", 3, Flags::WRITE_MEMORY_FAST, ONE_KEY, append),
    command("strlen", 2, Flags::READ_FAST, ONE_KEY, strlen),
];

fn get(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let value = context.get(&args[1])?;
    context.reply_optional(value.as_ref())
}

fn mget(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let keys = args.from(1);
    let values = context.session.get_many(context.client.database, keys.iter())?;
    context.replies.array(values.len());
    let strings = values.iter().map(|value| value.as_ref().filter(|value| value.kind() == Kind::String));
    for string in strings {
        match string {
            Some(value) => context.replies.value(context.session, value)?,
            None => context.replies.null(),
        }
    }
    Ok(Reply::Now)
}

fn set(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let options = SetOptions::parse(args.from(3))?;
    let expiry = options.expiry(context.session.now(), "set")?;
    let (database, key, value) = (context.client.database, &args[1], &args[2]);
    if options.get {
        look_up(context, key);
    }
    if let Expiry::At(_) = expiry {
        context.sets_until();
    }
    if options.get {
        let outcome = context.session.get_and_set(database, key, value, expiry, options.condition)?;
        return context.reply_optional(outcome.previous.as_ref());
    }
    if context.session.set(database, key, value, expiry, options.condition)? {
        return context.ok();
    }
    context.replies.null();
    Ok(Reply::Now)
}

fn setnx(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let database = context.client.database;
    let written = context.session.set(database, &args[1], &args[2], Expiry::Never, Condition::IfAbsent)?;
    context.integer(written.into())
}

fn setex(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_with_ttl(context, args, SECONDS, "setex")
}

fn psetex(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_with_ttl(context, args, MILLISECONDS, "psetex")
}

fn set_with_ttl(context: &mut Context<'_>, args: Args<'_>, unit: TimeUnit, name: &str) -> Outcome {
    let expiry = expiry(&args[2], unit, context.session.now(), name)?;
    context.session.set(context.client.database, &args[1], &args[3], expiry, Condition::Always)?;
    context.ok()
}

fn mset(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_pairs(context, args, ManyCondition::Always, "mset")?;
    context.ok()
}

fn msetnx(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let written = set_pairs(context, args, ManyCondition::IfAllAbsent, "msetnx")?;
    context.integer(written.into())
}

fn set_pairs(
    context: &mut Context<'_>,
    args: Args<'_>,
    condition: ManyCondition,
    name: &str,
) -> Result<bool, Failure> {
    if args.len().is_multiple_of(2) {
        return Err(Failure::wrong_arity(name));
    }
    let keys = args.from(1).iter().step_by(2);
    let pairs = keys.zip(args.from(2).iter().step_by(2));
    Ok(context.session.set_many(context.client.database, pairs, Expiry::Never, condition)?)
}

fn msetex(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let count = parse_integer(&args[1]).filter(|count| (1..=i32::MAX.into()).contains(count));
    let count = count.ok_or(Failure::fixed("ERR invalid numkeys value or out of range"))? as usize;
    let end_of_pairs = 2 + 2 * count;
    if args.len() < end_of_pairs {
        return Err(Failure::SYNTAX);
    }
    let options = SetOptions::parse(args.from(end_of_pairs))?;
    let condition = match options.condition {
        Condition::Always => ManyCondition::Always,
        Condition::IfAbsent => ManyCondition::IfAllAbsent,
        Condition::IfPresent => ManyCondition::IfAllPresent,
        Condition::IfEqual(_) | Condition::IfVersion(_) => return Err(Failure::SYNTAX),
    };
    if options.get {
        return Err(Failure::SYNTAX);
    }
    let expiry = options.expiry(context.session.now(), "msetex")?;
    if let Expiry::At(_) = expiry {
        context.sets_until();
    }
    let keys = args.from(2).iter().step_by(2).take(count);
    let pairs = keys.zip(args.from(3).iter().step_by(2));
    let written = context.session.set_many(context.client.database, pairs, expiry, condition)?;
    context.integer(written.into())
}

fn getset(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let database = context.client.database;
    let outcome =
        context.session.get_and_set(database, &args[1], &args[2], Expiry::Never, Condition::Always)?;
    context.reply_optional(outcome.previous.as_ref())
}

fn getex(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let options = GetexOptions::parse(args.from(2))?;
    let database = context.client.database;
    let expiry = match options.time {
        Some((arg, unit)) => expiry(arg, unit, context.session.now(), "getex")?,
        None if options.persist => Expiry::Never,
        None => Expiry::Keep,
    };
    if options.persist {
        context.persists();
    } else {
        context.expires();
    }
    let value = context.session.get_and_expire(database, &args[1], expiry)?;
    context.reply_optional(value.as_ref())
}

fn getdel(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let value = context.session.take(context.client.database, &args[1])?;
    context.reply_optional(value.as_ref())
}

fn delifeq(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let deleted = context.exclusively(std::iter::once(&args[1]), |context| {
        let database = context.client.database;
        let value = context.peek_string(&args[1])?;
        let Some(value) = value.filter(|value| value.len() == args[2].len()) else { return Ok(false) };
        let mut buffer = Vec::new();
        if *context.bytes(Some(&value), &mut buffer)? != args[2] {
            return Ok(false);
        }
        context.session.remove(database, &args[1])?;
        Ok::<_, Failure>(true)
    })?;
    context.integer(deleted.into())
}

fn append(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let limit = context.server.configuration().max_value_bytes;
    let len = context.session.update_part(context.client.database, &args[1], |current, part| {
        let offset = current.map_or(0, <[u8]>::len);
        if offset + args[2].len() > limit {
            return Err(Failure::TOO_LONG);
        }
        reserve(part, args[2].len())?;
        part.extend_from_slice(&args[2]);
        Ok((offset, offset + args[2].len()))
    })?;
    context.integer(len as i64)
}

fn strlen(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let len = context.get(&args[1])?.map_or(0, |value| value.len());
    context.integer(len as i64)
}
