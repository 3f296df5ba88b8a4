//! The document: dictionaries, and the patterns of keys for which they are used.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::pattern::precision;

/// Version of the document that this crate reads and writes.
const VERSION: u64 = 1;
/// Greatest ratio of sizes with a dictionary and with another one at which the former is clearly better.
const CLEARLY_BETTER: f64 = 0.9;

/// Contents of a catalogue. Unknown fields are kept as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Patterns for writers: the first one that matches a key decides.
    #[serde(default)]
    pub active: Vec<Active>,
    /// All dictionaries that values may need, older ones of a pattern included.
    #[serde(default)]
    pub dictionaries: Vec<Entry>,
    /// IDs of dictionaries that must not come back and that their holders drop. The last is the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<u32>,
    /// Unknown fields.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Dictionary for the keys of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Active {
    /// Glob of KEYS that the keys match, on bytes.
    pub pattern: String,
    /// ID of the dictionary.
    pub id: u32,
    /// Unknown fields.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// A listed dictionary. Only the ID counts for readers, and the pattern and `published_at` for writers; the
/// rest is information for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// ID of the dictionary, derived from its content.
    pub id: u32,
    /// Keys that it was trained for, a glob of KEYS.
    pub pattern: String,
    /// Length of the dictionary, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Time of the training, as in RFC 3339.
    #[serde(default)]
    pub trained_at: String,
    /// Time of publication: seconds since 1970, by the server's clock where it was asked (TIME). `None`
    /// counts as long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<u64>,
    /// Number of values that it was trained from.
    #[serde(default)]
    pub samples: u64,
    /// Compressed by uncompressed size of values without the dictionary, if that was measured.
    #[serde(default)]
    pub ratio_before: Option<f64>,
    /// Compressed by uncompressed size of values with the dictionary, if that was measured.
    #[serde(default)]
    pub ratio_after: Option<f64>,
    /// Unknown fields.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Dictionary that a writer uses for the keys of one pattern at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Glob of KEYS that the keys match.
    pub pattern: &'a str,
    /// ID of the dictionary; `None` for no dictionary yet.
    pub id: Option<u32>,
}

impl Catalogue {
    /// Longest document that is read or written, in bytes.
    pub const MAX_BYTES: usize = 1 << 20;
    /// Most patterns of a catalogue: a writer compares each key with them.
    pub const MAX_ACTIVE: usize = 128;
    /// Most dictionaries of a catalogue.
    pub const MAX_DICTIONARIES: usize = 1024;
    /// Most forgotten dictionaries that are remembered; the oldest are dropped.
    pub const MAX_FORGOTTEN: usize = 1024;
    /// Longest pattern, in bytes.
    pub const MAX_PATTERN_BYTES: usize = 256;

    /// Parses a document.
    ///
    /// # Errors
    /// [`CatalogueError`] if the document is not a catalogue, has another version, or exceeds a limit.
    pub fn decode(document: &[u8]) -> Result<Catalogue, CatalogueError> {
        #[derive(Deserialize)]
        struct Head {
            version: u64,
        }
        #[derive(Deserialize)]
        struct Document {
            #[serde(rename = "version")]
            _version: u64,
            #[serde(flatten)]
            catalogue: Catalogue,
        }
        if document.len() > Catalogue::MAX_BYTES {
            return Err(CatalogueError::TooLong { len: document.len() });
        }
        let head: Head = serde_json::from_slice(document).map_err(unreadable)?;
        if head.version != VERSION {
            return Err(CatalogueError::Version { found: head.version });
        }
        let Document { catalogue, .. } = serde_json::from_slice(document).map_err(unreadable)?;
        catalogue.check()?;
        Ok(catalogue)
    }

