//! What is done about classes in the background: training those that have enough samples, and sampling those anew whose
//! values have become different.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use snugly_codec::Dictionary;
use snugly_learning::{
    Band, Class, Decision, Footprint, Goal, Method, Pattern, Ready, Study, Terms, study, with_dictionary,
};
use tracing::{debug, info};

use super::Dictionaries;
use super::known::{Known, Version, drift};
use super::lists::{BAND, LISTS};
use crate::changes::Changes;
use crate::memory::{entry, entry_allocation_size};
use crate::store::Settings;

/// Whether a value is wanted, by its key and its length.
pub(crate) type Wanted<'a> = &'a dyn Fn(&[u8], usize) -> bool;

/// What a study is to know of the store.
pub(crate) struct Surroundings<'a> {
    pub(crate) settings: &'a Settings,
    /// In Unix milliseconds.
    pub(crate) now: u64,
    /// Says how often a value is read, about, for each time that it is written.
    pub(crate) reads: &'a dyn Fn() -> f64,
    /// Says about how many of the store's values are wanted.
    pub(crate) population: &'a dyn Fn(Wanted<'_>) -> u64,
    /// Says about how many nodes of lists are compressed.
    pub(crate) nodes: &'a dyn Fn() -> u64,
    /// Gives the processor time of the thread.
    pub(crate) clock: &'a dyn Fn() -> Duration,
    pub(crate) changes: &'a Changes,
}

/// Of lists a training comes early, and its dictionary may well stay: the size is chosen for so many times as many nodes.
const LISTS_GROW: u64 = 4;

/// What a record takes in memory.
const FOOTPRINT: Footprint =
    Footprint { overhead: |key_len| entry::overhead(key_len, false), allocation: entry_allocation_size };

/// A training that somebody asks for: of the classes of this pattern, or of all.
pub(crate) type Request = Option<Pattern>;

impl Dictionaries {
    /// Has classes trained with what is in the store, those whose pattern is this if one is named; says how many there
    /// are as yet. With a pattern that none has, nothing happens.
    pub(crate) fn train_now(&self, pattern: Option<&[u8]>) -> usize {
        let concerned = |class: &&Class| pattern.is_none_or(|pattern| pattern == &*class.pattern);
        let found = self.sampled().classes.classes().iter().filter(concerned).count();
        if found > 0 || pattern.is_none() {
            *self.request.lock() = Some(pattern.map(Pattern::parse));
        }
        found
    }

    /// What somebody has asked for since the last time. The classes are sampled anew.
    pub(crate) fn take_request(&self) -> Option<Request> {
        let request = self.request.lock().take()?;
        let mut sampled = self.sampled();
        let classes = sampled.classes.classes().iter().filter(|class| is_about(&request, &class.pattern));
        let classes: Vec<_> = classes.map(|class| (class.pattern.clone(), class.band)).collect();
        classes.iter().for_each(|(pattern, band)| sampled.classes.resample(pattern, *band));
        Some(request)
    }

    /// Has classes trained with the samples that there are.
    pub(crate) fn train_sampled(&self, request: &Request) {
        self.sampled().classes.train_now(|pattern| is_about(request, pattern));
    }

    /// Studies a class that has enough samples; says whether there was one.
    pub(crate) fn study(&self, surroundings: &Surroundings<'_>) -> bool {
        // Before the samples: of what is deleted from here on, nothing is adopted.
        let known = self.known();
        let Some(ready) = self.sampled().classes.ready() else { return false };
        let terms = terms(&known, &ready, surroundings);
        let study = study(&ready.samples, &terms, surroundings.clock);
        self.trainings.fetch_add(u64::from(terms.trains), Ordering::Relaxed);
        let version = study.new_dictionary.as_ref();
        let version = version.map(|dictionary| new_version(dictionary, &ready, &study, surroundings.now));
        let adopted = version.is_some_and(|version| self.adopt(version, &known, surroundings));
        let mut sampled = self.sampled();
        // After a deletion of everything a class of this pattern is another one, and another goal is decided anew.
        if sampled.flushes != known.flushes() || sampled.goal != surroundings.settings.goal {
            return true;
        }
        if sampled.classes.studied(&ready, adopted, surroundings.now) {
            self.request.lock().get_or_insert_with(|| Some(Pattern::parse(&ready.pattern)));
        }
        if let Some(goal) = terms.goal.filter(|_| adopted || study.new_dictionary.is_none()) {
            let before = known.decisions().of(&ready.pattern, ready.band);
            let decision = Decision::new(&ready, &terms, goal, &study, before, surroundings.now);
            debug!(pattern = %escaped(&ready.pattern), min_len = ready.band.start(), choice = ?decision.choice, "decided");
            let at_first = known.flushes();
            let mut known = self.known.write();
            if known.flushes() != at_first {
                return true;
            }
            let decided = known.with_decisions(known.decisions().with(decision, sampled.classes.classes()));
            self.publish(&mut known, decided);
        }
        true
    }

    /// Uses a new version, in the place of the one that its class has had, unless what it was learned from was deleted
    /// meanwhile or its memory was given to another; says whether.
    fn adopt(&self, version: Version, at_first: &Known, surroundings: &Surroundings<'_>) -> bool {
        let Surroundings { settings, changes, .. } = surroundings;
        let pattern = escaped(version.pattern.text());
        let (bytes, before, after) =
            (version.dictionary.bytes().len(), version.ratio_before, version.ratio_after);
        let mut known = self.known.write();
        let adopted = known.flushes() == at_first.flushes()
            && self.use_version(&mut known, version, settings.dictionaries, changes).is_ok();
        if adopted {
            self.adopted.fetch_add(1, Ordering::Relaxed);
            info!(%pattern, bytes, before, after, "a dictionary is used from now on");
        }
        adopted
    }

