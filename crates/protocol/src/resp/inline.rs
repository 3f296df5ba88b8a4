//! Inline requests: a line of words, as people type them into `nc` or `telnet`.

use super::ProtocolError;

/// Splits `line` into words, appends their bytes to `bytes` and their places in there to `ranges`.
///
/// Words are separated by white space. Within double quotes `\n \r \t \b \a`, `\xHH` and a backslash before any
/// other byte are escapes; within single quotes only `\'` is. Quotes may stand anywhere in a word. As in Valkey 9.1
/// nothing is an escape at the very end of the line, so that `"C:\"` is closed there.
///
/// # Errors
/// [`ProtocolError::UnbalancedQuotes`] if a quote stays open.
pub(super) fn split(
    line: &[u8],
    bytes: &mut Vec<u8>,
    ranges: &mut Vec<(usize, usize)>,
) -> Result<(), ProtocolError> {
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Ok(());
        }
        let start = bytes.len();
        rest = word(rest, bytes)?;
        ranges.push((start, bytes.len()));
    }
}

/// Appends the word at the start of `rest`, returns what follows it.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        match rest {
            // A vertical tab or form feed separates words only next to another blank: Valkey's rule.
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Ok(rest),
            [b'"', quoted @ ..] => rest = double_quoted(quoted, out)?,
            [b'\'', quoted @ ..] => rest = single_quoted(quoted, out)?,
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        let (byte, tail) = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', tail @ ..] => return Ok(tail),
            [b'\\', escaped, tail @ ..] if !tail.is_empty() => escape(*escaped, tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        out.push(byte);
        rest = tail;
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        let (byte, tail) = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', tail @ ..] => return Ok(tail),
            [b'\\', b'\'', tail @ ..] if !tail.is_empty() => (b'\'', tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        out.push(byte);
        rest = tail;
    }
}

/// The byte that a backslash and `letter` stand for, with two hexadecimal digits of `tail` after an `x`; and the rest.
fn escape(letter: u8, tail: &[u8]) -> (u8, &[u8]) {
    let byte = match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        b'x' => match tail {
            [high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                return (hex(*high) << 4 | hex(*low), tail);
            }
            _ => b'x',
        },
        other => other,
    };
    (byte, tail)
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        split(line, &mut bytes, &mut ranges)?;
        Ok(ranges.into_iter().map(|(start, end)| bytes[start..end].to_vec()).collect())
    }

    #[test]
    fn words_quotes_and_escapes_are_split_as_valkey_splits_them() {
        let cases: &[(&[u8], &[&[u8]])] = &[
            (b"", &[]),
            (b" \t ", &[]),
            (b" a  b\tc ", &[b"a", b"b", b"c"]),
            (b"a\x0bb \x0b\x0cc", &[b"a\x0bb", b"c"]),
            (b"a\rb", &[b"a", b"b"]),
            (b"'a b'c \"\"", &[b"a bc", b""]),
            (b"a\"b c'd\"e", &[b"ab c'de"]),
            (b"a\\x41", &[b"a\\x41"]),
            (br#""\x41\n\r\t\b\a\q\"\\""#, &[b"A\n\r\t\x08\x07q\"\\"]),
            (br#""\x4""#, &[b"x4"]),
            (br#""\xzz""#, &[b"xzz"]),
            (br"'\x41\n\'\\'", &[br"\x41\n'\\"]),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line).unwrap(), *expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn an_open_quote_is_an_error() {
        for line in [&b"'"[..], b"\"", b"a 'b", b"\"a\\\" ", b"'a\\' ", b"\"\\", b"'\\"] {
            assert_eq!(words(line), Err(ProtocolError::UnbalancedQuotes), "{}", line.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn words_written_with_escapes_are_read_back(
            expected in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..5),
        ) {
            let mut line = Vec::new();
            for word in &expected {
                line.push(b'"');
                for byte in word {
                    line.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
                }
                line.extend_from_slice(b"\" ");
            }
            prop_assert_eq!(words(&line).unwrap(), expected);
        }
    }
}
