//! Patterns of arguments, matched from left to right, never going back over a choice.

use std::borrow::Cow;

use crate::table::{Command, CommandOption, Given};
use crate::word::Word;

/// Most digits of a number of following arguments.
const COUNT_DIGITS: usize = 9;

/// Arguments of a command, its name at 0.
///
/// Slices of anything that is bytes implement it: `[&[u8]]`, `[Vec<u8>]`, `[&str]`.
pub trait Arguments {
    /// Returns the number of arguments, the name included.
    fn len(&self) -> usize;

    /// Returns the bytes of one argument below [`len`](Self::len). It is called only where a word, a number
    /// or an ID may be.
    fn get(&self, at: usize) -> Cow<'_, [u8]>;

    /// Returns whether there is not even a name.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: AsRef<[u8]>> Arguments for [T] {
    #[inline]
    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    #[inline]
    fn get(&self, at: usize) -> Cow<'_, [u8]> {
        Cow::Borrowed(self[at].as_ref())
    }
}

/// A value among the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Position of the value.
    pub at: usize,
    /// Position of the key that it belongs to.
    pub key: usize,
}

/// Matches of a pattern in a command, as positions that count from its name at 0. It is reused, so that
/// commands of the same size allocate nothing.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub(crate) keys: Vec<usize>,
    values: Vec<Value>,
    compared: Vec<usize>,
    pub(crate) given: Given,
}

impl Found {
    /// Creates an empty result, without memory.
    pub const fn new() -> Found {
        Found { keys: Vec::new(), values: Vec::new(), compared: Vec::new(), given: 0 }
    }

    /// Returns the positions of keys, in order.
    pub fn keys(&self) -> &[usize] {
        &self.keys
    }

    /// Returns the values, in order.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the positions of arguments that the server compares with stored values.
    pub fn compared(&self) -> &[usize] {
        &self.compared
    }

    /// Clears the result, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.compared.clear();
        self.given = 0;
    }
}

