//! memcached's protocols (text, meta and binary), on one key space with RESP: database 0.
//!
//! - `get`: reading values, with all that meta's get can change meanwhile
//! - `store`: writing values, and changing them by what they were
//! - `expiry`: times of expiry, as the store knows them
//! - `login`: what a client without the password may do; `permissions`: what a user may do
//! - `replica`: what there is not while the server follows another one
//! - `administration`: everything that is not about one key
//!
//! This file has a connection's requests: parsed a few at a time, so that their keys are fetched into the processor's cache
//! together, and run in order. It knows operations, and no bytes of a protocol.

mod administration;
mod expiry;
mod get;
mod login;
mod permissions;
mod replica;
mod store;

use snugly_memcached::{
    Limits, MAX_KEY, Operation, Outcome, Parsed, Protocol, ReplyForm, Request, RequestParser,
};
use snugly_store::{Session, StoreError};
use tracing::error;

use super::{Progress, Stop};
use crate::commands::{self, Context, Wait};
use crate::counters::MemcachedEvent;
use crate::pause::Scope;

/// The version of memcached whose requests and replies clients may expect.
const MEMCACHED_VERSION: &str = "1.6.18";
/// The database that these protocols see.
const DATABASE: usize = 0;
/// Longest value, in bytes, of a client that has yet to give the password.
const MAX_LOGIN: usize = 1024;
/// Longest line of keys, in bytes.
const MAX_LINE: usize = 8 << 20;

/// The reply to a connection from elsewhere in protected mode.
pub(super) const DENIED: &[u8] =
    b"SERVER_ERROR protected mode: no password is set, so connections are only accepted from \
the loopback interface; set one with --password, or start the server with --protected-mode no\r\n";

/// The reply to a connection for which there is no place.
pub(super) const TOO_MANY_CLIENTS: &[u8] = b"ERROR Too many open connections\r\n";

/// State of one connection.
#[derive(Default)]
pub(super) struct Conversation {
    parser: RequestParser,
    wanted: usize,
}

/// A request that was parsed ahead.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    request: Request<'a>,
    /// The parser before it.
    before: RequestParser,
    start: usize,
}

/// Requests that are parsed together.
struct Requests<'a> {
    requests: [Option<Ahead<'a>>; Session::PREFETCHED],
    count: usize,
    /// Their bytes, and those between them that ask for nothing.
    len: usize,
}

impl<'a> Requests<'a> {
    fn iter(&self) -> impl Iterator<Item = &Ahead<'a>> {
        self.requests[..self.count].iter().flatten()
    }
}

impl Conversation {
    /// Runs complete requests until there is none left, or something has to happen first. After keys were fetched, the next
    /// requests are run whatever is missing.
    pub(super) fn run(&mut self, input: &[u8], mut fetched: bool, context: &mut Context<'_>) -> Progress {
        context.server.flush_if_due(context.session.now());
        let mut taken = 0;
        loop {
            let stretch = &input[taken..];
            let requests = self.parse(stretch, context);
            let stopped = match must_wait(&requests, fetched, context) {
                Some(stop) => Some((0, stop)),
                None => run_in_order(&requests, context),
            };
            if let Some((ran, stop)) = stopped {
                // A request that was parsed ahead is parsed again when it may run.
                let next = requests.iter().nth(ran);
                self.parser = next.map_or(self.parser, |next| next.before);
                return Progress { taken: taken + next.map_or(requests.len, |next| next.start), stop };
            }
            fetched = false;
            taken += requests.len;
            if requests.count == 0 || taken == input.len() {
                return Progress { taken, stop: Stop::Read };
            }
            if context.replies.is_enough() {
                return Progress { taken, stop: Stop::Send };
            }
        }
    }

    /// Bytes of the request that has arrived in part that are worth room.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    /// The reply in the place of others that tell of a write that could not be kept; in binary the end of the connection
    /// has to say it.
    pub(super) fn not_kept(&self, error: &StoreError) -> Vec<u8> {
        match self.parser.protocol() {
            Some(Protocol::Binary) => Vec::new(),
            _ => format!("SERVER_ERROR {error}\r\n").into_bytes(),
        }
    }

    /// Parses as many complete requests as there are and as there is room for.
    fn parse<'a>(&mut self, input: &'a [u8], context: &Context<'_>) -> Requests<'a> {
        let is_known = context.client.authenticated;
        let max_value = if is_known { context.server.limits(true).max_bulk } else { MAX_LOGIN };
        let limits = Limits { max_value, max_line: MAX_LINE };
        // What comes after a login is for those who have the password.
        let most = if is_known { Session::PREFETCHED } else { 1 };
        let mut parsed = Requests { requests: [None; Session::PREFETCHED], count: 0, len: 0 };
        while parsed.count < most {
            let (start, before) = (parsed.len, self.parser);
            match self.parser.parse(&input[start..], &limits) {
                Parsed::Request(request, len) => {
                    parsed.requests[parsed.count] = Some(Ahead { request, before, start });
                    parsed.count += 1;
                    parsed.len += len;
                }
                Parsed::Skipped(len) => parsed.len += len,
                Parsed::Incomplete { wanted } => {
                    self.wanted = wanted;
                    break;
                }
            }
        }
        parsed
    }
}

