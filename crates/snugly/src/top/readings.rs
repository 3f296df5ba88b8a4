//! Readings: what a server said of itself at one moment, as numbers.
//!
//! Knows the fields of INFO and the replies of LATENCY HISTOGRAM, DICTIONARY, COMPRESSION LIST and COMMAND. All of it is
//! foreign: what is not there or not as expected is left out, and nothing else fails for it. Must not know connections, or
//! what is shown.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use redis::Value;
use snugly_protocol::escape::escape;

use crate::live::deployment;
use crate::live::node::Info;

/// Kinds of commands that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Reads,
    Writes,
    Lists,
    Others,
}

impl Family {
    pub(crate) const ALL: [Family; 4] = [Family::Reads, Family::Writes, Family::Lists, Family::Others];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::Reads => "reads",
            Family::Writes => "writes",
            Family::Lists => "lists",
            Family::Others => "others",
        }
    }
}

/// One of something for each family, in their order.
pub(crate) type ByFamily<T> = [T; Family::ALL.len()];

/// The families of commands, by the names that COMMAND gives, which are lower case.
pub(crate) type Families = HashMap<String, Family>;

/// How many calls took more than half of so many microseconds and not more than so many.
pub(crate) type Histogram = BTreeMap<u64, u64>;

/// Replies of a server at one moment; those that it did not give are nothing.
#[derive(Default)]
pub(crate) struct Replies {
    pub(crate) info: Info,
    pub(crate) histograms: Option<Value>,
    pub(crate) dictionaries: Option<Value>,
    pub(crate) classes: Option<Value>,
    pub(crate) decisions: Option<Value>,
}

/// What a server said of itself at one moment.
pub(crate) struct Reading {
    pub(crate) at: Instant,
    info: Info,
    /// Calls since the server was started; nothing if it does not tell the families of its commands.
    pub(crate) calls: ByFamily<Option<f64>>,
    /// Durations of these calls; nothing if it does not tell them.
    pub(crate) histograms: Option<ByFamily<Histogram>>,
    pub(crate) codecs: Vec<Codec>,
    pub(crate) classes: Vec<Class>,
    pub(crate) dictionaries: Vec<Dictionary>,
}

/// Values that were written with one codec, since the start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Codec {
    pub(crate) name: String,
    pub(crate) values: f64,
    pub(crate) given: f64,
    pub(crate) stored: f64,
}

/// Values with keys of one pattern and about one length.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Class {
    pub(crate) pattern: String,
    /// Bytes of the shortest ones.
    pub(crate) least: f64,
    pub(crate) written: f64,
    /// Nothing while it is undecided.
    pub(crate) codec: Option<String>,
    /// Stored bytes for each byte of a value.
    pub(crate) ratio: Option<f64>,
    /// Bytes of memory that are saved of all that was written, about.
    pub(crate) saved: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dictionary {
    pub(crate) pattern: String,
    pub(crate) number: f64,
    pub(crate) is_active: bool,
    pub(crate) values: f64,
    pub(crate) memory: f64,
    /// Stored bytes for each byte of a value: without the dictionary, with it, and of values written lately.
    pub(crate) without: Option<f64>,
    pub(crate) with: Option<f64>,
    pub(crate) now: Option<f64>,
    /// Unix time in seconds.
    pub(crate) trained_at: f64,
}

impl Reading {
    pub(crate) fn new(at: Instant, replies: Replies, families: &Families) -> Reading {
        let Replies { info, histograms, dictionaries, classes, decisions } = replies;
        let decisions = decisions.map(rows).unwrap_or_default();
        let classes = classes.map(rows).unwrap_or_default();
        let dictionaries = dictionaries.map(rows).unwrap_or_default();
        Reading {
            at,
            calls: calls(&info, families),
            histograms: histograms.filter(|_| !families.is_empty()).map(|reply| by_family(reply, families)),
            codecs: codecs(&info),
            classes: classes.iter().filter_map(|row| class(row, &decisions)).collect(),
            dictionaries: dictionaries.iter().filter_map(dictionary).collect(),
            info,
        }
    }

