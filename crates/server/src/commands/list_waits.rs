//! Lists that are waited for: a command whose keys have no lists waits for one, and is served by whoever makes it, behind
//! the command or the transaction that does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use snugly_protocol::resp::{Args, ReplyBuffer, RequestQueue};
use snugly_store::{End, Kind};

use super::list_pops::{FirstOf, move_one, pop_first, reply_element};
use super::lists::end;
use super::record;
use super::{
    ALL_KEYS_BUT_LAST, COUNTED_KEYS_BEHIND_ARGUMENT, Client, Command, Context, Failure, Flags, ListWait,
    Outcome, REGISTRY, Reply, TWO_KEYS, Wait, command,
};
use crate::clients::State;
use crate::counters::WorkerStats;
use crate::key_events;
use crate::key_watch::{Answer, BlockedOn, Waiter, act_for};
use crate::long_double::LongDouble;
use crate::replies::Replies;
use crate::state::Server;

const POP: Flags = Flags::WRITE.and(Flags::BLOCKING);
const MOVE: Flags = Flags::WRITE_MEMORY.and(Flags::BLOCKING);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("blpop", -3, POP, ALL_KEYS_BUT_LAST, blpop),
    command("brpop", -3, POP, ALL_KEYS_BUT_LAST, brpop),
    command("blmpop", -5, POP.and(Flags::MOVABLE_KEYS), COUNTED_KEYS_BEHIND_ARGUMENT, blmpop),
    command("blmove", 6, MOVE, TWO_KEYS, blmove),
    command("brpoplpush", 4, MOVE, TWO_KEYS, brpoplpush),
];

fn blpop(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    pop(context, args, End::Left)
}

fn brpop(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    pop(context, args, End::Right)
}

fn pop(context: &mut Context<'_>, args: Args<'_>, end: End) -> Outcome {
    let last = args.len() - 1;
    let timeout = timeout(context, &args[last])?;
    let keys = args.from(1).iter().take(last - 1).map(Box::from).collect();
    let wanted = BlockedOn::Elements { keys, end, count: None };
    take_or_wait(context, args, wanted, timeout, ReplyBuffer::null_array)
}

fn blmpop(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let FirstOf { keys, end, count } = FirstOf::parse(args.from(2))?;
    let timeout = timeout(context, &args[1])?;
    let keys = keys.into_iter().map(Box::from).collect();
    let wanted = BlockedOn::Elements { keys, end, count: Some(count) };
    take_or_wait(context, args, wanted, timeout, ReplyBuffer::null_array)
}

fn blmove(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (from_end, to_end) = (end(&args[3])?, end(&args[4])?);
    let timeout = timeout(context, &args[5])?;
    let wanted = BlockedOn::Move { from: (args[1].into(), from_end), to: (args[2].into(), to_end) };
    take_or_wait(context, args, wanted, timeout, ReplyBuffer::null)
}

fn brpoplpush(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let timeout = timeout(context, &args[3])?;
    let wanted = BlockedOn::Move { from: (args[1].into(), End::Right), to: (args[2].into(), End::Left) };
    take_or_wait(context, args, wanted, timeout, ReplyBuffer::null)
}

/// The timeout, given in seconds; 0 is for ever.
fn timeout(context: &Context<'_>, arg: &[u8]) -> Result<Duration, Failure> {
    const OUT_OF_RANGE: Failure = Failure::fixed("ERR timeout is out of range");
    let seconds =
        LongDouble::parse(arg).ok_or(Failure::fixed("ERR timeout is not a float or out of range"))?;
    let milliseconds =
        u64::try_from(seconds.thousandfold()).map_err(|_| Failure::fixed("ERR timeout is negative"))?;
    match milliseconds.checked_add(context.session.now()) {
        Some(end) if end <= i64::MAX as u64 => {}
        _ => return Err(OUT_OF_RANGE),
    }
    Ok(if milliseconds == 0 { Duration::MAX } else { Duration::from_millis(milliseconds) })
}

