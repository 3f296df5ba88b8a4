//! Savings and cost of each way to compress for the values of one kind, measured on some of them.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use snugly_codec::{CODECS, Choice, Dictionary, Learned};
use snugly_learning::{
    DICTIONARY_SIZES, Footprint, Goal, Measured, Method, SAMPLES_FOR_EACH_BYTE, Sample, Study,
    StudyParameters, measure_envelopes, study_envelopes,
};

/// Shorter values are sent as they are, as `min_compression_size` of clients has it.
pub(crate) const MIN_BYTES: usize = 64;
/// With fewer values nothing can be said of a kind.
pub(crate) const LEAST_SAMPLES: usize = 8;
/// With fewer values no dictionary is trained.
const LEAST_FOR_A_DICTIONARY: usize = 32;
/// Bytes of the values of one kind that are evaluated.
const MAX_SAMPLE_BYTES: usize = 4 << 20;

/// Knowledge of the values of one kind beside the samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Approximate number of values.
    pub(crate) population: u64,
    /// Reads of a value for each write.
    pub(crate) reads: f64,
    /// Whether a dictionary could be used: its keys have a pattern of their own.
    pub(crate) trains: bool,
}

/// The measurement of one way to compress.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Way {
    /// Such as "zstd 3 + dictionary of 16.00 KiB".
    pub(crate) name: String,
    pub(crate) codec: &'static str,
    pub(crate) level: i32,
    /// The ID and the length of the dictionary.
    pub(crate) dictionary: Option<(u32, usize)>,
    /// Sent bytes for each byte of a value.
    pub(crate) ratio: f64,
    /// Microseconds for each value, and for each that is read back.
    pub(crate) encode_microseconds: f64,
    pub(crate) decode_microseconds: f64,
}

/// The evaluation of the values of one kind.
pub(crate) struct Evaluation {
    pub(crate) study: Study,
    terms: StudyParameters,
}

/// The values that are evaluated: those that writers would compress, as far as they are not too many.
pub(crate) fn samples<'a>(values: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<Sample> {
    let mut bytes = 0;
    let long = values.filter(|(_, value)| value.len() >= MIN_BYTES);
    long.take_while(|(_, value)| {
        bytes += value.len();
        bytes <= MAX_SAMPLE_BYTES
    })
    .map(|(key, value)| Sample::new(key, value))
    .collect()
}

/// Measures what there is to choose from; nothing without samples. Fewer than [`LEAST_SAMPLES`] say something of
/// themselves only, not of their kind.
pub(crate) fn evaluate(samples: &[Sample], kind: Kind, goal: Goal) -> Option<Evaluation> {
    if samples.is_empty() {
        return None;
    }
    let terms = StudyParameters {
        current: Method { choice: Choice::none(), dictionary: None },
        dictionary: None,
        goal: Some(goal),
        trains: kind.trains && samples.len() >= LEAST_FOR_A_DICTIONARY,
        population: kind.population,
        foreseen: kind.population,
        reads: kind.reads,
        room: Dictionary::MAX_BYTES,
        footprint: FOOTPRINT,
    };
    Some(Evaluation { study: study_envelopes(samples, &terms, &processor_time), terms })
}

impl Evaluation {
    /// All ways that were measured, the first is to leave values alone.
    pub(crate) fn ways(&self) -> Vec<Way> {
        // The first of the list of candidates is what is in use, which is the same here.
        let trained = self.study.trained.as_deref();
        self.study.measured[1..].iter().map(|measured| describe(measured, trained)).collect()
    }

    /// The place in [`Evaluation::ways`] of what is best for its goal.
    pub(crate) fn best(&self) -> usize {
        self.study.stages.written.saturating_sub(1)
    }

    /// The same for another goal.
    pub(crate) fn best_for(&self, goal: Goal) -> usize {
        self.study.best_for(goal, &self.terms).saturating_sub(1)
    }

