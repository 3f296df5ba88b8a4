//! Bytes as text for people, such as the names of keys, and back: UTF-8 as it is, and `\n`, `\x1b` for what is none or
//! controls a terminal.

use std::fmt::Write as _;

/// The bytes as text. No two texts are the same for different bytes, and none has a line end.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                _ if character.is_control() => {
                    character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_escaped(&mut text, byte));
                }
                _ => text.push(character),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_escaped(&mut text, byte));
    }
    text
}

fn push_escaped(text: &mut String, byte: u8) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\\x{byte:02x}");
}

/// The bytes of a text that [`escape`] gave. A backslash that begins nothing of the kind stands for itself.
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let (byte, len) = if first == b'\\' { escaped(after).unwrap_or((first, 0)) } else { (first, 0) };
        bytes.push(byte);
        rest = &after[len..];
    }
    bytes
}

/// An escape behind a backslash: the byte that is meant, and how many bytes say so.
fn escaped(after: &[u8]) -> Option<(u8, usize)> {
    match *after.first()? {
        b'\\' => Some((b'\\', 1)),
        b'n' => Some((b'\n', 1)),
        b'r' => Some((b'\r', 1)),
        b't' => Some((b'\t', 1)),
        b'x' => {
            let digit = |place: usize| char::from(*after.get(place)?).to_digit(16);
            Some(((16 * digit(1)? + digit(2)?) as u8, 3))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_stays_as_it_is_and_the_rest_is_escaped() {
        for (bytes, text) in [
            ("user:*".as_bytes(), "user:*"),
            ("käse:*".as_bytes(), "käse:*"),
            (b"a\r\n\t\x1b[0m", "a\\r\\n\\t\\x1b[0m"),
            ("\u{85}".as_bytes(), "\\xc2\\x85"),
            (b"\xff\xc3:*", "\\xff\\xc3:*"),
            (b"a\\b", "a\\\\b"),
        ] {
            assert_eq!(escape(bytes), text);
        }
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stands_for_itself() {
        for text in ["a\\", "a\\b", "\\x", "\\x1", "\\x1g", "\\xag"] {
            assert_eq!(unescape(text.as_bytes()), text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn what_was_escaped_is_read_back(
            bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..40), ".{0,20}".prop_map(String::into_bytes)],
        ) {
            let text = escape(&bytes);
            prop_assert!(!text.chars().any(char::is_control));
            prop_assert_eq!(unescape(text.as_bytes()), bytes);
        }
    }
}
