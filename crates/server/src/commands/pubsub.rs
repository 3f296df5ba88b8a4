//! SUBSCRIBE and UNSUBSCRIBE, for the one channel that there is: that of changed keys, where clients listen that speak
//! RESP2 and let the messages of another connection be redirected to theirs (CLIENT TRACKING).

use snugly_protocol::resp::{Args, Protocol};

use super::{Client, Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command};
use crate::clients::State;
use crate::key_watch::CHANNEL;

const LISTENING: Flags = Flags::CONNECTION.and(Flags::PUBSUB).and(Flags::WHILE_SUBSCRIBED);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("subscribe", -2, LISTENING, NO_KEYS, subscribe),
    command("unsubscribe", -1, LISTENING, NO_KEYS, unsubscribe),
];

/// Returns whether a client listens for messages that it cannot tell from replies, and so may ask for little.
pub(super) fn is_subscriber(client: &Client) -> bool {
    client.info.states.has(State::SUBSCRIBED) && client.info.protocol() == Protocol::Resp2
}

fn subscribe(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let channels = args.from(1);
    if channels.iter().any(|channel| channel != CHANNEL) {
        let only = String::from_utf8_lossy(CHANNEL);
        return Err(Failure::new(format!(
            "ERR this server publishes nothing but changes of keys: the only channel is {only}"
        )));
    }
    context.client.info.states.set(State::SUBSCRIBED);
    channels.iter().for_each(|channel| confirm(context, b"subscribe", Some(channel)));
    Ok(Reply::Now)
}

fn unsubscribe(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let states = &context.client.info.states;
    if args.len() == 1 {
        let left = states.has(State::SUBSCRIBED).then_some(CHANNEL);
        states.clear(State::SUBSCRIBED);
        confirm(context, b"unsubscribe", left);
    }
    for channel in args.from(1) {
        if channel == CHANNEL {
            context.client.info.states.clear(State::SUBSCRIBED);
        }
        confirm(context, b"unsubscribe", Some(channel));
    }
    Ok(Reply::Now)
}

/// Replies with the action, and the number of channels that the client listens to now.
fn confirm(context: &mut Context<'_>, what: &[u8], channel: Option<&[u8]>) {
    let replies = &mut *context.replies;
    replies.push(3);
    replies.bulk(what);
    match channel {
        Some(channel) => replies.bulk(channel),
        None => replies.null(),
    }
    replies.integer(context.client.info.states.has(State::SUBSCRIBED).into());
}
