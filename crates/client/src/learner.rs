//! Training and decisions of one client from the values that it writes: dictionaries for kinds of keys, and
//! the best encoding of each.
//!
//! Writers offer values and apply decisions, without a lock; a background task asks for steps. It must not
//! know servers: who asks for steps publishes the results.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use snugly_codec::{Choice, Dictionary};
use snugly_dictionaries::{Catalogue, CatalogueError, DictionaryCache, Entry};
use snugly_learning::{Decision, Decisions, LearnerSettings, Measured, Pattern};

/// Number of values for each one whose result is noted.
const WATCHED: u64 = 16;

/// Learns for one client.
pub struct Learner {
    settings: LearnerSettings,
    seed: u64,
    trains: AtomicBool,
    /// None once there is nothing to be learned any more.
    learner: ArcSwapOption<snugly_learning::Learner>,
    decisions: ArcSwap<Decisions>,
    /// Number of values written.
    shown: AtomicU64,
    dictionaries: Arc<DictionaryCache>,
}

impl Learner {
    /// Creates a learner that has seen nothing. Without a goal codec and level stay, and only dictionaries are
    /// learned.
    pub fn new(settings: LearnerSettings, seed: u64, dictionaries: Arc<DictionaryCache>) -> Learner {
        let learner = snugly_learning::Learner::new(settings, seed);
        Learner {
            settings,
            seed,
            trains: AtomicBool::new(settings.trains),
            learner: ArcSwapOption::from_pointee(learner),
            decisions: ArcSwap::default(),
            shown: AtomicU64::new(0),
            dictionaries,
        }
    }

    /// Returns the number of values written: without any since the last step, there is nothing to train from.
    pub fn shown(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Studies a kind of keys of which there are enough samples, which takes up to about a second; `None` if
    /// there is none. `now` counts from 1970, `reads` is how often values are read for each time that one is
    /// written.
    pub fn step(&self, now: Duration, reads: f64) -> Option<Lesson> {
        let learner = self.learner.load_full()?;
        let known = Cell::new(None);
        let current = |pattern: &[u8]| {
            let dictionary = self.dictionaries.active_for(pattern);
            known.set(dictionary.as_ref().map(|dictionary| dictionary.id()));
            dictionary
        };
        let lesson = learner.step(now.as_millis() as u64, reads, current, &processor_time);
        let lesson = lesson.map(|lesson| Lesson::of(&lesson, known.get()));
        // A learner that was replaced must not be used any more.
        if self.learner.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, &learner)) {
            self.decisions.store(learner.decisions());
        }
        lesson
    }

    /// Forgets what was seen and decided.
    pub fn forget(&self) {
        self.start_anew();
    }

    /// Sets whether dictionaries are trained.
    pub fn allow_training(&self, is_allowed: bool) {
        self.trains.store(is_allowed, Ordering::Relaxed);
        self.start_anew();
    }

    /// Returns the decision for a key, and a value of `len` bytes if that is given; `None` for none yet.
    pub fn explain(&self, key: &[u8], len: Option<usize>) -> Option<Explained> {
        let decisions = self.decisions.load();
        let decision = match len {
            Some(len) => decisions.find(key, len),
            None => decisions.iter().find(|decision| decision.pattern.matches(key)),
        }?;
        Some(Explained {
            pattern: decision.pattern.glob(),
            goal: decision.goal.name(),
            price: decision.goal.price(),
            reads: decision.reads,
            decided_at: decision.decided_at as f64 / 1000.0,
            latest_ratio: decision.drift.latest(),
            measured: decision.measured.iter().map(|measured| Row::of(measured, decision)).collect(),
            best: decision.stages.written,
        })
    }

    /// Looks at a value that is written, and says what is decided for it.
    pub fn decide(&self, key: &[u8], value: &[u8]) -> Option<Decided> {
        let learner = self.learner.load();
        learner.as_ref()?.show(key, value);
        let number = self.shown.fetch_add(1, Ordering::Relaxed);
        let decisions = self.decisions.load();
        let decision = decisions.find(key, value.len())?;
        let watched = number.is_multiple_of(WATCHED).then(|| decision.clone());
        Some(Decided { choice: decision.choice, uses_dictionary: decision.uses_dictionary, watched })
    }

    /// In the place of the one before. A child of a fork must not wait for what a thread of its parent has locked.
    fn start_anew(&self) {
        let settings = LearnerSettings { trains: self.trains.load(Ordering::Relaxed), ..self.settings };
        let learns = settings.trains || settings.goal.is_some();
        let seed = self.seed.wrapping_add(self.shown());
        self.learner.store(learns.then(|| Arc::new(snugly_learning::Learner::new(settings, seed))));
        self.decisions.store(Arc::default());
    }
}

