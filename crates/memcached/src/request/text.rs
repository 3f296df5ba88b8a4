//! Requests of the text protocol (protocol.txt, from "Storage commands" on): words, of which the first is the
//! command.
//!
//! It knows commands and their words. Lines and values are for `command` and what uses it.

use super::command::{Body, Command, unknown, value_len};
use crate::exptime::Exptime;
use crate::key::{Key, MAX_KEY};
use crate::line::{Words, signed, unsigned, unsigned_32, without_end};
use crate::operation::{Arithmetic, Delete, Direction, Get, Operation, Store, StoreMode};
use crate::refusal::Refusal;
use crate::reply::{Form, text::Form as TextForm};

/// Spaces that may be before a long line of keys.
const MAX_INDENT: usize = 100;
/// Megabytes that a memory limit may have.
const MEMORY_LIMITS: std::ops::RangeInclusive<u32> = 8..=1_000_000_000;
/// Most words behind the name of a command that has a fixed number of them.
const MAX_WORDS: usize = 6;

/// What is left of a line of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Bytes, with the line's end.
    pub(super) left: usize,
    pub(super) with_cas: bool,
    pub(super) touch: Option<Exptime>,
}

impl Keys {
    /// The next key of `line`, what is left of the line, and the bytes that it takes: with the last one all
    /// of them.
    #[inline]
    pub(super) fn next<'a>(self, line: &'a [u8]) -> Option<(Operation<'a>, Form<'a>, usize)> {
        let content = without_end(line);
        let mut words = Words::new(content);
        let key = words.next()?;
        words.skip_spaces();
        let is_last = words.rest().is_empty();
        let taken = if is_last { line.len() } else { content.len() - words.rest().len() };
        let form = TextForm { key, with_cas: self.with_cas, is_last, is_quiet: false };
        Some((Operation::Get(Get::plain(Key::new(key), self.touch)), Form::Text(form), taken))
    }
}

/// A command, but for those that take keys without a number.
#[derive(Clone, Copy)]
enum Kind {
    Store { mode: StoreMode, with_cas: bool },
    Arithmetic(Direction),
    Delete,
    Touch,
    FlushAll,
    Verbosity,
    CacheMemoryLimit,
}

/// Name, kind, and the fewest and most words behind the name.
type Row = (&'static [u8], Kind, usize, usize);

const fn store(mode: StoreMode) -> Kind {
    Kind::Store { mode, with_cas: false }
}

const COMMANDS: [Row; 13] = [
    (b"set", store(StoreMode::Set), 4, 5),
    (b"add", store(StoreMode::Add), 4, 5),
    (b"replace", store(StoreMode::Replace), 4, 5),
    (b"append", store(StoreMode::Append), 4, 5),
    (b"prepend", store(StoreMode::Prepend), 4, 5),
    (b"cas", Kind::Store { mode: StoreMode::Set, with_cas: true }, 5, 6),
    (b"incr", Kind::Arithmetic(Direction::Increment), 2, 3),
    (b"decr", Kind::Arithmetic(Direction::Decrement), 2, 3),
    (b"delete", Kind::Delete, 1, 3),
    (b"touch", Kind::Touch, 2, 3),
    (b"flush_all", Kind::FlushAll, 0, 2),
    (b"verbosity", Kind::Verbosity, 1, 2),
    (b"cache_memlimit", Kind::CacheMemoryLimit, 1, 2),
];

/// The words behind a name.
struct Arguments<'a> {
    words: [&'a [u8]; MAX_WORDS],
    /// Number of all words, of which there may be more than fit.
    count: usize,
}

impl<'a> Arguments<'a> {
    #[inline]
    fn new(words: Words<'a>) -> Arguments<'a> {
        let mut arguments = Arguments { words: [b""; MAX_WORDS], count: 0 };
        for word in words {
            if let Some(place) = arguments.words.get_mut(arguments.count) {
                *place = word;
            }
            arguments.count += 1;
        }
        arguments
    }

    /// Whether the last word is `noreply`.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.count.checked_sub(1).and_then(|last| self.words.get(last)) == Some(&&b"noreply"[..])
    }

    #[inline]
    fn key(&self) -> Result<Key<'a>, Refusal> {
        key(self.words[0])
    }
}

