//! Commands that read strings.

use super::call::{Call, Copies};
use super::plain::MadePlain;
use crate::server::Context;
use crate::values;

/// GET: restores the string without a copy of what is stored.
pub fn get(call: &Call<'_>) {
    let Some(key) = call.open_envelope(call.get(1)) else { return call.answer(Copies::None) };
    reply_restored(call.context, key.bytes());
}

/// STRLEN: most envelopes say how long the string is.
pub fn strlen(call: &Call<'_>) {
    let Some(key) = call.open_envelope(call.get(1)) else { return call.answer(Copies::None) };
    match values::restored_len(key.bytes()) {
        Ok(len) => call.context.reply_number(len),
        Err(damaged) => call.context.reply_error(&damaged.to_string()),
    }
}

/// MGET: the server's reply with its strings restored.
pub fn mget(call: &Call<'_>) {
    let Some(reply) = call.forward(Copies::None) else { return call.no_reply() };
    let Some(len) = reply.array() else { return call.context.reply_as(&reply) };
    call.context.reply_array(len);
    for element in (0..len).map(|at| reply.element(at)) {
        match element.as_ref().and_then(|element| element.string()) {
            Some(stored) => reply_restored(call.context, stored),
            None => call.context.reply_null(),
        }
    }
}

/// Replies with the client's string that is stored so, or with an error if it is damaged.
pub fn reply_restored(context: Context, stored: &[u8]) {
    if let Err(damaged) = values::restored(stored, |string| context.reply(string)) {
        context.reply_error(&damaged.to_string());
    }
}

/// GETRANGE and SUBSTR: restores the string and returns a part of it.
pub fn range(call: &Call<'_>) {
    let (Some(start), Some(end)) = (integer(call.get(2).bytes()), integer(call.get(3).bytes())) else {
        return on_plain(call);
    };
    let Some(key) = call.open_envelope(call.get(1)) else { return call.answer(Copies::None) };
    if let Err(damaged) = values::restored(key.bytes(), |value| call.context.reply(part(value, start, end))) {
        call.context.reply_error(&damaged.to_string());
    }
}

/// A number as the server reads it: without signs, zeros and spaces that need not be there.
fn integer(bytes: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == bytes).then_some(number)
}

/// The bytes from `start` to `end`, both included, and counted from the end if they are negative.
fn part(value: &[u8], start: i64, end: i64) -> &[u8] {
    let len = value.len() as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let (start, end) = (place(start), place(end).min(len - 1));
    if start > end { &[] } else { &value[start as usize..=end as usize] }
}

/// A command that the server runs on the plain strings, which are envelopes again when it has replied.
pub fn on_plain(call: &Call<'_>) {
    let mut plain = MadePlain::new(call.context);
    match call.keys().try_for_each(|name| plain.make(name)) {
        Ok(()) => call.answer(Copies::None),
        Err(reason) => call.context.reply_error(&reason.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_counted_from_both_ends_and_cut() {
        let value = b"hello";
        let parts = [
            (0, 0, "h"),
            (0, -1, "hello"),
            (1, 3, "ell"),
            (-3, -2, "ll"),
            (-100, 100, "hello"),
            (-100, -100, "h"),
        ];
        for (start, end, expected) in parts {
            assert_eq!(part(value, start, end), expected.as_bytes(), "{start} {end}");
        }
        for (start, end) in [(3, 1), (5, 9), (-1, -3), (i64::MAX, i64::MAX), (-1, i64::MIN), (2, 1)] {
            assert_eq!(part(value, start, end), b"", "{start} {end}");
        }
        assert_eq!(part(b"", 0, -1), b"");
        assert_eq!(part(value, i64::MIN, i64::MAX), value);
    }

    #[test]
    fn numbers_are_those_that_the_server_reads() {
        assert_eq!([&b"0"[..], b"-1", b"12"].map(integer), [Some(0), Some(-1), Some(12)]);
        for bytes in [&b""[..], b"+1", b"01", b"-0", b" 1", b"1 ", b"1.0", b"9223372036854775808"] {
            assert_eq!(integer(bytes), None);
        }
    }
}
