//! Running the requests of one read: parsed a few at a time, so that their keys are fetched into the processor's cache
//! together, and run in order.
//!
//! It knows requests and where their keys are. It knows no sockets and no buffers.

use std::mem;

use snugly_protocol::resp::{Limits, ProtocolError, RequestParser};
use snugly_store::Session;
use tracing::{debug, warn};

use super::super::{Progress, Stop};
use crate::commands::{self, Context, Fate, NO_KEYS, REGISTRY, Reply};
use crate::counters::count;

/// Room for the requests that are parsed together.
#[derive(Default)]
pub(crate) struct Pipeline {
    requests: [Request; Session::PREFETCHED],
}

/// A complete request.
#[derive(Default)]
struct Request {
    parser: RequestParser,
    start: usize,
    end: usize,
    /// The command's place in the registry, if there is such a command.
    command: Option<usize>,
}

/// The result of parsing the start of a stretch of input.
struct Parsed {
    /// Number of requests that are not empty.
    count: usize,
    /// Their bytes, and those of the ones among them that ask for nothing.
    len: usize,
    /// The error in the bytes behind them.
    failure: Option<ProtocolError>,
}

impl Pipeline {
    /// Runs complete requests until there is none left, or something has to happen first. `parser` holds the request that
    /// is not complete, from one call to the next. After keys were fetched, the next requests are run whatever is
    /// missing.
    pub(crate) fn run(
        &mut self,
        parser: &mut RequestParser,
        input: &[u8],
        mut fetched: bool,
        context: &mut Context<'_>,
    ) -> Progress {
        let limits = match context.client.primary {
            Some(_) => context.server.limits_of_primary(),
            None => context.server.limits(context.client.authenticated),
        };
        let mut taken = 0;
        loop {
            let Parsed { count, len, failure } = self.parse(parser, &input[taken..], &limits, context);
            let (requests, stretch) = (&self.requests[..count], &input[taken..]);
            let stopped = match must_wait(requests, stretch, fetched, context) {
                Some(stop) => Some(Progress { taken: 0, stop }),
                None => run_in_order(requests, stretch, context),
            };
            if let Some(progress) = stopped {
                // A request that was parsed ahead is parsed again when it may run.
                *parser = RequestParser::default();
                return Progress { taken: taken + progress.taken, stop: progress.stop };
            }
            fetched = false;
            taken += len;
            if let Some(error) = failure {
                refuse(context, &error);
            }
            if count == 0 || context.client.closing {
                return Progress { taken, stop: Stop::Read };
            }
            // With AUTH other limits begin.
            let has_logged_in = context.client.authenticated != limits.authenticated;
            if has_logged_in || context.replies.is_enough() {
                return Progress { taken, stop: Stop::Send };
            }
        }
    }

    /// Parses as many complete requests as there are and as there is room for.
    fn parse(
        &mut self,
        parser: &mut RequestParser,
        input: &[u8],
        limits: &Limits,
        context: &Context<'_>,
    ) -> Parsed {
        // The limits after AUTH are known only once that has run.
        let most = if context.client.authenticated { self.requests.len() } else { 1 };
        let mut parsed = Parsed { count: 0, len: 0, failure: None };
        while parsed.count < most {
            let start = parsed.len;
            match parser.parse(&input[start..], limits) {
                Ok(Some(len)) => {
                    let args = parser.args(&input[start..]);
                    if !args.is_empty() {
                        let request = &mut self.requests[parsed.count];
                        request.command = REGISTRY.find(args);
                        (request.start, request.end) = (start, start + len);
                        mem::swap(&mut request.parser, parser);
                        parsed.count += 1;
                    }
                    parsed.len += len;
                }
                Ok(None) => break,
                Err(error) => {
                    parsed.failure = Some(error);
                    break;
                }
            }
        }
        parsed
    }
}

/// The keys to read from disk before these requests are run.
fn must_wait(requests: &[Request], input: &[u8], fetched: bool, context: &Context<'_>) -> Option<Stop> {
    if requests.is_empty() {
        return None;
    }
    let store = context.server.store();
    if fetched || !store.reads_are_slow() {
        return None;
    }
    let database = context.client.database;
    let missing: Vec<Vec<u8>> = requests
        .iter()
        .flat_map(|request| request.keys(input))
        .filter(|key| !store.is_in_memory(database, key))
        .map(<[u8]>::to_vec)
        .collect();
    (!missing.is_empty()).then_some(Stop::Fetch(missing))
}

/// Runs these requests; says how far it came if it had to stop, with some of them left or with no more to be run.
fn run_in_order(requests: &[Request], input: &[u8], context: &mut Context<'_>) -> Option<Progress> {
    if requests.len() > 1 {
        prefetch(requests, input, context);
    }
    for (number, request) in requests.iter().enumerate() {
        // Reads leave the disk no more to do.
        if commands::may_write(context.client, request.command) && context.server.store().is_behind() {
            return Some(Progress { taken: request.start, stop: Stop::CatchUp });
        }
        let args = request.parser.args(&input[request.start..]);
        if request.command.is_none() && context.client.primary.is_none() && is_http(&args[0]) {
            end_http(context);
            return Some(Progress { taken: request.end, stop: Stop::Read });
        }
        let Fate::Answered(reply) = commands::execute(context, request.command, args) else {
            return Some(Progress { taken: request.start, stop: Stop::EndPause });
        };
        commands::serve_waiting(context);
        context.client.info.socket.outbox.drain_into(context.replies.as_mut_vec());
        if let Reply::Later(wait) = reply {
            return Some(Progress { taken: request.end, stop: Stop::Reply(wait) });
        }
        if context.client.closing {
            return Some(Progress { taken: request.end, stop: Stop::Read });
        }
        if context.replies.is_enough() && number + 1 < requests.len() {
            return Some(Progress { taken: request.end, stop: Stop::Send });
        }
    }
    None
}

fn prefetch(requests: &[Request], input: &[u8], context: &Context<'_>) {
    let keys = requests.iter().filter_map(|request| request.keys(input).next());
    context.session.prefetch(context.client.database, keys);
}

impl Request {
    /// The keys that the command table finds in the request.
    fn keys<'a>(&'a self, input: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let args = self.parser.args(&input[self.start..]);
        let keys = self.command.map_or(NO_KEYS, |command| REGISTRY.rows()[command].command.keys);
        keys.among(args)
    }
}

/// Returns whether a line of HTTP starts so. A browser can be made to send them to any local port, with
/// commands in what follows.
fn is_http(word: &[u8]) -> bool {
    [&b"POST"[..], b"Host:"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Ends a connection that speaks HTTP, without an answer.
fn end_http(context: &mut Context<'_>) {
    if let Some(count) = context.server.http_probes.note(context.session.now()) {
        warn!(address = %context.client.info.address, count, "closed connections that speak HTTP");
    }
    context.replies.truncate(0);
    context.client.closing = true;
}

fn refuse(context: &mut Context<'_>, error: &ProtocolError) {
    debug!(client = context.client.info.id, %error, "closing the connection");
    if matches!(error, ProtocolError::RequestTooBig { .. }) {
        count(&context.server.connections.over_input_limit);
    }
    context.stats.note_error(b"ERR");
    context.replies.protocol_error(error);
    context.client.closing = true;
}
