//! Patterns of keys, such as `user:*`, and how they are learned from keys.
//!
//! A key falls into segments at the bytes `:`, `/`, `|` and `#`. A segment of letters is a word, one that has digits
//! varies (`user17` is `user*`, `3f9a` is `*`), and so does a word where too many others stand in its place: names and
//! the like. All patterns together are a tree of bounded size, whatever the keys are.

/// Separators of segments.
const SEPARATORS: [u8; 4] = *b":/|#";
/// Segments that are told apart; what follows is one `*`.
const MAX_SEGMENTS: usize = 6;
/// Longer words are taken for something that varies.
const MAX_WORD: usize = 32;
/// Number of words that may stand in one place.
const MAX_WORDS: usize = 64;
/// Words that were seen less often vary, once there are too many in one place.
const FAMILIAR: u32 = 4;
/// Tidyings for which a place that had too many words is closed to others: the kinds of keys may change.
const CLOSED_FOR: u8 = 16;
/// Keys after which the tree forgets unused words.
const TIDY_EVERY: u32 = 1 << 16;
/// Most nodes of the tree.
const MAX_NODES: usize = 1024;

/// The common form of all keys of a kind: words, and `*` for parts that vary. A `*` at the end stands for all that
/// follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    start: Start,
    text: Box<[u8]>,
    segments: Box<[Part]>,
}

/// The common beginning of all keys of a pattern, as far as it fits. Every write asks several patterns: most say no by
/// this, and the others are mostly no more than this, without another look at memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    bytes: [u8; MAX_START],
    len: u8,
    /// Whether every key that begins so is one of the pattern.
    is_all: bool,
}

const MAX_START: usize = 22;

impl Start {
    fn of(text: &[u8], segments: &[Part]) -> Start {
        let same = segments.iter().take_while(|part| !part.varies).count();
        let (constant, is_end) = match segments.get(same) {
            Some(part) => (&part.word[..], part.separator.is_none()),
            None => (&[][..], false),
        };
        let before: usize =
            segments[..same].iter().map(|part| part.word.len() + usize::from(part.separator.is_some())).sum();
        let whole = &text[..before + constant.len()];
        let kept = &whole[..whole.len().min(MAX_START)];
        let mut bytes = [0; MAX_START];
        bytes[..kept.len()].copy_from_slice(kept);
        Start { bytes, len: kept.len() as u8, is_all: is_end && kept.len() == whole.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// The whole segment, or its start if it varies.
    word: Box<[u8]>,
    varies: bool,
    separator: Option<u8>,
}

impl Pattern {
    /// The pattern that is written so, as the glob of KEYS: `*` only where a segment ends.
    pub fn parse(text: &[u8]) -> Pattern {
        let segments: Box<[Part]> = split(text)
            .map(|(segment, separator)| {
                let (word, varies) = segment.strip_suffix(b"*").map_or((segment, false), |word| (word, true));
                Part { word: word.into(), varies, separator }
            })
            .collect();
        Pattern { start: Start::of(text, &segments), text: text.into(), segments }
    }

    /// The written form.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The glob of KEYS that matches at least its keys, as text: what is special in globs is escaped, and each byte that
    /// is no UTF-8 is `?`, which stands for any.
    pub fn glob(&self) -> String {
        let mut glob = String::with_capacity(self.text.len());
        for chunk in self.text.utf8_chunks() {
            for letter in chunk.valid().chars() {
                if matches!(letter, '?' | '[' | '\\') {
                    glob.push('\\');
                }
                glob.push(letter);
            }
            glob.extend(chunk.invalid().iter().map(|_| '?'));
        }
        glob
    }

    /// The precision about a key: of two patterns that match, the more precise one counts.
    pub fn precision(&self) -> usize {
        self.segments.iter().map(|part| part.word.len() + usize::from(part.separator.is_some())).sum()
    }

    /// Returns whether a key is of this pattern.
    pub fn matches(&self, key: &[u8]) -> bool {
        key.starts_with(self.start.bytes()) && (self.start.is_all || self.has_segments_of(key))
    }

    fn has_segments_of(&self, key: &[u8]) -> bool {
        let mut rest = key;
        for part in &self.segments {
            if part.varies && part.separator.is_none() {
                return rest.starts_with(&part.word);
            }
            let end = rest.iter().position(|byte| SEPARATORS.contains(byte));
            let segment = &rest[..end.unwrap_or(rest.len())];
            let is_same = if part.varies { segment.starts_with(&part.word) } else { segment == &*part.word };
            if !is_same || end.map(|end| rest[end]) != part.separator {
                return false;
            }
            rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
        }
        rest.is_empty()
    }
}

/// The segments of a key, each with the separator behind it.
fn split(key: &[u8]) -> impl Iterator<Item = (&[u8], Option<u8>)> {
    key.split_inclusive(|byte| SEPARATORS.contains(byte)).map(|segment| match segment.split_last() {
        Some((last, start)) if SEPARATORS.contains(last) => (start, Some(*last)),
        _ => (segment, None),
    })
}

/// A segment as patterns see it: a word, or how something begins that varies.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Segment<'k> {
    word: &'k [u8],
    varies: bool,
    separator: Option<u8>,
}

impl<'k> Segment<'k> {
    fn of((segment, separator): (&'k [u8], Option<u8>)) -> Segment<'k> {
        let digits = segment.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let start = &segment[..segment.len() - digits];
        let is_word =
            start.len() <= MAX_WORD && !start.iter().any(|byte| byte.is_ascii_digit() || *byte == b'*');
        let word = if is_word { start } else { b"" };
        Segment { word, varies: digits > 0 || !is_word, separator }
    }

    /// A place where any word may stand.
    fn anything(self) -> Segment<'k> {
        Segment { word: b"", varies: true, ..self }
    }
}

struct Node {
    part: Part,
    parent: u16,
    children: Vec<u16>,
    /// Keys that came by lately.
    seen: u32,
    /// Number of further tidyings for which words that are not among the children vary.
    closed: u8,
}

/// The patterns that were learned so far.
pub struct Patterns {
    /// The first is the root.
    nodes: Vec<Node>,
    /// Keys until the next tidying.
    untidied: u32,
}

impl Default for Patterns {
    fn default() -> Patterns {
        Patterns::new()
    }
}

impl Patterns {
    /// None yet.
    pub fn new() -> Patterns {
        let part = Part { word: Box::default(), varies: false, separator: None };
        let root = Node { part, parent: 0, children: Vec::new(), seen: 0, closed: 0 };
        Patterns { nodes: vec![root], untidied: TIDY_EVERY }
    }

