//! What the codecs did since the start or the last CONFIG RESETSTAT.

use snugly_codec::Family::*;
use snugly_codec::{CodecId, DESCRIPTORS, Snapshot};

use super::Fields;
use crate::figure::{Figure, Group, Metric, Value, counter, figure, gauge, only_metric};
use crate::server::Server;

pub(super) static TOTALS: Group<Snapshot> =
    Group { labels: &[], figures: TOTAL_FIGURES, each: |server, show| show(&[], &server.stats().codec) };

const SKIPPED: Metric = counter("skipped_values", "Values left alone, by the reason");

#[rustfmt::skip]
const TOTAL_FIGURES: &[Figure<Snapshot>] = &[
    figure("compression_saved_bytes", |s| s.total(EncodedBytesIn).saturating_sub(s.total(EncodedBytesOut)).into(),
        gauge("compression_saved_bytes", "Bytes of all values written, less the bytes that were stored for them")),
    figure("compression_ratio", |s| Value::Real(ratio(s), 3),
        gauge("compression_ratio", "Bytes of all values written for each byte that was stored for them")),
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
        counter("dictionary_misses", "Values not read back because their dictionary was not at hand")),
    only_metric(|s| s.total(EncodeNanoseconds).into(),
        counter("encode_seconds", "Time spent encoding, estimated from a sample").divided_by(1e9)),
    only_metric(|s| s.total(DecodeNanoseconds).into(),
        counter("decode_seconds", "Time spent decoding, estimated from a sample").divided_by(1e9)),
];

/// What one codec did.
pub(super) struct OfCodec {
    snapshot: Snapshot,
    codec: CodecId,
}

pub(super) static CODECS: Group<OfCodec> = Group {
    labels: &["codec"],
    figures: CODEC_FIGURES,
    each: |server, show| {
        let snapshot = server.stats().codec;
        for codec in CodecId::ALL {
            show(&[&codec.to_string()], &OfCodec { snapshot, codec });
        }
    },
};

#[rustfmt::skip]
const CODEC_FIGURES: &[Figure<OfCodec>] = &[
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

fn ratio(snapshot: &Snapshot) -> f64 {
    let bytes_out = snapshot.total(EncodedBytesOut);
    if bytes_out == 0 { 1.0 } else { snapshot.total(EncodedBytesIn) as f64 / bytes_out as f64 }
}

/// The counters are shown under the names that they have everywhere, which those of metrics are not.
pub(super) fn compression(server: &Server, fields: &mut Fields) {
    let configuration = server.configuration();
    fields.add("compression", &configuration.compression);
    if let Ok(choice) = configuration.compression() {
        fields.add("compression_level", choice.level());
    }
    fields.add("compression_min_bytes", configuration.compression_min_bytes);
    fields.lines(&TOTALS, server);
    let snapshot = server.stats().codec;
    for descriptor in &DESCRIPTORS {
        fields.add(&descriptor.to_string(), descriptor.value(&snapshot));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_counter_of_the_codecs_is_a_metric() {
        let families: HashSet<_> = DESCRIPTORS.iter().map(|descriptor| descriptor.family).collect();
        let totals = TOTAL_FIGURES.iter().filter(|figure| figure.field.is_empty()).count();
        assert_eq!(totals + CODEC_FIGURES.len(), families.len());
    }
}
