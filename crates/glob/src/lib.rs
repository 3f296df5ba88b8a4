//! The patterns of KEYS and SCAN, as Valkey reads them (`stringmatchlen`): `*`, `?`, `[a-c]`, `[^a]`, `\x`.
//!
//! It knows bytes, and nothing of keys and commands: servers and clients match with the same rules.

/// A pattern that is parsed once, to be matched with many texts.
#[derive(Clone, Debug)]
pub struct Pattern {
    elements: Vec<Element>,
    matches_empty: bool,
}

#[derive(Clone, Debug)]
enum Element {
    /// Any number of bytes.
    Star,
    /// One byte out of these.
    One(Box<Bytes>),
    /// This byte.
    Literal(u8),
    Any,
}

/// A set of bytes.
#[derive(Clone, Debug, Default)]
struct Bytes([u64; 4]);

impl Bytes {
    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & 1 << (byte & 63) != 0
    }

    /// Inserts every byte that folds to one of these.
    fn insert_folded(&mut self, folded: std::ops::RangeInclusive<u8>, fold: impl Fn(u8) -> u8) {
        (0..=u8::MAX).filter(|byte| folded.contains(&fold(*byte))).for_each(|byte| self.insert(byte));
    }
}

/// Returns whether `text` matches `pattern`; for many texts, parse it once as a [`Pattern`].
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    Pattern::new(pattern, ignore_case).matches(text)
}

impl Pattern {
    /// Parses a pattern; every sequence of bytes is one. Time and memory are proportional to its length.
    pub fn new(pattern: &[u8], ignore_case: bool) -> Pattern {
        let fold = |byte: u8| if ignore_case { byte.to_ascii_lowercase() } else { byte };
        let one = |byte: u8| {
            if !ignore_case || !byte.is_ascii_alphabetic() {
                return Element::Literal(byte);
            }
            let mut bytes = Bytes::default();
            bytes.insert_folded(fold(byte)..=fold(byte), fold);
            Element::One(Box::new(bytes))
        };
        let mut elements = Vec::new();
        let mut rest = pattern;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match byte {
                b'*' if matches!(elements.last(), Some(Element::Star)) => {}
                b'*' => elements.push(Element::Star),
                b'?' => elements.push(Element::Any),
                b'[' => {
                    let (bytes, len) = class(rest, fold);
                    rest = &rest[len..];
                    elements.push(Element::One(Box::new(bytes)));
                }
                b'\\' if !rest.is_empty() => {
                    elements.push(one(rest[0]));
                    rest = &rest[1..];
                }
                literal => elements.push(one(literal)),
            }
        }
        // Only the pattern that stands for all keys matches the empty one, as in Valkey: `**` does not.
        Pattern { elements, matches_empty: matches!(pattern, b"" | b"*") }
    }

    /// Returns whether `text` matches.
    ///
    /// Takes time proportional to the product of the two lengths at worst: on a mismatch only the last `*` is
    /// reconsidered (whatever an earlier one could match, the last one can as well).
    pub fn matches(&self, text: &[u8]) -> bool {
        if text.is_empty() {
            return self.matches_empty;
        }
        let (mut p, mut t) = (0, 0);
        let mut last_star: Option<(usize, usize)> = None;
        while t < text.len() {
            let is_one = match self.elements.get(p) {
                Some(Element::Star) => {
                    last_star = Some((p + 1, t));
                    p += 1;
                    continue;
                }
                Some(Element::One(bytes)) => bytes.has(text[t]),
                Some(Element::Literal(byte)) => *byte == text[t],
                Some(Element::Any) => true,
                None => false,
            };
            if is_one {
                (p, t) = (p + 1, t + 1);
            } else if let Some((after_star, matched)) = last_star {
                last_star = Some((after_star, matched + 1));
                (p, t) = (after_star, matched + 1);
            } else {
                return false;
            }
        }
        self.elements[p..].iter().all(|element| matches!(element, Element::Star))
    }
}

/// The bytes of a class, given from behind its `[`, and its length. A class that is not closed ends with the pattern.
fn class(class: &[u8], fold: impl Fn(u8) -> u8 + Copy) -> (Bytes, usize) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut bytes = Bytes::default();
    while at < class.len() && class[at] != b']' {
        if class[at] == b'\\' && at + 1 < class.len() {
            bytes.insert(class[at + 1]);
            at += 2;
        } else if at + 2 < class.len() && class[at + 1] == b'-' {
            let (low, high) = (fold(class[at].min(class[at + 2])), fold(class[at].max(class[at + 2])));
            bytes.insert_folded(low..=high, fold);
            at += 3;
        } else {
            bytes.insert_folded(fold(class[at])..=fold(class[at]), fold);
            at += 1;
        }
    }
    if negated {
        bytes.0.iter_mut().for_each(|word| *word = !*word);
    }
    (bytes, (at + 1).min(class.len()))
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
        assert!(matches(b"[^A-C]x", b"dX", true) && !matches(b"[^A-C]x", b"bX", true));
        assert!(matches(b"[[]\\?[]]", b"[?", false) == matches(b"[[]\\?[]", b"[?", false));
        assert!(!matches(b"**", b"", false) && matches(b"**", b"a", false) && matches(b"a**", b"a", false));
    }

    /// Parsed at each byte of the text, a class of this length took seconds.
    #[test]
    fn a_class_is_parsed_once_however_long_it_is() {
        let pattern = [b"*[", &b"abc".repeat(15_000)[..], b"]z"].concat();
        assert!(!matches(&pattern, &b"a".repeat(64 << 10), false));
        assert!(matches(&pattern, b"xxcz", false));
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let pattern = b"a*".repeat(50);
        assert!(!matches(&[&pattern[..], b"b"].concat(), &b"a".repeat(10_000), false));
    }
}
