//! The commands that read or write strings, or tell something of a client that the filter has to know.

use std::ffi::CStr;

use super::call::{Entry, entry};
use super::keys::{ALL, FROM_SECOND, Keys, ONE, ONE_AND_STORE, TWO};
use super::{change, read, sort};

/// A command of the server.
pub struct Row {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Number of arguments, the name included; at least so many if it is negative.
    pub arity: i32,
    pub kind: Kind,
    /// The commands that the module runs in its place.
    pub served: Option<Served>,
}

/// What a command is to the module.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Stores strings: the module replaces them, and the command stays the server's.
    Write(Values),
    /// Reads strings and changes none.
    Read,
    /// Changes strings, or returns what it takes away. Stores these.
    Change(Option<Values>),
    /// SET, which returns what was there, or compares it, with one of these options.
    Set,
    /// Says something of the client or of others.
    Note(Note),
}

/// Positions of the strings that a command stores.
#[derive(Clone, Copy)]
pub enum Values {
    At(usize),
    /// Each second argument from this one on.
    Pairs(usize),
    /// As many pairs of a key and a value as the first argument says.
    Counted,
}

/// What a command tells of the client that sends it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// A transaction begins.
    Multi,
    /// A transaction ends: commands in it may do whatever the others below do.
    Exec,
    /// Its database or its user may change.
    Session,
    /// Anybody's rights may change.
    Rights,
    /// MODULE, which may unload this one, and whose commands may do what those of a session do.
    Module,
    /// CLIENT, which may pause all others.
    Client,
    /// CLUSTER, which may begin to take over slots.
    Cluster,
    /// The server's functions may change, among which dictionaries are kept.
    Functions,
    /// A script, whose commands come from nobody and work in its client's database.
    Script,
    /// Strings go to another node, which may not have the dictionaries of this one.
    Migration,
}

/// The two commands of the module that run in the place of one of the server's.
pub struct Served {
    /// For users who may do everything, for the server itself, and where nobody is certain to have logged in.
    pub unchecked: Entry,
    /// For all others: anybody may run it, and it asks for the rights to the original.
    pub checked: Entry,
    /// Flags for the server, such as `readonly fast`.
    pub flags: &'static CStr,
    /// Categories of access lists, but for those that follow from the flags.
    pub group: &'static str,
    pub keys: Keys,
}

/// A command that the server runs itself.
const fn left(name: &'static str, arity: i32, kind: Kind) -> Row {
    Row { name, arity, kind, served: None }
}

/// A command that the module runs.
macro_rules! served {
    ($name:literal, $arity:literal, $kind:expr, $flags:literal, $group:expr, $keys:expr, $run:path) => {
        Row {
            name: $name,
            arity: $arity,
            kind: $kind,
            served: Some(Served {
                unchecked: entry!("snugly.", $name, false, $keys, $run),
                checked: entry!("snugly.checked.", $name, true, $keys, $run),
                flags: $flags,
                group: $group,
                keys: $keys,
            }),
        }
    };
}

const CHANGE: Kind = Kind::Change(None);

const STRING: &str = "string";
const BITMAP: &str = "bitmap";
const KEYSPACE: &str = "keyspace";
const SORTED: &str = "set sortedset list dangerous";

/// No name is longer, in bytes.
pub const LONGEST_NAME: usize = 16;

