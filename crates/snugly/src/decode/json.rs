//! JSON laid out for reading.

use serde::de::IgnoredAny;

/// Each level of nesting indents every line: some megabytes of brackets would become gigabytes.
const MAX_BYTES: usize = 256 << 20;

/// The same JSON over several lines, every number, string and duplicate key as it was; `None` if it is not one JSON
/// document, is nested deeper than 127 levels, or would take more than 256 MiB.
pub(super) fn pretty(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0;
    let mut rest = text.trim_ascii_start();
    while let Some(first) = rest.chars().next() {
        if out.len() > MAX_BYTES {
            return None;
        }
        let taken = if first == '"' { string_length(rest) } else { first.len_utf8() };
        let (token, tail) = rest.split_at(taken);
        rest = tail.trim_ascii_start();
        match first {
            '{' | '[' if rest.starts_with(['}', ']']) => {
                out.push(first);
                out.push_str(&rest[..1]);
                rest = rest[1..].trim_ascii_start();
            }
            '{' | '[' => {
                depth += 1;
                out.push(first);
                break_line(depth, &mut out);
            }
            '}' | ']' => {
                depth -= 1;
                break_line(depth, &mut out);
                out.push(first);
            }
            ',' => {
                out.push(first);
                break_line(depth, &mut out);
            }
            ':' => out.push_str(": "),
            _ => out.push_str(token),
        }
    }
    Some(out)
}

/// The length of the string literal at the start, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

fn break_line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_laid_out_with_every_token_as_it_was() {
        let compact =
            br#" {"a":[1,2.50,-1e400,12345678901234567890123],"b":{},"c":[ ],"d\"{,":"x, {y} \\","a":null} "#;
        let expected = r#"{
  "a": [
    1,
    2.50,
    -1e400,
    12345678901234567890123
  ],
  "b": {},
  "c": [],
  "d\"{,": "x, {y} \\",
  "a": null
}"#;
        assert_eq!(pretty(compact).as_deref(), Some(expected));
        assert_eq!(pretty(expected.as_bytes()).as_deref(), Some(expected));
        assert_eq!(pretty(b"\"word\"").as_deref(), Some("\"word\""));
    }

    #[test]
    fn what_would_become_too_long_is_left_alone() {
        let nested = |elements: usize| {
            let zeros = vec!["0"; elements].join(",");
            format!("{}{zeros}{}", "[".repeat(120), "]".repeat(120))
        };
        assert!(pretty(nested(1_000).as_bytes()).is_some());
        assert_eq!(pretty(nested(2_000_000).as_bytes()), None);
    }

    #[test]
    fn what_is_not_json_is_left_alone() {
        for other in [&b""[..], b"{", b"{} {}", b"name,town", b"\xff", b"{'a': 1}"] {
            assert_eq!(pretty(other), None, "{}", other.escape_ascii());
        }
    }
}
