//! The best encoding of a class, measured on its samples: bytes as they are stored, with a dictionary's own memory on
//! the other side of the scale, and processor time.
//!
//! A dictionary is measured with samples that it was not trained on. The form of encoded values is the user's: records
//! of a store, or envelopes in somebody else's server.

use std::sync::Arc;
use std::time::Duration;

use snugly_codec::{CODECS, Choice, Codec, Dictionary};

use crate::form::{Envelopes, Form, Records};
use crate::goal::Goal;
use crate::measured::Measured;
use crate::samples::Sample;
use crate::stages::{SLOW_LEVEL, Stages, best};

/// The sizes of dictionaries that are tried, in bytes; most of the gain is there at 8 to 16 KiB.
pub const DICTIONARY_SIZES: [usize; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// Bytes of samples for each byte of a dictionary, at least: a larger one learns them by heart.
pub const SAMPLES_FOR_EACH_BYTE: usize = 8;
/// Size limit of values with a new dictionary, in percent of their present size.
const MOST_STORED: u64 = 90;
/// Divisor of the usual threshold from which values are worth compressing with a dictionary.
const SHORTER: usize = 4;
/// The codec that a new dictionary is tried with where the class has one that cannot take any.
const DICTIONARY_CODEC: &str = "zstd";
/// Number of values that are enough to measure with.
const MEASURED: usize = 256;
/// Number of rounds in which all of them are encoded and decoded; the fastest counts.
const ROUNDS: usize = 3;

/// An encoding of values.
#[derive(Clone, Debug)]
pub struct Method {
    /// Codec, level, and from which size on.
    pub choice: Choice,
    /// With which dictionary, if the codec uses learned ones.
    pub dictionary: Option<Arc<Dictionary>>,
}

/// Bytes that an encoded value takes where it is kept.
#[derive(Clone, Copy)]
pub struct Footprint {
    /// Bytes kept beside a record for a key of this many bytes.
    pub overhead: fn(usize) -> usize,
    /// Bytes that this many requested bytes take.
    pub allocation: fn(usize) -> usize,
}

/// Knowledge of a class beside its samples.
#[derive(Clone)]
pub struct StudyParameters {
    /// The present method of the class.
    pub current: Method,
    /// The dictionary that there is for the class, in use or not.
    pub dictionary: Option<Arc<Dictionary>>,
    /// The goal; without one, codec and level stay, and only the dictionary changes.
    pub goal: Option<Goal>,
    /// Whether a dictionary may be trained.
    pub trains: bool,
    /// Approximate number of values of the class.
    pub population: u64,
    /// Number of values for which the size of a dictionary is chosen, if it pays for the existing ones.
    pub foreseen: u64,
    /// Approximate number of reads of a value for each write.
    pub reads: f64,
    /// Bytes that a dictionary may take in memory.
    pub room: usize,
    /// Sizes of values.
    pub footprint: Footprint,
}

/// The result of a study.
#[derive(Clone, Debug)]
pub struct Study {
    /// The measurements; the first is that of the earlier method.
    pub measured: Vec<Measured>,
    /// The places of the best ones there, for the stages of a value's life.
    pub stages: Stages,
    /// The best one's dictionary, if it was not in use before.
    pub new_dictionary: Option<Arc<Dictionary>>,
    /// The dictionary that was trained for the study, best or not.
    pub trained: Option<Arc<Dictionary>>,
}

impl Study {
    /// The best measurement, of a store for values as they are written.
    pub fn best(&self) -> &Measured {
        &self.measured[self.stages.written]
    }

    /// The place of the best one for another goal than that of the terms, of those that were measured.
    pub fn best_for(&self, goal: Goal, terms: &StudyParameters) -> usize {
        best(&self.measured, goal, terms.population, terms.reads, |_| true)
    }

    /// The measurement of the earlier method.
    pub fn before(&self) -> &Measured {
        &self.measured[0]
    }
}

/// The method for compressing values with a dictionary: shorter ones, too.
pub fn with_dictionary(choice: Choice) -> Choice {
    choice.with_min_bytes(choice.min_bytes() / SHORTER)
}

/// Measures the choices for a class, and returns the best. `clock` returns the processor time of the thread.
pub fn study(samples: &[Sample], terms: &StudyParameters, clock: &dyn Fn() -> Duration) -> Study {
    Bench { form: &Records, terms, clock }.study(samples)
}

/// Like [`study()`], of envelopes that clients would write instead of records.
pub fn study_envelopes(samples: &[Sample], terms: &StudyParameters, clock: &dyn Fn() -> Duration) -> Study {
    Bench { form: &Envelopes, terms, clock }.study(samples)
}

/// Measures what envelopes one method makes of samples.
pub fn measure_envelopes(
    method: &Method,
    samples: &[&Sample],
    footprint: Footprint,
    clock: &dyn Fn() -> Duration,
) -> Measured {
    measure(&Envelopes, method, samples, footprint, Some(clock))
}

/// The candidates for a goal.
fn methods(form: &dyn Form, goal: Goal, dictionary: Option<&Arc<Dictionary>>) -> Vec<Method> {
    let wanted = |level: &i32| *level < SLOW_LEVEL || goal == Goal::Memory || form.has_stages();
    let at_levels = |codec: &'static Codec| {
        codec.candidates().iter().filter(move |level| wanted(level)).map(move |level| (codec.name(), *level))
    };
    // A codec that this build does not have is no candidate.
    let choices = CODECS.iter().flat_map(at_levels);
    let choices: Vec<Choice> =
        choices.filter_map(|(name, level)| Choice::new(name, Some(level), 0).ok()).collect();
    let with = |dictionary: &Arc<Dictionary>| {
        let dictionary = dictionary.clone();
        let uses_learned = |choice: &&Choice| choice.codec().uses_learned_dictionaries(form.learned());
        let can_take_one = choices.iter().filter(uses_learned);
        can_take_one
            .map(move |&choice| Method { choice, dictionary: Some(dictionary.clone()) })
            .collect::<Vec<_>>()
    };
    let plain = choices.iter().map(|&choice| Method { choice, dictionary: None });
    plain.chain(dictionary.map(with).into_iter().flatten()).collect()
}