    /// Learns from a key; writes the pattern that it has by now.
    pub fn learn(&mut self, key: &[u8], text: &mut Vec<u8>) {
        text.clear();
        self.untidied -= 1;
        if self.untidied == 0 {
            self.tidy();
        }
        let mut node = 0;
        for (depth, segment) in split(key).map(Segment::of).enumerate() {
            self.nodes[node].seen = self.nodes[node].seen.saturating_add(1);
            let next = match depth < MAX_SEGMENTS {
                true => self.child(node, segment).or_else(|| self.child(node, segment.anything())),
                false => None,
            };
            let Some(next) = next else {
                text.push(b'*');
                return;
            };
            node = next;
            let part = &self.nodes[node].part;
            text.extend_from_slice(&part.word);
            text.extend(part.varies.then_some(b'*'));
            text.extend(part.separator);
        }
        self.nodes[node].seen = self.nodes[node].seen.saturating_add(1);
    }

    /// The child for a segment, made if there may be one more.
    fn child(&mut self, node: usize, segment: Segment<'_>) -> Option<usize> {
        let is_same = |part: &Part| {
            part.varies == segment.varies
                && part.separator == segment.separator
                && *part.word == *segment.word
        };
        let children = &self.nodes[node].children;
        let found =
            children.iter().map(|&child| usize::from(child)).find(|&child| is_same(&self.nodes[child].part));
        if found.is_some() {
            return found;
        }
        let is_full = !segment.word.is_empty() && children.len() >= MAX_WORDS;
        if is_full && self.nodes[node].closed == 0 {
            self.nodes[node].closed = CLOSED_FOR;
            self.untidied = 1;
        }
        if self.nodes.len() >= MAX_NODES || self.nodes[node].closed > 0 && !segment.word.is_empty() {
            return None;
        }
        let part = Part { word: segment.word.into(), varies: segment.varies, separator: segment.separator };
        let number = self.nodes.len();
        self.nodes.push(Node { part, parent: node as u16, children: Vec::new(), seen: 0, closed: 0 });
        self.nodes[node].children.push(number as u16);
        Some(number)
    }

    /// Drops words that were seen too rarely for a pattern of their own, in places that have too many, and
    /// words unused since the last call. Then halves all counts.
    fn tidy(&mut self) {
        let mut kept = Patterns::new();
        kept.nodes[0] = Node { children: Vec::new(), ..self.half(0) };
        // A parent is always in front of its children.
        let mut places = vec![Some(0); self.nodes.len()];
        for number in 1..self.nodes.len() {
            let node = &self.nodes[number];
            let parent = usize::from(node.parent);
            let is_rare = self.nodes[parent].closed > 0 && !node.part.word.is_empty() && node.seen < FAMILIAR;
            places[number] = match places[parent] {
                Some(place) if node.seen > 0 && !is_rare => {
                    let here = kept.nodes.len();
                    kept.nodes.push(Node { parent: place as u16, ..self.half(number) });
                    kept.nodes[place].children.push(here as u16);
                    Some(here)
                }
                _ => None,
            };
        }
        *self = kept;
    }