/// All rows.
#[rustfmt::skip]
pub static TABLE: &[Row] = &[
    left("setnx", 3, Kind::Write(Values::At(2))),
    left("setex", 4, Kind::Write(Values::At(3))),
    left("psetex", 4, Kind::Write(Values::At(3))),
    left("mset", -3, Kind::Write(Values::Pairs(2))),
    left("msetnx", -3, Kind::Write(Values::Pairs(2))),
    left("msetex", -4, Kind::Write(Values::Counted)),

    served!("get", 2, Kind::Read, c"readonly fast", STRING, ONE, read::get),
    served!("mget", -2, Kind::Read, c"readonly fast", STRING, ALL, read::mget),
    served!("strlen", 2, Kind::Read, c"readonly fast", STRING, ONE, read::strlen),
    served!("getrange", 4, Kind::Read, c"readonly", STRING, ONE, read::range),
    served!("substr", 4, Kind::Read, c"readonly", STRING, ONE, read::range),
    served!("getbit", 3, Kind::Read, c"readonly fast", BITMAP, ONE, read::on_plain),
    served!("bitcount", -2, Kind::Read, c"readonly", BITMAP, ONE, read::on_plain),
    served!("bitpos", -3, Kind::Read, c"readonly", BITMAP, ONE, read::on_plain),
    served!("bitfield_ro", -2, Kind::Read, c"readonly fast", BITMAP, ONE, read::on_plain),
    served!("lcs", -3, Kind::Read, c"readonly", STRING, TWO, read::on_plain),
    served!("dump", 2, Kind::Read, c"readonly", KEYSPACE, ONE, read::on_plain),

    served!("set", -3, Kind::Set, c"write deny-oom", STRING, ONE, change::set),
    served!("getset", 3, Kind::Change(Some(Values::At(2))), c"write deny-oom fast", STRING, ONE, change::restored),
    served!("getdel", 2, CHANGE, c"write fast", STRING, ONE, change::restored),
    served!("getex", -2, CHANGE, c"write fast", STRING, ONE, change::restored),
    served!("append", 3, CHANGE, c"write deny-oom fast", STRING, ONE, change::on_plain),
    served!("setrange", 4, CHANGE, c"write deny-oom", STRING, ONE, change::on_plain),
    served!("setbit", 4, CHANGE, c"write deny-oom", BITMAP, ONE, change::on_plain),
    served!("bitfield", -2, CHANGE, c"write deny-oom", BITMAP, ONE, change::fields),
    served!("bitop", -4, CHANGE, c"write deny-oom", BITMAP, FROM_SECOND, change::combine),
    served!("incrbyfloat", 3, CHANGE, c"write deny-oom fast", STRING, ONE, change::increment),
    served!("delifeq", 3, CHANGE, c"write fast", STRING, ONE, change::compare_and_delete),
    served!("sort", -2, CHANGE, c"write deny-oom", SORTED, ONE_AND_STORE, sort::sort),
    served!("sort_ro", -2, CHANGE, c"readonly", SORTED, ONE, sort::sort_read_only),

    left("multi", 1, Kind::Note(Note::Multi)),
    left("exec", 1, Kind::Note(Note::Exec)),
    left("discard", 1, Kind::Note(Note::Exec)),
    left("reset", 1, Kind::Note(Note::Exec)),
    left("select", 2, Kind::Note(Note::Session)),
    left("auth", -2, Kind::Note(Note::Session)),
    left("hello", -1, Kind::Note(Note::Session)),
    left("acl", -2, Kind::Note(Note::Rights)),
    left("config", -2, Kind::Note(Note::Rights)),
    left("module", -2, Kind::Note(Note::Module)),
    left("client", -2, Kind::Note(Note::Client)),
    left("cluster", -2, Kind::Note(Note::Cluster)),
    left("eval", -3, Kind::Note(Note::Script)),
    left("eval_ro", -3, Kind::Note(Note::Script)),
    left("evalsha", -3, Kind::Note(Note::Script)),
    left("evalsha_ro", -3, Kind::Note(Note::Script)),
    left("fcall", -3, Kind::Note(Note::Script)),
    left("fcall_ro", -3, Kind::Note(Note::Script)),
    left("function", -2, Kind::Note(Note::Functions)),
    left("migrate", -6, Kind::Note(Note::Migration)),
];

impl Kind {
    /// The strings that the command stores.
    pub fn values(self) -> Option<Values> {
        match self {
            Kind::Write(values) => Some(values),
            Kind::Change(values) => values,
            Kind::Set => Some(Values::At(2)),
            Kind::Read | Kind::Note(_) => None,
        }
    }
}

impl Row {
    /// Whether the server takes so many arguments. It refuses the others itself.
    pub fn takes(&self, arguments: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { arguments >= least } else { arguments == least }
    }

    /// Whether strings are read and not changed.
    pub fn reads(&self) -> bool {
        matches!(self.kind, Kind::Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once_and_short_enough_to_be_found() {
        let mut names: Vec<_> = TABLE.iter().map(|row| row.name).collect();
        assert!(names.iter().all(|name| name.len() <= LONGEST_NAME && name.to_ascii_lowercase() == *name));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }
}
