//! Which commands are used, by the server's own account, and what a compressing client makes of them: the table of the
//! specification says that.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::deployment::Deployment;
use super::pace::Stop;

const TABLE: &str = include_str!("../../../../spec/commands.json");

/// What the table says of commands, as far as it is asked here.
#[derive(Deserialize)]
struct Table {
    reasons: BTreeMap<String, String>,
    commands: BTreeMap<String, Row>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    arguments: Value,
    reply: Option<Value>,
    #[serde(default)]
    refuse: Vec<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    types: Vec<String>,
    #[serde(default)]
    with: Vec<String>,
    reason: String,
}

/// Commands that `analyze` calls itself and that compressing clients refuse. What earlier runs have called cannot be told
/// from what applications call, so only calls while it looks count, which is before its own.
pub(crate) const OWN_COMMANDS: [&str; 2] = ["STRLEN", "GETRANGE"];

/// Calls of commands, by their names in capitals.
type Calls = BTreeMap<String, u64>;

/// Which commands are used.
#[derive(Debug, Serialize)]
pub(crate) struct Traffic {
    /// Over which time rates were observed, in words.
    pub(crate) observed: String,
    /// Whether that is all the time since the server was started.
    pub(crate) is_since_start: bool,
    /// Values written and read by commands on strings, a second. A call counts as one value.
    pub(crate) writes_per_second: f64,
    pub(crate) reads_per_second: f64,
    /// Commands in use that a compressing client refuses.
    pub(crate) refused: Vec<Refused>,
    /// Commands in use on values that are compressed only if `value_types` says so.
    pub(crate) opt_in: Vec<OptIn>,
}

/// A command in use that a compressing client refuses.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Refused {
    pub(crate) command: String,
    /// Since the server's counters were reset.
    pub(crate) calls: u64,
    /// Only with one of these options, which the server does not count; always if there are none.
    pub(crate) with: Vec<String>,
    /// Only where `value_types` has one of these.
    pub(crate) value_types: Vec<String>,
    pub(crate) reason: String,
}

/// A command in use on values other than strings.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OptIn {
    pub(crate) command: String,
    pub(crate) calls: u64,
    pub(crate) value_type: String,
}

/// Asks which commands are used: twice, `pause` apart, or once for the time since the server was started if there is no
/// pause. Nothing if nobody may ask.
pub(crate) fn observe(deployment: &mut Deployment, pause: Duration, stop: &Stop) -> Result<Option<Traffic>> {
    let Some(before) = calls(deployment)? else { return Ok(None) };
    let started = Instant::now();
    stop.sleep_until(started + pause);
    let seconds = started.elapsed().as_secs_f64();
    if pause.is_zero() || stop.is_set() {
        let uptime: f64 =
            deployment.info.get("uptime_in_seconds").and_then(|text| text.parse().ok()).unwrap_or(1.0);
        let observed = format!(
            "since the server was started, {} ago",
            indicatif::HumanDuration(Duration::from_secs_f64(uptime))
        );
        let traffic = Traffic::of(&before, &before, uptime.max(1.0), observed);
        return Ok(Some(Traffic { is_since_start: true, ..traffic }));
    }
    let Some(after) = calls(deployment)? else { return Ok(None) };
    let meanwhile = after.iter().map(|(name, calls)| {
        let earlier = before.get(name).copied().unwrap_or_default();
        (name.clone(), calls.saturating_sub(earlier))
    });
    let observed = format!("over {seconds:.0} s just now");
    Ok(Some(Traffic::of(&after, &meanwhile.collect(), seconds, observed)))
}

fn calls(deployment: &mut Deployment) -> Result<Option<Calls>> {
    let mut calls = Calls::new();
    for node in &mut deployment.nodes {
        let Some(info) = node.info("commandstats")? else { return Ok(None) };
        for (name, text) in &info {
            if let Some((name, count)) = parse(name, text) {
                *calls.entry(name).or_default() += count;
            }
        }
    }
    Ok(Some(calls))
}

/// A command and its calls, from a line such as `cmdstat_get:calls=7,usec=9,...`.
fn parse(name: &str, text: &str) -> Option<(String, u64)> {
    let name = name.strip_prefix("cmdstat_")?.to_uppercase();
    let count = text.split(',').find_map(|field| field.strip_prefix("calls="))?;
    Some((name, count.parse().ok()?))
}

