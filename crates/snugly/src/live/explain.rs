//! `snugly explain`: how one value is stored in a live server, and what would be best for its kind.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use redis::Value;
use snugly_codec::envelope;
use snugly_dictionaries::Keys;
use snugly_learning::{Goal, Sample};
use snugly_protocol::escape::{escape, unescape};

use super::address::Reach;
use super::catalogue::Dictionaries;
use super::census;
use super::deployment::Deployment;
use super::evaluation::{self, Evaluation, Kind, LEAST_SAMPLES};
use super::sampling::{self, Found, KeyFilter, MAX_VALUE_BYTES, Sampled, Speed, Stored};
use super::values::{Shape, look_at, needed_dictionaries};
use super::{catalogue, units};
use crate::interrupt::Interrupt;
use crate::table::lay_out;

/// Longer values are known by their start, in bytes.
const LONGEST: u64 = 8 << 20;
/// Number of keys that tell which parts of them vary.
const KEYS: u64 = 2_000;
/// With fewer values of the kind among these, more of it are looked for.
const FEW: usize = 64;

#[derive(Args, Debug)]
struct Options {
    #[command(flatten)]
    reach: Reach,

    /// Key to explain; bytes that are not text as reports show them, such as \\xff
    key: String,

    #[command(flatten)]
    speed: Speed,

    /// Number of keys of its kind to sample
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    sample: u64,

    /// Reads of such a value for each write
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    reads: f64,

    /// Prefix of the keys of dictionaries
    #[arg(long, value_name = "TEXT", default_value = Keys::DEFAULT_PREFIX)]
    prefix: String,
}

pub(crate) fn command(command: Command) -> Command {
    Options::augment_args(command)
        .about("Explains how a value is stored in a live server, and the best encoding of its kind")
        .after_help("Reads only. Example:\n  snugly explain redis://localhost:6379 user:1")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let options = Options::from_arg_matches(matches)?;
    let mut deployment = Deployment::open(&options.reach)?;
    let key = &unescape(options.key.as_bytes())[..];
    let keys = Keys::new(&options.prefix);
    let kind: String = deployment.node_of(key)?.ask(&[b"TYPE", key])?;
    match kind.as_str() {
        "string" => {}
        "none" => bail!("{} has no key \"{}\"", options.reach.url, options.key),
        kind => return print(&other_type(&options.key, kind)),
    }
    let asked = Asked::read(&mut deployment, &keys, key)?;
    print(&(asked.told(key) + &told_by_snugly(&mut deployment, key)?))?;
    let sampled = of_its_kind(&options, &mut deployment, key)?;
    print(&choices(&options, &mut deployment, &keys, (key, &asked), &sampled)?)
}

/// The explanation of a key that is no string.
fn other_type(key: &str, kind: &str) -> String {
    let opt_in = match kind {
        "hash" => "its values are compressed by clients that have hashes among their value types",
        "list" => "its values are compressed by clients that have lists among their value types",
        "stream" => "its values are compressed by clients that have streams among their value types",
        _ => "clients never compress these",
    };
    format!("\"{key}\" is a {kind}: {opt_in}\n")
}

/// The value that was asked for.
struct Asked {
    stored: Stored,
    /// The dictionaries that it needs.
    dictionaries: Dictionaries,
    /// Bytes of the server's memory, if anybody may know.
    memory: Option<u64>,
}

impl Asked {
    fn read(deployment: &mut Deployment, keys: &Keys, key: &[u8]) -> Result<Asked> {
        let node = deployment.node_of(key)?;
        let len: u64 = node.ask(&[b"STRLEN", key])?;
        let memory: Option<Option<u64>> = node.ask_if_allowed(&[b"MEMORY", &b"USAGE"[..], key])?;
        let bytes: Vec<u8> = match len > LONGEST {
            true => node.ask(&[b"GETRANGE", key, b"0", (LONGEST - 1).to_string().as_bytes()])?,
            false => node.ask::<Option<Vec<u8>>, _>(&[b"GET", key])?.unwrap_or_default(),
        };
        let stored = Stored { len, bytes };
        let needed = needed_dictionaries(std::iter::once(&stored));
        let dictionaries = catalogue::fetch_all(deployment, keys, &needed)?;
        Ok(Asked { stored, dictionaries, memory: memory.flatten() })
    }

