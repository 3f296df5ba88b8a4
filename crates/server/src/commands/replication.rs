//! Commands about replication: REPLICAOF, ROLE, REPLCONF, and WAIT, for replicas of which there are none.

use std::time::Duration;

use snugly_protocol::resp::{Args, parse_integer};
use tracing::info;

use super::options::{integer, is};
use super::{Command, Context, Delay, Failure, Flags, NO_KEYS, Outcome, Reply, Wait, command};
use crate::settings::Primary;

const FOLLOWING: Flags =
    Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::STALE).and(Flags::NO_ASYNC_LOADING).and(Flags::ENDS_LOADING);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("replconf", -1, Flags::ADMINISTRATION.and(Flags::ALLOW_BUSY), NO_KEYS, replconf),
    command("replicaof", 3, FOLLOWING, NO_KEYS, replicaof),
    command("role", 1, Flags::CONNECTION.and(Flags::FAST), NO_KEYS, role),
    command("slaveof", 3, FOLLOWING, NO_KEYS, replicaof),
    command("wait", 3, Flags::BLOCKING, NO_KEYS, wait),
];

/// Follows another server from now on, or none.
fn replicaof(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let primary = if is(&args[1], "NO") && is(&args[2], "ONE") { None } else { Some(primary(args)?) };
    let before = context.server.configuration().replica_of.clone();
    if before == primary && primary.is_some() {
        context.replies.simple("OK Already connected to specified primary");
        return Ok(Reply::Now);
    }
    context.server.change_configuration(|configuration| {
        configuration.replica_of.clone_from(&primary);
        let settings = configuration.store_settings();
        settings.map_err(|error| Failure::new(format!("ERR {error}")))
    })?;
    wait_for_requests(context);
    match (before, primary) {
        (_, Some(primary)) => info!(%primary, "REPLICAOF: following another server"),
        (Some(primary), None) => {
            info!(%primary, "REPLICAOF NO ONE: the server follows none any more, and keeps its keys")
        }
        (None, None) => {}
    }
    context.ok()
}

/// Waits until nothing more of a primary runs that was followed, unless the command holds keys that it may wait for.
pub(super) fn wait_for_requests(context: &Context<'_>) {
    if !context.client.denies_blocking() {
        context.server.replica().wait_for_requests();
    }
}

fn primary(args: Args<'_>) -> Result<Primary, Failure> {
    let port = parse_integer(&args[2]).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    let port = port.ok_or(Failure::fixed("ERR Invalid master port"))?;
    let host = std::str::from_utf8(&args[1]).ok().map(|host| host.trim_matches(['[', ']']));
    match host {
        Some(host) if !host.is_empty() && !host.contains(char::is_whitespace) => {
            Ok(Primary { host: host.to_owned(), port })
        }
        _ => Err(Failure::fixed("ERR the host of the primary must be a name or an address")),
    }
}

fn role(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let replies = &mut *context.replies;
    match context.server.replica().status() {
        None => {
            replies.array(3);
            replies.bulk(b"master");
            replies.integer(0);
            replies.array(0);
        }
        Some(status) => {
            replies.array(5);
            replies.bulk(b"slave");
            replies.bulk(status.primary.host.as_bytes());
            replies.integer(status.primary.port.into());
            replies.bulk(status.stage.name().as_bytes());
            replies.integer(status.offset as i64);
        }
    }
    Ok(Reply::Now)
}

/// Answers what the primary asks on its link. There is nothing for others: nobody can follow this server.
fn replconf(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if context.client.primary.is_none() {
        return Err(Failure::fixed("ERR a snugly server cannot be followed by replicas yet"));
    }
    if args.get(1).is_some_and(|word| is(word, "GETACK")) {
        context.server.replica().ask_for_offset();
    }
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