/// A part of a pattern.
#[derive(Debug)]
pub(crate) enum Item {
    Key,
    Value,
    Compared,
    /// An ignored argument.
    Word,
    /// ID of a new stream entry.
    Id,
    Rest,
    Options,
    Tail,
    Maybe(&'static [Word]),
    Repeat(&'static [Item]),
    Counted(&'static [Item]),
}

impl Command {
    /// Matches the row's pattern, whatever types of values a client compresses. `false` if the arguments do
    /// not follow it, or there are none: then nothing is found.
    #[inline]
    pub fn find<A: Arguments + ?Sized>(&self, args: &A, found: &mut Found) -> bool {
        found.clear();
        let mut pattern = Match { args, options: self.row.options, len: args.len(), at: 1, found };
        let fits = pattern.items(self.row.items) && pattern.at == pattern.len;
        if !fits {
            found.clear();
        }
        fits
    }
}

/// One command against its pattern. Methods that take an argument return `false` if it is missing.
struct Match<'a, A: ?Sized> {
    args: &'a A,
    options: &'static [CommandOption],
    len: usize,
    at: usize,
    found: &'a mut Found,
}

impl<A: Arguments + ?Sized> Match<'_, A> {
    fn items(&mut self, items: &'static [Item]) -> bool {
        items.iter().all(|item| self.item(item))
    }

    #[inline]
    fn item(&mut self, item: &'static Item) -> bool {
        match item {
            Item::Key => self.take().map(|at| self.found.keys.push(at)).is_some(),
            Item::Value => self.value(),
            Item::Compared => self.take().map(|at| self.found.compared.push(at)).is_some(),
            Item::Word => self.take().is_some(),
            Item::Id => self.take().is_some_and(|at| is_new_id(&self.args.get(at))),
            Item::Rest => {
                self.at = self.at.max(self.len);
                true
            }
            Item::Options => loop {
                match self.option() {
                    Some(true) => {}
                    Some(false) => return false,
                    None => return true,
                }
            },
            Item::Tail => self.tail(),
            Item::Maybe(words) => {
                let is_one = |at| Word::read(&self.args.get(at)).is_some_and(|word| words.contains(&word));
                self.at += usize::from(self.at < self.len && is_one(self.at));
                true
            }
            Item::Repeat(group) => self.repeat(group),
            Item::Counted(group) => self.counted(group),
        }
    }

    #[inline]
    fn take(&mut self) -> Option<usize> {
        let at = self.at;
        (at < self.len).then(|| {
            self.at += 1;
            at
        })
    }

    #[inline]
    fn value(&mut self) -> bool {
        let (Some(at), Some(&key)) = (self.take(), self.found.keys.last()) else { return false };
        self.found.values.push(Value { at, key });
        true
    }

    /// Takes an option with its own arguments: `Some(false)` if these are not there, `None` if there is no option.
    #[inline]
    fn option(&mut self) -> Option<bool> {
        if self.at >= self.len {
            return None;
        }
        let word = Word::read(&self.args.get(self.at))?;
        let at = self.options.iter().position(|option| option.word == word)?;
        self.at += 1;
        self.found.given |= 1 << at;
        Some(self.items(self.options[at].items))
    }

    fn tail(&mut self) -> bool {
        while self.at < self.len {
            match self.option() {
                Some(true) => {}
                Some(false) => return false,
                None => self.at += 1,
            }
        }
        true
    }

    /// Matches the group as often as it fits, at least once.
    fn repeat(&mut self, group: &'static [Item]) -> bool {
        if !self.items(group) {
            return false;
        }
        while self.at < self.len {
            let before = (self.at, self.found.keys.len(), self.found.values.len(), self.found.compared.len());
            let given = self.found.given;
            if !self.items(group) {
                self.at = before.0;
                self.found.keys.truncate(before.1);
                self.found.values.truncate(before.2);
                self.found.compared.truncate(before.3);
                self.found.given = given;
                return true;
            }
        }
        true
    }

    /// Matches a number, and the group that many times. A number that is larger than the arguments ends where
    /// they end.
    fn counted(&mut self, group: &'static [Item]) -> bool {
        let Some(count) = self.take().and_then(|at| count(&self.args.get(at))) else { return false };
        (0..count).all(|_| self.items(group))
    }
}

/// Parses a decimal number of up to nine digits.
fn count(text: &[u8]) -> Option<usize> {
    let is_number = !text.is_empty() && text.len() <= COUNT_DIGITS && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}

/// Returns whether a word is the ID of a new stream entry: `*`, or digits, or digits, `-` and digits or `*`.
fn is_new_id(word: &[u8]) -> bool {
    let are_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match word.iter().position(|&letter| letter == b'-') {
        None => word == b"*" || are_digits(word),
        Some(at) => are_digits(&word[..at]) && (&word[at + 1..] == b"*" || are_digits(&word[at + 1..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;

    const OPTIONS: &[CommandOption] = &[CommandOption { word: Word::of("NX"), items: &[Item::Word] }];

    fn find(items: &'static [Item], line: &str) -> Option<Found> {
        let row = Row { items, options: OPTIONS, ..Row::NONE };
        let command =
            Command { number: 0, word: Word::of("X"), name: "X", row, positions: None, subcommands: &[] };
        let mut found = Found::default();
        let args: Vec<&str> = line.split(' ').collect();
        command.find(&args[..], &mut found).then_some(found)
    }

    #[test]
    fn last_round_of_a_repetition_that_does_not_fit_leaves_nothing() {
        const GROUP: &[Item] = &[Item::Options, Item::Key, Item::Value, Item::Compared, Item::Word];
        const ITEMS: &[Item] = &[Item::Repeat(GROUP), Item::Rest];
        let found = find(ITEMS, "X a 1 c w nx 5 b 2 d").unwrap();
        assert_eq!((found.keys(), found.compared()), (&[1][..], &[3][..]));
        assert_eq!(found.values(), [Value { at: 2, key: 1 }]);
        assert_eq!(found.given, 0);
        assert_eq!(find(ITEMS, "X a 1 c w nx 5 b 2 d w").unwrap().given, 1);
    }

    #[test]
    fn a_value_without_a_key_does_not_fit() {
        assert!(find(&[Item::Value], "X 1").is_none());
    }

    #[test]
    fn a_huge_count_ends_with_the_arguments() {
        assert!(find(&[Item::Counted(&[Item::Key])], "X 999999999 a b").is_none());
    }
}
