//! Commands about replication, of which there is none: ROLE, WAIT.

use std::time::Duration;

use snugly_protocol::resp::{Args, parse_integer};

use super::options::integer;
use super::{Command, Context, Delay, Failure, Flags, NO_KEYS, Outcome, Reply, Wait, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("role", 1, Flags::CONNECTION.and(Flags::FAST), NO_KEYS, role),
    command("wait", 3, Flags::BLOCKING, NO_KEYS, wait),
];

fn role(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.replies.array(3);
    context.replies.bulk(b"master");
    context.replies.integer(0);
    context.replies.array(0);
    Ok(Reply::Now)
}

/// Waits for replicas that never come, as long as the client wants to.
fn wait(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let replicas = integer(&args[1])?;
    let timeout =
        parse_integer(&args[2]).ok_or(Failure::fixed("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Failure::fixed("ERR timeout is negative"));
    }
    if timeout.checked_add_unsigned(context.session.now()).is_none() {
        return Err(Failure::fixed("ERR timeout is out of range"));
    }
    if replicas > 0 && !context.client.denies_blocking() {
        let length = if timeout == 0 { Duration::MAX } else { Duration::from_millis(timeout as u64) };
        context.replies.integer(0);
        return Ok(Reply::Later(Wait::Delay(Delay { length, busy: false })));
    }
    context.integer(0)
}