#[inline]
fn key(word: &[u8]) -> Result<Key<'_>, Refusal> {
    if word.len() > MAX_KEY { Err(Refusal::BadFormat) } else { Ok(Key::new(word)) }
}

/// Whether a line starts as one of keys does, which may be long.
pub(super) fn is_line_of_keys(line: &[u8]) -> bool {
    let indent = line.iter().take(MAX_INDENT + 1).take_while(|byte| **byte == b' ').count();
    let names = [&b"get "[..], b"gets ", b"gat ", b"gats "];
    indent <= MAX_INDENT && names.iter().any(|name| line[indent..].starts_with(name))
}

/// Parses the command `name`, whose other words are `words`, in the whole `line`.
#[inline]
pub(super) fn parse<'a>(name: &'a [u8], words: Words<'a>, line: &'a [u8]) -> Command<'a> {
    match name {
        b"get" => keys(words, line, false, false),
        b"gets" => keys(words, line, true, false),
        b"gat" => keys(words, line, false, true),
        b"gats" => keys(words, line, true, true),
        _ => other(name, words),
    }
}

/// Checks a line of keys. One wrong key is the end of all, as in memcached.
#[inline]
fn keys<'a>(mut words: Words<'a>, line: &[u8], with_cas: bool, touches: bool) -> Command<'a> {
    let mut touch = None;
    if touches {
        touch = match words.next().map(signed) {
            None => return unknown(),
            Some(Some(time)) => Some(Exptime(time)),
            Some(None) => return refused(Refusal::BadExptime),
        };
    }
    words.skip_spaces();
    if words.rest().is_empty() {
        return unknown();
    }
    let line_end = line.len() - without_end(line).len();
    let left = words.rest().len() + line_end;
    match words.map(key).find_map(Result::err) {
        Some(refusal) => refused(refusal),
        None => Command::Keys(Keys { left, with_cas, touch }),
    }
}

fn refused<'a>(refusal: Refusal) -> Command<'a> {
    Command::Refused(refusal, Form::Text(TextForm::default()), Body::None)
}

#[inline]
fn other<'a>(name: &[u8], words: Words<'a>) -> Command<'a> {
    let loud = Form::Text(TextForm::default());
    let Some((_, kind, fewest, most)) = COMMANDS.iter().find(|row| row.0 == name) else {
        let operation = match name {
            b"stats" => Operation::Stats { topic: words.rest().trim_ascii() },
            b"version" => Operation::Version,
            b"quit" => Operation::Quit,
            _ => return unknown(),
        };
        return Command::Done(operation, loud);
    };
    let arguments = Arguments::new(words);
    let body = || match kind {
        Kind::Store { .. } => Body::announced(arguments.words.get(3).copied()),
        _ => Body::None,
    };
    if arguments.count < *fewest || arguments.count > *most {
        return Command::Refused(Refusal::UnknownCommand, loud, body());
    }
    let form = Form::Text(TextForm { is_quiet: arguments.is_quiet(), ..TextForm::default() });
    let parsed = match *kind {
        Kind::Store { mode, with_cas } => stored(mode, with_cas, &arguments, form),
        kind => operation(kind, &arguments).map(|operation| Command::Done(operation, form)),
    };
    parsed.unwrap_or_else(|refusal| Command::Refused(refusal, form, body()))
}

#[inline]
fn stored<'a>(
    mode: StoreMode,
    with_cas: bool,
    arguments: &Arguments<'a>,
    form: Form<'a>,
) -> Result<Command<'a>, Refusal> {
    let [_, flags, exptime, len, cas, _] = arguments.words;
    let store = Store {
        flags: unsigned_32(flags).ok_or(Refusal::BadFormat)?,
        exptime: Exptime(signed(exptime).ok_or(Refusal::BadFormat)?),
        compare: if with_cas { Some(unsigned(cas).ok_or(Refusal::BadFormat)?) } else { None },
        ..Store::plain(arguments.key()?, mode)
    };
    Ok(Command::Store(store, value_len(len).ok_or(Refusal::BadFormat)?, form))
}

