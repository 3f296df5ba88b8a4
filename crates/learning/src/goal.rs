//! Goals of compression, as a price.

use std::fmt;
use std::str::FromStr;

/// The balance between memory and processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// The least memory: a saved byte may cost up to 500 ns.
    Memory,
    /// Much memory for little time: up to 20 ns.
    #[default]
    Balanced,
    /// Savings at next to no cost: up to 5 ns.
    Speed,
}

/// One row for each goal: its name, and what a saved byte may cost, in nanoseconds.
const GOALS: [(Goal, &str, f64); 3] =
    [(Goal::Memory, "memory", 500.0), (Goal::Balanced, "balanced", 20.0), (Goal::Speed, "speed", 5.0)];

impl Goal {
    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        GOALS.iter().map(|row| row.1)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        GOALS[self as usize].1
    }

    /// The price of a saved byte, in nanoseconds.
    pub fn price(self) -> f64 {
        GOALS[self as usize].2
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(name: &str) -> Result<Goal, String> {
        let found = GOALS.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
        found.map(|row| row.0).ok_or_else(|| "must be memory, balanced or speed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_found_by_their_names() {
        for (goal, name, _) in GOALS {
            assert_eq!((name.parse(), goal.to_string()), (Ok(goal), name.to_owned()));
        }
        assert_eq!("BALANCED".parse(), Ok(Goal::default()));
        assert!("fast".parse::<Goal>().is_err());
    }
}
