//! Which connections CLIENT LIST and CLIENT KILL are about.

use snugly_protocol::resp::{Args, parse_integer};

use super::options::is;
use super::{Context, Failure};
use crate::clients::{ClientInfo, State};

/// What a connection must be like; nothing that was not asked for.
#[derive(Default)]
pub(super) struct Filter<'a> {
    databases: usize,
    ids: Option<Vec<u64>>,
    kind: Option<Kind>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    ip: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    library: Option<&'a [u8]>,
    library_version: Option<&'a [u8]>,
    flags: Option<&'a [u8]>,
    capabilities: Option<&'a [u8]>,
    database: Option<usize>,
    min_age_seconds: i64,
    min_idle_seconds: i64,
    skip_me: bool,
}

#[derive(PartialEq, Eq)]
enum Kind {
    Normal,
    Subscriber,
    /// There are none here.
    Replication,
}

/// An option, and how its value is read; ID is apart because it takes several.
type FilterOption = (&'static str, for<'a> fn(&mut Filter<'a>, &'a [u8]) -> Result<(), Failure>);

#[rustfmt::skip]
const OPTIONS: &[FilterOption] = &[
    ("MAXAGE", |filter, value| at_least_one(value, "maxage").map(|age| filter.min_age_seconds = age)),
    ("TYPE", |filter, value| kind(value).map(|kind| filter.kind = Some(kind))),
    ("ADDR", |filter, value| { filter.address = Some(value); Ok(()) }),
    ("LADDR", |filter, value| { filter.local_address = Some(value); Ok(()) }),
    ("USER", |_, value| user(value)),
    ("SKIPME", |filter, value| yes_or_no(value).map(|yes| filter.skip_me = yes)),
    ("IDLE", |filter, value| at_least_one(value, "idle").map(|idle| filter.min_idle_seconds = idle)),
    ("FLAGS", |filter, value| known_letters(value, FLAGS, "flags").map(|()| filter.flags = Some(value))),
    ("NAME", |filter, value| { filter.name = Some(value); Ok(()) }),
    ("LIB-NAME", |filter, value| { filter.library = Some(value); Ok(()) }),
    ("LIB-VER", |filter, value| { filter.library_version = Some(value); Ok(()) }),
    ("DB", |filter, value| database(value, filter.databases).map(|number| filter.database = Some(number))),
    ("CAPA", |filter, value| known_letters(value, CAPABILITIES, "capa").map(|()| filter.capabilities = Some(value))),
    ("IP", |filter, value| { filter.ip = Some(value); Ok(()) }),
];

/// The letters that Valkey's clients may have; some of them none has here.
const FLAGS: &[u8] = b"OSMPxbtRBdcuAUreTIN";
const CAPABILITIES: &[u8] = b"r";

impl<'a> Filter<'a> {
    pub(super) fn parse(args: Args<'a>, skip_me: bool, context: &Context<'_>) -> Result<Filter<'a>, Failure> {
        let databases = context.server.store().databases();
        let mut filter = Filter { skip_me, databases, ..Filter::default() };
        let mut rest = args.iter().peekable();
        while let Some(option) = rest.next() {
            if is(option, "ID") {
                let ids = filter.ids.get_or_insert_default();
                while let Some(id) = rest.peek().copied().and_then(parse_integer) {
                    ids.push(client_id(id)?);
                    rest.next();
                }
                continue;
            }
            let (_, read) = OPTIONS.iter().find(|(name, _)| is(option, name)).ok_or(Failure::SYNTAX)?;
            read(&mut filter, rest.next().ok_or(Failure::SYNTAX)?)?;
        }
        Ok(filter)
    }

    pub(super) fn by_address(address: &'a [u8]) -> Filter<'a> {
        Filter { address: Some(address), ..Filter::default() }
    }

    pub(super) fn admits(&self, context: &Context<'_>, client: &ClientInfo) -> bool {
        let now = context.session.now();
        let labels = client.labels.lock();
        // What a client has not said of itself is not even equal to nothing.
        let said = |wanted: Option<&[u8]>, label: &[u8]| {
            wanted.is_none_or(|wanted| !label.is_empty() && wanted == label)
        };
        let text = |wanted: Option<&[u8]>, text: &dyn Fn() -> String| {
            wanted.is_none_or(|wanted| wanted == text().as_bytes())
        };
        let has_letters =
            |wanted: &[u8], letters: &str| wanted.iter().all(|letter| letters.as_bytes().contains(letter));
        self.ids.as_ref().is_none_or(|ids| ids.contains(&client.id))
            && self.kind.as_ref().is_none_or(|kind| *kind == Kind::of(client))
            && self.database.is_none_or(|database| database == client.database())
            && client.age_seconds(now) as i64 >= self.min_age_seconds
            && client.idle_seconds(now) as i64 >= self.min_idle_seconds
            && self.flags.is_none_or(|flags| has_letters(flags, &client.states.letters()))
            && self.capabilities.is_none_or(|wanted| has_letters(wanted, client.capabilities()))
            && said(self.name, &labels.name)
            && said(self.library, &labels.library)
            && said(self.library_version, &labels.library_version)
            && text(self.address, &|| client.address.to_string())
            && text(self.local_address, &|| client.local_address.to_string())
            && text(self.ip, &|| client.address.ip().to_string())
            && !(self.skip_me && client.id == context.client.info.id)
    }
}

impl Kind {
    fn of(client: &ClientInfo) -> Kind {
        if client.states.has(State::SUBSCRIBED) { Kind::Subscriber } else { Kind::Normal }
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
    const REPLICATION: [&str; 4] = ["master", "primary", "replica", "slave"];
    match name {
        _ if is(name, "normal") => Ok(Kind::Normal),
        _ if is(name, "pubsub") => Ok(Kind::Subscriber),
        _ if REPLICATION.iter().any(|other| is(name, other)) => Ok(Kind::Replication),
        _ => Err(Failure::new([b"ERR Unknown client type '", name, b"'"].concat())),
    }
}

fn user(name: &[u8]) -> Result<(), Failure> {
    if name == b"default" {
        return Ok(());
    }
    Err(Failure::new([b"ERR No such user '", name, b"'"].concat()))
}

fn yes_or_no(text: &[u8]) -> Result<bool, Failure> {
    match text {
        _ if is(text, "yes") => Ok(true),
        _ if is(text, "no") => Ok(false),
        _ => Err(Failure::SYNTAX),
    }
}

fn known_letters(letters: &[u8], known: &[u8], what: &str) -> Result<(), Failure> {
    if letters.iter().all(|letter| known.contains(letter)) {
        return Ok(());
    }
    let found = format!("ERR Unknown {what} found in the provided filter: ");
    Err(Failure::new([found.as_bytes(), letters].concat()))
}

fn database(text: &[u8], databases: usize) -> Result<usize, Failure> {
    let number = parse_integer(text)
        .and_then(|number| i32::try_from(number).ok())
        .ok_or(Failure::fixed("ERR DB is not an integer or out of range"))?;
    usize::try_from(number)
        .ok()
        .filter(|number| *number < databases)
        .ok_or_else(|| Failure::new(format!("ERR DB number should be between 0 and {}", databases - 1)))
}