    /// A field of INFO that is a number.
    pub(crate) fn number(&self, field: &str) -> Option<f64> {
        number(self.info.get(field)?)
    }

    /// A field of INFO, without what could control a terminal.
    pub(crate) fn text(&self, field: &str) -> Option<String> {
        self.info.get(field).map(|text| escape(text.as_bytes()))
    }

    /// Name and version of the software.
    pub(crate) fn software(&self) -> String {
        escape(deployment::software(&self.info).as_bytes())
    }

    /// A number of each database, added up, such as `keys`.
    pub(crate) fn keyspace(&self, name: &str) -> Option<f64> {
        if !self.info.contains_key("redis_version") {
            return None;
        }
        let databases = self.info.iter().filter(|(field, _)| {
            field.strip_prefix("db").is_some_and(|number| number.parse::<u32>().is_ok())
        });
        Some(databases.filter_map(|(_, text)| part(text, name)).sum())
    }

    /// The sum over all codecs.
    pub(crate) fn of_codecs(&self, of: fn(&Codec) -> f64) -> Option<f64> {
        (!self.codecs.is_empty()).then(|| self.codecs.iter().map(of).sum())
    }
}

/// The families of the commands in the reply to COMMAND.
pub(crate) fn families(reply: Value) -> Families {
    let row = |row| {
        let Value::Array(row) = row else { return None };
        let has = |place: usize, wanted: &str| match row.get(place) {
            Some(Value::Array(words) | Value::Set(words)) => {
                words.iter().any(|word| text(word).as_deref() == Some(wanted))
            }
            _ => false,
        };
        let family = match () {
            () if has(6, "@list") => Family::Lists,
            () if has(2, "write") => Family::Writes,
            () if has(2, "readonly") => Family::Reads,
            () => Family::Others,
        };
        Some((text(row.first()?)?.to_lowercase(), family))
    };
    let Value::Array(rows) = reply else { return Families::new() };
    rows.into_iter().filter_map(row).collect()
}

/// The family of a command or subcommand (`config|get`); those that nothing is known of are others.
fn family(name: &str, families: &Families) -> Family {
    let command = name.split('|').next().unwrap_or(name);
    families.get(command).copied().unwrap_or(Family::Others)
}

fn calls(info: &Info, families: &Families) -> ByFamily<Option<f64>> {
    if families.is_empty() {
        return [None; Family::ALL.len()];
    }
    let mut calls = [Some(0.0); Family::ALL.len()];
    for (field, text) in info {
        if let Some(name) = field.strip_prefix("cmdstat_")
            && let Some(count) = part(text, "calls")
        {
            let sum = &mut calls[family(name, families) as usize];
            *sum = sum.map(|sum| sum + count);
        }
    }
    calls
}

/// The reply to LATENCY HISTOGRAM: for each command its calls, and how many took so many microseconds or less.
fn by_family(reply: Value, families: &Families) -> ByFamily<Histogram> {
    let mut histograms = ByFamily::<Histogram>::default();
    for (name, of) in pairs(reply) {
        let Some(name) = text(&name) else { continue };
        let histogram = &mut histograms[family(&name, families) as usize];
        let counts =
            pairs(of).into_iter().filter(|(name, _)| text(name).as_deref() == Some("histogram_usec"));
        let mut before = 0;
        for (limit, count) in counts.flat_map(|(_, counts)| pairs(counts)) {
            let (Value::Int(limit), Value::Int(count)) = (limit, count) else { continue };
            let (limit, count) = (limit.max(0) as u64, count.max(0) as u64);
            let sum = histogram.entry(limit).or_default();
            *sum = sum.saturating_add(count.saturating_sub(before));
            before = count;
        }
    }
    histograms
}

