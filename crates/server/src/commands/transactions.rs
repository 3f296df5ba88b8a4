//! Transactions: requests that are queued after MULTI, and run as one by EXEC if no watched key has changed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use snugly_protocol::resp::{Args, RequestQueue};
use snugly_store::{Session, StoreError};

use super::execution::call;
use super::registry::{Reach, Row};
use super::{
    ALL_KEYS, Client, Command, Context, Failure, Flags, NO_KEYS, Outcome, REGISTRY, Reply, command,
    permissions, record,
};
use crate::clients::{ClientInfo, State};
use crate::key_watch::{KeyWatch, Watched};

const ANY: Flags = Flags::CONNECTION.and(Flags::FAST).and(Flags::ALLOW_BUSY);

const EXEC: &str = "exec";
/// Bytes that a request may take in memory beside its own: an entry, and the larger node of a list.
const OVERHEAD: usize = 16 << 10;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("multi", 1, ANY.and(Flags::NO_MULTI), NO_KEYS, multi),
    command(EXEC, 1, Flags::CONNECTION.and(Flags::SKIP_COMMANDLOG).and(Flags::AT_ONCE), NO_KEYS, exec),
    command("discard", 1, ANY.and(Flags::AT_ONCE), NO_KEYS, discard),
    command("watch", -2, ANY.and(Flags::NO_MULTI), ALL_KEYS, watch),
    command("unwatch", 1, ANY, NO_KEYS, unwatch),
];

/// The transaction that EXEC will run.
#[derive(Default)]
pub(crate) struct Transaction {
    requests: RequestQueue,
    /// Places of the commands of these requests in the registry.
    places: Vec<usize>,
    /// Whether a request was refused: EXEC will refuse too, and nothing is kept any more.
    refused: bool,
}

/// The keys that a client watches.
#[derive(Default)]
pub(crate) struct WatchList {
    keys: Vec<Watched>,
    bytes: usize,
}

impl Transaction {
    fn rows(&self) -> impl Iterator<Item = &'static Row> {
        self.places.iter().map(|place| &REGISTRY.rows()[*place])
    }

    fn requests(&self) -> impl Iterator<Item = (usize, Args<'_>)> {
        self.places.iter().zip(0..).filter_map(|(place, index)| Some((*place, self.requests.get(index)?)))
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.requests().flat_map(|(place, args)| REGISTRY.rows()[place].command.keys.among(args))
    }

    /// Bytes of the requests that may take memory.
    fn growth(&self) -> usize {
        self.requests().map(|(place, args)| growth(place, args)).sum()
    }

    /// Number of keys it may change; a key that two commands name counts twice.
    fn changes(&self) -> usize {
        let writing =
            self.requests().filter(|(place, _)| REGISTRY.rows()[*place].command.flags.has(Flags::WRITE));
        writing.map(|(place, args)| REGISTRY.rows()[place].command.keys.among(args).count()).sum()
    }

    fn clear(&mut self) {
        *self = Transaction { refused: self.refused, ..Transaction::default() };
    }
}

/// Bytes that a request may take in memory: its own, if it may take any.
fn growth(place: usize, args: Args<'_>) -> usize {
    let grows = REGISTRY.rows()[place].command.flags.has(Flags::DENYOOM);
    if grows { RequestQueue::cost(args) } else { 0 }
}

fn multi(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let client = &mut *context.client;
    client.transaction = Some(Box::default());
    client.info.states.set(State::IN_TRANSACTION);
    client.info.queued.store(0, Ordering::Relaxed);
    context.ok()
}

/// Puts a request into the client's transaction.
pub(super) fn queue(context: &mut Context<'_>, place: usize, args: Args<'_>) -> Result<(), Failure> {
    let info = &context.client.info;
    let Some(transaction) = &mut context.client.transaction else { return Ok(()) };
    if transaction.refused || info.states.has(State::DIRTY) {
        // The transaction will not run, so nothing is kept.
        transaction.clear();
        return Ok(());
    }
    let configuration = context.server.configuration();
    let (requests, bytes) = (configuration.max_transaction_requests, configuration.max_transaction_bytes);
    if transaction.places.len() >= requests {
        return Err(too_much(format!("its transaction has {requests} requests"), "max-transaction-requests"));
    }
    if transaction.requests.memory() + RequestQueue::cost(args) > bytes {
        return Err(too_much(
            format!("its transaction would take over {bytes} bytes"),
            "max-transaction-bytes",
        ));
    }
    // Refused now rather than by EXEC, after requests before it have changed something.
    context.session.make_room(growth(place, args))?;
    transaction.requests.push(args);
    transaction.places.push(place);
    show(info, transaction);
    Ok(())
}

