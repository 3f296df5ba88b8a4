//! Some of the keys of live servers, with their values: read with SCAN and short pipelines, at a pace, until there are
//! enough or somebody stops it. It never writes and never asks for more of a value than a limit.

use std::collections::{BTreeSet, HashSet};
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};

use super::deployment::Deployment;
use super::node::{Node, request, taken, told_by};
use super::pace::Pace;
use crate::interrupt::Interrupt;

/// Values longer than this are known by their start.
pub(crate) const MAX_VALUE_BYTES: u64 = 64 << 10;
/// All values that are read take at most so many bytes; of the rest the length is known.
const MAX_BYTES: usize = 128 << 20;
/// So often a second servers are asked, at most, and so many keys at once.
const BATCHES_EACH_SECOND: u32 = 10;
const MAX_BATCH: u32 = 500;
/// Keys that SCAN only walks past, because they do not match, cost a server about so much less than one that is read.
const WALKED_FOR_ONE_READ: u32 = 100;

/// Default time to look for keys of a pattern.
const PATTERN_SECONDS: u32 = 30;

/// The pace of requests, and their duration.
#[derive(Args, Clone, Debug)]
pub(crate) struct Speed {
    /// Keys to read per second; keys that do not match are passed a hundred times as fast
    #[arg(long, value_name = "KEYS", default_value = "1000")]
    pub(crate) rate: NonZeroU32,

    /// Seconds after which the sampling ends with the keys found by then [default: no limit; 30 for the keys of one pattern]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<NonZeroU32>,
}

impl Speed {
    /// The same, for keys of which there may be few among many.
    pub(crate) fn of_pattern(&self) -> Speed {
        Speed { seconds: self.seconds.or(NonZeroU32::new(PATTERN_SECONDS)), ..*self }
    }
}

/// The keys to sample.
pub(crate) struct KeyFilter<'a> {
    /// Number of keys.
    pub(crate) keys: u64,
    /// Keys that match this glob of KEYS only.
    pub(crate) pattern: Option<&'a [u8]>,
    /// Strings only; others do not count.
    pub(crate) only_strings: bool,
    /// Bytes of a value that are read; longer ones are known by their start.
    pub(crate) value_bytes: u64,
    /// Keys that begin so are none of the application's.
    pub(crate) without: &'a [u8],
}

/// A key that was there.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) key: Vec<u8>,
    /// As TYPE names it.
    pub(crate) kind: String,
    /// Whether it expires, if anybody may know.
    pub(crate) expires: Option<bool>,
    /// Bytes of the server's memory, if anybody may know.
    pub(crate) memory: Option<u64>,
    /// Of a string.
    pub(crate) value: Option<Stored>,
}

/// A string as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Its length in bytes.
    pub(crate) len: u64,
    /// The value, or its start, or nothing if there was no room for more.
    pub(crate) bytes: Vec<u8>,
}

impl Stored {
    /// Whether all of it was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.bytes.len() as u64 >= self.len
    }
}

/// The end of a sampling.
#[derive(Debug)]
pub(crate) enum Ended {
    /// All keys were looked at.
    Complete,
    /// There were enough.
    Enough,
    /// It has taken as long as it might.
    TimeUp { seconds: u32 },
    /// Somebody pressed Ctrl-C.
    Stopped,
    /// This happened.
    Failed(anyhow::Error),
}

/// The sample.
pub(crate) struct Sampled {
    pub(crate) found: Vec<Found>,
    /// About how many keys there are like those that were found.
    pub(crate) population: u64,
    pub(crate) ended: Ended,
    /// Data that could not be read, in words.
    pub(crate) notes: BTreeSet<String>,
}

impl Sampled {
    /// A summary: how many keys of how many, and why no more.
    pub(crate) fn summary(&self) -> String {
        let sampled = format!("{} of about {} keys", self.found.len(), self.population);
        match &self.ended {
            Ended::Complete => format!("all keys: {}", self.found.len()),
            Ended::Enough => sampled,
            Ended::Stopped => format!("{sampled}, until Ctrl-C"),
            Ended::TimeUp { seconds } => {
                format!("{sampled}, as there were after {seconds} seconds (--seconds)")
            }
            Ended::Failed(error) => format!("{sampled}, until this: {error:#}"),
        }
    }

