//! The patterns of KEYS and SCAN, as Valkey reads them (`stringmatchlen`): `*`, `?`, `[a-c]`, `[^a]`, `\x`.
//!
//! It knows bytes, and nothing of keys and commands: servers and clients match with the same rules.

/// Returns whether `text` matches `pattern`.
///
/// Takes time proportional to the product of the two lengths at worst: on a mismatch only the last `*` is
/// reconsidered (whatever an earlier one could match, the last one can as well).
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            last_star = Some((p + 1, t));
            p += 1;
        } else if let Some(next) = match_one(pattern, p, text[t], ignore_case) {
            p = next;
            t += 1;
        } else if let Some((after_star, matched)) = last_star {
            last_star = Some((after_star, matched + 1));
            (p, t) = (after_star, matched + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Matches one byte against the element of the pattern at `p`; returns the position of the next element.
fn match_one(pattern: &[u8], p: usize, byte: u8, ignore_case: bool) -> Option<usize> {
    let fold = |byte: u8| if ignore_case { byte.to_ascii_lowercase() } else { byte };
    let (matched, next) = match *pattern.get(p)? {
        b'?' => (true, p + 1),
        b'[' => {
            let (matched, len) = match_class(&pattern[p + 1..], byte, fold);
            (matched, p + 1 + len)
        }
        b'\\' if p + 1 < pattern.len() => (fold(pattern[p + 1]) == fold(byte), p + 2),
        literal => (fold(literal) == fold(byte), p + 1),
    };
    matched.then_some(next)
}

/// Matches a byte against a class, given from behind its `[`; returns its length too. A class that is not
/// closed ends with the pattern.
fn match_class(class: &[u8], byte: u8, fold: impl Fn(u8) -> u8) -> (bool, usize) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut matched = false;
    while at < class.len() && class[at] != b']' {
        if class[at] == b'\\' && at + 1 < class.len() {
            matched |= class[at + 1] == byte;
            at += 2;
        } else if at + 2 < class.len() && class[at + 1] == b'-' {
            let (low, high) = (fold(class[at].min(class[at + 2])), fold(class[at].max(class[at + 2])));
            matched |= (low..=high).contains(&fold(byte));
            at += 3;
        } else {
            matched |= fold(class[at]) == fold(byte);
            at += 1;
        }
    }
    (matched != negated, (at + 1).min(class.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_valkey() {
        let cases: &[(&str, &str, bool)] = &[
            ("*", "", true),
            ("*", "anything", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a[bc]d", "acd", true),
            ("a[^bc]d", "acd", false),
            ("a[b-d]e", "ace", true),
            ("a[d-b]e", "ace", true),
            ("a\\*c", "a*c", true),
            ("a\\*c", "abc", false),
            ("a[\\]]c", "a]c", true),
            ("user:*:name", "user:1:name", true),
            ("*a*b*c*", "xxaxxbxxcxx", true),
            ("", "", true),
            ("", "a", false),
            ("[a", "a", true),
            ("a\\", "a\\", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), *expected, "{pattern} {text}");
        }
        assert!(matches(b"MAX*", b"maxmemory", true));
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let pattern = b"a*".repeat(50);
        assert!(!matches(&[&pattern[..], b"b"].concat(), &b"a".repeat(10_000), false));
    }
}