    fn half(&self, number: usize) -> Node {
        let Node { part, parent, seen, closed, .. } = &self.nodes[number];
        Node {
            part: part.clone(),
            parent: *parent,
            children: Vec::new(),
            seen: seen / 2,
            closed: closed.saturating_sub(1),
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The pattern of the last of these keys once all have been learned.
    fn learned(keys: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
        let (mut patterns, mut text) = (Patterns::new(), Vec::new());
        keys.into_iter().for_each(|key| patterns.learn(key.as_ref(), &mut text));
        String::from_utf8(text).expect("the keys are text")
    }

    #[test]
    fn what_has_digits_varies() {
        for (key, pattern) in [
            ("user:17", "user:*"),
            ("user17", "user*"),
            ("user:17:profile", "user:*:profile"),
            ("v2/page/3f9a", "v*/page/*"),
            ("550e8400-e29b-41d4-a716-446655440000", "*"),
            ("session:{user:7}:x", "session:{user:*:x"),
            ("config", "config"),
            ("", ""),
            ("a:b:c:d:e:f:g:h", "a:b:c:d:e:f:*"),
        ] {
            assert_eq!(learned([key]), pattern, "{key}");
        }
    }

    #[test]
    fn names_vary_once_there_are_many_and_frequent_words_stay() {
        let name = |number: usize| {
            format!(
                "user:{}",
                "abcdefghij"
                    .chars()
                    .nth(number % 10)
                    .map_or(String::new(), |c| { std::iter::repeat_n(c, 1 + number / 10).collect() })
            )
        };
        let mut keys: Vec<String> = (0..20).map(|_| "user:admin".to_owned()).collect();
        keys.extend((0..100).map(name));
        assert_eq!(learned(&keys), "user:*");
        keys.push("user:admin".to_owned());
        assert_eq!(learned(&keys), "user:admin");
    }

    #[test]
    fn the_more_precise_pattern_says_more() {
        let precision = |text: &str| Pattern::parse(text.as_bytes()).precision();
        assert!(precision("user:*") > precision("*"));
        assert!(precision("user:*:profile") > precision("user:*"));
    }

    #[test]
    fn what_is_special_in_globs_is_escaped_and_what_is_no_text_is_anything() {
        let glob = |text: &[u8]| Pattern::parse(text).glob();
        assert_eq!(glob(b"user:*"), "user:*");
        assert_eq!(glob(b"a?[b]\\:*"), r"a\?\[b]\\:*");
        assert_eq!(glob(b"\xc3\xbc\xff\xfe:*"), "\u{fc}??:*");
    }

    #[test]
    fn a_star_stands_for_one_segment_or_at_the_end_for_all_that_follows() {
        let matches = |pattern: &str, key: &str| Pattern::parse(pattern.as_bytes()).matches(key.as_bytes());
        for key in ["user:1", "user:", "user:1:profile"] {
            assert!(matches("user:*", key), "{key}");
        }
        assert!(
            matches("user:*:profile", "user:1:profile") && matches("user*", "user17") && matches("*", "")
        );
        for key in ["user:1", "user:1:2:profile", "user:1/profile", "user:1:profiles", "x"] {
            assert!(!matches("user:*:profile", key), "{key}");
        }
    }

    proptest! {
        #[test]
        fn a_key_matches_the_pattern_that_was_learned_from_it(
            keys in prop::collection::vec("[a-c]{0,3}[0-9]{0,2}([:/|#*][a-c0-9]{0,3}){0,8}", 1..300),
        ) {
            let (mut patterns, mut text) = (Patterns::new(), Vec::new());
            for key in keys {
                patterns.learn(key.as_bytes(), &mut text);
                prop_assert!(Pattern::parse(&text).matches(key.as_bytes()), "{} {}", key, text.escape_ascii());
            }
        }

        #[test]
        fn the_start_of_a_pattern_decides_nothing_that_its_segments_do_not(
            text in "[a-b]{0,9}[*]?([:/][a-b]{0,9}[*]?){0,4}", key in "[a-b]{0,9}([:/][a-b]{0,9}){0,4}",
        ) {
            let pattern = Pattern::parse(text.as_bytes());
            prop_assert_eq!(pattern.matches(key.as_bytes()), pattern.has_segments_of(key.as_bytes()));
            let its_key = text.replace('*', "b");
            prop_assert!(pattern.matches(its_key.as_bytes()));
        }

        #[test]
        fn the_tree_is_bounded_whatever_the_keys(keys in prop::collection::vec("[a-zA-Z]{1,3}(:[a-z]{1,2}){0,3}", 1..20)) {
            let (mut patterns, mut text) = (Patterns::new(), Vec::new());
            for number in 0..200u32 {
                for key in &keys {
                    let letters: String =
                        number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
                    patterns.learn(format!("{letters}{key}:{letters}").as_bytes(), &mut text);
                }
            }
            prop_assert!(patterns.len() <= MAX_NODES);
        }
    }
}
