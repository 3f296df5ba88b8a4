//! The server as a whole: INFO, MONITOR, TIME, SHUTDOWN.

use std::time::{SystemTime, UNIX_EPOCH};

use snugly_protocol::resp::Args;

use super::options::is;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command};
use crate::info;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("info", -1, Flags::ANY_TIME, NO_KEYS, info),
    command("monitor", 1, Flags::ADMINISTRATION, NO_KEYS, monitor),
    command("time", 1, Flags::ANY_TIME.and(Flags::FAST), NO_KEYS, time),
    command("shutdown", -1, Flags::ADMINISTRATION.and(Flags::NO_MULTI).and(Flags::ALLOW_BUSY), NO_KEYS, shutdown),
];

fn info(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let sections: Vec<String> =
        args.from(1).iter().map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()).collect();
    let text = info::text(context.server, &sections);
    context.replies.verbatim(b"txt", text.as_bytes());
    Ok(Reply::Now)
}

fn monitor(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    if context.client.denies_blocking() {
        return Err(Failure::fixed("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    if context.server.monitors().enter(&context.client.info) {
        return context.ok();
    }
    // Asked a second time Valkey answers nothing.
    Ok(Reply::Now)
}

fn time(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let now = context.client.script_began.unwrap_or_else(SystemTime::now);
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    context.replies.array(2);
    context.replies.bulk(now.as_secs().to_string().as_bytes());
    context.replies.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(Reply::Now)
}

/// Options of SHUTDOWN: nothing is saved here and nobody takes over, so none of them makes a difference.
const SHUTDOWN_MODES: [&str; 6] = ["NOSAVE", "SAVE", "NOW", "FORCE", "SAFE", "FAILOVER"];

fn shutdown(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let told = |mode: &str| args.from(1).iter().any(|arg| is(arg, mode));
    if args.len() == 2 && told("ABORT") {
        return Err(Failure::fixed("ERR No shutdown in progress."));
    }
    let known = |arg: &[u8]| SHUTDOWN_MODES.iter().any(|mode| is(arg, mode));
    if !args.from(1).iter().all(known) || told("SAVE") && told("NOSAVE") {
        return Err(Failure::SYNTAX);
    }
    // As in Valkey: whoever ends a script half-way says that nothing is to be saved.
    if let Some(kind) = context.server.scripts().running.busy_with().filter(|_| !told("NOSAVE")) {
        return Err(Failure::busy(kind));
    }
    context.client.closing = true;
    context.server.stop();
    Ok(Reply::Now)
}
