//! Records a command that has run: counters, its duration, the logs of remarkable commands, and the stream of MONITOR.
//!
//! A record that is switched off costs one look at a number.

use std::time::Duration;

use snugly_protocol::resp::Args;

use super::redaction::shown;
use super::registry::Row;
use super::{Context, Failure, Flags, REGISTRY};
use crate::clients::ClientInfo;
use crate::command_log::Kind;
use crate::counters::WorkerStats;
use crate::latency::Event;
use crate::monitors::Sender;
use crate::state::Server;

/// The result of a command.
pub(super) struct Run {
    pub(super) elapsed: Duration,
    pub(super) failed: bool,
    pub(super) reply_bytes: usize,
}

/// Notes a command that has run, at this place of the registry, and how that went. One that waits for a list has no answer
/// yet, and is noted once more when it has.
pub(super) fn command(context: &Context<'_>, place: usize, args: Args<'_>, run: Option<&Run>) {
    let Context { server, client, stats, .. } = context;
    if let Some(run) = run {
        answered(server, stats, &client.info, (place, args), run);
    }
    let row = &REGISTRY.rows()[place];
    if !row.command.flags.has(Flags::SKIP_MONITOR) {
        show(context, row, args);
    }
}

/// Shows a command to those who watch all commands.
pub(super) fn show(context: &Context<'_>, row: &'static Row, args: Args<'_>) {
    let Context { server, client, .. } = context;
    if server.monitors().any() && !row.command.flags.has(Flags::ADMIN) {
        let sender =
            if client.is_in_script() { Sender::Script } else { Sender::Client(&client.info.address) };
        server.monitors().show(client.database, sender, shown(&row.full_name, args));
    }
}

/// Notes a client's command that is answered: its place in the registry, and the request.
pub(super) fn answered(
    server: &Server,
    stats: &WorkerStats,
    client: &ClientInfo,
    (place, args): (usize, Args<'_>),
    run: &Run,
) {
    client.commands.add(1);
    let row = &REGISTRY.rows()[place];
    let stats = &stats.commands[place];
    stats.nanoseconds.add(run.elapsed.as_nanos() as u64);
    stats.calls.add(1);
    if run.failed {
        stats.failed.add(1);
    }
    if server.tracks_latency() {
        stats.note_latency(run.elapsed);
    }
    let fast = row.command.flags.has(Flags::FAST);
    server.latency().note(if fast { Event::FastCommand } else { Event::Command }, run.elapsed);
    if !row.command.flags.has(Flags::SKIP_COMMANDLOG) {
        log_if_remarkable(server, client, row, args, run);
    }
}

/// Notes an error that is answered.
pub(super) fn error(context: &Context<'_>, failure: &Failure) {
    if !failure.is_noted() {
        context.stats.note_error(failure.text());
    }
}

fn log_if_remarkable(server: &Server, client: &ClientInfo, row: &'static Row, args: Args<'_>, run: &Run) {
    let log = server.command_log();
    let keep = |kind, value| {
        let name = client.labels.lock().name.clone();
        log.add(kind, value, shown(&row.full_name, args), client.address.clone(), name);
    };
    let microseconds = run.elapsed.as_micros() as u64;
    if log.takes(Kind::Slow, microseconds) {
        keep(Kind::Slow, microseconds);
    }
    let may_be_large = |threshold| most_request_bytes(args) >= threshold;
    if log.threshold(Kind::LargeRequest).is_some_and(may_be_large) {
        let bytes = request_bytes(args);
        if log.takes(Kind::LargeRequest, bytes) {
            keep(Kind::LargeRequest, bytes);
        }
    }
    if log.takes(Kind::LargeReply, run.reply_bytes as u64) {
        keep(Kind::LargeReply, run.reply_bytes as u64);
    }
}

/// The length of the request as an array of bulk strings.
fn request_bytes(args: Args<'_>) -> u64 {
    let header = |number: usize| 3 + u64::from(number.checked_ilog10().unwrap_or(0)) + 1;
    header(args.len()) + args.iter().map(|arg| header(arg.len()) + arg.len() as u64 + 2).sum::<u64>()
}

/// No less than [`request_bytes`], and quicker to say.
fn most_request_bytes(args: Args<'_>) -> u64 {
    const LONGEST_HEADER: usize = 16;
    let framing = (args.len() + 1) * LONGEST_HEADER;
    (framing + args.iter().map(<[u8]>::len).sum::<usize>()) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use snugly_protocol::resp::{Limits, RequestParser, encode_command};

    use super::*;

    proptest! {
        #[test]
        fn a_request_is_as_long_as_it_was_on_the_wire(
            args in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..200),
        ) {
            let mut request = Vec::new();
            encode_command(&args, &mut request);
            let mut parser = RequestParser::default();
            prop_assert_eq!(parser.parse(&request, &Limits::default()), Ok(Some(request.len())));
            prop_assert_eq!(request_bytes(parser.args(&request)), request.len() as u64);
            prop_assert!(most_request_bytes(parser.args(&request)) >= request.len() as u64);
        }
    }
}
