//! Replies of the meta commands (protocol.txt, "Meta Commands"): two letters, then what each flag asks for in the order in
//! which they were asked.

use super::text::{line_of, write_error, write_line, write_refusal};
use super::{Item, Outcome, write_number, write_text};
use crate::line::Words;
use crate::refusal::Refusal;

/// How a reply to a meta command is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form<'a> {
    /// The key as it was asked for.
    pub(crate) key: &'a [u8],
    /// Whether that is in base64.
    pub(crate) is_base64: bool,
    /// The flags of the request: words.
    pub(crate) flags: &'a [u8],
    /// Whether the client does not want to know what it expects (q).
    pub(crate) is_quiet: bool,
    /// Whether it wants the value (v).
    pub(crate) wants_value: bool,
}

/// Flags that are answered: of any reply, of one with an item, of one with a number, and of a stored value.
const OF_ALL: &[u8] = b"Ok";
const OF_ITEM: &[u8] = b"Okcfhlst";
const OF_NUMBER: &[u8] = b"Okct";
const OF_STORED: &[u8] = b"Okcs";

impl Form<'_> {
    /// Appends what the flags ask for, as far as it is among `answered`, and the end of the line.
    fn write_flags(&self, answered: &[u8], item: &Item, out: &mut Vec<u8>) {
        for flag in Words::new(self.flags) {
            if answered.contains(&flag[0]) {
                out.push(b' ');
                self.write_flag(flag, item, out);
            }
        }
        out.extend_from_slice(if item.is_taken { b" Z" } else { b"" });
        out.extend_from_slice(if item.is_stale { b" X" } else { b"" });
        out.extend_from_slice(if item.is_won { b" W" } else { b"" });
        out.extend_from_slice(b"\r\n");
    }

    fn write_flag(&self, flag: &[u8], item: &Item, out: &mut Vec<u8>) {
        let letter = flag[0];
        if letter == b'O' {
            return out.extend_from_slice(flag);
        }
        out.push(letter);
        match letter {
            b'k' => {
                out.extend_from_slice(self.key);
                out.extend_from_slice(if self.is_base64 { b" b" } else { b"" });
            }
            b'c' => write_number(item.cas, out),
            b'f' => write_number(item.flags, out),
            b'h' => out.push(if item.was_hit == Some(true) { b'1' } else { b'0' }),
            b'l' => write_number(item.idle.unwrap_or(0), out),
            b's' => write_number(item.len, out),
            b't' => match item.ttl {
                Some(seconds) => write_number(seconds, out),
                None => out.extend_from_slice(b"-1"),
            },
            _ => {}
        }
    }

    /// Appends a reply of two letters.
    fn say(&self, code: &[u8; 2], out: &mut Vec<u8>) {
        out.extend_from_slice(code);
        self.write_flags(OF_ALL, &Item::default(), out);
    }

    /// Appends the first word of a reply that may have a value.
    fn begin(&self, len: usize, out: &mut Vec<u8>) {
        if self.wants_value {
            out.extend_from_slice(b"VA ");
            write_number(len, out);
        } else {
            out.extend_from_slice(b"HD");
        }
    }

    pub(super) fn begin_hit(&self, item: &Item, out: &mut Vec<u8>) {
        self.begin(item.len, out);
        self.write_flags(OF_ITEM, item, out);
    }

    pub(super) fn end_hit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.wants_value { b"\r\n" } else { b"" });
    }

    pub(super) fn miss(&self, out: &mut Vec<u8>) {
        if !self.is_quiet {
            self.say(b"EN", out);
        }
    }

    pub(super) fn outcome(&self, outcome: Outcome, out: &mut Vec<u8>) {
        match outcome {
            Outcome::Stored { .. } | Outcome::Deleted if self.is_quiet => {}
            Outcome::Stored { cas, len } => {
                out.extend_from_slice(b"HD");
                self.write_flags(OF_STORED, &Item { cas, len, ..Item::default() }, out);
            }
            Outcome::Deleted => self.say(b"HD", out),
            Outcome::NotStored => self.say(b"NS", out),
            Outcome::Exists => self.say(b"EX", out),
            Outcome::NotFound => self.say(b"NF", out),
            error => write_line(line_of(error), out),
        }
    }

    pub(super) fn number(&self, number: u64, item: &Item, out: &mut Vec<u8>) {
        if self.is_quiet {
            return;
        }
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(number).as_bytes();
        self.begin(digits.len(), out);
        self.write_flags(OF_NUMBER, item, out);
        if self.wants_value {
            out.extend_from_slice(digits);
            out.extend_from_slice(b"\r\n");
        }
    }

    pub(super) fn touched(&self, item: &Item, out: &mut Vec<u8>) {
        self.begin_hit(item, out);
    }

    pub(super) fn ok(&self, out: &mut Vec<u8>) {
        self.outcome(Outcome::Deleted, out);
    }

    pub(super) fn no_op(&self, out: &mut Vec<u8>) {
        write_line("MN", out);
    }

    pub(super) fn quit(&self, _: &mut Vec<u8>) {}

    pub(super) fn version(&self, _: &str, _: &mut Vec<u8>) {}

    pub(super) fn stat(&self, _: &str, _: &str, _: &mut Vec<u8>) {}

    pub(super) fn end_stats(&self, _: &mut Vec<u8>) {}

    pub(super) fn reset(&self, _: &mut Vec<u8>) {}

    pub(super) fn debug<'b>(&self, facts: impl IntoIterator<Item = (&'b str, &'b str)>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ME ");
        out.extend_from_slice(self.key);
        for (name, value) in facts {
            out.push(b' ');
            write_text(name, out);
            out.push(b'=');
            write_text(value, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    pub(super) fn mechanisms(&self, _: &str, _: &mut Vec<u8>) {}

    pub(super) fn authenticated(&self, out: &mut Vec<u8>) {
        super::text::Form::default().authenticated(out);
    }

    pub(super) fn authentication_failed(&self, out: &mut Vec<u8>) {
        super::text::Form::default().authentication_failed(out);
    }

    pub(super) fn unauthenticated(&self, out: &mut Vec<u8>) {
        super::text::Form::default().unauthenticated(out);
    }

    pub(super) fn server_error(&self, reason: &str, out: &mut Vec<u8>) {
        write_error("SERVER_ERROR ", reason, out);
    }

    pub(super) fn client_error(&self, reason: &str, out: &mut Vec<u8>) {
        write_error("CLIENT_ERROR ", reason, out);
    }

    /// Errors are told to those who want to know nothing, too.
    pub(super) fn refused(&self, refusal: Refusal, out: &mut Vec<u8>) {
        write_refusal(refusal, out);
    }
}
