//! Training and decisions of one client from the values that it writes: dictionaries for kinds of keys, and
//! the best encoding of each.
//!
//! Writers offer values and apply decisions, without a lock; a background task asks for steps. It must not
//! know servers: the Python code around it publishes the results.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use snugly_codec::Choice;
use snugly_dictionaries::{Catalogue, Entry};
use snugly_learning::{Decision, Decisions, Goal, LearnerSettings, Measured, Pattern};

use crate::codec::chosen;
use crate::dictionaries::{Dictionaries, Dictionary};
use crate::leaving::inside;

/// Number of values for each one whose result is noted.
const WATCHED: u64 = 16;

/// Learns for one client.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Learner {
    settings: LearnerSettings,
    seed: u64,
    trains: AtomicBool,
    /// None once there is nothing to be learned any more.
    learner: ArcSwapOption<snugly_learning::Learner>,
    decisions: ArcSwap<Decisions>,
    /// Number of values written.
    shown: AtomicU64,
    dictionaries: Py<Dictionaries>,
}

#[pymethods]
impl Learner {
    /// Without a goal codec and level stay, and only dictionaries are learned. `backend`, `level` and
    /// `min_compression_size` are what values are written with while nothing is decided, `memory` is what samples may take,
    /// in bytes.
    #[new]
    #[pyo3(signature = (*, goal, trains, backend, level, min_compression_size, memory, seed, dictionaries))]
    #[allow(clippy::too_many_arguments, reason = "each is given by its name")]
    fn new(
        goal: Option<&str>,
        trains: bool,
        backend: &str,
        level: Option<i32>,
        min_compression_size: usize,
        memory: usize,
        seed: u64,
        dictionaries: Py<Dictionaries>,
    ) -> PyResult<Learner> {
        let goal = goal.map(str::parse::<Goal>).transpose().map_err(PyValueError::new_err)?;
        let choice = chosen(backend, level, min_compression_size)?;
        let settings = LearnerSettings { choice, goal, trains, samples_limit: memory };
        let learner = snugly_learning::Learner::new(settings, seed);
        Ok(Learner {
            settings,
            seed,
            trains: AtomicBool::new(trains),
            learner: ArcSwapOption::from_pointee(learner),
            decisions: ArcSwap::default(),
            shown: AtomicU64::new(0),
            dictionaries,
        })
    }

    /// Returns the number of values written: without any since the last step, there is nothing to train from.
    fn shown(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Studies a kind of keys of which there are enough samples, which takes up to about a second, without the
    /// interpreter's lock; None if there is none. `now` is in seconds since 1970, `reads` how often values are read for
    /// each time that one is written.
    fn step(&self, py: Python<'_>, now: f64, reads: f64) -> Option<Lesson> {
        let _inside = inside(py);
        let learner = self.learner.load_full()?;
        let dictionaries = self.dictionaries.get();
        let lesson = py.detach(|| {
            let known = Cell::new(None);
            let current = |pattern: &[u8]| {
                let dictionary = dictionaries.cache().active_for(pattern);
                known.set(dictionary.as_ref().map(|dictionary| dictionary.id()));
                dictionary
            };
            let lesson = learner.step((now * 1000.0) as u64, reads, current, &processor_time)?;
            Some(Lesson::of(&lesson, known.get()))
        });
        // A learner that was replaced must not be used any more.
        if self.learner.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, &learner)) {
            self.decisions.store(learner.decisions());
        }
        lesson
    }

    /// Forgets what was seen and decided.
    fn forget(&self) {
        self.start_anew();
    }

    /// Sets whether dictionaries are trained.
    fn allow_training(&self, is_allowed: bool) {
        self.trains.store(is_allowed, Ordering::Relaxed);
        self.start_anew();
    }

    /// Returns the decision for a key, and a value of `len` bytes if that is given; None for none yet.
    #[pyo3(signature = (key, len=None))]
    fn explain(&self, key: &[u8], len: Option<usize>) -> Option<Explained> {
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
}

impl Learner {
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
pub(crate) struct Decided {
    pub choice: Choice,
    pub uses_dictionary: bool,
    /// The decision, if what becomes of the value is to be noted.
    pub watched: Option<Arc<Decision>>,
}

/// Explanation of the encoding of a kind of keys.
#[pyclass(frozen, get_all, module = "snugly._native")]
pub(crate) struct Explained {
    pattern: String,
    goal: &'static str,
    price: f64,
    reads: f64,
    decided_at: f64,
    latest_ratio: Option<f64>,
    measured: Vec<Row>,
    best: usize,
}

/// Result of one method for the samples.
#[pyclass(frozen, get_all, module = "snugly._native")]
#[derive(Clone)]
pub(crate) struct Row {
    codec: &'static str,
    level: i32,
    dictionary: Option<u32>,
    values: usize,
    ratio: f64,
    saved: f64,
    encode: f64,
    decode: f64,
    worth: f64,
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
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Lesson {
    entry: Entry,
    /// The dictionary that it was measured against.
    known: Option<u32>,
    dictionary: Option<Arc<snugly_codec::Dictionary>>,
}

#[pymethods]
impl Lesson {
    /// The dictionary that was trained and is worth having, if there is one.
    #[getter]
    fn dictionary(&self) -> Option<Dictionary> {
        self.dictionary.clone().map(Dictionary)
    }

    /// The keys that it is for, a glob of KEYS.
    #[getter]
    fn pattern(&self) -> &str {
        &self.entry.pattern
    }

    /// The ID of the dictionary that its pattern has in a catalogue; None for what is no catalogue, too.
    #[pyo3(signature = (document))]
    fn active_in(&self, document: Option<&[u8]>) -> Option<u32> {
        let catalogue = Catalogue::decode(document?).ok()?;
        let row = catalogue.active.iter().find(|row| row.pattern == self.entry.pattern)?;
        Some(row.id)
    }

    /// Returns whether this dictionary is in a catalogue; in an unreadable document, it may be.
    #[pyo3(signature = (document))]
    fn is_listed_in(&self, document: Option<&[u8]>) -> bool {
        let Some(document) = document else { return false };
        let lists =
            |catalogue: Catalogue| catalogue.dictionaries.iter().any(|entry| entry.id == self.entry.id);
        Catalogue::decode(document).map_or(true, lists)
    }

    /// The catalogue with this dictionary, and without any before if `document` is None. Returns None if there is
    /// nothing to be added, since another one that is as good came first, and is not `lost`, an ID. `trained_at` is text
    /// as in RFC 3339, `published_at` in seconds since 1970.
    ///
    /// Raises ValueError for a document that is no catalogue, and for one that would exceed a limit.
    #[pyo3(signature = (document, trained_at, published_at, lost=None))]
    fn added_to(
        &self,
        document: Option<&[u8]>,
        trained_at: &str,
        published_at: u64,
        lost: Option<u32>,
    ) -> PyResult<Option<Cow<'static, [u8]>>> {
        let refused = |error: snugly_dictionaries::CatalogueError| PyValueError::new_err(error.to_string());
        let decoded = document.map(Catalogue::decode).transpose().map_err(refused)?;
        let mut catalogue = decoded.unwrap_or_default();
        if !catalogue.wants(&self.entry, self.known) && !catalogue.wants(&self.entry, lost) {
            return Ok(None);
        }
        let published_at = Some(published_at);
        catalogue.add(Entry { trained_at: trained_at.to_owned(), published_at, ..self.entry.clone() });
        Ok(Some(catalogue.encode().map_err(refused)?.into()))
    }
}

impl Lesson {
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
