//! What COMMAND DOCS, COMMAND INFO and HELP tell of a command and the command table does not say: Valkey's own words, kept
//! as data in `documentation.json`, which `make command-documentation` writes.
//!
//! Of a command that Valkey does not have, its row in the table says all that there is.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::{Command, Flags, GROUPS, Group, Keys, NO_KEYS};

static DOCUMENTATION: LazyLock<HashMap<String, Documentation>> = LazyLock::new(complete);

/// What is told of one command.
#[derive(Deserialize)]
pub(super) struct Documentation {
    pub(super) summary: String,
    pub(super) since: String,
    pub(super) group: String,
    pub(super) complexity: Option<String>,
    #[serde(default)]
    pub(super) doc_flags: Vec<String>,
    pub(super) deprecated_since: Option<String>,
    pub(super) replaced_by: Option<String>,
    /// Version and what changed in it.
    #[serde(default)]
    pub(super) history: Vec<(String, String)>,
    #[serde(default)]
    pub(super) arguments: Vec<Argument>,
    #[serde(default)]
    pub(super) acl_categories: Vec<String>,
    #[serde(default)]
    pub(super) tips: Vec<String>,
    #[serde(default)]
    pub(super) key_specifications: Vec<KeySpecification>,
    /// What HELP answers, by subcommand and in its order.
    #[serde(default)]
    pub(super) help: Vec<Help>,
}

/// An argument, or several that belong together.
#[derive(Deserialize)]
pub(super) struct Argument {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) display_text: Option<String>,
    pub(super) key_spec_index: Option<i64>,
    pub(super) token: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) since: Option<String>,
    pub(super) deprecated_since: Option<String>,
    #[serde(default)]
    pub(super) flags: Vec<String>,
    #[serde(default)]
    pub(super) arguments: Vec<Argument>,
}

/// Where keys are among the arguments, and what is done with them.
#[derive(Deserialize)]
pub(super) struct KeySpecification {
    pub(super) notes: Option<String>,
    pub(super) flags: Vec<String>,
    pub(super) begin_search: BeginSearch,
    pub(super) find_keys: FindKeys,
}

/// Where the first key is.
#[derive(Deserialize)]
#[serde(tag = "type", content = "spec", rename_all = "lowercase")]
pub(super) enum BeginSearch {
    /// At this argument.
    Index { index: i64 },
    /// Behind a word, looked for from this argument on (negative: from the end, backwards).
    Keyword { keyword: String, startfrom: i64 },
    /// Only the command knows.
    Unknown {},
}

/// Where the others are, from the first one on.
#[derive(Deserialize)]
#[serde(tag = "type", content = "spec", rename_all = "lowercase")]
pub(super) enum FindKeys {
    /// Each `keystep` arguments up to `lastkey` (from the first key, or if negative from the end), or up to the part of
    /// the rest that `limit` says.
    Range { lastkey: i64, keystep: i64, limit: i64 },
    /// As many as the argument `keynumidx` says, each `keystep` arguments from `firstkey` on.
    KeyNum { keynumidx: i64, firstkey: i64, keystep: i64 },
    /// Only the command knows.
    Unknown {},
}

/// The lines of HELP about one subcommand.
#[derive(Deserialize)]
pub(super) struct Help {
    pub(super) subcommand: String,
    pub(super) lines: Vec<String>,
}

/// What is told of the command of this full name (`config|get`).
///
/// # Panics
/// If there is no such command.
pub(super) fn documentation(full_name: &str) -> &'static Documentation {
    &DOCUMENTATION[full_name]
}

/// The data, and what the rows say where there is none.
fn complete() -> HashMap<String, Documentation> {
    let mut all: HashMap<String, Documentation> =
        serde_json::from_str(include_str!("documentation.json")).expect("a test reads the same text");
    for (group, command) in GROUPS.iter().flat_map(|group| group.commands.iter().map(move |row| (group, row)))
    {
        all.entry(command.name.to_owned()).or_insert_with(|| of_row(group, command));
        for row in command.subcommands() {
            all.entry(format!("{}|{}", command.name, row.name)).or_insert_with(|| of_row(group, row));
            let help = &mut all.get_mut(command.name).expect("it was just inserted").help;
            if !help.iter().any(|part| part.subcommand == row.name) {
                // HELP itself comes last.
                help.insert(help.len().saturating_sub(1), help_of_row(row));
            }
        }
    }
    all
}

