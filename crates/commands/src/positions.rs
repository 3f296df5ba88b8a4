//! Positions of the keys of any command: by its row's pattern, or by Valkey's key specifications.

use crate::pattern::{Arguments, Found};
use crate::table::{Command, command};
use crate::word::Word;

/// Most digits of a number of keys.
const COUNT_DIGITS: usize = 9;

/// Position of some of a command's keys.
#[derive(Debug)]
pub(crate) struct Position {
    pub(crate) first: First,
    pub(crate) keys: Keys,
    /// Whether keys that are found here replace those found before.
    pub(crate) replaces: bool,
}

/// Position of the first key, or of the number of keys.
#[derive(Debug)]
pub(crate) enum First {
    At(usize),
    /// Position behind a word, searched for from this position on, except in the last argument; from the end
    /// backwards if it is negative.
    Behind {
        word: Word,
        from: isize,
    },
}

/// Positions of the keys relative to the first one.
#[derive(Debug)]
pub(crate) enum Keys {
    /// Keys up to the last one, counted from the first, or from the end if it is negative; with a limit, in
    /// the first part of the rest, divided by it.
    Through { last: isize, step: usize, limit: Option<usize> },
    /// Keys as many as the number at one offset says, from another offset on.
    Counted { number: usize, first: usize, step: usize },
}

/// Returns the positions of all keys of a command, its name being at 0; `None` if they are not known, or
/// would be where no arguments are. `found` is used for it, and has nothing else afterwards.
///
/// A command that does not fit its row's pattern has the keys that Valkey would look at.
pub fn keys<'f, A: Arguments + ?Sized>(args: &A, found: &'f mut Found) -> Option<&'f [usize]> {
    found.clear();
    if args.is_empty() {
        return None;
    }
    let command = command(&args.get(0))?;
    if command.row.has_keys && command.find(args, found) {
        return Some(&found.keys);
    }
    found.clear();
    for position in positions(command, args)? {
        position.find(args, &mut found.keys)?;
    }
    Some(&found.keys)
}

/// Returns the positions of the subcommand, if the command has it.
fn positions<A: Arguments + ?Sized>(command: &'static Command, args: &A) -> Option<&'static [Position]> {
    if !command.subcommands.is_empty() && args.len() > 1 {
        let word = Word::read(&args.get(1));
        let subcommand = command.subcommands.iter().find(|each| Some(each.word) == word);
        if let Some(subcommand) = subcommand {
            return Some(subcommand.positions);
        }
    }
    command.positions
}

impl Position {
    /// Adds the keys. `None` if they are not among the arguments.
    fn find<A: Arguments + ?Sized>(&self, args: &A, keys: &mut Vec<usize>) -> Option<()> {
        let count = args.len();
        let first = match self.first {
            First::At(at) => at,
            First::Behind { word, from } => match behind(word, from, args) {
                Some(at) => at,
                None => return Some(()),
            },
        };
        let (first, last, step) = match self.keys {
            Keys::Through { last, step, limit } => {
                let last = match (last, limit) {
                    (0.., _) => first.checked_add_signed(last),
                    (_, None) => count.checked_add_signed(last),
                    (_, Some(limit)) => {
                        (first + count.saturating_sub(first) / limit).checked_add_signed(last)
                    }
                };
                (first, last?, step)
            }
            Keys::Counted { number, first: offset, step } => {
                let at = first + number;
                let Some(more) = (at < count).then(|| number_of(&args.get(at))).flatten()?.checked_sub(1)
                else {
                    return Some(());
                };
                (first + offset, first + offset + more * step, step)
            }
        };
        if last < first || last >= count {
            return None;
        }
        if self.replaces {
            keys.clear();
        }
        keys.extend((first..=last).step_by(step));
        Some(())
    }
}

/// Returns the position behind a word that has something behind it.
fn behind<A: Arguments + ?Sized>(word: Word, from: isize, args: &A) -> Option<usize> {
    let is_word = |at: &usize| Word::read(&args.get(*at)) == Some(word);
    let at = match usize::try_from(from) {
        Ok(from) => (from..args.len().saturating_sub(1)).find(is_word),
        Err(_) => (1..=args.len().checked_add_signed(from)?).rev().find(is_word),
    };
    at.map(|at| at + 1)
}

/// Parses a decimal number as Valkey reads it, without sign and needless zeros.
fn number_of(text: &[u8]) -> Option<usize> {
    match text {
        b"0" => Some(0),
        [b'1'..=b'9', rest @ ..] if rest.len() < COUNT_DIGITS && rest.iter().all(u8::is_ascii_digit) => {
            Some(text.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
        }
        _ => None,
    }
}