    /// The worth for a goal of the way at a place of [`Evaluation::ways`], in nanoseconds a value.
    pub(crate) fn worth(&self, place: usize, goal: Goal) -> f64 {
        self.study.measured[place + 1].worth(goal, self.terms.population, self.terms.reads)
    }
}

/// Dictionaries of several sizes beside the ways without one, all measured with samples that none was trained on.
pub(crate) struct Trial {
    pub(crate) trained: usize,
    pub(crate) held_out: usize,
    /// Ways without a dictionary first.
    pub(crate) tried: Vec<Tried>,
}

/// One way to compress and what came of it.
pub(crate) struct Tried {
    pub(crate) dictionary: Option<Arc<Dictionary>>,
    pub(crate) measured: Measured,
}

/// Trains dictionaries of the sizes (those that suit the samples if there are none) and measures them.
///
/// # Errors
/// What the trainer says if it cannot train any.
pub(crate) fn try_sizes(samples: &[Sample], size: Option<usize>) -> Result<Trial, snugly_codec::TrainError> {
    let (held_out, trained): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.is_held_out());
    let values: Vec<&[u8]> = trained.iter().map(|sample| &*sample.value).collect();
    let bytes: usize = values.iter().map(|value| value.len()).sum();
    let suits = |size: &usize| size * SAMPLES_FOR_EACH_BYTE <= bytes;
    let mut sizes: Vec<usize> = match size {
        Some(size) => vec![size],
        None => DICTIONARY_SIZES.into_iter().filter(suits).collect(),
    };
    if sizes.is_empty() {
        // Few samples are enough for a small one.
        sizes.push((bytes / SAMPLES_FOR_EACH_BYTE).max(Dictionary::MIN_TRAINED_BYTES));
    }
    let with_dictionary: Vec<_> =
        defaults().filter(|choice| choice.codec().uses_learned_dictionaries(Learned::Envelopes)).collect();
    let mut methods: Vec<Method> = defaults().map(|choice| Method { choice, dictionary: None }).collect();
    for size in sizes {
        let dictionary = Some(Arc::new(Dictionary::train(&values, size)?));
        let with = |choice: &Choice| Method { choice: *choice, dictionary: dictionary.clone() };
        methods.extend(with_dictionary.iter().map(with));
    }
    let measure = |method: Method| {
        let measured = measure_envelopes(&method, &held_out, FOOTPRINT, &processor_time);
        Tried { dictionary: method.dictionary, measured }
    };
    let tried = methods.into_iter().map(measure).collect();
    Ok(Trial { trained: trained.len(), held_out: held_out.len(), tried })
}

impl Trial {
    /// The dictionary that saves the most of so many values.
    pub(crate) fn best(&self, population: u64) -> Option<&Tried> {
        let with = self.tried.iter().filter(|tried| tried.dictionary.is_some());
        with.max_by_key(|tried| tried.saved(population))
    }

    /// The codec of a way alone.
    pub(crate) fn without(&self, way: &Tried) -> Option<&Tried> {
        let is_alike = |tried: &Tried| tried.measured.choice == way.measured.choice;
        self.tried.iter().find(|tried| is_alike(tried) && tried.dictionary.is_none())
    }
}

impl Tried {
    /// Bytes that so many values take less, the dictionary's own counted.
    pub(crate) fn saved(&self, population: u64) -> i64 {
        (self.measured.saved_each() * population as f64) as i64 - self.measured.memory as i64
    }

    pub(crate) fn way(&self) -> Way {
        describe(&self.measured, self.dictionary.as_deref())
    }
}

/// The size of an envelope is its length.
const FOOTPRINT: Footprint = Footprint { overhead: |_| 0, allocation: |bytes| bytes };

/// Each codec that compresses values, at its default level, that this build has.
fn defaults() -> impl Iterator<Item = Choice> {
    let choices = CODECS.iter().filter_map(|codec| Choice::new(codec.name(), None, MIN_BYTES).ok());
    choices.filter(Choice::compresses)
}

