//! Rows of the table, which the build script makes of the specification's files, and the lookup by name.

use crate::pattern::Item;
use crate::positions::{First, Keys, Position};
use crate::refusal::Reason;
use crate::reply::Shape;
use crate::word::Word;

include!(concat!(env!("OUT_DIR"), "/rows.rs"));

/// Type of values that clients may compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueType {
    /// Values of keys.
    Strings = 1,
    /// Values of fields.
    Hashes = 2,
    /// Elements.
    Lists = 4,
    /// Values of fields in entries.
    Streams = 8,
}

impl ValueType {
    /// All types, in the order of the table.
    pub const ALL: [ValueType; 4] =
        [ValueType::Strings, ValueType::Hashes, ValueType::Lists, ValueType::Streams];

    /// Returns the name in the table, such as `strings`.
    pub const fn name(self) -> &'static str {
        match self {
            ValueType::Strings => "strings",
            ValueType::Hashes => "hashes",
            ValueType::Lists => "lists",
            ValueType::Streams => "streams",
        }
    }
}

/// Some types of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueTypes(u8);

impl ValueTypes {
    pub(crate) const fn of(types: &[ValueType]) -> ValueTypes {
        let (mut bits, mut at) = (0, 0);
        while at < types.len() {
            bits |= types[at] as u8;
            at += 1;
        }
        ValueTypes(bits)
    }

    /// Returns whether a type is among them.
    pub const fn contains(self, one: ValueType) -> bool {
        self.0 & one as u8 != 0
    }

    /// Returns whether they have a type in common.
    pub const fn meets(self, others: ValueTypes) -> bool {
        self.0 & others.0 != 0
    }

    /// Returns each type, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = ValueType> {
        ValueType::ALL.into_iter().filter(move |&each| self.contains(each))
    }
}

impl FromIterator<ValueType> for ValueTypes {
    fn from_iter<I: IntoIterator<Item = ValueType>>(types: I) -> ValueTypes {
        ValueTypes(types.into_iter().fold(0, |bits, each| bits | each as u8))
    }
}

/// A command that the table names.
#[derive(Debug)]
pub struct Command {
    pub(crate) number: usize,
    pub(crate) word: Word,
    pub(crate) name: &'static str,
    pub(crate) row: Row,
    /// Positions of its keys; `None` if the server that was asked does not know the command.
    pub(crate) positions: Option<&'static [Position]>,
    pub(crate) subcommands: &'static [Subcommand],
}

/// Keys of a command with this word behind its name.
#[derive(Debug)]
pub(crate) struct Subcommand {
    pub(crate) word: Word,
    pub(crate) positions: &'static [Position],
}

/// Meaning of a command, for any type of values.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) value_type: Option<ValueType>,
    pub(crate) items: &'static [Item],
    pub(crate) options: &'static [CommandOption],
    pub(crate) reply: Option<ReplyRule>,
    pub(crate) rules: &'static [Rule],
    pub(crate) has_keys: bool,
    pub(crate) has_values: bool,
}

impl Row {
    /// Row of a command that has none of its own.
    pub(crate) const NONE: Row = Row {
        value_type: None,
        items: &[Item::Rest],
        options: &[],
        reply: None,
        rules: &[],
        has_keys: false,
        has_values: false,
    };
}

/// Option among the arguments, with arguments of its own.
#[derive(Debug)]
pub(crate) struct CommandOption {
    pub(crate) word: Word,
    pub(crate) items: &'static [Item],
}

/// Some options of one row, a bit for each in their order.
pub(crate) type Given = u64;

/// Shape of the reply, and the options under which it has values.
#[derive(Debug)]
pub(crate) struct ReplyRule {
    pub(crate) shape: &'static Shape,
    /// Options of which one must be given; always applies if there are none.
    pub(crate) with: Given,
    /// Options of which none may be given.
    pub(crate) without: Given,
}

/// Condition under which a command is refused, and the reason.
#[derive(Debug)]
pub struct Rule {
    pub(crate) types: ValueTypes,
    pub(crate) with: Given,
    pub(crate) with_names: &'static [&'static str],
    pub(crate) reason: &'static Reason,
}

impl Rule {
    /// Returns the types for which it applies: to clients that compress values of one of these.
    pub fn types(&self) -> ValueTypes {
        self.types
    }

    /// Returns the options with one of which it applies; always if there are none.
    pub fn with(&self) -> &'static [&'static str] {
        self.with_names
    }

    /// Returns the reason of the refusal.
    pub fn reason(&self) -> &'static Reason {
        self.reason
    }
}

impl Command {
    /// Returns its index among all [`commands`], for tables with more about each.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the name in capitals.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the type of the values that it carries, in its arguments or its reply; `None` if it carries
    /// none.
    pub fn value_type(&self) -> Option<ValueType> {
        self.row.value_type
    }

    /// Returns whether there may be values among its arguments.
    pub fn writes_values(&self) -> bool {
        self.row.has_values
    }

    /// Returns whether its reply has values without an option that asks for them.
    pub fn reads_values(&self) -> bool {
        self.row.reply.as_ref().is_some_and(|rule| rule.with == 0)
    }

    /// Returns the shape of its reply, if that may have values.
    pub fn reply(&self) -> Option<&'static Shape> {
        self.row.reply.as_ref().map(|rule| rule.shape)
    }

    /// Returns whether nothing but its reply has values, and that whatever its arguments are: it need not be
    /// interpreted again.
    pub fn is_only_read(&self) -> bool {
        let is_constant = |rule: &ReplyRule| rule.with == 0 && rule.without == 0;
        !self.row.has_values && self.row.rules.is_empty() && self.row.reply.as_ref().is_some_and(is_constant)
    }

    /// Returns the rules by which it is refused; an argument that would be compared with stored values is not
    /// among them.
    pub fn rules(&self) -> &'static [Rule] {
        self.row.rules
    }
}

/// Returns all commands that the table names.
pub fn commands() -> &'static [Command] {
    &COMMANDS
}

/// Returns a command by its name in any case; `None` if the table does not name it.
#[inline]
pub fn command(name: &[u8]) -> Option<&'static Command> {
    let word = Word::read(name)?;
    let mut slot = word.slot(SLOT_BITS);
    // A slot has the number of a command, counted from 1; the first empty one ends the search.
    while let Some(at) = SLOTS[slot].checked_sub(1) {
        let found = &COMMANDS[usize::from(at)];
        if found.word == word {
            return Some(found);
        }
        slot = (slot + 1) % SLOTS.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for (number, each) in commands().iter().enumerate() {
            assert_eq!(each.number(), number, "{}", each.name);
            for name in [each.name.to_owned(), each.name.to_lowercase()] {
                assert!(std::ptr::eq(command(name.as_bytes()).unwrap(), each), "{name}");
            }
        }
    }

    #[test]
    fn names_that_the_table_does_not_have_are_not_found() {
        for name in ["", "GE", "GETT", "FT.SEARCH", "CONFIG|GET", "GEORADIUSBYMEMBER_ROO"] {
            assert!(command(name.as_bytes()).is_none(), "{name}");
        }
        assert!(command(&[b'G'; 1000]).is_none());
    }

    #[test]
    fn slots_are_at_most_half_full() {
        assert!(COMMANDS.len() * 2 <= SLOTS.len());
    }
}