    /// That it ended too early, if it did: for the exit code, once all is told that is known.
    pub(crate) fn failure(self) -> Result<()> {
        match self.ended {
            Ended::Failed(error) => Err(error.context("this is about the keys that were sampled until then")),
            _ => Ok(()),
        }
    }
}

/// Samples until there are enough keys, or somebody stops it, or a server fails.
pub(crate) fn sample(
    deployment: &mut Deployment,
    wanted: &KeyFilter<'_>,
    speed: &Speed,
    stop: &Interrupt,
) -> Result<Sampled> {
    let mut sizes: Vec<Option<u64>> = Vec::new();
    for node in &mut deployment.nodes {
        sizes.push(node.ask_if_allowed(&["DBSIZE"])?);
    }
    let keys: Option<u64> = sizes.iter().copied().sum();
    let scan = |keys: Option<u64>| Scan { keys: keys.unwrap_or(1), ..Scan::default() };
    let mut scans: Vec<Scan> = sizes.into_iter().map(scan).collect();
    let progress = progress(wanted.keys.min(keys.unwrap_or(u64::MAX)));
    let mut sampler = Sampler {
        wanted,
        speed,
        stop,
        pace: Pace::new(speed.rate.get()),
        started: Instant::now(),
        bytes: 0,
        seen: HashSet::new(),
        found: Vec::new(),
        notes: BTreeSet::new(),
    };
    let ended = sampler.run(&mut deployment.nodes, &mut scans, &progress);
    progress.finish_and_clear();
    let Sampler { found, mut notes, .. } = sampler;
    if keys.is_none() {
        notes.insert("DBSIZE is not allowed: numbers of keys are those that were sampled".to_owned());
    }
    let population = match ended {
        Ended::Complete => found.len() as u64,
        _ if found.is_empty() => keys.unwrap_or_default(),
        _ => keys.map_or(found.len() as u64, |keys| extrapolated(found.len() as u64, keys, &scans)),
    };
    match ended {
        Ended::Failed(error) if found.is_empty() => Err(error),
        ended => Ok(Sampled { found, population, ended, notes }),
    }
}

/// Number of all keys that are like the ones found among the keys looked at.
fn extrapolated(found: u64, keys: u64, scans: &[Scan]) -> u64 {
    let looked_at: u64 = scans.iter().map(|scan| scan.looked_at.min(scan.keys)).sum();
    let all = u128::from(found) * u128::from(keys) / u128::from(looked_at.max(1));
    (all as u64).clamp(found, keys.max(found))
}

/// Number of keys looked at of those that SCAN walked, if only some of the returned ones were taken.
fn part_looked_at(walked: u64, taken: u64, given: u64) -> u64 {
    (walked * taken).checked_div(given).unwrap_or(walked)
}

/// A line on a terminal, and nothing elsewhere.
fn progress(keys: u64) -> ProgressBar {
    let progress = ProgressBar::new(keys).with_message("sampling");
    let template =
        "{msg:>10} {wide_bar} {human_pos} of {human_len} keys, {eta} left, Ctrl-C takes what there is";
    progress.set_style(ProgressStyle::with_template(template).expect("a valid template"));
    if !std::io::stderr().is_terminal() {
        progress.set_draw_target(ProgressDrawTarget::hidden());
    }
    progress
}

/// The progress of scanning a server.
#[derive(Default)]
struct Scan {
    /// Number of its keys.
    keys: u64,
    cursor: u64,
    looked_at: u64,
    is_complete: bool,
}

struct Sampler<'a> {
    wanted: &'a KeyFilter<'a>,
    speed: &'a Speed,
    stop: &'a Interrupt,
    pace: Pace,
    started: Instant,
    /// Of all values.
    bytes: usize,
    /// SCAN may give a key twice.
    seen: HashSet<Vec<u8>>,
    found: Vec<Found>,
    notes: BTreeSet<String>,
}

