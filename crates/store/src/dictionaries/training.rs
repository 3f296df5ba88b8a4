//! Background work on classes: training those that have enough samples, and sampling again those whose values
//! have changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use snugly_codec::Dictionary;
use snugly_learning::{
    Band, Class, Decision, Footprint, Goal, Method, Pattern, Ready, Study, StudyParameters, study,
    with_dictionary,
};
use tracing::{debug, info};

use super::Dictionaries;
use super::lists::{BAND, LISTS};
use super::set::{DictionarySet, Version, drift};
use crate::changes::Changes;
use crate::entry::{self, Fields};
use crate::settings::Settings;
use crate::slab::entry_allocation_size;

/// Predicate on the key and the length of a value.
pub(crate) type Wanted<'a> = &'a dyn Fn(&[u8], usize) -> bool;

/// Facts about the store that a study needs.
pub(crate) struct StudyContext<'a> {
    pub(crate) settings: &'a Settings,
    /// Time, in Unix milliseconds.
    pub(crate) now: u64,
    /// Estimates the reads of a value for each write.
    pub(crate) reads: &'a dyn Fn() -> f64,
    /// Estimates the number of the store's values that satisfy the predicate.
    pub(crate) population: &'a dyn Fn(Wanted<'_>) -> u64,
    /// Estimates the number of compressed list nodes.
    pub(crate) nodes: &'a dyn Fn() -> u64,
    /// Returns the processor time of the thread.
    pub(crate) clock: &'a dyn Fn() -> Duration,
    pub(crate) changes: &'a Changes,
}

/// Growth factor for lists: training comes early and its dictionary may well stay, so its size is chosen for
/// this many times as many nodes.
const LISTS_GROW: u64 = 4;

/// Memory footprint of a record.
const FOOTPRINT: Footprint = Footprint {
    overhead: |key_len| entry::overhead(key_len, Fields::NONE),
    allocation: entry_allocation_size,
};

/// A requested training: of the classes of this pattern, or of all.
pub(crate) type Request = Option<Pattern>;

impl Dictionaries {
    /// Requests training of all classes, or of those with this pattern, from what is in the store; returns
    /// how many there are so far. A pattern that no class has is ignored, unless it is `certain` that values
    /// of it will come.
    pub(crate) fn train_now(&self, pattern: Option<&[u8]>, certain: bool) -> usize {
        let concerned = |class: &&Class| pattern.is_none_or(|pattern| pattern == &*class.pattern);
        let found =
            self.sampled().classes.classes().iter().filter(concerned).count().max(usize::from(certain));
        if found > 0 || pattern.is_none() {
            *self.request.lock() = Some(pattern.map(Pattern::parse));
        }
        found
    }

    /// Takes the latest request, and samples its classes again.
    pub(crate) fn take_request(&self) -> Option<Request> {
        let request = self.request.lock().take()?;
        let mut sampled = self.sampled();
        let classes = sampled.classes.classes().iter().filter(|class| is_about(&request, &class.pattern));
        let classes: Vec<_> = classes.map(|class| (class.pattern.clone(), class.band)).collect();
        classes.iter().for_each(|(pattern, band)| sampled.classes.resample(pattern, *band));
        Some(request)
    }

    /// Marks classes for training with the samples that there are.
    pub(crate) fn train_sampled(&self, request: &Request) {
        self.sampled().classes.train_now(|pattern| is_about(request, pattern));
    }

    /// Studies a class that has enough samples; returns whether there was one.
    pub(crate) fn study(&self, context: &StudyContext<'_>) -> bool {
        // Taken before the samples, so that nothing trained from data deleted after this is adopted.
        let known = self.set();
        let Some(ready) = self.sampled().classes.ready() else { return false };
        let terms = study_parameters(&known, &ready, context);
        let study = study(&ready.samples, &terms, context.clock);
        self.trainings.fetch_add(u64::from(terms.trains), Ordering::Relaxed);
        let version = study.new_dictionary.as_ref();
        let version = version.map(|dictionary| new_version(dictionary, &ready, &study, context.now));
        let adopted = version.is_some_and(|version| self.adopt(version, &known, context));
        let mut sampled = self.sampled();
        // After a flush this pattern is another class, and another goal resets its decision.
        if sampled.flushes != known.flushes() || sampled.goal != context.settings.goal {
            return true;
        }
        if sampled.classes.studied(&ready, adopted, context.now) {
            self.request.lock().get_or_insert_with(|| Some(Pattern::parse(&ready.pattern)));
        }
        if let Some(goal) = terms.goal.filter(|_| adopted || study.new_dictionary.is_none()) {
            let before = known.decisions().of(&ready.pattern, ready.band);
            let decision = Decision::new(&ready, &terms, goal, &study, before, context.now);
            debug!(pattern = %escaped(&ready.pattern), min_len = ready.band.start(), codec = decision.choice.codec().name(), level = decision.choice.level(), "decided");
            let at_first = known.flushes();
            let mut known = self.set.write();
            if known.flushes() != at_first {
                return true;
            }
            let decided = known.with_decisions(known.decisions().with(decision, sampled.classes.classes()));
            self.publish(&mut known, decided);
        }
        true
    }

