//! Permissions of users: whether a client's user may run a request, and what is told and noted if not.

use std::path::Path;
use std::sync::LazyLock;
use std::{fs, io};

use snugly_acl::{Access, Basis, Channel, Commands, Denied, FileError, Request, Row, User, Users};
use snugly_protocol::resp::{Args, parse_integer};
use snugly_store::system_time;
use thiserror::Error;
use tracing::warn;

use super::client::describe;
use super::documentation::{KeySpecification, documentation};
use super::key_specifications::{self, FoundKey};
use super::options::is;
use super::registry::Row as CommandRow;
use super::{Context, Failure, Flags, REGISTRY};
use crate::accounts::{Denial, Place, Reason};
use crate::clients::{ClientInfo, State};
use crate::counters::count;
use crate::settings::Configuration;
use crate::state::Server;
use crate::subscriptions::Kind;

/// Categories of commands, as ACL CAT has them in Valkey.
const CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// The commands that rules are about.
pub(crate) static COMMANDS: LazyLock<Commands> = LazyLock::new(|| {
    let row = |row: &'static CommandRow| Row {
        full_name: &row.full_name,
        categories: &documentation(&row.full_name).acl_categories,
    };
    Commands::new(REGISTRY.rows().iter().map(row).collect(), CATEGORIES, |name| {
        snugly_commands::command(name.as_bytes()).is_some()
    })
});

/// Reason why users could not be read or written.
#[derive(Debug, Error)]
pub enum UsersError {
    /// The file cannot be read.
    #[error("cannot read the users from {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// The system's error.
        reason: io::Error,
    },
    /// It is wrong.
    #[error("{path}, {reason}")]
    Wrong {
        /// The file.
        path: String,
        /// The line and what is wrong with it.
        reason: FileError,
    },
}

/// The basis of users, by the settings.
pub(super) fn basis(configuration: &Configuration) -> Basis<'static> {
    Basis { commands: &COMMANDS, all_channels: configuration.acl_all_channels }
}

/// The users of `acl-file`, if there is one. The user `default` has the setting's password where the file does not say
/// otherwise.
///
/// # Errors
/// [`UsersError`].
pub(crate) fn read_users(configuration: &Configuration) -> Result<Users, UsersError> {
    let (basis, password) = (basis(configuration), &configuration.password);
    let mut users = match &*configuration.acl_file {
        "" => Users::new(basis),
        path => {
            let text = fs::read(Path::new(path))
                .map_err(|reason| UsersError::Read { path: path.to_owned(), reason })?;
            Users::parse(&text, basis)
                .map_err(|reason| UsersError::Wrong { path: path.to_owned(), reason })?
        }
    };
    let unlimited = User::unlimited(&users.default_user().name, basis);
    if !password.is_empty() && **users.default_user() == unlimited {
        let mut user = unlimited;
        user.set_password(password.as_bytes());
        users.put(user);
    }
    Ok(users)
}

/// Sees to it that a client has its user's permissions as they are now. A client whose user has gone is closed.
pub(crate) fn follow_users(context: &mut Context<'_>) {
    let accounts = context.server.accounts();
    let version = accounts.version();
    if context.client.users_version == version {
        return;
    }
    context.client.users_version = version;
    match accounts.users().get(&context.client.user.name) {
        Some(user) => context.client.become_user(user.clone()),
        None => {
            context.client.authenticated = false;
            context.client.closing = true;
        }
    }
}

/// Returns why the client's user may not run a request, which is counted and noted; `None` if it may.
pub(super) fn refusal(context: &Context<'_>, place: usize, args: Args<'_>) -> Option<Failure> {
    let text = match noted_denial(context, place, args)? {
        Denied::Command => no_permission_to_run(&context.client.user, place),
        Denied::Key(_) => b"No permissions to access a key".to_vec(),
        Denied::Channel(_) => b"No permissions to access a channel".to_vec(),
        Denied::Database(_) => b"No permissions to access database".to_vec(),
    };
    Some(Failure::new([b"NOPERM ", &text[..]].concat()))
}

