//! CLIENT: the connections, and information for a connection about itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use snugly_protocol::resp::{Args, parse_integer};
use snugly_store::system_time;

use super::client_filter::Filter;
use super::client_tracking;
use super::connection::set_name;
use super::options::{integer, is};
use super::registry::reply_help;
use super::{
    Command, Context, Failure, Flags, NO_KEYS, Outcome, REGISTRY, Reply, ReplyMode, command, container,
};
use crate::clients::{ClientInfo, State};
use crate::key_watch::Ending;
use crate::pause::Scope;

const OWN: Flags = Flags::CONNECTION.and(Flags::ALLOW_BUSY);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("client", &[
        command("caching", 3, OWN, NO_KEYS, client_tracking::caching),
        command("capa", -3, OWN, NO_KEYS, capa),
        command("getname", 2, OWN, NO_KEYS, getname),
        command("getredir", 2, OWN, NO_KEYS, client_tracking::getredir),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("id", 2, OWN, NO_KEYS, id),
        command("import-source", 3, Flags::CONNECTION, NO_KEYS, import_source),
        command("info", 2, Flags::CONNECTION, NO_KEYS, info),
        command("kill", -3, Flags::ADMINISTRATION, NO_KEYS, kill),
        command("list", -2, Flags::ADMINISTRATION, NO_KEYS, list),
        command("no-evict", 3, Flags::ADMINISTRATION.and(Flags::ALLOW_BUSY), NO_KEYS, no_evict),
        command("no-touch", 3, OWN, NO_KEYS, no_touch),
        command("pause", -3, Flags::ADMINISTRATION, NO_KEYS, pause),
        command("reply", 3, OWN.and(Flags::NO_MULTI), NO_KEYS, reply),
        command("setinfo", 4, OWN, NO_KEYS, setinfo),
        command("setname", 3, OWN, NO_KEYS, setname),
        command("tracking", -3, Flags::CONNECTION, NO_KEYS, client_tracking::tracking),
        command("trackinginfo", 2, Flags::CONNECTION, NO_KEYS, client_tracking::trackinginfo),
        command("unblock", -3, Flags::ADMINISTRATION, NO_KEYS, unblock),
        command("unpause", 2, Flags::ADMINISTRATION, NO_KEYS, unpause),
    ]),
];

