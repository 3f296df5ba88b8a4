//! The command table: a command is one row, beside its function, in the module of its group.
//!
//! A function is given the [`Context`] and the request's arguments, the name included, in the number that its row's
//! arity allows. It writes one reply, or returns a [`Failure`] and leaves the error reply to [`execute`].

mod bitfield;
mod bits;
mod client;
mod client_filter;
mod client_tracking;
mod command_log;
mod config;
mod connection;
mod debug;
mod describe;
mod documentation;
mod dump;
mod expiry;
mod failure;
mod introspection;
mod key_specifications;
mod keys;
mod latency;
mod lcs;
mod memory;
mod moves;
mod numbers;
mod options;
mod pubsub;
mod ranges;
mod record;
mod redaction;
mod registry;
mod replication;
mod server;
mod stand_ins;
mod strings;
mod transactions;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use snugly_protocol::resp::{Args, Protocol, ReplyBuffer, parse_integer};
use snugly_store::{Session, StoreError, Value};
use tracing::warn;

pub(crate) use failure::{Failure, Outcome};
pub(crate) use registry::REGISTRY;
pub(crate) use transactions::discard_all;
use transactions::{Transaction, WatchList};

use self::record::Run;
use crate::clients::{ClientInfo, State};
use crate::pause::Scope;
use crate::server::Server;
use crate::worker::WorkerStats;

/// A command's function.
pub(crate) type Handler = fn(&mut Context<'_>, Args<'_>) -> Outcome;

/// One command.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// How many arguments, the name included; negative is at least so many.
    pub(crate) arity: i32,
    pub(crate) flags: Flags,
    pub(crate) keys: Keys,
    pub(crate) action: Action,
}

pub(crate) enum Action {
    Run(Handler),
    Subcommands(&'static [Command]),
    /// The handler runs where no subcommand is named.
    RunOrSubcommands(Handler, &'static [Command]),
}

/// Commands of one kind, called as COMMAND DOCS calls them.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) commands: &'static [Command],
}

/// All commands.
pub(crate) const GROUPS: &[Group] = &[
    Group { name: "string", commands: strings::COMMANDS },
    Group { name: "string", commands: numbers::COMMANDS },
    Group { name: "string", commands: ranges::COMMANDS },
    Group { name: "string", commands: lcs::COMMANDS },
    Group { name: "bitmap", commands: bits::COMMANDS },
    Group { name: "bitmap", commands: bitfield::COMMANDS },
    Group { name: "generic", commands: keys::COMMANDS },
    Group { name: "generic", commands: moves::COMMANDS },
    Group { name: "generic", commands: dump::COMMANDS },
    Group { name: "generic", commands: expiry::COMMANDS },
    Group { name: "generic", commands: introspection::COMMANDS },
    Group { name: "connection", commands: connection::COMMANDS },
    Group { name: "connection", commands: client::COMMANDS },
    Group { name: "pubsub", commands: pubsub::COMMANDS },
    Group { name: "transactions", commands: transactions::COMMANDS },
    Group { name: "server", commands: server::COMMANDS },
    Group { name: "server", commands: config::COMMANDS },
    Group { name: "server", commands: describe::COMMANDS },
    Group { name: "server", commands: memory::COMMANDS },
    Group { name: "server", commands: command_log::COMMANDS },
    Group { name: "server", commands: latency::COMMANDS },
    Group { name: "server", commands: replication::COMMANDS },
    Group { name: "server", commands: debug::COMMANDS },
    Group { name: "server", commands: stand_ins::COMMANDS },
];

/// The names of all commands, upper case, subcommands behind their container (`CONFIG GET`).
pub fn command_names() -> Vec<String> {
    let rows = REGISTRY.rows().iter();
    rows.map(|row| row.full_name.to_ascii_uppercase().replace('|', " ")).collect()
}

/// Where a command's keys are among its arguments, as COMMAND INFO says it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) first: i32,
    /// Negative counts from the end; 0 says that the argument before the first key is the number of keys.
    pub(crate) last: i32,
    pub(crate) step: i32,
}