    /// Serializes the document.
    ///
    /// # Errors
    /// [`CatalogueError`] if it exceeds a limit, so that it could not be read.
    pub fn encode(&self) -> Result<Vec<u8>, CatalogueError> {
        #[derive(Serialize)]
        struct Document<'a> {
            version: u64,
            #[serde(flatten)]
            catalogue: &'a Catalogue,
        }
        self.check()?;
        let document =
            serde_json::to_vec(&Document { version: VERSION, catalogue: self }).map_err(unreadable)?;
        if document.len() > Catalogue::MAX_BYTES {
            return Err(CatalogueError::TooLong { len: document.len() });
        }
        Ok(document)
    }

    /// Returns the ID of the dictionary for this key, once it may be used: that of the first pattern that
    /// matches.
    pub fn active_for(&self, key: &[u8]) -> Option<u32> {
        let active = self.active.iter().find(|row| snugly_glob::matches(row.pattern.as_bytes(), key, false));
        active.map(|row| row.id)
    }

    /// Returns a writer's choice at the moment `now` for each active pattern, in their order. A dictionary is
    /// used from [`usable_from`](Entry::usable_from) on; until then the last usable one of its pattern is, if
    /// there is one.
    ///
    /// `now`, and the times from `first_seen` for the ID of a dictionary, are counted from 1970.
    pub fn choices(
        &self,
        now: Duration,
        refresh: Duration,
        first_seen: impl Fn(u32) -> Duration,
    ) -> Vec<Choice<'_>> {
        let is_usable = |entry: &&Entry| entry.usable_from(first_seen(entry.id), refresh) <= now;
        let last_usable = |pattern: &str| {
            let of_pattern = self.dictionaries.iter().filter(|entry| entry.pattern == pattern);
            of_pattern.filter(is_usable).max_by_key(|entry| entry.published_at)
        };
        let mut choices = Vec::with_capacity(self.active.len());
        for row in &self.active {
            let own = self.dictionaries.iter().find(|entry| entry.id == row.id).filter(is_usable);
            let id = own.or_else(|| last_usable(&row.pattern)).map(|entry| entry.id);
            choices.push(Choice { pattern: &row.pattern, id });
        }
        choices
    }

    /// Adds a dictionary and makes it that of its pattern: in the place of the one before, or in front of the
    /// first pattern that names fewer bytes of a key. The one before stays among the dictionaries, since
    /// values need it.
    pub fn add(&mut self, entry: Entry) {
        self.forgotten.retain(|id| *id != entry.id);
        match self.active.iter_mut().find(|row| row.pattern == entry.pattern) {
            Some(row) => row.id = entry.id,
            None => {
                let precision_of = |row: &Active| precision(&row.pattern);
                let before = self.active.iter().position(|row| precision_of(row) < precision(&entry.pattern));
                let row = Active { pattern: entry.pattern.clone(), id: entry.id, unknown: Map::new() };
                self.active.insert(before.unwrap_or(self.active.len()), row);
            }
        }
        match self.dictionaries.iter_mut().find(|known| known.id == entry.id) {
            Some(known) => *known = Entry { unknown: std::mem::take(&mut known.unknown), ..entry },
            None => self.dictionaries.push(entry),
        }
    }

    /// Returns whether a newly trained dictionary should be added: not if its pattern has by now another one
    /// than `known`, which it was measured against, unless it is clearly better than that.
    pub fn wants(&self, entry: &Entry, known: Option<u32>) -> bool {
        let of_pattern = self.active.iter().find(|row| row.pattern == entry.pattern).map(|row| row.id);
        let Some(other) = of_pattern.filter(|id| Some(*id) != known) else { return true };
        let other = self.dictionaries.iter().find(|entry| entry.id == other);
        let ratios = other.and_then(|other| other.ratio_after).zip(entry.ratio_after);
        ratios.is_some_and(|(other, own)| own <= CLEARLY_BETTER * other)
    }

    /// Forgets a dictionary and the patterns that it is used for.
    pub fn forget(&mut self, id: u32) {
        self.active.retain(|row| row.id != id);
        self.dictionaries.retain(|entry| entry.id != id);
        self.forgotten.retain(|forgotten| *forgotten != id);
        self.forgotten.push(id);
        let excess = self.forgotten.len().saturating_sub(Catalogue::MAX_FORGOTTEN);
        self.forgotten.drain(..excess);
    }

    fn check(&self) -> Result<(), CatalogueError> {
        let too_many = |what, count, most| CatalogueError::TooMany { what, count, most };
        if self.active.len() > Catalogue::MAX_ACTIVE {
            return Err(too_many("active patterns", self.active.len(), Catalogue::MAX_ACTIVE));
        }
        if self.dictionaries.len() > Catalogue::MAX_DICTIONARIES {
            return Err(too_many("dictionaries", self.dictionaries.len(), Catalogue::MAX_DICTIONARIES));
        }
        if self.forgotten.len() > Catalogue::MAX_FORGOTTEN {
            return Err(too_many("forgotten dictionaries", self.forgotten.len(), Catalogue::MAX_FORGOTTEN));
        }
        let patterns = self.active.iter().map(|row| &row.pattern);
        let longest = patterns.map(String::len).max().unwrap_or_default();
        if longest > Catalogue::MAX_PATTERN_BYTES {
            return Err(CatalogueError::PatternTooLong { len: longest });
        }
        let mut ids = HashSet::new();
        match self.dictionaries.iter().find(|entry| !ids.insert(entry.id)) {
            Some(twice) => Err(CatalogueError::Twice { id: twice.id }),
            None => Ok(()),
        }
    }
}