impl Sampler<'_> {
    fn run(&mut self, nodes: &mut [Node], scans: &mut [Scan], progress: &ProgressBar) -> Ended {
        loop {
            // Of each server as large a part as of the others.
            let part = |scan: &Scan| scan.looked_at as f64 / scan.keys.max(1) as f64;
            let left = scans.iter().enumerate().filter(|(_, scan)| !scan.is_complete);
            let Some((place, _)) = left.min_by(|(_, a), (_, b)| part(a).total_cmp(&part(b))) else {
                return Ended::Complete;
            };
            if self.found.len() as u64 >= self.wanted.keys {
                return Ended::Enough;
            }
            if self.stop.is_set() {
                return Ended::Stopped;
            }
            if let Some(seconds) = self.speed.seconds.map(NonZeroU32::get)
                && self.started.elapsed().as_secs() >= seconds.into()
            {
                return Ended::TimeUp { seconds };
            }
            if let Err(error) = self.step(&mut nodes[place], &mut scans[place]) {
                return Ended::Failed(error);
            }
            progress.set_position(self.found.len() as u64);
        }
    }

    /// Looks at the next keys of a server.
    fn step(&mut self, node: &mut Node, scan: &mut Scan) -> Result<()> {
        let count = match self.wanted.pattern {
            Some(_) => MAX_BATCH,
            None => (self.speed.rate.get() / BATCHES_EACH_SECOND).clamp(1, MAX_BATCH),
        };
        let reads = if self.wanted.pattern.is_some() { count.div_ceil(WALKED_FOR_ONE_READ) } else { count };
        self.pace.wait_for(reads, self.stop);
        if self.stop.is_set() {
            return Ok(());
        }
        let (cursor, count_text) = (scan.cursor.to_string(), count.to_string());
        let mut words: Vec<&[u8]> = vec![b"SCAN", cursor.as_bytes(), b"COUNT", count_text.as_bytes()];
        if let Some(pattern) = self.wanted.pattern {
            words.extend([b"MATCH", pattern]);
        }
        let (next, mut keys): (u64, Vec<Vec<u8>>) = node.ask(&words)?;
        scan.cursor = next;
        scan.is_complete = next == 0;
        // SCAN gives about as many as it was asked for; without a pattern the reply tells exactly.
        let walked = if self.wanted.pattern.is_some() { u64::from(count) } else { keys.len() as u64 };
        keys.retain(|key| !key.starts_with(self.wanted.without) && self.seen.insert(key.clone()));
        let given = keys.len() as u64;
        keys.truncate((self.wanted.keys - self.found.len() as u64) as usize);
        scan.looked_at += part_looked_at(walked, keys.len() as u64, given);
        for keys in keys.chunks(count as usize) {
            if self.wanted.pattern.is_some() {
                self.pace.wait_for(keys.len() as u32, self.stop);
            }
            self.look_at(node, keys)?;
        }
        Ok(())
    }

    fn look_at(&mut self, node: &mut Node, keys: &[Vec<u8>]) -> Result<()> {
        const EACH: usize = 3;
        let questions = keys.iter().flat_map(|key| {
            [
                request(&[b"TYPE", &key[..]]),
                request(&[b"PTTL", &key[..]]),
                request(&[b"MEMORY", &b"USAGE"[..], &key[..]]),
            ]
        });
        let replies = node.ask_together(questions.collect())?;
        let mut found = Vec::new();
        for (key, replies) in keys.iter().zip(replies.chunks(EACH)) {
            let Some(kind) = self.required::<String>(node, "TYPE", &replies[0])? else { continue };
            let expires = self.if_allowed("PTTL", &replies[1]).map(|left: i64| left >= 0);
            let memory = self.if_allowed("MEMORY USAGE", &replies[2]);
            // It may have gone meanwhile.
            if kind != "none" && (kind == "string" || !self.wanted.only_strings) {
                found.push(Found { key: key.clone(), kind, expires, memory, value: None });
            }
        }
        self.read_values(node, &mut found)?;
        self.found.append(&mut found);
        Ok(())
    }

    /// A reply that can be done without.
    fn if_allowed<T: redis::FromRedisValue>(
        &mut self,
        command: &str,
        reply: &RedisResult<Value>,
    ) -> Option<T> {
        match reply {
            Ok(value) => T::from_redis_value(value.clone()).ok(),
            Err(error) => {
                self.notes.insert(format!("{command} is not answered and was left out: {}", told_by(error)));
                None
            }
        }
    }

    /// A reply that is needed: without permission for the command there is nothing to be had. A key may be forbidden by
    /// itself, and may have gone or moved meanwhile, which is no more than a key less.
    fn required<T: redis::FromRedisValue>(
        &mut self,
        node: &Node,
        command: &str,
        reply: &RedisResult<Value>,
    ) -> Result<Option<T>> {
        match reply {
            Err(error) if !forbids_command(error) => {
                self.notes.insert(format!(
                    "keys of which {command} is answered with an error were left out: {}",
                    told_by(error)
                ));
                Ok(None)
            }
            reply => taken(node, command, reply.clone()).map(Some),
        }
    }

    fn read_values(&mut self, node: &mut Node, found: &mut [Found]) -> Result<()> {
        let mut strings: Vec<&mut Found> = found.iter_mut().filter(|found| found.kind == "string").collect();
        let questions = strings.iter().map(|found| request(&[b"STRLEN", &found.key[..]]));
        let replies = node.ask_together(questions.collect())?;
        let mut lengths: Vec<u64> = Vec::new();
        for reply in &replies {
            lengths.push(self.required(node, "STRLEN", reply)?.unwrap_or_default());
        }
        let limit = self.wanted.value_bytes;
        let questions: Vec<Cmd> =
            strings.iter().zip(&lengths).map(|(found, len)| reading(&found.key, *len, limit)).collect();
        let expected: usize = lengths.iter().map(|len| (*len).min(limit) as usize).sum();
        let has_room = self.bytes + expected <= MAX_BYTES;
        let replies = if has_room { node.ask_together(questions)? } else { Vec::new() };
        if !has_room {
            self.notes.insert(format!(
                "of the values behind the first {} only the lengths were read",
                indicatif::HumanBytes(self.bytes as u64)
            ));
        }
        let mut replies = replies.into_iter();
        for (found, len) in strings.iter_mut().zip(lengths) {
            let bytes = match replies.next() {
                None => Vec::new(),
                Some(reply) if len > limit => self
                    .if_allowed("GETRANGE, for values that are too long to be read whole,", &reply)
                    .unwrap_or_default(),
                // It may have gone meanwhile.
                Some(reply) => {
                    self.required::<Option<Vec<u8>>>(node, "GET", &reply)?.flatten().unwrap_or_default()
                }
            };
            self.bytes += bytes.len();
            let len = if len > limit || !has_room { len } else { bytes.len() as u64 };
            found.value = Some(Stored { len, bytes });
        }
        Ok(())
    }
}

