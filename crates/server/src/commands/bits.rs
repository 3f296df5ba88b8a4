//! Strings as rows of bits, the highest bit of each byte first.

use std::ops::RangeInclusive;

use snugly_protocol::resp::{Args, parse_integer};
use snugly_store::{Condition, Expiry, StoreError, Value};

use super::context::reserve;
use super::options::{integer, is};
use super::ranges::Stretch;
use super::{Command, Context, Edit, Failure, Flags, Keys, ONE_KEY, Outcome, command};

const TARGET_AND_SOURCES: Keys = Keys { first: 2, last: -1, step: 1 };

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("setbit", 4, Flags::WRITE_MEMORY, ONE_KEY, setbit),
    command("getbit", 3, Flags::READ_FAST, ONE_KEY, getbit),
    command("bitcount", -2, Flags::READONLY, ONE_KEY, bitcount),
    command("bitpos", -3, Flags::READONLY, ONE_KEY, bitpos),
    command("bitop", -4, Flags::WRITE_MEMORY, TARGET_AND_SOURCES, bitop),
];

const BITS: usize = u8::BITS as usize;

/// The position of a bit, as SETBIT, GETBIT and BITFIELD take it, in a value of `limit` bytes at most.
pub(super) fn bit_offset(offset: Option<i64>, limit: usize) -> Result<usize, Failure> {
    offset
        .and_then(|offset| usize::try_from(offset).ok())
        .filter(|offset| offset / BITS < limit)
        .ok_or(Failure::fixed("ERR bit offset is not an integer or out of range"))
}

fn plain_bit_offset(context: &Context<'_>, arg: &[u8]) -> Result<usize, Failure> {
    bit_offset(parse_integer(arg), context.server.configuration().max_value_bytes)
}

/// The byte that holds a bit, and a mask of the bit in it.
fn byte_and_mask(offset: usize) -> (usize, u8) {
    (offset / BITS, 0x80 >> (offset % BITS))
}

fn setbit(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (byte, mask) = byte_and_mask(plain_bit_offset(context, &args[2])?);
    let set = match parse_integer(&args[3]) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(Failure::fixed("ERR bit is not an integer or out of range")),
    };
    let before = context.edit(&args[1], |bytes, part| {
        let bits = bytes.get(byte).copied().unwrap_or_default();
        let was_set = bits & mask != 0;
        if byte < bytes.len() && was_set == set {
            return Ok(Edit::Unchanged(was_set));
        }
        part.push(if set { bits | mask } else { bits & !mask });
        Ok(Edit::Changed { offset: byte, result: was_set })
    })?;
    context.integer(before.into())
}

fn getbit(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (byte, mask) = byte_and_mask(plain_bit_offset(context, &args[2])?);
    let mut value = context.get(&args[1])?.filter(|value| byte < value.len());
    let mut buffer = Vec::new();
    let bytes = context.bytes_in_parts(&mut value, &mut buffer)?;
    let is_set = bytes.get(byte).is_some_and(|bits| bits & mask != 0);
    context.integer(is_set.into())
}

/// The unit of the range of BITCOUNT and BITPOS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Bits,
}

/// A stretch of a string as BITCOUNT and BITPOS take it: `[start [end [BYTE|BIT]]]`.
#[derive(Clone, Copy)]
struct BitStretch {
    stretch: Stretch,
    unit: Unit,
    has_end: bool,
}

impl BitStretch {
    fn parse(args: Args<'_>) -> Result<BitStretch, Failure> {
        if args.len() > 3 {
            return Err(Failure::SYNTAX);
        }
        let first = args.get(0).map_or(Ok(0), integer)?;
        let unit = match args.get(2) {
            None => Unit::Bytes,
            Some(unit) if is(unit, "BYTE") => Unit::Bytes,
            Some(unit) if is(unit, "BIT") => Unit::Bits,
            Some(_) => return Err(Failure::SYNTAX),
        };
        let last = args.get(1).map_or(Ok(-1), integer)?;
        Ok(BitStretch { stretch: Stretch { first, last }, unit, has_end: args.len() > 1 })
    }

    /// The bits that there are in a string of `len` bytes.
    fn within(self, len: usize) -> Option<RangeInclusive<usize>> {
        match self.unit {
            Unit::Bits => self.stretch.within(len * BITS),
            Unit::Bytes => {
                let bytes = self.stretch.within(len)?;
                Some(bytes.start() * BITS..=bytes.end() * BITS + BITS - 1)
            }
        }
    }
}

fn bitcount(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let wanted = BitStretch::parse(args.from(2))?;
    let value = context.get(&args[1])?.filter(|_| !wanted.stretch.is_reversed());
    let Some((bits, value)) = value.and_then(|value| Some((wanted.within(value.len())?, value))) else {
        return context.integer(0);
    };
    let mut buffer = Vec::new();
    let mut value = Some(value);
    let bytes = context.bytes_in_parts(&mut value, &mut buffer)?;
    context.integer(count_ones(bytes, bits) as i64)
}

fn count_ones(bytes: &[u8], bits: RangeInclusive<usize>) -> u64 {
    let (first_byte, first_bit) = (bits.start() / BITS, bits.start() % BITS);
    let (last_byte, last_bit) = (bits.end() / BITS, bits.end() % BITS);
    let before = bytes[first_byte] & !(0xff >> first_bit);
    let after = bytes[last_byte] & (0x7f >> last_bit);
    let all: u64 = bytes[first_byte..=last_byte].iter().map(|byte| u64::from(byte.count_ones())).sum();
    all - u64::from(before.count_ones()) - u64::from(after.count_ones())
}

