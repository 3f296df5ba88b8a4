//! Requests of the binary protocol (protocol-binary.txt): packets of a header, extras, a key and a value.
//!
//! It knows packets. What an opcode's packet may hold is in `opcode`.

use super::Limits;
use crate::exptime::Exptime;
use crate::key::{Key, MAX_KEY};
use crate::opcode::{Kind, Opcode};
use crate::operation::{Arithmetic, Delete, Direction, Get, Initial, Operation, Store, StoreMode};
use crate::refusal::Refusal;
use crate::reply::binary::Form;

/// The first byte of a packet.
pub(super) const MAGIC: u8 = 0x80;
/// Length of a header in bytes.
const HEADER: usize = 24;
/// Longest value in bytes that is waited for, as in memcached.
const LONGEST_VALUE: usize = i32::MAX as usize - 2;
/// The time of expiry that says not to create a missing number.
const NOT_CREATED: u32 = u32::MAX;

/// What a packet is.
pub(super) enum Packet<'a> {
    /// So many bytes have to be there.
    Incomplete(usize),
    /// Something to do, and how many bytes it took.
    Done(Operation<'a>, Form<'a>, usize),
    /// Something wrong.
    Refused {
        refusal: Refusal,
        superseded: Option<Key<'a>>,
        form: Form<'a>,
        taken: usize,
        /// Bytes of its body that follow; `None` if the connection is to be closed.
        left: Option<u64>,
    },
}

/// The parts of a whole packet.
struct Parts<'a> {
    extras: &'a [u8],
    key: &'a [u8],
    value: &'a [u8],
    cas: Option<u64>,
}

/// Parses the packet that `input` starts with; `input` is not empty.
#[inline]
pub(super) fn parse<'a>(input: &'a [u8], limits: &Limits) -> Packet<'a> {
    let form = Form::default();
    if input[0] != MAGIC {
        return closing(Refusal::Unanswerable, form, input.len());
    }
    let Some(header) = input.first_chunk::<HEADER>() else { return Packet::Incomplete(HEADER) };
    let [_, opcode, k0, k1, extras, _, _, _, b0, b1, b2, b3, o0, o1, o2, o3, cas @ ..] = *header;
    let form = Form { opcode, opaque: [o0, o1, o2, o3], ..form };
    let (key, extras) = (usize::from(u16::from_be_bytes([k0, k1])), usize::from(extras));
    let body = u32::from_be_bytes([b0, b1, b2, b3]) as usize;
    let Some(value) = body.checked_sub(extras + key) else {
        return closing(Refusal::UnknownCommand, form, HEADER);
    };
    if key > MAX_KEY {
        return closing(Refusal::BadFormat, form, HEADER);
    }
    let Some(opcode) = Opcode::of(opcode) else {
        let left = Some(body as u64);
        return Packet::Refused {
            refusal: Refusal::UnknownCommand,
            superseded: None,
            form,
            taken: HEADER,
            left,
        };
    };
    if !opcode.allows(extras, key, value) {
        return closing(Refusal::BadFormat, form, HEADER);
    }
    if value > LONGEST_VALUE {
        return closing(Refusal::TooLarge, form, HEADER);
    }
    let start = HEADER + extras + key;
    let is_too_large = value > limits.max_value;
    let end = if is_too_large { start } else { start + value };
    let Some(packet) = input.get(..end) else { return Packet::Incomplete(end) };
    let cas = u64::from_be_bytes(cas);
    let parts = Parts {
        extras: &packet[HEADER..HEADER + extras],
        key: &packet[HEADER + extras..start],
        value: &packet[start..],
        cas: (cas != 0).then_some(cas),
    };
    let form = Form { key: parts.key, ..form };
    let operation = operation(opcode.kind, &parts);
    if is_too_large {
        let superseded = match &operation {
            Operation::Store(store) => store.superseded(),
            _ => None,
        };
        let left = Some(value as u64);
        return Packet::Refused { refusal: Refusal::TooLarge, superseded, form, taken: end, left };
    }
    Packet::Done(operation, form, end)
}

fn closing<'a>(refusal: Refusal, form: Form<'a>, taken: usize) -> Packet<'a> {
    Packet::Refused { refusal, superseded: None, form, taken, left: None }
}

