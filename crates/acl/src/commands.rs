//! The commands that rules are about, and sets of them.

use std::ops::Range;

/// A command.
#[derive(Clone, Debug)]
pub struct Row {
    /// `get`, or `config|get` for a subcommand.
    pub full_name: &'static str,
    /// Names of its categories, without the `@`.
    pub categories: &'static [String],
}

/// All commands, each at a place of its own; subcommands of one container stand together.
pub struct Commands {
    rows: Vec<Row>,
    categories: &'static [&'static str],
    /// Returns whether there is a command of this name elsewhere, about which rules are accepted without effect.
    is_known: fn(&str) -> bool,
}

/// The commands that a rule names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Commands at these places: several of a container, none of a command that is not here.
    Rows(Range<usize>),
    /// A command without subcommands, with this first argument.
    FirstArgument(usize, String),
}

impl Commands {
    /// A table with these rows and categories.
    pub fn new(rows: Vec<Row>, categories: &'static [&'static str], is_known: fn(&str) -> bool) -> Commands {
        Commands { rows, categories, is_known }
    }

    /// Number of commands.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The names of all categories, in their order.
    pub fn categories(&self) -> &'static [&'static str] {
        self.categories
    }

    /// The commands of a category, if there is such a category.
    pub(crate) fn in_category(&self, name: &str) -> Option<impl Iterator<Item = usize>> {
        let name = *self.categories.iter().find(|known| **known == name)?;
        let rows = self.rows.iter().enumerate();
        Some(rows.filter(move |(_, row)| row.categories.iter().any(|of| of == name)).map(|(place, _)| place))
    }

    /// The full names of a category's commands, if there is such a category.
    pub fn names_in(&self, category: &str) -> Option<Vec<&'static str>> {
        Some(self.in_category(category)?.map(|place| self.rows[place].full_name).collect())
    }

    /// The commands that a name in a rule stands for, in lower case; `None` if it stands for none.
    pub(crate) fn named(&self, name: &str) -> Option<Named> {
        if let Some(range) = self.of(name) {
            return Some(Named::Rows(range));
        }
        let (container, argument) =
            name.split_once('|').map_or((name, None), |(name, argument)| (name, Some(argument)));
        match (self.of(container), argument) {
            (Some(range), Some(argument)) => {
                let is_plain = self.rows[range.start].full_name == container && range.len() == 1;
                is_plain.then(|| Named::FirstArgument(range.start, argument.to_owned()))
            }
            _ => (self.is_known)(container).then_some(Named::Rows(0..0)),
        }
    }

    /// Returns whether a name is that of a subcommand, and not of a container or a plain command.
    pub(crate) fn is_subcommand(&self, name: &str) -> bool {
        name.contains('|') && self.rows.iter().any(|row| row.full_name == name)
    }

    /// The places of a command, or of all subcommands of a container and its own.
    fn of(&self, name: &str) -> Option<Range<usize>> {
        let is_of = |row: &&Row| {
            row.full_name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        };
        let first = self.rows.iter().position(|row| is_of(&row))?;
        let count = self.rows[first..].iter().take_while(is_of).count();
        Some(first..first + count)
    }
}

/// A set of commands by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    words: Box<[u64]>,
}

impl Places {
    pub(crate) fn none(commands: &Commands) -> Places {
        Places { words: vec![0; commands.len().div_ceil(64)].into() }
    }

    pub(crate) fn all(commands: &Commands) -> Places {
        let mut all = Places::none(commands);
        (0..commands.len()).for_each(|place| all.set(place, true));
        all
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.words[place / 64] & (1 << (place % 64)) != 0
    }

    pub(crate) fn set(&mut self, place: usize, is_member: bool) {
        let bit = 1 << (place % 64);
        match is_member {
            true => self.words[place / 64] |= bit,
            false => self.words[place / 64] &= !bit,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::LazyLock;

    use super::*;

    static CATEGORIES: LazyLock<[Vec<String>; 4]> = LazyLock::new(|| {
        [&["read", "fast"][..], &["write"], &["admin", "dangerous"], &["fast", "connection"]]
            .map(|names| names.iter().map(|name| (*name).to_owned()).collect())
    });

    /// A few commands of each kind.
    pub(crate) fn commands() -> Commands {
        let [read, write, admin, connection] = &*CATEGORIES;
        let rows = [
            ("get", read),
            ("set", write),
            ("config|get", admin),
            ("config|set", admin),
            ("memory", admin),
            ("memory|usage", read),
            ("select", connection),
        ];
        let rows = rows.into_iter().map(|(full_name, categories)| Row { full_name, categories });
        let categories = &["read", "write", "admin", "dangerous", "fast", "connection", "hash"];
        Commands::new(rows.collect(), categories, |name| name == "hget")
    }

    #[test]
    fn names_stand_for_commands_containers_subcommands_and_first_arguments() {
        let commands = commands();
        for (name, expected) in [
            ("get", Some(Named::Rows(0..1))),
            ("config", Some(Named::Rows(2..4))),
            ("config|set", Some(Named::Rows(3..4))),
            ("memory", Some(Named::Rows(4..6))),
            ("select|0", Some(Named::FirstArgument(6, "0".into()))),
            ("hget", Some(Named::Rows(0..0))),
            ("hget|x", Some(Named::Rows(0..0))),
            ("config|nosuch", None),
            ("ge", None),
            ("nosuch|0", None),
            ("", None),
        ] {
            assert_eq!(commands.named(name), expected, "{name}");
        }
    }

    #[test]
    fn categories_have_commands_or_none() {
        let commands = commands();
        let of = |name| commands.in_category(name).map(Iterator::collect::<Vec<_>>);
        assert_eq!(of("fast"), Some(vec![0, 5, 6]));
        assert_eq!(of("hash"), Some(vec![]));
        assert_eq!(of("nosuch"), None);
    }
}
