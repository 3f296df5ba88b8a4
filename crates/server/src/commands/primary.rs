//! Requests of the primary that the server follows: which of them run, and what becomes of one that does not or fails.
//!
//! The primary has run them already, so there is nobody to refuse anything to and nobody who reads a reply. What fails here
//! leaves a key that is not what it is there; it is removed, so that a reader finds nothing rather than something old.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use snugly_commands::{Arguments, Found};
use snugly_protocol::escape::escape;
use snugly_protocol::resp::{Args, RequestParser, encode_command, parse_integer};
use tracing::warn;

use super::documentation::documentation;
use super::execution::{Fate, call};
use super::moves::database;
use super::options::is;
use super::registry::Row;
use super::{
    Context, Failure, Fault, Flags, Place, PrimaryLink, REGISTRY, Reply, key_specifications, transactions,
};
use crate::clients::State;
use crate::pause::Scope;

/// Commands of the primary that run beside those that write.
const BESIDE_WRITES: [&str; 7] = [EXEC, MULTI, "ping", "publish", "replconf", "select", "spublish"];
const EXEC: &str = "exec";
const MULTI: &str = "multi";
/// Commands after whose failure the next ones would change other keys than they do there.
const INDISPENSABLE: [&str; 3] = [EXEC, "select", "swapdb"];
/// Commands that a primary passes on only if they have changed something, and that answer 0 if they have not.
const CHANGING: [&str; 3] = ["copy", "move", "renamenx"];
/// Commands that a primary passes on with a condition that was true there and need not be here.
const OVERWRITING: [&str; 2] = ["set", "msetex"];
/// The condition, in which a key of any type counts.
const IF_PRESENT: &str = "XX";
/// The command that removes keys.
const REMOVAL: &[u8] = b"DEL";
/// Longest name of a command that is told.
const LONGEST_NAME: usize = 32;

/// A database and a key.
type DbKey = (usize, Vec<u8>);

/// Runs one request of the primary, whose command is at this place in the registry.
pub(super) fn execute(context: &mut Context<'_>, command: Option<usize>, args: Args<'_>) -> Fate {
    let writes = transactions::writes(context.client, command);
    let Some(link) = &mut context.client.primary else { return Fate::Postponed };
    if link.version != context.server.replica().version() {
        context.client.closing = true;
        return Fate::Postponed;
    }
    if context.server.pause().current().is_some_and(|paused| paused.scope == Scope::All || writes) {
        return Fate::Postponed;
    }
    let full_name = command.map_or("", |place| &REGISTRY.rows()[place].full_name);
    match (full_name, link.place) {
        (MULTI, Place::Between) => {
            link.place = Place::AtTransaction;
            return Fate::Postponed;
        }
        (MULTI, Place::AtTransaction) => link.place = Place::Within,
        _ => {}
    }
    let start = context.replies.as_bytes().len();
    run(context, command, args);
    context.replies.truncate(start);
    match &mut context.client.primary {
        Some(PrimaryLink { fault: None, place, .. }) => {
            if full_name == EXEC {
                *place = Place::Between;
            }
            Fate::Answered(Reply::Now)
        }
        _ => {
            context.client.closing = true;
            Fate::Postponed
        }
    }
}

fn run(context: &mut Context<'_>, command: Option<usize>, args: Args<'_>) {
    let row = |place: usize| &REGISTRY.rows()[place];
    let Some(place) = command.filter(|place| is_followed(row(*place))) else {
        return skip_unknown(context, args);
    };
    let (row, flags) = (row(place), row(place).command.flags);
    context.client.info.last_command.store(place, Ordering::Relaxed);
    let is_within = context.client.transaction.is_some();
    if !row.command.accepts(args.len()) {
        note_failure(context, place, args, &Failure::wrong_arity(&row.full_name));
    } else if is_within && flags.has(Flags::NO_MULTI) {
        note_failure(context, place, args, &Failure::not_in_transaction(&row.full_name));
    } else if is_within && !flags.has(Flags::AT_ONCE) {
        queue(context, place, args);
    } else {
        // The reply is for nobody.
        let _ = call(context, place, args);
    }
}

