//! CLIENT: who is connected, and what a connection is told about itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use snugly_protocol::resp::{Args, parse_integer};

use super::connection::set_name;
use super::options::is;
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, REGISTRY, ReplyMode, command, container};
use crate::clients::{ClientInfo, State};

const OWN: Flags = Flags::CONNECTION.and(Flags::ALLOW_BUSY);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("client", "2.4.0", "Looks at and changes connections.", &[
        command("getname", 2, OWN, NO_KEYS, "2.6.9", "Gives the connection's name.", getname),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, "5.0.0", "Lists the subcommands.", help),
        command("id", 2, OWN, NO_KEYS, "5.0.0", "Gives the connection's number.", id),
        command("info", 2, Flags::CONNECTION, NO_KEYS, "6.2.0", "Describes the connection.", info),
        command("kill", -3, Flags::ADMINISTRATION, NO_KEYS, "2.4.0", "Ends connections.", kill),
        command("list", -2, Flags::ADMINISTRATION, NO_KEYS, "2.4.0", "Describes the connections.", list),
        command("no-evict", 3, Flags::ADMINISTRATION.and(Flags::ALLOW_BUSY), NO_KEYS, "7.0.0", "Marks the connection as one to keep.", no_evict),
        command("no-touch", 3, OWN, NO_KEYS, "7.2.0", "Says whether reading a key counts as a use of it.", no_touch),
        command("reply", 3, OWN.and(Flags::NO_MULTI), NO_KEYS, "3.2.0", "Says whether commands are answered.", reply),
        command("setinfo", 4, OWN, NO_KEYS, "7.2.0", "Sets the name or version of the client's library.", setinfo),
        command("setname", 3, OWN, NO_KEYS, "2.6.9", "Gives the connection a name.", setname),
    ]),
];

/// Whether a label has only printable characters, and no spaces (it becomes part of a line of CLIENT LIST).
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
    Ok(())
}

fn setname(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    set_name(context.client, &args[2])?;
    context.ok()
}

fn setinfo(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let mut labels = context.client.info.labels.lock();
    let label = if is(&args[2], "lib-name") {
        &mut labels.library
    } else if is(&args[2], "lib-ver") {
        &mut labels.library_version
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
    Ok(())
}

fn list(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let filter = Filter::parse(args.from(2), false)?;
    let mut lines = Vec::new();
    for client in context.server.clients().list().iter().filter(|client| filter.admits(context, client)) {
        lines.extend_from_slice(&describe(context, client));
        lines.push(b'\n');
    }
    context.replies.verbatim(b"txt", &lines);
    Ok(())
}

fn describe(context: &Context<'_>, client: &ClientInfo) -> Vec<u8> {
    let last = REGISTRY.rows().get(client.last_command.load(Ordering::Relaxed));
    client.describe(last.map_or("NULL", |row| &row.full_name), context.session.now())
}

fn kill(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if args.len() == 3 {
        let address = std::str::from_utf8(&args[2]).ok().and_then(|text| text.parse::<SocketAddr>().ok());
        let filter = Filter { address, ..Filter::default() };
        if address.is_none() || kill_all(context, &filter) == 0 {
            return Err(Failure::fixed("ERR No such client"));
        }
        return context.ok();
    }
    let filter = Filter::parse(args.from(2), true)?;
    let killed = kill_all(context, &filter);
    context.integer(killed)
}

fn kill_all(context: &mut Context<'_>, filter: &Filter) -> i64 {
    let mut killed = 0;
    for client in context.server.clients().list() {
        if !filter.admits(context, &client) {
            continue;
        }
        killed += 1;
        if Arc::ptr_eq(&client, &context.client.info) {
            context.client.closing = true;
        } else {
            client.kill();
        }
    }
    killed
}

/// Which connections CLIENT LIST and CLIENT KILL are about.
#[derive(Default)]
struct Filter {
    ids: Vec<u64>,
    address: Option<SocketAddr>,
    local_address: Option<SocketAddr>,
    min_age_seconds: u64,
    /// A type or user that no client here has was asked for.
    nobody: bool,
    skip_me: bool,
}

impl Filter {
    fn parse(args: Args<'_>, skip_me: bool) -> Result<Filter, Failure> {
        let mut filter = Filter { skip_me, ..Filter::default() };
        let mut at = 0;
        while let Some(option) = args.get(at) {
            let value = args.get(at + 1).ok_or(Failure::SYNTAX)?;
            at += 2;
            if is(option, "ID") {
                filter.ids.push(client_id(value)?);
                while let Some(id) = args.get(at).and_then(parse_integer).filter(|id| *id > 0) {
                    filter.ids.push(id as u64);
                    at += 1;
                }
            } else if is(option, "TYPE") {
                filter.nobody |= !known_type(value)?;
            } else if is(option, "ADDR") {
                filter.address = Some(address(value));
            } else if is(option, "LADDR") {
                filter.local_address = Some(address(value));
            } else if is(option, "USER") {
                if value != b"default" {
                    let user = String::from_utf8_lossy(value);
                    return Err(Failure::new(format!("ERR No such user '{user}'")));
                }
            } else if is(option, "MAXAGE") {
                let age = parse_integer(value)
                    .ok_or(Failure::fixed("ERR maxage is not an integer or out of range"))?;
                filter.min_age_seconds = u64::try_from(age)
                    .ok()
                    .filter(|age| *age > 0)
                    .ok_or(Failure::fixed("ERR maxage should be greater than 0"))?;
            } else if is(option, "SKIPME") {
                filter.skip_me = yes_or_no(value)?;
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(filter)
    }

    fn admits(&self, context: &Context<'_>, client: &ClientInfo) -> bool {
        !self.nobody
            && (self.ids.is_empty() || self.ids.contains(&client.id))
            && self.address.is_none_or(|address| address == client.address)
            && self.local_address.is_none_or(|address| address == client.local_address)
            && client.age_seconds(context.session.now()) >= self.min_age_seconds
            && !(self.skip_me && client.id == context.client.info.id)
    }
}

fn client_id(text: &[u8]) -> Result<u64, Failure> {
    let id = parse_integer(text).ok_or(Failure::SYNTAX)?;
    u64::try_from(id)
        .ok()
        .filter(|id| *id > 0)
        .ok_or(Failure::fixed("ERR client-id should be greater than 0"))
}

/// Whether a type of client is the one that all clients here have.
fn known_type(name: &[u8]) -> Result<bool, Failure> {
    const OTHERS: [&str; 5] = ["master", "primary", "replica", "slave", "pubsub"];
    if is(name, "normal") {
        return Ok(true);
    }
    if OTHERS.iter().any(|other| is(name, other)) {
        return Ok(false);
    }
    Err(Failure::new([b"ERR Unknown client type '", name, b"'"].concat()))
}

/// An address to compare with; one that is none matches nobody.
fn address(text: &[u8]) -> SocketAddr {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    parsed.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)))
}

fn yes_or_no(text: &[u8]) -> Result<bool, Failure> {
    match text {
        _ if is(text, "yes") => Ok(true),
        _ if is(text, "no") => Ok(false),
        _ => Err(Failure::SYNTAX),
    }
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

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "client")
}