    /// The present encoding.
    fn told(&self, key: &[u8]) -> String {
        let len = units::bytes(self.stored.len);
        let mut text = format!("\"{}\": a string of {len}\n", escape(key));
        text.push_str(&shape(&self.stored, &self.dictionaries));
        if let Some(memory) = self.memory {
            let memory = units::bytes(memory);
            let _ = writeln!(text, "memory of the server: {memory}, key and overhead included");
        }
        text
    }
}

/// The kind of the bytes.
fn shape(stored: &Stored, dictionaries: &Dictionaries) -> String {
    let seen = look_at(stored, dictionaries);
    let envelope = envelope::inspect(&stored.bytes);
    let backend = envelope.map_or(0, |envelope| envelope.backend());
    let raw = seen.raw_len.map_or("of a length that it does not claim".to_owned(), |raw| {
        format!(
            "{} uncompressed, {} saved",
            units::bytes(raw),
            units::percent(raw as f64 - stored.len as f64, raw as f64)
        )
    });
    let mut text = match seen.shape {
        Shape::Plain => "stored: plain, no envelope\n".to_owned(),
        Shape::Compressed => {
            "stored: no envelope, and in a compressed format or random: compressing it gains nothing\n"
                .to_owned()
        }
        Shape::Envelope(codec) => {
            format!(
                "stored: envelope, {codec} (backend {backend:02x}, level unknown: envelopes do not tell), {raw}\n"
            )
        }
        Shape::Unreadable => {
            format!(
                "stored: envelope (backend {backend:02x}) that cannot be read here, {raw}: snugly decode says why\n"
            )
        }
    };
    if let Some(id) = envelope.and_then(|envelope| envelope.dictionary_id()) {
        let is_there = if dictionaries.contains_key(&id) { "at hand" } else { "not there" };
        let _ = writeln!(text, "dictionary: {id}, {is_there} beside the data");
    }
    text
}

/// The explanation of a snugly server itself; nothing of any other.
fn told_by_snugly(deployment: &mut Deployment, key: &[u8]) -> Result<String> {
    if !deployment.is_snugly() {
        return Ok(String::new());
    }
    let node = deployment.node_of(key)?;
    let mut text = String::new();
    for (title, words) in [
        ("kept by snugly", [b"OBJECT", &b"COMPRESSION"[..], key]),
        ("explained by snugly", [b"COMPRESSION", &b"EXPLAIN"[..], key]),
    ] {
        // An older server knows only the first.
        let told: Option<Value> = node.ask_if_allowed(&words)?;
        let told = told.map(fields).unwrap_or_default();
        if !told.is_empty() {
            text.push_str(&listed(title, &told));
        }
    }
    Ok(text)
}

/// The dictionaries that a snugly server has learned for keys of a pattern; none of any other.
fn learned_by_snugly(deployment: &mut Deployment, pattern: &[u8]) -> Result<String> {
    if !deployment.is_snugly() {
        return Ok(String::new());
    }
    let rows: Option<Vec<Value>> = deployment.nodes[0].ask_if_allowed(&["DICTIONARY", "LIST"])?;
    let rows = rows.unwrap_or_default().into_iter().map(fields);
    let is_meant =
        |row: &Fields| row.iter().any(|(name, value)| name == "pattern" && text_of(value) == escape(pattern));
    Ok(rows.filter(is_meant).map(|row| listed("learned by snugly", &row)).collect())
}

/// Names and values, as they came.
type Fields = Vec<(String, Value)>;

/// The fields of a reply; none if it is no map.
fn fields(reply: Value) -> Fields {
    let pairs: Vec<(Value, Value)> = match reply {
        Value::Map(pairs) => pairs,
        Value::Array(values) => {
            values.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        }
        _ => Vec::new(),
    };
    pairs.into_iter().map(|(name, value)| (text_of(&name), value)).collect()
}