/// Trains and measures.
struct Bench<'a> {
    form: &'a dyn Form,
    terms: &'a StudyParameters,
    clock: &'a dyn Fn() -> Duration,
}

impl Bench<'_> {
    fn study(&self, samples: &[Sample]) -> Study {
        let terms = self.terms;
        let (held_out, trained): (Vec<&Sample>, Vec<&Sample>) =
            samples.iter().partition(|sample| sample.is_held_out());
        let new = if terms.trains { self.train(&trained, &held_out) } else { None };
        let samples: Vec<&Sample> = match new {
            Some(_) => held_out,
            None => samples.iter().take(MEASURED).collect(),
        };
        let others = match (terms.goal, &new) {
            (Some(goal), _) => methods(self.form, goal, new.as_ref().or(terms.dictionary.as_ref())),
            (None, Some(dictionary)) => vec![self.with_dictionary(dictionary.clone())],
            (None, None) => Vec::new(),
        };
        let methods = std::iter::once(terms.current.clone()).chain(others);
        let measured: Vec<Measured> = methods.map(|method| self.measure(&method, &samples)).collect();
        let stages = match terms.goal {
            Some(goal) if self.form.has_stages() => {
                Stages::of(&measured, goal, terms.population, terms.reads)
            }
            Some(goal) => Stages::one(best(&measured, goal, terms.population, terms.reads, |_| true)),
            None => Stages::one(measured.len() - 1),
        };
        let is_best =
            |dictionary: &&Arc<Dictionary>| measured[stages.written].dictionary == Some(dictionary.id());
        let new_dictionary = new.as_ref().filter(is_best).cloned();
        Study { measured, stages, new_dictionary, trained: new }
    }

    /// The dictionary that saves the most of those of several sizes, of those that are worth having.
    fn train(&self, trained: &[&Sample], held_out: &[&Sample]) -> Option<Arc<Dictionary>> {
        let StudyParameters { current, population, foreseen, room, .. } = self.terms;
        let values: Vec<&[u8]> = trained.iter().map(|sample| &*sample.value).collect();
        let bytes: usize = values.iter().map(|value| value.len()).sum();
        let before = self.measure(current, held_out);
        let most = before.stored(*population) * MOST_STORED / 100;
        let (mut least, mut best) = (u64::MAX, None);
        for size in DICTIONARY_SIZES.into_iter().filter(|size| size * SAMPLES_FOR_EACH_BYTE <= bytes) {
            let Ok(dictionary) = Dictionary::train(&values, size) else { break };
            let dictionary = Arc::new(dictionary);
            let after = self.measure(&self.with_dictionary(dictionary.clone()), held_out);
            let stored = after.stored(*foreseen);
            if after.memory > *room || stored >= least {
                break;
            }
            least = stored;
            if after.stored(*population) <= most {
                best = Some(dictionary);
            }
        }
        best
    }

    /// The encoding of values with a new dictionary.
    fn with_dictionary(&self, dictionary: Arc<Dictionary>) -> Method {
        let Method { choice, dictionary: current } = &self.terms.current;
        let uses_learned = choice.codec().uses_learned_dictionaries(self.form.learned());
        let choice = match (uses_learned, current) {
            // A goal's candidates have no threshold.
            (true, _) if self.terms.goal.is_some() => choice.with_min_bytes(0),
            (true, None) => with_dictionary(*choice),
            (true, Some(_)) => *choice,
            (false, _) => Choice::new(DICTIONARY_CODEC, None, 0).unwrap_or(*choice),
        };
        Method { choice, dictionary: Some(dictionary) }
    }

    fn measure(&self, method: &Method, samples: &[&Sample]) -> Measured {
        // Without a goal time does not count.
        let clock = self.terms.goal.map(|_| self.clock);
        measure(self.form, method, samples, self.terms.footprint, clock)
    }
}