    /// Has classes sampled anew whose values have become different.
    pub(crate) fn watch_for_drift(&self) {
        for version in self.known().active() {
            if version.live.has_drifted() {
                self.sampled().classes.resample(version.pattern.text(), version.band);
            }
        }
        for decision in self.known().decisions().iter() {
            if decision.drift.has_drifted() {
                self.sampled().classes.resample(decision.pattern.text(), decision.band);
            }
        }
    }

    /// Has classes looked at again that were not for long.
    pub(crate) fn look_again(&self, now: u64) {
        self.sampled().classes.look_again(now);
    }
}

/// What is known of a class beside its samples.
fn terms(known: &Known, ready: &Ready, surroundings: &Surroundings<'_>) -> Terms {
    let settings = surroundings.settings;
    let (goal, current, dictionary, population) = match *ready.pattern == *LISTS {
        true => terms_of_lists(known, surroundings),
        false => terms_of_values(known, ready, surroundings),
    };
    // With a disk tier memory may hold fewer than were sampled.
    let population = population.max(ready.samples.len() as u64);
    Terms {
        current,
        dictionary,
        goal,
        trains: ready.trains && settings.dictionaries.learns(),
        population,
        foreseen: if *ready.pattern == *LISTS { population * LISTS_GROW } else { population },
        reads: (surroundings.reads)(),
        room: known.room(settings.dictionaries.dictionaries_limit(), &ready.pattern, ready.band),
        footprint: FOOTPRINT,
    }
}

/// What is decided for, how values are encoded now, the dictionary that there is, and how many of them there are.
type Own = (Option<Goal>, Method, Option<Arc<Dictionary>>, u64);

fn terms_of_lists(known: &Known, surroundings: &Surroundings<'_>) -> Own {
    let Settings { lists, compression, .. } = surroundings.settings;
    let dictionary = known.active_of(LISTS, BAND).map(|version| version.dictionary().clone());
    let choice = lists.compress_codec.unwrap_or(*compression);
    // Nothing is chosen for lists but the dictionary.
    (None, Method { choice, dictionary: dictionary.clone() }, dictionary, (surroundings.nodes)())
}

fn terms_of_values(known: &Known, ready: &Ready, surroundings: &Surroundings<'_>) -> Own {
    let settings = surroundings.settings;
    let pattern = Pattern::parse(&ready.pattern);
    // A pattern is a key of its own class: this is what writers use for such keys.
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
    (settings.goal, current, dictionary, (surroundings.population)(&is_wanted))
}

fn new_version(dictionary: &Arc<Dictionary>, ready: &Ready, study: &Study, now: u64) -> Version {
    let (before, after) = (study.before().ratio(), study.best().ratio());
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

    fn tended() -> (Dictionaries, Changes) {
        let dictionaries = Dictionaries::new(&settings());
        dictionaries.set_tended(true);
        (dictionaries, Changes::new(None, None, vec![0]))
    }

    /// Offers values of a class until it has no room for more of them.
    fn fill(dictionaries: &Dictionaries) {
        for number in 0.. {
            let value = format!(r#"{{"number":{number},"name":"name-{}","kind":"user"}}"#, number * 7919);
            if dictionaries.offer(format!("user:{number}").as_bytes(), value.as_bytes(), 1) > 0 {
                return;
            }
        }
    }

    fn train(dictionaries: &Dictionaries, changes: &Changes, population: &dyn Fn(Wanted<'_>) -> u64) -> bool {
        dictionaries.study(&Surroundings {
            settings: &settings(),
            now: 0,
            reads: &|| 1.0,
            population,
            nodes: &|| 0,
            clock: &|| Duration::ZERO,
            changes,
        })
    }

    /// Uses the dictionary that is in use already for this pattern, too.
    fn import(dictionaries: &Dictionaries, changes: &Changes, pattern: &[u8]) {
        let content = dictionaries.known().active()[0].dictionary().bytes().to_vec();
        let imported = Imported { content: &content, pattern, len: 64 };
        dictionaries.import(&imported, &settings(), 0, changes).expect("it is whole");
    }

    #[test]
    fn a_deletion_of_everything_during_a_training_leaves_the_new_class_as_it_is() {
        let (dictionaries, changes) = tended();
        fill(&dictionaries);
        assert!(train(&dictionaries, &changes, &|_| {
            dictionaries.flushed(|| {});
            fill(&dictionaries);
            1_000_000
        }));
        assert!(dictionaries.known().active().is_empty(), "its data is gone");
        assert!(
            train(&dictionaries, &changes, &|_| 1_000_000),
            "there are samples of what was written since"
        );
        assert_eq!(dictionaries.known().active().len(), 1);
    }

    #[test]
    fn samples_of_what_was_deleted_are_not_trained() {
        let (dictionaries, _) = tended();
        fill(&dictionaries);
        assert!(dictionaries.sample_stats().samples > 0);
        dictionaries.flushed(|| {});
        assert!(dictionaries.sampled().classes.ready().is_none());
    }

    #[test]
    fn keys_of_a_more_precise_class_do_not_count() {
        let (dictionaries, changes) = tended();
        fill(&dictionaries);
        assert!(train(&dictionaries, &changes, &|_| 1_000_000));
        import(&dictionaries, &changes, b"user:admin*");
        dictionaries.train_now(None);
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
        let (dictionaries, changes) = tended();
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