impl Traffic {
    fn of(all: &Calls, meanwhile: &Calls, seconds: f64, observed: String) -> Traffic {
        let table: Table = serde_json::from_str(TABLE).expect("the specification's table can be read");
        let rate = |is_meant: &dyn Fn(&Row) -> bool| {
            let meant = meanwhile.iter().filter(|(name, _)| table.commands.get(*name).is_some_and(is_meant));
            meant.map(|(_, calls)| *calls).sum::<u64>() as f64 / seconds
        };
        let of_strings = |row: &Row| row.kind.as_deref() == Some("strings");
        let used = || all.iter().filter(|(_, calls)| **calls > 0);
        let own = |name: &str| OWN_COMMANDS.contains(&name);
        let counted = |name: &String, calls: u64| {
            if own(name) { meanwhile.get(name).copied().unwrap_or_default() } else { calls }
        };
        let refused = (used().map(|(name, calls)| (name, counted(name, *calls))))
            .filter(|(_, calls)| *calls > 0)
            .flat_map(|(name, calls)| table.refused(name, calls));
        let opt_in = used().filter_map(|(name, calls)| {
            let kind = table.commands.get(name)?.kind.clone().filter(|kind| kind != "strings")?;
            Some(OptIn { command: name.clone(), calls: *calls, value_type: kind })
        });
        Traffic {
            writes_per_second: rate(&|row| of_strings(row) && row.writes()),
            reads_per_second: rate(&|row| of_strings(row) && row.reads()),
            refused: refused.collect(),
            opt_in: opt_in.collect(),
            observed,
            is_since_start: false,
        }
    }

    /// How often a value is read for each time that it is written; once if nobody knows.
    pub(crate) fn reads_for_each_write(&self) -> f64 {
        if self.writes_per_second == 0.0 { 1.0 } else { self.reads_per_second / self.writes_per_second }
    }
}

impl Table {
    fn refused(&self, name: &str, calls: u64) -> Vec<Refused> {
        let rules = self.commands.get(name).map_or(&[][..], |row| &row.refuse);
        let refused = rules.iter().map(|rule| Refused {
            command: name.to_owned(),
            calls,
            with: rule.with.clone(),
            value_types: rule.types.iter().filter(|kind| *kind != "strings").cloned().collect(),
            reason: self.reasons.get(&rule.reason).cloned().unwrap_or_else(|| rule.reason.clone()),
        });
        refused.collect()
    }
}

impl Row {
    fn writes(&self) -> bool {
        self.arguments.to_string().contains("\"value\"")
    }

    /// Commands that give the old value back if they are asked to are counted as writes only.
    fn reads(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.get("with").is_none())
    }
}

impl Refused {
    /// When it is refused, if not always.
    pub(crate) fn condition(&self) -> String {
        let with = (!self.with.is_empty()).then(|| format!("with {}", self.with.join(" or ")));
        let types = self.value_types.join(" or ");
        let types = (!types.is_empty()).then(|| format!("if value_types has {types}"));
        [with, types].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(calls: &[(&str, u64)]) -> Traffic {
        let calls = calls.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect();
        Traffic::of(&calls, &calls, 10.0, String::new())
    }

    #[test]
    fn lines_of_command_statistics_are_read() {
        assert_eq!(parse("cmdstat_get", "calls=7,usec=9,rejected_calls=0"), Some(("GET".to_owned(), 7)));
        assert_eq!(parse("cmdstat_config|get", "calls=1"), Some(("CONFIG|GET".to_owned(), 1)));
        assert_eq!(parse("errorstat_ERR", "count=1"), None);
    }

    #[test]
    fn where_nothing_is_called_rates_are_zero() {
        let traffic = traffic(&[]);
        assert_eq!(format!("{:.1} {:.1}", traffic.writes_per_second, traffic.reads_per_second), "0.0 0.0");
    }

    #[test]
    fn values_written_and_read_are_those_of_strings() {
        let traffic =
            traffic(&[("SET", 100), ("SETEX", 50), ("GET", 900), ("MGET", 100), ("HSET", 70), ("PING", 9)]);
        assert_eq!((traffic.writes_per_second, traffic.reads_per_second), (15.0, 100.0));
        assert_eq!(
            traffic.opt_in,
            [OptIn { command: "HSET".into(), calls: 70, value_type: "hashes".into() }]
        );
        assert!(traffic.refused.iter().all(|refused| refused.command == "SET" && !refused.with.is_empty()));
    }

    #[test]
    fn what_earlier_runs_have_called_is_not_taken_for_use() {
        let calls = |calls: &[(&str, u64)]| -> Calls {
            calls.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect()
        };
        let all = calls(&[("STRLEN", 5_000), ("GETRANGE", 70), ("APPEND", 3)]);
        let meanwhile = calls(&[("STRLEN", 0), ("GETRANGE", 2), ("APPEND", 0)]);
        let traffic = Traffic::of(&all, &meanwhile, 5.0, String::new());
        let told: Vec<_> = traffic.refused.iter().map(|row| (&row.command[..], row.calls)).collect();
        assert_eq!(told, [("APPEND", 3), ("GETRANGE", 2)]);
    }

    #[test]
    fn commands_that_would_be_refused_come_with_the_reason_of_the_specification() {
        let traffic = traffic(&[("APPEND", 3), ("HSTRLEN", 2), ("STRLEN", 0)]);
        let told: Vec<_> =
            traffic.refused.iter().map(|row| (row.command.as_str(), row.condition())).collect();
        assert_eq!(told, [("APPEND", String::new()), ("HSTRLEN", "if value_types has hashes".to_owned())]);
        assert!(traffic.refused[0].reason.contains("a part of the compressed bytes"));
    }
}
