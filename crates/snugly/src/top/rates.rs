//! Rates: what changed between two readings, and the history of it.
//!
//! Knows readings. A count that went back, after a restart or CONFIG RESETSTAT, has no rate: nothing is told instead of
//! nonsense. Must not know connections, or what is shown.

use std::collections::VecDeque;

use super::readings::{ByFamily, Family, Histogram, Reading};

/// Readings whose rates are kept.
const KEPT: usize = 600;

/// Changes between two readings, each second; nothing where they are not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) commands: Option<f64>,
    pub(crate) calls: ByFamily<Option<f64>>,
    /// Seconds that half of the calls did not exceed.
    pub(crate) median: ByFamily<Option<f64>>,
    /// Seconds that 99 % of the calls did not exceed.
    pub(crate) slow: ByFamily<Option<f64>>,
    /// Part of the lookups that found a key.
    pub(crate) hits: Option<f64>,
    /// Part of the bytes of written values that compression saved.
    pub(crate) saved: Option<f64>,
    /// Bytes.
    pub(crate) input: Option<f64>,
    pub(crate) output: Option<f64>,
    pub(crate) evicted: Option<f64>,
    pub(crate) expired: Option<f64>,
    pub(crate) connections: Option<f64>,
    /// Processors that were kept busy.
    pub(crate) processor: Option<f64>,
    pub(crate) encoding: Option<f64>,
    pub(crate) decoding: Option<f64>,
    pub(crate) disk_reads: Option<f64>,
    pub(crate) disk_commits: Option<f64>,
    /// Bytes.
    pub(crate) disk_written: Option<f64>,
    /// Seconds that a commit took.
    pub(crate) commit: Option<f64>,
    /// Bytes at the second reading.
    pub(crate) dataset: Option<f64>,
    pub(crate) used: Option<f64>,
    pub(crate) resident: Option<f64>,
}

impl Rates {
    pub(crate) fn between(before: Option<&Reading>, now: &Reading) -> Rates {
        let gauges = Rates {
            dataset: now.number("used_memory_dataset"),
            used: now.number("used_memory"),
            resident: now.number("used_memory_rss"),
            ..Rates::default()
        };
        let Some(before) = before.filter(|before| is_same_run(before, now)) else { return gauges };
        let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
        let grown = |of: &dyn Fn(&Reading) -> Option<f64>| growth(of(before), of(now));
        let each_second =
            |of: &dyn Fn(&Reading) -> Option<f64>| grown(of).filter(|_| seconds > 0.0).map(|by| by / seconds);
        let field = |name: &str| each_second(&|reading| reading.number(name));
        let quantile_of = |part: f64| {
            Family::ALL.map(|family| {
                let of =
                    |reading: &Reading| reading.histograms.as_ref().map(|all| all[family as usize].clone());
                quantile(part, &since(&of(before)?, &of(now)?)?)
            })
        };
        Rates {
            commands: field("total_commands_processed"),
            calls: Family::ALL.map(|family| each_second(&|reading| reading.calls[family as usize])),
            median: quantile_of(0.5),
            slow: quantile_of(0.99),
            hits: share(field("keyspace_hits"), field("keyspace_misses")),
            saved: saved(
                grown(&|reading| reading.of_codecs(|codec| codec.given)),
                grown(&|reading| reading.of_codecs(|codec| codec.stored)),
            ),
            input: field("total_net_input_bytes"),
            output: field("total_net_output_bytes"),
            evicted: field("evicted_keys"),
            expired: field("expired_keys"),
            connections: field("total_connections_received"),
            processor: each_second(&|reading| {
                Some(reading.number("used_cpu_sys")? + reading.number("used_cpu_user")?)
            }),
            encoding: field("encode_nanoseconds").map(|each| each / 1e9),
            decoding: field("decode_nanoseconds").map(|each| each / 1e9),
            disk_reads: field("disk_reads"),
            disk_commits: field("disk_commits"),
            disk_written: field("disk_commit_bytes"),
            commit: grown(&|reading| reading.number("disk_commit_milliseconds"))
                .zip(grown(&|reading| reading.number("disk_commits")))
                .filter(|(_, commits)| *commits > 0.0)
                .map(|(milliseconds, commits)| milliseconds / 1e3 / commits),
            ..gauges
        }
    }
}

fn is_same_run(before: &Reading, now: &Reading) -> bool {
    before.text("run_id") == now.text("run_id")
}

fn growth(before: Option<f64>, now: Option<f64>) -> Option<f64> {
    now.zip(before).map(|(now, before)| now - before).filter(|grown| *grown >= 0.0)
}

/// Part of the first in both; nothing of nothing.
pub(crate) fn share(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let (one, other) = one.zip(other)?;
    (one + other > 0.0).then(|| one / (one + other))
}

/// Part of the given bytes that need not be stored; nothing of nothing.
pub(crate) fn saved(given: Option<f64>, stored: Option<f64>) -> Option<f64> {
    let (given, stored) = given.zip(stored)?;
    (given > 0.0).then(|| 1.0 - stored / given)
}

/// The calls since an earlier reading; nothing if they are fewer than then.
fn since(before: &Histogram, now: &Histogram) -> Option<Histogram> {
    if before.keys().any(|limit| !now.contains_key(limit)) {
        return None;
    }
    let earlier = |limit| before.get(limit).copied().unwrap_or_default();
    now.iter().map(|(limit, count)| Some((*limit, count.checked_sub(earlier(limit))?))).collect()
}

