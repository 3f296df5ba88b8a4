//! Arguments shared by several commands: numbers, times, and the options of SET and GETEX.

use std::ops::RangeInclusive;

use snugly_protocol::resp::{Args, parse_integer};
use snugly_store::{Condition, Expiry};

use super::Failure;

pub(crate) fn integer(arg: &[u8]) -> Result<i64, Failure> {
    parse_integer(arg).ok_or(Failure::NOT_AN_INTEGER)
}

/// A number that Valkey keeps in 32 bits.
pub(crate) fn small_integer(arg: &[u8]) -> Result<i32, Failure> {
    integer_within(arg, i32::MIN.into()..=i32::MAX.into()).map(|number| number as i32)
}

/// A number in a range.
pub(crate) fn integer_within(arg: &[u8], range: RangeInclusive<i64>) -> Result<i64, Failure> {
    Some(integer(arg)?).filter(|number| range.contains(number)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        Failure::new(format!("ERR value is out of range, value must between {least} and {most}"))
    })
}

/// Returns whether an argument is this word, in any case.
pub(crate) fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

/// The unit and origin of a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeUnit {
    pub(crate) milliseconds: i64,
    /// From now on, rather than since 1970.
    pub(crate) relative: bool,
}

pub(crate) const SECONDS: TimeUnit = TimeUnit { milliseconds: 1000, relative: true };
pub(crate) const MILLISECONDS: TimeUnit = TimeUnit { milliseconds: 1, relative: true };
pub(crate) const UNIX_SECONDS: TimeUnit = TimeUnit { milliseconds: 1000, relative: false };
pub(crate) const UNIX_MILLISECONDS: TimeUnit = TimeUnit { milliseconds: 1, relative: false };

const TIME_OPTIONS: &[(&str, TimeUnit)] =
    &[("EX", SECONDS), ("PX", MILLISECONDS), ("EXAT", UNIX_SECONDS), ("PXAT", UNIX_MILLISECONDS)];

/// The time that `amount` of `unit` says, in Unix milliseconds; `None` if it overflows.
pub(crate) fn unix_time(amount: i64, unit: TimeUnit, now: u64) -> Option<i64> {
    let base = if unit.relative { now as i64 } else { 0 };
    amount.checked_mul(unit.milliseconds)?.checked_add(base)
}

/// Returns the expiry of a key that is written now. `command` is named in the error.
pub(crate) fn expiry(arg: &[u8], unit: TimeUnit, now: u64, command: &str) -> Result<Expiry, Failure> {
    let amount = integer(arg)?;
    match unix_time(amount, unit, now) {
        Some(at) if amount > 0 => Ok(Expiry::At(at as u64)),
        _ => Err(Failure::invalid_expire(command)),
    }
}

/// A time as an option gives it, not yet read as a number: the syntax of all options is checked first.
pub(crate) type Time<'a> = (&'a [u8], TimeUnit);

/// The options of SET, some of which MSETEX has too.
#[derive(Default)]
pub(crate) struct SetOptions<'a> {
    pub(crate) time: Option<Time<'a>>,
    pub(crate) keep_ttl: bool,
    pub(crate) condition: Condition<'a>,
    pub(crate) get: bool,
}

impl<'a> SetOptions<'a> {
    pub(crate) fn parse(args: Args<'a>) -> Result<SetOptions<'a>, Failure> {
        let mut options = SetOptions::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let condition = options.condition;
            if is(arg, "NX") && matches!(condition, Condition::Always | Condition::IfAbsent) {
                options.condition = Condition::IfAbsent;
            } else if is(arg, "XX") && matches!(condition, Condition::Always | Condition::IfPresent) {
                options.condition = Condition::IfPresent;
            } else if is(arg, "IFEQ") && condition == Condition::Always {
                options.condition = Condition::IfEqual(rest.next().ok_or(Failure::SYNTAX)?);
            } else if is(arg, "GET") {
                options.get = true;
            } else if is(arg, "KEEPTTL") && options.time.is_none() {
                options.keep_ttl = true;
            } else if !options.keep_ttl && time_option(arg, &mut rest, &mut options.time)? {
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(options)
    }

    /// Returns the expiry of a key that is written now. `command` is named in the error.
    pub(crate) fn expiry(&self, now: u64, command: &str) -> Result<Expiry, Failure> {
        match self.time {
            Some((arg, unit)) => expiry(arg, unit, now, command),
            None if self.keep_ttl => Ok(Expiry::Keep),
            None => Ok(Expiry::Never),
        }
    }
}

/// The options of GETEX.
#[derive(Default)]
pub(crate) struct GetexOptions<'a> {
    pub(crate) time: Option<Time<'a>>,
    pub(crate) persist: bool,
}

impl<'a> GetexOptions<'a> {
    pub(crate) fn parse(args: Args<'a>) -> Result<GetexOptions<'a>, Failure> {
        let mut options = GetexOptions::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if is(arg, "PERSIST") && options.time.is_none() {
                options.persist = true;
            } else if !options.persist && time_option(arg, &mut rest, &mut options.time)? {
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(options)
    }
}

/// Reads `EX`, `PX`, `EXAT` or `PXAT` and its time, if `arg` is one of them and no other came before; the same one
/// again replaces the first.
fn time_option<'a>(
    arg: &[u8],
    rest: &mut impl Iterator<Item = &'a [u8]>,
    time: &mut Option<Time<'a>>,
) -> Result<bool, Failure> {
    let Some((_, unit)) = TIME_OPTIONS.iter().find(|(name, _)| is(arg, name)) else { return Ok(false) };
    if time.is_some_and(|(_, other)| other != *unit) {
        return Err(Failure::SYNTAX);
    }
    *time = Some((rest.next().ok_or(Failure::SYNTAX)?, *unit));
    Ok(true)
}
