//! Requests of the meta commands (protocol.txt, "Meta Commands"): two letters, a key and flags.
//!
//! It knows the flags and what they ask for. What they are answered with is for `reply`.

use super::command::{Body, Command, unknown, value_len};
use crate::exptime::Exptime;
use crate::key::{Key, MAX_KEY};
use crate::line::{Words, signed, unsigned, unsigned_32};
use crate::operation::{Arithmetic, Delete, Direction, Get, Initial, Operation, Store, StoreMode};
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
    recache: Option<Exptime>,
    mode: Option<u8>,
    client_flags: u32,
    initial: u64,
    delta: Option<u64>,
}

impl Flags {
    fn parse(words: Words<'_>) -> Result<Flags, Refusal> {
        let mut flags = Flags::default();
        let mut seen = 0u128;
        for word in words {
            let letter = 1u128.checked_shl(word[0].into()).ok_or(Refusal::InvalidFlag)?;
            if seen & letter != 0 {
                return Err(Refusal::DuplicateFlag);
            }
            seen |= letter;
            flags.set(word)?;
        }
        Ok(flags)
    }

    fn set(&mut self, word: &[u8]) -> Result<(), Refusal> {
        let token = &word[1..];
        let time = || signed(token).map(Exptime).ok_or(Refusal::BadToken).map(Some);
        let number = || unsigned(token).ok_or(Refusal::BadToken);
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
            b'R' => self.recache = time()?,
            b'F' => self.client_flags = unsigned_32(token).ok_or(Refusal::BadFormat)?,
            b'J' => self.initial = number()?,
            b'D' => self.delta = Some(number()?),
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
        vivify: flags.vivify,
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