fn bitpos(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let wanted_bit = match integer(&args[2])? {
        0 => false,
        1 => true,
        _ => return Err(Failure::fixed("ERR The bit argument must be 1 or 0.")),
    };
    let wanted = BitStretch::parse(args.from(3))?;
    let Some(value) = context.get(&args[1])? else {
        return context.integer(if wanted_bit { -1 } else { 0 });
    };
    let Some(bits) = wanted.within(value.len()) else { return context.integer(-1) };
    let mut buffer = Vec::new();
    let mut value = Some(value);
    let bytes = context.bytes_in_parts(&mut value, &mut buffer)?;
    let found = find_bit(bytes, bits, wanted_bit);
    context.integer(match found {
        Some(place) => place as i64,
        // Behind a string whose end is not given there are zeros.
        None if !wanted_bit && !wanted.has_end => (bytes.len() * BITS) as i64,
        None => -1,
    })
}

fn find_bit(bytes: &[u8], bits: RangeInclusive<usize>, wanted: bool) -> Option<usize> {
    let without = if wanted { 0x00 } else { 0xff };
    let (first_byte, last_byte) = (bits.start() / BITS, bits.end() / BITS);
    let first = (bytes[first_byte] ^ without) & 0xff >> (bits.start() % BITS);
    let (byte, candidates) = if first != 0 {
        (first_byte, first)
    } else {
        let next = first_byte + 1;
        let byte = next + bytes[next..=last_byte].iter().position(|&byte| byte != without)?;
        (byte, bytes[byte] ^ without)
    };
    Some(byte * BITS + candidates.leading_zeros() as usize).filter(|place| bits.contains(place))
}

/// The operation of BITOP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

const OPERATIONS: [(&str, Operation); 4] =
    [("AND", Operation::And), ("OR", Operation::Or), ("XOR", Operation::Xor), ("NOT", Operation::Not)];

impl Operation {
    /// Combines the strings before with one more; the shorter one goes on with zeros.
    fn combine(self, result: &mut Vec<u8>, more: &[u8]) -> Result<(), StoreError> {
        let len = result.len().max(more.len());
        reserve(result, len - result.len())?;
        result.resize(len, 0);
        let (both, alone) = result.split_at_mut(more.len());
        let pairs = both.iter_mut().zip(more);
        match self {
            Operation::And => {
                pairs.for_each(|(byte, more)| *byte &= more);
                alone.fill(0);
            }
            Operation::Or => pairs.for_each(|(byte, more)| *byte |= more),
            Operation::Xor | Operation::Not => pairs.for_each(|(byte, more)| *byte ^= more),
        }
        Ok(())
    }
}

fn bitop(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let found = OPERATIONS.iter().find(|(name, _)| is(&args[1], name));
    let &(_, operation) = found.ok_or(Failure::SYNTAX)?;
    if operation == Operation::Not && args.len() != 4 {
        return Err(Failure::fixed("ERR BITOP NOT must be called with a single source key."));
    }
    let len = context.exclusively(args.from(2).iter(), |context| {
        let result = combined(context, operation, args.from(3))?;
        let database = context.client.database;
        if result.is_empty() {
            context.session.remove(database, &args[2])?;
        } else {
            context.session.set(database, &args[2], &result, Expiry::Never, Condition::Always)?;
        }
        Ok::<_, Failure>(result.len())
    })?;
    context.integer(len as i64)
}

fn combined(context: &mut Context<'_>, operation: Operation, keys: Args<'_>) -> Result<Vec<u8>, Failure> {
    let mut result = Vec::new();
    let mut buffer = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let value = context.get(key)?;
        context.session.check_transient(value.as_ref().map_or(0, Value::len))?;
        let bytes = context.bytes(value.as_ref(), &mut buffer)?;
        let operation = if number == 0 { Operation::Or } else { operation };
        operation.combine(&mut result, bytes)?;
    }
    if operation == Operation::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes, and a stretch of their bits.
    fn stretch() -> impl Strategy<Value = (Vec<u8>, RangeInclusive<usize>)> {
        let byte = prop_oneof![Just(0x00), Just(0xff), any::<u8>()];
        prop::collection::vec(byte, 1..20).prop_flat_map(|bytes| {
            let last = bytes.len() * BITS - 1;
            (Just(bytes), (0..=last, 0..=last).prop_map(|(one, other)| one.min(other)..=one.max(other)))
        })
    }

    fn is_set(bytes: &[u8], place: usize) -> bool {
        let (byte, mask) = byte_and_mask(place);
        bytes[byte] & mask != 0
    }

    proptest! {
        #[test]
        fn bits_are_counted_as_if_one_by_one((bytes, bits) in stretch()) {
            let expected = bits.clone().filter(|&place| is_set(&bytes, place)).count();
            prop_assert_eq!(count_ones(&bytes, bits), expected as u64);
        }

        #[test]
        fn bits_are_found_as_if_one_by_one((bytes, mut bits) in stretch(), wanted: bool) {
            let found = find_bit(&bytes, bits.clone(), wanted);
            prop_assert_eq!(found, bits.find(|&place| is_set(&bytes, place) == wanted));
        }

        #[test]
        fn strings_are_combined_as_if_the_shorter_went_on_with_zeros(first: Vec<u8>, second: Vec<u8>) {
            let len = first.len().max(second.len());
            let at = |bytes: &[u8], place| bytes.get(place).copied().unwrap_or(0);
            for (operation, combine) in [
                (Operation::And, (|one, other| one & other) as fn(u8, u8) -> u8),
                (Operation::Or, |one, other| one | other),
                (Operation::Xor, |one, other| one ^ other),
            ] {
                let mut result = first.clone();
                operation.combine(&mut result, &second).expect("there is memory");
                let expected: Vec<u8> =
                    (0..len).map(|place| combine(at(&first, place), at(&second, place))).collect();
                prop_assert_eq!(result, expected);
            }
        }
    }
}
