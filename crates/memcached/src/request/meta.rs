//! Requests of the meta commands (protocol.txt, "Meta Commands"): two letters, a key and flags.
//!
//! It knows the flags and what they ask for. What they are answered with is for `reply`.

use super::command::{Body, Command, unknown, value_len};
use crate::exptime::Exptime;
use crate::key::{Key, MAX_KEY};
use crate::line::{Words, signed, unsigned, unsigned_32};
use crate::operation::{Arithmetic, Delete, Direction, Get, Initial, Operation, Recache, Store, StoreMode};
use crate::refusal::Refusal;
use crate::reply::{Form, meta::Form as MetaForm};

/// Most flags, with the length of a value for one of them, as in memcached.
const MAX_FLAGS: usize = 17;
/// Longest opaque in bytes, with its letter.
const MAX_OPAQUE: usize = 32;

/// The flags of a request.
#[derive(Clone, Copy, Default)]
struct Flags {
    is_base64: bool,
    is_quiet: bool,
    wants_value: bool,
    is_no_use: bool,
    invalidate: bool,
    keeps_item: bool,
    compare: Option<u64>,
    new_cas: Option<u64>,
    exptime: Option<Exptime>,
    vivify: Option<Exptime>,
    /// That of T and N which stands last: memcached sets both of a created item, in this order.
    last_exptime: Option<Exptime>,
    recache: Option<Recache>,
    mode: Option<u8>,
    client_flags: u32,
    initial: u64,
    delta: Option<u64>,
}

impl Flags {
    /// Reads all of them. Of what is wrong, memcached tells what it finds first, which is no token.
    fn parse(words: Words<'_>) -> Result<Flags, Refusal> {
        let mut flags = Flags::default();
        let mut seen = 0u128;
        let mut wrong = None;
        for word in words {
            let letter = 1u128.checked_shl(word[0].into()).ok_or(Refusal::InvalidFlag)?;
            if seen & letter != 0 {
                return Err(Refusal::DuplicateFlag);
            }
            seen |= letter;
            match flags.set(word) {
                Err(Refusal::InvalidFlag) => return Err(Refusal::InvalidFlag),
                Err(Refusal::LongOpaque) if wrong.is_some() => {}
                Err(refusal) => wrong = Some(refusal),
                Ok(()) => {}
            }
        }
        wrong.map_or(Ok(flags), Err)
    }

    fn set(&mut self, word: &[u8]) -> Result<(), Refusal> {
        let token = &word[1..];
        let time = || signed(token).map(Exptime).ok_or(Refusal::BadToken).map(Some);
        let number = || unsigned(token).ok_or(Refusal::BadToken);
        if let b'T' | b'N' = word[0] {
            self.last_exptime = time()?;
        }
        match word[0] {
            b'b' => self.is_base64 = true,
            b'q' => self.is_quiet = true,
            b'v' => self.wants_value = true,
            b'u' => self.is_no_use = true,
            b'I' => self.invalidate = true,
            b'x' => self.keeps_item = true,
            b'C' => self.compare = Some(number()?),
            b'E' => self.new_cas = Some(number()?),
            b'T' => self.exptime = time()?,
            b'N' => self.vivify = time()?,
            b'R' => {
                self.recache = time()?.map(|left| Recache { left, of_touched: self.exptime.is_some() });
            }
            b'F' => self.client_flags = unsigned_32(token).ok_or(Refusal::BadFormat)?,
            b'J' => self.initial = unsigned(token).ok_or(Refusal::BadInitialFlag)?,
            b'D' => self.delta = Some(unsigned(token).ok_or(Refusal::BadDeltaFlag)?),
            b'M' => match token {
                [mode] => self.mode = Some(*mode),
                _ => return Err(Refusal::LongMode),
            },
            b'O' if word.len() > MAX_OPAQUE => return Err(Refusal::LongOpaque),
            // What is answered only, and L and P, which are for proxies.
            b'O' | b'k' | b's' | b't' | b'c' | b'f' | b'h' | b'l' | b'L' | b'P' => {}
            _ => return Err(Refusal::InvalidFlag),
        }
        Ok(())
    }
}

/// A key and its flags.
struct Keyed<'a> {
    key: Key<'a>,
    flags: Flags,
    form: Form<'a>,
}

/// Parses the command `m` and `letter`, whose other words are `words`.
pub(super) fn parse<'a>(letter: u8, words: Words<'a>) -> Command<'a> {
    let parsed = match letter {
        b'g' => get(words),
        b's' => store(words),
        b'd' => delete(words),
        b'a' => arithmetic(words),
        b'e' => debug(words),
        b'n' => Ok(Command::Done(Operation::NoOp, Form::Meta(MetaForm::default()))),
        _ => return unknown(),
    };
    parsed.unwrap_or_else(|refusal| {
        let body = if letter == b's' { Body::announced(words.clone().nth(1)) } else { Body::None };
        Command::Refused(refusal, Form::Meta(MetaForm::default()), body)
    })
}

