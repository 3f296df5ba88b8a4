//! Operations of the binary protocol (protocol-binary.txt, "Command Opcodes"), and what their packets may
//! hold.
//!
//! It knows the table, and neither requests nor replies.

/// What an operation does; its quiet form does the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Set,
    Add,
    Replace,
    Delete,
    Increment,
    Decrement,
    Quit,
    Flush,
    NoOp,
    Version,
    Append,
    Prepend,
    Stat,
    Verbosity,
    Touch,
    GetAndTouch,
    ListMechanisms,
    Authenticate,
    Step,
}

/// Whether a packet has a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Never,
    Maybe,
    Always,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opcode {
    pub(crate) kind: Kind,
    /// Whether what the client expects is not answered.
    pub(crate) is_quiet: bool,
    /// Whether the reply tells the key.
    pub(crate) with_key: bool,
    /// Length of the extras in bytes; 0 is possible as well if `extras_are_optional`.
    pub(crate) extras: usize,
    pub(crate) extras_are_optional: bool,
    pub(crate) key: Part,
    /// Whether there may be a value.
    pub(crate) has_value: bool,
}

const fn row(kind: Kind, extras: usize, key: Part, has_value: bool) -> Option<Opcode> {
    Some(Opcode {
        kind,
        is_quiet: false,
        with_key: false,
        extras,
        extras_are_optional: false,
        key,
        has_value,
    })
}

const fn quiet(row: Option<Opcode>) -> Option<Opcode> {
    match row {
        Some(opcode) => Some(Opcode { is_quiet: true, ..opcode }),
        None => None,
    }
}

const fn with_key(row: Option<Opcode>) -> Option<Opcode> {
    match row {
        Some(opcode) => Some(Opcode { with_key: true, ..opcode }),
        None => None,
    }
}

const GET: Option<Opcode> = row(Kind::Get, 0, Part::Always, false);
const SET: Option<Opcode> = row(Kind::Set, 8, Part::Always, true);
const ADD: Option<Opcode> = row(Kind::Add, 8, Part::Always, true);
const REPLACE: Option<Opcode> = row(Kind::Replace, 8, Part::Always, true);
const DELETE: Option<Opcode> = row(Kind::Delete, 0, Part::Always, false);
const INCREMENT: Option<Opcode> = row(Kind::Increment, 20, Part::Always, false);
const DECREMENT: Option<Opcode> = row(Kind::Decrement, 20, Part::Always, false);
const QUIT: Option<Opcode> = row(Kind::Quit, 0, Part::Never, false);
const FLUSH: Option<Opcode> = match row(Kind::Flush, 4, Part::Never, false) {
    Some(opcode) => Some(Opcode { extras_are_optional: true, ..opcode }),
    None => None,
};
const NO_OP: Option<Opcode> = row(Kind::NoOp, 0, Part::Never, false);
const VERSION: Option<Opcode> = row(Kind::Version, 0, Part::Never, false);
const APPEND: Option<Opcode> = row(Kind::Append, 0, Part::Always, true);
const PREPEND: Option<Opcode> = row(Kind::Prepend, 0, Part::Always, true);
const STAT: Option<Opcode> = row(Kind::Stat, 0, Part::Maybe, false);
const VERBOSITY: Option<Opcode> = row(Kind::Verbosity, 4, Part::Never, false);
const TOUCH: Option<Opcode> = row(Kind::Touch, 4, Part::Always, false);
const GAT: Option<Opcode> = row(Kind::GetAndTouch, 4, Part::Always, false);
const LIST_MECHANISMS: Option<Opcode> = row(Kind::ListMechanisms, 0, Part::Never, false);
const AUTHENTICATE: Option<Opcode> = row(Kind::Authenticate, 0, Part::Always, true);
const STEP: Option<Opcode> = row(Kind::Step, 0, Part::Always, true);

/// The operations by their number.
#[rustfmt::skip]
const OPCODES: [Option<Opcode>; 0x25] = [
    /* 00 */ GET, SET, ADD, REPLACE,
    /* 04 */ DELETE, INCREMENT, DECREMENT, QUIT,
    /* 08 */ FLUSH, quiet(GET), NO_OP, VERSION,
    /* 0c */ with_key(GET), quiet(with_key(GET)), APPEND, PREPEND,
    /* 10 */ STAT, quiet(SET), quiet(ADD), quiet(REPLACE),
    /* 14 */ quiet(DELETE), quiet(INCREMENT), quiet(DECREMENT), quiet(QUIT),
    /* 18 */ quiet(FLUSH), quiet(APPEND), quiet(PREPEND), VERBOSITY,
    /* 1c */ TOUCH, GAT, quiet(GAT), None,
    /* 20 */ LIST_MECHANISMS, AUTHENTICATE, STEP, with_key(GAT),
    /* 24 */ quiet(with_key(GAT)),
];

impl Opcode {
    /// The operation of that number; `None` if there is none.
    #[inline]
    pub(crate) fn of(number: u8) -> Option<&'static Opcode> {
        OPCODES.get(usize::from(number))?.as_ref()
    }

    /// Whether a packet may have extras, a key and a value of these lengths.
    #[inline]
    pub(crate) fn allows(&self, extras: usize, key: usize, value: usize) -> bool {
        let extras_fit = extras == self.extras || (extras == 0 && self.extras_are_optional);
        let key_fits = match self.key {
            Part::Never => key == 0,
            Part::Maybe => true,
            Part::Always => key > 0,
        };
        extras_fit && key_fits && (value == 0 || self.has_value)
    }
}