/// Fields under a title, a line each; of a list of maps each map has a line.
fn listed(title: &str, fields: &Fields) -> String {
    let mut text = format!("{title}:\n");
    for (name, value) in fields {
        let rows = match value {
            Value::Array(rows) => rows.iter().map(row).collect(),
            _ => None,
        };
        let _ = match rows {
            Some::<Vec<String>>(rows) => writeln!(text, "  {name}:\n    {}", rows.join("\n    ")),
            None => writeln!(text, "  {name}: {}", text_of(value)),
        };
    }
    text
}

/// A map in one line; nothing if it is none.
fn row(value: &Value) -> Option<String> {
    let is_map = matches!(value, Value::Map(_) | Value::Array(_));
    let pairs = is_map.then(|| fields(value.clone()))?;
    Some(
        pairs.iter().map(|(name, value)| format!("{name} {}", text_of(value))).collect::<Vec<_>>().join(", "),
    )
}

fn text_of(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => escape(bytes),
        Value::SimpleString(text) => text.clone(),
        Value::Okay => "OK".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => format!("{number:.3}"),
        Value::Boolean(flag) => flag.to_string(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join(" "),
        _ => "-".to_owned(),
    }
}

/// Strings whose keys are of the pattern of the key.
struct OfItsKind {
    pattern: Vec<u8>,
    found: Vec<Found>,
    sampled: Sampled,
    population: u64,
}

fn of_its_kind(options: &Options, deployment: &mut Deployment, key: &[u8]) -> Result<OfItsKind> {
    let without = catalogue::all_keys(&options.prefix);
    let (stop, speed) = (Interrupt::on_interrupt()?, options.speed.of_pattern());
    let mut wanted = KeyFilter {
        keys: KEYS.max(options.sample),
        pattern: None,
        only_strings: true,
        value_bytes: MAX_VALUE_BYTES,
        without: without.as_bytes(),
    };
    let mut sampled = sampling::sample(deployment, &wanted, &speed, &stop)?;
    let keys = sampled.found.iter().map(|found| &found.key[..]).chain(std::iter::once(key));
    let mut patterns = census::patterns_of(keys);
    let pattern = patterns.pop().unwrap_or_default();
    let all = sampled.found.len() as u64;
    let is_meant: Vec<bool> = patterns.iter().map(|other| *other == pattern).collect();
    let mut meant = is_meant.into_iter();
    let mut found = std::mem::take(&mut sampled.found);
    found.retain(|_| meant.next().unwrap_or(false));
    let mut population = found.len() as u64 * sampled.population / all.max(1);
    if found.len() < FEW && !matches!(sampled.ended, sampling::Ended::Complete) && !stop.is_set() {
        let glob = census::glob(&pattern);
        wanted = KeyFilter { keys: options.sample, pattern: Some(&glob), ..wanted };
        sampled = sampling::sample(deployment, &wanted, &speed, &stop)?;
        population = sampled.population;
        found = std::mem::take(&mut sampled.found);
    }
    found.truncate(options.sample as usize);
    Ok(OfItsKind { pattern, found, sampled, population })
}

