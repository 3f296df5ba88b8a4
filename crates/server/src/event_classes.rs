//! Classes of the events of keys, by the letters of `notify-keyspace-events`.
//!
//! It knows letters and sets of classes, and nothing of who is told.

/// The letters, in the order in which Valkey writes them.
const LETTERS: &[u8; 14] = b"g$lshzxetdnKEm";
/// How many of them `A` stands for.
const ALL: usize = 10;
/// Letters that `A` makes unnecessary to write.
const HIDDEN_BY_ALL: usize = 11;

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventClasses(u32);

impl EventClasses {
    /// Commands that are about keys, whatever their values.
    pub(crate) const GENERIC: EventClasses = EventClasses::of(b'g');
    pub(crate) const STRING: EventClasses = EventClasses::of(b'$');
    pub(crate) const LIST: EventClasses = EventClasses::of(b'l');
    pub(crate) const EXPIRED: EventClasses = EventClasses::of(b'x');
    pub(crate) const EVICTED: EventClasses = EventClasses::of(b'e');
    /// Keys that come into being.
    pub(crate) const NEW: EventClasses = EventClasses::of(b'n');
    /// Keys that are looked up and not there.
    pub(crate) const MISSED: EventClasses = EventClasses::of(b'm');
    /// Tell on the channel of the key.
    pub(crate) const KEYSPACE: EventClasses = EventClasses::of(b'K');
    /// Tell on the channel of the event.
    pub(crate) const KEYEVENT: EventClasses = EventClasses::of(b'E');

    const fn of(letter: u8) -> EventClasses {
        let mut place = 0;
        while LETTERS[place] != letter {
            place += 1;
        }
        EventClasses(1 << place)
    }

    pub(crate) fn has(self, other: EventClasses) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn from_bits(bits: u32) -> EventClasses {
        EventClasses(bits)
    }

    /// Reads letters.
    pub(crate) fn parse(text: &str) -> Result<EventClasses, String> {
        text.bytes().try_fold(EventClasses::default(), |classes, letter| {
            let bits = match LETTERS.iter().position(|known| *known == letter) {
                Some(place) => 1 << place,
                None if letter == b'A' => (1 << ALL) - 1,
                None => return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
            };
            Ok(EventClasses(classes.0 | bits))
        })
    }

    /// Writes letters as Valkey does.
    pub(crate) fn text(self) -> String {
        let has_all = self.0 & ((1 << ALL) - 1) == (1 << ALL) - 1;
        let hidden = if has_all { HIDDEN_BY_ALL } else { 0 };
        let rest = LETTERS.iter().enumerate().skip(hidden).filter(|(place, _)| self.0 & (1 << place) != 0);
        let head = has_all.then_some('A').into_iter();
        head.chain(rest.map(|(_, letter)| char::from(*letter))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_are_written_as_valkey_does() {
        let cases = [
            ("", ""),
            ("KEA", "AKE"),
            ("A", "A"),
            ("Kg$lshzxetmdn", "AKm"),
            ("mn", "nm"),
            ("g$lsnmKE", "g$lsnKEm"),
            ("xetdnK", "xetdnK"),
            ("tdmn", "tdnm"),
        ];
        for (text, written) in cases {
            assert_eq!(EventClasses::parse(text).map(EventClasses::text).as_deref(), Ok(written), "{text}");
        }
    }

    #[test]
    fn other_letters_are_refused() {
        for text in ["Q", "KEA ", "k", "é"] {
            assert!(EventClasses::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_but_for_what_all_hides(text in "[AgslhzxetdnKEm$]{0,20}") {
            let classes = EventClasses::parse(&text).unwrap();
            let again = EventClasses::parse(&classes.text()).unwrap();
            prop_assert_eq!(again.0 | EventClasses::NEW.0, classes.0 | EventClasses::NEW.0);
        }
    }
}
