//! The cause of changes: what they are called, as long as a thread says so.
//!
//! It knows names of events and a thread's own state, and nothing of who is told.

use std::cell::RefCell;

use snugly_store::KeyChange;

use crate::event_classes::EventClasses;

/// Something that happens to a key.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) class: EventClasses,
    pub(crate) name: &'static str,
    /// Whether it happens to the key that the value comes from.
    of_source: bool,
}

impl Event {
    pub(super) const EXPIRED: Event = Event::new(EventClasses::EXPIRED, "expired");
    pub(super) const EVICTED: Event = Event::new(EventClasses::EVICTED, "evicted");
    pub(super) const MISSED: Event = Event::new(EventClasses::MISSED, "keymiss");
    const NEW: Event = Event::new(EventClasses::NEW, "new");

    pub(crate) const fn new(class: EventClasses, name: &'static str) -> Event {
        Event { class, name, of_source: false }
    }

    /// The same event of the key that the value comes from.
    pub(crate) const fn of_source(self) -> Event {
        Event { of_source: true, ..self }
    }
}

/// The events of changes, in their order.
pub(crate) struct Cause {
    /// Of a key that has a value, or another expiry.
    pub(crate) written: &'static [Event],
    /// Of a key that was removed.
    pub(crate) removed: &'static [Event],
    /// Whether a key that is written counts as new, even if it was there.
    pub(crate) replaces: bool,
}

impl Cause {
    /// Changes that nobody is told of.
    pub(crate) const NONE: Cause = Cause { written: &[], removed: &[], replaces: false };
}

/// What the thread is doing.
struct Acting {
    cause: &'static Cause,
    source: Option<Source>,
}

/// The key that a value comes from.
struct Source {
    database: usize,
    key: Box<[u8]>,
    cause: &'static Cause,
}

thread_local! {
    static ACTING: RefCell<Acting> = const { RefCell::new(Acting { cause: &Cause::NONE, source: None }) };
}

/// Names the changes that this thread makes from now on.
pub(crate) fn act(cause: &'static Cause) {
    ACTING.set(Acting { cause, source: None });
}

/// The same where a value goes from one key to another: the first key's changes have a cause of their own.
pub(crate) fn act_from((database, key): (usize, &[u8]), of_source: &'static Cause, cause: &'static Cause) {
    let source = Source { database, key: key.into(), cause: of_source };
    ACTING.set(Acting { cause, source: Some(source) });
}

/// Ends what the thread was doing.
pub(crate) fn rest() {
    act(&Cause::NONE);
}

/// Shows the events of a change that this thread makes, each with its database and key.
pub(super) fn each_event(
    database: usize,
    key: &[u8],
    change: KeyChange,
    mut show: impl FnMut(usize, &[u8], Event),
) {
    ACTING.with_borrow(|acting| {
        let source = acting.source.as_ref();
        let own = source.filter(|source| source.database == database && *source.key == *key);
        let cause = own.map_or(acting.cause, |source| source.cause);
        let events = if change == KeyChange::Removed { cause.removed } else { cause.written };
        let is_new = change == KeyChange::Created || change == KeyChange::Written && cause.replaces;
        if is_new && !events.is_empty() {
            show(database, key, Event::NEW);
        }
        for event in events {
            match source.filter(|_| event.of_source) {
                Some(source) => show(source.database, &source.key, *event),
                None => show(database, key, *event),
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const POPPED: Event = Event::new(EventClasses::LIST, "lpop");
    const DELETED: Event = Event::new(EventClasses::GENERIC, "del");
    const PUSHED: Event = Event::new(EventClasses::LIST, "rpush");
    static POP: Cause = Cause { written: &[POPPED], removed: &[POPPED, DELETED], replaces: false };
    static PUSH: Cause = Cause { written: &[PUSHED], removed: &[], replaces: false };
    static RENAME: Cause = Cause { written: &[DELETED.of_source(), PUSHED], removed: &[], replaces: true };

    fn events(key: &str, change: KeyChange) -> Vec<String> {
        let mut shown = Vec::new();
        each_event(0, key.as_bytes(), change, |database, key, event| {
            shown.push(format!("{database} {} {}", event.name, String::from_utf8_lossy(key)));
        });
        shown
    }

    #[test]
    fn changes_have_the_events_of_their_cause_and_none_without() {
        act(&POP);
        assert_eq!(events("a", KeyChange::Written), ["0 lpop a"]);
        assert_eq!(events("a", KeyChange::Created), ["0 new a", "0 lpop a"]);
        assert_eq!(events("a", KeyChange::Removed), ["0 lpop a", "0 del a"]);
        rest();
        for change in [KeyChange::Written, KeyChange::Created, KeyChange::Removed] {
            assert!(events("a", change).is_empty());
        }
    }

    #[test]
    fn the_key_that_a_value_comes_from_has_events_of_its_own() {
        act_from((0, b"a"), &POP, &PUSH);
        assert_eq!(events("b", KeyChange::Written), ["0 rpush b"]);
        assert_eq!(events("a", KeyChange::Removed), ["0 lpop a", "0 del a"]);
        act_from((7, b"a"), &Cause::NONE, &RENAME);
        assert_eq!(events("b", KeyChange::Written), ["0 new b", "7 del a", "0 rpush b"]);
        act_from((0, b"a"), &Cause::NONE, &RENAME);
        assert!(events("a", KeyChange::Removed).is_empty());
        rest();
    }
}
