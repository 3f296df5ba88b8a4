//! Integers of any width within strings: BITFIELD.

use snugly_protocol::resp::{Args, parse_integer};

use super::bits::bit_offset;
use super::context::reserve;
use super::options::{integer, is};
use super::{Command, Context, Edit, Failure, Flags, ONE_KEY, Outcome, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("bitfield", -2, Flags::WRITE_MEMORY, ONE_KEY, bitfield),
    command("bitfield_ro", -2, Flags::READ_FAST, ONE_KEY, bitfield_ro),
];

const BITS: usize = u8::BITS as usize;
/// Bytes that a field can touch: 64 bits that do not start with a byte.
const MOST_TOUCHED: usize = 9;

/// An integer within a string, its highest bit first.
#[derive(Clone, Copy, Debug)]
struct Field {
    /// Offset of the highest bit.
    offset: usize,
    /// Number of bits: 1 to 64 if it is signed, 1 to 63 if not.
    width: usize,
    signed: bool,
}

/// Handling of numbers that a field cannot hold, in SET and INCRBY.
#[derive(Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    /// Nothing is written.
    Fail,
}

const OVERFLOWS: [(&str, Overflow); 3] =
    [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64, Overflow),
    IncrementBy(i64, Overflow),
}

#[derive(Clone, Copy)]
struct Operation {
    field: Field,
    action: Action,
}

fn bitfield(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let operations = parse(args.from(2), context.server.configuration().max_value_bytes)?;
    let writes = operations.iter().filter(|operation| !matches!(operation.action, Action::Get));
    let Some(end) = writes.map(|operation| operation.field.end()).max() else {
        return read(context, &args[1], &operations);
    };
    // From the first field that is used to the end of the last one, reads being of what was written before.
    let start = operations.iter().map(|operation| operation.field.start()).min().unwrap_or_default();
    let last = operations.iter().map(|operation| operation.field.end()).max().unwrap_or_default();
    context.session.check_transient(end - start)?;
    let answers = context.edit(&args[1], |bytes, part| {
        let before = bytes.get(start..).unwrap_or_default();
        let before = &before[..before.len().min(last - start)];
        let len = before.len().max(end - start);
        reserve(part, len)?;
        part.extend_from_slice(before);
        part.resize(len, 0);
        let answers: Vec<_> = operations.iter().map(|operation| operation.within(start).run(part)).collect();
        if part == before {
            Ok(Edit::Unchanged(answers))
        } else {
            Ok(Edit::Changed { offset: start, result: answers })
        }
    })?;
    reply(context, &answers)
}

