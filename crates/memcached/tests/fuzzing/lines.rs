//! What the bodies of text and meta share: replies are lines.

/// Checks that a reply is a line, or one and a value, or these and `END`; or nothing.
pub fn check(reply: &[u8]) {
    let lines: Vec<_> = reply.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(lines.len() <= 3, "{}", reply.escape_ascii());
    assert!(lines.iter().all(|line| line.ends_with(b"\r\n")), "{}", reply.escape_ascii());
}
