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