/// Seconds that this part of the calls did not exceed, interpolated between the limits.
pub(crate) fn quantile(part: f64, calls: &Histogram) -> Option<f64> {
    let wanted = part * calls.values().map(|&count| count as f64).sum::<f64>();
    let mut below = 0.0;
    for (&limit, &count) in calls.iter().filter(|(_, count)| **count > 0) {
        if below + count as f64 >= wanted {
            let (lower, upper) = ((limit / 2) as f64, limit as f64);
            return Some((lower + (upper - lower) * (wanted - below) / count as f64) / 1e6);
        }
        below += count as f64;
    }
    None
}

/// The rates of the latest readings, the oldest first.
#[derive(Default)]
pub(crate) struct History {
    rates: VecDeque<Rates>,
    latest: Rates,
}

impl History {
    pub(crate) fn add(&mut self, rates: Rates) {
        if self.rates.len() == KEPT {
            self.rates.pop_front();
        }
        self.latest = rates.clone();
        self.rates.push_back(rates);
    }

    /// Notes that nothing is known of a moment.
    pub(crate) fn add_gap(&mut self) {
        let latest = self.latest.clone();
        self.add(Rates::default());
        self.latest = latest;
    }

    /// The rates of the latest reading.
    pub(crate) fn latest(&self) -> &Rates {
        &self.latest
    }

    /// One of the rates over time, the latest first.
    pub(crate) fn trend(&self, of: impl Fn(&Rates) -> Option<f64>) -> Vec<Option<f64>> {
        self.rates.iter().rev().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::readings::Replies;
    use super::super::readings::tests::some_families;
    use super::*;
    use crate::live::node::fields;

    fn reading(at: Instant, info: &str) -> Reading {
        Reading::new(at, Replies { info: fields(info), ..Replies::default() }, &some_families())
    }

    /// Rates between two texts of INFO that are two seconds apart.
    fn rates(before: &str, now: &str) -> Rates {
        let start = Instant::now();
        Rates::between(Some(&reading(start, before)), &reading(start + Duration::from_secs(2), now))
    }

    #[test]
    fn rates_are_changes_for_each_second() {
        let rates = rates(
            "total_commands_processed:100\ncmdstat_get:calls=10\nkeyspace_hits:1\nkeyspace_misses:1\n",
            "total_commands_processed:300\ncmdstat_get:calls=40\nkeyspace_hits:4\nkeyspace_misses:2\nused_memory:7\n",
        );
        assert_eq!((rates.commands, rates.calls[Family::Reads as usize]), (Some(100.0), Some(15.0)));
        assert_eq!((rates.hits, rates.used, rates.input), (Some(0.75), Some(7.0), None));
    }

    #[test]
    fn counts_that_went_back_have_no_rate() {
        let rates = rates("total_commands_processed:100\n", "total_commands_processed:99\n");
        assert_eq!(rates, Rates { calls: [Some(0.0); 4], ..Rates::default() });
    }

    #[test]
    fn counts_of_another_run_have_no_rate() {
        let rates = rates(
            "run_id:a\ntotal_commands_processed:100\n",
            "run_id:b\ntotal_commands_processed:900\nused_memory:7\n",
        );
        assert_eq!(rates, Rates { used: Some(7.0), ..Rates::default() });
    }

    #[test]
    fn first_reading_has_no_rates() {
        let rates =
            Rates::between(None, &reading(Instant::now(), "total_commands_processed:9\nused_memory:7\n"));
        assert_eq!(rates, Rates { used: Some(7.0), ..Rates::default() });
    }

    #[test]
    fn readings_at_one_moment_have_no_rates() {
        let now = reading(Instant::now(), "total_commands_processed:9\n");
        assert_eq!(Rates::between(Some(&now), &now).commands, None);
    }

    #[test]
    fn savings_are_those_of_what_was_written_meanwhile() {
        let info = |given: u32, stored: u32| {
            format!("encoded_values_lz4:1\nencoded_bytes_in_lz4:{given}\nencoded_bytes_out_lz4:{stored}\n")
        };
        assert_eq!(rates(&info(100, 100), &info(300, 150)).saved, Some(0.75));
        assert_eq!(rates(&info(100, 100), &info(100, 100)).saved, None);
        assert_eq!(rates(&info(0, 0), &info(100, 110)).saved, Some(1.0 - 1.1), "more than was given");
    }

    #[test]
    fn quantiles_are_interpolated_between_limits() {
        let calls = Histogram::from([(1, 0), (2, 50), (8, 50)]);
        let microseconds =
            |part| quantile(part, &calls).map(|seconds| (seconds * 1e6 * 100.0).round() / 100.0);
        assert_eq!(microseconds(0.5), Some(2.0));
        assert_eq!(microseconds(0.25), Some(1.5));
        assert_eq!(microseconds(0.99), Some(7.92));
        assert_eq!(quantile(0.5, &Histogram::new()), None);
        assert_eq!(quantile(0.5, &Histogram::from([(8, 0)])), None);
    }

    #[test]
    fn histograms_that_went_back_are_not_subtracted() {
        let (more, fewer) = (Histogram::from([(1, 5), (2, 5)]), Histogram::from([(1, 6), (2, 4)]));
        assert_eq!(since(&fewer, &more), None);
        assert_eq!(since(&more, &Histogram::from([(1, 9)])), None);
        assert_eq!(since(&more, &Histogram::from([(1, 6), (2, 5)])), Some(Histogram::from([(1, 1), (2, 0)])));
    }

    #[test]
    fn history_has_gaps_where_nothing_was_read_and_keeps_what_was_said_last() {
        let mut history = History::default();
        history.add(Rates { used: Some(1.0), ..Rates::default() });
        history.add_gap();
        assert_eq!(history.trend(|rates| rates.used), [None, Some(1.0)]);
        assert_eq!(history.latest().used, Some(1.0));
        (0..2 * KEPT).for_each(|_| history.add(Rates::default()));
        assert_eq!(history.trend(|rates| rates.used).len(), KEPT);
    }
}
