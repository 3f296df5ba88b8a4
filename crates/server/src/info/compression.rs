//! Counters of the codecs since the start or the last CONFIG RESETSTAT.

use std::sync::Arc;

use snugly_codec::Family::*;
use snugly_codec::{CodecId, DESCRIPTORS, Snapshot};
use snugly_protocol::escape::escape;
use snugly_store::{Decision, DraftStats, ReadRate, RecompressionStats};

use super::{Fields, words};
use crate::background::BackgroundTime;
use crate::stat::{Group, Metric, Stat, Value, counter, gauge, only_metric, plain, stat};
use crate::state::Server;

pub(super) static TOTALS: Group<Snapshot> =
    Group { labels: &[], stats: TOTAL_STATS, each: |server, show| show(&[], &server.stats().codec) };

const SKIPPED: Metric = counter("skipped_values", "Values left alone, by the reason");

#[rustfmt::skip]
const TOTAL_STATS: &[Stat<Snapshot>] = &[
    stat("compression_saved_bytes", |s| s.total(EncodedBytesIn).saturating_sub(s.total(EncodedBytesOut)).into(),
        gauge("compression_saved_bytes", "Bytes of all values written, less their stored bytes")),
    stat("compression_ratio", |s| Value::Real(ratio(s), 3),
        gauge("compression_ratio", "Bytes of all values written for each stored byte")),
    only_metric(|s| s.total(SkippedSmall).into(), SKIPPED.labelled("reason", "small")),
    only_metric(|s| s.total(SkippedLarge).into(), SKIPPED.labelled("reason", "large")),
    only_metric(|s| s.total(SkippedCompressed).into(), SKIPPED.labelled("reason", "compressed")),
    only_metric(|s| s.total(SkippedNoGain).into(), SKIPPED.labelled("reason", "no_gain")),
    only_metric(|s| s.total(EncodeFailures).into(),
        counter("encode_failures", "Values left alone because compressing them failed")),
    only_metric(|s| s.total(DecodeFailures).into(),
        counter("decode_failures", "Values that could not be read back")),
    only_metric(|s| s.total(DictionaryHits).into(),
        counter("dictionary_hits", "Values read back with a dictionary that was at hand")),
    only_metric(|s| s.total(DictionaryMisses).into(),
        counter("dictionary_misses", "Values whose dictionary was not at hand when they were read")),
    only_metric(|s| s.total(EncodeNanoseconds).into(),
        counter("encode_seconds", "Time spent encoding, estimated from a sample").divided_by(1e9)),
    only_metric(|s| s.total(DecodeNanoseconds).into(),
        counter("decode_seconds", "Time spent decoding, estimated from a sample").divided_by(1e9)),
];

/// Counters of one codec.
pub(super) struct OfCodec {
    snapshot: Snapshot,
    codec: CodecId,
}

pub(super) static CODECS: Group<OfCodec> = Group {
    labels: &["codec"],
    stats: CODEC_STATS,
    each: |server, show| {
        let snapshot = server.stats().codec;
        for codec in CodecId::ALL {
            show(&[&codec.to_string()], &OfCodec { snapshot, codec });
        }
    },
};

#[rustfmt::skip]
const CODEC_STATS: &[Stat<OfCodec>] = &[
    only_metric(|c| c.snapshot.of(EncodedValues, c.codec).into(),
        counter("encoded_values", "Values stored under the codec")),
    only_metric(|c| c.snapshot.of(EncodedBytesIn, c.codec).into(),
        counter("encoded_input_bytes", "Bytes of these values before encoding")),
    only_metric(|c| c.snapshot.of(EncodedBytesOut, c.codec).into(),
        counter("encoded_output_bytes", "Bytes of these values after encoding")),
    only_metric(|c| c.snapshot.of(DecodedValues, c.codec).into(),
        counter("decoded_values", "Values read back from the codec")),
    only_metric(|c| c.snapshot.of(DecodedBytesIn, c.codec).into(),
        counter("decoded_input_bytes", "Bytes of these values before decoding")),
    only_metric(|c| c.snapshot.of(DecodedBytesOut, c.codec).into(),
        counter("decoded_output_bytes", "Bytes of these values after decoding")),
];

pub(super) static RECOMPRESSION: Group<RecompressionStats> = Group {
    labels: &[],
    stats: RECOMPRESSION_STATS,
    each: |server, show| show(&[], &server.store().recompression_stats()),
};