impl Keys {
    /// Whether it takes more than numbers of arguments to find them.
    pub(crate) fn are_counted(self) -> bool {
        self.first > 0 && self.last == 0
    }

    /// The places of a request's keys; none if it says that it has none, or more than it has.
    fn places(self, request: Args<'_>) -> impl Iterator<Item = usize> {
        let places = match self.last_of(request) {
            Some(last) if self.first > 0 => self.first as usize..last + 1,
            _ => 0..0,
        };
        places.step_by(self.step.max(1) as usize)
    }

    /// The keys of a request.
    pub(crate) fn among(self, request: Args<'_>) -> impl Iterator<Item = &[u8]> {
        self.places(request).filter_map(move |place| request.get(place))
    }

    fn last_of(self, request: Args<'_>) -> Option<usize> {
        if self.are_counted() {
            let count = parse_integer(request.get(self.first as usize - 1)?)?;
            let last = count.checked_sub(1)?.checked_mul(self.step.into())?.checked_add(self.first.into())?;
            return usize::try_from(last).ok().filter(|&last| count > 0 && last < request.len());
        }
        match usize::try_from(self.last) {
            Ok(last) => Some(last),
            Err(_) => request.len().checked_sub(self.last.unsigned_abs() as usize),
        }
    }
}

pub(crate) const NO_KEYS: Keys = Keys { first: 0, last: 0, step: 0 };
pub(crate) const ONE_KEY: Keys = Keys { first: 1, last: 1, step: 1 };
pub(crate) const TWO_KEYS: Keys = Keys { first: 1, last: 2, step: 1 };
pub(crate) const ALL_KEYS: Keys = Keys { first: 1, last: -1, step: 1 };
pub(crate) const KEYS_AND_VALUES: Keys = Keys { first: 1, last: -1, step: 2 };
/// A number of pairs, then the pairs.
pub(crate) const COUNTED_KEYS_AND_VALUES: Keys = Keys { first: 2, last: 0, step: 2 };
/// The key of a subcommand such as OBJECT ENCODING.
pub(crate) const SUBCOMMAND_KEY: Keys = Keys { first: 2, last: 2, step: 1 };

/// What COMMAND INFO tells of a command beside its name, arity and keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u32);

#[rustfmt::skip]
impl Flags {
    pub(crate) const NONE: Flags = Flags(0);
    pub(crate) const WRITE: Flags = Flags(1 << 0);
    pub(crate) const READONLY: Flags = Flags(1 << 1);
    pub(crate) const DENYOOM: Flags = Flags(1 << 2);
    pub(crate) const ADMIN: Flags = Flags(1 << 3);
    pub(crate) const NOSCRIPT: Flags = Flags(1 << 4);
    pub(crate) const LOADING: Flags = Flags(1 << 5);
    pub(crate) const STALE: Flags = Flags(1 << 6);
    pub(crate) const FAST: Flags = Flags(1 << 7);
    pub(crate) const NO_AUTH: Flags = Flags(1 << 8);
    pub(crate) const NO_MULTI: Flags = Flags(1 << 9);
    pub(crate) const ALLOW_BUSY: Flags = Flags(1 << 10);
    /// Of commands whose keys are not at fixed places.
    pub(crate) const MOVABLE_KEYS: Flags = Flags(1 << 11);
    /// Not a flag of COMMAND INFO: the command runs at once inside a transaction instead of being queued.
    pub(crate) const AT_ONCE: Flags = Flags(1 << 12);
    pub(crate) const PUBSUB: Flags = Flags(1 << 13);
    /// Not a flag of COMMAND INFO: the command may be used in RESP2 while the client listens for messages.
    pub(crate) const WHILE_SUBSCRIBED: Flags = Flags(1 << 14);
    pub(crate) const BLOCKING: Flags = Flags(1 << 15);
    /// Of commands that run others, which are logged themselves.
    pub(crate) const SKIP_COMMANDLOG: Flags = Flags(1 << 16);

