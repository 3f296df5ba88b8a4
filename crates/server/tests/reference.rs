//! docs/reference.md says what the program does: its tables have a row for everything that there is, and for nothing
//! else. With WRITE_REFERENCE=1 in the environment the tables of settings and metrics are written instead.

// The reference describes a build with every codec; another build has another default.
#![cfg(all(feature = "zstd", feature = "lz4"))]

use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;

use snugly_codec::DESCRIPTORS;
use snugly_server::{Described, SETTINGS, Setting, command_names, learned_fields, metrics};
use snugly_store::EvictionPolicy;

const REFERENCE: &str = include_str!("../../../docs/reference.md");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");

#[test]
fn every_setting_has_its_row() {
    let row = |setting: &Setting| {
        let default = match setting.default {
            "" => "empty".to_owned(),
            default => format!("`{default}`"),
        };
        let live = if setting.live { "yes" } else { "no" };
        let Setting { name, value_name, help, .. } = setting;
        format!("| `--{name} {value_name}` | `{}` | {default} | {live} | {help} |", setting.config_name())
    };
    assert_rows("## Settings", SETTINGS.iter().map(row));
}

#[test]
fn every_command_is_listed_and_no_other() {
    let listed: BTreeSet<&str> =
        rows("## Commands").iter().flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let commands = command_names();
    assert_eq!(listed, commands.iter().map(String::as_str).collect());
}

#[test]
fn every_counter_has_its_row() {
    let row = |name: String, help| format!("| `{name}` | {help} |");
    let mut expected = Vec::new();
    for counter in &DESCRIPTORS {
        let suffix = if counter.codec.is_some() { "_CODEC" } else { "" };
        let row = row(format!("{}{suffix}", counter.family), counter.help);
        if expected.last() != Some(&row) {
            expected.push(row);
        }
    }
    assert_rows("### Counters", expected.into_iter());
}

#[test]
fn every_metric_has_its_row() {
    let row = |Described { name, kind, labels, help }: Described| {
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{name}` | {kind} | {} | {help} |", labels.join(", ")).replace("|  |", "| |")
    };
    assert_rows("## Metrics", metrics().into_iter().map(row));
}

#[test]
fn every_field_about_what_is_learned_has_its_row() {
    let headings = ["## INFO dictionaries", "### One dictionary", "### One class", "### One decision"];
    for (heading, fields) in headings.into_iter().zip(learned_fields()) {
        let named: Vec<_> = rows(heading).iter().filter_map(|row| row.split('`').nth(1)).collect();
        assert_eq!(named, fields, "{heading}");
    }
}

#[test]
fn every_eviction_policy_has_its_row() {
    let named: Vec<&str> = rows("### Eviction").iter().filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(named, EvictionPolicy::names().collect::<Vec<_>>());
}

/// The rows of the first table behind a heading, without its head.
fn rows(heading: &str) -> Vec<&'static str> {
    let (_, section) =
        REFERENCE.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).skip(2);
    lines.take_while(|line| line.starts_with('|')).collect()
}

fn assert_rows(heading: &str, expected: impl Iterator<Item = String>) {
    let expected: Vec<String> = expected.collect();
    if std::env::var_os("WRITE_REFERENCE").is_some() {
        return write_rows(heading, &expected);
    }
    assert!(rows(heading) == expected, "the table of {heading} must be\n{}", expected.join("\n"));
}

/// Writes these rows in place of those behind a heading.
fn write_rows(heading: &str, expected: &[String]) {
    // Tests run beside each other, and each writes its own table.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let text = fs::read_to_string(PATH).expect("the reference");
    let before = rows(heading).join("\n");
    assert!(text.contains(&before), "the table of {heading} was changed meanwhile");
    fs::write(PATH, text.replace(&before, &expected.join("\n"))).expect("it can be written");
}
