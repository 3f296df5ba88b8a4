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

    /// Returns whether the reply to what succeeds tells the item's token: what is got is answered by quiet operations too.
    pub(super) fn tells_cas(&self) -> bool {
        self.row().is_some_and(|row| match row.kind {
            Kind::Get | Kind::GetAndTouch => true,
            Kind::Set | Kind::Add | Kind::Replace | Kind::Append | Kind::Prepend | Kind::Touch => {
                !row.is_quiet
            }
            Kind::Increment | Kind::Decrement => !row.is_quiet,
            _ => false,
        })
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
        let key = &name.as_bytes()[..name.len().min(usize::from(u16::MAX))];
        self.begin(Status::NoError, b"", key, value.len(), 0, out);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplyForm;
    use crate::reply::tests::{hit, outcome};
    use crate::request::{Limits, Parsed, RequestParser, tests::packet};

    const CAS: u64 = 0x0102_0304_0506_0708;

    /// What is written for a packet of `opcode` with the key `a`, if the operation has one.
    #[track_caller]
    fn written(opcode: u8, write: impl Fn(ReplyForm<'_>, &mut Vec<u8>)) -> Vec<u8> {
        let row = Opcode::of(opcode).expect("there is such an operation");
        let key = if row.allows(row.extras, 0, 0) { "" } else { "a" };
        let packet = packet(opcode, &vec![0; row.extras], key.as_bytes(), b"", 0);
        let Parsed::Request(request, _) = RequestParser::default().parse(&packet, &Limits::default()) else {
            panic!("no whole request")
        };
        let mut out = Vec::new();
        write(request.form, &mut out);
        out
    }

    /// A reply: opcode, status, extras, key, value and token.
    fn reply(opcode: u8, status: u8, extras: &[u8], key: &[u8], value: &[u8], cas: u64) -> Vec<u8> {
        let body = (extras.len() + key.len() + value.len()) as u8;
        let lengths = [0x81, opcode, 0, key.len() as u8, extras.len() as u8, 0, 0, status, 0, 0, 0, body];
        [&lengths[..], &[0xde, 0xad, 0xbe, 0xef], &cas.to_be_bytes(), extras, key, value].concat()
    }

    fn error(opcode: u8, status: u8, text: &str) -> Vec<u8> {
        reply(opcode, status, b"", b"", text.as_bytes(), 0)
    }

    #[test]
    fn a_hit_has_flags_and_a_token_and_the_key_if_it_was_asked_for() {
        let item = Item { flags: 7, cas: CAS, ..Item::default() };
        for opcode in [0x00, 0x09, 0x1d, 0x1e] {
            let expected = reply(opcode, 0, &[0, 0, 0, 7], b"", b"hi", CAS);
            assert_eq!(written(opcode, hit(item, b"hi")), expected);
        }
        for opcode in [0x0c, 0x0d, 0x23, 0x24] {
            let expected = reply(opcode, 0, &[0, 0, 0, 7], b"a", b"hi", CAS);
            assert_eq!(written(opcode, hit(item, b"hi")), expected);
        }
        let touched = written(0x1c, |form, out| form.touched(&item, out));
        assert_eq!(touched, reply(0x1c, 0, &[0, 0, 0, 7], b"", b"", CAS));
    }

    #[test]
    fn a_miss_is_told_unless_the_operation_is_quiet() {
        let miss = |form: ReplyForm<'_>, out: &mut Vec<u8>| form.miss(out);
        for opcode in [0x00, 0x1d] {
            assert_eq!(written(opcode, miss), error(opcode, 1, "Not found"));
        }
        for opcode in [0x0c, 0x23] {
            assert_eq!(written(opcode, miss), reply(opcode, 1, b"", b"a", b"", 0));
        }
        for opcode in [0x09, 0x0d, 0x1e, 0x24] {
            assert_eq!(written(opcode, miss), b"");
        }
    }

    #[test]
    fn quiet_operations_tell_nothing_that_is_good() {
        let stored = outcome(Outcome::Stored { cas: CAS, len: 2 });
        for (loud, quiet) in [(0x01, 0x11), (0x02, 0x12), (0x03, 0x13), (0x0e, 0x19), (0x0f, 0x1a)] {
            assert_eq!(written(loud, &stored), reply(loud, 0, b"", b"", b"", CAS));
            assert_eq!(written(quiet, &stored), b"");
        }
        assert_eq!(written(0x04, outcome(Outcome::Deleted)), reply(0x04, 0, b"", b"", b"", 0));
        assert_eq!(written(0x14, outcome(Outcome::Deleted)), b"");
        let number = |form: ReplyForm<'_>, out: &mut Vec<u8>| {
            form.number(0x17, &Item { cas: CAS, ..Item::default() }, out);
        };
        for (loud, quiet) in [(0x05, 0x15), (0x06, 0x16)] {
            let expected = reply(loud, 0, b"", b"", &[0, 0, 0, 0, 0, 0, 0, 0x17], CAS);
            assert_eq!(written(loud, number), expected);
            assert_eq!(written(quiet, number), b"");
        }
        let quit = |form: ReplyForm<'_>, out: &mut Vec<u8>| form.quit(out);
        assert_eq!(written(0x07, quit), reply(0x07, 0, b"", b"", b"", 0));
        assert_eq!(written(0x17, quit), b"");
        let ok = |form: ReplyForm<'_>, out: &mut Vec<u8>| form.ok(out);
        assert_eq!(written(0x08, ok), reply(0x08, 0, b"", b"", b"", 0));
        assert_eq!(written(0x18, ok), b"");
    }

    #[test]
    fn errors_are_told_by_quiet_operations_too() {
        let cases = [
            (0x11, Outcome::Exists, 2, "Data exists for key."),
            (0x01, Outcome::NotFound, 1, "Not found"),
            (0x12, Outcome::NotStored, 2, "Data exists for key."),
            (0x13, Outcome::NotStored, 1, "Not found"),
            (0x19, Outcome::NotStored, 5, "Not stored."),
            (0x14, Outcome::NotFound, 1, "Not found"),
            (0x15, Outcome::NotNumeric, 6, "Non-numeric server-side value for incr or decr"),
            (0x11, Outcome::TooLarge, 3, "Too large."),
            (0x01, Outcome::OutOfMemory, 0x82, "Out of memory"),
            (0x10, Outcome::UnknownTopic, 1, "Not found"),
        ];
        for (opcode, what, status, text) in cases {
            assert_eq!(written(opcode, outcome(what)), error(opcode, status, text), "{what:?}");
        }
        let failed = written(0x11, |form, out| form.server_error("disk error", out));
        assert_eq!(failed, error(0x11, 0x84, "disk error"));
        let failed = written(0x11, |form, out| form.client_error("no", out));
        assert_eq!(failed, error(0x11, 4, "no"));
    }

    #[test]
    fn statistics_are_packets_with_an_empty_one_at_their_end() {
        let stats = written(0x10, |form, out| {
            form.stat("sizes_status", "disabled", out);
            form.end_stats(out);
        });
        let first = reply(0x10, 0, b"", b"sizes_status", b"disabled", 0);
        assert_eq!(stats, [first, reply(0x10, 0, b"", b"", b"", 0)].concat());
        let reset = written(0x10, |form, out| form.reset(out));
        assert_eq!(reset, reply(0x10, 0, b"", b"", b"", 0));
        let version = written(0x0b, |form, out| form.version("1.6.18", out));
        assert_eq!(version, reply(0x0b, 0, b"", b"", b"1.6.18", 0));
        let no_op = written(0x0a, |form, out| form.no_op(out));
        assert_eq!(no_op, reply(0x0a, 0, b"", b"", b"", 0));
    }

    #[test]
    fn authentication_ends_well_or_not() {
        let mechanisms = written(0x20, |form, out| form.mechanisms("PLAIN", out));
        assert_eq!(mechanisms, reply(0x20, 0, b"", b"", b"PLAIN", 0));
        let authenticated = written(0x21, |form, out| form.authenticated(out));
        assert_eq!(authenticated, reply(0x21, 0, b"", b"", b"Authenticated", 0));
        let failed = written(0x21, |form, out| form.authentication_failed(out));
        assert_eq!(failed, error(0x21, 0x20, "Auth failure."));
        let unauthenticated = written(0x09, |form, out| form.unauthenticated(out));
        assert_eq!(unauthenticated, error(0x09, 0x20, "Auth failure."));
    }
}