    pub(crate) const READ_FAST: Flags = Flags::READONLY.and(Flags::FAST);
    pub(crate) const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
    pub(crate) const WRITE_MEMORY: Flags = Flags::WRITE.and(Flags::DENYOOM);
    pub(crate) const WRITE_MEMORY_FAST: Flags = Flags::WRITE_MEMORY.and(Flags::FAST);
    /// Of commands that need no data: allowed at any time.
    pub(crate) const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);
    pub(crate) const CONNECTION: Flags = Flags::ANY_TIME.and(Flags::NOSCRIPT);
    pub(crate) const HANDSHAKE: Flags = Flags::CONNECTION.and(Flags::FAST).and(Flags::NO_AUTH).and(Flags::ALLOW_BUSY);
    pub(crate) const ADMINISTRATION: Flags = Flags::CONNECTION.and(Flags::ADMIN);

    /// The names that COMMAND INFO lists, in its order.
    pub(crate) const NAMES: &[(Flags, &str)] = &[
        (Flags::WRITE, "write"), (Flags::READONLY, "readonly"), (Flags::DENYOOM, "denyoom"), (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"), (Flags::NOSCRIPT, "noscript"), (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"), (Flags::STALE, "stale"), (Flags::SKIP_COMMANDLOG, "skip_commandlog"),
        (Flags::FAST, "fast"), (Flags::NO_AUTH, "no_auth"), (Flags::NO_MULTI, "no_multi"),
        (Flags::MOVABLE_KEYS, "movablekeys"), (Flags::ALLOW_BUSY, "allow_busy"),
    ];

    pub(crate) const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn touches_keys(self) -> bool {
        self.has(Flags::WRITE) || self.has(Flags::READONLY)
    }
}

/// A row of the table.
pub(crate) const fn command(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    handler: Handler,
) -> Command {
    Command { name, arity, flags, keys, action: Action::Run(handler) }
}

/// A row whose subcommands are rows of their own.
pub(crate) const fn container(name: &'static str, subcommands: &'static [Command]) -> Command {
    Command { name, arity: -2, flags: Flags::NONE, keys: NO_KEYS, action: Action::Subcommands(subcommands) }
}

/// What a command can see and change.
pub(crate) struct Context<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) client: &'a mut Client,
    pub(crate) server: &'a Arc<Server>,
    pub(crate) replies: &'a mut ReplyBuffer,
    pub(crate) stats: &'a WorkerStats,
}

/// What [`Context::edit`] did to a value, and what it found out.
pub(crate) enum Edit<R> {
    Changed(R),
    Unchanged(R),
}

/// Why an edited value is not written.
enum NotWritten<R> {
    Unchanged(R),
    Failed(StoreError),
}

impl<R> From<StoreError> for NotWritten<R> {
    fn from(error: StoreError) -> NotWritten<R> {
        NotWritten::Failed(error)
    }
}

/// A connection as its own commands see it.
pub(crate) struct Client {
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) database: usize,
    pub(crate) authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    /// What MULTI has begun.
    pub(crate) transaction: Option<Box<Transaction>>,
    pub(crate) watched: WatchList,
    /// Whether the connection ends once what was answered is sent.
    pub(crate) closing: bool,
    /// How long the last reply is held back.
    pub(crate) delay: Option<Delay>,
}

/// A wait of one connection, before its last reply is sent.
#[derive(Clone, Copy)]
pub(crate) struct Delay {
    pub(crate) length: Duration,
    /// Whether it counts as time that the command took, rather than waited.
    pub(crate) busy: bool,
}

/// Whether replies are sent (CLIENT REPLY).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    On,
    Off,
    /// Off for the next command, then on.
    SkipNext,
}

impl Client {
    pub(crate) fn new(info: Arc<ClientInfo>, authenticated: bool) -> Client {
        Client {
            info,
            database: 0,
            authenticated,
            reply_mode: ReplyMode::On,
            transaction: None,
            watched: WatchList::default(),
            closing: false,
            delay: None,
        }
    }

