//! Dictionaries and classes of similar values: their samples, and the results of trainings. DICTIONARY LIST and CLASSES
//! have their fields from here as well.

use snugly_protocol::escape::escape;
use snugly_store::{ClassStats, DictionaryStats, SampleStats};

use super::{Fields, words};
use crate::stat::{Group, Stat, Value, counter, gauge, plain, stat};
use crate::state::Server;

/// Totals of learning.
pub(super) struct Learned {
    enabled: bool,
    limit: usize,
    samples: SampleStats,
    dictionaries: Vec<DictionaryStats>,
}

pub(super) static LEARNED: Group<Learned> = Group {
    labels: &[],
    stats: LEARNED_STATS,
    each: |server, show| {
        let settings = server.store().settings();
        let learned = Learned {
            enabled: settings.uses_dictionaries(),
            limit: settings.dictionaries.max_memory,
            samples: server.store().sample_stats(),
            dictionaries: server.store().dictionaries(),
        };
        show(&[], &learned);
    },
};

#[rustfmt::skip]
const LEARNED_STATS: &[Stat<Learned>] = &[
    stat("dictionaries_enabled", |l| l.enabled.into(),
        gauge("dictionaries_enabled", "1 if dictionaries are learned and used for new values, else 0")),
    stat("dictionary_max_bytes", |l| l.limit.into(),
        gauge("dictionaries_max_bytes", "Memory limit of samples and dictionaries, half of it each")),
    stat("dictionary_classes", |l| l.samples.classes.into(),
        gauge("dictionary_classes", "Classes of values")),
    stat("dictionary_samples", |l| l.samples.samples.into(),
        gauge("dictionary_samples", "Samples: values kept to learn from")),
    stat("dictionary_sample_bytes", |l| l.samples.bytes.into(),
        gauge("dictionary_sample_bytes", "Memory of samples")),
    stat("dictionary_trainings", |l| l.samples.trainings.into(),
        counter("dictionary_trainings", "Trainings of classes")),
    stat("dictionary_adoptions", |l| l.samples.adopted.into(),
        counter("dictionary_adoptions", "Trainings whose dictionary was adopted")),
    stat("dictionaries", |l| l.dictionaries.len().into(),
        gauge("dictionaries", "Dictionaries")),
    stat("dictionaries_active", |l| l.dictionaries.iter().filter(|d| d.active).count().into(),
        gauge("dictionaries_active", "Dictionaries that encode new values")),
    stat("dictionary_bytes", |l| l.dictionaries.iter().map(|d| d.memory).sum::<usize>().into(),
        gauge("dictionaries_memory_bytes", "Memory of all dictionaries")),
    stat("dictionary_records", |l| l.dictionaries.iter().map(|d| d.records).sum::<u64>().into(),
        gauge("dictionaries_records", "Values that need a dictionary")),
];

pub(super) static DICTIONARIES: Group<DictionaryStats> = Group {
    labels: &["number", "pattern", "min_len"],
    stats: DICTIONARY,
    each: |server, show| {
        for dictionary in server.store().dictionaries() {
            let number = dictionary.number.to_string();
            show(&[&number, &escape(&dictionary.pattern), &dictionary.min_len.to_string()], &dictionary);
        }
    },
};

/// One dictionary. The pattern is at the end, since it may hold commas.
#[rustfmt::skip]
pub(crate) const DICTIONARY: &[Stat<DictionaryStats>] = &[
    plain("id", |d| Value::Count(d.id.into())),
    stat("active", |d| d.active.into(),
        gauge("dictionary_active", "1 if new values are encoded with the dictionary, else 0")),
    plain("min_len", |d| d.min_len.into()),
    plain("max_len", |d| d.max_len.into()),
    stat("bytes", |d| d.bytes.into(),
        gauge("dictionary_content_bytes", "Content of the dictionary")),
    stat("memory", |d| d.memory.into(),
        gauge("dictionary_memory_bytes", "Memory of the dictionary, with the tables of zstd and LZ4")),
    stat("samples", |d| d.samples.into(),
        gauge("dictionary_trained_samples", "Values that it was trained and measured with")),
    stat("ratio_before", |d| measured(d.ratio_before),
        gauge("dictionary_ratio_before", "Stored bytes for each byte of the values that it was measured with, without it")),
    stat("ratio_after", |d| measured(d.ratio_after),
        gauge("dictionary_ratio_after", "Stored bytes for each byte of the values that it was measured with, with it")),
    stat("ratio_now", |d| measured(d.ratio_now),
        gauge("dictionary_ratio_now", "Stored bytes for each byte of values written lately; left out while they are too few")),
    stat("records", |d| d.records.into(),
        gauge("dictionary_records", "Values that need the dictionary")),
    stat("trained_at", |d| d.trained_at.into(),
        gauge("dictionary_trained_timestamp_seconds", "Time of its training, in Unix time").divided_by(1e3)),
    plain("pattern", |d| Value::Raw(d.pattern.clone())),
];

/// One class of values.
pub(crate) const CLASS: &[Stat<ClassStats>] = &[
    plain("pattern", |c| Value::Raw(c.pattern.clone())),
    plain("min_len", |c| c.min_len.into()),
    plain("max_len", |c| c.max_len.into()),
    plain("seen", |c| c.seen.into()),
    plain("samples", |c| c.samples.into()),
    plain("sample_bytes", |c| c.sample_bytes.into()),
    plain("dictionary", |c| c.dictionary.map_or(Value::Unknown, |number| Value::Count(number.into()))),
];

/// The names of all stats about dictionaries: of all together, of one dictionary, and of one class.
pub(super) fn fields() -> [Vec<&'static str>; 3] {
    fn names<T>(stats: &[Stat<T>]) -> Vec<&'static str> {
        stats.iter().map(|stat| stat.field).collect()
    }
    [names(LEARNED_STATS), names(DICTIONARY), names(CLASS)]
}

fn measured(ratio: Option<f64>) -> Value {
    ratio.map_or(Value::Unknown, |ratio| Value::Real(ratio, 3))
}

pub(super) fn dictionaries(server: &Server, fields: &mut Fields) {
    fields.lines(&LEARNED, server);
    (DICTIONARIES.each)(server, &mut |labels, dictionary| {
        fields.add(&format!("dictionary_{}", labels[0]), words(DICTIONARY, dictionary));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dictionary() -> DictionaryStats {
        DictionaryStats {
            number: 3,
            id: 40_000,
            pattern: "a,b\r\n:ä*".into(),
            min_len: 128,
            max_len: 512,
            bytes: 8_192,
            memory: 160_000,
            samples: 900,
            ratio_before: Some(0.75),
            ratio_after: Some(0.25),
            ratio_now: None,
            records: 20_000,
            trained_at: 1_700_000_000_000,
            active: true,
        }
    }

    #[test]
    fn a_dictionary_is_one_line_whatever_its_pattern() {
        assert_eq!(
            words(DICTIONARY, &dictionary()),
            "id=40000,active=1,min_len=128,max_len=512,bytes=8192,memory=160000,samples=900,ratio_before=0.750,\
             ratio_after=0.250,ratio_now=-,records=20000,trained_at=1700000000000,pattern=a,b\\r\\n:ä*"
        );
    }
}