#[rustfmt::skip]
const RECOMPRESSION_STATS: &[Stat<RecompressionStats>] = &[
    stat("recompression_tries", |p| p.tried.into(),
        counter("recompression_tries", "Values that were encoded anew because they stayed, or because nobody used them")),
    stat("recompression_tried_bytes", |p| p.tried_bytes.into(),
        counter("recompression_tried_bytes", "Bytes of these values before encoding")),
    stat("recompressed_records", |p| p.recompressed.into(),
        counter("recompressed_records", "Values that became smaller by recompression")),
    stat("recompression_saved_bytes", |p| p.saved_bytes.into(),
        counter("recompression_saved_bytes", "Bytes of memory saved by recompression, or that would be saved in memory")),
    stat("promoted_records", |p| p.promoted.into(),
        counter("promoted_records", "Values that were encoded with what takes less time to read")),
    stat("promotion_bytes", |p| p.promoted_bytes.into(),
        counter("promotion_bytes", "Bytes of memory that these values take more than before")),
    stat("recompression_passes", |p| p.passes.into(),
        counter("recompression_passes", "Passes over all keys that looked for such values and have come to their end")),
    stat("reencoded_records", |p| p.reencoded.into(),
        counter("reencoded_records", "Values and list nodes that were encoded anew because another dictionary is used for them")),
    stat("recompression_dictionary_bytes", |p| p.table_bytes.into(),
        gauge("recompression_dictionary_bytes", "Memory of dictionaries prepared for recompression, during a pass")),
    // Former names, for dashboards that have them.
    stat("packing_tries", |p| p.tried.into(),
        counter("packing_tries", "Former name of recompression_tries, until the next version")),
    stat("packed_records", |p| p.recompressed.into(),
        counter("packed_records", "Former name of recompressed_records, until the next version")),
    stat("packing_saved_bytes", |p| p.saved_bytes.into(),
        counter("packing_saved_bytes", "Former name of recompression_saved_bytes, until the next version")),
    stat("packing_dictionary_bytes", |p| p.table_bytes.into(),
        gauge("packing_dictionary_bytes", "Former name of recompression_dictionary_bytes, until the next version")),
];

pub(super) static BACKGROUND: Group<BackgroundTime> =
    Group { labels: &[], stats: BACKGROUND_STATS, each: |server, show| show(&[], &server.background.time()) };

const BACKGROUND_SECONDS: Metric = counter(
    "background_cpu_seconds",
    "Processor time of learning and of encoding older values anew, by work",
);

#[rustfmt::skip]
const BACKGROUND_STATS: &[Stat<BackgroundTime>] = &[
    only_metric(|b| Value::Real(b.learning.as_secs_f64(), 6), BACKGROUND_SECONDS.labelled("work", "learning")),
    only_metric(|b| Value::Real(b.encoding.as_secs_f64(), 6), BACKGROUND_SECONDS.labelled("work", "encoding")),
];

pub(super) static DRAFTS: Group<DraftStats> =
    Group { labels: &[], stats: DRAFT_STATS, each: |server, show| show(&[], &server.store().draft_stats()) };

#[rustfmt::skip]
const DRAFT_STATS: &[Stat<DraftStats>] = &[
    stat("draft_values", |d| d.values.into(),
        gauge("draft_values", "Drafts: values kept uncompressed because they are changed or read in parts")),
    stat("draft_bytes", |d| d.bytes.into(),
        gauge("draft_bytes", "Memory of drafts")),
];

/// A class of values, and what is decided for it.
pub(super) struct Class {
    seen: u64,
    decision: Option<Arc<Decision>>,
}

pub(super) static CLASSES: Group<Class> = Group {
    labels: &["pattern", "min_len"],
    stats: CLASS_STATS,
    each: |server, show| {
        each_class(server, &mut |[pattern, min_len, _], class| show(&[pattern, min_len], class))
    },
};

#[rustfmt::skip]
const CLASS_STATS: &[Stat<Class>] = &[
    only_metric(|c| c.seen.into(),
        counter("class_written_values", "Values of the class that were written, about, since the start or since all data was deleted")),
    only_metric(|c| decided(c, 0, |decision| decision.chosen().saved_each() * c.seen as f64),
        gauge("class_saved_bytes", "Bytes of memory that the encoding of new values saves for so many, with compression auto")),
    only_metric(|c| decided(c, 3, |decision| decision.drift.latest().unwrap_or(decision.chosen().ratio())),
        gauge("class_ratio", "Stored bytes for each byte of values of the class written lately, or of those that it was measured with")),
];

/// The codec of a class, apart from its numbers, whose series a change of the codec would end.
pub(super) static CLASS_CODECS: Group<Class> = Group {
    labels: &["pattern", "min_len", "codec"],
    stats: &[only_metric(
        |_| Value::Count(1),
        gauge("class_codec", "1, for the codec that new values of the class are encoded with"),
    )],
    each: |server, show| each_class(server, &mut |labels, class| show(&labels, class)),
};

