//! Refusal of a command, in the words that every client uses for it.

use std::error::Error;
use std::fmt;

use crate::table::MESSAGE;

/// A reason of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

impl Reason {
    /// Returns the name in the table, such as `compare`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the reason in words.
    pub fn text(&self) -> &'static str {
        self.text
    }
}

/// Refusal of a command that must not be sent while compression is on. It displays as the table's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Name of the command, in capitals.
    pub command: &'static str,
    /// Reason of the refusal.
    pub reason: &'static Reason,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&MESSAGE.replace("{command}", self.command).replace("{reason}", self.reason.text))
    }
}

impl Error for Refused {}
