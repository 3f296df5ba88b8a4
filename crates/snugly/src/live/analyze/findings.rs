//! Findings about a live server, as numbers: counted on the sample, and extrapolated to all keys.

use std::collections::{BTreeMap, BTreeSet};

use indicatif::HumanBytes;
use serde::Serialize;
use snugly_learning::Goal;
use snugly_protocol::escape::escape;

use super::clients::{Client, Configuration, clients};
use crate::live::address::Address;
use crate::live::catalogue::Dictionaries;
use crate::live::census;
use crate::live::deployment::Deployment;
use crate::live::evaluation::{self, Kind, LEAST_SAMPLES, MIN_BYTES, Way};
use crate::live::sampling::{Found, MAX_VALUE_BYTES, Sampled};
use crate::live::traffic::{OWN_COMMANDS, Traffic};
use crate::live::values::{Seen, Shape, look_at};

/// Number of patterns that are evaluated by themselves, the ones with the most bytes; others are together.
const EVALUATED: usize = 32;
const SECONDS_OF_A_DAY: f64 = 86_400.0;

/// The findings. Numbers of keys and bytes are extrapolated from the sample unless they say otherwise.
#[derive(Serialize)]
pub(super) struct Findings {
    /// Address and kind of the server.
    pub(super) server: String,
    pub(super) software: String,
    /// Whether the server compresses what clients give it, so that they need not.
    pub(super) compresses_itself: bool,
    pub(super) nodes: usize,
    /// All keys, and how many of them were sampled.
    pub(super) keys: u64,
    pub(super) sampled: usize,
    /// The end of the sampling, in words.
    pub(super) sampling: String,
    /// The share of keys that expire, if anybody may know.
    pub(super) expiring: Option<f64>,
    pub(super) types: Vec<Type>,
    pub(super) sizes: Vec<Group>,
    pub(super) shapes: Vec<Group>,
    /// Patterns, the ones with the most bytes first.
    pub(super) patterns: Vec<Pattern>,
    pub(super) traffic: Option<Traffic>,
    pub(super) goal: String,
    pub(super) advice: Option<Advice>,
    pub(super) notes: Vec<String>,
}

/// Keys of one type.
#[derive(Serialize)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) keys: u64,
    /// Bytes of the server's memory, if anybody may know.
    pub(super) memory: Option<u64>,
    /// The action of a compressing client on its values.
    pub(super) compression: &'static str,
}

/// Strings that have something in common.
#[derive(Serialize)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) values: u64,
    /// As they are stored.
    pub(super) bytes: u64,
}

/// Keys of one pattern.
#[derive(Serialize)]
pub(super) struct Pattern {
    pub(super) pattern: String,
    /// Whether it stands for many patterns, none of which is judged by itself or has a dictionary.
    pub(super) is_joined: bool,
    pub(super) keys: u64,
    pub(super) sampled: usize,
    /// The types of its keys.
    pub(super) types: Vec<String>,
    /// Bytes of its strings, as they are stored and as the application gave them.
    pub(super) stored: u64,
    pub(super) raw: u64,
    /// Bytes of the server's memory, keys and overhead included, if anybody may know.
    pub(super) memory: Option<u64>,
    pub(super) expiring: Option<f64>,
    /// Shares of its strings.
    pub(super) compressed: f64,
    pub(super) enveloped: f64,
    /// Savings and cost of each way to compress; nothing if there is too little to say.
    pub(super) ways: Vec<Outcome>,
    /// The place of the best one there for the goal.
    pub(super) best: Option<usize>,
}

/// Savings and cost of a way to compress.
#[derive(Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    pub(super) way: Way,
    /// Bytes of values, less than now; a dictionary's own are counted.
    pub(super) saved: i64,
    /// Processor time of clients at the observed rates, in seconds a day; nothing if no rate is known.
    pub(super) processor_seconds_per_day: Option<f64>,
    /// The worth for the goal, in nanoseconds a value.
    pub(super) worth: f64,
}

/// The advice.
#[derive(Serialize)]
pub(super) struct Advice {
    /// Bytes that it saves where it is worth it.
    pub(super) saved: i64,
    /// Patterns that are worth a dictionary.
    pub(super) dictionaries: Vec<String>,
    /// Configuration to paste into applications that compress.
    pub(super) clients: Vec<Client>,
    /// The command that starts a server that does it for them.
    pub(super) serve: String,
}

/// A sampled key, and what its value is if it is a string.
struct Looked<'a> {
    found: &'a Found,
    seen: Option<Seen>,
}

/// Extrapolates from the sampled keys to all keys.
struct Scale {
    sampled: u64,
    keys: u64,
}