    /// How long the last reply is held back by commands that are busy.
    fn busy_time(&self) -> Duration {
        self.delay.filter(|delay| delay.busy).map_or(Duration::ZERO, |delay| delay.length)
    }

    /// Whether the command that runs is part of a transaction, where nothing can be waited for.
    pub(crate) fn denies_blocking(&self) -> bool {
        self.info.states.has(State::IN_TRANSACTION)
    }

    pub(crate) fn select(&mut self, database: usize) {
        self.database = database;
        self.info.database.store(database, Ordering::Relaxed);
    }

    pub(crate) fn speak(&mut self, protocol: Protocol) {
        self.info.resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    }
}

impl Context<'_> {
    /// Looks a key up in the client's database, for reading.
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.session.get(self.client.database, key)
    }

    /// A value's bytes: as they are stored if they are stored as they are, else decompressed into `buffer`. Where there is
    /// no value there are no bytes.
    pub(crate) fn bytes<'v>(
        &mut self,
        value: Option<&'v Value>,
        buffer: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], StoreError> {
        buffer.clear();
        let Some(value) = value else { return Ok(buffer) };
        if let Some(bytes) = value.record().as_identity() {
            return Ok(bytes);
        }
        self.session.read(value, buffer)?;
        Ok(buffer)
    }

    /// Changes a value by what it was, unless `edit` says that it stays as it is. `edit` sees the current value, if there
    /// is one, and fills the new one; it runs again if the key changes meanwhile.
    pub(crate) fn edit<R>(
        &mut self,
        key: &[u8],
        mut edit: impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Edit<R>,
    ) -> Result<R, Failure> {
        let result =
            self.session.update(self.client.database, key, |current, edited| match edit(current, edited) {
                Edit::Changed(result) => Ok(result),
                Edit::Unchanged(result) => Err(NotWritten::Unchanged(result)),
            });
        match result {
            Ok(result) | Err(NotWritten::Unchanged(result)) => Ok(result),
            Err(NotWritten::Failed(error)) => Err(error.into()),
        }
    }

    /// Runs several steps on these keys as one, see [`Session::exclusively`].
    pub(crate) fn exclusively<'k, R>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        steps: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        let Context { session, client, server, replies, stats } = self;
        session.exclusively(keys, |session| steps(&mut Context { session, client, server, replies, stats }))
    }

    /// Answers a value, decompressed straight into the replies.
    pub(crate) fn reply_value(&mut self, value: &Value) -> Outcome {
        let out = self.replies.begin_bulk(value.len());
        self.session.read(value, out)?;
        self.replies.end_bulk();
        Ok(())
    }

    /// Answers a value, or null if there is none.
    pub(crate) fn reply_optional(&mut self, value: Option<&Value>) -> Outcome {
        match value {
            Some(value) => self.reply_value(value),
            None => {
                self.replies.null();
                Ok(())
            }
        }
    }

    pub(crate) fn ok(&mut self) -> Outcome {
        self.replies.simple("OK");
        Ok(())
    }

    pub(crate) fn integer(&mut self, value: i64) -> Outcome {
        self.replies.integer(value);
        Ok(())
    }
}

/// How lines of HTTP start. A browser can be made to send them to any local port, with commands in what follows.
const HTTP_WORDS: [&str; 2] = ["POST", "Host:"];

/// What became of a request.
#[derive(PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// Nothing was done: it has to wait for the end of a pause.
    Postponed,
}

