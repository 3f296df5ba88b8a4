//! The parts of COMMAND DOCS, COMMAND INFO and HELP that the command table does not have: Valkey's own words, kept as
//! data in `documentation.json`, which `make command-documentation` writes.
//!
//! The commands that Valkey does not have are in `own_documentation.json`, which is written by hand.

use std::collections::HashMap;
use std::mem;
use std::sync::LazyLock;

use serde::Deserialize;

static DOCUMENTATION: LazyLock<HashMap<String, Documentation>> = LazyLock::new(complete);

/// The documentation of one command.
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
    /// The reply to HELP, by subcommand and in its order; of a subcommand of its own, the reply to its container's
    /// HELP.
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

/// Positions of keys among the arguments, and the access to them.
#[derive(Deserialize)]
pub(super) struct KeySpecification {
    pub(super) notes: Option<String>,
    pub(super) flags: Vec<String>,
    pub(super) begin_search: BeginSearch,
    pub(super) find_keys: FindKeys,
}

impl KeySpecification {
    /// Returns whether it is about keys, rather than names of shard channels, which a cluster places like keys.
    pub(super) fn is_about_keys(&self) -> bool {
        !self.flags.iter().any(|flag| flag == "not_key")
    }
}

/// Position of the first key.
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

/// Positions of the others, from the first one on.
#[derive(Deserialize)]
#[serde(tag = "type", content = "spec", rename_all = "lowercase")]
pub(super) enum FindKeys {
    /// Each `keystep` arguments up to `lastkey` (from the first key, or if negative from the end), or up to the part of
    /// the rest that `limit` says.
    Range { lastkey: i64, keystep: i64, limit: i64 },
    /// A count in the argument `keynumidx`, and keys each `keystep` arguments from `firstkey` on.
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

/// The documentation of the command of this full name (`config|get`).
///
/// # Panics
/// If there is no such command.
pub(super) fn documentation(full_name: &str) -> &'static Documentation {
    &DOCUMENTATION[full_name]
}

/// Valkey's data and the own.
fn complete() -> HashMap<String, Documentation> {
    let mut all = parse(include_str!("documentation.json"));
    for (full_name, mut own) in parse(include_str!("own_documentation.json")) {
        let container = full_name.split_once('|').and_then(|(container, _)| all.get_mut(container));
        if let Some(Documentation { help, .. }) = container {
            let before = help.iter().position(|part| part.subcommand == "help").unwrap_or(help.len());
            help.splice(before..before, mem::take(&mut own.help));
        }
        all.insert(full_name, own);
    }
    all
}

fn parse(text: &str) -> HashMap<String, Documentation> {
    serde_json::from_str(text).expect("a test reads the same text")
}

#[cfg(test)]
mod tests {
    use super::super::{Command, GROUPS};
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