impl Scale {
    fn up(&self, sampled: u64) -> u64 {
        (u128::from(sampled) * u128::from(self.keys) / u128::from(self.sampled.max(1))) as u64
    }
}

pub(super) fn find(
    address: &Address,
    deployment: &Deployment,
    sampled: &Sampled,
    dictionaries: &Dictionaries,
    traffic: Option<Traffic>,
    goal: Goal,
) -> Findings {
    let looked: Vec<Looked<'_>> = (sampled.found.iter())
        .map(|found| Looked { found, seen: found.value.as_ref().map(|stored| look_at(stored, dictionaries)) })
        .collect();
    let scale = Scale { sampled: looked.len() as u64, keys: sampled.population };
    let patterns = patterns(&looked, &scale, traffic.as_ref(), goal);
    Findings {
        server: address.to_string(),
        software: deployment.software.clone(),
        nodes: deployment.nodes.len(),
        keys: sampled.population,
        sampled: looked.len(),
        sampling: sampled.summary(),
        expiring: expiring(looked.iter()),
        types: types(&looked, &scale),
        sizes: groups(&looked, &scale, |looked| size_of(looked.found.value.as_ref()?.len)),
        shapes: groups(&looked, &scale, |looked| Some((0, shape_name(looked.seen.as_ref()?.shape)))),
        advice: if deployment.is_snugly() { None } else { advise(&patterns, goal) },
        notes: notes(deployment, sampled, traffic.as_ref(), &looked, &patterns),
        compresses_itself: deployment.is_snugly(),
        patterns,
        traffic,
        goal: goal.to_string(),
    }
}

fn expiring<'a>(looked: impl Iterator<Item = &'a Looked<'a>>) -> Option<f64> {
    let known: Vec<bool> = looked.filter_map(|looked| looked.found.expires).collect();
    let expiring = known.iter().filter(|expires| **expires).count();
    (!known.is_empty()).then(|| expiring as f64 / known.len() as f64)
}

/// The sum of what is known of all; nothing if it is known of none.
fn sum_if_known(numbers: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    numbers.flatten().fold(None, |sum, number| Some(sum.unwrap_or(0) + number))
}

/// The action of a compressing client on values of a type, by its name in TYPE.
const COMPRESSION_OF_TYPES: [(&str, &str); 4] = [
    ("string", "compressed"),
    ("hash", "with value_types: hashes"),
    ("list", "with value_types: lists"),
    ("stream", "with value_types: streams"),
];