/// Runs one request, whose command is at this place in the registry, and writes its reply.
pub(crate) fn execute(context: &mut Context<'_>, command: Option<usize>, args: Args<'_>) -> Fate {
    let start = context.replies.as_bytes().len();
    context.replies.set_protocol(context.client.info.protocol());
    let mode = context.client.reply_mode;
    let admission = match command {
        Some(place) => admit(context, place, args),
        None if HTTP_WORDS.iter().any(|word| options::is(&args[0], word)) => {
            warn!(address = %context.client.info.address, "closed a connection that speaks HTTP");
            context.replies.as_mut_vec().clear();
            context.client.closing = true;
            return Fate::Answered;
        }
        None if context.client.authenticated => Err(REGISTRY.explain(args)),
        None => Err(Failure::NOT_AUTHENTICATED),
    };
    match admission {
        Ok(Admission::Run(place)) => call(context, place, args),
        Ok(Admission::Queued) => context.replies.simple("QUEUED"),
        Ok(Admission::Postponed) => return Fate::Postponed,
        Err(failure) => {
            let failure = transactions::refuse(context, command, failure);
            record::error(context, &failure);
            context.replies.error(failure.text());
        }
    }
    client_tracking::forget_caching(context.client, command);
    // What was in force before the command counts, except that CLIENT REPLY ON answers.
    match (mode, context.client.reply_mode) {
        (ReplyMode::On, ReplyMode::On) | (ReplyMode::Off, ReplyMode::On) => {}
        (ReplyMode::SkipNext, after) => {
            context.replies.as_mut_vec().truncate(start);
            if after == ReplyMode::SkipNext {
                context.client.reply_mode = ReplyMode::On;
            }
        }
        (_, ReplyMode::Off | ReplyMode::SkipNext) => context.replies.as_mut_vec().truncate(start),
    }
    Fate::Answered
}

/// What is done with a request that may run.
enum Admission {
    Run(usize),
    /// It is part of a transaction, and was put there.
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
    } else if context.client.transaction.is_some() && flags.has(Flags::NO_MULTI) {
        Some(Failure::not_in_transaction(&row.full_name))
    } else if context.client.info.states.has(State::MONITOR) && flags.touches_keys() {
        Some(Failure::MONITORS_ONLY)
    } else if !flags.has(Flags::WHILE_SUBSCRIBED) && pubsub::is_subscriber(context.client) {
        Some(Failure::not_while_subscribed(&row.full_name))
    } else {
        None
    };
    if let Some(failure) = refusal {
        context.stats.commands[place].rejected.add(1);
        return Err(failure);
    }
    if let Some(paused) = context.server.pause().current()
        && (paused.scope == Scope::All || transactions::writes(context.client, row))
    {
        return Ok(Admission::Postponed);
    }
    if context.client.transaction.is_some() && !flags.has(Flags::AT_ONCE) {
        transactions::queue(context, place, args)?;
        return Ok(Admission::Queued);
    }
    Ok(Admission::Run(place))
}

/// Runs a command that may run, and writes its reply.
fn call(context: &mut Context<'_>, place: usize, args: Args<'_>) {
    let start = context.replies.as_bytes().len();
    let row = &REGISTRY.rows()[place];
    context.client.info.commands.add(1);
    if context.client.info.states.has(State::TRACKING) {
        client_tracking::remember_keys(context, row.command, args);
    }
    let busy_before = context.client.busy_time();
    let started = Instant::now();
    context.session.set_touches(!context.client.info.states.has(State::NO_TOUCH));
    let outcome = (row.handler)(context, args);
    let delay = context.client.busy_time().saturating_sub(busy_before);
    let elapsed = started.elapsed().saturating_add(delay);
    if let Err(failure) = &outcome {
        record::error(context, failure);
        context.replies.as_mut_vec().truncate(start);
        context.replies.error(failure.text());
    }
    let reply = context.replies.as_bytes().get(start..).unwrap_or_default();
    let run = Run { elapsed, failed: reply.first() == Some(&b'-'), reply_bytes: reply.len() };
    record::command(context, place, args, &run);
}

impl Command {
    pub(crate) fn handler(&self) -> Option<Handler> {
        match self.action {
            Action::Run(handler) | Action::RunOrSubcommands(handler, _) => Some(handler),
            Action::Subcommands(_) => None,
        }
    }

    pub(crate) fn subcommands(&self) -> &'static [Command] {
        match self.action {
            Action::Run(_) => &[],
            Action::Subcommands(subcommands) | Action::RunOrSubcommands(_, subcommands) => subcommands,
        }
    }

    fn accepts(&self, args: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { args >= arity } else { args == arity }
    }
}