/// Savings and cost of each choice for its kind, and the choice of each goal. The requested value is tried whatever was
/// sampled.
fn choices(
    options: &Options,
    deployment: &mut Deployment,
    keys: &Keys,
    (key, asked): (&[u8], &Asked),
    kind: &OfItsKind,
) -> Result<String> {
    let stored = || kind.found.iter().filter_map(|found| Some((&found.key, found.value.as_ref()?)));
    let needed = needed_dictionaries(stored().map(|(_, value)| value));
    let dictionaries = catalogue::fetch_all(deployment, keys, &needed)?;
    let values: Vec<(&[u8], Vec<u8>)> =
        stored().filter_map(|(key, value)| Some((&key[..], look_at(value, &dictionaries).value?))).collect();
    let own = look_at(&asked.stored, &asked.dictionaries).value.map(|value| (key, value));
    let others = values.iter().filter(|(other, _)| *other != key);
    let samples: Vec<Sample> =
        evaluation::samples(own.iter().chain(others).map(|(key, value)| (*key, &value[..])));
    let mut text = format!(
        "\nkind: {}, about {} keys, {} sampled\n",
        escape(&kind.pattern),
        units::count(kind.population),
        kind.found.len()
    );
    text.push_str(&learned_by_snugly(deployment, &kind.pattern)?);
    kind.sampled.notes.iter().for_each(|note| {
        let _ = writeln!(text, "note: {note}");
    });
    let terms = Kind { population: kind.population, reads: options.reads, trains: true };
    let evaluating = sampling::spinner("evaluating");
    let evaluation = evaluation::evaluate(&samples, terms, Goal::Memory);
    evaluating.finish_and_clear();
    match evaluation {
        Some(evaluation) => text.push_str(&compared(&evaluation)),
        None => text.push_str("none of them has 64 bytes and more, so clients would compress none\n"),
    }
    if (1..LEAST_SAMPLES).contains(&samples.len()) {
        let _ = writeln!(text, "measured on {} only: this says little of its kind", samples.len());
    }
    Ok(text)
}

fn compared(evaluation: &Evaluation) -> String {
    const GOALS: [Goal; 3] = [Goal::Memory, Goal::Balanced, Goal::Speed];
    let ways = evaluation.ways();
    let row = |(place, way): (usize, &evaluation::Way)| {
        let goals = GOALS.iter().filter(|goal| evaluation.best_for(**goal) == place);
        vec![
            way.name.clone(),
            units::percent(1.0 - way.ratio, 1.0),
            units::microseconds(way.encode_microseconds),
            units::microseconds(way.decode_microseconds),
            goals.map(|goal| goal.name()).collect::<Vec<_>>().join(" "),
        ]
    };
    let rows: Vec<_> = ways.iter().enumerate().map(row).collect();
    let mut text = lay_out(&["way", "saves", "write", "read", "taken by the goal"], &rows);
    for goal in GOALS {
        let best = evaluation.best_for(goal);
        let worth = evaluation.worth(best, goal) / 1000.0;
        let price = goal.price();
        let why = match best {
            0 => "nothing else saves more than its time is worth".to_owned(),
            _ => format!("what it saves is worth {worth:.1} us of time a value more than it takes"),
        };
        let _ =
            writeln!(text, "{goal}, for which a saved byte may cost {price} ns: {}; {why}", ways[best].name);
    }
    text
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_are_no_strings_say_what_clients_do_with_them() {
        assert!(other_type("h", "hash").contains("hashes among their value types"));
        assert!(other_type("z", "zset").contains("never"));
    }

    #[test]
    fn fields_are_shown_as_they_come() {
        let text = |text: &str| Value::BulkString(text.into());
        let flat = Value::Array(vec![text("codec"), text("zstd"), text("stored_bytes"), Value::Int(7)]);
        assert_eq!(listed("kept", &fields(flat.clone())), "kept:\n  codec: zstd\n  stored_bytes: 7\n");
        let nested = Value::Map(vec![(text("methods"), Value::Array(vec![flat.clone(), flat]))]);
        let row = "    codec zstd, stored_bytes 7\n";
        assert_eq!(listed("explained", &fields(nested)), format!("explained:\n  methods:\n{row}{row}"));
        assert!(fields(Value::Nil).is_empty());
    }

    #[test]
    fn a_missing_dictionary_is_named() {
        // An envelope of backend 81: magic number, a header with a dictionary ID of four bytes, and no content size.
        let bytes = [0, 1, 2, 0, 0x81, 0x28, 0xb5, 0x2f, 0xfd, 0x03, 0x58, 0x40, 0x9c, 0, 0].to_vec();
        let text = shape(&Stored { len: bytes.len() as u64, bytes }, &Dictionaries::new());
        assert!(text.contains("cannot be read here"), "{text}");
        assert!(text.contains("dictionary: 40000, not there"), "{text}");
    }
}
