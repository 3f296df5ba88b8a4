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
use crate::stat::{Kind, Labels, Measurement, Metric};
use crate::state::Server;

/// The content type of [`openmetrics`], for HTTP.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PREFIX: &str = "snugly";

/// A metric, as documentation shows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name, as those who collect it know it.
    pub name: String,
    /// Its type: counter, gauge or histogram.
    pub kind: &'static str,
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
            described.push(Described { name, kind: metric.kind.name(), labels, help: metric.help });
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
    measured: Measurement,
}

impl Families {
    fn now(server: &Server) -> Families {
        let mut families = IndexMap::new();
        for source in SOURCES {
            for (metric, _) in source.metrics() {
                families.entry(metric.name).or_insert(Family { metric, series: Vec::new() });
            }
            source.measure(server, &mut |metric, labels, measured| {
                families[metric.name].series.push(Series { labels, measured });
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
                Kind::Histogram => MetricType::Histogram,
            };
            let mut encoder = encoder.encode_descriptor(name, metric.help, None, kind)?;
            for Series { labels, measured } in series {
                if labels.is_empty() {
                    encode(metric.kind, measured, &mut encoder)?;
                } else {
                    encode(metric.kind, measured, &mut encoder.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn encode(kind: Kind, measured: &Measurement, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    match measured {
        Measurement::Number(number) if kind == Kind::Counter => {
            encoder.encode_counter::<NoLabelSet, f64, f64>(number, None)
        }
        Measurement::Number(number) => encoder.encode_gauge(number),
        Measurement::Times(times) => {
            encoder.encode_histogram::<NoLabelSet>(times.sum, times.count(), &times.buckets, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::Distribution;

    fn encoded(family: Family) -> String {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(Families(IndexMap::from([(family.metric.name, family)]))));
        let mut shown = String::new();
        text::encode(&mut shown, &registry).expect("a String can be written to");
        shown
    }

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
    fn buckets_of_a_histogram_count_everything_below_their_bound() {
        let metric = crate::stat::histogram("odd_seconds", "Something odd");
        let times = Distribution { buckets: vec![(0.001, 2), (0.5, 0), (f64::INFINITY, 1)], sum: 0.75 };
        let labels = vec![("family", "read".to_owned())];
        let family = Family { metric, series: vec![Series { labels, measured: Measurement::Times(times) }] };
        assert_eq!(
            encoded(family),
            "# HELP snugly_odd_seconds Something odd\n# TYPE snugly_odd_seconds histogram\n\
             snugly_odd_seconds_sum{family=\"read\"} 0.75\nsnugly_odd_seconds_count{family=\"read\"} 3\n\
             snugly_odd_seconds_bucket{le=\"0.001\",family=\"read\"} 2\n\
             snugly_odd_seconds_bucket{le=\"0.5\",family=\"read\"} 2\n\
             snugly_odd_seconds_bucket{le=\"+Inf\",family=\"read\"} 3\n# EOF\n"
        );
    }

    #[test]
    fn any_value_of_a_label_stays_one_line() {
        let metric = crate::stat::gauge("odd", "Something odd");
        let labels = vec![("pattern", "a\"b\\c\nd".to_owned()), ("number", "1".to_owned())];
        let family = Family { metric, series: vec![Series { labels, measured: Measurement::Number(0.5) }] };
        assert_eq!(
            encoded(family),
            "# HELP snugly_odd Something odd\n# TYPE snugly_odd gauge\n\
             snugly_odd{pattern=\"a\\\"b\\\\c\\nd\",number=\"1\"} 0.5\n# EOF\n"
        );
    }
}