/// Returns why a request of a transaction, which was allowed when it was queued, is not when it is to run.
pub(super) fn refusal_in_transaction(context: &Context<'_>, place: usize, args: Args<'_>) -> Option<Failure> {
    let what = match noted_denial(context, place, args)? {
        Denied::Command => "no permission to execute the command or subcommand",
        Denied::Key(_) => "no permission to touch the specified keys",
        Denied::Channel(_) => "no permission to access one of the channels used as arguments",
        Denied::Database(_) => "no permission to access the database",
    };
    Some(Failure::new(format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is \
         no longer allowed for the following reason: {what}"
    )))
}

/// Denial of a request to the client's user, which is counted and noted.
fn noted_denial(context: &Context<'_>, place: usize, args: Args<'_>) -> Option<Denied> {
    if !context.client.is_limited {
        return None;
    }
    let (denied, object) = denial(context, &context.client.user, place, args)?;
    note(context, denied, object);
    Some(denied)
}

/// Returns whether the client's user may run a command of this full name on a key in its database, for protocols whose
/// requests are no commands. A denial is counted and noted.
pub(crate) fn may(context: &Context<'_>, full_name: &str, key: Option<(&[u8], Access)>) -> bool {
    let rows = REGISTRY.rows();
    let place = rows.iter().position(|row| row.full_name == full_name).expect("the caller names commands");
    let keys: Vec<_> = key.into_iter().collect();
    let databases = [context.client.database];
    let databases = if touches_its_database(&rows[place]) { &databases[..] } else { &[] };
    let request = Request { command: place, first_argument: None, keys: &keys, channels: &[], databases };
    let Err(denied) = context.client.user.check(&request) else { return true };
    let object = match denied {
        Denied::Key(number) => keys[number].0.to_vec(),
        Denied::Command | Denied::Channel(_) | Denied::Database(_) => full_name.as_bytes().to_vec(),
    };
    note(context, denied, object);
    false
}

/// Denial of a request to a user, with the name of the command, key, channel or database; `None` if it is allowed.
pub(super) fn denial(
    context: &Context<'_>,
    user: &User,
    place: usize,
    args: Args<'_>,
) -> Option<(Denied, Vec<u8>)> {
    let row = &REGISTRY.rows()[place];
    if row.command.flags.has(Flags::NO_AUTH) {
        return None;
    }
    // A request that does not fit its command's specification is refused by the command.
    let keys = key_specifications::keys(&row.full_name, documentation(&row.full_name), args);
    let keys: Vec<(&[u8], Access)> = keys.iter().flatten().map(accessed).collect();
    let named = databases(context, row, args);
    let databases: Vec<usize> = named.iter().map(|(database, _)| *database).collect();
    let first_argument = args.get(1);
    let channels = channels(row, args);
    let request =
        Request { command: place, first_argument, keys: &keys, channels: &channels, databases: &databases };
    let denied = user.check(&request).err()?;
    let object = match denied {
        Denied::Key(number) => keys[number].0,
        Denied::Channel(number) => channels[number].text(),
        Denied::Command => row.full_name.as_bytes(),
        Denied::Database(number) => &args[named[number].1],
    };
    Some((denied, object.to_vec()))
}

/// The channels and patterns that a request sends a message to, or begins to listen to.
fn channels<'a>(row: &CommandRow, args: Args<'a>) -> Vec<Channel<'a>> {
    match &*row.full_name {
        "publish" | "spublish" => args.get(1).map(Channel::Named).into_iter().collect(),
        "subscribe" | "ssubscribe" => args.from(1).iter().map(Channel::Named).collect(),
        "psubscribe" => args.from(1).iter().map(Channel::Matching).collect(),
        _ => Vec::new(),
    }
}

fn accessed<'a>((key, flags): &FoundKey<'a>) -> (&'a [u8], Access) {
    let has = |names: &[&str]| flags.iter().any(|flag| names.contains(flag));
    (key, Access { reads: has(&["access"]), writes: has(&["insert", "delete", "update"]) })
}

