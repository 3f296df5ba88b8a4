//! The command table: a command is one row, beside its function, in the module of its group.
//!
//! A function is given the [`Context`] and the request's arguments, the name included, in the number that its row's
//! arity allows. It writes one reply and returns when that is sent, or returns a [`Failure`] and leaves the error reply
//! to [`execute`].
//!
//! - `context`: what a function is given; `options`: reading arguments
//! - `reply`: what a function gives back; `failure`: why it refuses
//! - `registry`: finding a command's row by its name
//! - `execution`, `record`, `permissions`: running a request, what is noted of it, and whether its user may
//! - `events`: what the changes of a command are called by those who listen to keys
//! - `scripting`, `functions`, `script_host`: scripts, and running the commands that they ask for
//! - `primary`: running a request of the primary that the server follows
//! - `documentation`, `key_specifications`: what COMMAND tells of a command and its row does not

mod acl;
mod backup;
mod bitfield;
mod bits;
mod client;
mod client_filter;
mod client_tracking;
mod command_log;
mod compression;
mod config;
mod connection;
mod context;
mod debug;
mod describe;
mod dictionary;
mod documentation;
mod dump;
mod events;
mod execution;
mod expiry;
mod failure;
mod functions;
mod introspection;
mod key_specifications;
mod keys;
mod latency;
mod lcs;
mod list_changes;
mod list_pops;
mod list_waits;
mod lists;
mod memory;
mod moves;
mod numbers;
mod options;
mod permissions;
mod persistence;
mod primary;
mod pubsub;
mod ranges;
mod record;
mod redaction;
mod registry;
mod replication;
mod reply;
mod script_host;
mod scripting;
mod server;
mod sort;
mod strings;
mod transactions;

use snugly_protocol::resp::{Args, parse_integer};

pub(crate) use connection::authenticate;
pub(crate) use context::{Client, Context, Fault, Place, PrimaryLink};
use context::{Edit, ReplyMode};
pub(crate) use events::named_as_of_memcached;
pub(crate) use execution::{Fate, execute};
pub(crate) use failure::Failure;
pub(crate) use list_waits::{note_ended, serve_waiting};
pub use permissions::UsersError;
pub(crate) use permissions::{follow_users, may, read_users};
pub(crate) use registry::REGISTRY;
pub(crate) use reply::{Delay, ListWait, Outcome, Reply, Wait};
pub(crate) use transactions::{discard_all, may_write};

/// A command's function.
pub(crate) type Handler = fn(&mut Context<'_>, Args<'_>) -> Outcome;

/// One command.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Number of arguments, the name included; negative is a minimum.
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
    Group { name: "list", commands: lists::COMMANDS },
    Group { name: "list", commands: list_changes::COMMANDS },
    Group { name: "list", commands: list_pops::COMMANDS },
    Group { name: "list", commands: list_waits::COMMANDS },
    Group { name: "bitmap", commands: bits::COMMANDS },
    Group { name: "bitmap", commands: bitfield::COMMANDS },
    Group { name: "generic", commands: keys::COMMANDS },
    Group { name: "generic", commands: moves::COMMANDS },
    Group { name: "generic", commands: dump::COMMANDS },
    Group { name: "generic", commands: sort::COMMANDS },
    Group { name: "generic", commands: expiry::COMMANDS },
    Group { name: "generic", commands: introspection::COMMANDS },
    Group { name: "connection", commands: connection::COMMANDS },
    Group { name: "connection", commands: client::COMMANDS },
    Group { name: "pubsub", commands: pubsub::COMMANDS },
    Group { name: "scripting", commands: scripting::COMMANDS },
    Group { name: "scripting", commands: functions::COMMANDS },
    Group { name: "transactions", commands: transactions::COMMANDS },
    Group { name: "server", commands: server::COMMANDS },
    Group { name: "server", commands: acl::COMMANDS },
    Group { name: "server", commands: config::COMMANDS },
    Group { name: "server", commands: describe::COMMANDS },
    Group { name: "server", commands: dictionary::COMMANDS },
    Group { name: "server", commands: compression::COMMANDS },
    Group { name: "server", commands: memory::COMMANDS },
    Group { name: "server", commands: command_log::COMMANDS },
    Group { name: "server", commands: latency::COMMANDS },
    Group { name: "server", commands: persistence::COMMANDS },
    Group { name: "server", commands: backup::COMMANDS },
    Group { name: "server", commands: replication::COMMANDS },
    Group { name: "server", commands: debug::COMMANDS },
];

/// The names of all commands, upper case, subcommands behind their container (`CONFIG GET`).
pub fn command_names() -> Vec<String> {
    let rows = REGISTRY.rows().iter();
    rows.map(|row| row.full_name.to_ascii_uppercase().replace('|', " ")).collect()
}

