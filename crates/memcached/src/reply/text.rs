//! Replies of the text protocol (protocol.txt, from "Storage commands" on).

use std::io::Write;

use super::{Item, Outcome, write_number, write_text};
use crate::refusal::Refusal;

/// How a reply in text is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form<'a> {
    /// The key that is got.
    pub(crate) key: &'a [u8],
    /// Whether the token is told (`gets`, `gats`).
    pub(crate) with_cas: bool,
    /// Whether this is the last key of its line.
    pub(crate) is_last: bool,
    /// Whether the client does not want to know (`noreply`).
    pub(crate) is_quiet: bool,
}

const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated";
const AUTHENTICATION_FAILED: &str = "CLIENT_ERROR authentication failure";

/// The line that tells an outcome, here and in errors of meta.
pub(super) fn line_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Stored { .. } => "STORED",
        Outcome::NotStored => "NOT_STORED",
        Outcome::Exists => "EXISTS",
        Outcome::NotFound => "NOT_FOUND",
        Outcome::Deleted => "DELETED",
        Outcome::NotNumeric => "CLIENT_ERROR cannot increment or decrement non-numeric value",
        Outcome::TooLarge => "SERVER_ERROR object too large for cache",
        Outcome::OutOfMemory => "SERVER_ERROR out of memory storing object",
        Outcome::UnknownTopic => "ERROR",
    }
}

