//! SORT and SORT_RO: the elements of a list in order, by themselves or by values of other keys.
//!
//! The other keys are looked at one after the other; they are only looked at as one inside a transaction.

use std::cmp::Ordering;

use snugly_protocol::resp::Args;
use snugly_store::{Element, Expiry, Kind, Value};

use super::context::reserve;
use super::options::{integer, is};
use super::registry::as_c_string;
use super::{Command, Context, Failure, Flags, ONE_KEY, Outcome, Reply, command, permissions};

const MOVABLE: Flags = Flags::MOVABLE_KEYS;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("sort", -2, Flags::WRITE_MEMORY.and(MOVABLE), ONE_KEY, sort),
    command("sort_ro", -2, Flags::READONLY.and(MOVABLE), ONE_KEY, sort_ro),
];

/// In the place of a pattern: the element itself.
const ELEMENT: &[u8] = b"#";
/// Between a key and a field of its hash.
const ARROW: &[u8] = b"->";

struct Options<'a> {
    descending: bool,
    as_text: bool,
    start: i64,
    /// Negative is all.
    count: i64,
    by: Option<&'a [u8]>,
    get: Vec<&'a [u8]>,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>, can_store: bool) -> Result<Options<'a>, Failure> {
        let mut options = Options {
            descending: false,
            as_text: false,
            start: 0,
            count: -1,
            by: None,
            get: Vec::new(),
            store: None,
        };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match (arg, rest.len()) {
                _ if is(arg, "ASC") => options.descending = false,
                _ if is(arg, "DESC") => options.descending = true,
                _ if is(arg, "ALPHA") => options.as_text = true,
                (_, 2..) if is(arg, "LIMIT") => {
                    options.start = integer(rest.next().unwrap_or_default())?;
                    options.count = integer(rest.next().unwrap_or_default())?;
                }
                (_, 1..) if can_store && is(arg, "STORE") => options.store = rest.next(),
                (_, 1..) if is(arg, "BY") => options.by = rest.next(),
                (_, 1..) if is(arg, "GET") => options.get.extend(rest.next()),
                _ => return Err(Failure::SYNTAX),
            }
        }
        Ok(options)
    }

    /// Refuses patterns to users who may not read any key: they find keys that no argument names.
    fn check_permission(&self, context: &Context<'_>, args: Args<'_>) -> Result<(), Failure> {
        let option = match (&self.by, self.get.first()) {
            (Some(_), _) if !self.keeps_order() => "BY",
            (_, Some(_)) => "GET",
            _ => return Ok(()),
        };
        if permissions::reads_all_keys(context, args) {
            return Ok(());
        }
        Err(Failure::new(format!("ERR {option} option of SORT denied due to insufficient ACL permissions.")))
    }

    /// Returns whether the elements stay in their order: there is nothing in the pattern that an element
    /// could be put for.
    fn keeps_order(&self) -> bool {
        self.by.is_some_and(|pattern| star(pattern).is_none())
    }

    /// Returns the wanted part of `len` sorted elements.
    fn range(&self, len: usize) -> std::ops::Range<usize> {
        let start = usize::try_from(self.start).unwrap_or(0).min(len);
        let count = usize::try_from(self.count).unwrap_or(len);
        start..start.saturating_add(count).min(len)
    }

    fn compare(&self, one: &Item, other: &Item) -> Ordering {
        let order = match (&one.weight, &other.weight) {
            (Weight::Number(first), Weight::Number(second)) => {
                first.total_cmp(second).then_with(|| one.element.cmp(&other.element))
            }
            (Weight::Text(first), Weight::Text(second)) => self.compare_texts(first, second),
            (Weight::Itself, Weight::Itself) => self.compare_texts(&one.element, &other.element),
            (first, second) => first.has_text().cmp(&second.has_text()),
        };
        if self.descending { order.reverse() } else { order }
    }

    /// A stored result is ordered by its bytes, and a shown one by C's collation, which ends at a zero byte.
    fn compare_texts(&self, one: &[u8], other: &[u8]) -> Ordering {
        if self.store.is_some() {
            return one.cmp(other);
        }
        as_c_string(one, usize::MAX).cmp(as_c_string(other, usize::MAX))
    }
}

/// The sort key of an element.
enum Weight {
    Number(f64),
    Itself,
    Text(Vec<u8>),
    /// The key that has it does not exist.
    Missing,
}

