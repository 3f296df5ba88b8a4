//! Groups keys by pattern: keys of one pattern are of one kind.

use std::collections::HashMap;

use snugly_learning::Patterns;

/// The pattern of each of these keys, and of one more if it is asked for, in their order.
pub(crate) fn patterns_of<'a>(keys: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<Vec<u8>> {
    let (mut patterns, mut text) = (Patterns::new(), Vec::new());
    // The varying parts are known only once all keys have been seen.
    keys.clone().for_each(|key| patterns.learn(key, &mut text));
    keys.map(|key| {
        patterns.learn(key, &mut text);
        text.clone()
    })
    .collect()
}

/// The places of keys, by their pattern.
pub(crate) fn grouped(patterns: &[Vec<u8>]) -> HashMap<&[u8], Vec<usize>> {
    let mut groups: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (place, pattern) in patterns.iter().enumerate() {
        groups.entry(pattern).or_default().push(place);
    }
    groups
}

/// A pattern as the glob of KEYS, in which more bytes have a meaning.
pub(crate) fn glob(pattern: &[u8]) -> Vec<u8> {
    let mut glob = Vec::with_capacity(pattern.len());
    for &byte in pattern {
        if matches!(byte, b'?' | b'[' | b']' | b'\\') {
            glob.push(b'\\');
        }
        glob.push(byte);
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_pattern_are_of_one_kind() {
        let keys: Vec<String> = (0..200).map(|number| format!("user:{number}")).collect();
        let sessions = (0..200).map(|number: u8| {
            format!(
                "session:{}",
                char::from(b'a' + number % 26).to_string().repeat(usize::from(number) / 26 + 1)
            )
        });
        let keys: Vec<String> = keys.into_iter().chain(sessions).collect();
        let patterns = patterns_of(keys.iter().map(String::as_bytes));
        let groups = grouped(&patterns);
        assert_eq!(groups[&b"user:*"[..]].len(), 200);
        assert!(groups[&b"session:*"[..]].len() > 100, "names vary once there are many");
    }

    #[test]
    fn what_has_a_meaning_in_globs_is_escaped() {
        assert_eq!(glob(b"a[1]?:*\\"), b"a\\[1\\]\\?:*\\\\");
        assert!(snugly_glob::matches(&glob(b"a[1]:*"), b"a[1]:7", false));
    }
}