/// The method with a dictionary of its own: the tables that zstd makes for each level stay with a dictionary, and those of
/// levels that are only tried must neither stay nor be counted with others.
fn apart(method: &Method) -> Method {
    let copy = |dictionary: &Arc<Dictionary>| {
        Dictionary::load(dictionary.bytes()).map_or_else(|_| dictionary.clone(), Arc::new)
    };
    Method { choice: method.choice, dictionary: method.dictionary.as_ref().map(copy) }
}

/// Encodes the samples; also times that, and decoding them, if there is a clock.
fn measure(
    form: &dyn Form,
    method: &Method,
    samples: &[&Sample],
    footprint: Footprint,
    clock: Option<&dyn Fn() -> Duration>,
) -> Measured {
    let method = &apart(method);
    let (mut coder, mut kept) = (form.coder(method, footprint), Vec::new());
    let (mut encode, mut decode) = (Duration::MAX, Duration::MAX);
    // The first round finds the caches cold.
    for _ in 0..if clock.is_some() { ROUNDS } else { 1 } {
        let now = || clock.map_or(Duration::ZERO, |clock| clock());
        let started = now();
        kept.clear();
        kept.extend(samples.iter().map(|sample| coder.encode(sample)));
        encode = encode.min(now().saturating_sub(started));
        let started = now();
        let mut value = Vec::new();
        for bytes in kept.iter().filter(|_| clock.is_some()) {
            value.clear();
            coder.decode(bytes, &mut value);
        }
        decode = decode.min(now().saturating_sub(started));
    }
    let takes = |sample: &Sample, len| (footprint.allocation)((footprint.overhead)(sample.key_len) + len);
    if !method.choice.compresses() {
        (encode, decode) = (Duration::ZERO, Duration::ZERO);
    }
    Measured {
        values: samples.len(),
        raw: samples.iter().map(|sample| sample.value.len()).sum(),
        encoded: kept.iter().map(|bytes| form.encoded_len(bytes)).sum(),
        plain: samples.iter().map(|sample| takes(sample, form.plain_len(&sample.value))).sum(),
        stored: samples.iter().zip(&kept).map(|(sample, bytes)| takes(sample, bytes.len())).sum(),
        encode,
        decode,
        memory: method
            .dictionary
            .as_ref()
            .map_or(0, |dictionary| form.dictionary_memory(dictionary, method.choice)),
        choice: method.choice,
        dictionary: method.dictionary.as_ref().map(|dictionary| dictionary.id()),
    }
}