/// Takes what is wanted if it is there, or lets the client wait for it; where it may not, the answer is `nothing`.
fn take_or_wait(
    context: &mut Context<'_>,
    args: Args<'_>,
    wanted: BlockedOn,
    timeout: Duration,
    nothing: fn(&mut ReplyBuffer),
) -> Outcome {
    let mut request = RequestQueue::default();
    request.push(args);
    let (client, database) = (context.client.info.clone(), context.client.database);
    let waiter = Arc::new(Waiter::new(client, database, wanted, request));
    // Held until the client is known to wait, so that no list comes into being unnoticed.
    context.exclusively(waiter.wanted.touched_keys(), |context| {
        if take(context, &waiter.wanted)? {
            return Ok(Reply::Now);
        }
        if context.client.denies_blocking() {
            nothing(context.replies);
            return Ok(Reply::Now);
        }
        context.server.key_watch().wait(&waiter);
        Ok(Reply::Later(Wait::List(ListWait { waiter: waiter.clone(), timeout, silent: false })))
    })
}

/// Takes what is wanted and answers it; returns whether it is there.
fn take(context: &mut Context<'_>, wanted: &BlockedOn) -> Result<bool, Failure> {
    match wanted {
        BlockedOn::Elements { keys, end, count: Some(count) } => {
            pop_first(context, keys.iter().map(|key| &**key), *end, *count)
        }
        BlockedOn::Elements { keys, end, count: None } => {
            context.pops(*end);
            for key in keys {
                let Context { session, client, replies, .. } = &mut *context;
                let found = session.list_pop(client.database, key, *end, 1, |_, element| {
                    replies.array(2);
                    replies.bulk(key);
                    reply_element(replies, element);
                })?;
                if found {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        BlockedOn::Move { from, to } => move_one(context, (&from.0, from.1), (&to.0, to.1)),
    }
}

/// Serves the clients that wait for keys that have become lists, in the order in which they came. It runs behind every
/// command, when no shard is held.
pub(crate) fn serve_waiting(context: &mut Context<'_>) {
    let key_watch = context.server.key_watch();
    if !key_watch.has_ready() {
        return;
    }
    let _alone = key_watch.serve_alone();
    loop {
        let ready = key_watch.take_ready();
        if ready.is_empty() {
            break;
        }
        for place in &ready {
            for waiter in key_watch.waiters(place) {
                let value = context.session.peek(place.0, &place.1);
                if !value.is_ok_and(|value| value.is_some_and(|value| value.kind() == Kind::List)) {
                    break;
                }
                serve(context, &waiter);
            }
        }
    }
    act_for(&context.client.info);
    key_events::rest();
}

/// Runs a client's command in its name, as long as it waits for that.
fn serve(context: &mut Context<'_>, waiter: &Arc<Waiter>) {
    let Some(mut serving) = context.server.key_watch().begin_serving(waiter) else { return };
    act_for(&waiter.client);
    context.session.set_touches(!waiter.client.states.has(State::NO_TOUCH));
    let Context { session, server, stats, .. } = context;
    let mut replies = Replies::new(waiter.client.protocol());
    let mut client = Client::new(waiter.client.clone(), server.accounts());
    (client.authenticated, client.database) = (true, waiter.database);
    let mut served = Context { session, client: &mut client, server, replies: &mut replies, stats };
    let started = Instant::now();
    let is_answered = take(&mut served, &waiter.wanted).unwrap_or_else(|failure| {
        record::error(&served, &failure);
        served.replies.truncate(0);
        served.replies.error(failure.text());
        true
    });
    serving.answer = is_answered.then(|| {
        note(server, stats, waiter, started.elapsed(), replies.as_bytes());
        Answer { reply: replies.as_bytes().to_vec(), ticket: session.ticket(), ending: None }
    });
}

/// Notes a command that has waited for nothing.
pub(crate) fn note_ended(server: &Server, stats: &WorkerStats, waiter: &Waiter, reply: &[u8]) {
    if let Some(text) = reply.strip_prefix(b"-") {
        stats.note_error(text);
        if let Some(place) = waiter.request.get(0).and_then(|args| REGISTRY.find(args)) {
            stats.commands[place].rejected.add(1);
        }
    }
    note(server, stats, waiter, Duration::ZERO, b"");
}

fn note(server: &Server, stats: &WorkerStats, waiter: &Waiter, elapsed: Duration, reply: &[u8]) {
    let request = waiter.request.get(0).and_then(|args| Some((REGISTRY.find(args)?, args)));
    let run = record::Run { elapsed, failed: reply.first() == Some(&b'-'), reply_bytes: reply.len() };
    if let Some(request) = request {
        record::answered(server, stats, &waiter.client, request, &run);
    }
}
