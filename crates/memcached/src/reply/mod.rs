//! Replies: from what came of an operation to the bytes of the protocol that it was asked in.
//!
//! - `text`, `meta`, `binary`: one protocol each
//!
//! It knows the form that a client asked for and what it asked not to be told. It must not know how an
//! outcome came about.

pub(crate) mod binary;
pub(crate) mod meta;
pub(crate) mod text;

use crate::refusal::Refusal;

/// What is known about an item, for those who ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The client's own bits.
    pub flags: u32,
    /// The token that changes with every change of the item.
    pub cas: u64,
    /// Length of the value in bytes.
    pub len: usize,
    /// Seconds until it expires; `None` if it does not.
    pub ttl: Option<u64>,
    /// Whether it was asked for before; answered as false if unknown.
    pub was_hit: Option<bool>,
    /// Seconds since it was last asked for; answered as 0 if unknown.
    pub idle: Option<u64>,
    /// Whether it is marked as stale.
    pub is_stale: bool,
    /// Whether this client is the one that has the right to fill it.
    pub is_won: bool,
    /// Whether another client has been told that it has this right.
    pub is_taken: bool,
}

/// What came of an operation, as far as it needs no more than a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored.
    Stored {
        /// The item's new token.
        cas: u64,
        /// Length of the item's whole value in bytes.
        len: usize,
    },
    /// It is not stored: there is such a key, or there is none.
    NotStored,
    /// The item has another token than the one that was compared.
    Exists,
    /// There is no such key.
    NotFound,
    /// It is deleted, or marked as stale.
    Deleted,
    /// What is stored is no number to add to.
    NotNumeric,
    /// The item would be longer than the server takes.
    TooLarge,
    /// There is no memory for it.
    OutOfMemory,
    /// There are no such statistics.
    UnknownTopic,
}

