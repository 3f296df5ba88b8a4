//! The dictionaries that one client has at hand, for Python.
//!
//! Encoders and decoders ask [`Dictionaries::cache`]; how dictionaries are fetched, and when, is for `manager`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use snugly_client::WakeTimer;
use snugly_dictionaries::{DictionaryCache, Keys};

use crate::leaving::inside;

/// The longest time that settings and clocks are taken for, in seconds.
const LONGEST: f64 = 1e12;

/// A loaded dictionary.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Dictionary(pub(crate) Arc<snugly_codec::Dictionary>);

#[pymethods]
impl Dictionary {
    /// Raises ValueError for what is no dictionary, or has another ID than its content.
    #[new]
    fn new(bytes: &[u8]) -> PyResult<Dictionary> {
        Ok(Dictionary(Arc::new(snugly_codec::Dictionary::load(bytes).map_err(refused)?)))
    }

    /// Raises ValueError if none can be made of these samples.
    #[classmethod]
    fn train(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        samples: Vec<Bound<'_, PyBytes>>,
        max_bytes: usize,
    ) -> PyResult<Dictionary> {
        let _inside = inside(py);
        let samples: Vec<&[u8]> = samples.iter().map(|sample| sample.as_bytes()).collect();
        let trained = py.detach(|| snugly_codec::Dictionary::train(&samples, max_bytes));
        Ok(Dictionary(Arc::new(trained.map_err(refused)?)))
    }

    #[getter]
    fn id(&self) -> u32 {
        self.0.id()
    }

    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.bytes())
    }
}

/// All dictionaries of one client.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Dictionaries {
    cache: Arc<DictionaryCache>,
    wake: Option<Py<PyAny>>,
    timer: WakeTimer,
}

#[pymethods]
impl Dictionaries {
    /// If `writes`, `given` is written with whatever the key is; without it, what the catalogue says. `wake` is called
    /// when dictionaries are used, at most once a second, and at once after `sleep`; whoever gives it says by `allow`
    /// when `given` may be written with. Values whose keys match one of the globs in `excluded` are written without.
    #[new]
    #[pyo3(signature = (given, writes, excluded, wake))]
    fn new(
        given: Option<&Dictionary>,
        writes: bool,
        excluded: Vec<Vec<u8>>,
        wake: Option<Py<PyAny>>,
    ) -> Dictionaries {
        let given = given.map(|given| given.0.clone());
        let is_allowed = given.is_none() || wake.is_none();
        Dictionaries {
            cache: Arc::new(DictionaryCache::new(given, writes, is_allowed, excluded)),
            wake,
            timer: WakeTimer::new(),
        }
    }

    /// Returns whether values are written with any of them now.
    fn are_written_with(&self) -> bool {
        self.cache.is_written_with()
    }

    /// Requests a call of `wake` at the next use.
    fn sleep(&self) {
        self.timer.reset();
    }

    /// The IDs of those that are at hand.
    fn held(&self) -> Vec<u32> {
        self.cache.ids()
    }

    /// One that is at hand.
    fn get(&self, id: u32) -> Option<Dictionary> {
        self.cache.get(id).map(Dictionary)
    }

    /// Keeps a dictionary at hand, and lets go of the one that was used least recently if there are too many.
    fn hold(&self, dictionary: &Dictionary, now: f64) {
        self.cache.hold(dictionary.0.clone(), seconds(now));
    }

    /// Returns whether the values of this key are neither sampled nor written with a dictionary.
    fn excludes(&self, key: &[u8]) -> bool {
        self.cache.excludes(key)
    }

    /// The ID of the dictionary that values of this key are written with, if their codec has dictionaries.
    fn chosen_for(&self, key: &[u8]) -> Option<u32> {
        let dictionary = if self.cache.excludes(key) { None } else { self.cache.for_key(key) };
        dictionary.map(|dictionary| dictionary.id())
    }

    /// For each active pattern of the catalogue the ID of the dictionary that is written with.
    fn choices(&self) -> Vec<(String, Option<u32>)> {
        self.cache.choices()
    }
}

impl Dictionaries {
    /// The dictionaries themselves.
    pub fn cache(&self) -> &Arc<DictionaryCache> {
        &self.cache
    }

    /// Wakes who wants to know that dictionaries are used.
    pub fn woken(&self, py: Python<'_>) {
        let Some(wake) = &self.wake else { return };
        if self.timer.is_due()
            && let Err(error) = wake.bind(py).call0()
        {
            error.write_unraisable(py, Some(wake.bind(py)));
        }
    }
}

/// A time that Python gives in seconds.
pub(crate) fn seconds(seconds: f64) -> Duration {
    // Not-a-number is 0.
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST).max(0.0))
}

pub(crate) fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The name of the catalogue's key for a prefix.
#[pyfunction]
pub(crate) fn catalogue_key(prefix: &str) -> Cow<'static, [u8]> {
    Keys::new(prefix).catalogue().into()
}

/// The name of a dictionary's key for a prefix.
#[pyfunction]
pub(crate) fn dictionary_key(prefix: &str, id: u32) -> Cow<'static, [u8]> {
    Keys::new(prefix).dictionary(id).into()
}

/// The name of the key for a prefix that one client holds while it publishes.
#[pyfunction]
pub(crate) fn lock_key(prefix: &str) -> Cow<'static, [u8]> {
    Keys::new(prefix).training_lock().into()
}
