//! What the changes of commands are called by those who listen to the events of keys.
//!
//! It knows the names of commands and of events. What depends on a command's arguments, the command's function says.

use std::ops::Range;

use snugly_store::{End, Observer};

use super::Context;
use crate::event_classes::EventClasses;
use crate::key_events::{self, Cause, Event};
use crate::state::Server;

const fn generic(name: &'static str) -> Event {
    Event::new(EventClasses::GENERIC, name)
}

const fn string(name: &'static str) -> Event {
    Event::new(EventClasses::STRING, name)
}

const fn list(name: &'static str) -> Event {
    Event::new(EventClasses::LIST, name)
}

const fn writes(written: &'static [Event]) -> Cause {
    Cause { written, ..Cause::NONE }
}

const fn changes(written: &'static [Event], removed: &'static [Event]) -> Cause {
    Cause { written, removed, ..Cause::NONE }
}

/// A value under another key, which is new there even if there was another one.
const fn places(written: &'static [Event]) -> Cause {
    Cause { written, replaces: true, ..Cause::NONE }
}

const DEL: Event = generic("del");
const EXPIRE: Event = generic("expire");
const SET: Event = string("set");

static SETS: Cause = writes(&[SET]);
static ADDS: Cause = writes(&[string("incrby")]);
static SETS_BITS: Cause = writes(&[string("setbit")]);
static DELETES: Cause = changes(&[], &[DEL]);
static SETS_OR_DELETES: Cause = changes(&[SET], &[DEL]);
static EXPIRES: Cause = writes(&[EXPIRE]);
static PERSISTS: Cause = writes(&[generic("persist")]);
static SETS_UNTIL: Cause = writes(&[SET, EXPIRE]);
static PUSHES_LEFT: Cause = writes(&[list("lpush")]);
static PUSHES_RIGHT: Cause = writes(&[list("rpush")]);
static POPS_LEFT: Cause = changes(&[list("lpop")], &[list("lpop"), DEL]);
static POPS_RIGHT: Cause = changes(&[list("rpop")], &[list("rpop"), DEL]);
static RENAMES: Cause = places(&[generic("rename_from").of_source(), generic("rename_to")]);
static MOVES: Cause = places(&[generic("move_from").of_source(), generic("move_to")]);
static COPIES: Cause = places(&[generic("copy_to")]);

/// By the names of commands; those that are not here make no changes, or say themselves what they are called.
#[rustfmt::skip]
static CAUSES: &[(&str, &Cause)] = &[
    ("append", &writes(&[string("append")])),
    ("bitfield", &SETS_BITS),
    ("bitop", &changes(&[SET], &[DEL])),
    ("decr", &ADDS),
    ("decrby", &ADDS),
    ("del", &DELETES),
    ("delifeq", &DELETES),
    ("expire", &EXPIRES),
    ("expireat", &EXPIRES),
    ("getdel", &DELETES),
    ("getset", &SETS),
    ("incr", &ADDS),
    ("incrby", &ADDS),
    ("incrbyfloat", &writes(&[string("incrbyfloat")])),
    ("linsert", &writes(&[list("linsert")])),
    ("lpush", &PUSHES_LEFT),
    ("lpushx", &PUSHES_LEFT),
    ("lrem", &changes(&[list("lrem")], &[list("lrem"), DEL])),
    ("lset", &writes(&[list("lset")])),
    ("ltrim", &changes(&[list("ltrim")], &[list("ltrim"), DEL])),
    ("mset", &SETS),
    ("msetex", &SETS),
    ("msetnx", &SETS),
    ("persist", &PERSISTS),
    ("pexpire", &EXPIRES),
    ("pexpireat", &EXPIRES),
    ("psetex", &SETS_UNTIL),
    ("restore", &Cause { removed: &[DEL], ..places(&[generic("restore")]) }),
    ("rpush", &PUSHES_RIGHT),
    ("rpushx", &PUSHES_RIGHT),
    ("set", &SETS),
    ("setbit", &SETS_BITS),
    ("setex", &SETS_UNTIL),
    ("setnx", &SETS),
    ("setrange", &writes(&[string("setrange")])),
    ("sort", &changes(&[list("sortstore")], &[DEL])),
    ("unlink", &DELETES),
];

/// The keys of commands that look them up for reading without counting that as a hit or a miss, by the places among
/// their keys.
const LOOKUPS: &[(&str, Range<usize>)] = &[
    ("copy", 0..1),
    ("exists", 0..usize::MAX),
    ("expiretime", 0..1),
    ("getdel", 0..1),
    ("getset", 0..1),
    ("pexpiretime", 0..1),
    ("pttl", 0..1),
    ("ttl", 0..1),
    ("type", 0..1),
];

