//! What became of a value that was to be encoded.

use std::fmt;

/// Why a value was left as it is. Never an error: the value is stored or sent all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No codec is chosen.
    Off,
    /// It is shorter than the threshold.
    Small,
    /// It is longer than readers accept.
    Large,
    /// It is an envelope already.
    Envelope,
    /// It is in a compressed format, or looks random.
    Compressed,
    /// Compressing it gains nothing, or has gained nothing for values like it.
    NoGain,
    /// Compressing it failed.
    Failed,
}

impl Reason {
    /// A short name that never changes, for statistics and for bindings in other languages.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Off => "off",
            Reason::Small => "small",
            Reason::Large => "large",
            Reason::Envelope => "envelope",
            Reason::Compressed => "compressed",
            Reason::NoGain => "no_gain",
            Reason::Failed => "failed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