    /// Activates a new version in the place of the active one of its class, unless its training data was
    /// deleted meanwhile or its memory was given to another; returns whether it did.
    fn adopt(&self, version: Version, at_first: &DictionarySet, context: &StudyContext<'_>) -> bool {
        let StudyContext { settings, changes, .. } = context;
        let pattern = escaped(version.pattern.text());
        let (bytes, before, after) =
            (version.dictionary.bytes().len(), version.ratio_before, version.ratio_after);
        let mut known = self.set.write();
        let adopted = known.flushes() == at_first.flushes()
            && self.use_version(&mut known, version, settings.dictionaries, changes).is_ok();
        if adopted {
            self.adopted.fetch_add(1, Ordering::Relaxed);
            info!(%pattern, bytes, before, after, "a dictionary is used from now on");
        }
        adopted
    }

    /// Samples again the classes whose values have drifted.
    pub(crate) fn watch_for_drift(&self) {
        for version in self.set().active() {
            if version.live.has_drifted() {
                self.sampled().classes.resample(version.pattern.text(), version.band);
            }
        }
        for decision in self.set().decisions().iter() {
            if decision.drift.has_drifted() {
                self.sampled().classes.resample(decision.pattern.text(), decision.band);
            }
        }
    }

    /// Marks for another look the classes that have not been looked at for long.
    pub(crate) fn look_again(&self, now: u64) {
        self.sampled().classes.look_again(now);
    }
}

/// Collects what is known of a class beside its samples.
fn study_parameters(known: &DictionarySet, ready: &Ready, context: &StudyContext<'_>) -> StudyParameters {
    let settings = context.settings;
    let (goal, current, dictionary, population) = match *ready.pattern == *LISTS {
        true => terms_of_lists(known, context),
        false => terms_of_values(known, ready, context),
    };
    // With a disk tier memory may hold fewer values than were sampled.
    let population = population.max(ready.samples.len() as u64);
    StudyParameters {
        current,
        dictionary,
        goal,
        trains: ready.trains && settings.dictionaries.learns(),
        population,
        foreseen: if *ready.pattern == *LISTS { population * LISTS_GROW } else { population },
        reads: (context.reads)(),
        room: known.room(settings.dictionaries.dictionaries_limit(), &ready.pattern, ready.band),
        footprint: FOOTPRINT,
    }
}

/// Goal, current encoding, current dictionary and number of values of a class.
type Own = (Option<Goal>, Method, Option<Arc<Dictionary>>, u64);

fn terms_of_lists(known: &DictionarySet, context: &StudyContext<'_>) -> Own {
    let Settings { lists, compression, .. } = context.settings;
    let dictionary = known.active_of(LISTS, BAND).map(|version| version.dictionary().clone());
    let choice = lists.compress_codec.unwrap_or(*compression);
    // For lists only the dictionary is chosen.
    (None, Method { choice, dictionary: dictionary.clone() }, dictionary, (context.nodes)())
}

fn terms_of_values(known: &DictionarySet, ready: &Ready, context: &StudyContext<'_>) -> Own {
    let settings = context.settings;
    let pattern = Pattern::parse(&ready.pattern);
    // A pattern is itself a key of its class, so this is the version that writers use for such keys.
    let dictionary = known.active_for(&ready.pattern, ready.band.start());
    let dictionary = dictionary.map(|version| version.dictionary().clone());
    let current = match known.decisions().of(&ready.pattern, ready.band) {
        Some(decision) => {
            let dictionary = dictionary.clone().filter(|_| decision.uses_dictionary);
            Method { choice: decision.choice, dictionary }
        }
        None => {
            let choice = settings.compression;
            let choice = if dictionary.is_some() { with_dictionary(choice) } else { choice };
            Method { choice, dictionary: dictionary.clone() }
        }
    };
    let is_wanted = |key: &[u8], len| {
        Band::of(len) == Some(ready.band)
            && pattern.matches(key)
            && known
                .active_for(key, len)
                .is_none_or(|version| version.pattern.precision() <= pattern.precision())
    };
    (settings.goal, current, dictionary, (context.population)(&is_wanted))
}