/// What is said of a command's changes and lookups.
#[derive(Clone)]
pub(super) struct Events {
    cause: &'static Cause,
    lookups: Range<usize>,
}

impl Events {
    pub(super) fn of(name: &str) -> Events {
        let cause = CAUSES.iter().find(|(command, _)| *command == name);
        let lookups = LOOKUPS.iter().find(|(command, _)| *command == name);
        Events {
            cause: cause.map_or(&Cause::NONE, |(_, cause)| cause),
            lookups: lookups.map_or(0..0, |(_, places)| places.clone()),
        }
    }
}

/// Says what the changes of a command are called, which is about to run; returns whether anybody may want to know.
pub(super) fn begin<'k>(
    context: &mut Context<'_>,
    events: &Events,
    keys: impl Iterator<Item = &'k [u8]>,
) -> bool {
    if !context.server.key_events().is_on() {
        return false;
    }
    let lookups = &events.lookups;
    keys.skip(lookups.start).take(lookups.len()).for_each(|key| look_up(context, key));
    key_events::act(events.cause);
    true
}

/// Tells of a key that is about to be looked up, if it is not there.
pub(super) fn look_up(context: &mut Context<'_>, key: &[u8]) {
    let key_events = context.server.key_events();
    let database = context.client.database;
    if key_events.tells(EventClasses::MISSED) && matches!(context.session.peek(database, key), Ok(None)) {
        key_events.missed(database, key);
    }
}

/// Runs requests of memcached's protocols, whose changes are called as if SET or DEL had made them.
pub(crate) fn named_as_of_memcached<R>(server: &Server, requests: impl FnOnce() -> R) -> R {
    if !server.key_events().is_on() {
        return requests();
    }
    key_events::act(&SETS_OR_DELETES);
    let result = requests();
    key_events::rest();
    result
}

impl Context<'_> {
    fn act(&self, cause: &'static Cause) {
        if self.server.key_events().is_on() {
            key_events::act(cause);
        }
    }

    fn act_from(&self, source: (usize, &[u8]), of_source: &'static Cause, cause: &'static Cause) {
        if self.server.key_events().is_on() {
            key_events::act_from(source, of_source, cause);
        }
    }

    /// Strings that are about to be set expire.
    pub(super) fn sets_until(&self) {
        self.act(&SETS_UNTIL);
    }

    pub(super) fn expires(&self) {
        self.act(&EXPIRES);
    }

    pub(super) fn persists(&self) {
        self.act(&PERSISTS);
    }

    pub(super) fn pops(&self, end: End) {
        self.act(pops(end));
    }

    /// An element is about to go from one list to another, or to another place in it.
    pub(super) fn moves_element(&self, from: (&[u8], End), to: (&[u8], End)) {
        let source = (self.client.database, from.0);
        if from.0 == to.0 {
            self.act(rotates(from.1, to.1));
        } else {
            self.act_from(source, pops(from.1), pushes(to.1));
        }
    }

    pub(super) fn renames(&self, key: &[u8]) {
        self.act_from((self.client.database, key), &Cause::NONE, &RENAMES);
    }

    pub(super) fn moves_key(&self, key: &[u8]) {
        self.act_from((self.client.database, key), &Cause::NONE, &MOVES);
    }

    pub(super) fn copies(&self) {
        self.act(&COPIES);
    }
}

fn pops(end: End) -> &'static Cause {
    match end {
        End::Left => &POPS_LEFT,
        End::Right => &POPS_RIGHT,
    }
}

fn pushes(end: End) -> &'static Cause {
    match end {
        End::Left => &PUSHES_LEFT,
        End::Right => &PUSHES_RIGHT,
    }
}

fn rotates(from: End, to: End) -> &'static Cause {
    static ROTATIONS: [Cause; 4] = [
        writes(&[list("lpush"), list("lpop")]),
        writes(&[list("rpush"), list("lpop")]),
        writes(&[list("lpush"), list("rpop")]),
        writes(&[list("rpush"), list("rpop")]),
    ];
    let is_right = |end| usize::from(end == End::Right);
    &ROTATIONS[2 * is_right(from) + is_right(to)]
}

#[cfg(test)]
mod tests {
    use super::super::REGISTRY;
    use super::*;

    #[test]
    fn causes_and_lookups_are_of_commands_that_there_are() {
        let names = CAUSES.iter().map(|(name, _)| *name).chain(LOOKUPS.iter().map(|(name, _)| *name));
        for name in names {
            assert!(REGISTRY.rows().iter().any(|row| row.full_name == name), "{name}");
        }
    }
}
