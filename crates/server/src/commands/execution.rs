//! Running a request: whether it may run, now or later, and what is answered and noted if it does.
//!
//! It knows the rules of every command: the table's rows, the client's state, pauses, transactions. The work of a
//! command is its function's business, and the rules of the primary's stream are for `primary`.

use std::sync::atomic::Ordering;
use std::time::Instant;

use snugly_protocol::resp::Args;

use super::record::{self, Run};
use super::{
    Context, Failure, Flags, REGISTRY, Reply, ReplyMode, Wait, client_tracking, events, permissions, primary,
    pubsub, scripting, transactions,
};
use crate::clients::State;
use crate::key_events;
use crate::pause::Scope;
use crate::state::Server;

const DEBUG_NOT_ALLOWED: Failure = Failure::fixed(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
);

/// The outcome of a request.
pub(crate) enum Fate {
    Answered(Reply),
    /// Nothing was done: it has to wait for the end of a pause.
    Postponed,
}

/// Runs one request, whose command is at this place in the registry, and writes its reply.
pub(crate) fn execute(context: &mut Context<'_>, command: Option<usize>, args: Args<'_>) -> Fate {
    if context.client.primary.is_some() {
        return primary::execute(context, command, args);
    }
    let start = context.replies.as_bytes().len();
    context.replies.set_protocol(context.client.info.protocol());
    permissions::follow_users(context);
    let mode = context.client.reply_mode;
    if mode == ReplyMode::SkipNext {
        context.client.reply_mode = ReplyMode::Skip;
    }
    let admission = match command {
        Some(place) => admit(context, place, args),
        None if context.client.authenticated => Err(REGISTRY.explain(args)),
        None => Err(Failure::NOT_AUTHENTICATED),
    };
    let answers_pushes = answers_pushes(&admission);
    let mut reply = match admission {
        Ok(Admission::Run(place)) => call(context, place, args),
        Ok(Admission::Queued) => {
            context.replies.simple("QUEUED");
            Reply::Now
        }
        Ok(Admission::Postponed) => {
            context.client.reply_mode = mode;
            return Fate::Postponed;
        }
        Err(failure) => {
            let failure = transactions::refuse(context, command, failure);
            record::error(context, &failure);
            context.replies.error(failure.text());
            Reply::Now
        }
    };
    client_tracking::forget_caching(context.client, command);
    match context.client.reply_mode {
        ReplyMode::Skip => {
            context.client.reply_mode = ReplyMode::On;
            if !answers_pushes {
                silence(context, start, &mut reply);
            }
        }
        ReplyMode::Off | ReplyMode::SkipNext if !answers_pushes => silence(context, start, &mut reply),
        ReplyMode::On | ReplyMode::Off | ReplyMode::SkipNext => {}
    }
    Fate::Answered(reply)
}

/// Returns whether what will be answered are messages, which every client is sent.
fn answers_pushes(admission: &Result<Admission, Failure>) -> bool {
    match admission {
        Ok(Admission::Run(place)) => REGISTRY.rows()[*place].command.flags.has(Flags::ANSWERS_PUSHES),
        _ => false,
    }
}

/// Suppresses the reply to the client's command, whenever there is one.
fn silence(context: &mut Context<'_>, start: usize, reply: &mut Reply) {
    context.replies.truncate(start);
    if let Reply::Later(Wait::List(wait)) = reply {
        wait.silent = true;
    }
}

/// The action for a request that may run.
enum Admission {
    Run(usize),
    /// The command was queued in a transaction.
    Queued,
    /// Not before a pause is over.
    Postponed,
}

