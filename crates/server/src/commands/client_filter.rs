//! The filters of CLIENT LIST and CLIENT KILL.

use std::mem;
use std::sync::Arc;

use snugly_acl::Users;
use snugly_protocol::resp::{Args, parse_integer};

use super::options::is;
use super::{Context, Failure};
use crate::clients::{ClientInfo, State};

/// Conditions on a connection; without any, every connection passes.
#[derive(Default)]
pub(super) struct Filter<'a> {
    demands: Vec<Demand<'a>>,
    ids: Option<Vec<u64>>,
    not_ids: Vec<u64>,
    skip_me: bool,
}

/// A condition that must hold or, if it is negated, must not.
struct Demand<'a> {
    condition: Condition<'a>,
    negated: bool,
}

enum Condition<'a> {
    Kind(Kind),
    Address(&'a [u8]),
    LocalAddress(&'a [u8]),
    Ip(&'a [u8]),
    User(&'a [u8]),
    Name(&'a [u8]),
    LibName(&'a [u8]),
    LibVer(&'a [u8]),
    Flags(&'a [u8]),
    Capabilities(&'a [u8]),
    Database(usize),
    MinAgeSeconds(i64),
    MinIdleSeconds(i64),
}

#[derive(PartialEq, Eq)]
enum Kind {
    Normal,
    Subscriber,
    /// The server that this one follows.
    Primary,
    /// There are none here.
    Replica,
}

/// An option as it was asked for.
struct Asked {
    negated: bool,
    users: Arc<Users>,
    /// Number of databases.
    databases: usize,
}

/// Reads an option's value.
type Read = for<'a> fn(&'a [u8], &Asked) -> Result<Condition<'a>, Failure>;

/// Before the name of an option, asks for the opposite.
const NOT: &[u8] = b"NOT-";

/// The options that may be negated; ID is apart because it takes several values.
const OPTIONS: &[(&str, Read)] = &[
    ("TYPE", |value, _| kind(value).map(Condition::Kind)),
    ("ADDR", |value, _| Ok(Condition::Address(value))),
    ("LADDR", |value, _| Ok(Condition::LocalAddress(value))),
    ("IP", |value, _| Ok(Condition::Ip(value))),
    ("USER", |value, asked| user(value, &asked.users).map(Condition::User)),
    ("NAME", |value, _| Ok(Condition::Name(value))),
    ("LIB-NAME", |value, _| Ok(Condition::LibName(value))),
    ("LIB-VER", |value, _| Ok(Condition::LibVer(value))),
    ("FLAGS", |value, asked| known_letters(value, FLAGS, "FLAGS", asked).map(Condition::Flags)),
    ("CAPA", |value, asked| known_letters(value, CAPABILITIES, "CAPA", asked).map(Condition::Capabilities)),
    ("DB", |value, asked| database(value, asked).map(Condition::Database)),
];

/// The options that may not be negated; SKIPME is apart because it is not about what a connection is like.
const PLAIN_OPTIONS: &[(&str, Read)] = &[
    ("MAXAGE", |value, _| at_least_one(value, "maxage").map(Condition::MinAgeSeconds)),
    ("IDLE", |value, _| at_least_one(value, "idle").map(Condition::MinIdleSeconds)),
];

/// The letters that Valkey's clients may have; some of them none has here.
const FLAGS: &[u8] = b"OSMPxbtRBdcuAUreTIN";
const CAPABILITIES: &[u8] = b"r";

impl<'a> Filter<'a> {
    pub(super) fn parse(args: Args<'a>, skip_me: bool, context: &Context<'_>) -> Result<Filter<'a>, Failure> {
        let databases = context.server.store().databases();
        let users = context.server.accounts().users();
        let mut filter = Filter { skip_me, ..Filter::default() };
        let mut rest = args.iter().peekable();
        while let Some(option) = rest.next() {
            let (name, negated) = match option.split_at_checked(NOT.len()) {
                Some((not, name)) if not.eq_ignore_ascii_case(NOT) => (name, true),
                _ => (option, false),
            };
            if is(name, "ID") {
                let ids = if negated { &mut filter.not_ids } else { filter.ids.get_or_insert_default() };
                while let Some(id) = rest.peek().copied().and_then(parse_integer) {
                    ids.push(client_id(id)?);
                    rest.next();
                }
                continue;
            }
            if is(option, "SKIPME") {
                filter.skip_me = yes_or_no(rest.next().ok_or(Failure::SYNTAX)?)?;
                continue;
            }
            let plain = PLAIN_OPTIONS.iter().filter(|_| !negated);
            let mut options = OPTIONS.iter().chain(plain);
            let (_, read) = options.find(|(known, _)| is(name, known)).ok_or(Failure::SYNTAX)?;
            let condition = read(
                rest.next().ok_or(Failure::SYNTAX)?,
                &Asked { negated, users: users.clone(), databases },
            )?;
            filter.demand(condition, negated);
        }
        Ok(filter)
    }

    pub(super) fn by_address(address: &'a [u8]) -> Filter<'a> {
        let condition = Condition::Address(address);
        Filter { demands: vec![Demand { condition, negated: false }], ..Filter::default() }
    }

    pub(super) fn admits(&self, context: &Context<'_>, client: &ClientInfo) -> bool {
        let now = context.session.now();
        let meets = |demand: &Demand<'_>| demand.condition.holds(client, now) != demand.negated;
        !(self.skip_me && client.id == context.client.info.id)
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&client.id))
            && !self.not_ids.contains(&client.id)
            && self.demands.iter().all(meets)
    }

    /// Adds a demand; one of the same kind before it no longer counts.
    fn demand(&mut self, condition: Condition<'a>, negated: bool) {
        let same = |other: &Demand<'_>| {
            other.negated == negated && mem::discriminant(&other.condition) == mem::discriminant(&condition)
        };
        self.demands.retain(|other| !same(other));
        self.demands.push(Demand { condition, negated });
    }
}

impl Condition<'_> {
    fn holds(&self, client: &ClientInfo, now: u64) -> bool {
        // A property that a client has not set is not even equal to an empty one.
        let said = |wanted: &[u8], label: &[u8]| !label.is_empty() && wanted == label;
        let has_letters =
            |wanted: &[u8], letters: &str| wanted.iter().all(|letter| letters.as_bytes().contains(letter));
        match self {
            Condition::Kind(kind) => *kind == Kind::of(client),
            Condition::Address(wanted) => *wanted == client.address.to_string().as_bytes(),
            Condition::LocalAddress(wanted) => *wanted == client.local_address.to_string().as_bytes(),
            Condition::Ip(wanted) => {
                client.address.ip().is_some_and(|ip| *wanted == ip.to_string().as_bytes())
            }
            Condition::User(wanted) => *wanted == client.labels.lock().user,
            Condition::Name(wanted) => said(wanted, &client.labels.lock().name),
            Condition::LibName(wanted) => said(wanted, &client.labels.lock().lib_name),
            Condition::LibVer(wanted) => said(wanted, &client.labels.lock().lib_ver),
            Condition::Flags(wanted) => has_letters(wanted, &client.states.letters()),
            Condition::Capabilities(wanted) => has_letters(wanted, client.capabilities()),
            Condition::Database(database) => *database == client.database(),
            Condition::MinAgeSeconds(age) => client.age_seconds(now) as i64 >= *age,
            Condition::MinIdleSeconds(idle) => client.idle_seconds(now) as i64 >= *idle,
        }
    }
}

impl Kind {
    fn of(client: &ClientInfo) -> Kind {
        match &client.states {
            states if states.has(State::PRIMARY) => Kind::Primary,
            states if states.has(State::SUBSCRIBED) => Kind::Subscriber,
            _ => Kind::Normal,
        }
    }
}

fn client_id(id: i64) -> Result<u64, Failure> {
    u64::try_from(id)
        .ok()
        .filter(|id| *id > 0)
        .ok_or(Failure::fixed("ERR client-id should be greater than 0"))
}

fn at_least_one(text: &[u8], name: &str) -> Result<i64, Failure> {
    let number = parse_integer(text)
        .ok_or_else(|| Failure::new(format!("ERR {name} is not an integer or out of range")))?;
    if number <= 0 {
        return Err(Failure::new(format!("ERR {name} should be greater than 0")));
    }
    Ok(number)
}

fn kind(name: &[u8]) -> Result<Kind, Failure> {
    const PRIMARIES: [&str; 2] = ["master", "primary"];
    const REPLICAS: [&str; 2] = ["replica", "slave"];
    let is_one_of = |names: &[&str]| names.iter().any(|other| is(name, other));
    match name {
        _ if is(name, "normal") => Ok(Kind::Normal),
        _ if is(name, "pubsub") => Ok(Kind::Subscriber),
        _ if is_one_of(&PRIMARIES) => Ok(Kind::Primary),
        _ if is_one_of(&REPLICAS) => Ok(Kind::Replica),
        _ => Err(Failure::new([b"ERR Unknown client type '", name, b"'"].concat())),
    }
}

fn user<'a>(name: &'a [u8], users: &Users) -> Result<&'a [u8], Failure> {
    match users.get(name) {
        Some(_) => Ok(name),
        None => Err(Failure::new([b"ERR No such user '", name, b"'"].concat())),
    }
}

fn yes_or_no(text: &[u8]) -> Result<bool, Failure> {
    match text {
        _ if is(text, "yes") => Ok(true),
        _ if is(text, "no") => Ok(false),
        _ => Err(Failure::SYNTAX),
    }
}

/// Letters that are all known, of an option of this name.
fn known_letters<'a>(
    letters: &'a [u8],
    known: &[u8],
    name: &str,
    asked: &Asked,
) -> Result<&'a [u8], Failure> {
    if letters.iter().all(|letter| known.contains(letter)) {
        return Ok(letters);
    }
    let filter = if asked.negated { format!("NOT-{name}") } else { "provided".to_owned() };
    let found = format!("ERR Unknown {} found in the {filter} filter: ", name.to_ascii_lowercase());
    Err(Failure::new([found.as_bytes(), letters].concat()))
}

fn database(text: &[u8], asked: &Asked) -> Result<usize, Failure> {
    let name = if asked.negated { "NOT-DB" } else { "DB" };
    let number = parse_integer(text)
        .and_then(|number| i32::try_from(number).ok())
        .ok_or_else(|| Failure::new(format!("ERR {name} is not an integer or out of range")))?;
    let last = asked.databases - 1;
    usize::try_from(number)
        .ok()
        .filter(|number| *number <= last)
        .ok_or_else(|| Failure::new(format!("ERR {name} number should be between 0 and {last}")))
}