/// Takes the key off `words`.
#[inline]
fn take_key<'a>(words: &mut Words<'a>) -> Result<&'a [u8], Refusal> {
    let key = words.next().ok_or(Refusal::UnknownCommand)?;
    if key.len() > MAX_KEY { Err(Refusal::BadFormat) } else { Ok(key) }
}

/// The key on the wire, decoded if need be, with the flags behind it.
#[inline]
fn keyed<'a>(wire: &'a [u8], words: Words<'a>) -> Result<Keyed<'a>, Refusal> {
    let flags = Flags::parse(words)?;
    let key = match flags.is_base64 {
        true => Key::base64(wire).ok_or(Refusal::BadBase64)?,
        false => Key::new(wire),
    };
    let form = Form::Meta(MetaForm {
        key: wire,
        is_base64: flags.is_base64,
        flags: words.rest(),
        is_quiet: flags.is_quiet,
        wants_value: flags.wants_value,
    });
    Ok(Keyed { key, flags, form })
}

/// The same for the commands that tell less of what is wrong.
fn keyed_tersely(mut words: Words<'_>) -> Result<Keyed<'_>, Refusal> {
    let wire = take_key(&mut words)?;
    if words.count() > MAX_FLAGS {
        return Err(Refusal::TooManyFlags);
    }
    keyed(wire, words).map_err(|refusal| match refusal {
        Refusal::LongOpaque => refusal,
        _ => Refusal::InvalidOrDuplicateFlag,
    })
}

#[inline]
fn get(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let wire = take_key(&mut words)?;
    if words.count() > MAX_FLAGS {
        return Err(Refusal::TooManyGetFlags);
    }
    let Keyed { key, flags, form } = keyed(wire, words)?;
    let operation = Operation::Get(Get {
        key,
        wants_value: flags.wants_value,
        touch: flags.exptime,
        vivify: flags.vivify.and(flags.last_exptime),
        recache: flags.recache,
        new_cas: flags.new_cas,
        counts_as_use: !flags.is_no_use,
    });
    Ok(Command::Done(operation, form))
}

#[inline]
fn store(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let wire = take_key(&mut words)?;
    let len = words.next().ok_or(Refusal::BadFormat)?;
    if words.count() >= MAX_FLAGS {
        return Err(Refusal::TooManyFlags);
    }
    let len = value_len(len).ok_or(Refusal::BadFormat)?;
    let Keyed { key, flags, form } = keyed(wire, words)?;
    let mode = match flags.mode.map(|mode| mode.to_ascii_uppercase()) {
        None | Some(b'S') => StoreMode::Set,
        Some(b'E') => StoreMode::Add,
        Some(b'A') => StoreMode::Append,
        Some(b'P') => StoreMode::Prepend,
        Some(b'R') => StoreMode::Replace,
        Some(_) => return Err(Refusal::BadStoreMode),
    };
    let (mode, compare) = match (mode, flags.compare) {
        (StoreMode::Add, _) => (mode, None),
        // A token is only of a key that is there.
        (StoreMode::Replace, Some(_)) => (StoreMode::Set, flags.compare),
        (_, compare) => (mode, compare),
    };
    let vivify = flags.vivify.filter(|_| matches!(mode, StoreMode::Append | StoreMode::Prepend));
    let store = Store {
        key,
        mode,
        flags: flags.client_flags,
        exptime: flags.exptime.unwrap_or(Exptime::NEVER),
        value: b"",
        compare,
        new_cas: flags.new_cas,
        invalidate: flags.invalidate && mode == StoreMode::Set && compare.is_some(),
        vivify,
    };
    Ok(Command::Store(store, len, form))
}

fn delete(words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let Keyed { key, flags, form } = keyed_tersely(words)?;
    let operation = Operation::Delete(Delete {
        key,
        compare: flags.compare,
        invalidate: flags.invalidate,
        exptime: flags.exptime,
        new_cas: flags.new_cas,
        keeps_item: flags.keeps_item,
    });
    Ok(Command::Done(operation, form))
}

fn arithmetic(words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let Keyed { key, flags, form } = keyed_tersely(words)?;
    let direction = match flags.mode.map(|mode| mode.to_ascii_uppercase()) {
        None | Some(b'I' | b'+') => Direction::Increment,
        Some(b'D' | b'-') => Direction::Decrement,
        Some(_) => return Err(Refusal::BadArithmeticMode),
    };
    let operation = Operation::Arithmetic(Arithmetic {
        key,
        direction,
        delta: flags.delta.unwrap_or(1),
        initial: flags.vivify.map(|exptime| Initial { value: flags.initial, exptime }),
        compare: flags.compare.filter(|cas| *cas != 0),
        exptime: flags.exptime,
        new_cas: flags.new_cas,
    });
    Ok(Command::Done(operation, form))
}

fn debug(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let wire = take_key(&mut words).map_err(|_| Refusal::BadFormat)?;
    let is_base64 = words.next() == Some(b"b");
    let key = match is_base64 {
        true => Key::base64(wire).ok_or(Refusal::BadFormat)?,
        false => Key::new(wire),
    };
    let form = Form::Meta(MetaForm { key: wire, is_base64, ..MetaForm::default() });
    Ok(Command::Done(Operation::MetaDebug { key }, form))
}

#[cfg(test)]
mod tests {
    use crate::request::tests::{told, told_one};

    /// Checks what each line is.
    #[track_caller]
    fn check(cases: &[(&str, &str)]) {
        for (line, expected) in cases {
            assert_eq!(told_one(format!("{line}\r\n").as_bytes()), *expected, "{line}");
        }
    }

    #[test]
    fn a_get_may_ask_for_a_value_and_change_what_is_known() {
        check(&[
            ("mg a", "get a without value"),
            ("mg a v", "get a"),
            ("mg a s v t f c k Oxyz h l q", "get a"),
            ("mg a vfoo kk f1", "get a"),
            ("mg a u h", "get a without value unnoticed"),
            ("mg a T-1 N30 R20 E5 v", "get a touch -1 vivify 30 recache 20 of touched new 5"),
            ("mg a R20 T60", "get a touch 60 recache 20 without value"),
            ("mg a T60 R20", "get a touch 60 recache 20 of touched without value"),
            ("mg a N30 T60", "get a touch 60 vivify 60 without value"),
            ("mg  Zm9v  b  k  v ", "get foo"),
            ("mg a L5 P6 I C1 F2 J3 D4 MX x", "get a without value"),
        ]);
    }

    #[test]
    fn a_set_has_modes_and_conditions() {
        let cases = [
            ("", "Set a 0 0"),
            (" S2 ", "CLIENT_ERROR invalid flag"),
            (" F7 T-1 MS", "Set a 7 -1"),
            (" ME", "Add a 0 0"),
            (" ME C5", "Add a 0 0"),
            (" MR", "Replace a 0 0"),
            (" MR C5", "Set a 0 0 if 5"),
            (" MA N30 C5", "Append a 0 0 if 5 vivify 30"),
            (" Mp", "Prepend a 0 0"),
            (" C0 I E9 N30", "Set a 0 0 if 0 new 9 invalidate"),
            (" I", "Set a 0 0"),
        ];
        for (flags, expected) in cases {
            let told = told_one(format!("ms a 2{flags}\r\nhi\r\n").as_bytes());
            assert_eq!(told.trim_end_matches(" = hi"), expected, "{flags}");
        }
        assert_eq!(told_one(b"ms Zm9v +2 b\r\nhi\r\n"), "Set foo 0 0 = hi");
    }

    #[test]
    fn a_delete_may_keep_the_item() {
        check(&[
            ("md a", "delete a"),
            ("md a q k O1 c f v", "delete a"),
            ("md a C5 I T30 E6", "delete a if 5 new 6 expire 30 invalidate"),
            ("md a x", "delete a value only"),
            ("md Zm9v b", "delete foo"),
        ]);
    }

    #[test]
    fn arithmetic_counts_by_one_unless_told_otherwise() {
        check(&[
            ("ma a", "Increment a 1"),
            ("ma a MI D5 v t c k q", "Increment a 5"),
            ("ma a M+ Mi", "CLIENT_ERROR invalid or duplicate flag"),
            ("ma a Mi", "Increment a 1"),
            ("ma a MD", "Decrement a 1"),
            ("ma a Md", "Decrement a 1"),
            ("ma a M-", "Decrement a 1"),
            ("ma a N30 J13", "Increment a 1 from 13 30"),
            ("ma a J13", "Increment a 1"),
            ("ma a C5 T0 E6", "Increment a 1 if 5 new 6 expire 0"),
            ("ma a C0", "Increment a 1"),
            ("ma a MX", "CLIENT_ERROR invalid mode for ma M token"),
        ]);
    }

    #[test]
    fn a_key_may_be_asked_about_for_people() {
        check(&[
            ("me a", "debug a"),
            ("me a q k z", "debug a"),
            ("me Zm9v b", "debug foo"),
            ("me a b", "CLIENT_ERROR bad command line format"),
            ("me", "CLIENT_ERROR bad command line format"),
            ("mn", "NoOp"),
            ("mn foo", "NoOp"),
        ]);
    }

    #[test]
    fn what_is_wrong_with_flags_is_told_as_memcached_does() {
        let opaque = "x".repeat(32);
        check(&[
            ("mg", "ERROR"),
            ("md", "ERROR"),
            ("ma", "ERROR"),
            ("ms", "ERROR"),
            ("ms a", "CLIENT_ERROR bad command line format"),
            ("ms a x", "CLIENT_ERROR bad command line format"),
            ("ms a -1", "CLIENT_ERROR bad command line format"),
            ("mg a v v", "CLIENT_ERROR duplicate flag"),
            ("mg a t T100 t", "CLIENT_ERROR duplicate flag"),
            ("mg a !", "CLIENT_ERROR invalid flag"),
            ("mg a z", "CLIENT_ERROR invalid flag"),
            ("mg a \u{ff}", "CLIENT_ERROR invalid flag"),
            ("mg a Tx", "CLIENT_ERROR bad token in command line format"),
            ("mg a T", "CLIENT_ERROR bad token in command line format"),
            ("mg a N", "CLIENT_ERROR bad token in command line format"),
            ("mg a Rx q", "CLIENT_ERROR bad token in command line format"),
            ("mg a Cx", "CLIENT_ERROR bad token in command line format"),
            ("mg a Ex", "CLIENT_ERROR bad token in command line format"),
            ("mg a Fx", "CLIENT_ERROR bad command line format"),
            ("mg a F4294967296", "CLIENT_ERROR bad command line format"),
            ("mg a D1x", "CLIENT_ERROR invalid numeric delta value"),
            ("mg a Jx", "CLIENT_ERROR invalid numeric initial value"),
            ("mg a M", "CLIENT_ERROR incorrect length for M token"),
            ("mg foo b", "CLIENT_ERROR error decoding key"),
            ("mg Zg b", "CLIENT_ERROR error decoding key"),
            (&format!("mg a O{opaque}"), "CLIENT_ERROR opaque token too long"),
            (&format!("md a O{opaque}"), "CLIENT_ERROR opaque token too long"),
            ("md a z", "CLIENT_ERROR invalid or duplicate flag"),
            ("md a k k", "CLIENT_ERROR invalid or duplicate flag"),
            ("md a Cx", "CLIENT_ERROR invalid or duplicate flag"),
            ("md foo b", "CLIENT_ERROR invalid or duplicate flag"),
            ("ma a Dx", "CLIENT_ERROR invalid or duplicate flag"),
            ("ma a MDD", "CLIENT_ERROR invalid or duplicate flag"),
        ]);
    }

    #[test]
    fn keys_and_flags_are_bounded() {
        let key = "k".repeat(251);
        for command in ["mg", "md", "ma", "me"] {
            check(&[(&format!("{command} {key}"), "CLIENT_ERROR bad command line format")]);
        }
        let flags = " f c t s k h l u v q O1 L2 P3 T1 N1 R1 I";
        check(&[
            (&format!("mg a{flags}"), "get a touch 1 vivify 1 recache 1 of touched unnoticed"),
            (&format!("mg a{flags} C1"), "CLIENT_ERROR options flags are too long"),
            (&format!("md a{flags} C1"), "CLIENT_ERROR options flags too long"),
            (&format!("ma a{flags} C1"), "CLIENT_ERROR options flags too long"),
        ]);
        let stream = format!("ms a 2{flags}\r\nhi\r\nmn\r\n");
        assert_eq!(told(stream.as_bytes()), ["CLIENT_ERROR options flags too long", "NoOp"]);
    }

    #[test]
    fn the_value_behind_a_refused_set_is_no_command() {
        let key = "k".repeat(251);
        for (line, expected) in [
            (format!("ms {key} 2"), "CLIENT_ERROR bad command line format"),
            ("ms foo 2 b".to_owned(), "CLIENT_ERROR error decoding key"),
            ("ms a +2 Tx q".to_owned(), "CLIENT_ERROR bad token in command line format"),
            ("ms a 2 T T".to_owned(), "CLIENT_ERROR duplicate flag"),
            ("ms a 2 MX".to_owned(), "CLIENT_ERROR invalid mode for ms M token"),
            ("ms a 2 MXX".to_owned(), "CLIENT_ERROR incorrect length for M token"),
        ] {
            let stream = format!("{line}\r\nmn\r\nmn\r\n");
            assert_eq!(told(stream.as_bytes()), [expected, "NoOp"], "{line}");
        }
    }

    #[test]
    fn a_value_too_large_is_told_to_those_who_want_to_know_nothing() {
        let stream = format!("ms a 101 q\r\n{}\r\nmn\r\n", "x".repeat(101));
        let refused = "SERVER_ERROR object too large for cache deleting a";
        assert_eq!(told(stream.as_bytes()), [refused, "NoOp"]);
    }
}