/// Whether a command is not allowed for any key.
fn forbids_command(error: &RedisError) -> bool {
    let is_about_a_command = error.detail().is_some_and(|told| told.contains("command"));
    error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) && is_about_a_command
}

/// The command that reads a value of this length.
fn reading(key: &[u8], len: u64, limit: u64) -> Cmd {
    match len > limit {
        true => request(&[b"GETRANGE", key, b"0", (limit.max(1) - 1).to_string().as_bytes()]),
        false => request(&[b"GET", key]),
    }
}

/// A line that says what is done, for longer than a moment; shown on terminals only.
pub(crate) fn spinner(message: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(message);
    if std::io::stderr().is_terminal() {
        spinner.enable_steady_tick(Duration::from_millis(100));
    } else {
        spinner.set_draw_target(ProgressDrawTarget::hidden());
    }
    spinner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_stands_for_as_large_a_part_of_all_keys() {
        let scan = |keys, looked_at| Scan { keys, looked_at, ..Scan::default() };
        assert_eq!(extrapolated(50, 10_000, &[scan(10_000, 100)]), 5_000);
        assert_eq!(extrapolated(50, 10_000, &[scan(5_000, 100), scan(5_000, 100)]), 2_500);
        // SCAN gives more than it was asked for.
        assert_eq!(extrapolated(150, 120, &[scan(120, 100)]), 150);
        assert_eq!(extrapolated(0, 0, &[scan(0, 0)]), 0);
    }

    #[test]
    fn keys_that_were_left_out_of_the_last_batch_do_not_count_as_looked_at() {
        let scan = Scan { keys: 11_776, looked_at: 200 + part_looked_at(100, 50, 100), ..Scan::default() };
        assert_eq!(extrapolated(250, 11_776, &[scan]), 11_776);
        assert_eq!(part_looked_at(100, 0, 0), 100, "nothing matched among them");
    }

    #[test]
    fn a_long_value_is_not_read_whole() {
        let words = |len| {
            let read = reading(b"k", len, 100);
            String::from_utf8(read.get_packed_command()).unwrap()
        };
        assert!(words(100).contains("\r\nGET\r\n"));
        assert!(words(101).contains("GETRANGE") && words(101).ends_with("99\r\n"));
    }
}