/// Decision for one value.
pub struct Decided {
    /// Codec and level.
    pub choice: Choice,
    /// Whether a dictionary is used if there is one.
    pub uses_dictionary: bool,
    /// The decision, if what becomes of the value is to be noted.
    pub watched: Option<Arc<Decision>>,
}

/// Explanation of the encoding of a kind of keys.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Keys that it is for, a glob of KEYS.
    pub pattern: String,
    /// Name of the goal.
    pub goal: &'static str,
    /// Nanoseconds that a saved byte may cost.
    pub price: f64,
    /// Reads for each write.
    pub reads: f64,
    /// Time of the decision, in seconds since 1970.
    pub decided_at: f64,
    /// Ratio of encoded to plain bytes of the values written lately, if some were.
    pub latest_ratio: Option<f64>,
    /// Results of all methods.
    pub measured: Vec<Row>,
    /// Index in `measured` of the one that is used.
    pub best: usize,
}

/// Result of one method for the samples.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the codec.
    pub codec: &'static str,
    /// Level.
    pub level: i32,
    /// ID of the dictionary, if one was used.
    pub dictionary: Option<u32>,
    /// Number of values that were measured.
    pub values: usize,
    /// Encoded of plain bytes.
    pub ratio: f64,
    /// Bytes that each value saves.
    pub saved: f64,
    /// Seconds to encode a value.
    pub encode: f64,
    /// Seconds to decode a value.
    pub decode: f64,
    /// Worth under the goal; the highest is best.
    pub worth: f64,
}

impl Row {
    fn of(measured: &Measured, decision: &Decision) -> Row {
        let each = |time: Duration| time.as_secs_f64() / measured.values.max(1) as f64;
        Row {
            codec: measured.choice.codec().name(),
            level: measured.choice.level(),
            dictionary: measured.dictionary,
            values: measured.values,
            ratio: measured.ratio(),
            saved: measured.saved_each(),
            encode: each(measured.encode),
            decode: each(measured.decode),
            worth: measured.worth(decision.goal, decision.population, decision.reads),
        }
    }
}

/// Result of a step.
pub struct Lesson {
    entry: Entry,
    /// The dictionary that it was measured against.
    known: Option<u32>,
    dictionary: Option<Arc<Dictionary>>,
}

impl Lesson {
    /// Returns the dictionary that was trained and is worth having, if there is one.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// Returns the keys that it is for, a glob of KEYS.
    pub fn pattern(&self) -> &str {
        &self.entry.pattern
    }

    /// Returns the ID of the dictionary that its pattern has in a catalogue; `None` for what is no catalogue,
    /// too.
    pub fn active_in(&self, document: Option<&[u8]>) -> Option<u32> {
        let catalogue = Catalogue::decode(document?).ok()?;
        let row = catalogue.active.iter().find(|row| row.pattern == self.entry.pattern)?;
        Some(row.id)
    }

    /// Returns whether this dictionary is in a catalogue; in an unreadable document, it may be.
    pub fn is_listed_in(&self, document: Option<&[u8]>) -> bool {
        let Some(document) = document else { return false };
        let lists =
            |catalogue: Catalogue| catalogue.dictionaries.iter().any(|entry| entry.id == self.entry.id);
        Catalogue::decode(document).map_or(true, lists)
    }

