//! Finding a command's row by its name.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use snugly_protocol::resp::Args;

use super::documentation::documentation;
use super::events::Events;
use super::{Command, Context, Failure, Flags, GROUPS, Group, Handler, NO_KEYS, Outcome, Reply};

/// All commands that can be run, each at a place of its own.
pub(crate) struct Registry {
    rows: Vec<Row>,
    names: FxHashMap<&'static [u8], Found>,
}

pub(crate) struct Row {
    pub(crate) command: &'static Command,
    pub(crate) handler: Handler,
    /// `get`, or `config|get` for a subcommand.
    pub(crate) full_name: String,
    pub(crate) reach: Reach,
    /// Commands whose latencies are shown together.
    pub(crate) family: &'static str,
    /// What its changes are called.
    pub(super) events: Events,
}

/// The keys that a command can touch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Nothing,
    /// The keys among its arguments.
    Keys,
    /// Any.
    Everything,
}

/// The groups whose commands touch no keys but those among their arguments.
const WITHOUT_KEYS: [&str; 3] = ["connection", "pubsub", "transactions"];

/// The families of groups whose commands are alike, whether they read or write.
const FAMILIES: [(&str, &str); 6] = [
    ("connection", "connection"),
    ("list", "list"),
    ("pubsub", "connection"),
    ("scripting", "script"),
    ("server", "admin"),
    ("transactions", "transaction"),
];

fn family(group: &Group, command: &Command) -> &'static str {
    match FAMILIES.iter().find(|(name, _)| *name == group.name) {
        Some((_, family)) => family,
        None if command.flags.has(Flags::WRITE) => "write",
        None => "read",
    }
}

#[derive(Clone, Copy)]
struct Found {
    /// The place of the command itself, if it can be run without a subcommand.
    own: Option<usize>,
    first_subcommand: usize,
    subcommands: &'static [Command],
}

/// The longest name of a command; longer words are no commands.
const LONGEST_NAME: usize = 32;
/// Bytes of an unknown command and its arguments that an error repeats.
const REPEATED: usize = 128;

pub(crate) static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);

impl Registry {
    fn new() -> Registry {
        let mut registry = Registry { rows: Vec::new(), names: FxHashMap::default() };
        for (group, command) in
            GROUPS.iter().flat_map(|group| group.commands.iter().map(move |row| (group, row)))
        {
            let own = command
                .handler()
                .map(|handler| registry.add(group, command, handler, command.name.to_owned()));
            let first_subcommand = registry.rows.len();
            let subcommands = command.subcommands();
            for subcommand in subcommands {
                let handler = subcommand.handler().expect("subcommands have no subcommands");
                let full_name = format!("{}|{}", command.name, subcommand.name);
                registry.add(group, subcommand, handler, full_name);
            }
            registry.names.insert(command.name.as_bytes(), Found { own, first_subcommand, subcommands });
        }
        registry
    }

    fn add(
        &mut self,
        group: &Group,
        command: &'static Command,
        handler: Handler,
        full_name: String,
    ) -> usize {
        let reach = match command.keys {
            // A script may touch keys that its request does not name.
            _ if group.name == "scripting" => Reach::Everything,
            NO_KEYS if WITHOUT_KEYS.contains(&group.name) => Reach::Nothing,
            NO_KEYS => Reach::Everything,
            // There are others than those that the row finds.
            keys if command.flags.has(Flags::MOVABLE_KEYS) && !keys.are_counted() => Reach::Everything,
            _ => Reach::Keys,
        };
        let (family, events) = (family(group, command), Events::of(&full_name));
        self.rows.push(Row { command, handler, full_name, reach, family, events });
        self.rows.len() - 1
    }

    /// All rows, each at its place.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The place of the command that a request names, if there is one.
    pub(crate) fn find(&self, args: Args<'_>) -> Option<usize> {
        let found = self.by_name(&args[0])?;
        match (args.get(1), found.own) {
            (Some(name), _) if !found.subcommands.is_empty() => {
                let named = |command: &Command| command.name.as_bytes().eq_ignore_ascii_case(name);
                Some(found.first_subcommand + found.subcommands.iter().position(named)?)
            }
            (_, own) => own,
        }
    }

    /// Returns whether this is the name of a command that has subcommands.
    pub(crate) fn has_subcommands(&self, name: &[u8]) -> bool {
        self.by_name(name).is_some_and(|found| !found.subcommands.is_empty())
    }

    /// Returns the reason why a request names no command.
    pub(crate) fn explain(&self, args: Args<'_>) -> Failure {
        match (self.by_name(&args[0]), args.get(1)) {
            (None, _) => unknown_command(args),
            (Some(_), Some(name)) => unknown_subcommand(&args[0], name),
            (Some(_), None) => Failure::wrong_arity(&String::from_utf8_lossy(&args[0]).to_ascii_lowercase()),
        }
    }

    /// The row of a name, without regard to subcommands.
    fn by_name(&self, name: &[u8]) -> Option<Found> {
        let mut lower = [0; LONGEST_NAME];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.names.get(&*lower).copied()
    }
}

fn unknown_command(args: Args<'_>) -> Failure {
    let mut repeated = Vec::new();
    for arg in args.from(1) {
        if repeated.len() >= REPEATED {
            break;
        }
        let room = REPEATED - repeated.len();
        repeated.push(b'\'');
        repeated.extend_from_slice(as_c_string(arg, room));
        repeated.extend_from_slice(b"' ");
    }
    let name = as_c_string(&args[0], REPEATED);
    Failure::new([b"ERR unknown command '", name, b"', with args beginning with: ", &repeated].concat())
}

fn unknown_subcommand(container: &[u8], name: &[u8]) -> Failure {
    let try_help = container.to_ascii_uppercase();
    let name = as_c_string(name, REPEATED);
    Failure::new([b"ERR unknown subcommand '", name, b"'. Try ", &try_help, b" HELP."].concat())
}

/// Returns bytes as Valkey's errors print them: up to a NUL, and at most `most`.
pub(super) fn as_c_string(bytes: &[u8], most: usize) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(most)];
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Answers HELP of a command, about each of its subcommands.
pub(super) fn reply_help(context: &mut Context<'_>, command: &str) -> Outcome {
    let help = &documentation(command).help;
    context.replies.array(1 + help.iter().map(|part| part.lines.len()).sum::<usize>());
    let name = command.to_ascii_uppercase();
    context.replies.simple(format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    help.iter().flat_map(|part| &part.lines).for_each(|line| context.replies.simple(line));
    Ok(Reply::Now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(name: &str) -> Reach {
        REGISTRY.rows().iter().find(|row| row.full_name == name).expect("there is such a command").reach
    }

    #[test]
    fn what_a_command_can_touch_follows_from_the_table() {
        for name in ["get", "mset", "object|encoding", "watch", "blmpop"] {
            assert!(reach(name) == Reach::Keys, "{name}");
        }
        for name in
            ["keys", "scan", "randomkey", "dbsize", "flushdb", "flushall", "info", "config|set", "sort"]
        {
            assert!(reach(name) == Reach::Everything, "{name}");
        }
        for name in ["ping", "select", "client|list", "client|tracking", "multi", "subscribe"] {
            assert!(reach(name) == Reach::Nothing, "{name}");
        }
    }
}
