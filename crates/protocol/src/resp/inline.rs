//! Inline requests: a line of words, as people type them into `nc` or `telnet`.

use super::ProtocolError;

/// Splits `line` into words, appends their bytes to `bytes` and their places in there to `ranges`.
///
/// Words are separated by white space. Within double quotes `\n \r \t \b \a`, `\xHH` and a backslash before any
/// other byte are escapes; within single quotes only `\'` is. Quotes may stand anywhere in a word.
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
            [b'\\', escaped @ ..] => escape(escaped)?,
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
            [b'\\', b'\'', tail @ ..] => (b'\'', tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        out.push(byte);
        rest = tail;
    }
}

/// The byte that an escape stands for, and what follows; `rest` starts behind the backslash.
fn escape(rest: &[u8]) -> Result<(u8, &[u8]), ProtocolError> {
    if let [b'x', high, low, tail @ ..] = rest
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        return Ok((high << 4 | low, tail));
    }
    let (letter, tail) = rest.split_first().ok_or(ProtocolError::UnbalancedQuotes)?;
    let byte = match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => *other,
    };
    Ok((byte, tail))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}
