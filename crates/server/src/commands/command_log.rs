//! SLOWLOG and COMMANDLOG: the commands that were slow, or large, or had large replies.

use snugly_protocol::resp::{Args, parse_integer};

use super::options::is;
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command, container};
use crate::command_log::Kind;

const LOGS: Flags = Flags::ADMIN.and(Flags::ANY_TIME);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("slowlog", &[
        command("get", -2, LOGS, NO_KEYS, slow_get),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, slow_help),
        command("len", 2, LOGS, NO_KEYS, slow_len),
        command("reset", 2, LOGS, NO_KEYS, slow_reset),
    ]),
    container("commandlog", &[
        command("get", 4, LOGS, NO_KEYS, get),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("len", 3, LOGS, NO_KEYS, len),
        command("reset", 3, LOGS, NO_KEYS, reset),
    ]),
];

/// Default number of commands that SLOWLOG GET shows.
const DEFAULT_COUNT: usize = 10;

fn slow_get(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let most = match args.len() {
        2 => DEFAULT_COUNT,
        3 => count(&args[2])?,
        _ => return Err(Failure::subcommand_syntax("slowlog", &args[1])),
    };
    reply_newest(context, Kind::Slow, most)
}

fn slow_len(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.integer(context.server.command_log().len(Kind::Slow) as i64)
}

fn slow_reset(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.server.command_log().reset(Kind::Slow);
    context.ok()
}

fn slow_help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "slowlog")
}

fn get(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let most = count(&args[2])?;
    reply_newest(context, kind(&args[3])?, most)
}

fn len(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    context.integer(context.server.command_log().len(kind(&args[2])?) as i64)
}

fn reset(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    context.server.command_log().reset(kind(&args[2])?);
    context.ok()
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "commandlog")
}

/// Most entries to show; -1 is all.
fn count(arg: &[u8]) -> Result<usize, Failure> {
    match parse_integer(arg) {
        Some(-1) => Ok(usize::MAX),
        Some(count @ 0..) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err(Failure::fixed("ERR count should be greater than or equal to -1")),
    }
}

fn kind(arg: &[u8]) -> Result<Kind, Failure> {
    Kind::ALL
        .into_iter()
        .find(|kind| is(arg, kind.name()))
        .ok_or(Failure::fixed("ERR type should be one of the following: slow, large-request, large-reply"))
}

fn reply_newest(context: &mut Context<'_>, kind: Kind, most: usize) -> Outcome {
    let entries = context.server.command_log().newest(kind, most);
    let replies = &mut context.replies;
    replies.array(entries.len());
    for entry in entries {
        replies.array(6);
        [entry.id, entry.at, entry.value].iter().for_each(|&number| replies.integer(number as i64));
        replies.array(entry.args.len());
        entry.args.iter().for_each(|arg| replies.bulk(arg));
        replies.bulk(entry.address.to_string().as_bytes());
        replies.bulk(&entry.client_name);
    }
    Ok(Reply::Now)
}
