//! Training and decisions of one client, for Python.
//!
//! The Python code around it publishes the results.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use snugly_client as client;
use snugly_learning::{Goal, LearnerSettings};

use crate::codec::chosen;
use crate::dictionaries::{Dictionaries, Dictionary, refused, seconds};
use crate::leaving::inside;

/// Learns for one client.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Learner(pub(crate) Arc<client::Learner>);

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
        dictionaries: &Dictionaries,
    ) -> PyResult<Learner> {
        let goal = goal.map(str::parse::<Goal>).transpose().map_err(PyValueError::new_err)?;
        let choice = chosen(backend, level, min_compression_size)?;
        let settings = LearnerSettings { choice, goal, trains, samples_limit: memory };
        Ok(Learner(Arc::new(client::Learner::new(settings, seed, dictionaries.cache().clone()))))
    }

    /// Returns the number of values written: without any since the last step, there is nothing to train from.
    fn shown(&self) -> u64 {
        self.0.shown()
    }

    /// Studies a kind of keys of which there are enough samples, which takes up to about a second, without the
    /// interpreter's lock; None if there is none. `now` is in seconds since 1970, `reads` how often values are read for
    /// each time that one is written.
    fn step(&self, py: Python<'_>, now: f64, reads: f64) -> Option<Lesson> {
        let _inside = inside(py);
        py.detach(|| self.0.step(seconds(now), reads)).map(Lesson)
    }

    /// Forgets what was seen and decided.
    fn forget(&self) {
        self.0.forget();
    }

    /// Sets whether dictionaries are trained.
    fn allow_training(&self, is_allowed: bool) {
        self.0.allow_training(is_allowed);
    }

    /// Returns the decision for a key, and a value of `len` bytes if that is given; None for none yet.
    #[pyo3(signature = (key, len=None))]
    fn explain(&self, key: &[u8], len: Option<usize>) -> Option<Explained> {
        self.0.explain(key, len).map(|explained| Explained {
            measured: explained.measured.into_iter().map(Row::from).collect(),
            pattern: explained.pattern,
            goal: explained.goal,
            price: explained.price,
            reads: explained.reads,
            decided_at: explained.decided_at,
            latest_ratio: explained.latest_ratio,
            best: explained.best,
        })
    }
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

impl From<client::Row> for Row {
    fn from(row: client::Row) -> Row {
        let client::Row { codec, level, dictionary, values, ratio, saved, encode, decode, worth } = row;
        Row { codec, level, dictionary, values, ratio, saved, encode, decode, worth }
    }
}

/// Result of a step.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Lesson(client::Lesson);

#[pymethods]
impl Lesson {
    /// The dictionary that was trained and is worth having, if there is one.
    #[getter]
    fn dictionary(&self) -> Option<Dictionary> {
        self.0.dictionary().cloned().map(Dictionary)
    }

    /// The keys that it is for, a glob of KEYS.
    #[getter]
    fn pattern(&self) -> &str {
        self.0.pattern()
    }

    /// The ID of the dictionary that its pattern has in a catalogue; None for what is no catalogue, too.
    #[pyo3(signature = (document))]
    fn active_in(&self, document: Option<&[u8]>) -> Option<u32> {
        self.0.active_in(document)
    }

    /// Returns whether this dictionary is in a catalogue; in an unreadable document, it may be.
    #[pyo3(signature = (document))]
    fn is_listed_in(&self, document: Option<&[u8]>) -> bool {
        self.0.is_listed_in(document)
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
        let added = self.0.added_to(document, trained_at, published_at, lost).map_err(refused)?;
        Ok(added.map(Cow::Owned))
    }
}