fn queue(context: &mut Context<'_>, place: usize, args: Args<'_>) {
    if let Err(failure) = transactions::queue(context, place, args) {
        stop_at(context, &REGISTRY.rows()[place], &failure);
    }
}

fn is_followed(row: &Row) -> bool {
    row.command.flags.has(Flags::WRITE) || BESIDE_WRITES.contains(&&*row.full_name)
}

fn has_fault(context: &Context<'_>) -> bool {
    context.client.primary.as_ref().is_some_and(|link| link.fault.is_some())
}

/// Ends the link for a reason; the first one counts.
fn stop(context: &mut Context<'_>, reason: String, is_unsupported: bool) {
    // A transaction is taken while it runs, and what is queued has not run.
    let is_torn =
        context.client.info.states.has(State::IN_TRANSACTION) && context.client.transaction.is_none();
    if let Some(link) = &mut context.client.primary {
        link.fault.get_or_insert(Fault { reason, is_unsupported, is_torn });
    }
}

/// Ends the link with a command that failed and may be tried again.
fn stop_at(context: &mut Context<'_>, row: &Row, failure: &Failure) {
    let (name, text) = (row.full_name.to_ascii_uppercase(), escape(failure.text()));
    stop(context, format!("{name} of the primary failed here: {text}"), false);
}

/// Notes that a command has failed, if it is one of the primary.
pub(super) fn note_failure(context: &mut Context<'_>, place: usize, args: Args<'_>, failure: &Failure) {
    if context.client.primary.is_none() || has_fault(context) {
        return;
    }
    let row = &REGISTRY.rows()[place];
    if failure.is_for_room() || INDISPENSABLE.contains(&&*row.full_name) {
        return stop_at(context, row, failure);
    }
    let written = written_keys(context, row, args);
    skip(context, &row.full_name.to_ascii_uppercase(), failure.text(), written);
}

/// Sees to a command that has answered 0 or null, if it is one of the primary, which had something to do there.
pub(super) fn note_nothing(context: &mut Context<'_>, place: usize, args: Args<'_>) {
    if context.client.primary.is_none() {
        return;
    }
    let name = &*REGISTRY.rows()[place].full_name;
    if CHANGING.contains(&name) {
        note_failure(context, place, args, &Failure::NO_SUCH_KEY);
    } else if OVERWRITING.contains(&name) {
        overwrite(context, place, args);
    }
}

/// Runs a command without its condition that the key exists: there it did, as something that this server does not have.
fn overwrite(context: &mut Context<'_>, place: usize, args: Args<'_>) {
    // Options come behind a key and a value, or behind as many of them as the number in front says.
    let counted = args.get(1).and_then(parse_integer).and_then(|count| usize::try_from(count).ok());
    let options = match &*REGISTRY.rows()[place].full_name {
        "set" => 3,
        _ => counted.unwrap_or(0).saturating_mul(2).saturating_add(2),
    };
    let Some(condition) = (options..args.len()).find(|&place| is(&args[place], IF_PRESENT)) else { return };
    let words: Vec<&[u8]> =
        (0..args.len()).filter(|&place| place != condition).map(|place| &args[place]).collect();
    if let Some(request) = Request::new(context, &words) {
        // The reply is for nobody.
        let _ = call(context, place, request.args());
    }
}

/// A request that is run in the place of another one.
struct Request {
    bytes: Vec<u8>,
    parser: RequestParser,
}

impl Request {
    /// The request of these words; `None` if it is longer than a primary's may be.
    fn new(context: &Context<'_>, words: &[&[u8]]) -> Option<Request> {
        let (mut bytes, mut parser) = (Vec::new(), RequestParser::default());
        encode_command(words, &mut bytes);
        let parsed = parser.parse(&bytes, &context.server.limits_of_primary());
        matches!(parsed, Ok(Some(_))).then_some(Request { bytes, parser })
    }

