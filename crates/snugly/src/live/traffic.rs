//! Commands in use, by the server's own account, and a compressing client's action for them by the command table.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use snugly_commands::{Command, ValueType, command};

use super::deployment::Deployment;
use crate::interrupt::Interrupt;

/// Commands that `analyze` calls itself and that compressing clients refuse. Calls of earlier runs cannot be told from
/// those of applications, so only calls while it looks count, which is before its own.
pub(crate) const OWN_COMMANDS: [&str; 2] = ["STRLEN", "GETRANGE"];

/// Calls of commands, by their names in capitals.
type Calls = BTreeMap<String, u64>;

/// Commands in use.
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
    pub(crate) with: &'static [&'static str],
    /// Only where `value_types` has one of these.
    pub(crate) value_types: Vec<&'static str>,
    pub(crate) reason: &'static str,
}

/// A command in use on values other than strings.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OptIn {
    pub(crate) command: String,
    pub(crate) calls: u64,
    pub(crate) value_type: &'static str,
}

/// Asks which commands are used: twice, `pause` apart, or once for the time since the server was started if there is no
/// pause. Nothing if nobody may ask.
pub(crate) fn observe(
    deployment: &mut Deployment,
    pause: Duration,
    stop: &Interrupt,
) -> Result<Option<Traffic>> {
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
        let rate = |is_meant: fn(&Command) -> bool| {
            let meant = meanwhile.iter().filter(|(name, _)| {
                command(name.as_bytes()).is_some_and(|command| carries_strings(command) && is_meant(command))
            });
            meant.map(|(_, calls)| *calls).sum::<u64>() as f64 / seconds
        };
        let used = || all.iter().filter(|(_, calls)| **calls > 0);
        let own = |name: &str| OWN_COMMANDS.contains(&name);
        let counted = |name: &String, calls: u64| {
            if own(name) { meanwhile.get(name).copied().unwrap_or_default() } else { calls }
        };
        let refused = (used().map(|(name, calls)| (name, counted(name, *calls))))
            .filter(|(_, calls)| *calls > 0)
            .flat_map(|(name, calls)| refusals(name, calls));
        let opt_in = used().filter_map(|(name, calls)| {
            let value_type =
                command(name.as_bytes())?.value_type().filter(|&each| each != ValueType::Strings)?;
            Some(OptIn { command: name.clone(), calls: *calls, value_type: value_type.name() })
        });
        Traffic {
            writes_per_second: rate(Command::writes_values),
            // Commands that give the old value back if they are asked to are counted as writes only.
            reads_per_second: rate(Command::reads_values),
            refused: refused.collect(),
            opt_in: opt_in.collect(),
            observed,
            is_since_start: false,
        }
    }

    /// Reads of a value for each write; one if that is unknown.
    pub(crate) fn reads_for_each_write(&self) -> f64 {
        if self.writes_per_second == 0.0 { 1.0 } else { self.reads_per_second / self.writes_per_second }
    }
}

fn carries_strings(command: &Command) -> bool {
    command.value_type() == Some(ValueType::Strings)
}

/// When a command that is called so often is refused.
fn refusals(name: &str, calls: u64) -> impl Iterator<Item = Refused> {
    let rules = command(name.as_bytes()).map_or(&[][..], Command::rules);
    rules.iter().map(move |rule| Refused {
        command: name.to_owned(),
        calls,
        with: rule.with(),
        value_types: rule
            .types()
            .iter()
            .filter(|&each| each != ValueType::Strings)
            .map(ValueType::name)
            .collect(),
        reason: rule.reason().text(),
    })
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
        assert_eq!(traffic.opt_in, [OptIn { command: "HSET".into(), calls: 70, value_type: "hashes" }]);
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
