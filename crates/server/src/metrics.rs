//! The server's numbers in the text format of OpenMetrics, which Prometheus and others read.
//!
//! The numbers are in the rows of `info`; this knows their form for collectors.

use std::fmt;

use indexmap::IndexMap;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::info::SOURCES;
use crate::stat::{Kind, Labels, Metric};
use crate::state::Server;

/// The content type of [`openmetrics`], for HTTP.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PREFIX: &str = "snugly";

/// A metric, as documentation shows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name, as those who collect it know it.
    pub name: String,
    /// Whether it only goes up.
    pub is_counter: bool,
    /// The labels that tell its series apart.
    pub labels: Vec<&'static str>,
    /// The help text.
    pub help: &'static str,
}

/// Every metric that there is, in the order in which they are shown.
pub fn metrics() -> Vec<Described> {
    let mut described: Vec<Described> = Vec::new();
    for (metric, labels) in SOURCES.iter().flat_map(|source| source.metrics()) {
        let name = full_name(&metric);
        if described.iter().all(|known| known.name != name) {
            let is_counter = metric.kind == Kind::Counter;
            described.push(Described { name, is_counter, labels, help: metric.help });
        }
    }
    described
}

fn full_name(metric: &Metric) -> String {
    let suffix = if metric.kind == Kind::Counter { "_total" } else { "" };
    format!("{PREFIX}_{}{suffix}", metric.name)
}

/// All numbers of this moment.
pub(crate) fn openmetrics(server: &Server) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Families::now(server)));
    let mut shown = String::new();
    text::encode(&mut shown, &registry).expect("a String can be written to");
    shown
}

/// The series of each metric, by its name: the format wants them together.
#[derive(Debug)]
struct Families(IndexMap<&'static str, Family>);

#[derive(Debug)]
struct Family {
    metric: Metric,
    series: Vec<Series>,
}

#[derive(Debug)]
struct Series {
    labels: Labels,
    value: f64,
}

impl Families {
    fn now(server: &Server) -> Families {
        let mut families = IndexMap::new();
        for source in SOURCES {
            for (metric, _) in source.metrics() {
                families.entry(metric.name).or_insert(Family { metric, series: Vec::new() });
            }
            source.measure(server, &mut |metric, labels, value| {
                families[metric.name].series.push(Series { labels, value });
            });
        }
        Families(families)
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, Family { metric, series }) in &self.0 {
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let mut encoder = encoder.encode_descriptor(name, metric.help, None, kind)?;
            for Series { labels, value } in series {
                if labels.is_empty() {
                    encode(metric.kind, *value, &mut encoder)?;
                } else {
                    encode(metric.kind, *value, &mut encoder.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn encode(kind: Kind, value: f64, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    match kind {
        Kind::Counter => encoder.encode_counter::<NoLabelSet, f64, f64>(&value, None),
        Kind::Gauge => encoder.encode_gauge(&value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_and_never_clash() {
        let metrics = metrics();
        for Described { name, help, labels, .. } in &metrics {
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(name.bytes().all(plain) && labels.iter().all(|label| label.bytes().all(plain)), "{name}");
            assert!(!help.is_empty() && !help.contains(['\n', '\\']), "{name}");
            for unit in ["nanoseconds", "milliseconds", "microseconds", "kilobytes", "total_total"] {
                assert!(!name.contains(unit), "{name}");
            }
        }
    }

    #[test]
    fn rows_that_share_a_name_say_the_same_of_it() {
        let mut known: IndexMap<&str, (Kind, &str, Vec<&str>)> = IndexMap::new();
        for source in SOURCES {
            for (metric, labels) in source.metrics() {
                let row = (metric.kind, metric.help, labels);
                assert_eq!(known.entry(metric.name).or_insert_with(|| row.clone()), &row, "{}", metric.name);
            }
        }
    }

    #[test]
    fn any_value_of_a_label_stays_one_line() {
        let metric = crate::stat::gauge("odd", "Something odd");
        let labels = vec![("pattern", "a\"b\\c\nd".to_owned()), ("number", "1".to_owned())];
        let family = Family { metric, series: vec![Series { labels, value: 0.5 }] };
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(Families(IndexMap::from([("odd", family)]))));
        let mut shown = String::new();
        text::encode(&mut shown, &registry).expect("a String can be written to");
        assert_eq!(
            shown,
            "# HELP snugly_odd Something odd\n# TYPE snugly_odd gauge\n\
             snugly_odd{pattern=\"a\\\"b\\\\c\\nd\",number=\"1\"} 0.5\n# EOF\n"
        );
    }
}
