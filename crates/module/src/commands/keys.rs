//! Positions of keys among the arguments of a command.

use std::ffi::CStr;

/// Positions of keys: the first, the last (from the end if it is negative), and how far they are apart.
#[derive(Clone, Copy)]
pub struct Keys {
    pub first: usize,
    pub last: i32,
    pub step: usize,
    /// A word that one more key stands behind, which is overwritten.
    pub behind: Option<&'static CStr>,
}

/// The only key, or the only one with a string.
pub const ONE: Keys = Keys { first: 1, last: 1, step: 1, behind: None };
/// The first argument, and the one behind STORE.
pub const ONE_AND_STORE: Keys = Keys { first: 1, last: 1, step: 1, behind: Some(c"STORE") };
/// The first two arguments.
pub const TWO: Keys = Keys { first: 1, last: 2, step: 1, behind: None };
/// All arguments.
pub const ALL: Keys = Keys { first: 1, last: -1, step: 1, behind: None };
/// All arguments from the second one on.
pub const FROM_SECOND: Keys = Keys { first: 2, last: -1, step: 1, behind: None };

impl Keys {
    /// Whether there may be more than one.
    pub fn are_several(self) -> bool {
        self.last != self.first as i32 || self.behind.is_some()
    }

    /// The positions among so many arguments.
    pub fn among(self, arguments: usize) -> impl Iterator<Item = usize> {
        let last = if self.last < 0 { arguments as i32 + self.last } else { self.last };
        (self.first..arguments).take_while(move |&at| at as i32 <= last).step_by(self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(keys: Keys, arguments: usize) -> Vec<usize> {
        keys.among(arguments).collect()
    }

    #[test]
    fn keys_are_found_among_the_arguments() {
        assert_eq!(positions(ONE, 5), [1]);
        assert_eq!(positions(TWO, 5), [1, 2]);
        assert_eq!(positions(ALL, 4), [1, 2, 3]);
        assert_eq!(positions(FROM_SECOND, 5), [2, 3, 4]);
        assert_eq!(positions(ONE, 1), []);
    }
}
