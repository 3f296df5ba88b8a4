//! Replies of the binary protocol (protocol-binary.txt): a header of 24 bytes, extras, a key and a value.

use super::{Item, Outcome, write_text};
use crate::opcode::{Kind, Opcode};
use crate::refusal::Refusal;

/// How a packet is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form<'a> {
    /// The operation's number, which the reply has as well.
    pub(crate) opcode: u8,
    /// The client's own four bytes, which the reply has as well.
    pub(crate) opaque: [u8; 4],
    /// The key that is got.
    pub(crate) key: &'a [u8],
}

/// The first byte of a reply.
const MAGIC: u8 = 0x81;

/// What a reply tells (protocol-binary.txt, "Response Status").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    NoError = 0x00,
    NotFound = 0x01,
    Exists = 0x02,
    TooLarge = 0x03,
    InvalidArguments = 0x04,
    NotStored = 0x05,
    NotNumeric = 0x06,
    AuthenticationFailed = 0x20,
    UnknownCommand = 0x81,
    OutOfMemory = 0x82,
    InternalError = 0x84,
}

impl Status {
    /// memcached's words for it.
    fn text(self) -> &'static str {
        match self {
            Status::NoError => "",
            Status::NotFound => "Not found",
            Status::Exists => "Data exists for key.",
            Status::TooLarge => "Too large.",
            Status::InvalidArguments => "Invalid arguments",
            Status::NotStored => "Not stored.",
            Status::NotNumeric => "Non-numeric server-side value for incr or decr",
            Status::AuthenticationFailed => "Auth failure.",
            Status::UnknownCommand => "Unknown command",
            Status::OutOfMemory => "Out of memory",
            Status::InternalError => "Internal error",
        }
    }
}

impl Form<'_> {
    fn row(&self) -> Option<&'static Opcode> {
        Opcode::of(self.opcode)
    }

    fn is_quiet(&self) -> bool {
        self.row().is_some_and(|row| row.is_quiet)
    }

    /// The key, if it is to be told.
    fn told_key(&self) -> &[u8] {
        if self.row().is_some_and(|row| row.with_key) { self.key } else { b"" }
    }

    /// Appends a header, extras and a key; a value of `value` bytes is to follow.
    fn begin(&self, status: Status, extras: &[u8], key: &[u8], value: usize, cas: u64, out: &mut Vec<u8>) {
        let body = extras.len() + key.len() + value;
        let mut header = [0; 24];
        header[0] = MAGIC;
        header[1] = self.opcode;
        header[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
        header[4] = extras.len() as u8;
        header[6..8].copy_from_slice(&(status as u16).to_be_bytes());
        header[8..12].copy_from_slice(&(body as u32).to_be_bytes());
        header[12..16].copy_from_slice(&self.opaque);
        header[16..24].copy_from_slice(&cas.to_be_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(extras);
        out.extend_from_slice(key);
    }

    /// Appends a packet of a header and a value, unless this operation is quiet.
    fn say(&self, value: &[u8], cas: u64, out: &mut Vec<u8>) {
        if !self.is_quiet() {
            self.begin(Status::NoError, b"", b"", value.len(), cas, out);
            out.extend_from_slice(value);
        }
    }

    fn error(&self, status: Status, reason: &str, out: &mut Vec<u8>) {
        self.begin(status, b"", b"", reason.len(), 0, out);
        write_text(reason, out);
    }

    fn fail(&self, status: Status, out: &mut Vec<u8>) {
        self.error(status, status.text(), out);
    }

    #[inline]
    pub(super) fn begin_hit(&self, item: &Item, out: &mut Vec<u8>) {
        self.begin(Status::NoError, &item.flags.to_be_bytes(), self.told_key(), item.len, item.cas, out);
    }

    #[inline]
    pub(super) fn end_hit(&self, _: &mut Vec<u8>) {}

    pub(super) fn miss(&self, out: &mut Vec<u8>) {
        if self.is_quiet() {
            return;
        }
        match self.told_key() {
            b"" => self.fail(Status::NotFound, out),
            key => self.begin(Status::NotFound, b"", key, 0, 0, out),
        }
    }

    pub(super) fn outcome(&self, outcome: Outcome, out: &mut Vec<u8>) {
        let status = match outcome {
            Outcome::Stored { cas, .. } => return self.say(b"", cas, out),
            Outcome::Deleted => return self.say(b"", 0, out),
            Outcome::NotStored => match self.row().map(|row| row.kind) {
                Some(Kind::Add) => Status::Exists,
                Some(Kind::Replace) => Status::NotFound,
                _ => Status::NotStored,
            },
            Outcome::Exists => Status::Exists,
            Outcome::NotFound | Outcome::UnknownTopic => Status::NotFound,
            Outcome::NotNumeric => Status::NotNumeric,
            Outcome::TooLarge => Status::TooLarge,
            Outcome::OutOfMemory => Status::OutOfMemory,
        };
        self.fail(status, out);
    }

    pub(super) fn number(&self, number: u64, item: &Item, out: &mut Vec<u8>) {
        self.say(&number.to_be_bytes(), item.cas, out);
    }

    pub(super) fn touched(&self, item: &Item, out: &mut Vec<u8>) {
        self.begin(Status::NoError, &item.flags.to_be_bytes(), b"", 0, item.cas, out);
    }

    pub(super) fn ok(&self, out: &mut Vec<u8>) {
        self.say(b"", 0, out);
    }

    pub(super) fn no_op(&self, out: &mut Vec<u8>) {
        self.say(b"", 0, out);
    }

    pub(super) fn quit(&self, out: &mut Vec<u8>) {
        self.say(b"", 0, out);
    }

    pub(super) fn version(&self, version: &str, out: &mut Vec<u8>) {
        self.say(version.as_bytes(), 0, out);
    }

    pub(super) fn stat(&self, name: &str, value: &str, out: &mut Vec<u8>) {
        self.begin(Status::NoError, b"", name.as_bytes(), value.len(), 0, out);
        out.extend_from_slice(value.as_bytes());
    }

    pub(super) fn end_stats(&self, out: &mut Vec<u8>) {
        self.say(b"", 0, out);
    }

    pub(super) fn reset(&self, out: &mut Vec<u8>) {
        self.say(b"", 0, out);
    }

    pub(super) fn mechanisms(&self, names: &str, out: &mut Vec<u8>) {
        self.say(names.as_bytes(), 0, out);
    }

    pub(super) fn authenticated(&self, out: &mut Vec<u8>) {
        self.say(b"Authenticated", 0, out);
    }

    pub(super) fn authentication_failed(&self, out: &mut Vec<u8>) {
        self.fail(Status::AuthenticationFailed, out);
    }

    pub(super) fn unauthenticated(&self, out: &mut Vec<u8>) {
        self.fail(Status::AuthenticationFailed, out);
    }

    pub(super) fn server_error(&self, reason: &str, out: &mut Vec<u8>) {
        self.error(Status::InternalError, reason, out);
    }

    pub(super) fn client_error(&self, reason: &str, out: &mut Vec<u8>) {
        self.error(Status::InvalidArguments, reason, out);
    }

    pub(super) fn refused(&self, refusal: Refusal, out: &mut Vec<u8>) {
        let status = match refusal {
            Refusal::Unanswerable => return,
            Refusal::UnknownCommand => Status::UnknownCommand,
            Refusal::TooLarge => Status::TooLarge,
            _ => Status::InvalidArguments,
        };
        self.fail(status, out);
    }
}