    fn args(&self) -> Args<'_> {
        self.parser.args(&self.bytes)
    }
}

/// Passes over a command that there is not, or that is not for a primary to run.
fn skip_unknown(context: &mut Context<'_>, args: Args<'_>) {
    let name = &args[0];
    let shown = escape(&name[..name.len().min(LONGEST_NAME)]).to_ascii_uppercase();
    let written = keys_of_unknown(context, args);
    skip(context, &shown, b"there is no such command here", written);
}

/// Passes over a command, or ends the link with it, and removes the keys that are something else now than they were.
fn skip(context: &mut Context<'_>, kind: &str, reason: &[u8], written: Vec<DbKey>) {
    let replica = context.server.replica();
    if !replica.skips() {
        let reason = escape(reason);
        return stop(context, format!("the primary has sent {kind}, which fails here: {reason}"), true);
    }
    if replica.skipped.note_command(kind) {
        let reason = escape(reason);
        warn!(
            command = kind,
            reason,
            "a command of the primary is left out, and others of its kind will be; see INFO replication"
        );
    }
    if context.client.transaction.is_some() {
        return remove_in_turn(context, &written);
    }
    for (database, key) in written {
        if let Err(error) = context.session.delete(database, &key) {
            let failure = Failure::from(error);
            let reason = format!(
                "a key that {kind} of the primary changes cannot be removed: {}",
                escape(failure.text())
            );
            return stop(context, reason, false);
        }
    }
}

/// Removes keys of the client's database behind the requests of its transaction so far.
fn remove_in_turn(context: &mut Context<'_>, written: &[DbKey]) {
    let words: Vec<&[u8]> = [REMOVAL].into_iter().chain(written.iter().map(|(_, key)| &**key)).collect();
    let Some(request) = Request::new(context, &words).filter(|_| !written.is_empty()) else { return };
    let Some(place) = REGISTRY.find(request.args()) else { return };
    queue(context, place, request.args());
}

/// The keys that a request of a command writes.
fn written_keys(context: &Context<'_>, row: &Row, args: Args<'_>) -> Vec<DbKey> {
    let keys = key_specifications::keys(&row.full_name, documentation(&row.full_name), args);
    let is_written =
        |flags: &[&str]| flags.iter().any(|flag| matches!(*flag, "insert" | "delete" | "update"));
    let keys = keys.into_iter().flatten().filter(|(_, flags)| is_written(flags));
    let databases = databases(context, row, args);
    keys.flat_map(|(key, _)| databases.iter().map(|database| (*database, key.to_vec()))).collect()
}

/// The databases whose keys a request writes.
fn databases(context: &Context<'_>, row: &Row, args: Args<'_>) -> Vec<usize> {
    let current = context.client.database;
    let other = |place: usize| args.get(place).and_then(|arg| database(context, arg).ok());
    match &*row.full_name {
        "move" => other(2).into_iter().chain([current]).collect(),
        "copy" => {
            let word = (3..args.len()).rev().find(|&place| is(&args[place], "DB"));
            vec![word.and_then(|place| other(place + 1)).unwrap_or(current)]
        }
        _ => vec![current],
    }
}

/// The keys that a command writes which there is not here, as far as is known of it.
fn keys_of_unknown(context: &Context<'_>, args: Args<'_>) -> Vec<DbKey> {
    let mut found = Found::default();
    let places = snugly_commands::keys(&Words(args), &mut found).unwrap_or_default();
    // The other keys are read for what is stored, and stay what they are.
    let only_first = args[0].to_ascii_uppercase().ends_with(b"STORE") || is(&args[0], "PFMERGE");
    let most = if only_first { 1 } else { places.len() };
    let keys = places.iter().take(most).filter_map(|place| args.get(*place));
    keys.map(|key| (context.client.database, key.to_vec())).collect()
}

/// A request as the table of all commands reads it.
struct Words<'a>(Args<'a>);

impl Arguments for Words<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, at: usize) -> Cow<'_, [u8]> {
        self.0[at].into()
    }
}