/// The keys to read from disk before these requests are run.
fn must_wait(requests: &Requests<'_>, fetched: bool, context: &Context<'_>) -> Option<Stop> {
    let store = context.server.store();
    if fetched || !store.reads_are_slow() {
        return None;
    }
    let mut buffer = [0; MAX_KEY];
    let keys = requests.iter().filter_map(|ahead| ahead.request.operation.key());
    let missing = keys.filter_map(|key| {
        let key = key.bytes(&mut buffer);
        (!store.is_in_memory(DATABASE, key)).then(|| key.to_vec())
    });
    let missing: Vec<Vec<u8>> = missing.collect();
    (!missing.is_empty()).then_some(Stop::Fetch(missing))
}

/// Runs these requests; if it had to stop, with some of them left or with no more to be run, says how many ran, and why.
fn run_in_order(requests: &Requests<'_>, context: &mut Context<'_>) -> Option<(usize, Stop)> {
    if requests.count > 1 {
        let keys = requests.iter().filter_map(|ahead| ahead.request.operation.key()?.plain());
        context.session.prefetch(DATABASE, keys);
    }
    for (number, ahead) in requests.iter().enumerate() {
        let writes = ahead.request.operation.writes();
        if writes && context.server.store().is_behind() {
            return Some((number, Stop::CatchUp));
        }
        let pause = context.server.pause().current();
        if pause.is_some_and(|pause| pause.scope == Scope::All || writes) {
            return Some((number, Stop::EndPause));
        }
        if let Some(wait) = execute(context, &ahead.request) {
            return Some((number + 1, Stop::Reply(wait)));
        }
        if context.client.closing {
            return Some((number + 1, Stop::Read));
        }
        if context.replies.is_enough() && number + 1 < requests.count {
            return Some((number + 1, Stop::Send));
        }
    }
    None
}

/// Runs one request and writes its reply, which may have to wait.
fn execute(context: &mut Context<'_>, request: &Request<'_>) -> Option<Wait> {
    let Request { operation, form } = request;
    context.client.info.commands.add(1);
    context.stats.memcached.requests.add(1);
    commands::follow_users(context);
    if !context.client.authenticated {
        return login::execute(context, operation, form);
    }
    if form.is_meta() {
        context.stats.memcached.count(MemcachedEvent::Meta);
    }
    if !permissions::allow(context, operation, form) {
        return None;
    }
    if let Some(reason) = replica::refusal(context, operation) {
        replica::refuse(operation, reason, form, context.replies.as_mut_vec());
        return None;
    }
    context.session.set_touches(true);
    let key = &mut [0; MAX_KEY];
    match operation {
        Operation::Get(get) => get::execute(context, get, form, key),
        Operation::Store(store) => store::store(context, store, form, key),
        Operation::Delete(delete) => store::delete(context, delete, form, key),
        Operation::Arithmetic(arithmetic) => store::arithmetic(context, arithmetic, form, key),
        Operation::Touch { key: named, exptime } => store::touch(context, named.bytes(key), *exptime, form),
        Operation::Authenticate { mechanism, response, .. } => {
            return login::log_in(context, mechanism, response, form);
        }
        Operation::Refused(refused) => {
            if let Some(superseded) = refused.superseded {
                let key = superseded.bytes(key);
                if permissions::may_write(context, key) && replica::may_write(context) {
                    store::supersede(context, key);
                }
            }
            context.client.closing |= refused.closes;
            form.refused(refused.refusal, context.replies.as_mut_vec());
        }
        _ => administration::execute(context, operation, form, key),
    }
    None
}

/// Writes why something could not be done.
fn fail(context: &mut Context<'_>, error: &StoreError, form: &ReplyForm<'_>) {
    let counters = &context.stats.memcached;
    let out = context.replies.as_mut_vec();
    match error {
        StoreError::OutOfMemory { .. } | StoreError::NoMemory { .. } => {
            counters.count(MemcachedEvent::StoreNoMemory);
            form.outcome(Outcome::OutOfMemory, out);
        }
        StoreError::ValueTooLong { .. } => {
            counters.count(MemcachedEvent::StoreTooLarge);
            form.outcome(Outcome::TooLarge, out);
        }
        StoreError::Unreadable { .. } => {
            error!(%error, "a stored value is unreadable; the next write or delete of its key mends it");
            form.server_error(&error.to_string(), out);
        }
        _ => form.server_error(&error.to_string(), out),
    }
}