fn of_row(group: &Group, command: &Command) -> Documentation {
    Documentation {
        summary: command.summary.to_owned(),
        since: command.since.to_owned(),
        group: group.name.to_owned(),
        complexity: None,
        doc_flags: Vec::new(),
        deprecated_since: None,
        replaced_by: None,
        history: Vec::new(),
        arguments: Vec::new(),
        acl_categories: acl_categories(group, command.flags),
        tips: Vec::new(),
        key_specifications: key_specification(command).into_iter().collect(),
        help: Vec::new(),
    }
}

fn acl_categories(group: &Group, flags: Flags) -> Vec<String> {
    let of_group = match group.name {
        "string" => Some("string"),
        "bitmap" => Some("bitmap"),
        "generic" => Some("keyspace"),
        "connection" => Some("connection"),
        _ => None,
    };
    let by_flag = [
        (flags.has(Flags::WRITE), "write"),
        (flags.has(Flags::READONLY), "read"),
        (flags.has(Flags::ADMIN), "admin"),
        (flags.has(Flags::DANGEROUS), "dangerous"),
        (flags.has(Flags::FAST), "fast"),
        (!flags.has(Flags::FAST), "slow"),
    ];
    let by_flag = by_flag.into_iter().filter_map(|(has, name)| has.then_some(name));
    of_group.into_iter().chain(by_flag).map(str::to_owned).collect()
}

fn key_specification(command: &Command) -> Option<KeySpecification> {
    if command.keys == NO_KEYS {
        return None;
    }
    let Keys { first, last, step } = command.keys;
    let (first, last, step) = (i64::from(first), i64::from(last), i64::from(step));
    let access = if command.flags.has(Flags::WRITE) { "RW" } else { "RO" };
    let (index, find_keys) = if command.keys.are_counted() {
        (first - 1, FindKeys::KeyNum { keynumidx: 0, firstkey: 1, keystep: step })
    } else {
        // The range counts from the first key; a negative end counts from the last argument.
        let lastkey = if last < 0 { last } else { last - first };
        (first, FindKeys::Range { lastkey, keystep: step, limit: 0 })
    };
    Some(KeySpecification {
        notes: None,
        flags: vec![access.to_owned()],
        begin_search: BeginSearch::Index { index },
        find_keys,
    })
}

fn help_of_row(row: &Command) -> Help {
    let key = if row.keys == NO_KEYS { "" } else { " <key>" };
    let lines = vec![format!("{}{key}", row.name.to_ascii_uppercase()), format!("    {}", row.summary)];
    Help { subcommand: row.name.to_owned(), lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_documented() {
        for command in GROUPS.iter().flat_map(|group| group.commands) {
            assert!(!documentation(command.name).summary.is_empty(), "{}", command.name);
            for row in command.subcommands() {
                let full_name = format!("{}|{}", command.name, row.name);
                assert!(!documentation(&full_name).summary.is_empty(), "{full_name}");
                let help = &documentation(command.name).help;
                assert!(help.iter().any(|part| part.subcommand == row.name), "{full_name} is in no HELP");
            }
        }
    }

    #[test]
    fn help_is_about_commands_that_there_are() {
        for command in GROUPS.iter().flat_map(|group| group.commands) {
            let subcommands = command.subcommands();
            for part in &documentation(command.name).help {
                let known = |row: &Command| row.name == part.subcommand;
                assert!(
                    subcommands.is_empty() || part.subcommand.is_empty() || subcommands.iter().any(known),
                    "`make command-documentation` forgets {} {}",
                    command.name,
                    part.subcommand
                );
            }
        }
    }
}
