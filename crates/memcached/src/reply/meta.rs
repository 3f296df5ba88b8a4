//! Replies of the meta commands (protocol.txt, "Meta Commands"): two letters, then what each flag asks for in
//! the order in which they were asked.

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
    /// Returns whether the request has this flag.
    pub(super) fn asks_for(&self, flag: u8) -> bool {
        Words::new(self.flags).any(|word| word[0] == flag)
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplyForm;
    use crate::reply::tests::{hit, outcome, written};

    fn item() -> Item {
        Item { flags: 7, cas: 29, was_hit: Some(true), idle: Some(3), ..Item::default() }
    }

    fn miss(form: ReplyForm<'_>, out: &mut Vec<u8>) {
        form.miss(out);
    }

    #[test]
    fn flags_are_answered_in_the_order_in_which_they_were_asked() {
        let reply = written(b"mg a s v t f c k Oxyz h l q\r\n", hit(item(), b"hi"));
        assert_eq!(reply, r"VA 2 s2 t-1 f7 c29 ka Oxyz h1 l3\r\nhi\r\n");
        let known = Item { ttl: Some(100), was_hit: None, idle: None, ..item() };
        assert_eq!(written(b"mg a O l h t\r\n", hit(known, b"")), r"HD O l0 h0 t100\r\n");
        assert_eq!(written(b"mg zz kx f1 s c0\r\n", hit(item(), b"")), r"HD kzz f7 s0 c29\r\n");
    }

    #[test]
    fn a_value_is_only_told_to_who_asks_for_it() {
        assert_eq!(written(b"mg a\r\n", hit(item(), b"")), r"HD\r\n");
        assert_eq!(written(b"mg a v\r\n", hit(item(), b"")), r"VA 0\r\n\r\n");
    }

    #[test]
    fn who_has_won_is_told_behind_the_flags() {
        let reply = |item: Item| written(b"mg a t\r\n", hit(item, b""));
        let stale = Item { is_stale: true, ttl: Some(30), ..item() };
        assert_eq!(reply(Item { is_won: true, ..item() }), r"HD t-1 W\r\n");
        assert_eq!(reply(Item { is_taken: true, ..item() }), r"HD t-1 Z\r\n");
        assert_eq!(reply(Item { is_won: true, ..stale }), r"HD t30 X W\r\n");
        assert_eq!(reply(Item { is_taken: true, ..stale }), r"HD t30 Z X\r\n");
    }

    #[test]
    fn a_key_is_told_as_it_was_asked_for() {
        assert_eq!(written(b"mg Zm9v b k v\r\n", hit(item(), b"hi")), r"VA 2 kZm9v b\r\nhi\r\n");
        assert_eq!(written(b"mg Zm9v k b v\r\n", miss), r"EN kZm9v b\r\n");
        assert_eq!(written(b"mg Zm9v b\r\n", miss), r"EN\r\n");
    }

    #[test]
    fn a_miss_tells_no_more_than_the_client_knows() {
        assert_eq!(written(b"mg nokey k Oabc f t s\r\n", miss), r"EN knokey Oabc\r\n");
        assert_eq!(written(b"mg nokey v q k Oabc\r\n", miss), "");
        assert_eq!(written(b"me nokey\r\n", miss), r"EN\r\n");
    }

    #[test]
    fn outcomes_are_two_letters_of_which_q_leaves_out_the_good_ones() {
        let stored = Outcome::Stored { cas: 37, len: 2 };
        let cases = [
            (stored, r"HD s2 ka Oab c37\r\n", ""),
            (Outcome::Deleted, r"HD ka Oab\r\n", ""),
            (Outcome::NotStored, r"NS ka Oab\r\n", r"NS ka Oab\r\n"),
            (Outcome::Exists, r"EX ka Oab\r\n", r"EX ka Oab\r\n"),
            (Outcome::NotFound, r"NF ka Oab\r\n", r"NF ka Oab\r\n"),
        ];
        for (what, loud, quiet) in cases {
            assert_eq!(written(b"ms a 2 s k Oab c f t v\r\nhi\r\n", outcome(what)), loud);
            assert_eq!(written(b"ms a 2 s k q Oab c f t v\r\nhi\r\n", outcome(what)), quiet);
        }
    }

    #[test]
    fn errors_are_told_to_those_who_want_to_know_nothing() {
        let cases = [
            (Outcome::NotNumeric, r"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
            (Outcome::TooLarge, r"SERVER_ERROR object too large for cache\r\n"),
            (Outcome::OutOfMemory, r"SERVER_ERROR out of memory storing object\r\n"),
        ];
        for (what, expected) in cases {
            assert_eq!(written(b"ma a q k O1\r\n", outcome(what)), expected);
        }
    }

    #[test]
    fn a_number_is_a_value_to_who_asks_for_it() {
        let number = |form: ReplyForm<'_>, out: &mut Vec<u8>| form.number(13, &item(), out);
        assert_eq!(written(b"ma n N0 J13 v t c k Ox s f\r\n", number), r"VA 2 t-1 c29 kn Ox\r\n13\r\n");
        assert_eq!(written(b"ma n c\r\n", number), r"HD c29\r\n");
        assert_eq!(written(b"ma n v q\r\n", number), "");
    }

    #[test]
    fn what_is_for_people_is_names_and_values() {
        let facts = [("exp", "-1"), ("la", "0"), ("fetch", "no")];
        let debug = |form: ReplyForm<'_>, out: &mut Vec<u8>| form.debug(facts, out);
        assert_eq!(written(b"me a\r\n", debug), r"ME a exp=-1 la=0 fetch=no\r\n");
        assert_eq!(written(b"me Zm9v b\r\n", debug), r"ME Zm9v exp=-1 la=0 fetch=no\r\n");
        assert_eq!(written(b"get a\r\n", debug), "");
        assert_eq!(written(b"mn\r\n", |form, out| form.no_op(out)), r"MN\r\n");
    }
}
