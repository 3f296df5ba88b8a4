//! Precision of patterns, which orders them by how much they say about a key.

/// Returns the number of bytes of a key that a pattern names: the more, the more precise it is. A set in
/// brackets counts as one byte, `?` and `*` as none.
pub(crate) fn precision(pattern: &str) -> usize {
    let mut bytes = pattern.bytes();
    let mut named = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' | b'?' => continue,
            b'\\' => {
                bytes.next();
            }
            b'[' => skip_set(&mut bytes),
            _ => {}
        }
        named += 1;
    }
    named
}

/// Skips to behind the `]` of a set, or to the end of the pattern.
fn skip_set(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b']' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_names_more_bytes_is_more_precise() {
        let least_first =
            ["*", "?", "?*", "u*", "[a-z]?", "user:*", "user:*:x", "user:[0-9]:x", "user:\\*:xy"];
        for pair in least_first.windows(2) {
            assert!(precision(pair[0]) <= precision(pair[1]), "{pair:?}");
        }
        assert_eq!(precision("a[\\]b]c\\"), 4);
        assert_eq!(precision("a[bc"), 2);
    }
}
