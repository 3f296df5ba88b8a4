//! Learning for those who keep no values themselves, such as a client: what it writes is all that it knows of.
//!
//! Any number of threads show it what they write and follow its decisions. One in the background asks it to step on.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use snugly_codec::{Choice, Dictionary};

use crate::band::Band;
use crate::class::Ready;
use crate::classes::Classes;
use crate::decisions::{Decision, Decisions};
use crate::goal::Goal;
use crate::study::{Footprint, Method, Study, StudyParameters, study_envelopes};

/// The settings of a learner.
#[derive(Clone, Copy, Debug)]
pub struct LearnerSettings {
    /// The encoding of values that have no decision yet.
    pub choice: Choice,
    /// The goal; without one codec and level stay, and only dictionaries are learned.
    pub goal: Option<Goal>,
    /// Whether dictionaries are trained.
    pub trains: bool,
    /// Bytes that samples may take.
    pub samples_limit: usize,
}

/// Learns from what is written.
pub struct Learner {
    settings: LearnerSettings,
    classes: Mutex<Classes>,
    decisions: RwLock<Arc<Decisions>>,
    /// Grows with each change of the decisions.
    edition: AtomicU64,
    /// Number of resets; a study under way must not bring anything back after one.
    forgotten: AtomicU64,
    /// Number of values that need not be shown.
    unsampled: AtomicI32,
    /// Number of values left out since one was shown.
    skipped: AtomicU64,
}

/// The result of a step.
pub struct Lesson {
    /// The keys that it is for, a glob of KEYS.
    pub pattern: Vec<u8>,
    /// Number of values studied.
    pub samples: usize,
    /// The result of the study.
    pub study: Study,
}

/// A dictionary beside the data takes this much room, whatever it takes in the memory of clients.
const ROOM: usize = 1 << 20;
/// Approximate number of values that share an existing dictionary. Its memory is taken whether this one uses it or not,
/// so it must not count, however few values were seen here.
const SHARED_BY: u64 = 1 << 32;

impl Learner {
    /// Knows nothing yet.
    pub fn new(settings: LearnerSettings, seed: u64) -> Learner {
        Learner {
            settings,
            classes: Mutex::new(Classes::of_any_size(settings.samples_limit, settings.goal.is_some(), seed)),
            decisions: RwLock::default(),
            edition: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            unsampled: AtomicI32::new(0),
            skipped: AtomicU64::new(0),
        }
    }