impl<'a> Parts<'a> {
    /// Four bytes of the extras as a number; 0 if they are not there.
    #[inline]
    fn number_at(&self, at: usize) -> u32 {
        self.extras.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// Eight bytes of the extras as a number; 0 if they are not there.
    fn long_number_at(&self, at: usize) -> u64 {
        self.extras.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    #[inline]
    fn exptime_at(&self, at: usize) -> Exptime {
        Exptime(self.number_at(at).into())
    }

    #[inline]
    fn key(&self) -> Key<'a> {
        Key::new(self.key)
    }

    fn store(&self, mode: StoreMode) -> Operation<'a> {
        // A token is only of a key that is there, whatever the operation.
        let mode = if self.cas.is_some() { StoreMode::Set } else { mode };
        Operation::Store(Store {
            flags: self.number_at(0),
            exptime: self.exptime_at(4),
            ..self.concatenation(mode)
        })
    }

    fn concatenation(&self, mode: StoreMode) -> Store<'a> {
        Store { value: self.value, compare: self.cas, ..Store::plain(self.key(), mode) }
    }

    fn arithmetic(&self, direction: Direction) -> Operation<'a> {
        let initial = Initial { value: self.long_number_at(8), exptime: self.exptime_at(16) };
        Operation::Arithmetic(Arithmetic {
            key: self.key(),
            direction,
            delta: self.long_number_at(0),
            initial: (self.number_at(16) != NOT_CREATED).then_some(initial),
            compare: self.cas,
            exptime: None,
            new_cas: None,
        })
    }
}