fn operation<'a>(kind: Kind, arguments: &Arguments<'a>) -> Result<Operation<'a>, Refusal> {
    let is_quiet = arguments.is_quiet();
    let [first, second, ..] = arguments.words;
    Ok(match kind {
        Kind::Store { .. } => return Err(Refusal::UnknownCommand), // never: it has a value
        Kind::Arithmetic(direction) => Operation::Arithmetic(Arithmetic {
            key: arguments.key()?,
            direction,
            delta: unsigned(second).ok_or(Refusal::BadDelta)?,
            initial: None,
            compare: None,
            exptime: None,
            new_cas: None,
        }),
        Kind::Delete => {
            // Old clients send a time, which must be 0.
            let words_of_its_own = arguments.count - usize::from(is_quiet && arguments.count > 1);
            if words_of_its_own > 1 && (words_of_its_own > 2 || second != b"0") {
                return Err(Refusal::BadDelete);
            }
            Operation::Delete(Delete::plain(arguments.key()?))
        }
        Kind::Touch => Operation::Touch {
            key: arguments.key()?,
            exptime: Exptime(signed(second).ok_or(Refusal::BadExptime)?),
        },
        Kind::FlushAll if arguments.count == usize::from(is_quiet) => {
            Operation::FlushAll { delay: Exptime::NEVER }
        }
        Kind::FlushAll => Operation::FlushAll { delay: Exptime(signed(first).ok_or(Refusal::BadExptime)?) },
        Kind::Verbosity => Operation::Verbosity { level: unsigned_32(first).ok_or(Refusal::BadFormat)? },
        Kind::CacheMemoryLimit => {
            let megabytes = unsigned_32(first).ok_or(Refusal::UnknownCommand)?;
            if megabytes < *MEMORY_LIMITS.start() {
                return Err(Refusal::MemoryLimitTooSmall);
            }
            if megabytes > *MEMORY_LIMITS.end() {
                return Err(Refusal::MemoryLimitTooLarge);
            }
            Operation::CacheMemoryLimit { megabytes }
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::request::tests::{told, told_one};

    /// A key that is one byte too long.
    fn long_key() -> String {
        "k".repeat(251)
    }

    #[test]
    fn a_line_of_keys_is_one_get_for_each() {
        assert_eq!(told(b"get a\r\n"), ["get a"]);
        assert_eq!(told(b"  get   a   b  \r\n"), ["get a", "get b"]);
        assert_eq!(told(b"gets a  b\n"), ["get a", "get b"]);
        assert_eq!(
            told(b"gat -1 a b\r\ngats 30 c\r\n"),
            ["get a touch -1", "get b touch -1", "get c touch 30"]
        );
    }

    #[test]
    fn one_key_too_long_refuses_the_whole_line() {
        let line = format!("get a {} b\r\nget c\r\n", long_key());
        assert_eq!(told(line.as_bytes()), ["CLIENT_ERROR bad command line format", "get c"]);
        let key = "k".repeat(250);
        assert_eq!(told_one(format!("get {key}\r\n").as_bytes()), format!("get {key}"));
    }

    #[test]
    fn values_are_stored_in_six_ways() {
        let cases: [(&str, &str); 9] = [
            ("set a 4294967295 0 1\r\n1\r\n", "Set a 4294967295 0 = 1"),
            ("set a +1 -1 0\r\n\r\n", "Set a 1 -1 = "),
            ("set a 0 0 4\r\na\r\nb\r\n", "Set a 0 0 = a\\r\\nb"),
            ("add a 0 0 1\r\n1\r\n", "Add a 0 0 = 1"),
            ("replace a 0 0 1\r\n1\r\n", "Replace a 0 0 = 1"),
            ("append a 5 0 1\r\n1\r\n", "Append a 5 0 = 1"),
            ("prepend a 0 0 1 noreply\r\n1\r\n", "Prepend a 0 0 = 1"),
            ("set a 0 0 1 anything\r\n1\r\n", "Set a 0 0 = 1"),
            ("cas a 0 0 1 18446744073709551615\r\n1\r\n", "Set a 0 0 if 18446744073709551615 = 1"),
        ];
        for (request, expected) in cases {
            assert_eq!(told_one(request.as_bytes()), expected);
        }
    }

    #[test]
    fn the_words_of_a_store_are_checked() {
        let wrong = "CLIENT_ERROR bad command line format | NoOp";
        for request in [
            "set a x 0 1\r\n1\r\nmn\r\n",
            "set a -1 0 1\r\n1\r\nmn\r\n",
            "set a 4294967296 0 1\r\n1\r\nmn\r\n",
            "set a 0 x 1\r\n1\r\nmn\r\n",
            "set a 0 0 -1\r\nmn\r\n",
            "set a 0 0 x\r\nmn\r\n",
            "cas a 0 0 1 x\r\n1\r\nmn\r\n",
            &format!("set {} 0 0 1\r\n1\r\nmn\r\n", long_key()),
        ] {
            assert_eq!(told_one(request.as_bytes()), wrong, "{request:?}");
        }
        assert_eq!(told(b"set a 0 0 x noreply\r\nmn\r\n"), ["", "NoOp"]);
        assert_eq!(told(b"set a 0 0\r\n"), ["ERROR"]);
        assert_eq!(told(b"cas a 0 0 1\r\n1\r\nmn\r\n"), ["ERROR", "NoOp"]);
        assert_eq!(told(b"set a 0 0 1 noreply x\r\n1\r\nmn\r\n"), ["ERROR", "NoOp"]);
    }

    #[test]
    fn only_a_set_too_large_makes_its_old_value_go() {
        let value = "x".repeat(101);
        let refused = "SERVER_ERROR object too large for cache";
        for name in ["add", "replace", "append", "prepend"] {
            assert_eq!(told_one(format!("{name} a 0 0 101\r\n{value}\r\n").as_bytes()), refused);
        }
        assert_eq!(told_one(format!("cas a 0 0 101 1\r\n{value}\r\n").as_bytes()), refused);
        let quiet = format!("set a 0 0 101 noreply\r\n{value}\r\nmn\r\n");
        assert_eq!(told(quiet.as_bytes()), [" deleting a", "NoOp"]);
    }

    #[test]
    fn other_commands_take_their_words() {
        let cases: [(&str, &str); 24] = [
            ("incr a 18446744073709551615", "Increment a 18446744073709551615"),
            ("decr a 1 noreply", "Decrement a 1"),
            ("incr a 1 foo", "Increment a 1"),
            ("incr a -1", "CLIENT_ERROR invalid numeric delta argument"),
            ("incr a 18446744073709551616", "CLIENT_ERROR invalid numeric delta argument"),
            ("incr a x noreply", ""),
            ("touch a -1", "touch a -1"),
            ("touch a x", "CLIENT_ERROR invalid exptime argument"),
            ("gat x a", "CLIENT_ERROR invalid exptime argument"),
            ("delete a", "delete a"),
            ("delete a 0", "delete a"),
            ("delete a 0 noreply", "delete a"),
            ("delete a 5", "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"),
            ("delete a 5 noreply", ""),
            ("flush_all", "flush 0"),
            ("flush_all noreply", "flush 0"),
            ("flush_all 10 noreply", "flush 10"),
            ("flush_all -1", "flush -1"),
            ("flush_all x", "CLIENT_ERROR invalid exptime argument"),
            ("verbosity 1", "Verbosity { level: 1 }"),
            ("verbosity x", "CLIENT_ERROR bad command line format"),
            ("stats", "stats "),
            ("stats  detail on ", "stats detail on"),
            ("version foo", "Version"),
        ];
        for (request, expected) in cases {
            assert_eq!(told_one(format!("{request}\r\n").as_bytes()), expected, "{request}");
        }
    }

    #[test]
    fn a_memory_limit_is_megabytes() {
        assert_eq!(told_one(b"cache_memlimit 64\r\n"), "CacheMemoryLimit { megabytes: 64 }");
        assert_eq!(
            told_one(b"cache_memlimit 4\r\n"),
            "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"
        );
        assert_eq!(
            told_one(b"cache_memlimit 4000000000\r\n"),
            "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"
        );
    }

    #[test]
    fn what_is_no_command_is_an_error() {
        for request in [
            "",
            " ",
            "a",
            "foo",
            "GET a",
            "get",
            "get ",
            "gets",
            "gat",
            "gat 1",
            "incr a",
            "incr a 1 2 3",
            "delete",
            "delete a 0 0 0",
            "touch",
            "touch a",
            "touch a 0 0 0",
            "flush_all 1 2 3",
            "verbosity",
            "verbosity 1 2 3",
            "cache_memlimit",
            "cache_memlimit x",
            "mz",
            "m",
            "shutdown",
            "slabs",
            "lru",
            "watch foo",
        ] {
            assert_eq!(told_one(format!("{request}\r\n").as_bytes()), "ERROR", "{request}");
        }
        assert_eq!(told_one(b"\n"), "ERROR");
    }
}
