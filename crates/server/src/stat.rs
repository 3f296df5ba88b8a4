//! The server's numbers, one row each: what INFO calls it, what it is called as a metric, and where it comes from.
//!
//! It knows the shape of these rows. The rows themselves have the sources of the numbers (`info`), and their text is
//! for the modules that print them (`info`, `metrics`).

use std::fmt;

use snugly_protocol::escape::escape;

use crate::state::Server;

/// The value of a stat at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Count(u64),
    /// Bytes, which INFO shows a second time in a unit for people.
    Bytes(u64),
    Difference(i64),
    /// A number that INFO shows with so many digits behind the point.
    Real(f64, usize),
    Text(String),
    /// A text that need not be one, such as a pattern of keys.
    Raw(Vec<u8>),
    /// How many events took how long, of which INFO shows how many there were.
    Times(Distribution),
    /// Not known: left out, or a dash among others.
    Unknown,
}

/// Durations in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution {
    /// Upper bounds, the last one infinite, and how many durations are above the bound before and not above this one.
    pub(crate) buckets: Vec<(f64, u64)>,
    pub(crate) sum: f64,
}

impl Distribution {
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

/// Part of a value that a metric shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Measurement {
    Number(f64),
    Times(Distribution),
}

impl Value {
    /// The value in base units, of which its own unit is a part.
    fn measurement(&self, divisor: f64) -> Option<Measurement> {
        let number = match self {
            Value::Count(number) | Value::Bytes(number) => *number as f64,
            Value::Difference(number) => *number as f64,
            Value::Real(number, _) => *number,
            Value::Times(times) => return Some(Measurement::Times(times.clone())),
            Value::Text(_) | Value::Raw(_) | Value::Unknown => return None,
        };
        Some(Measurement::Number(number / divisor))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(number) | Value::Bytes(number) => write!(f, "{number}"),
            Value::Difference(number) => write!(f, "{number}"),
            Value::Real(number, digits) => write!(f, "{number:.digits$}"),
            Value::Text(text) => f.write_str(text),
            Value::Raw(bytes) => f.write_str(&escape(bytes)),
            Value::Times(times) => write!(f, "{}", times.count()),
            Value::Unknown => f.write_str("-"),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Count(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Count(number as u64)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Value {
        Value::Count(is.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It only goes up.
    Counter,
    Gauge,
    /// Counts by duration, which only go up.
    Histogram,
}

impl Kind {
    /// Its name in the format of OpenMetrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The metric of a stat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Without the prefix of all names and, if it is a counter, without `_total`. A name stays what it is: dashboards
    /// rely on it.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The help text, for all that have the name.
    pub(crate) help: &'static str,
    /// The label, and its value, that tells it from others of its name.
    label: Option<(&'static str, &'static str)>,
    /// The stat's units in a base unit (bytes, seconds).
    divisor: f64,
}

pub(crate) const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, help, label: None, divisor: 1.0 }
}

pub(crate) const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, help, label: None, divisor: 1.0 }
}

/// A metric of [`Value::Times`].
pub(crate) const fn histogram(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, help, label: None, divisor: 1.0 }
}

impl Metric {
    pub(crate) const fn labelled(mut self, key: &'static str, value: &'static str) -> Metric {
        self.label = Some((key, value));
        self
    }

    pub(crate) const fn divided_by(mut self, divisor: f64) -> Metric {
        self.divisor = divisor;
        self
    }
}

/// Something to know of a `T`.
pub(crate) struct Stat<T> {
    /// Its name in INFO; empty if it is not shown there.
    pub(crate) field: &'static str,
    pub(crate) value: fn(&T) -> Value,
    metric: Option<Metric>,
}

/// A stat that is a metric, too.
pub(crate) const fn stat<T>(field: &'static str, value: fn(&T) -> Value, metric: Metric) -> Stat<T> {
    Stat { field, value, metric: Some(metric) }
}

/// A stat that is no metric: a text, or what follows from others.
pub(crate) const fn plain<T>(field: &'static str, value: fn(&T) -> Value) -> Stat<T> {
    Stat { field, value, metric: None }
}

/// A stat that INFO does not show, or shows in other words.
pub(crate) const fn only_metric<T>(value: fn(&T) -> Value, metric: Metric) -> Stat<T> {
    Stat { field: "", value, metric: Some(metric) }
}

/// A stat that tools ask for and that has nothing behind it here.
pub(crate) const fn nothing<T>(field: &'static str) -> Stat<T> {
    plain(field, |_| Value::Count(0))
}

/// Takes the values of a thing's labels, and the thing.
pub(crate) type Show<'a, T> = dyn FnMut(&[&str], &T) + 'a;

/// Figures of all things of one kind.
pub(crate) struct Group<T: 'static> {
    /// The labels that tell the things apart; none if there is only one.
    pub(crate) labels: &'static [&'static str],
    pub(crate) stats: &'static [Stat<T>],
    /// Shows each thing that there is, and the values of its labels.
    pub(crate) each: fn(&Server, &mut Show<'_, T>),
}

/// Labels and their values.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// Takes what was measured, what it is, and its labels.
pub(crate) type Seen<'a> = dyn FnMut(&Metric, Labels, Measurement) + 'a;

/// A group, whatever its things are.
pub(crate) trait Source: Sync {
    /// Its metrics, and the labels that each of them has.
    fn metrics(&self) -> Vec<(Metric, Vec<&'static str>)>;

    /// Shows each of its measurements with its labels.
    fn measure(&self, server: &Server, seen: &mut Seen<'_>);
}

impl<T> Source for Group<T> {
    fn metrics(&self) -> Vec<(Metric, Vec<&'static str>)> {
        let metrics = self.stats.iter().filter_map(|stat| stat.metric);
        metrics
            .map(|metric| {
                let own = metric.label.map(|(key, _)| key);
                (metric, self.labels.iter().copied().chain(own).collect())
            })
            .collect()
    }

    fn measure(&self, server: &Server, seen: &mut Seen<'_>) {
        (self.each)(server, &mut |values, thing| {
            for stat in self.stats {
                if let Some(metric) = &stat.metric
                    && let Some(measured) = (stat.value)(thing).measurement(metric.divisor)
                {
                    let keys = self.labels.iter().copied();
                    let labels = keys.zip(values.iter().copied()).chain(metric.label);
                    let labels = labels.map(|(key, value)| (key, value.to_owned())).collect();
                    seen(metric, labels, measured);
                }
            }
        });
    }
}