/// The processor time that this thread has used.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// The measurements, for people and for JSON; with this dictionary, if it was with one.
fn describe(measured: &Measured, dictionary: Option<&Dictionary>) -> Way {
    let choice = measured.choice;
    let codec = choice.codec().name();
    let dictionary = dictionary.filter(|dictionary| measured.dictionary == Some(dictionary.id()));
    let dictionary = dictionary.map(|dictionary| (dictionary.id(), dictionary.bytes().len()));
    let each = |time: Duration| time.as_secs_f64() * 1e6 / measured.values.max(1) as f64;
    let mut name = match (choice.compresses(), choice.level()) {
        (false, _) => "as it is".to_owned(),
        (true, 0) => codec.to_owned(),
        (true, level) => format!("{codec} {level}"),
    };
    if let Some((_, len)) = dictionary {
        name.push_str(&format!(" + dictionary of {}", super::units::bytes(len as u64)));
    }
    Way {
        name,
        codec,
        level: choice.level(),
        dictionary,
        ratio: measured.ratio(),
        encode_microseconds: each(measured.encode),
        decode_microseconds: each(measured.decode),
    }
}

#[cfg(all(test, feature = "zstd", feature = "lz4"))]
mod tests {
    use super::*;

    fn users(count: usize) -> Vec<Sample> {
        let user = |number: usize| {
            let name = format!("{:08x}", (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32);
            format!(
                r#"{{"id":{number},"name":"{name}","email":"{name}@example.com","address":{{"city":"{name}","country":"Iceland"}},"preferences":{{"language":"is","newsletter":true,"theme":"dark"}}}}"#
            )
        };
        let values: Vec<_> = (0..count).map(|number| (format!("user:{number}"), user(number))).collect();
        samples(values.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())))
    }

    #[test]
    fn short_values_are_not_evaluated_and_long_ones_not_all() {
        let long = vec![b'x'; 1 << 20];
        let values = [&b"17"[..], &long, &long, &long, &long, &long];
        let samples = samples(values.into_iter().map(|value| (&b"key"[..], value)));
        assert_eq!(samples.iter().map(|sample| sample.value.len()).collect::<Vec<_>>(), vec![1 << 20; 4]);
    }

    #[test]
    fn small_values_that_are_alike_are_worth_a_dictionary_for_those_who_want_memory() {
        let kind = Kind { population: 1_000_000, reads: 2.0, trains: true };
        let evaluation = evaluate(&users(2_000), kind, Goal::Memory).expect("there are enough");
        let ways = evaluation.ways();
        let names: Vec<&str> = ways.iter().map(|choice| choice.name.as_str()).collect();
        assert_eq!(names[..4], ["as it is", "lz4", "lz4 9", "zstd 1"]);
        assert!(ways[evaluation.best()].dictionary.is_some());
        assert_eq!(evaluation.best(), evaluation.best_for(Goal::Memory));
        assert_eq!(ways[0].ratio, 1.0);
        assert!(evaluate(&users(1), kind, Goal::Memory).is_some(), "one value is tried by itself");
        assert!(evaluate(&[], kind, Goal::Memory).is_none());
    }

    #[test]
    fn dictionaries_are_tried_with_values_that_they_were_not_trained_on() {
        let samples = users(2_000);
        let trial = try_sizes(&samples, None).expect("there are enough");
        assert_eq!(trial.trained + trial.held_out, samples.len());
        let best = trial.best(1_000_000).unwrap();
        let without = trial.without(best).unwrap();
        assert!(best.way().ratio < 0.8 * without.way().ratio);
        let one = try_sizes(&samples, Some(1024)).expect("there are enough");
        assert!(one.best(1).unwrap().way().dictionary.is_some_and(|(_, len)| len <= 1024));
        assert!(try_sizes(&users(3), None).is_err());
    }
}