    /// Returns the catalogue with this dictionary, and without any before if `document` is `None`. `None` if
    /// there is nothing to be added, since another one that is as good came first, and is not `lost`, an ID.
    /// `trained_at` is text as in RFC 3339, `published_at` in seconds since 1970.
    ///
    /// # Errors
    /// A document that is no catalogue, and one that would exceed a limit.
    pub fn added_to(
        &self,
        document: Option<&[u8]>,
        trained_at: &str,
        published_at: u64,
        lost: Option<u32>,
    ) -> Result<Option<Vec<u8>>, CatalogueError> {
        let mut catalogue = document.map(Catalogue::decode).transpose()?.unwrap_or_default();
        if !catalogue.wants(&self.entry, self.known) && !catalogue.wants(&self.entry, lost) {
            return Ok(None);
        }
        let published_at = Some(published_at);
        catalogue.add(Entry { trained_at: trained_at.to_owned(), published_at, ..self.entry.clone() });
        catalogue.encode().map(Some)
    }

    fn of(lesson: &snugly_learning::Lesson, known: Option<u32>) -> Lesson {
        let study = &lesson.study;
        let dictionary = study.new_dictionary.clone();
        let entry = Entry {
            id: dictionary.as_ref().map_or(0, |dictionary| dictionary.id()),
            pattern: Pattern::parse(&lesson.pattern).glob(),
            bytes: dictionary.as_ref().map_or(0, |dictionary| dictionary.bytes().len() as u64),
            samples: lesson.samples as u64,
            ratio_before: Some(study.before().ratio()),
            ratio_after: Some(study.best().ratio()),
            ..Entry::default()
        };
        Lesson { entry, known, dictionary }
    }
}

/// Processor time that the calling thread has used.
#[cfg(unix)]
fn processor_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// The time that goes by is the nearest to it here.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use snugly_learning::Goal;

    use super::*;

    fn learner(goal: Option<Goal>, trains: bool) -> Learner {
        let choice = Choice::new("zstd", None, 64).expect("zstd is there");
        let settings = LearnerSettings { choice, goal, trains, samples_limit: 8 << 20 };
        Learner::new(settings, 1, Arc::new(DictionaryCache::new(None, true, true, Vec::new())))
    }

    fn write(learner: &Learner, values: usize) {
        for number in 0..values {
            let value =
                format!(r#"{{"id": {number}, "name": "user {number}", "role": "reader of the news"}}"#);
            learner.decide(format!("user:{number}").as_bytes(), value.as_bytes());
        }
    }

    #[test]
    fn a_lesson_is_added_to_a_catalogue_once() {
        let learner = learner(None, true);
        write(&learner, 3000);
        let lesson = learner.step(Duration::from_secs(1), 1.0).expect("there are enough values");
        assert!(lesson.dictionary().is_some());
        let document = lesson.added_to(None, "2026-01-01T00:00:00Z", 1, None).expect("it is a catalogue");
        let document = document.expect("there was none before");
        assert!(lesson.is_listed_in(Some(&document)));
        assert_eq!(lesson.active_in(Some(&document)), lesson.dictionary().map(|one| one.id()));
        assert_eq!(lesson.added_to(Some(&document), "", 2, None), Ok(None));
        assert!(lesson.added_to(Some(b"nonsense"), "", 2, None).is_err());
    }

    #[test]
    fn what_is_forgotten_is_not_decided_any_more() {
        let learner = learner(Some(Goal::Balanced), false);
        write(&learner, 3000);
        learner.step(Duration::from_secs(1), 1.0).expect("there are enough values");
        assert!(learner.explain(b"user:7", None).is_some());
        learner.forget();
        assert!(learner.explain(b"user:7", None).is_none());
    }
}