fn too_much(what: String, setting: &str) -> Failure {
    Failure::new(format!("ERR the request is refused because {what}; raise {setting}, or send fewer at once"))
}

fn show(info: &ClientInfo, transaction: &Transaction) {
    info.queued.store(transaction.places.len() as i64, Ordering::Relaxed);
    info.queued_bytes.store(transaction.requests.memory(), Ordering::Relaxed);
}

/// Returns whether a command can change keys: EXEC can if what it will run can.
pub(crate) fn writes(client: &Client, command: Option<usize>) -> bool {
    command.is_some_and(|place| any_has(client, place, Flags::WRITE))
}

/// Returns whether a command waits while writes are paused, or anything that it will run if it is EXEC.
pub(super) fn waits_with_writes(client: &Client, command: usize) -> bool {
    [Flags::WRITE, Flags::PAUSED_AS_WRITE].iter().any(|flag| any_has(client, command, *flag))
}

/// Returns whether a command can change keys, itself or by what it runs.
pub(crate) fn may_write(client: &Client, command: Option<usize>) -> bool {
    command.is_some_and(|place| waits_with_writes(client, place))
}

/// Returns whether a command has a flag, or if it is EXEC any that it will run.
fn any_has(client: &Client, command: usize, flag: Flags) -> bool {
    let row = &REGISTRY.rows()[command];
    let queued = client.transaction.iter().filter(|_| row.full_name == EXEC).flat_map(|queue| queue.rows());
    queued.chain([row]).any(|row| row.command.flags.has(flag))
}

/// Returns whether a command can run without keys: EXEC can if all that it will run can.
pub(super) fn needs_no_keys(client: &Client, place: usize) -> bool {
    let row = &REGISTRY.rows()[place];
    let queued = client.transaction.iter().filter(|_| row.full_name == EXEC).flat_map(|queue| queue.rows());
    let needs_none = |flags: Flags| flags.has(Flags::LOADING) || flags.has(Flags::ENDS_LOADING);
    queued.chain([row]).all(|row| needs_none(row.command.flags))
}

/// The reply to a refused request. It spoils the transaction that it would have been part of; EXEC itself ends it.
pub(super) fn refuse(context: &mut Context<'_>, place: Option<usize>, failure: Failure) -> Failure {
    if place.is_some_and(|place| REGISTRY.rows()[place].full_name == EXEC) {
        discard_all(context.client, context.server.key_watch());
        let reason = failure.text();
        let reason = reason.strip_prefix(b"ERR ").unwrap_or(reason);
        return Failure::new([b"EXECABORT Transaction discarded because of: ", reason].concat());
    }
    if let Some(transaction) = &mut context.client.transaction {
        transaction.refused = true;
        transaction.clear();
        show(&context.client.info, transaction);
    }
    failure
}

fn discard(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    if context.client.transaction.is_none() {
        return Err(Failure::fixed("ERR DISCARD without MULTI"));
    }
    discard_all(context.client, context.server.key_watch());
    context.ok()
}

/// Ends the client's transaction without running it, if there is one, and forgets the watched keys.
pub(crate) fn discard_all(client: &mut Client, key_watch: &KeyWatch) {
    client.info.states.clear(State::IN_TRANSACTION);
    if client.transaction.take().is_some() {
        show(&client.info, &Transaction::default());
    }
    forget_watched(client, key_watch);
}

fn forget_watched(client: &mut Client, key_watch: &KeyWatch) {
    let watched = std::mem::take(&mut client.watched);
    key_watch.unwatch(&client.info, &watched.keys);
}

fn exec(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let Some(transaction) = context.client.transaction.take() else {
        return Err(Failure::fixed("ERR EXEC without MULTI"));
    };
    let outcome = if transaction.refused {
        Err(Failure::fixed("EXECABORT Transaction discarded because of previous errors."))
    } else if context.client.info.states.has(State::DIRTY) {
        context.replies.null_array();
        Ok(Reply::Now)
    } else {
        run(context, &transaction)
    };
    context.client.transaction = Some(transaction);
    discard_all(context.client, context.server.key_watch());
    outcome
}