fn codecs(info: &Info) -> Vec<Codec> {
    let of = |measure: &str, name: &str| number(info.get(&format!("encoded_{measure}_{name}"))?);
    let codec = |(field, _): (&String, &String)| {
        let name = field.strip_prefix("encoded_values_")?;
        Some(Codec {
            name: escape(name.replace('_', " + ").as_bytes()),
            values: of("values", name)?,
            given: of("bytes_in", name)?,
            stored: of("bytes_out", name)?,
        })
    };
    let mut codecs: Vec<Codec> = info.iter().filter_map(codec).collect();
    codecs.sort_by(|a, b| b.given.total_cmp(&a.given).then_with(|| a.name.cmp(&b.name)));
    codecs
}

/// The fields of a row, by their names.
type Row = HashMap<String, Value>;

fn rows(reply: Value) -> Vec<Row> {
    let Value::Array(rows) = reply else { return Vec::new() };
    let row = |row| pairs(row).into_iter().filter_map(|(name, value)| Some((text(&name)?, value))).collect();
    rows.into_iter().map(row).collect()
}

fn class(row: &Row, decisions: &[Row]) -> Option<Class> {
    let same =
        |decision: &&Row| ["pattern", "min_len"].iter().all(|&name| decision.get(name) == row.get(name));
    let decision = decisions.iter().find(same);
    let of = |name: &str| real(decision?.get(name)?);
    let written = real(row.get("seen")?)?;
    Some(Class {
        pattern: escape(bytes(row.get("pattern")?)?),
        least: real(row.get("min_len")?)?,
        written,
        codec: decision.and_then(|row| text(row.get("codec")?)),
        ratio: of("ratio_now").or_else(|| of("ratio")),
        saved: of("saved_bytes").map(|each| each * written),
    })
}

fn dictionary(row: &Row) -> Option<Dictionary> {
    let of = |name: &str| real(row.get(name)?);
    Some(Dictionary {
        pattern: escape(bytes(row.get("pattern")?)?),
        number: of("number")?,
        is_active: of("active")? == 1.0,
        values: of("records")?,
        memory: of("memory")?,
        without: of("ratio_before"),
        with: of("ratio_after"),
        now: of("ratio_now"),
        trained_at: of("trained_at")? / 1e3,
    })
}

/// Names and values, which are flat in RESP2.
fn pairs(reply: Value) -> Vec<(Value, Value)> {
    match reply {
        Value::Map(pairs) => pairs,
        Value::Array(fields) => {
            let mut fields = fields.into_iter();
            std::iter::from_fn(|| Some((fields.next()?, fields.next()?))).collect()
        }
        _ => Vec::new(),
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.as_bytes()),
        _ => None,
    }
}

/// A text, without what could control a terminal.
fn text(value: &Value) -> Option<String> {
    bytes(value).map(escape)
}

fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Double(number) => Some(*number).filter(|number| number.is_finite()),
        value => number(str::from_utf8(bytes(value)?).ok()?),
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A number of a field that has several, such as `calls=7,usec=9`.
fn part(text: &str, name: &str) -> Option<f64> {
    text.split(',').find_map(|part| number(part.strip_prefix(name)?.strip_prefix('=')?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::live::node::fields;

    pub(crate) fn word(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    pub(crate) fn list(words: &[Value]) -> Value {
        Value::Array(words.to_vec())
    }

    /// COMMAND, of some commands.
    pub(crate) fn some_families() -> Families {
        let row = |name: &str, flag: &str, category: &str| {
            let status = |text: &str| list(&[Value::SimpleString(text.to_owned())]);
            let place = || Value::Int(1);
            list(&[word(name), place(), status(flag), place(), place(), place(), status(category)])
        };
        families(list(&[
            row("get", "readonly", "@string"),
            row("SET", "write", "@string"),
            row("lpush", "write", "@list"),
            row("config", "admin", "@admin"),
        ]))
    }

    fn counts(pairs: &[(i64, i64)]) -> Value {
        let flat = pairs.iter().flat_map(|&(limit, count)| [Value::Int(limit), Value::Int(count)]);
        list(&[word("calls"), Value::Int(9), word("histogram_usec"), Value::Array(flat.collect())])
    }

    #[test]
    fn calls_are_added_up_by_family() {
        let info = fields(
            "cmdstat_get:calls=7,usec=1\r\ncmdstat_set:calls=3,usec=1\r\ncmdstat_config|get:calls=2\r\n\
             cmdstat_lpush:calls=5\r\ncmdstat_new:calls=1\r\ncmdstat_odd:calls=many\r\n",
        );
        let reading = Reading::new(Instant::now(), Replies { info, ..Replies::default() }, &some_families());
        assert_eq!(reading.calls, [Some(7.0), Some(3.0), Some(5.0), Some(3.0)]);
    }

    #[test]
    fn without_families_nothing_is_told_of_them() {
        let info = fields("cmdstat_get:calls=7\r\n");
        let replies = Replies { info, histograms: Some(list(&[])), ..Replies::default() };
        let reading = Reading::new(Instant::now(), replies, &Families::new());
        assert_eq!(reading.calls, [None; 4]);
        assert!(reading.histograms.is_none());
    }

    #[test]
    fn histograms_are_added_up_by_family_and_not_cumulative() {
        let reply = list(&[
            word("get"),
            counts(&[(1, 5), (4, 9)]),
            word("GET|other"),
            counts(&[(1, 1)]),
            word("set"),
            counts(&[(2, 9)]),
        ]);
        let histograms = by_family(reply, &some_families());
        assert_eq!(histograms[Family::Reads as usize], Histogram::from([(1, 5), (4, 4)]));
        assert_eq!(histograms[Family::Writes as usize], Histogram::from([(2, 9)]));
        assert_eq!(histograms[Family::Others as usize], Histogram::from([(1, 1)]));
    }

    #[test]
    fn classes_have_what_was_decided_for_them_and_foreign_bytes_are_escaped() {
        let row = |least, fields: &[Value]| {
            let named = [word("pattern"), Value::BulkString(b"k\xe4\x1b[31m:*".to_vec())];
            let length = [word("min_len"), Value::Int(least)];
            Value::Array([&named[..], &length, fields].concat())
        };
        let replies = Replies {
            classes: Some(list(&[
                row(128, &[word("seen"), Value::Int(10)]),
                row(512, &[word("seen"), Value::Int(4)]),
                Value::Nil,
            ])),
            decisions: Some(list(&[row(
                128,
                &[
                    word("codec"),
                    word("lz4"),
                    word("saved_bytes"),
                    word("2.5"),
                    word("ratio_now"),
                    Value::Nil,
                ],
            )])),
            ..Replies::default()
        };
        let reading = Reading::new(Instant::now(), replies, &Families::new());
        let [decided, undecided] = &reading.classes[..] else { panic!("{:?}", reading.classes) };
        assert_eq!(decided.pattern, "k\\xe4\\x1b[31m:*");
        assert_eq!((decided.codec.as_deref(), decided.saved, decided.ratio), (Some("lz4"), Some(25.0), None));
        assert_eq!((undecided.codec.as_deref(), undecided.saved), (None, None));
    }

    #[test]
    fn odd_replies_are_left_out() {
        for odd in [Value::Nil, Value::Int(-1), word("x"), list(&[Value::Nil]), list(&[list(&[word("a")])])] {
            assert!(families(odd.clone()).is_empty() || odd != Value::Nil);
            let replies = Replies {
                info: fields("used_memory:NaN\r\nuptime_in_seconds\r\nencoded_values_x:1\r\ndb0:keys\r\n"),
                histograms: Some(odd.clone()),
                dictionaries: Some(odd.clone()),
                classes: Some(odd.clone()),
                decisions: Some(odd),
            };
            let reading = Reading::new(Instant::now(), replies, &some_families());
            assert!(
                reading.dictionaries.is_empty() && reading.classes.is_empty() && reading.codecs.is_empty()
            );
            assert_eq!((reading.number("used_memory"), reading.number("uptime_in_seconds")), (None, None));
            assert_eq!(reading.keyspace("keys"), None);
        }
        let wild = list(&[word("get"), counts(&[(-5, i64::MAX), (i64::MAX, -1), (4, 2)])]);
        by_family(wild, &some_families());
    }
}