/// Positions of a command's keys among its arguments, as in COMMAND INFO.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) first: i32,
    /// Negative counts from the end; 0 says that the argument before the first key is the number of keys.
    pub(crate) last: i32,
    pub(crate) step: i32,
}

impl Keys {
    /// Returns whether it takes more than numbers of arguments to find them.
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
/// A number of keys, then the keys.
pub(crate) const COUNTED_KEYS: Keys = Keys { first: 2, last: 0, step: 1 };
/// Like [`COUNTED_KEYS`], behind another argument.
pub(crate) const COUNTED_KEYS_BEHIND_ARGUMENT: Keys = Keys { first: 3, last: 0, step: 1 };
pub(crate) const ALL_KEYS_BUT_LAST: Keys = Keys { first: 1, last: -2, step: 1 };
/// A number of pairs, then the pairs.
pub(crate) const COUNTED_KEYS_AND_VALUES: Keys = Keys { first: 2, last: 0, step: 2 };
/// The key of a subcommand such as OBJECT ENCODING.
pub(crate) const SUBCOMMAND_KEY: Keys = Keys { first: 2, last: 2, step: 1 };

/// The reply of COMMAND INFO beside name, arity and keys.
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
    /// Commands whose keys are not at fixed positions.
    pub(crate) const MOVABLE_KEYS: Flags = Flags(1 << 11);
    /// Not a flag of COMMAND INFO: the command runs at once inside a transaction instead of being queued.
    pub(crate) const AT_ONCE: Flags = Flags(1 << 12);
    pub(crate) const PUBSUB: Flags = Flags(1 << 13);
    /// Not a flag of COMMAND INFO: the command may be used in RESP2 while the client listens for messages.
    pub(crate) const WHILE_SUBSCRIBED: Flags = Flags(1 << 14);
    /// Not a flag of COMMAND INFO: what the command answers are messages, which CLIENT REPLY does not suppress.
    pub(crate) const ANSWERS_PUSHES: Flags = Flags(1 << 20);
    /// Not a flag of COMMAND INFO: the command waits while writes are paused, though it writes nothing.
    pub(crate) const PAUSED_AS_WRITE: Flags = Flags(1 << 21);
    /// The command is shown to MONITOR by its own function.
    pub(crate) const SKIP_MONITOR: Flags = Flags(1 << 22);
    pub(crate) const NO_MANDATORY_KEYS: Flags = Flags(1 << 23);
    pub(crate) const BLOCKING: Flags = Flags(1 << 15);
    /// Commands that run others, which are logged themselves.
    pub(crate) const SKIP_COMMANDLOG: Flags = Flags(1 << 16);
    pub(crate) const NO_ASYNC_LOADING: Flags = Flags(1 << 17);

    /// Not a flag of COMMAND INFO: the command takes `enable-debug-command`.
    pub(crate) const PROTECTED: Flags = Flags(1 << 18);

    /// Not a flag of COMMAND INFO: the command may be used while the keys of a primary are loaded, to end that.
    pub(crate) const ENDS_LOADING: Flags = Flags(1 << 19);

    pub(crate) const READ_FAST: Flags = Flags::READONLY.and(Flags::FAST);
    pub(crate) const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
    pub(crate) const WRITE_MEMORY: Flags = Flags::WRITE.and(Flags::DENYOOM);
    pub(crate) const WRITE_MEMORY_FAST: Flags = Flags::WRITE_MEMORY.and(Flags::FAST);
    /// Commands that need no data: allowed at any time.
    pub(crate) const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);
    pub(crate) const CONNECTION: Flags = Flags::ANY_TIME.and(Flags::NOSCRIPT);
    pub(crate) const HANDSHAKE: Flags = Flags::CONNECTION.and(Flags::FAST).and(Flags::NO_AUTH).and(Flags::ALLOW_BUSY);
    pub(crate) const ADMINISTRATION: Flags = Flags::CONNECTION.and(Flags::ADMIN);

    /// The names that COMMAND INFO lists, in its order.
    pub(crate) const NAMES: &[(Flags, &str)] = &[
        (Flags::WRITE, "write"), (Flags::READONLY, "readonly"), (Flags::DENYOOM, "denyoom"), (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"), (Flags::NOSCRIPT, "noscript"), (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"), (Flags::STALE, "stale"), (Flags::SKIP_MONITOR, "skip_monitor"), (Flags::SKIP_COMMANDLOG, "skip_commandlog"),
        (Flags::FAST, "fast"), (Flags::NO_AUTH, "no_auth"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::NO_ASYNC_LOADING, "no_async_loading"), (Flags::NO_MULTI, "no_multi"),
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