fn types(looked: &[Looked<'_>], scale: &Scale) -> Vec<Type> {
    let mut kinds: BTreeMap<&str, Vec<&Looked<'_>>> = BTreeMap::new();
    looked.iter().for_each(|looked| kinds.entry(&looked.found.kind).or_default().push(looked));
    let described = kinds.into_iter().map(|(name, looked)| Type {
        name: name.to_owned(),
        keys: scale.up(looked.len() as u64),
        memory: sum_if_known(looked.iter().map(|looked| looked.found.memory)).map(|bytes| scale.up(bytes)),
        compression: COMPRESSION_OF_TYPES.iter().find(|row| row.0 == name).map_or("never", |row| row.1),
    });
    let mut types: Vec<Type> = described.collect();
    types.sort_by_key(|row| std::cmp::Reverse((row.memory, row.keys)));
    types
}

/// Behind the last size of each band, in bytes.
const SIZES: [u64; 8] = [32, MIN_BYTES as u64, 256, 1 << 10, 4 << 10, 16 << 10, MAX_VALUE_BYTES, 1 << 20];

fn size_of(len: u64) -> Option<(usize, String)> {
    let place = SIZES.iter().position(|end| len < *end);
    Some(match place {
        Some(place) => (place, format!("under {}", HumanBytes(SIZES[place]))),
        None => (SIZES.len(), format!("{} and more", HumanBytes(SIZES[SIZES.len() - 1]))),
    })
}

fn shape_name(shape: Shape) -> String {
    match shape {
        Shape::Plain => "plain".to_owned(),
        Shape::Envelope(codec) if codec.needs_dictionary() => {
            format!("envelope, {} with dictionary", codec.without_dictionary())
        }
        Shape::Envelope(codec) => format!("envelope, {codec}"),
        Shape::Unreadable => "envelope that cannot be read".to_owned(),
        Shape::Compressed => "compressed by others, or random".to_owned(),
    }
}

/// Strings by what `group` says of them: a number to sort by, and a name.
fn groups(
    looked: &[Looked<'_>],
    scale: &Scale,
    group: impl Fn(&Looked<'_>) -> Option<(usize, String)>,
) -> Vec<Group> {
    let mut groups: BTreeMap<(usize, String), (u64, u64)> = BTreeMap::new();
    for one in looked {
        if let (Some(name), Some(value)) = (group(one), &one.found.value) {
            let (values, bytes) = groups.entry(name).or_default();
            (*values, *bytes) = (*values + 1, *bytes + value.len);
        }
    }
    let group =
        |((_, name), (values, bytes))| Group { name, values: scale.up(values), bytes: scale.up(bytes) };
    groups.into_iter().map(group).collect()
}

fn patterns(looked: &[Looked<'_>], scale: &Scale, traffic: Option<&Traffic>, goal: Goal) -> Vec<Pattern> {
    let texts = census::patterns_of(looked.iter().map(|looked| &looked.found.key[..]));
    let groups = census::grouped(&texts);
    let strings = looked.iter().filter(|looked| looked.seen.is_some()).count();
    let mut patterns: Vec<(Pattern, Vec<&Looked<'_>>)> = (groups.into_iter())
        .map(|(text, places)| {
            let looked: Vec<&Looked<'_>> = places.into_iter().map(|place| &looked[place]).collect();
            (counted(text, &looked, scale), looked)
        })
        .collect();
    sort(&mut patterns);
    join_small(&mut patterns, scale);
    sort(&mut patterns);
    for (pattern, looked) in patterns.iter_mut() {
        evaluate(pattern, looked, scale, traffic, strings, goal);
    }
    patterns.into_iter().map(|(pattern, _)| pattern).collect()
}

/// Patterns, the ones with the most bytes first.
fn sort(patterns: &mut [(Pattern, Vec<&Looked<'_>>)]) {
    let weight = |pattern: &Pattern| std::cmp::Reverse((pattern.stored, pattern.keys));
    patterns.sort_by(|(a, _), (b, _)| weight(a).cmp(&weight(b)).then_with(|| a.pattern.cmp(&b.pattern)));
}

/// Joins the patterns that are too small, or too far down, to be judged by themselves: many small ones may be worth
/// compressing as a large one is.
fn join_small(patterns: &mut Vec<(Pattern, Vec<&Looked<'_>>)>, scale: &Scale) {
    let mut judged = 0;
    let is_small = |(_, looked): &mut (Pattern, Vec<&Looked<'_>>)| {
        let strings = looked.iter().filter(|looked| looked.seen.is_some()).count();
        let is_judged = strings >= LEAST_SAMPLES && judged < EVALUATED;
        judged += usize::from(is_judged);
        strings > 0 && !is_judged
    };
    let small: Vec<_> = patterns.extract_if(.., is_small).collect();
    if small.len() < 2 {
        patterns.extend(small);
        return;
    }
    let name = format!("({} more patterns together)", small.len());
    let looked: Vec<&Looked<'_>> = small.into_iter().flat_map(|(_, looked)| looked).collect();
    let joined = Pattern { pattern: name, is_joined: true, ..counted(b"", &looked, scale) };
    patterns.push((joined, looked));
}

fn counted(text: &[u8], looked: &[&Looked<'_>], scale: &Scale) -> Pattern {
    let seen = || looked.iter().filter_map(|looked| looked.seen.as_ref());
    let stored = || looked.iter().filter_map(|looked| looked.found.value.as_ref().map(|value| value.len));
    let share = |is_meant: fn(Shape) -> bool| {
        let meant = seen().filter(|seen| is_meant(seen.shape)).count();
        meant as f64 / seen().count().max(1) as f64
    };
    let raw: u64 = seen().zip(stored()).map(|(seen, stored)| seen.raw_len.unwrap_or(stored)).sum();
    let mut types: Vec<String> = looked.iter().map(|looked| looked.found.kind.clone()).collect();
    types.sort();
    types.dedup();
    Pattern {
        pattern: escape(text),
        is_joined: false,
        keys: scale.up(looked.len() as u64),
        sampled: looked.len(),
        types,
        stored: scale.up(stored().sum()),
        raw: scale.up(raw),
        memory: sum_if_known(looked.iter().map(|looked| looked.found.memory)).map(|bytes| scale.up(bytes)),
        expiring: expiring(looked.iter().copied()),
        compressed: share(|shape| shape == Shape::Compressed),
        enveloped: share(|shape| matches!(shape, Shape::Envelope(_) | Shape::Unreadable)),
        ways: Vec::new(),
        best: None,
    }
}

fn evaluate(
    pattern: &mut Pattern,
    looked: &[&Looked<'_>],
    scale: &Scale,
    traffic: Option<&Traffic>,
    strings: usize,
    goal: Goal,
) {
    let of_pattern = looked.iter().filter(|looked| looked.seen.is_some()).count();
    let values = looked
        .iter()
        .filter_map(|looked| Some((&looked.found.key[..], looked.seen.as_ref()?.value.as_deref()?)));
    let samples = evaluation::samples(values);
    let reads = traffic.map_or(1.0, Traffic::reads_for_each_write);
    let kind = Kind { population: scale.up(of_pattern as u64), reads, trains: !pattern.is_joined };
    if samples.len() < LEAST_SAMPLES {
        return;
    }
    let Some(evaluation) = evaluation::evaluate(&samples, kind, goal) else { return };
    // Values that writers would compress, and values that they would leave as they are.
    let raw = |looked: &Looked<'_>| {
        let seen = looked.seen.as_ref()?;
        let raw = seen.raw_len.filter(|_| seen.shape != Shape::Unreadable);
        Some((raw?, looked.found.value.as_ref()?.len))
    };
    let known: Vec<(u64, u64)> = looked.iter().filter_map(|looked| raw(looked)).collect();
    let part = of_pattern as f64 / strings.max(1) as f64;
    let outcome = |(place, way): (usize, Way)| {
        let after = |raw: u64| if raw < MIN_BYTES as u64 { raw as f64 } else { raw as f64 * way.ratio };
        let saved: f64 = known.iter().map(|(raw, stored)| *stored as f64 - after(*raw)).sum();
        let dictionary = way.dictionary.map_or(0, |(_, len)| len as i64);
        let seconds = traffic.map(|traffic| {
            let each = traffic.writes_per_second * way.encode_microseconds
                + traffic.reads_per_second * way.decode_microseconds;
            part * each * SECONDS_OF_A_DAY / 1e6
        });
        let factor = scale.keys as f64 / scale.sampled.max(1) as f64;
        Outcome {
            saved: (saved * factor) as i64 - dictionary,
            processor_seconds_per_day: seconds,
            worth: evaluation.worth(place, goal),
            way,
        }
    };
    pattern.best = Some(evaluation.best());
    pattern.ways = evaluation.ways().into_iter().enumerate().map(outcome).collect();
}

/// The one way for all patterns that is worth the most, with a dictionary where that is better.
fn advise(patterns: &[Pattern], goal: Goal) -> Option<Advice> {
    let all = patterns.iter().flat_map(|pattern| &pattern.ways).filter(|outcome| outcome.way.codec != "none");
    let candidates: BTreeSet<(&str, i32)> =
        all.map(|outcome| (outcome.way.codec, outcome.way.level)).collect();
    let with = |&(codec, level): &(&str, i32)| -> Vec<(&Pattern, &Outcome)> {
        let is_meant = |outcome: &&Outcome| (outcome.way.codec, outcome.way.level) == (codec, level);
        patterns
            .iter()
            .filter_map(|pattern| {
                let ways = pattern.ways.iter().filter(is_meant);
                Some((pattern, ways.max_by(|a, b| a.worth.total_cmp(&b.worth))?))
            })
            .collect()
    };
    let worth = |candidate: &(&str, i32)| -> f64 {
        with(candidate).iter().map(|(pattern, outcome)| outcome.worth * pattern.keys as f64).sum()
    };
    let best = candidates.iter().max_by(|a, b| worth(a).total_cmp(&worth(b)));
    let &(codec, level) = best.filter(|best| worth(best) > 0.0)?;
    let mut chosen = with(&(codec, level));
    chosen.retain(|(pattern, _)| pattern.best != Some(0));
    let saved = chosen.iter().map(|(_, outcome)| outcome.saved).sum();
    let with_dictionary = chosen.iter().filter(|(_, outcome)| outcome.way.dictionary.is_some());
    let dictionaries: Vec<String> = with_dictionary.map(|(pattern, _)| pattern.pattern.clone()).collect();
    let is_default = matches!((codec, level), ("lz4", 0) | ("zstd", 3));
    let clients = clients(&Configuration {
        codec,
        level: (!is_default).then_some(level),
        catalogue: !dictionaries.is_empty(),
    });
    let serve = match goal {
        Goal::Balanced => "snugly serve --compression auto".to_owned(),
        goal => format!("snugly serve --compression auto --compression-goal {goal}"),
    };
    Some(Advice { saved, dictionaries, clients, serve })
}

fn notes(
    deployment: &Deployment,
    sampled: &Sampled,
    traffic: Option<&Traffic>,
    looked: &[Looked<'_>],
    patterns: &[Pattern],
) -> Vec<String> {
    let mut notes: Vec<String> = sampled.notes.iter().cloned().collect();
    let count =
        |is_meant: &dyn Fn(&Looked<'_>) -> bool| looked.iter().filter(|looked| is_meant(looked)).count();
    let cut = count(&|looked| {
        let value = looked.found.value.as_ref();
        value.is_some_and(|value| value.len > MAX_VALUE_BYTES && !value.bytes.is_empty())
    });
    if cut > 0 {
        let limit = HumanBytes(MAX_VALUE_BYTES);
        notes.push(format!("{cut} sampled values are longer than {limit} and are judged by their start"));
    }
    let unreadable =
        count(&|looked| looked.seen.as_ref().is_some_and(|seen| seen.shape == Shape::Unreadable));
    if unreadable > 0 {
        notes.push(format!(
            "{unreadable} sampled envelopes cannot be read here (snugly decode says why) and count as they are"
        ));
    }
    match traffic {
        None => notes.push("INFO commandstats may not be asked: costs a day are not known".to_owned()),
        Some(traffic)
            if traffic.is_since_start
                && traffic.refused.iter().any(|row| OWN_COMMANDS.contains(&&row.command[..])) =>
        {
            notes.push(format!("earlier runs of this count as calls of {}, too", OWN_COMMANDS.join(" and ")));
        }
        Some(_) => {}
    }
    let is_unjudged =
        |pattern: &&Pattern| pattern.ways.is_empty() && pattern.types.iter().any(|kind| kind == "string");
    let unjudged: usize = patterns.iter().filter(is_unjudged).map(|pattern| pattern.sampled).sum();
    if unjudged > 0 {
        notes.push(format!(
            "{unjudged} sampled keys were not judged: their values are short, or they are too few; snugly explain tries \
             a single value"
        ));
    }
    notes.extend(deployment.eviction_warning());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_names_and_an_order() {
        assert_eq!(size_of(0), Some((0, "under 32 B".to_owned())));
        assert_eq!(size_of(64), Some((2, "under 256 B".to_owned())));
        assert_eq!(size_of(1 << 20), Some((8, "1.00 MiB and more".to_owned())));
    }

    #[test]
    fn the_sample_stands_for_all_keys() {
        assert_eq!(Scale { sampled: 100, keys: 5_000 }.up(3), 150);
        assert_eq!(Scale { sampled: 0, keys: 0 }.up(0), 0);
    }

    fn pattern(text: &str, ways: &[(&'static str, i32, bool, i64)], best: usize) -> Pattern {
        let outcome = |&(codec, level, dictionary, saved): &(&'static str, i32, bool, i64)| Outcome {
            way: Way {
                name: String::new(),
                codec,
                level,
                dictionary: dictionary.then_some((40_000, 4096)),
                ratio: 0.5,
                encode_microseconds: 1.0,
                decode_microseconds: 1.0,
            },
            saved,
            processor_seconds_per_day: None,
            worth: saved as f64,
        };
        Pattern {
            pattern: text.to_owned(),
            is_joined: false,
            keys: 1,
            sampled: 1,
            types: vec!["string".to_owned()],
            stored: 1,
            raw: 1,
            memory: None,
            expiring: None,
            compressed: 0.0,
            enveloped: 0.0,
            ways: ways.iter().map(outcome).collect(),
            best: Some(best),
        }
    }

    #[test]
    fn the_advice_is_the_one_way_that_is_worth_most_for_all_and_names_the_patterns_with_a_dictionary() {
        let none = ("none", 0, false, 0);
        let patterns = [
            pattern(
                "page:*",
                &[none, ("lz4", 0, false, 100), ("zstd", 1, false, 80), ("zstd", 1, true, 70)],
                1,
            ),
            pattern(
                "user:*",
                &[none, ("lz4", 0, false, 5), ("zstd", 1, false, 90), ("zstd", 1, true, 900)],
                3,
            ),
            pattern("noise:*", &[none, ("lz4", 0, false, -1), ("zstd", 1, false, -5)], 0),
        ];
        let advice = advise(&patterns, Goal::Memory).expect("there is something to save");
        let left_alone_is_not_counted = 80 + 900;
        assert_eq!(
            (advice.saved, advice.dictionaries),
            (left_alone_is_not_counted, vec!["user:*".to_owned()])
        );
        assert!(advice.clients.iter().any(|client| {
            client
                .configuration
                .ends_with("(backend=\"zstd\", compression_level=1, dictionary=\"catalogue\"))")
        }));
        assert_eq!(advice.serve, "snugly serve --compression auto --compression-goal memory");
        assert!(advise(&patterns[2..], Goal::Memory).is_none());
    }
}
