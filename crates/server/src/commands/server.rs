//! The server as a whole: INFO, MEMORY, TIME, SHUTDOWN.

use std::time::{SystemTime, UNIX_EPOCH};

use snugly_protocol::resp::Args;

use super::options::is;
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, SUBCOMMAND_KEY, command, container};
use crate::info;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("info", -1, Flags::ANY_TIME.and(Flags::DANGEROUS), NO_KEYS, "1.0.0", "Describes the server and what it has done.", info),
    container("memory", "4.0.0", "Tells what memory is used for.", &[
        command("help", 2, Flags::ANY_TIME, NO_KEYS, "4.0.0", "Lists the subcommands.", memory_help),
        command("usage", -3, Flags::READONLY, SUBCOMMAND_KEY, "4.0.0", "Gives the bytes that a key and its value take.", memory_usage),
    ]),
    command("time", 1, Flags::ANY_TIME.and(Flags::FAST), NO_KEYS, "2.6.0", "Gives the server's time.", time),
    command("shutdown", -1, Flags::ADMINISTRATION.and(Flags::NO_MULTI).and(Flags::ALLOW_BUSY), NO_KEYS, "1.0.0", "Ends the server.", shutdown),
];

fn info(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let sections: Vec<String> =
        args.from(1).iter().map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()).collect();
    let text = info::text(context.server, &sections);
    context.replies.verbatim(b"txt", text.as_bytes());
    Ok(())
}

fn memory_usage(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    match args.len() {
        3 => {}
        5 if is(&args[3], "SAMPLES") => {
            let samples = super::options::integer(&args[4])?;
            if samples < 0 {
                return Err(Failure::SYNTAX);
            }
        }
        _ => return Err(Failure::SYNTAX),
    }
    match context.session.peek(context.client.database, &args[2])? {
        Some(value) => context.replies.integer(value.memory() as i64),
        None => context.replies.null(),
    }
    Ok(())
}

fn time(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    context.replies.array(2);
    context.replies.bulk(now.as_secs().to_string().as_bytes());
    context.replies.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(())
}

/// What SHUTDOWN may be told: nothing here is saved, so the modes of saving make no difference.
const SHUTDOWN_MODES: [&str; 5] = ["NOSAVE", "SAVE", "NOW", "FORCE", "SAFE"];

fn shutdown(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if args.len() == 2 && is(&args[1], "ABORT") {
        return Err(Failure::fixed("ERR No shutdown in progress."));
    }
    if !args.from(1).iter().all(|arg| SHUTDOWN_MODES.iter().any(|mode| is(arg, mode))) {
        return Err(Failure::SYNTAX);
    }
    context.client.closing = true;
    context.server.stop();
    Ok(())
}

fn memory_help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "memory")
}