fn bitfield_ro(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let operations = parse(args.from(2), context.server.configuration().max_value_bytes)?;
    if !operations.iter().all(|operation| matches!(operation.action, Action::Get)) {
        return Err(Failure::fixed("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read(context, &args[1], &operations)
}

fn read(context: &mut Context<'_>, key: &[u8], operations: &[Operation]) -> Outcome {
    let mut value = context.get(key)?;
    let mut buffer = Vec::new();
    let bytes = context.bytes_in_parts(&mut value, &mut buffer)?;
    let answers: Vec<_> =
        operations.iter().map(|operation| Some(operation.field.get(bytes) as i64)).collect();
    reply(context, &answers)
}

fn reply(context: &mut Context<'_>, answers: &[Option<i64>]) -> Outcome {
    context.replies.array(answers.len());
    for answer in answers {
        match answer {
            Some(number) => context.replies.integer(*number),
            None => context.replies.null(),
        }
    }
    Ok(Reply::Now)
}

/// Reads `GET type offset`, `SET type offset value`, `INCRBY type offset increment` and `OVERFLOW how`, which holds for
/// those that follow it.
fn parse(args: Args<'_>, limit: usize) -> Result<Vec<Operation>, Failure> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut rest = args.iter();
    while let Some(name) = rest.next() {
        let operands = rest.len();
        let mut operand = || rest.next().unwrap_or_default();
        if is(name, "OVERFLOW") && operands >= 1 {
            overflow = parse_overflow(operand())?;
        } else if is(name, "GET") && operands >= 2 {
            let field = Field::parse(operand(), operand(), limit)?;
            operations.push(Operation { field, action: Action::Get });
        } else if is(name, "SET") && operands >= 3 {
            let field = Field::parse(operand(), operand(), limit)?;
            operations.push(Operation { field, action: Action::Set(integer(operand())?, overflow) });
        } else if is(name, "INCRBY") && operands >= 3 {
            let field = Field::parse(operand(), operand(), limit)?;
            operations.push(Operation { field, action: Action::IncrementBy(integer(operand())?, overflow) });
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(operations)
}

fn parse_overflow(name: &[u8]) -> Result<Overflow, Failure> {
    let found = OVERFLOWS.iter().find(|(known, _)| is(name, known));
    found.map(|&(_, overflow)| overflow).ok_or(Failure::fixed("ERR Invalid OVERFLOW type specified"))
}

impl Operation {
    /// The same operation on what a string has from byte `start` on, where no field begins earlier.
    fn within(self, start: usize) -> Operation {
        let field = Field { offset: self.field.offset - start * BITS, ..self.field };
        Operation { field, ..self }
    }

    /// Does it to `bytes`, which reach to the end of every field that is written; returns the answer, which
    /// is none if it failed by overflow.
    fn run(self, bytes: &mut [u8]) -> Option<i64> {
        let before = self.field.get(bytes);
        let (number, overflow) = match self.action {
            Action::Get => return Some(before as i64),
            Action::Set(number, Overflow::Saturate) if self.field.is_far_below(number) => {
                (self.field.most(), Overflow::Saturate)
            }
            Action::Set(number, overflow) if self.field.signed => (number.into(), overflow),
            // For an unsigned field a negative number is a large one.
            Action::Set(number, overflow) => ((number as u64).into(), overflow),
            Action::IncrementBy(number, overflow) => (before + i128::from(number), overflow),
        };
        let after = self.field.fit(number, overflow)?;
        self.field.set(bytes, after);
        Some(if matches!(self.action, Action::Set(..)) { before as i64 } else { after as i64 })
    }
}

impl Field {
    /// Reads a type such as `i16` or `u8`, and an offset in bits, or in fields of this type behind a `#`.
    fn parse(kind: &[u8], offset: &[u8], limit: usize) -> Result<Field, Failure> {
        let (signed, width) = match kind.split_first() {
            Some((b'i', width)) => (true, parse_integer(width).filter(|width| (1..=64).contains(width))),
            Some((b'u', width)) => (false, parse_integer(width).filter(|width| (1..=63).contains(width))),
            _ => (false, None),
        };
        let width = width.ok_or(Failure::fixed(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        ))?;
        let offset = match offset.strip_prefix(b"#") {
            Some(number) => parse_integer(number).and_then(|number| number.checked_mul(width)),
            None => parse_integer(offset),
        };
        Ok(Field { offset: bit_offset(offset, limit)?, width: width as usize, signed })
    }

    /// The byte in which the field starts.
    fn start(self) -> usize {
        self.offset / BITS
    }

    /// Bytes of a string that reaches to the field's end.
    fn end(self) -> usize {
        (self.offset + self.width).div_ceil(BITS)
    }

    /// Its place in a number that is made of the bytes from the one on where the field starts.
    fn shift(self) -> usize {
        u128::BITS as usize - self.offset % BITS - self.width
    }

    fn mask(self) -> u128 {
        (1 << self.width) - 1
    }

    fn touched(self, bytes: &[u8]) -> u128 {
        let mut window = [0; size_of::<u128>()];
        let touched = bytes.get(self.offset / BITS..).unwrap_or_default();
        let len = touched.len().min(MOST_TOUCHED);
        window[..len].copy_from_slice(&touched[..len]);
        u128::from_be_bytes(window)
    }

    /// The number in the field; behind the end of the string there are zeros.
    fn get(self, bytes: &[u8]) -> i128 {
        self.extend(self.touched(bytes) >> self.shift())
    }

    /// # Panics
    /// If `bytes` do not reach to the field's end.
    fn set(self, bytes: &mut [u8], number: i128) {
        let others = self.touched(bytes) & !(self.mask() << self.shift());
        let window = others | (number as u128 & self.mask()) << self.shift();
        let (start, end) = (self.offset / BITS, self.end());
        bytes[start..end].copy_from_slice(&window.to_be_bytes()[..end - start]);
    }

    /// The number that the lowest bits of this one say.
    fn extend(self, bits: u128) -> i128 {
        let number = (bits & self.mask()) as i128;
        if self.signed && number >> (self.width - 1) == 1 { number - (1 << self.width) } else { number }
    }

    fn least(self) -> i128 {
        if self.signed { -(1 << (self.width - 1)) } else { 0 }
    }

    fn most(self) -> i128 {
        if self.signed { (1 << (self.width - 1)) - 1 } else { (1 << self.width) - 1 }
    }

    /// Returns whether a number is so far below what the field holds that Valkey, which takes the distance in
    /// 64 bits, sees it above.
    fn is_far_below(self, number: i64) -> bool {
        self.signed && self.width < 64 && self.most() - i128::from(number) > i64::MAX.into()
    }

    /// The number that is written, if any is.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i128> {
        let (least, most) = (self.least(), self.most());
        if (least..=most).contains(&number) {
            return Some(number);
        }
        match overflow {
            Overflow::Wrap => Some(self.extend(number as u128)),
            Overflow::Saturate => Some(number.clamp(least, most)),
            Overflow::Fail => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field() -> impl Strategy<Value = Field> {
        (0usize..200, 1usize..=64, any::<bool>()).prop_map(|(offset, width, signed)| {
            let width = if signed { width } else { width.min(63) };
            Field { offset, width, signed }
        })
    }

    fn bits(bytes: &[u8]) -> Vec<bool> {
        bytes.iter().flat_map(|byte| (0..BITS).map(move |bit| byte & (0x80 >> bit) != 0)).collect()
    }

    proptest! {
        #[test]
        fn a_number_is_read_back_and_no_other_bit_changes(field in field(), before in prop::collection::vec(any::<u8>(), 40), number: i64) {
            let number = field.extend(number as u128);
            let mut after = before.clone();
            field.set(&mut after, number);
            prop_assert_eq!(field.get(&after), number);
            for (place, (before, after)) in bits(&before).into_iter().zip(bits(&after)).enumerate() {
                prop_assert!(before == after || (field.offset..field.offset + field.width).contains(&place));
            }
        }

        #[test]
        fn what_is_written_fits_the_field(field in field(), number: i64, increment: i64) {
            let sum = i128::from(number) + i128::from(increment);
            for overflow in [Overflow::Wrap, Overflow::Saturate] {
                let fitted = field.fit(sum, overflow).unwrap();
                prop_assert_eq!(field.extend(fitted as u128), fitted);
            }
            let fails = field.fit(sum, Overflow::Fail).is_none();
            prop_assert_eq!(fails, field.extend(sum as u128) != sum);
        }
    }
}
