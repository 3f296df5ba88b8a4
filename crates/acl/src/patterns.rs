//! Patterns of keys, channels and databases that rules name.

use std::collections::BTreeSet;

use snugly_glob::matches;

/// Effect of a command on a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Its value, or that it exists, is told.
    pub reads: bool,
    /// It is changed, made or removed.
    pub writes: bool,
}

impl Access {
    /// Reads only.
    pub const READ: Access = Access { reads: true, writes: false };
    /// Writes, and tells nothing of what was there.
    pub const WRITE: Access = Access { reads: false, writes: true };
    /// Reads and writes.
    pub const BOTH: Access = Access { reads: true, writes: true };

    fn includes(self, other: Access) -> bool {
        (self.reads || !other.reads) && (self.writes || !other.writes)
    }

    fn and(self, other: Access) -> Access {
        Access { reads: self.reads || other.reads, writes: self.writes || other.writes }
    }
}

/// Keys: all of them, or those of some patterns, each for some kind of access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) all: bool,
    patterns: Vec<(Vec<u8>, Access)>,
}

impl Keys {
    pub(crate) fn everything() -> Keys {
        Keys { all: true, patterns: Vec::new() }
    }

    /// Allows a pattern of keys some access beside what it allows already.
    pub(crate) fn add(&mut self, pattern: &[u8], access: Access) {
        match self.patterns.iter_mut().find(|(known, _)| known == pattern) {
            Some((_, allowed)) => *allowed = allowed.and(access),
            None => self.patterns.push((pattern.to_vec(), access)),
        }
    }

    /// Returns whether any key may be read.
    pub(crate) fn may_all_be_read(&self) -> bool {
        self.all || self.patterns.iter().any(|(pattern, access)| pattern == b"*" && access.reads)
    }

    pub(crate) fn allow(&self, key: &[u8], access: Access) -> bool {
        let allows =
            |(pattern, allowed): &(Vec<u8>, Access)| allowed.includes(access) && matches(pattern, key, false);
        self.all || self.patterns.iter().any(allows)
    }

    /// The rules that make these.
    pub(crate) fn rules(&self) -> Vec<Vec<u8>> {
        if self.all {
            return vec![b"~*".to_vec()];
        }
        let rule = |(pattern, access): &(Vec<u8>, Access)| {
            let sign: &[u8] = match *access {
                Access::READ => b"%R~",
                Access::WRITE => b"%W~",
                _ => b"~",
            };
            [sign, pattern].concat()
        };
        self.patterns.iter().map(rule).collect()
    }
}

/// A channel, or the channels, that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel<'a> {
    /// One channel.
    Named(&'a [u8]),
    /// All channels that match a pattern.
    Matching(&'a [u8]),
}

impl<'a> Channel<'a> {
    /// The name, or the pattern.
    pub fn text(self) -> &'a [u8] {
        match self {
            Channel::Named(text) | Channel::Matching(text) => text,
        }
    }
}

/// Channels: all of them, or those of some patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Channels {
    pub(crate) all: bool,
    patterns: Vec<Vec<u8>>,
}

impl Channels {
    pub(crate) fn everything() -> Channels {
        Channels { all: true, patterns: Vec::new() }
    }

    pub(crate) fn add(&mut self, pattern: &[u8]) {
        if !self.patterns.iter().any(|known| known == pattern) {
            self.patterns.push(pattern.to_vec());
        }
    }

    /// Returns whether a channel is allowed, or a pattern: that must be one of the rules' own, since others may match more.
    pub(crate) fn allow(&self, channel: Channel<'_>) -> bool {
        let allows = |allowed: &Vec<u8>| match channel {
            Channel::Named(name) => matches(allowed, name, false),
            Channel::Matching(pattern) => allowed == pattern,
        };
        self.all || self.patterns.iter().any(allows)
    }

    /// The rules of the patterns.
    pub(crate) fn rules(&self) -> Vec<Vec<u8>> {
        if self.all {
            return vec![b"&*".to_vec()];
        }
        self.patterns.iter().map(|pattern| [b"&", &pattern[..]].concat()).collect()
    }
}

/// Databases: all of them, or some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Databases {
    All,
    Some(BTreeSet<u32>),
}

impl Databases {
    pub(crate) fn allow(&self, database: usize) -> bool {
        match self {
            Databases::All => true,
            Databases::Some(some) => u32::try_from(database).is_ok_and(|database| some.contains(&database)),
        }
    }

    pub(crate) fn are_none(&self) -> bool {
        matches!(self, Databases::Some(some) if some.is_empty())
    }

    /// The rule that makes these.
    pub(crate) fn rule(&self) -> String {
        match self {
            Databases::All => "alldbs".to_owned(),
            Databases::Some(_) if self.are_none() => "resetdbs".to_owned(),
            Databases::Some(some) => {
                let some: Vec<_> = some.iter().map(u32::to_string).collect();
                format!("db={}", some.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_allowed_by_pattern_and_patterns_by_their_text() {
        let mut channels = Channels::default();
        channels.add(b"news:*");
        let named = |name: &str| channels.allow(Channel::Named(name.as_bytes()));
        assert_eq!(["news:1", "news:*", "news", ""].map(named), [true, true, false, false]);
        let matching = |pattern: &str| channels.allow(Channel::Matching(pattern.as_bytes()));
        assert_eq!(["news:*", "news:1", "news:**", "*"].map(matching), [true, false, false, false]);
        assert!(Channels::everything().allow(Channel::Matching(b"*")));
    }

    #[test]
    fn keys_are_allowed_by_pattern_and_access() {
        let mut keys = Keys::default();
        keys.add(b"a:*", Access::READ);
        keys.add(b"b:*", Access::WRITE);
        keys.add(b"c:*", Access::READ);
        keys.add(b"c:*", Access::WRITE);
        let allowed = |key: &str| {
            [Access::default(), Access::READ, Access::WRITE, Access::BOTH]
                .map(|access| keys.allow(key.as_bytes(), access))
        };
        assert_eq!(allowed("a:1"), [true, true, false, false]);
        assert_eq!(allowed("b:1"), [true, false, true, false]);
        assert_eq!(allowed("c:1"), [true; 4]);
        assert_eq!(allowed("d:1"), [false; 4]);
        let rules: Vec<_> = ["%R~a:*", "%W~b:*", "~c:*"].map(|rule| rule.as_bytes().to_vec()).into();
        assert_eq!(keys.rules(), rules);
    }
}