/// Shows pattern, least length and codec of each class, and the class.
fn each_class(server: &Server, show: &mut dyn FnMut([&str; 3], &Class)) {
    let decisions = server.store().decisions();
    // What values get that nothing is decided for.
    let usual = server.store().settings().compression.codec();
    for class in server.store().classes() {
        let is_of = |decision: &&Arc<Decision>| {
            decision.band.start() == class.min_len && decision.pattern.text() == class.pattern
        };
        let decision = decisions.iter().find(is_of).cloned();
        let codec = decision.as_ref().map_or(usual, |decision| decision.choice.codec());
        let labels = [&escape(&class.pattern), &class.min_len.to_string(), codec.name()];
        show(labels, &Class { seen: class.seen, decision });
    }
}

fn decided(class: &Class, digits: usize, number: impl Fn(&Decision) -> f64) -> Value {
    class.decision.as_ref().map_or(Value::Unknown, |decision| Value::Real(number(decision), digits))
}

fn ratio(snapshot: &Snapshot) -> f64 {
    let bytes_out = snapshot.total(EncodedBytesOut);
    if bytes_out == 0 { 1.0 } else { snapshot.total(EncodedBytesIn) as f64 / bytes_out as f64 }
}

/// Returns the names of a decision's fields.
pub(super) fn decision_fields() -> Vec<&'static str> {
    DECISION.iter().map(|stat| stat.field).collect()
}

/// The decision for a class of values. The pattern is at the end, since it may hold commas.
#[rustfmt::skip]
pub(crate) const DECISION: &[Stat<Arc<Decision>>] = &[
    plain("goal", |d| d.goal.name().to_owned().into()),
    plain("codec", |d| d.choice.codec().name().to_owned().into()),
    plain("level", |d| Value::Difference(d.choice.level().into())),
    plain("dictionary", |d| d.uses_dictionary.into()),
    plain("min_len", |d| d.band.start().into()),
    plain("max_len", |d| d.band.end().into()),
    plain("values", |d| d.population.into()),
    plain("reads", |d| Value::Real(d.reads, 1)),
    plain("saved_bytes", |d| Value::Real(d.chosen().saved_each(), 1)),
    plain("nanoseconds", |d| Value::Count(d.chosen().time(d.reads).as_nanos() as u64)),
    plain("ratio", |d| Value::Real(d.chosen().ratio(), 3)),
    plain("unread", |d| kept(d, ReadRate::Unread)),
    plain("seldom", |d| kept(d, ReadRate::Seldom)),
    plain("often", |d| kept(d, ReadRate::Often)),
    plain("constantly", |d| kept(d, ReadRate::Constantly)),
    plain("ratio_now", |d| d.drift.latest().map_or(Value::Unknown, |ratio| Value::Real(ratio, 3))),
    plain("decided_at", |d| d.decided_at.into()),
    plain("pattern", |d| Value::Raw(d.pattern.text().to_vec())),
];

/// Codec and level of values that stay and are read so often.
fn kept(decision: &Decision, rate: ReadRate) -> Value {
    let choice = decision.kept(rate).choice;
    Value::Text(format!("{}:{}", choice.codec().name(), choice.level()))
}

/// The counters are shown under the names that they have everywhere, which those of metrics are not.
pub(super) fn compression(server: &Server, fields: &mut Fields) {
    let configuration = server.configuration();
    fields.add("compression", &configuration.compression);
    if let Ok(choice) = configuration.compression() {
        fields.add("compression_level", choice.level());
    }
    fields.add("compression_goal", configuration.compression_goal);
    fields.add("compression_min_bytes", configuration.compression_min_bytes);
    fields.lines(&TOTALS, server);
    let snapshot = server.stats().codec;
    for descriptor in &DESCRIPTORS {
        fields.add(&descriptor.to_string(), descriptor.value(&snapshot));
    }
    fields.lines(&RECOMPRESSION, server);
    fields.lines(&DRAFTS, server);
    let decisions = server.store().decisions();
    fields.add("compression_decisions", decisions.len());
    for (number, decision) in decisions.iter().enumerate() {
        fields.add(&format!("compression_decision_{number}"), words(DECISION, decision));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_counter_of_the_codecs_is_a_metric() {
        let families: HashSet<_> = DESCRIPTORS.iter().map(|descriptor| descriptor.family).collect();
        let totals = TOTAL_STATS.iter().filter(|stat| stat.field.is_empty()).count();
        assert_eq!(totals + CODEC_STATS.len(), families.len());
    }
}
