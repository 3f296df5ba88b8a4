//! Stages of a record.

/// How far recompression has come with a record. The stage tells what was tried, whether or not it made the record smaller,
/// so that nothing is tried twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was tried since it was written.
    #[default]
    Written,
    /// Recompression has tried the encoding for values that stay.
    Settled,
    /// Recompression has tried the encoding for values that nobody uses.
    Cold,
}

impl Stage {
    /// All of them, in the order of their numbers.
    pub const ALL: [Stage; 3] = [Stage::Written, Stage::Settled, Stage::Cold];

    /// Returns the name in answers and on the command line.
    pub fn name(self) -> &'static str {
        ["written", "settled", "cold"][self as usize]
    }
}