/// How the reply to a request is to be written.
///
/// Every method appends to `out`, or appends nothing if the client wants no such reply (`noreply`, meta's q,
/// binary's quiet operations).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyForm<'a>(pub(crate) Form<'a>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form<'a> {
    Text(text::Form<'a>),
    Meta(meta::Form<'a>),
    Binary(binary::Form<'a>),
}

/// Calls the method of the same name of the protocol's own form.
macro_rules! in_form {
    ($form:expr, $method:ident($($argument:expr),*)) => {
        match $form.0 {
            Form::Text(form) => form.$method($($argument),*),
            Form::Meta(form) => form.$method($($argument),*),
            Form::Binary(form) => form.$method($($argument),*),
        }
    };
}

impl ReplyForm<'_> {
    /// Returns whether the reply to what succeeds tells the item's token, so that the item needs one.
    pub fn tells_cas(&self) -> bool {
        match self.0 {
            Form::Text(form) => form.with_cas,
            Form::Meta(form) => form.asks_for(b'c'),
            Form::Binary(form) => form.tells_cas(),
        }
    }

    /// Returns whether the reply to a get tells when the item was used before.
    pub fn tells_use(&self) -> bool {
        matches!(self.0, Form::Meta(form) if form.asks_for(b'h') || form.asks_for(b'l'))
    }

    /// Returns whether the reply is a line of the text protocol.
    pub fn is_text(&self) -> bool {
        matches!(self.0, Form::Text(_))
    }

    /// Returns whether the reply is one of a meta command, which tells of an item whether it is stale, and who has the right
    /// to fill it.
    pub fn is_meta(&self) -> bool {
        matches!(self.0, Form::Meta(_))
    }

    /// Writes what comes before the value of a key that was found. If the operation wants the value, exactly
    /// [`item.len`](Item::len) bytes are to follow, then [`end_hit`](Self::end_hit). If they cannot be had
    /// after all, truncate `out` to where it was before and answer an error.
    #[inline]
    pub fn begin_hit(&self, item: &Item, out: &mut Vec<u8>) {
        in_form!(self, begin_hit(item, out));
    }

    /// Ends what [`begin_hit`](Self::begin_hit) began, with or without a value.
    #[inline]
    pub fn end_hit(&self, out: &mut Vec<u8>) {
        in_form!(self, end_hit(out));
    }

    /// There is no such key to get.
    #[inline]
    pub fn miss(&self, out: &mut Vec<u8>) {
        in_form!(self, miss(out));
    }

    /// What came of an operation.
    #[inline]
    pub fn outcome(&self, outcome: Outcome, out: &mut Vec<u8>) {
        in_form!(self, outcome(outcome, out));
    }

    /// The number that an arithmetic operation has stored. Of the item, its token and time to live are asked
    /// for.
    pub fn number(&self, number: u64, item: &Item, out: &mut Vec<u8>) {
        in_form!(self, number(number, item, out));
    }

    /// The key expires as it was asked to. Of the item, its token and flags are asked for.
    pub fn touched(&self, item: &Item, out: &mut Vec<u8>) {
        in_form!(self, touched(item, out));
    }

    /// It is done: everything is deleted, the verbosity or the memory limit is set.
    pub fn ok(&self, out: &mut Vec<u8>) {
        in_form!(self, ok(out));
    }

    /// Nothing was asked for but this.
    pub fn no_op(&self, out: &mut Vec<u8>) {
        in_form!(self, no_op(out));
    }

    /// The connection is closed next.
    pub fn quit(&self, out: &mut Vec<u8>) {
        in_form!(self, quit(out));
    }

    /// The server's version, such as `1.6.18`.
    pub fn version(&self, version: &str, out: &mut Vec<u8>) {
        in_form!(self, version(version, out));
    }

    /// One statistic; [`end_stats`](Self::end_stats) follows the last one.
    pub fn stat(&self, name: &str, value: &str, out: &mut Vec<u8>) {
        in_form!(self, stat(name, value, out));
    }

    /// Ends the statistics.
    pub fn end_stats(&self, out: &mut Vec<u8>) {
        in_form!(self, end_stats(out));
    }

    /// The statistics begin at zero again.
    pub fn reset(&self, out: &mut Vec<u8>) {
        in_form!(self, reset(out));
    }

    /// What is known about a key, for people: names and values without spaces and line ends.
    pub fn debug<'b>(&self, facts: impl IntoIterator<Item = (&'b str, &'b str)>, out: &mut Vec<u8>) {
        if let Form::Meta(form) = self.0 {
            form.debug(facts, out);
        }
    }

    /// The ways to authenticate, separated by spaces: `PLAIN`.
    pub fn mechanisms(&self, names: &str, out: &mut Vec<u8>) {
        in_form!(self, mechanisms(names, out));
    }

    /// The client has authenticated.
    pub fn authenticated(&self, out: &mut Vec<u8>) {
        in_form!(self, authenticated(out));
    }

    /// The name or the password is wrong, or the way unknown.
    pub fn authentication_failed(&self, out: &mut Vec<u8>) {
        in_form!(self, authentication_failed(out));
    }

    /// The client has to authenticate before it may ask for this.
    pub fn unauthenticated(&self, out: &mut Vec<u8>) {
        in_form!(self, unauthenticated(out));
    }

    /// The server cannot do it, for a reason of its own: `out of memory`, `disk error`. Line ends become
    /// spaces. It is written whatever the client asked not to be told. A client that has asked for several
    /// keys in one line takes this for the end of the values: answer a key that cannot be read as a
    /// [`miss`](Self::miss), or close the connection.
    pub fn server_error(&self, reason: &str, out: &mut Vec<u8>) {
        in_form!(self, server_error(reason, out));
    }

    /// The request is wrong in a way that only the server knows. Line ends become spaces.
    pub fn client_error(&self, reason: &str, out: &mut Vec<u8>) {
        in_form!(self, client_error(reason, out));
    }

    /// The request is wrong.
    pub fn refused(&self, refusal: Refusal, out: &mut Vec<u8>) {
        in_form!(self, refused(refusal, out));
    }
}

/// Appends decimal digits.
#[inline]
pub(crate) fn write_number(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends text of a line; line ends become spaces.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Limits, Parsed, RequestParser};

    /// What is written in the form that `request` asks for.
    #[track_caller]
    pub(super) fn written(request: &[u8], write: impl Fn(ReplyForm<'_>, &mut Vec<u8>)) -> String {
        let Parsed::Request(request, _) = RequestParser::default().parse(request, &Limits::default()) else {
            panic!("no whole request")
        };
        let mut out = Vec::new();
        write(request.form, &mut out);
        out.escape_ascii().to_string()
    }

    /// Writes a hit with its value.
    pub(super) fn hit(item: Item, value: &[u8]) -> impl Fn(ReplyForm<'_>, &mut Vec<u8>) {
        move |form, out| {
            form.begin_hit(&Item { len: value.len(), ..item }, out);
            out.extend_from_slice(value);
            form.end_hit(out);
        }
    }

    /// Writes an outcome.
    pub(super) fn outcome(outcome: Outcome) -> impl Fn(ReplyForm<'_>, &mut Vec<u8>) {
        move |form, out| form.outcome(outcome, out)
    }

    #[test]
    fn line_ends_cannot_be_smuggled_into_texts() {
        let reply = written(b"get a\r\n", |form, out| {
            form.server_error("disk\r\nEND", out);
            form.client_error("no\nway", out);
            form.stat("a\nb", "c\rd", out);
        });
        assert_eq!(reply, r"SERVER_ERROR disk  END\r\nCLIENT_ERROR no way\r\nSTAT a b c d\r\n");
    }
}
