//! A client's own connection: greeting, passwords, databases.

use std::time::Duration;

use snugly_protocol::resp::{Args, Protocol, parse_integer};

use super::client::valid_label;
use super::moves::database;
use super::options::is;
use super::registry::as_c_string;
use super::{
    Client, Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, ReplyMode, command, permissions,
    pubsub, transactions,
};
use crate::clients::State;
use crate::info::REDIS_VERSION;

/// Flags of commands that also work inside a transaction and while the client listens for messages.
const ALWAYS: Flags = Flags::HANDSHAKE.and(Flags::AT_ONCE).and(Flags::WHILE_SUBSCRIBED);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("auth", -2, Flags::HANDSHAKE, NO_KEYS, auth),
    command("echo", 2, Flags::ANY_TIME.and(Flags::FAST), NO_KEYS, echo),
    command("hello", -1, Flags::HANDSHAKE, NO_KEYS, hello),
    command("ping", -1, Flags::FAST.and(Flags::WHILE_SUBSCRIBED), NO_KEYS, ping),
    command("quit", -1, ALWAYS, NO_KEYS, quit),
    command("reset", 1, ALWAYS, NO_KEYS, reset),
    command("select", 2, Flags::ANY_TIME.and(Flags::FAST).and(Flags::ALLOW_BUSY), NO_KEYS, select),
];

/// Delay of the answer to a wrong password, so that a client cannot try many.
const AFTER_WRONG_PASSWORD: Duration = Duration::from_millis(100);

fn auth(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let users = context.server.accounts().users();
    let default = users.default_user();
    let (user, password) = match args.len() {
        2 if default.needs_no_password => {
            return Err(Failure::fixed(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
            ));
        }
        2 => (&default.name[..], &args[1]),
        3 => (&args[1], &args[2]),
        _ => return Err(Failure::SYNTAX),
    };
    authenticate(context, &args[0], user, password)?;
    context.ok()
}

/// Checks a name and a password, and lets the client in as that user if they are right. `way` is what ACL LOG shows of how
/// they were given.
///
/// # Errors
/// The refusal, which is to be held back.
pub(crate) fn authenticate(
    context: &mut Context<'_>,
    way: &[u8],
    name: &[u8],
    password: &[u8],
) -> Result<(), Failure> {
    let accounts = context.server.accounts();
    // In this order, so that a change in between is followed.
    let (version, users) = (accounts.version(), accounts.users());
    // Somebody is asked whatever the name, so that the time does not tell which there are.
    let user = users.get(name).unwrap_or(users.default_user());
    if !user.admits(password) || user.name != name {
        permissions::note_failed_login(context, way, name);
        let failure = Failure::fixed("WRONGPASS invalid username-password pair or user is disabled.");
        return Err(failure.held_back(AFTER_WRONG_PASSWORD));
    }
    context.client.users_version = version;
    context.client.become_user(user.clone());
    context.client.authenticated = true;
    Ok(())
}

fn echo(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    context.replies.bulk(&args[1]);
    Ok(Reply::Now)
}

fn hello(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let protocol = match args.get(1) {
        None => context.client.info.protocol(),
        Some(version) => match parse_integer(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(Failure::fixed("NOPROTO unsupported protocol version")),
            None => return Err(Failure::fixed("ERR Protocol version is not an integer or out of range")),
        },
    };
    let (mut name, mut login) = (None, None);
    let mut rest = args.from(2).iter();
    while let Some(arg) = rest.next() {
        if is(arg, "AUTH") && rest.len() >= 2 {
            let (user, password) = (rest.next().unwrap_or_default(), rest.next().unwrap_or_default());
            login = Some((user, password));
        } else if is(arg, "SETNAME") && rest.len() >= 1 {
            name = rest.next();
        } else {
            return Err(Failure::new(
                [b"ERR Syntax error in HELLO option '", as_c_string(arg, usize::MAX), b"'"].concat(),
            ));
        }
    }
    if let Some((user, password)) = login {
        authenticate(context, &args[0], user, password)?;
    }
    if !context.client.authenticated {
        return Err(Failure::fixed(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        set_name(context.client, name)?;
    }
    context.client.speak(protocol);
    context.replies.set_protocol(protocol);
    greet(context, protocol);
    Ok(Reply::Now)
}

fn greet(context: &mut Context<'_>, protocol: Protocol) {
    let replies = &mut context.replies;
    replies.map(7);
    replies.bulk(b"server");
    replies.bulk(b"snugly");
    replies.bulk(b"version");
    replies.bulk(REDIS_VERSION.as_bytes());
    replies.bulk(b"proto");
    replies.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    replies.bulk(b"id");
    replies.integer(context.client.info.id as i64);
    replies.bulk(b"mode");
    replies.bulk(b"standalone");
    replies.bulk(b"role");
    replies.bulk(if context.server.replica().is_following() { b"replica" } else { b"master" });
    replies.bulk(b"modules");
    replies.array(0);
}

/// Sets the connection's name; an empty one removes it.
pub(super) fn set_name(client: &Client, name: &[u8]) -> Result<(), Failure> {
    if !valid_label(name) {
        return Err(Failure::fixed(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    client.info.labels.lock().name = name.to_vec();
    Ok(())
}

fn ping(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    match args.len() {
        1 | 2 if pubsub::is_subscriber(context.client) => {
            context.replies.array(2);
            context.replies.bulk(b"pong");
            context.replies.bulk(args.get(1).unwrap_or_default());
        }
        1 => context.replies.simple("PONG"),
        2 => context.replies.bulk(&args[1]),
        _ => return Err(Failure::wrong_arity("ping")),
    }
    Ok(Reply::Now)
}

fn quit(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.client.closing = true;
    context.ok()
}

fn reset(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    transactions::discard_all(context.client, context.server.key_watch());
    let client = &mut *context.client;
    context.server.monitors().leave(&client.info);
    client.select(0);
    client.speak(Protocol::Resp2);
    client.reply_mode = ReplyMode::On;
    let default = context.server.accounts().users().default_user().clone();
    client.authenticated = default.is_on && default.needs_no_password;
    client.become_user(default);
    client.info.labels.lock().name.clear();
    client.info.states.clear(State::NO_EVICT.and(State::NO_TOUCH));
    context.server.channels().leave_all(&client.info);
    context.server.key_watch().untrack(&client.info);
    context.replies.set_protocol(Protocol::Resp2);
    context.replies.simple("RESET");
    Ok(Reply::Now)
}

fn select(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let database = database(context, &args[1])?;
    context.client.select(database);
    context.ok()
}