/// Decides what is done with a request, whose command is at this place in the registry.
fn admit(context: &mut Context<'_>, place: usize, args: Args<'_>) -> Result<Admission, Failure> {
    let row = &REGISTRY.rows()[place];
    let flags = row.command.flags;
    if !context.client.authenticated && !flags.has(Flags::NO_AUTH) {
        return Err(Failure::NOT_AUTHENTICATED);
    }
    context.client.info.last_command.store(place, Ordering::Relaxed);
    let refusal = if !row.command.accepts(args.len()) {
        Some(Failure::wrong_arity(&row.full_name))
    } else if flags.has(Flags::PROTECTED) && !may_debug(context) {
        Some(DEBUG_NOT_ALLOWED)
    } else if context.client.transaction.is_some() && flags.has(Flags::NO_MULTI) {
        Some(Failure::not_in_transaction(&row.full_name))
    } else if let Some(failure) = permissions::refusal(context, place, args) {
        Some(failure)
    } else if context.server.replica().refuses_writes() && transactions::writes(context.client, Some(place)) {
        Some(Failure::READ_ONLY)
    } else if context.client.info.states.has(State::MONITOR) && flags.touches_keys() {
        Some(Failure::MONITORS_ONLY)
    } else if !flags.has(Flags::WHILE_SUBSCRIBED) && pubsub::is_subscriber(context.client) {
        Some(Failure::not_while_subscribed(&row.full_name))
    } else if let Some(failure) = busy(context.server, flags) {
        Some(failure)
    } else if context.server.replica().is_loading() && !transactions::needs_no_keys(context.client, place) {
        Some(Failure::LOADING)
    } else {
        None
    };
    if let Some(failure) = refusal {
        context.stats.commands[place].rejected.add(1);
        return Err(failure);
    }
    if let Some(paused) = context.server.pause().current()
        && (paused.scope == Scope::All
            || transactions::waits_with_writes(context.client, place)
                && !scripting::says_that_it_only_reads(context.server, row, args))
    {
        return Ok(Admission::Postponed);
    }
    if context.client.transaction.is_some() && !flags.has(Flags::AT_ONCE) {
        transactions::queue(context, place, args)?;
        return Ok(Admission::Queued);
    }
    Ok(Admission::Run(place))
}

/// Returns the refusal of a command that does not go with a script that runs for long, if there is one.
fn busy(server: &Server, flags: Flags) -> Option<Failure> {
    let running = &server.scripts().running;
    if !running.is_busy() || flags.has(Flags::ALLOW_BUSY) {
        return None;
    }
    running.busy_with().map(Failure::busy)
}

fn may_debug(context: &Context<'_>) -> bool {
    context.server.configuration().enable_debug_command.to(&context.client.info.address)
}

/// Runs a command that may run, and writes its reply, if it has one yet.
pub(super) fn call(context: &mut Context<'_>, place: usize, args: Args<'_>) -> Reply {
    let (start, wire_start) = (context.replies.as_bytes().len(), context.replies.wire_len());
    let row = &REGISTRY.rows()[place];
    if context.client.info.states.has(State::TRACKING) {
        client_tracking::remember_keys(context, row.command, args);
    }
    let started = Instant::now();
    context.session.set_touches(!context.client.info.states.has(State::NO_TOUCH));
    let tells = events::begin(context, &row.events, row.command.keys.among(args));
    let outcome = (row.handler)(context, args);
    if tells {
        key_events::rest();
    }
    let elapsed = started.elapsed();
    let reply = match outcome {
        Ok(reply) => reply,
        Err(failure) => {
            record::error(context, &failure);
            primary::note_failure(context, place, args, &failure);
            context.replies.truncate(start);
            context.replies.error(failure.text());
            if failure.is_for_memory() {
                // As if the command had been refused before it ran, as Valkey does it.
                context.stats.commands[place].rejected.add(1);
                return Reply::Now;
            }
            Reply::after(failure.delay())
        }
    };
    let written = context.replies.as_bytes().get(start..).unwrap_or_default();
    let is_nothing = matches!(written, b":0\r\n" | b"$-1\r\n");
    let reply_bytes = context.replies.wire_len().saturating_sub(wire_start);
    let elapsed = elapsed.saturating_add(reply.busy_time());
    let run = Run { elapsed, failed: written.first() == Some(&b'-'), reply_bytes };
    record::command(context, place, args, reply.is_written().then_some(&run));
    if is_nothing {
        primary::note_nothing(context, place, args);
    }
    reply
}
