//! INFO: sections of fields, for people and for the tools that look for Valkey's names in them.
//!
//! - `process`: the server, its clients, its memory and processor time
//! - `counters`: what was done, by command and in all
//! - `compression`: what the codecs did
//! - `dictionaries`: what is learned for values that are alike
//! - `lists`: what lists take
//! - `disk`: the disk tier
//! - `memcached`: requests in memcached's protocols
//! - `persistence`: RDB files
//! - `replication`: the primary that the server follows
//! - `absent`: what other servers have and this one does not, where tools ask for it
//!
//! A field states a fact. An unknown one is left out; a feature that does not exist is 0. Numbers are rows (`stat`),
//! from which the metrics are made, too.

mod absent;
pub(crate) mod compression;
mod counters;
pub(crate) mod dictionaries;
mod disk;
mod lists;
mod memcached;
mod persistence;
mod process;
mod replication;

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use crate::stat::{Group, Source, Stat, Value};
use crate::state::Server;
pub(crate) use process::{REDIS_VERSION, process_seconds};

/// The names of the fields of what is learned: of all dictionaries together, of one, of a class of values, and of what is
/// decided for a class.
pub fn learned_fields() -> [Vec<&'static str>; 4] {
    let [all, dictionary, class] = dictionaries::fields();
    [all, dictionary, class, compression::decision_fields()]
}

struct Section {
    name: &'static str,
    /// Whether INFO without arguments shows it.
    default: bool,
    write: fn(&Server, &mut Fields),
}

#[rustfmt::skip]
const SECTIONS: &[Section] = &[
    Section { name: "Server", default: true, write: process::server },
    Section { name: "Clients", default: true, write: process::clients },
    Section { name: "Memory", default: true, write: process::memory },
    Section { name: "Persistence", default: true, write: persistence::persistence },
    Section { name: "Stats", default: true, write: counters::stats },
    Section { name: "Compression", default: true, write: compression::compression },
    Section { name: "Dictionaries", default: true, write: dictionaries::dictionaries },
    Section { name: "Lists", default: true, write: lists::lists },
    Section { name: "Disk", default: true, write: disk::disk },
    Section { name: "Memcached", default: true, write: memcached::memcached },
    Section { name: "Replication", default: true, write: replication::replication },
    Section { name: "CPU", default: true, write: process::cpu },
    Section { name: "Modules", default: true, write: absent::modules },
    Section { name: "Commandstats", default: false, write: counters::commandstats },
    Section { name: "Errorstats", default: true, write: counters::errorstats },
    Section { name: "Latencystats", default: false, write: counters::latencystats },
    Section { name: "Cluster", default: true, write: absent::cluster },
    Section { name: "Keyspace", default: true, write: counters::keyspace },
];

/// Sources of the numbers that are metrics, in the order in which these are shown.
pub(crate) static SOURCES: [&dyn Source; 24] = [
    &process::BUILD,
    &process::UPTIME,
    &process::CLIENTS,
    &process::MEMORY,
    &process::CPU,
    &counters::STATS,
    &counters::KEYSPACE,
    &counters::COMMANDS,
    &counters::LATENCIES,
    &counters::ERRORS,
    &compression::TOTALS,
    &compression::CODECS,
    &compression::RECOMPRESSION,
    &compression::BACKGROUND,
    &compression::DRAFTS,
    &compression::CLASSES,
    &compression::CLASS_CODECS,
    &dictionaries::LEARNED,
    &dictionaries::DICTIONARIES,
    &lists::LISTS,
    &disk::DISK,
    &disk::BACKUPS,
    &memcached::EVENTS,
    &replication::REPLICATION,
];

/// The lines of a section.
struct Fields(String);

impl Fields {
    fn add(&mut self, name: &str, value: impl Display) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    fn add_all<V: Display>(&mut self, fields: impl IntoIterator<Item = (&'static str, V)>) {
        fields.into_iter().for_each(|(name, value)| self.add(name, value));
    }

    /// A line for each stat that is known.
    fn lines<T>(&mut self, group: &Group<T>, server: &Server) {
        (group.each)(server, &mut |_, thing| {
            for stat in group.stats.iter().filter(|stat| !stat.field.is_empty()) {
                let value = (stat.value)(thing);
                if value != Value::Unknown {
                    self.add(stat.field, &value);
                }
                if let Value::Bytes(bytes) = value {
                    self.add(&format!("{}_human", stat.field), human(bytes));
                }
            }
        });
    }
}

/// All stats of one thing in one line: `keys=3,expires=0`.
fn words<T>(stats: &[Stat<T>], thing: &T) -> String {
    let shown = stats.iter().filter(|stat| !stat.field.is_empty());
    let words: Vec<_> = shown.map(|stat| format!("{}={}", stat.field, (stat.value)(thing))).collect();
    words.join(",")
}

/// The text of INFO for the named sections (lower case); none is the default ones.
pub(crate) fn text(server: &Arc<Server>, names: &[String]) -> String {
    let named = |wanted: &str| names.iter().any(|name| name == wanted);
    let everything = named("all") || named("everything");
    let defaults = names.is_empty() || named("default");
    let asked = |section: &&Section| {
        everything || defaults && section.default || named(&section.name.to_ascii_lowercase())
    };
    let mut fields = Fields(String::new());
    for section in SECTIONS.iter().filter(asked) {
        if !fields.0.is_empty() {
            fields.0.push_str("\r\n");
        }
        // Writing to a String cannot fail.
        let _ = write!(fields.0, "# {}\r\n", section.name);
        (section.write)(server, &mut fields);
    }
    fields.0
}

/// The lines of one section, whose name is in any case; empty if there is no such section.
pub(crate) fn section(server: &Arc<Server>, name: &[u8]) -> String {
    let mut fields = Fields(String::new());
    if let Some(section) = SECTIONS.iter().find(|section| section.name.as_bytes().eq_ignore_ascii_case(name))
    {
        (section.write)(server, &mut fields);
    }
    fields.0
}

/// An amount of bytes for people.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes}B") } else { format!("{amount:.2}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_in_the_largest_unit_that_fits() {
        for (bytes, shown) in
            [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (1_572_864, "1.50M"), (3 << 40, "3.00T")]
        {
            assert_eq!(human(bytes), shown);
        }
    }
}