fn new_version(dictionary: &Arc<Dictionary>, ready: &Ready, study: &Study, now: u64) -> Version {
    let (before, after) = (study.before().ratio(), study.best().ratio());
    // Prepared before the first writer needs it.
    dictionary.memory_for(study.best().choice);
    Version {
        number: 0,
        dictionary: dictionary.clone(),
        pattern: Pattern::parse(&ready.pattern),
        band: ready.band,
        samples: ready.samples.len(),
        ratio_before: Some(before),
        ratio_after: Some(after),
        trained_at: now,
        live: drift(Some(after)),
    }
}

fn escaped(pattern: &[u8]) -> String {
    pattern.escape_ascii().to_string()
}

fn is_about(request: &Request, pattern: &[u8]) -> bool {
    request.as_ref().is_none_or(|wanted| wanted.text() == pattern)
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use snugly_codec::Choice;

    use super::*;
    use crate::dictionaries::Imported;

    fn settings() -> Settings {
        let mut settings = Settings::new(Choice::new("zstd", None, 64).expect("it is built in"));
        settings.dictionaries.max_memory = 4 << 20;
        settings
    }

    fn maintained() -> (Dictionaries, Changes) {
        let dictionaries = Dictionaries::new(&settings());
        dictionaries.set_maintained(true);
        (dictionaries, Changes::new(None, None, vec![0]))
    }

    /// Offers values of a class until it has no room for more samples.
    fn fill(dictionaries: &Dictionaries) {
        for number in 0.. {
            let value = format!(r#"{{"number":{number},"name":"name-{}","kind":"user"}}"#, number * 7919);
            if dictionaries.offer(format!("user:{number}").as_bytes(), value.as_bytes(), 1) > 0 {
                return;
            }
        }
    }

    fn train(dictionaries: &Dictionaries, changes: &Changes, population: &dyn Fn(Wanted<'_>) -> u64) -> bool {
        dictionaries.study(&StudyContext {
            settings: &settings(),
            now: 0,
            reads: &|| 1.0,
            population,
            nodes: &|| 0,
            clock: &|| Duration::ZERO,
            changes,
        })
    }

    /// Imports for this pattern the dictionary that is already in use.
    fn import(dictionaries: &Dictionaries, changes: &Changes, pattern: &[u8]) {
        let content = dictionaries.set().active()[0].dictionary().bytes().to_vec();
        let imported = Imported { content: &content, pattern, len: 64 };
        dictionaries.import(&imported, &settings(), 0, changes).expect("it is whole");
    }

    #[test]
    fn a_deletion_of_everything_during_a_training_leaves_the_new_class_as_it_is() {
        let (dictionaries, changes) = maintained();
        fill(&dictionaries);
        assert!(train(&dictionaries, &changes, &|_| {
            dictionaries.flushed(|| {});
            fill(&dictionaries);
            1_000_000
        }));
        assert!(dictionaries.set().active().is_empty(), "its data is gone");
        assert!(
            train(&dictionaries, &changes, &|_| 1_000_000),
            "there are samples of what was written since"
        );
        assert_eq!(dictionaries.set().active().len(), 1);
    }

    #[test]
    fn samples_of_what_was_deleted_are_not_trained() {
        let (dictionaries, _) = maintained();
        fill(&dictionaries);
        assert!(dictionaries.sample_stats().samples > 0);
        dictionaries.flushed(|| {});
        assert!(dictionaries.sampled().classes.ready().is_none());
    }

    #[test]
    fn keys_of_a_more_precise_class_do_not_count() {
        let (dictionaries, changes) = maintained();
        fill(&dictionaries);
        assert!(train(&dictionaries, &changes, &|_| 1_000_000));
        import(&dictionaries, &changes, b"user:admin*");
        dictionaries.train_now(None, false);
        assert!(dictionaries.take_request().is_some());
        fill(&dictionaries);
        assert!(train(&dictionaries, &changes, &|wanted| {
            let keys = [&b"user:7"[..], b"user:admin7", b"visitor:7"];
            assert_eq!(keys.map(|key| wanted(key, 64)), [true, false, false]);
            assert!(!wanted(b"user:7", 1_000));
            0
        }));
    }

    #[test]
    fn forgetting_a_version_that_was_replaced_leaves_its_class_as_it_is() {
        let (dictionaries, changes) = maintained();
        fill(&dictionaries);
        assert!(train(&dictionaries, &changes, &|_| 1_000_000));
        import(&dictionaries, &changes, b"user:*");
        fill(&dictionaries);
        let samples = || dictionaries.sample_stats().samples;
        let before = samples();
        dictionaries.forget(1, &changes).expect("it is there");
        assert!(before > 0 && samples() == before);
        dictionaries.forget(2, &changes).expect("it is there");
        assert_eq!(samples(), 0);
    }
}
