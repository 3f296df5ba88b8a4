//! The kinds of values.

use thiserror::Error;

/// Kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Bytes, as one record.
    String = 0,
    /// A list, as a record for each of its nodes.
    List = 1,
}

/// Number of a kind that this program does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a value of kind {0}, which this program does not know: use the program that wrote it")]
pub(crate) struct UnknownKind(pub(crate) u8);

impl Kind {
    /// All kinds, each in the place of its number.
    pub(crate) const ALL: [Kind; 2] = [Kind::String, Kind::List];

    /// Name that clients see.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
        }
    }

    /// Number on disk, which no other kind ever has.
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the kind of a number on disk.
    pub(crate) fn of_number(number: u8) -> Result<Kind, UnknownKind> {
        Kind::ALL.get(usize::from(number)).copied().ok_or(UnknownKind(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_by_its_number_and_no_other_number_is_a_kind() {
        let found: Vec<_> = (0..=u8::MAX).filter_map(|number| Kind::of_number(number).ok()).collect();
        assert_eq!(found, Kind::ALL);
        assert!(Kind::ALL.iter().all(|kind| Kind::of_number(kind.number()) == Ok(*kind)));
        assert_eq!(Kind::of_number(2), Err(UnknownKind(2)));
    }
}
