//! RDB files: SAVE, BGSAVE, LASTSAVE.

use snugly_protocol::resp::Args;

use super::options::is;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command};
use crate::rdb;

const SAVING: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_ASYNC_LOADING);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("bgsave", -1, SAVING, NO_KEYS, bgsave),
    command("lastsave", 1, Flags::ANY_TIME.and(Flags::FAST), NO_KEYS, lastsave),
    command("save", 1, SAVING.and(Flags::NO_MULTI), NO_KEYS, save),
];

const IN_PROGRESS: Failure = Failure::fixed("ERR Background save already in progress");

fn save(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    if context.server.saves().history().running_seconds.is_some() {
        return Err(IN_PROGRESS);
    }
    rdb::save(context.server, context.session).map_err(|error| Failure::new(format!("ERR {error}")))?;
    context.ok()
}

fn bgsave(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    match args.get(1) {
        None => {}
        // As if one could be under way that has to end first: that is never so.
        Some(option) if args.len() == 2 && is(option, "SCHEDULE") => {}
        Some(option) if args.len() == 2 && is(option, "CANCEL") => {
            return Err(Failure::fixed("ERR Background saving is currently not in progress or scheduled"));
        }
        Some(_) => return Err(Failure::SYNTAX),
    }
    let begun = rdb::save_in_background(context.server);
    if !begun.map_err(|error| Failure::new(format!("ERR {error}")))? {
        return Err(IN_PROGRESS);
    }
    context.replies.simple("Background saving started");
    Ok(Reply::Now)
}

/// Replies with the time when the last file was written; until one is, with the time when the server started.
fn lastsave(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let last = context.server.saves().history().last_at;
    context.integer(if last == 0 { context.server.started_at / 1_000 } else { last } as i64)
}