impl Entry {
    /// Returns the time from which a writer may use the dictionary: one `refresh` after it was published, so
    /// that readers and replicas have it. A writer whose clock is behind counts from when it saw it first.
    /// Times are counted from 1970.
    pub fn usable_from(&self, first_seen: Duration, refresh: Duration) -> Duration {
        match self.published_at {
            None => Duration::ZERO,
            Some(published) => Duration::from_secs(published).min(first_seen).saturating_add(refresh),
        }
    }
}

fn unreadable(error: serde_json::Error) -> CatalogueError {
    CatalogueError::Unreadable { reason: error.to_string() }
}

/// Reason why a document is not read or written as a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The document is longer than [`Catalogue::MAX_BYTES`].
    #[error("a catalogue of {len} bytes is too long: at most {} are accepted", Catalogue::MAX_BYTES)]
    TooLong {
        /// Length of the document, in bytes.
        len: usize,
    },
    /// The document is not JSON, or has other fields than a catalogue.
    #[error("not a catalogue of dictionaries: {reason}")]
    Unreadable {
        /// Error of the parser.
        reason: String,
    },
    /// A later version wrote the document.
    #[error("the catalogue has version {found}, and this client knows version {VERSION}: update the client")]
    Version {
        /// Version of the document.
        found: u64,
    },
    /// The catalogue has more rows than it may have.
    #[error("the catalogue has {count} {what}, and at most {most} are accepted: forget some")]
    TooMany {
        /// Name of the rows.
        what: &'static str,
        /// Number of rows.
        count: usize,
        /// Most rows that are accepted.
        most: usize,
    },
    /// A pattern is longer than [`Catalogue::MAX_PATTERN_BYTES`].
    #[error(
        "the catalogue has a pattern of {len} bytes, and at most {} are accepted",
        Catalogue::MAX_PATTERN_BYTES
    )]
    PatternTooLong {
        /// Length of the pattern, in bytes.
        len: usize,
    },
    /// One dictionary has two rows.
    #[error("the catalogue has the dictionary {id} twice")]
    Twice {
        /// ID of the dictionary.
        id: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u32, pattern: &str, published_at: u64) -> Entry {
        Entry { id, pattern: pattern.into(), published_at: Some(published_at), ..Entry::default() }
    }

    fn chosen(catalogue: &Catalogue, now: u64, first_seen: u64) -> Vec<Option<u32>> {
        let seconds = Duration::from_secs;
        let choices = catalogue.choices(seconds(now), seconds(60), |_| seconds(first_seen));
        choices.into_iter().map(|choice| choice.id).collect()
    }

    #[test]
    fn a_document_is_refused_with_what_is_wrong_with_it() {
        let refused = |document: &str| Catalogue::decode(document.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            refused(r#"{"version": 2, "active": "whatever"}"#),
            "the catalogue has version 2, and this client knows version 1: update the client"
        );
        assert!(refused("[]").starts_with("not a catalogue of dictionaries: "));
        assert!(refused(r#"{"active": []}"#).contains("missing field `version`"));
        assert!(
            refused(r#"{"version": 1, "active": [{"pattern": "*", "id": -1}]}"#).contains("invalid value")
        );
        assert!(refused(&"[".repeat(100_000)).contains("not a catalogue"));
        assert!(refused(&" ".repeat(Catalogue::MAX_BYTES + 1)).contains("1048577 bytes is too long"));
        let twice =
            r#"{"version": 1, "dictionaries": [{"id": 1, "pattern": "a"}, {"id": 1, "pattern": "b"}]}"#;
        assert_eq!(refused(twice), "the catalogue has the dictionary 1 twice");
    }

    #[test]
    fn what_exceeds_a_limit_is_neither_written_nor_read() {
        let mut catalogue = Catalogue::default();
        for id in 0..=Catalogue::MAX_ACTIVE as u32 {
            catalogue.add(entry(id, &format!("{id}:*"), 0));
        }
        assert_eq!(
            catalogue.encode().unwrap_err(),
            CatalogueError::TooMany { what: "active patterns", count: 129, most: 128 }
        );
        catalogue.forget(0);
        let document = catalogue.encode().unwrap();
        assert_eq!(Catalogue::decode(&document).unwrap(), catalogue);
        catalogue.active[0].pattern = "x".repeat(257);
        assert_eq!(catalogue.encode().unwrap_err(), CatalogueError::PatternTooLong { len: 257 });
    }

    #[test]
    fn fields_of_newer_clients_survive_a_rewriting() {
        let document =
            br#"{"version": 1, "note": {"by": "newer"}, "active": [{"pattern": "*", "id": 7, "weight": 3}],
            "dictionaries": [{"id": 7, "pattern": "*", "excluded": ["secret:*"]}]}"#;
        let mut catalogue = Catalogue::decode(document).unwrap();
        catalogue.add(entry(7, "*", 5));
        catalogue.add(entry(8, "user:*", 6));
        let document = String::from_utf8(catalogue.encode().unwrap()).unwrap();
        for kept in [r#""note":{"by":"newer"}"#, r#""weight":3"#, r#""excluded":["secret:*"]"#] {
            assert!(document.contains(kept), "{document}");
        }
    }

    #[test]
    fn a_new_dictionary_is_used_one_refresh_after_it_was_published_and_the_one_before_until_then() {
        let mut catalogue = Catalogue::default();
        catalogue.add(entry(1, "user:*", 1000));
        assert_eq!(chosen(&catalogue, 1059, 1001), [None]);
        assert_eq!(chosen(&catalogue, 1060, 1001), [Some(1)]);
        catalogue.add(entry(2, "user:*", 2000));
        assert_eq!(chosen(&catalogue, 2059, 1001), [Some(2)], "seen long before it says");
        assert_eq!(chosen(&catalogue, 2059, 2001), [Some(1)]);
        assert_eq!(chosen(&catalogue, 2060, 2001), [Some(2)]);
        catalogue.forget(2);
        assert_eq!(chosen(&catalogue, 2060, 2001), []);
    }

    #[test]
    fn a_dictionary_is_forgotten_until_it_is_added_again() {
        let mut catalogue = Catalogue::default();
        catalogue.add(entry(1, "user:*", 1000));
        (1..=1 + Catalogue::MAX_FORGOTTEN as u32).for_each(|id| catalogue.forget(id));
        assert_eq!((catalogue.active.len(), catalogue.dictionaries.len()), (0, 0));
        assert_eq!((catalogue.forgotten.len(), catalogue.forgotten[0]), (1024, 2));
        catalogue.add(entry(2, "user:*", 2000));
        assert_eq!((catalogue.forgotten.len(), catalogue.forgotten[0]), (1023, 3));
        assert_eq!(Catalogue::decode(&catalogue.encode().unwrap()), Ok(catalogue));
    }

    #[test]
    fn of_two_who_train_for_a_pattern_the_second_adds_only_what_is_clearly_better() {
        let trained = |id, ratio| Entry { ratio_after: ratio, ..entry(id, "user:*", 0) };
        let mut catalogue = Catalogue::default();
        let own = trained(2, Some(0.3));
        assert!(catalogue.wants(&own, None));
        catalogue.add(trained(1, Some(0.32)));
        assert!(!catalogue.wants(&own, None));
        assert!(catalogue.wants(&own, Some(1)), "that is what it is better than");
        assert!(catalogue.wants(&trained(2, Some(0.28)), None));
        assert!(!catalogue.wants(&trained(2, None), None), "nobody knows");
        assert!(catalogue.wants(&Entry { pattern: "*".into(), ..own }, None));
    }

    #[test]
    fn an_active_dictionary_that_is_not_listed_is_not_used() {
        let catalogue =
            Catalogue::decode(br#"{"version": 1, "active": [{"pattern": "*", "id": 7}]}"#).unwrap();
        assert_eq!(chosen(&catalogue, u64::MAX, 0), [None]);
    }
}
