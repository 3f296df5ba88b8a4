//! Publish and subscribe: messages to all clients that listen to a channel.
//!
//! It knows the commands and their answers, and leaves to `channels` who listens to what.

use snugly_glob::Pattern;
use snugly_protocol::resp::{Args, Protocol};

use super::permissions::may_listen;
use super::registry::reply_help;
use super::{
    ALL_KEYS, Client, Command, Context, Failure, Flags, NO_KEYS, ONE_KEY, Outcome, Reply, command, container,
};
use crate::clients::State;
use crate::subscriptions::Kind;

const ASKING: Flags = Flags::ANY_TIME.and(Flags::PUBSUB);
const LISTENING: Flags =
    Flags::CONNECTION.and(Flags::PUBSUB).and(Flags::WHILE_SUBSCRIBED).and(Flags::ANSWERS_PUSHES);
const PUBLISHING: Flags = ASKING.and(Flags::FAST).and(Flags::PAUSED_AS_WRITE);

// A cluster places shard channels like keys, so clients are told where these are.
#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("psubscribe", -2, LISTENING, NO_KEYS, psubscribe),
    command("publish", 3, PUBLISHING, NO_KEYS, publish),
    container("pubsub", &[
        command("channels", -2, ASKING, NO_KEYS, channels),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("numpat", 2, ASKING, NO_KEYS, number_of_patterns),
        command("numsub", -2, ASKING, NO_KEYS, listeners),
        command("shardchannels", -2, ASKING, NO_KEYS, shard_channels),
        command("shardnumsub", -2, ASKING, NO_KEYS, shard_listeners),
    ]),
    command("punsubscribe", -1, LISTENING, NO_KEYS, punsubscribe),
    command("spublish", 3, PUBLISHING, ONE_KEY, spublish),
    command("ssubscribe", -2, LISTENING, ALL_KEYS, ssubscribe),
    command("subscribe", -2, LISTENING, NO_KEYS, subscribe),
    command("sunsubscribe", -1, LISTENING, ALL_KEYS, sunsubscribe),
    command("unsubscribe", -1, LISTENING, NO_KEYS, unsubscribe),
];

/// Returns whether a client listens for messages that it cannot tell from replies, and so may ask for little.
pub(super) fn is_subscriber(client: &Client) -> bool {
    client.info.states.has(State::SUBSCRIBED) && client.info.protocol() == Protocol::Resp2
}

fn subscribe(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    enter(context, args, Kind::Channel, b"subscribe")
}

fn psubscribe(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    enter(context, args, Kind::Pattern, b"psubscribe")
}

fn ssubscribe(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    enter(context, args, Kind::ShardChannel, b"ssubscribe")
}

fn unsubscribe(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    leave(context, args, Kind::Channel, b"unsubscribe")
}

fn punsubscribe(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    leave(context, args, Kind::Pattern, b"punsubscribe")
}

fn sunsubscribe(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    leave(context, args, Kind::ShardChannel, b"sunsubscribe")
}

fn publish(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    send(context, args, Kind::Channel)
}

fn spublish(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    send(context, args, Kind::ShardChannel)
}

fn enter(context: &mut Context<'_>, args: Args<'_>, kind: Kind, action: &[u8]) -> Outcome {
    for name in args.from(1) {
        context.server.channels().enter(&context.client.info, kind, name);
        confirm(context, kind, action, Some(name));
    }
    // A permission may have been taken away before the client was seen to listen.
    let has_changed = context.server.accounts().version() != context.client.users_version;
    if has_changed && !may_listen(context.server, &context.client.info) {
        context.client.closing = true;
    }
    Ok(Reply::Now)
}

fn leave(context: &mut Context<'_>, args: Args<'_>, kind: Kind, action: &[u8]) -> Outcome {
    if args.len() > 1 {
        args.from(1).iter().for_each(|name| leave_one(context, kind, action, name));
        return Ok(Reply::Now);
    }
    let names: Vec<_> = context.client.info.subscriptions.lock().of(kind).iter().cloned().collect();
    if names.is_empty() {
        confirm(context, kind, action, None);
    }
    names.iter().for_each(|name| leave_one(context, kind, action, name));
    Ok(Reply::Now)
}

fn leave_one(context: &mut Context<'_>, kind: Kind, action: &[u8], name: &[u8]) {
    let info = &context.client.info;
    context.server.channels().leave(info, kind, name);
    // No message follows the confirmation that there will be none. In a transaction's reply there is no place for any.
    if !info.states.has(State::IN_TRANSACTION) {
        info.socket.outbox.drain_into(context.replies.as_mut_vec());
    }
    confirm(context, kind, action, Some(name));
}

/// Replies with the action, and the number of names that the client listens to now.
fn confirm(context: &mut Context<'_>, kind: Kind, action: &[u8], name: Option<&[u8]>) {
    let replies = &mut *context.replies;
    replies.push(3);
    replies.bulk(action);
    match name {
        Some(name) => replies.bulk(name),
        None => replies.null(),
    }
    let count = context.client.info.subscriptions.lock().counted_with(kind);
    replies.integer(count as i64);
}

fn send(context: &mut Context<'_>, args: Args<'_>, kind: Kind) -> Outcome {
    let delivery = context.server.channels().publish(kind, &args[1], &args[2]);
    delivery.overfull.iter().for_each(|client| context.server.end_over_output_limit(client));
    context.integer(delivery.receivers as i64)
}

fn channels(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    names(context, args, Kind::Channel)
}

fn shard_channels(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    names(context, args, Kind::ShardChannel)
}

fn names(context: &mut Context<'_>, args: Args<'_>, kind: Kind) -> Outcome {
    if args.len() > 3 {
        return Err(Failure::subcommand_syntax("pubsub", &args[1]));
    }
    let pattern = args.get(2).map(|pattern| Pattern::new(pattern, false));
    let mut names = context.replies.begin_strings();
    context.server.channels().each_name(kind, |name| {
        if pattern.as_ref().is_none_or(|pattern| pattern.matches(name)) {
            names.push(name);
        }
    });
    context.replies.strings(names);
    Ok(Reply::Now)
}

fn listeners(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    numbers(context, args, Kind::Channel)
}

fn shard_listeners(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    numbers(context, args, Kind::ShardChannel)
}

fn numbers(context: &mut Context<'_>, args: Args<'_>, kind: Kind) -> Outcome {
    let names = args.from(2);
    context.replies.array(names.len() * 2);
    for name in names {
        context.replies.bulk(name);
        context.replies.integer(context.server.channels().listeners(kind, name) as i64);
    }
    Ok(Reply::Now)
}

fn number_of_patterns(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let count = context.server.channels().count(Kind::Pattern);
    context.integer(count as i64)
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "pubsub")
}