#[cfg(all(test, feature = "zstd", feature = "lz4"))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Values that share much with each other and little with themselves.
    fn users(count: usize) -> Vec<Sample> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut word = || -> String { (0..8).map(|_| random.lowercase()).collect() };
        (0..count)
            .map(|number| {
                let (name, city) = (word(), word());
                let value = format!(
                    r#"{{"id":{number},"name":"{name}","email":"{name}@example.com","address":{{"city":"{city}","country":"Iceland"}},"preferences":{{"language":"is","newsletter":true,"theme":"dark"}}}}"#
                );
                Sample::new(format!("user:{number}").as_bytes(), value.as_bytes())
            })
            .collect()
    }

    /// Values whose words are those of a vocabulary, which no small dictionary has room for.
    fn wordy(count: usize) -> Vec<Sample> {
        let mut random = fastrand::Rng::with_seed(7);
        let words: Vec<String> = (0..2_000).map(|_| (0..9).map(|_| random.lowercase()).collect()).collect();
        let mut value = || -> String { (0..150).map(|_| &*words[random.usize(..words.len())]).collect() };
        (0..count)
            .map(|number| Sample::new(format!("text:{number}").as_bytes(), value().as_bytes()))
            .collect()
    }

    fn noise(count: usize) -> Vec<Sample> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut value = || -> Vec<u8> { (0..600).map(|_| random.u8(..)).collect() };
        (0..count).map(|number| Sample::new(format!("image:{number}").as_bytes(), &value())).collect()
    }

    fn terms(goal: Option<Goal>) -> StudyParameters {
        let choice = Choice::new("zstd", None, 64).expect("it is built in");
        StudyParameters {
            current: Method { choice, dictionary: None },
            dictionary: None,
            goal,
            trains: true,
            population: 100_000,
            foreseen: 100_000,
            reads: 1.0,
            room: 16 << 20,
            footprint: Footprint { overhead: |key_len| key_len + 16, allocation: |bytes| bytes },
        }
    }

    /// Returns a clock that advances by `step` each time that it is read.
    fn ticking(step: Duration) -> impl Fn() -> Duration {
        let now = Cell::new(Duration::ZERO);
        move || {
            now.set(now.get() + step);
            now.get()
        }
    }

    fn free() -> Duration {
        Duration::ZERO
    }

    #[test]
    fn values_that_are_alike_get_a_dictionary() {
        let study = study(&users(2_000), &terms(None), &free);
        assert!(study.new_dictionary.is_some());
        assert!(study.best().ratio() < 0.6 * study.before().ratio());
        assert!(study.best().stored(100_000) < study.before().stored(100_000) * 9 / 10);
    }

    #[test]
    fn a_dictionary_that_takes_more_than_it_saves_is_not_worth_having() {
        let few = StudyParameters { population: 100, foreseen: 100, ..terms(None) };
        assert!(study(&users(2_000), &few, &free).new_dictionary.is_none());
        let no_room = StudyParameters { room: 1_000, ..terms(None) };
        assert!(study(&users(2_000), &no_room, &free).new_dictionary.is_none());
    }

    #[test]
    fn a_size_is_chosen_for_the_values_that_are_foreseen_if_it_pays_for_those_that_are_there() {
        let samples = wordy(400);
        let size = |population, foreseen| {
            let few = StudyParameters { population, foreseen, ..terms(None) };
            let found = study(&samples, &few, &free).new_dictionary;
            found.map_or(0, |dictionary| dictionary.bytes().len())
        };
        assert!((1..size(1_500, 100_000)).contains(&size(1_500, 1_500)));
        assert_eq!(size(100, 100_000), 0);
    }

    #[test]
    fn a_dictionary_is_not_replaced_by_one_that_is_as_good() {
        let samples = users(2_000);
        let first = study(&samples, &terms(None), &free);
        let again = StudyParameters {
            current: Method { dictionary: first.new_dictionary.clone(), choice: first.best().choice },
            ..terms(None)
        };
        assert!(study(&users(2_500)[500..], &again, &free).new_dictionary.is_none());
    }

    #[test]
    fn what_does_not_compress_is_left_alone_whatever_the_goal() {
        for goal in [Goal::Memory, Goal::Balanced, Goal::Speed] {
            let study = study(&noise(200), &terms(Some(goal)), &ticking(Duration::from_micros(500)));
            assert!(!study.best().choice.compresses(), "{goal}");
        }
    }

    #[test]
    fn what_time_costs_nothing_is_compressed_as_well_as_possible_and_what_it_costs_too_much_not_at_all() {
        let samples = users(2_000);
        let best = |goal, step| {
            let study = study(&samples, &terms(Some(goal)), &ticking(step));
            (study.best().choice.compresses(), study.best().dictionary.is_some())
        };
        assert_eq!(best(Goal::Speed, Duration::ZERO), (true, true));
        // Each value takes a millisecond to encode and one to decode, and 200 bytes at most can be saved.
        assert_eq!(best(Goal::Memory, Duration::from_millis(MEASURED as u64)), (false, false));
    }

    #[test]
    fn envelopes_are_studied_as_clients_would_write_them() {
        let flat = Footprint { overhead: |_| 0, allocation: |bytes| bytes };
        let terms = StudyParameters { footprint: flat, ..terms(Some(Goal::Memory)) };
        let study = study_envelopes(&users(2_000), &terms, &free);
        let best = study.best();
        assert!(best.dictionary.is_some());
        assert_eq!((best.encoded, best.plain), (best.stored, best.raw));
        assert_eq!(Some(best.memory), study.trained.as_ref().map(|dictionary| dictionary.bytes().len()));
        // Header, magic number and dictionary ID are in each of them.
        assert!(best.encoded > 13 * best.values);
        let users = users(100);
        let samples: Vec<&Sample> = users.iter().collect();
        let none = Method { choice: Choice::none(), dictionary: None };
        assert_eq!(measure_envelopes(&none, &samples, flat, &free).ratio(), 1.0);
    }

    #[test]
    fn with_a_goal_values_below_the_threshold_get_a_dictionary_at_the_first_study() {
        let choice = Choice::new("lz4", None, 1_000).expect("it is built in");
        let current = Method { choice, dictionary: None };
        let study = study(&users(2_000), &StudyParameters { current, ..terms(Some(Goal::Balanced)) }, &free);
        assert!(study.new_dictionary.is_some());
    }

    #[test]
    fn what_was_measured_once_tells_what_is_best_for_each_goal() {
        let terms = terms(Some(Goal::Memory));
        let study = study(&users(2_000), &terms, &ticking(Duration::from_micros(400)));
        assert_eq!(study.best_for(Goal::Memory, &terms), study.stages.written);
        assert!(!study.measured[study.best_for(Goal::Speed, &terms)].choice.compresses());
    }

    #[test]
    fn a_look_trains_nothing() {
        let look = StudyParameters { trains: false, ..terms(Some(Goal::Memory)) };
        let study = study(&users(2_000), &look, &free);
        assert!(study.measured.iter().all(|measured| measured.dictionary.is_none()));
        assert!(study.best().choice.compresses());
    }

    #[test]
    fn lz4_gets_a_dictionary_for_records_and_for_envelopes() {
        let lz4 = Choice::new("lz4", None, 64).expect("it is built in");
        let is_lz4 = |measured: &&Measured| measured.choice.codec().name() == "lz4";
        let choosing = StudyParameters {
            current: Method { choice: lz4, dictionary: None },
            ..terms(Some(Goal::Memory))
        };
        let keeping = StudyParameters { goal: None, ..choosing.clone() };
        let samples = users(2_000);
        type Studied = fn(&[Sample], &StudyParameters, &dyn Fn() -> Duration) -> Study;
        for study in [study as Studied, study_envelopes] {
            let chosen = study(&samples, &choosing, &free);
            assert!(chosen.trained.is_some());
            let mut with_lz4 = chosen.measured.iter().filter(is_lz4);
            assert!(with_lz4.any(|measured| measured.dictionary.is_some()));
            let kept = study(&samples, &keeping, &free);
            assert_eq!(kept.best().choice.codec().name(), "lz4");
            assert!(kept.best().dictionary.is_some());
        }
    }

    #[test]
    fn a_dictionary_costs_lz4_less_memory_than_zstd() {
        let memory = |codec| {
            let choice = Choice::new(codec, None, 64).expect("it is built in");
            let terms = StudyParameters { current: Method { choice, dictionary: None }, ..terms(None) };
            study(&users(2_000), &terms, &free).best().memory
        };
        assert!(memory("lz4") * 3 < memory("zstd"));
    }
}