    /// Looks at a value that is written, or not. Never waits.
    pub fn show(&self, key: &[u8], value: &[u8]) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
        if self.unsampled.fetch_sub(1, Ordering::Relaxed) > 0 {
            return;
        }
        let Ok(mut classes) = self.classes.try_lock() else { return };
        let unsampled = classes.offer(key, value, self.skipped.swap(0, Ordering::Relaxed));
        self.unsampled.store(unsampled as i32, Ordering::Relaxed);
    }

    /// The edition of [`Learner::decisions`].
    pub fn edition(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    /// The decisions.
    pub fn decisions(&self) -> Arc<Decisions> {
        self.decisions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Studies a class that has enough samples, which takes up to about a second; `None` if there is none.
    ///
    /// `now` is in Unix milliseconds, `reads` how often values are read for each time that one is written, and `current`
    /// gives the dictionary that is in use for keys of a pattern. `clock` gives the processor time of the thread.
    pub fn step(
        &self,
        now: u64,
        reads: f64,
        current: impl Fn(&[u8]) -> Option<Arc<Dictionary>>,
        clock: &dyn Fn() -> Duration,
    ) -> Option<Lesson> {
        let forgotten = self.forgotten.load(Ordering::Acquire);
        let ready = self.next(now)?;
        let terms = self.terms(&ready, reads, current(&ready.pattern));
        let study = study_envelopes(&ready.samples, &terms, clock);
        let mut classes = self.lock();
        if self.forgotten.load(Ordering::Acquire) != forgotten {
            return None;
        }
        classes.studied(&ready, study.new_dictionary.is_some(), now);
        let goal = self.settings.goal;
        let known = self.decisions();
        let before = known.of(&ready.pattern, ready.band);
        let decision = Decision::new(&ready, &terms, goal.unwrap_or_default(), &study, before, now);
        // Without a goal any dictionary that there will be is used, and only what becomes of values is to be watched.
        let decision = Decision { uses_dictionary: goal.is_none() || decision.uses_dictionary, ..decision };
        let mut decisions = self.decisions.write().unwrap_or_else(PoisonError::into_inner);
        *decisions = Arc::new(decisions.with(decision, classes.classes()));
        self.edition.fetch_add(1, Ordering::Release);
        Some(Lesson { pattern: ready.pattern.to_vec(), samples: ready.samples.len(), study })
    }

    /// Notes that the values of a pattern have lost their dictionary. They get another one when many more were seen.
    pub fn bereave(&self, pattern: &[u8]) {
        self.lock().bereave(pattern, Band::ANY);
    }

    /// Forgets what was seen and decided: the values are gone.
    pub fn forget(&self) {
        let mut classes = self.lock();
        classes.clear();
        self.forgotten.fetch_add(1, Ordering::Release);
        drop(classes);
        *self.decisions.write().unwrap_or_else(PoisonError::into_inner) = Arc::default();
        self.edition.fetch_add(1, Ordering::Release);
    }

    /// The next class to be studied, with those whose values have changed among them.
    fn next(&self, now: u64) -> Option<Ready> {
        let drifted: Vec<_> =
            self.decisions().iter().filter(|decision| decision.drift.has_drifted()).cloned().collect();
        let mut classes = self.lock();
        drifted.iter().for_each(|decision| classes.resample(decision.pattern.text(), decision.band));
        classes.look_again(now);
        classes.ready()
    }

    fn terms(&self, ready: &Ready, reads: f64, dictionary: Option<Arc<Dictionary>>) -> StudyParameters {
        let decisions = self.decisions();
        let decided = decisions.of(&ready.pattern, ready.band);
        let choice = decided.map_or(self.settings.choice, |decision| decision.choice);
        let is_used = decided.is_none_or(|decision| decision.uses_dictionary);
        let population = if dictionary.is_some() { SHARED_BY } else { ready.seen };
        StudyParameters {
            current: Method { choice, dictionary: dictionary.clone().filter(|_| is_used) },
            population,
            foreseen: population,
            dictionary,
            goal: self.settings.goal,
            trains: ready.trains && self.settings.trains,
            reads,
            room: ROOM,
            footprint: Footprint { overhead: |_| 0, allocation: |bytes| bytes },
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Classes> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, feature = "zstd", feature = "lz4"))]
mod tests {
    use super::*;

    fn learner(goal: Option<Goal>, trains: bool) -> Learner {
        let choice = Choice::new("zstd", None, 64).expect("it is built in");
        Learner::new(LearnerSettings { choice, goal, trains, samples_limit: 8 << 20 }, 7)
    }

    /// Shows so many values that are alike, as they come to whoever steps on after each hundred.
    fn write(learner: &Learner, kind: &str, count: u32, dictionary: Option<&Arc<Dictionary>>) -> Vec<Lesson> {
        let mut random = fastrand::Rng::with_seed(count.into());
        let mut lessons = Vec::new();
        for number in 0..count {
            let name: String = (0..12).map(|_| random.lowercase()).collect();
            let value = format!(
                r#"{{"kind":"{kind}","number":{number},"name":"{name}","preferences":{{"language":"is","newsletter":true,"theme":"dark"}},"visits":[]}}"#
            );
            learner.show(format!("{kind}:{number}").as_bytes(), value.as_bytes());
            if number % 100 == 99 {
                lessons.extend(learner.step(0, 1.0, |_| dictionary.cloned(), &|| Duration::ZERO));
            }
        }
        lessons
    }

    #[test]
    fn values_that_are_alike_give_a_dictionary_for_their_pattern() {
        let lessons = write(&learner(None, true), "user", 20_000, None);
        let first = lessons.iter().find(|lesson| lesson.study.new_dictionary.is_some());
        let first = first.expect("they are enough");
        assert_eq!(first.pattern, b"user:*");
        assert!(first.study.best().ratio() < 0.7 * first.study.before().ratio());
    }

    #[test]
    fn a_pattern_that_has_lost_its_dictionary_gets_no_other_soon() {
        let learner = learner(None, true);
        let trained = |lessons: Vec<Lesson>| {
            lessons.iter().filter(|lesson| lesson.study.new_dictionary.is_some()).count()
        };
        assert!(trained(write(&learner, "user", 2_000, None)) > 0);
        learner.bereave(b"user:*");
        assert_eq!(trained(write(&learner, "user", 4_000, None)), 0);
        assert!(trained(write(&learner, "user", 60_000, None)) > 0);
    }

    #[test]
    fn without_a_goal_values_that_drift_are_trained_again() {
        let learner = learner(None, true);
        let find = |lessons: Vec<Lesson>| {
            lessons.into_iter().filter_map(|lesson| lesson.study.new_dictionary).last()
        };
        let dictionary = find(write(&learner, "user", 20_000, None));
        assert!(find(write(&learner, "user", 20_000, dictionary.as_ref())).is_none());
        let decisions = learner.decisions();
        let decision = decisions.find(b"user:1", 150).expect("it was studied");
        assert!(decision.uses_dictionary);
        (0..256).for_each(|_| decision.drift.note(150, 150));
        learner.step(0, 1.0, |_| dictionary.clone(), &|| Duration::ZERO);
        assert!(find(write(&learner, "user", 20_000, None)).is_some(), "as if there were none");
    }

    #[test]
    fn with_a_goal_each_kind_of_values_is_decided_after_some_hundred() {
        let learner = learner(Some(Goal::Memory), false);
        assert!(learner.decisions().find(b"user:1", 150).is_none());
        let edition = learner.edition();
        write(&learner, "user", 300, None);
        assert!(
            learner.decisions().find(b"user:1", 150).is_some_and(|decision| decision.choice.compresses())
        );
        assert!(learner.edition() > edition);
        learner.forget();
        assert!(learner.decisions().find(b"user:1", 150).is_none());
    }

    #[test]
    fn a_dictionary_that_is_there_is_used_if_that_is_best() {
        let found = write(&learner(None, true), "user", 20_000, None);
        let dictionary = found.iter().find_map(|lesson| lesson.study.new_dictionary.clone());
        let learner = learner(Some(Goal::Balanced), false);
        write(&learner, "user", 200, dictionary.as_ref());
        assert!(learner.decisions().find(b"user:1", 150).is_some_and(|decision| decision.uses_dictionary));
    }
}
