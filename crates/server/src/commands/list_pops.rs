//! Lists, taken from: elements that go to the client, or to another list.

use snugly_protocol::resp::{Args, ReplyBuffer};
use snugly_store::{Element, End, Popped};

use super::lists::{count, end, has_list};
use super::options::is;
use super::{COUNTED_KEYS, Command, Context, Failure, Flags, ONE_KEY, Outcome, Reply, TWO_KEYS, command};
use crate::replies::ENOUGH;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("lpop", -2, Flags::WRITE_FAST, ONE_KEY, lpop),
    command("rpop", -2, Flags::WRITE_FAST, ONE_KEY, rpop),
    command("lmpop", -4, Flags::WRITE.and(Flags::MOVABLE_KEYS), COUNTED_KEYS, lmpop),
    command("lmove", 5, Flags::WRITE_MEMORY, TWO_KEYS, lmove),
    command("rpoplpush", 3, Flags::WRITE_MEMORY, TWO_KEYS, rpoplpush),
];

const NO_COUNT: Failure = Failure::fixed("ERR value is out of range, must be positive");

fn lpop(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    pop(context, args, End::Left)
}

fn rpop(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    pop(context, args, End::Right)
}

fn pop(context: &mut Context<'_>, args: Args<'_>, end: End) -> Outcome {
    let Some(arg) = args.get(2) else { return pop_one(context, &args[1], end) };
    if args.len() > 3 {
        return Err(Failure::wrong_arity(if end == End::Left { "lpop" } else { "rpop" }));
    }
    let found = match count(arg, 0, NO_COUNT)? {
        0 => {
            let found = has_list(context, &args[1])?;
            if found {
                context.replies.array(0);
            }
            found
        }
        count => pop_some(context, &args[1], end, count, |_| {})?,
    };
    if !found {
        context.replies.null_array();
    }
    Ok(Reply::Now)
}

fn pop_one(context: &mut Context<'_>, key: &[u8], end: End) -> Outcome {
    context.pops(end);
    let Context { session, client, replies, .. } = context;
    if !session.list_pop(client.database, key, end, 1, |_, element| reply_element(replies, element))? {
        context.replies.null();
    }
    Ok(Reply::Now)
}

/// Takes elements and answers them as an array, behind a heading; returns whether there is a list.
pub(super) fn pop_some(
    context: &mut Context<'_>,
    key: &[u8],
    end: End,
    count: u64,
    heading: impl FnOnce(&mut ReplyBuffer),
) -> Result<bool, Failure> {
    context.pops(end);
    let mut heading = Some(heading);
    let Context { session, client, replies, .. } = context;
    let popped = session.list_take(client.database, key, end, count, ENOUGH as u64, |total, element| {
        if let Some(heading) = heading.take() {
            heading(replies);
            replies.array(total as usize);
        }
        reply_element(replies, element);
    })?;
    match popped {
        Popped::NoList => Ok(false),
        Popped::Shown => Ok(true),
        Popped::Given(elements) => {
            if let Some(heading) = heading {
                heading(replies);
            }
            replies.elements(session, elements)?;
            Ok(true)
        }
    }
}

pub(super) fn reply_element(replies: &mut ReplyBuffer, element: Element<'_>) {
    element.with_bytes(|bytes| replies.bulk(bytes));
}

/// The key that LMPOP takes: the first that has a list.
pub(super) struct FirstOf<'a> {
    pub(super) keys: Vec<&'a [u8]>,
    pub(super) end: End,
    pub(super) count: u64,
}

impl<'a> FirstOf<'a> {
    /// Reads a number of keys, the keys, an end, and how many elements are wanted.
    pub(super) fn parse(args: Args<'a>) -> Result<FirstOf<'a>, Failure> {
        let keys = count(&args[0], 1, Failure::fixed("ERR numkeys should be greater than 0"))?;
        let place = usize::try_from(keys).ok().and_then(|keys| keys.checked_add(1));
        let (place, word) = place.and_then(|place| Some((place, args.get(place)?))).ok_or(Failure::SYNTAX)?;
        let end = end(word)?;
        let mut wanted = None;
        let mut rest = args.from(place + 1).iter();
        while let Some(arg) = rest.next() {
            let value =
                rest.next().filter(|_| wanted.is_none() && is(arg, "COUNT")).ok_or(Failure::SYNTAX)?;
            wanted = Some(count(value, 1, Failure::fixed("ERR count should be greater than 0"))?);
        }
        let keys = args.from(1).iter().take(place - 1).collect();
        Ok(FirstOf { keys, end, count: wanted.unwrap_or(1) })
    }
}

fn lmpop(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let FirstOf { keys, end, count } = FirstOf::parse(args.from(1))?;
    if !pop_first(context, keys.iter().copied(), end, count)? {
        context.replies.null_array();
    }
    Ok(Reply::Now)
}

/// Takes elements of the first key that has a list, and answers that key and them; returns whether there is
/// one.
pub(super) fn pop_first<'k>(
    context: &mut Context<'_>,
    mut keys: impl Iterator<Item = &'k [u8]>,
    end: End,
    count: u64,
) -> Result<bool, Failure> {
    keys.try_fold(false, |found, key| {
        if found {
            return Ok(true);
        }
        pop_some(context, key, end, count, |replies| {
            replies.array(2);
            replies.bulk(key);
        })
    })
}

fn lmove(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (from_end, to_end) = (end(&args[3])?, end(&args[4])?);
    move_or_null(context, (&args[1], from_end), (&args[2], to_end))
}

fn rpoplpush(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    move_or_null(context, (&args[1], End::Right), (&args[2], End::Left))
}

fn move_or_null(context: &mut Context<'_>, from: (&[u8], End), to: (&[u8], End)) -> Outcome {
    if !move_one(context, from, to)? {
        context.replies.null();
    }
    Ok(Reply::Now)
}

/// Moves an element from one list to another and answers it; returns whether there is one.
pub(super) fn move_one(
    context: &mut Context<'_>,
    from: (&[u8], End),
    to: (&[u8], End),
) -> Result<bool, Failure> {
    context.moves_element(from, to);
    let Context { session, client, replies, .. } = context;
    Ok(session.list_move(client.database, from, to, |bytes| replies.bulk(bytes))?)
}