/// Returns whether a client's user may listen to all that it listens to.
pub(super) fn may_listen(server: &Server, client: &ClientInfo) -> bool {
    let name = client.labels.lock().user.clone();
    let subscriptions = client.subscriptions.lock();
    let patterns = subscriptions.of(Kind::Pattern).iter().map(|pattern| Channel::Matching(pattern));
    let names = [Kind::Channel, Kind::ShardChannel].into_iter().flat_map(|kind| subscriptions.of(kind));
    let channels: Vec<_> = names.map(|name| Channel::Named(name)).chain(patterns).collect();
    server.accounts().users().get(&name).is_none_or(|user| user.may_listen_to(&channels))
}

/// Returns whether the client's user may run this SORT although it reads keys that no argument names.
pub(super) fn reads_all_keys(context: &Context<'_>, args: Args<'_>) -> bool {
    let reads = |place| context.client.user.reads_all_keys(place);
    !context.client.is_limited || REGISTRY.find(args).is_some_and(reads)
}

/// Returns whether a command touches the keys of its client's database, by its categories and keys.
fn touches_its_database(row: &CommandRow) -> bool {
    let documentation = documentation(&row.full_name);
    let is_about_keys = |name: &String| matches!(&**name, "keyspace" | "read" | "write");
    documentation.acl_categories.iter().any(is_about_keys)
        || documentation.key_specifications.iter().any(KeySpecification::is_about_keys)
}

/// The databases that a request touches, each with the place of the argument that says so.
fn databases(context: &Context<'_>, row: &CommandRow, args: Args<'_>) -> Vec<(usize, usize)> {
    let current = (context.client.database, 0);
    let named = |place: usize| {
        let number = args.get(place).and_then(parse_integer);
        number.and_then(|number| usize::try_from(number).ok()).map(|database| (database, place))
    };
    match &*row.full_name {
        "select" => named(1).into_iter().collect(),
        "swapdb" => named(1).into_iter().chain(named(2)).collect(),
        "move" => named(2).into_iter().chain([current]).collect(),
        "copy" => {
            let word = (3..args.len()).find(|&place| is(&args[place], "DB"));
            word.and_then(|place| named(place + 1)).into_iter().chain([current]).collect()
        }
        "flushall" => (0..context.server.configuration().databases).map(|database| (database, 0)).collect(),
        _ if touches_its_database(row) => vec![current],
        _ => Vec::new(),
    }
}

/// Valkey's words for a command that a user may not run.
pub(super) fn no_permission_to_run(user: &User, place: usize) -> Vec<u8> {
    let command = REGISTRY.rows()[place].full_name.as_bytes();
    [b"User ", &user.name[..], b" has no permissions to run the '", command, b"' command"].concat()
}

/// Counts and notes a denial to the client's user.
fn note(context: &Context<'_>, denied: Denied, object: Vec<u8>) {
    let counters = &context.server.connections;
    let (reason, counter) = match denied {
        Denied::Command => (Reason::Command, &counters.denied_commands),
        Denied::Key(_) => (Reason::Key, &counters.denied_keys),
        Denied::Channel(_) => (Reason::Channel, &counters.denied_channels),
        Denied::Database(_) => (Reason::Database, &counters.denied_databases),
    };
    count(counter);
    note_denial(context, reason, object, context.client.user.name.clone());
}

/// Notes a wrong password, or a name that nobody has.
pub(super) fn note_failed_login(context: &Context<'_>, object: &[u8], user: &[u8]) {
    count(&context.server.connections.failed_logins);
    if let Some(count) = context.server.failed_logins_log.note(context.session.now()) {
        warn!(address = %context.client.info.address, count, "wrong passwords were refused");
    }
    note_denial(context, Reason::Login, object.to_vec(), user.to_vec());
}

fn note_denial(context: &Context<'_>, reason: Reason, object: Vec<u8>, user: Vec<u8>) {
    let info = &context.client.info;
    let denial = Denial {
        reason,
        place: match () {
            () if context.client.is_in_script() => Place::Script,
            () if info.states.has(State::IN_TRANSACTION) => Place::Transaction,
            () => Place::TopLevel,
        },
        object,
        user,
        client: describe(context, info),
    };
    let most = context.server.configuration().acl_log_max_len;
    context.server.accounts().denials.note(denial, system_time(), most);
}