impl Weight {
    fn has_text(&self) -> bool {
        !matches!(self, Weight::Missing)
    }
}

/// The value that GET finds for an element.
enum Found {
    Bytes(Vec<u8>),
    /// A string that is read only when it is answered or stored.
    Value(Value),
    Nothing,
}

const TOO_MUCH: Failure =
    Failure::fixed("OOM the command would take more memory than maxmemory-clients allows");

/// Bytes that one command may still take for values that it reads.
struct Room(usize);

impl Room {
    fn of(context: &Context<'_>) -> Room {
        Room(context.server.longest_replies())
    }

    /// Returns whether there is room for this many bytes, which are not taken yet.
    fn has(&self, bytes: u64) -> Result<(), Failure> {
        if bytes > self.0 as u64 { Err(TOO_MUCH) } else { Ok(()) }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        self.0 = self.0.checked_sub(bytes).ok_or(TOO_MUCH)?;
        Ok(())
    }
}

struct Item {
    element: Vec<u8>,
    weight: Weight,
}

fn sort(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let options = Options::parse(args.from(2), true)?;
    options.check_permission(context, args)?;
    run(context, &args[1], &options)
}

fn sort_ro(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let options = Options::parse(args.from(2), false)?;
    options.check_permission(context, args)?;
    run(context, &args[1], &options)
}

fn run(context: &mut Context<'_>, key: &[u8], options: &Options<'_>) -> Outcome {
    let mut room = Room::of(context);
    let mut elements = elements(context, key, &mut room)?;
    if options.keeps_order() {
        if options.descending {
            elements.reverse();
        }
    } else {
        elements = sorted(context, elements, options, &mut room)?;
    }
    let wanted = elements.drain(options.range(elements.len())).collect();
    let results = looked_up(context, wanted, &options.get, &mut room)?;
    match options.store {
        Some(target) => store(context, target, results, &mut room),
        None => {
            context.replies.array(results.len());
            for result in &results {
                match result {
                    Found::Bytes(bytes) => context.replies.bulk(bytes),
                    Found::Value(value) => context.replies.value(context.session, value)?,
                    Found::Nothing => context.replies.null(),
                }
            }
            Ok(Reply::Now)
        }
    }
}

fn elements(context: &mut Context<'_>, key: &[u8], room: &mut Room) -> Result<Vec<Vec<u8>>, Failure> {
    let len = context.session.list_raw_bytes(context.client.database, key)?;
    if len == 0 {
        // There is no list, and a second lookup would count as another miss.
        return Ok(Vec::new());
    }
    room.has(len)?;
    let found = context.session.list_range(context.client.database, key, 0, -1)?;
    let mut elements = Vec::new();
    let mut outcome = Ok(());
    if let Some(found) = found {
        room.take(found.len() * size_of::<Vec<u8>>())?;
        reserve(&mut elements, found.len())?;
        context.session.show(&found, |element| {
            let bytes = element.bytes();
            if outcome.is_ok() {
                outcome = room.take(bytes.len());
            }
            if outcome.is_ok() {
                elements.push(bytes.into_owned());
            }
        })?;
    }
    outcome.map(|()| elements)
}

fn sorted(
    context: &mut Context<'_>,
    elements: Vec<Vec<u8>>,
    options: &Options<'_>,
    room: &mut Room,
) -> Result<Vec<Vec<u8>>, Failure> {
    room.take(elements.len() * size_of::<Item>())?;
    let mut items = Vec::new();
    reserve(&mut items, elements.len())?;
    for element in elements {
        let weight = weight(context, &element, options, room)?;
        items.push(Item { element, weight });
    }
    items.sort_by(|one, other| options.compare(one, other));
    Ok(items.into_iter().map(|item| item.element).collect())
}

fn weight(
    context: &mut Context<'_>,
    element: &[u8],
    options: &Options<'_>,
    room: &mut Room,
) -> Result<Weight, Failure> {
    const NO_SCORE: Failure = Failure::fixed("ERR One or more scores can't be converted into double");
    let found = match options.by {
        Some(pattern) => {
            let found = look_up(context, pattern, element)?;
            read(context, found, room)?
        }
        None if options.as_text => return Ok(Weight::Itself),
        None => return score(element).map(Weight::Number).ok_or(NO_SCORE),
    };
    match found {
        Some(text) if options.as_text => Ok(Weight::Text(text)),
        Some(text) => score(&text).map(Weight::Number).ok_or(NO_SCORE),
        None if options.as_text => Ok(Weight::Missing),
        None => Ok(Weight::Number(0.0)),
    }
}