#[inline]
fn operation<'a>(kind: Kind, parts: &Parts<'a>) -> Operation<'a> {
    match kind {
        Kind::Get => Operation::Get(Get::plain(parts.key(), None)),
        Kind::GetAndTouch => Operation::Get(Get::plain(parts.key(), Some(parts.exptime_at(0)))),
        Kind::Set => parts.store(StoreMode::Set),
        Kind::Add => parts.store(StoreMode::Add),
        Kind::Replace => parts.store(StoreMode::Replace),
        Kind::Append => Operation::Store(parts.concatenation(StoreMode::Append)),
        Kind::Prepend => Operation::Store(parts.concatenation(StoreMode::Prepend)),
        Kind::Delete => Operation::Delete(Delete { compare: parts.cas, ..Delete::plain(parts.key()) }),
        Kind::Increment => parts.arithmetic(Direction::Increment),
        Kind::Decrement => parts.arithmetic(Direction::Decrement),
        Kind::Touch => Operation::Touch { key: parts.key(), exptime: parts.exptime_at(0) },
        Kind::Flush => Operation::FlushAll { delay: parts.exptime_at(0) },
        Kind::Stat => Operation::Stats { topic: parts.key },
        Kind::Verbosity => Operation::Verbosity { level: parts.number_at(0) },
        Kind::Version => Operation::Version,
        Kind::NoOp => Operation::NoOp,
        Kind::Quit => Operation::Quit,
        Kind::ListMechanisms => Operation::ListMechanisms,
        Kind::Authenticate | Kind::Step => Operation::Authenticate {
            mechanism: parts.key,
            response: parts.value,
            is_step: kind == Kind::Step,
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::request::tests::{LIMITS, packet, told, told_in_pieces};
    use proptest::prelude::*;

    const FLAGS_AND_TIME: &[u8] = &[0, 0, 0, 7, 0, 0, 0, 30];

    /// What a packet is, without the header of a refusal but its status.
    fn told_packet(packet: &[u8]) -> String {
        let told = told(packet).join(" | ");
        let refusals = [("Unknown command", 0x81), ("Invalid arguments", 0x04), ("Too large.", 0x03)];
        for (text, status) in refusals {
            if let Some(at) = told.find(text) {
                let code = format!(r"\x00\x{status:02x}\x00\x00");
                assert!(told.contains(&code), "{told}");
                return told[at..].to_owned();
            }
        }
        told
    }

    #[test]
    fn every_operation_takes_its_parts() {
        let numbers = [&5u64.to_be_bytes()[..], &10u64.to_be_bytes(), &30u32.to_be_bytes()].concat();
        let uncreated = [&5u64.to_be_bytes()[..], &10u64.to_be_bytes(), &[0xff; 4]].concat();
        let time = &30u32.to_be_bytes()[..];
        type Case<'a> = (&'a [u8], &'a [u8], &'a [u8], &'a [u8], u64, &'a str);
        let cases: [Case<'_>; 28] = [
            (&[0x00, 0x09, 0x0c, 0x0d], b"", b"a", b"", 0, "get a"),
            (&[0x01, 0x11], FLAGS_AND_TIME, b"a", b"hi", 0, "Set a 7 30 = hi"),
            (&[0x01, 0x11], FLAGS_AND_TIME, b"a", b"", 5, "Set a 7 30 if 5 = "),
            (&[0x02, 0x12], FLAGS_AND_TIME, b"a", b"hi", 0, "Add a 7 30 = hi"),
            (&[0x02, 0x12], FLAGS_AND_TIME, b"a", b"hi", 5, "Set a 7 30 if 5 = hi"),
            (&[0x03, 0x13], FLAGS_AND_TIME, b"a", b"hi", 0, "Replace a 7 30 = hi"),
            (&[0x03, 0x13], FLAGS_AND_TIME, b"a", b"hi", 5, "Set a 7 30 if 5 = hi"),
            (&[0x04, 0x14], b"", b"a", b"", 0, "delete a"),
            (&[0x04, 0x14], b"", b"a", b"", 5, "delete a if 5"),
            (&[0x05, 0x15], &numbers, b"a", b"", 0, "Increment a 5 from 10 30"),
            (&[0x06, 0x16], &numbers, b"a", b"", 9, "Decrement a 5 from 10 30 if 9"),
            (&[0x05, 0x15], &uncreated, b"a", b"", 0, "Increment a 5"),
            (&[0x07, 0x17], b"", b"", b"", 0, "Quit"),
            (&[0x08, 0x18], b"", b"", b"", 0, "flush 0"),
            (&[0x08, 0x18], time, b"", b"", 0, "flush 30"),
            (&[0x0a], b"", b"", b"", 0, "NoOp"),
            (&[0x0b], b"", b"", b"", 0, "Version"),
            (&[0x0e, 0x19], b"", b"a", b"hi", 0, "Append a 0 0 = hi"),
            (&[0x0f, 0x1a], b"", b"a", b"hi", 5, "Prepend a 0 0 if 5 = hi"),
            (&[0x10], b"", b"", b"", 0, "stats "),
            (&[0x10], b"", b"detail on", b"", 0, "stats detail on"),
            (&[0x1b], &[0, 0, 0, 2], b"", b"", 0, "Verbosity { level: 2 }"),
            (&[0x1c], time, b"a", b"", 0, "touch a 30"),
            (&[0x1d, 0x1e, 0x23, 0x24], time, b"a", b"", 0, "get a touch 30"),
            (&[0x20], b"", b"", b"", 0, "ListMechanisms"),
            (&[0x21], b"", b"PLAIN", b"\0u\0p", 0, r"authenticate PLAIN \x00u\x00p false"),
            (&[0x22], b"", b"PLAIN", b"\0u\0p", 0, r"authenticate PLAIN \x00u\x00p true"),
            (&[0x00], b"", b"\r\n \0", b"", 0, r"get \r\n \x00"),
        ];
        for (opcodes, extras, key, value, cas, expected) in cases {
            for opcode in opcodes {
                assert_eq!(told_packet(&packet(*opcode, extras, key, value, cas)), expected, "{opcode:#x}");
            }
        }
    }

    #[test]
    fn parts_that_an_operation_does_not_have_close_the_connection() {
        let key = "k".repeat(251);
        let time = &30u32.to_be_bytes()[..];
        for (opcode, extras, key, value) in [
            (0x00, &b""[..], &b""[..], &b""[..]),
            (0x00, b"xxxx", b"a", b""),
            (0x00, b"", b"a", b"xx"),
            (0x00, b"", key.as_bytes(), b""),
            (0x01, b"", b"a", b"hi"),
            (0x01, b"1234", b"a", b"hi"),
            (0x01, FLAGS_AND_TIME, b"", b"x"),
            (0x01, FLAGS_AND_TIME, key.as_bytes(), b"x"),
            (0x04, b"", b"a", b"xx"),
            (0x05, b"1234", b"a", b""),
            (0x07, b"", b"x", b""),
            (0x08, b"12", b"", b""),
            (0x0b, b"", b"x", b""),
            (0x10, b"xxxx", b"sizes", b""),
            (0x10, b"", b"sizes", b"xx"),
            (0x1d, time, b"a", b"xx"),
        ] {
            let stream = [packet(opcode, extras, key, value, 0), packet(0x0a, b"", b"", b"", 0)].concat();
            assert_eq!(told_packet(&stream), "Invalid arguments closing", "{opcode:#x}");
        }
        let key = [b'k'; 250];
        assert!(told_packet(&packet(0x00, b"", &key, b"", 0)).starts_with("get kkk"));
    }

    #[test]
    fn a_length_that_lies_closes_the_connection() {
        let mut lying = packet(0x00, b"", b"abc", b"", 0);
        lying[11] = 1;
        assert_eq!(told_packet(&lying), "Unknown command closing");
        let mut huge = packet(0x01, FLAGS_AND_TIME, b"a", b"x", 0);
        huge[8..12].fill(0xff);
        assert_eq!(told_packet(&huge), "Too large. closing");
    }

    #[test]
    fn an_unknown_operation_is_passed_over() {
        let unknown = packet(0x50, b"ab", b"cd", b"efgh", 0);
        let stream = [unknown, packet(0x0a, b"", b"", b"", 0)].concat();
        assert_eq!(told_packet(&stream), "Unknown command | NoOp");
        assert_eq!(told_packet(&packet(0x1f, b"", b"", b"", 0)), "Unknown command");
        assert_eq!(told_packet(&packet(0xff, b"", b"", b"", 0)), "Unknown command");
    }

    #[test]
    fn another_magic_closes_the_connection_without_an_answer() {
        let first = packet(0x0a, b"", b"", b"", 0);
        for magic in [0x81, 0x79, b'g'] {
            let mut second = first.clone();
            second[0] = magic;
            assert_eq!(told(&[first.clone(), second, first.clone()].concat()), ["NoOp", " closing"]);
        }
    }

    #[test]
    fn the_bytes_of_a_value_too_large_are_passed_over() {
        let value = packet(0x08, b"", b"", b"", 0).repeat(5);
        for (opcode, extras, told) in [
            (0x01, FLAGS_AND_TIME, "Too large. deleting a | NoOp"),
            (0x11, FLAGS_AND_TIME, "Too large. deleting a | NoOp"),
            (0x02, FLAGS_AND_TIME, "Too large. | NoOp"),
            (0x0e, b"", "Too large. | NoOp"),
        ] {
            let large = packet(opcode, extras, b"a", &value, 0);
            let stream = [large, packet(0x0a, b"", b"", b"", 0)].concat();
            assert_eq!(told_packet(&stream), told);
        }
    }

    #[test]
    fn data_types_and_other_reserved_bytes_are_overlooked() {
        let mut odd = packet(0x00, b"", b"a", b"", 0);
        odd[5..8].fill(5);
        assert_eq!(told_packet(&odd), "get a");
    }

    proptest! {
        #[test]
        fn any_packets_mean_the_same_in_pieces_as_at_once(
            packets in prop::collection::vec(
                (0u8..0x28, 0usize..9, 0usize..4, 0usize..120, any::<bool>()), 1..6),
            piece in 1usize..60,
        ) {
            let mut stream = Vec::new();
            for (opcode, extras, key, value, fits) in packets {
                let row = crate::opcode::Opcode::of(opcode);
                let (extras, value) = match row {
                    Some(row) if fits => (row.extras, if row.has_value { value } else { 0 }),
                    _ => (extras, value),
                };
                let bytes = vec![b'x'; value];
                stream.extend(packet(opcode, &vec![0; extras], &b"key"[..key], &bytes, 0));
            }
            let whole = told_in_pieces(&stream, stream.len(), &LIMITS);
            prop_assert_eq!(told_in_pieces(&stream, piece, &LIMITS), whole);
        }
    }
}