/// Returns whether a label has only printable characters, and no spaces (it becomes part of a line of CLIENT
/// LIST).
pub(super) fn valid_label(label: &[u8]) -> bool {
    label.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn id(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.integer(context.client.info.id as i64)
}

fn getname(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let labels = context.client.info.labels.lock();
    if labels.name.is_empty() {
        context.replies.null()
    } else {
        context.replies.bulk(&labels.name)
    }
    Ok(Reply::Now)
}

fn setname(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_name(context.client, &args[2])?;
    context.ok()
}

fn setinfo(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let mut labels = context.client.info.labels.lock();
    let label = if is(&args[2], "lib-name") {
        &mut labels.lib_name
    } else if is(&args[2], "lib-ver") {
        &mut labels.lib_ver
    } else {
        return Err(Failure::new([b"ERR Unrecognized option '", &args[2], b"'"].concat()));
    };
    if !valid_label(&args[3]) {
        let rule: &[u8] = b" cannot contain spaces, newlines or special characters.";
        return Err(Failure::new([b"ERR ", &args[2], rule].concat()));
    }
    *label = args[3].to_vec();
    drop(labels);
    context.ok()
}

fn info(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let mut line = describe(context, &context.client.info);
    line.push(b'\n');
    context.replies.verbatim(b"txt", &line);
    Ok(Reply::Now)
}

fn list(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if args.len() == 3 {
        return Err(Failure::SYNTAX);
    }
    let filter = Filter::parse(args.from(2), false, context)?;
    let mut lines = Vec::new();
    for client in context.server.clients().list().iter().filter(|client| filter.admits(context, client)) {
        lines.extend_from_slice(&describe(context, client));
        lines.push(b'\n');
    }
    context.replies.verbatim(b"txt", &lines);
    Ok(Reply::Now)
}

/// The line of CLIENT LIST about a client.
pub(super) fn describe(context: &Context<'_>, client: &ClientInfo) -> Vec<u8> {
    let last = REGISTRY.rows().get(client.last_command.load(Ordering::Relaxed));
    client.describe(last.map_or("NULL", |row| &row.full_name), context.session.now())
}

fn kill(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if args.len() == 3 {
        return match kill_all(context, &Filter::by_address(&args[2])) {
            0 => Err(Failure::fixed("ERR No such client")),
            _ => context.ok(),
        };
    }
    let filter = Filter::parse(args.from(2), true, context)?;
    let killed = kill_all(context, &filter);
    context.integer(killed)
}

fn kill_all(context: &mut Context<'_>, filter: &Filter<'_>) -> i64 {
    let mut killed = 0;
    for client in context.server.clients().list() {
        if !filter.admits(context, &client) {
            continue;
        }
        killed += 1;
        if Arc::ptr_eq(&client, &context.client.info) {
            context.client.closing = true;
        } else {
            context.server.clients().kill(&client);
            context.server.key_watch().unblock(client.id, Ending::Gone);
        }
    }
    killed
}

fn no_evict(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    switch(context, State::NO_EVICT, &args[2])
}

fn no_touch(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    switch(context, State::NO_TOUCH, &args[2])
}

fn switch(context: &mut Context<'_>, state: State, arg: &[u8]) -> Outcome {
    let on = match arg {
        _ if is(arg, "ON") => true,
        _ if is(arg, "OFF") => false,
        _ => return Err(Failure::SYNTAX),
    };
    context.client.info.states.switch(state, on);
    context.ok()
}

fn reply(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    context.client.reply_mode = match &args[2] {
        mode if is(mode, "ON") => ReplyMode::On,
        mode if is(mode, "OFF") => ReplyMode::Off,
        mode if is(mode, "SKIP") && context.client.reply_mode == ReplyMode::Off => ReplyMode::Off,
        mode if is(mode, "SKIP") => ReplyMode::SkipNext,
        _ => return Err(Failure::SYNTAX),
    };
    context.ok()
}

fn capa(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if args.from(2).iter().any(|capability| is(capability, "redirect")) {
        context.client.info.states.set(State::CAN_REDIRECT);
    }
    context.ok()
}

fn import_source(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if !is(&args[2], "OFF") {
        return Err(Failure::fixed("ERR Server is not in import mode"));
    }
    context.ok()
}

fn pause(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let scope = match args.get(3).filter(|_| args.len() == 4) {
        None => Scope::All,
        Some(mode) if is(mode, "ALL") => Scope::All,
        Some(mode) if is(mode, "WRITE") => Scope::Writes,
        Some(_) => return Err(Failure::fixed("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let milliseconds =
        parse_integer(&args[2]).ok_or(Failure::fixed("ERR timeout is not an integer or out of range"))?;
    let milliseconds = u64::try_from(milliseconds).map_err(|_| Failure::fixed("ERR timeout is negative"))?;
    let until = system_time() + milliseconds;
    if until > i64::MAX as u64 {
        return Err(Failure::fixed("ERR timeout is out of range"));
    }
    context.server.pause().begin(until, scope);
    context.server.store().keep_expired(true);
    context.ok()
}

fn unpause(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.server.pause().end();
    context.ok()
}

fn unblock(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let ending = match args.get(3).filter(|_| args.len() == 4) {
        None => Ending::TimedOut,
        Some(reason) if is(reason, "TIMEOUT") => Ending::TimedOut,
        Some(reason) if is(reason, "ERROR") => Ending::Unblocked,
        Some(_) => return Err(Failure::fixed("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let client = integer(&args[2])?;
    let unblocked = context.server.key_watch().unblock(client as u64, ending);
    context.integer(unblocked.into())
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "client")
}
