//! Values under other keys and in other databases, as they are stored: nothing is decoded.

use snugly_protocol::resp::{Args, parse_integer};

use super::options::{is, small_integer};
use super::{Command, Context, Failure, Flags, NO_KEYS, ONE_KEY, Outcome, TWO_KEYS, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("rename", 3, Flags::WRITE, TWO_KEYS, rename),
    command("renamenx", 3, Flags::WRITE_FAST, TWO_KEYS, renamenx),
    command("copy", -3, Flags::WRITE_MEMORY, TWO_KEYS, copy),
    command("move", 3, Flags::WRITE_FAST, ONE_KEY, move_key),
    command("swapdb", 3, Flags::WRITE_FAST, NO_KEYS, swapdb),
];

/// A database and a key.
type DbKey<'a> = (usize, &'a [u8]);

fn rename(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let database = context.client.database;
    let (from, to) = ((database, &args[1]), (database, &args[2]));
    context.renames(from.1);
    if !context.exclusively([from.1, to.1].into_iter(), |context| context.session.rename(from, to))? {
        return Err(Failure::NO_SUCH_KEY);
    }
    context.ok()
}

fn renamenx(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let database = context.client.database;
    context.renames(&args[1]);
    match move_to_free(context, (database, &args[1]), (database, &args[2]))? {
        Moved::Missing => Err(Failure::NO_SUCH_KEY),
        Moved::Taken => context.integer(0),
        Moved::Done => context.integer(1),
    }
}

fn move_key(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let target = database(context, &args[2])?;
    let source = context.client.database;
    if source == target {
        return Err(Failure::SAME_OBJECT);
    }
    context.moves_key(&args[1]);
    let moved = move_to_free(context, (source, &args[1]), (target, &args[1]))?;
    context.integer((moved == Moved::Done).into())
}

/// The result of moving a value to a key that must not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moved {
    Missing,
    Taken,
    Done,
}

fn move_to_free(context: &mut Context<'_>, from: DbKey<'_>, to: DbKey<'_>) -> Result<Moved, Failure> {
    context.exclusively([from.1, to.1].into_iter(), |context| {
        let session = &mut *context.session;
        if session.peek(from.0, from.1)?.is_none() {
            return Ok(Moved::Missing);
        }
        if session.peek(to.0, to.1)?.is_some() {
            return Ok(Moved::Taken);
        }
        session.rename(from, to)?;
        Ok(Moved::Done)
    })
}

fn copy(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let source = context.client.database;
    let options = CopyOptions::parse(context, args.from(3))?;
    let (from, to) = ((source, &args[1]), (options.database, &args[2]));
    if from == to {
        return Err(Failure::SAME_OBJECT);
    }
    context.copies();
    let copied = context.exclusively([from.1, to.1].into_iter(), |context| {
        let session = &mut *context.session;
        let taken = !options.replace && session.peek(to.0, to.1)?.is_some();
        Ok::<_, Failure>(!taken && session.copy(from, to)?)
    })?;
    context.integer(copied.into())
}

/// The options of COPY.
struct CopyOptions {
    database: usize,
    replace: bool,
}

impl CopyOptions {
    fn parse(context: &Context<'_>, args: Args<'_>) -> Result<CopyOptions, Failure> {
        let mut options = CopyOptions { database: context.client.database, replace: false };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if is(arg, "REPLACE") {
                options.replace = true;
            } else if is(arg, "DB") && rest.len() >= 1 {
                options.database = database(context, rest.next().unwrap_or_default())?;
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(options)
    }
}

/// The database of this number.
pub(super) fn database(context: &Context<'_>, arg: &[u8]) -> Result<usize, Failure> {
    existing(context, small_integer(arg)?)
}

fn existing(context: &Context<'_>, number: i32) -> Result<usize, Failure> {
    let number = usize::try_from(number).ok().filter(|&number| number < context.server.store().databases());
    number.ok_or(Failure::NO_SUCH_DATABASE)
}

fn swapdb(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let number =
        |arg, failure| parse_integer(arg).and_then(|number| i32::try_from(number).ok()).ok_or(failure);
    let first = number(&args[1], Failure::fixed("ERR invalid first DB index"))?;
    let second = number(&args[2], Failure::fixed("ERR invalid second DB index"))?;
    let (first, second) = (existing(context, first)?, existing(context, second)?);
    context.session.swap(first, second);
    context.ok()
}