/// A number, up to a zero byte; neither too large for one nor too small.
fn score(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(as_c_string(text, usize::MAX)).ok()?;
    let number: f64 = text.parse().ok()?;
    let says_infinity = text.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let vanished = number == 0.0 && mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let in_range = number.is_infinite() == says_infinity && !vanished;
    // There is one zero only.
    Some(number + 0.0).filter(|number| in_range && !number.is_nan())
}

/// A pattern of GET, or the element itself.
fn looked_up(
    context: &mut Context<'_>,
    elements: Vec<Vec<u8>>,
    patterns: &[&[u8]],
    room: &mut Room,
) -> Result<Vec<Found>, Failure> {
    if patterns.is_empty() {
        return Ok(elements.into_iter().map(Found::Bytes).collect());
    }
    room.take(elements.len().saturating_mul(patterns.len()).saturating_mul(size_of::<Found>()))?;
    let mut results = Vec::new();
    reserve(&mut results, elements.len() * patterns.len())?;
    for element in &elements {
        for pattern in patterns {
            results.push(look_up(context, pattern, element)?);
        }
    }
    Ok(results)
}

/// The place of the star in a pattern, which ends at a zero byte.
fn star(pattern: &[u8]) -> Option<usize> {
    as_c_string(pattern, usize::MAX).iter().position(|&byte| byte == b'*')
}

/// The string of the key that a pattern and an element name. There are no hashes, and so no fields of any.
fn look_up(context: &mut Context<'_>, pattern: &[u8], element: &[u8]) -> Result<Found, Failure> {
    if as_c_string(pattern, usize::MAX) == ELEMENT {
        return Ok(Found::Bytes(element.to_vec()));
    }
    let Some(star) = star(pattern) else { return Ok(Found::Nothing) };
    let behind = as_c_string(&pattern[star + 1..], usize::MAX);
    let arrow = behind.windows(ARROW.len()).position(|window| window == ARROW);
    if arrow.is_some_and(|arrow| arrow + ARROW.len() < behind.len()) {
        return Ok(Found::Nothing);
    }
    let key = [&pattern[..star], element, &pattern[star + 1..]].concat();
    let value = context.session.touch(context.client.database, &key)?;
    Ok(value.filter(|value| value.kind() == Kind::String).map_or(Found::Nothing, Found::Value))
}

/// The bytes of what was found.
fn read(context: &mut Context<'_>, found: Found, room: &mut Room) -> Result<Option<Vec<u8>>, Failure> {
    match found {
        Found::Bytes(bytes) => Ok(Some(bytes)),
        Found::Value(value) => {
            room.take(value.len())?;
            let mut bytes = Vec::new();
            context.session.read(&value, &mut bytes)?;
            Ok(Some(bytes))
        }
        Found::Nothing => Ok(None),
    }
}

/// Makes a key the list of the results; what does not exist is empty.
fn store(context: &mut Context<'_>, key: &[u8], results: Vec<Found>, room: &mut Room) -> Outcome {
    let read = results.into_iter().map(|found| read(context, found, room).map(Option::unwrap_or_default));
    let results: Vec<Vec<u8>> = read.collect::<Result<_, _>>()?;
    let elements = results.iter().map(|result| Element::of(result));
    context.session.list_write(context.client.database, key, elements, Expiry::Never)?;
    context.integer(results.len() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_the_numbers_that_valkey_reads() {
        for (text, number) in
            [("1", 1.0), ("+1", 1.0), (".5", 0.5), ("5.", 5.0), ("1E5", 1e5), ("-0", 0.0), ("1\0x", 1.0)]
        {
            assert_eq!(score(text.as_bytes()), Some(number), "{text}");
        }
        assert_eq!(score(b"-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(score(b"4.9e-324"), Some(4.9e-324));
        for wrong in
            ["", " 1", "1 ", "0x10", "nan", "1e400", "-1e400", "1e-400", ".", "e5", "1e", "--1", "\0", "1_0"]
        {
            assert_eq!(score(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
