//! The log of what users were denied, for ACL LOG: the newest first, and those that are alike together.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Milliseconds within which denials that are alike count as one.
const TOGETHER_WITHIN: u64 = 60_000;

/// Kind of what was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Command,
    Key,
    Channel,
    Database,
    Login,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Database => "database",
            Reason::Login => "auth",
        }
    }
}

/// What a request was part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    TopLevel,
    Transaction,
    Script,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::TopLevel => "toplevel",
            Place::Transaction => "multi",
            Place::Script => "lua",
        }
    }
}

/// Something that was denied, once or several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) reason: Reason,
    pub(crate) place: Place,
    /// The command, the key, the channel, or the way to log in.
    pub(crate) object: Vec<u8>,
    pub(crate) user: Vec<u8>,
    /// The client's line in CLIENT LIST, the last time.
    pub(crate) client: Vec<u8>,
}

impl Denial {
    /// Returns whether another one is the same to the same user, from whichever client.
    fn is_like(&self, other: &Denial) -> bool {
        let of = |denial: &Denial| (denial.reason, denial.place);
        of(self) == of(other) && self.object == other.object && self.user == other.user
    }
}

/// A denial in the log.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) count: u64,
    /// Unix time in milliseconds.
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) denial: Denial,
}

/// The log.
#[derive(Default)]
pub(crate) struct Denials(Mutex<Log>);

#[derive(Default)]
struct Log {
    entries: VecDeque<Entry>,
    next_id: u64,
}

impl Denials {
    /// Notes a denial, and keeps so many at most.
    pub(crate) fn note(&self, denial: Denial, now: u64, most: usize) {
        let mut log = self.0.lock();
        let alike = |entry: &Entry| {
            now.saturating_sub(entry.updated) <= TOGETHER_WITHIN && entry.denial.is_like(&denial)
        };
        let known = log.entries.iter().position(alike).and_then(|place| log.entries.remove(place));
        let entry = match known {
            Some(entry) => Entry { count: entry.count + 1, updated: now, denial, ..entry },
            None => {
                let id = log.next_id;
                log.next_id += 1;
                Entry { id, count: 1, created: now, updated: now, denial }
            }
        };
        log.entries.push_front(entry);
        log.entries.truncate(most);
    }

    /// The newest entries, so many at most.
    pub(crate) fn newest(&self, most: usize) -> Vec<Entry> {
        self.0.lock().entries.iter().take(most).cloned().collect()
    }

    pub(crate) fn reset(&self) {
        self.0.lock().entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(object: &str, client: &str) -> Denial {
        Denial {
            reason: Reason::Key,
            place: Place::TopLevel,
            object: object.into(),
            user: b"u".to_vec(),
            client: client.into(),
        }
    }

    fn shown(denials: &Denials) -> Vec<(u64, u64, String)> {
        let show =
            |entry: Entry| (entry.id, entry.count, String::from_utf8(entry.denial.object).expect("text"));
        denials.newest(usize::MAX).into_iter().map(show).collect()
    }

    #[test]
    fn denials_that_are_alike_are_one_entry_for_a_minute() {
        let denials = Denials::default();
        for (object, now) in [("a", 0), ("b", 1), ("a", TOGETHER_WITHIN), ("b", TOGETHER_WITHIN + 2)] {
            denials.note(denial(object, &now.to_string()), now, 10);
        }
        let expected = [(2, 1, "b"), (0, 2, "a"), (1, 1, "b")];
        assert_eq!(shown(&denials), expected.map(|(id, count, object)| (id, count, object.to_owned())));
        assert_eq!(denials.newest(2)[1].denial.client, TOGETHER_WITHIN.to_string().into_bytes());
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let denials = Denials::default();
        for object in ["a", "b", "c"] {
            denials.note(denial(object, ""), 0, 2);
        }
        assert_eq!(shown(&denials).len(), 2);
        denials.reset();
        assert!(shown(&denials).is_empty());
        denials.note(denial("d", ""), 0, 0);
        assert!(shown(&denials).is_empty());
    }
}