/// Runs the transaction while nobody else can touch its keys or those that were watched, if none of these has changed.
fn run(context: &mut Context<'_>, transaction: &Transaction) -> Outcome {
    let changes = transaction.changes();
    context.session.check_at_once(changes).map_err(|error| {
        Failure::new(format!("EXECABORT Transaction discarded because of its {changes} changes: {error}"))
    })?;
    let growth = transaction.growth();
    context.session.make_room(growth).map_err(|error| {
        let reason = Failure::from(error);
        Failure::new([b"EXECABORT Transaction discarded because of: ", reason.text()].concat())
    })?;
    let Context { session, client, server, replies, stats } = context;
    let watched = std::mem::take(&mut client.watched);
    session.set_allowance(if growth > 0 { growth + OVERHEAD } else { 0 });
    let operations = |session: &mut Session| -> Outcome {
        let mut context = Context { session, client, server, replies, stats };
        if has_changed(&mut context, &watched)? {
            context.replies.null_array();
            return Ok(Reply::Now);
        }
        Ok(run_all(&mut context, transaction))
    };
    let outcome = if transaction.rows().any(|row| row.reach == Reach::Everything) {
        session.all_exclusively(operations)
    } else {
        session.exclusively(transaction.keys().chain(watched.keys.iter().map(|key| &*key.key)), operations)
    };
    context.session.set_allowance(0);
    context.client.watched = watched;
    outcome
}

/// Returns whether a watched key is not what it was. The caller holds them all.
fn has_changed(context: &mut Context<'_>, watched: &WatchList) -> Result<bool, StoreError> {
    for Watched { database, key, existed } in &watched.keys {
        // A key whose time has come goes now, which marks the client; one that came with another database does not.
        if context.session.peek(*database, key)?.is_some() != *existed {
            return Ok(true);
        }
    }
    Ok(context.client.info.states.has(State::DIRTY))
}

/// Runs all requests, none of which may wait; their answers are sent when all have been busy as long as they are.
fn run_all(context: &mut Context<'_>, transaction: &Transaction) -> Reply {
    context.replies.array(transaction.places.len());
    let (mut told, mut busy) = (None, Duration::ZERO);
    for (place, args) in transaction.requests() {
        match permissions::refusal_in_transaction(context, place, args) {
            None => busy = busy.saturating_add(call(context, place, args).busy_time()),
            Some(failure) => {
                record::error(context, &failure);
                context.replies.error(failure.text());
            }
        }
        if context.client.closing && told.is_none() {
            told = Some(context.replies.as_bytes().len());
        }
    }
    // A client that its own transaction disconnects is not told what came after that.
    if let Some(told) = told {
        context.replies.truncate(told);
    }
    Reply::after(busy)
}

fn watch(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let Context { session, client, server, .. } = context;
    let configuration = server.configuration();
    let keys = args.from(1);
    // A client whose transaction will not run needs to watch nothing more.
    if !client.info.states.has(State::DIRTY) {
        let (count, bytes) = (configuration.max_transaction_requests, configuration.max_transaction_bytes);
        if client.watched.keys.len() + keys.len() > count {
            return Err(too_much(format!("it watches over {count} keys"), "max-transaction-requests"));
        }
        if client.watched.bytes + keys.iter().map(WatchList::cost).sum::<usize>() > bytes {
            return Err(too_much(
                format!("its watched keys take over {bytes} bytes"),
                "max-transaction-bytes",
            ));
        }
        session.exclusively(keys.iter(), |session| client.watch(session, keys, server.key_watch()))?;
    }
    context.ok()
}

impl WatchList {
    /// Bytes that a key takes here and in the table of all watched keys, about.
    fn cost(key: &[u8]) -> usize {
        2 * key.len() + 2 * size_of::<Watched>()
    }
}

impl Client {
    /// Begins to watch keys that the session holds.
    fn watch(
        &mut self,
        session: &mut Session,
        keys: Args<'_>,
        key_watch: &KeyWatch,
    ) -> Result<(), StoreError> {
        for key in keys {
            let existed = session.peek(self.database, key)?.is_some();
            let watched = Watched { database: self.database, key: key.into(), existed };
            if key_watch.watch(&self.info, &watched) {
                self.watched.bytes += WatchList::cost(key);
                self.watched.keys.push(watched);
            }
        }
        // As with valkey-server, whose clients have a place for a transaction from then on.
        let _ = self.info.queued.compare_exchange(-1, 0, Ordering::Relaxed, Ordering::Relaxed);
        Ok(())
    }
}

fn unwatch(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    forget_watched(context.client, context.server.key_watch());
    context.ok()
}