/// Appends a line.
pub(super) fn write_line(line: &str, out: &mut Vec<u8>) {
    write_text(line, out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the line of a refusal, if it has one.
pub(super) fn write_refusal(refusal: Refusal, out: &mut Vec<u8>) {
    if refusal != Refusal::Unanswerable {
        // Memory takes everything.
        let _ = write!(out, "{refusal}\r\n");
    }
}

/// Appends a line of an error: its kind, a space, its reason.
pub(super) fn write_error(kind: &str, reason: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(kind.as_bytes());
    write_line(reason, out);
}

impl Form<'_> {
    /// Appends a line that the client may not want.
    fn say(&self, line: &str, out: &mut Vec<u8>) {
        if !self.is_quiet {
            write_line(line, out);
        }
    }

    #[inline]
    fn end_of_keys(&self, out: &mut Vec<u8>) {
        if self.is_last {
            out.extend_from_slice(b"END\r\n");
        }
    }

    #[inline]
    pub(super) fn begin_hit(&self, item: &Item, out: &mut Vec<u8>) {
        out.extend_from_slice(b"VALUE ");
        out.extend_from_slice(self.key);
        out.push(b' ');
        write_number(item.flags, out);
        out.push(b' ');
        write_number(item.len, out);
        if self.with_cas {
            out.push(b' ');
            write_number(item.cas, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub(super) fn end_hit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n");
        self.end_of_keys(out);
    }

    #[inline]
    pub(super) fn miss(&self, out: &mut Vec<u8>) {
        self.end_of_keys(out);
    }

    #[inline]
    pub(super) fn outcome(&self, outcome: Outcome, out: &mut Vec<u8>) {
        self.say(line_of(outcome), out);
    }

    pub(super) fn number(&self, number: u64, _: &Item, out: &mut Vec<u8>) {
        if !self.is_quiet {
            write_number(number, out);
            out.extend_from_slice(b"\r\n");
        }
    }

    pub(super) fn touched(&self, _: &Item, out: &mut Vec<u8>) {
        self.say("TOUCHED", out);
    }

    pub(super) fn ok(&self, out: &mut Vec<u8>) {
        self.say("OK", out);
    }

    pub(super) fn no_op(&self, _: &mut Vec<u8>) {}

    pub(super) fn quit(&self, _: &mut Vec<u8>) {}

    pub(super) fn version(&self, version: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"VERSION ");
        write_line(version, out);
    }

    pub(super) fn stat(&self, name: &str, value: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"STAT ");
        write_text(name, out);
        out.push(b' ');
        write_line(value, out);
    }

    pub(super) fn end_stats(&self, out: &mut Vec<u8>) {
        write_line("END", out);
    }

    pub(super) fn reset(&self, out: &mut Vec<u8>) {
        write_line("RESET", out);
    }

    pub(super) fn mechanisms(&self, _: &str, _: &mut Vec<u8>) {}

    pub(super) fn authenticated(&self, out: &mut Vec<u8>) {
        write_line("STORED", out);
    }

    pub(super) fn authentication_failed(&self, out: &mut Vec<u8>) {
        write_line(AUTHENTICATION_FAILED, out);
    }

    pub(super) fn unauthenticated(&self, out: &mut Vec<u8>) {
        write_line(UNAUTHENTICATED, out);
    }

    pub(super) fn server_error(&self, reason: &str, out: &mut Vec<u8>) {
        write_error("SERVER_ERROR ", reason, out);
    }

    pub(super) fn client_error(&self, reason: &str, out: &mut Vec<u8>) {
        write_error("CLIENT_ERROR ", reason, out);
    }

    pub(super) fn refused(&self, refusal: Refusal, out: &mut Vec<u8>) {
        if !self.is_quiet {
            write_refusal(refusal, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::tests::{hit, outcome, written};

    const ITEM: Item = Item {
        flags: 5,
        cas: 84,
        len: 0,
        ttl: None,
        was_hit: None,
        idle: None,
        is_stale: false,
        is_won: false,
        is_taken: false,
    };

    #[test]
    fn a_hit_tells_the_token_if_it_was_asked_for() {
        assert_eq!(written(b"get zz\r\n", hit(ITEM, b"hi")), r"VALUE zz 5 2\r\nhi\r\nEND\r\n");
        assert_eq!(written(b"gets zz\r\n", hit(ITEM, b"hi")), r"VALUE zz 5 2 84\r\nhi\r\nEND\r\n");
        assert_eq!(written(b"gats 0 zz\r\n", hit(ITEM, b"")), r"VALUE zz 5 0 84\r\n\r\nEND\r\n");
    }

    #[test]
    fn only_the_last_key_ends_the_values() {
        assert_eq!(written(b"get zz zy\r\n", hit(ITEM, b"hi")), r"VALUE zz 5 2\r\nhi\r\n");
        assert_eq!(written(b"get zz zy\r\n", |form, out| form.miss(out)), "");
        assert_eq!(written(b"get zz\r\n", |form, out| form.miss(out)), r"END\r\n");
    }

    #[test]
    fn outcomes_are_lines_which_noreply_leaves_out() {
        let cases = [
            (Outcome::Stored { cas: 1, len: 1 }, r"STORED\r\n"),
            (Outcome::NotStored, r"NOT_STORED\r\n"),
            (Outcome::Exists, r"EXISTS\r\n"),
            (Outcome::NotFound, r"NOT_FOUND\r\n"),
            (Outcome::Deleted, r"DELETED\r\n"),
            (Outcome::NotNumeric, r"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
            (Outcome::TooLarge, r"SERVER_ERROR object too large for cache\r\n"),
            (Outcome::OutOfMemory, r"SERVER_ERROR out of memory storing object\r\n"),
        ];
        for (what, expected) in cases {
            assert_eq!(written(b"set a 0 0 1\r\n1\r\n", outcome(what)), expected);
            assert_eq!(written(b"set a 0 0 1 noreply\r\n1\r\n", outcome(what)), "");
        }
        assert_eq!(written(b"stats foo\r\n", outcome(Outcome::UnknownTopic)), r"ERROR\r\n");
    }

    #[test]
    fn numbers_touches_and_done_are_lines_which_noreply_leaves_out() {
        let number = |form: crate::ReplyForm<'_>, out: &mut Vec<u8>| form.number(u64::MAX, &ITEM, out);
        assert_eq!(written(b"incr a 1\r\n", number), r"18446744073709551615\r\n");
        assert_eq!(written(b"incr a 1 noreply\r\n", number), "");
        let touched = |form: crate::ReplyForm<'_>, out: &mut Vec<u8>| form.touched(&ITEM, out);
        assert_eq!(written(b"touch a 1\r\n", touched), r"TOUCHED\r\n");
        assert_eq!(written(b"touch a 1 noreply\r\n", touched), "");
        let ok = |form: crate::ReplyForm<'_>, out: &mut Vec<u8>| form.ok(out);
        assert_eq!(written(b"flush_all\r\n", ok), r"OK\r\n");
        assert_eq!(written(b"flush_all noreply\r\n", ok), "");
    }

    #[test]
    fn statistics_are_lines_with_an_end() {
        let reply = written(b"stats\r\n", |form, out| {
            form.stat("pid", "12", out);
            form.end_stats(out);
            form.reset(out);
        });
        assert_eq!(reply, r"STAT pid 12\r\nEND\r\nRESET\r\n");
        assert_eq!(written(b"version\r\n", |form, out| form.version("1.6.18", out)), r"VERSION 1.6.18\r\n");
        assert_eq!(written(b"quit\r\n", |form, out| form.quit(out)), "");
    }

    #[test]
    fn a_login_is_answered_whatever_the_client_wants_to_know() {
        let reply = written(b"set a 0 0 3 noreply\r\nu p\r\n", |form, out| {
            form.authenticated(out);
            form.authentication_failed(out);
            form.unauthenticated(out);
            form.server_error("out of memory", out);
        });
        let lines = [
            r"STORED\r\n",
            r"CLIENT_ERROR authentication failure\r\n",
            r"CLIENT_ERROR unauthenticated\r\n",
            r"SERVER_ERROR out of memory\r\n",
        ];
        assert_eq!(reply, lines.concat());
    }
}
