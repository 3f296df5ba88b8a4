//! The dictionaries that one client has at hand, and which of them it writes with.
//!
//! It knows dictionaries and what a catalogue says. How they are fetched, and when, is for the Python code around it.
//! What encodes and decodes reads an immutable picture of all this, without a lock; it is replaced when anything
//! changes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use snugly_catalogue::{Catalogue, Keys};
use snugly_protocol::glob;

/// The most dictionaries that are kept besides those that the client writes with.
const MOST_HELD: usize = 128;
/// The longest time that settings and clocks are taken for, in seconds.
const LONGEST: f64 = 1e12;
/// How often whoever looks after dictionaries is woken while they are used, in milliseconds: it may have ended untold.
const WAKE_EVERY: u64 = 1000;

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

/// A dictionary that is at hand.
struct Held {
    dictionary: Arc<snugly_codec::Dictionary>,
    /// By the clock of its keeper, which goes on with each change.
    last_used: AtomicU64,
}

/// What is used for which keys.
enum Selection {
    Nothing,
    Everything(Arc<Held>),
    /// The first pattern that matches decides.
    Patterns(Vec<(Box<str>, Option<Arc<Held>>)>),
}

/// What encoders and decoders see.
struct Picture {
    held: HashMap<u32, Arc<Held>>,
    selection: Selection,
    /// What the catalogue says for each pattern, whether it may be used yet or not.
    active: Vec<(Box<str>, u32)>,
}

/// What is at hand at one moment.
pub(crate) struct AtHand<'a> {
    picture: Guard<Arc<Picture>>,
    clock: &'a AtomicU64,
}

impl AtHand<'_> {
    /// The dictionary of this ID.
    pub fn find(&self, id: u32) -> Option<&snugly_codec::Dictionary> {
        self.picture.held.get(&id).map(|held| &**held.used(self.clock))
    }
}

/// What the catalogue said last.
struct Listed {
    catalogue: Catalogue,
    /// Whether values may be written with dictionaries.
    is_allowed: bool,
    /// When each of its dictionaries was seen first, since 1970.
    first_seen: HashMap<u32, Duration>,
    refresh: Duration,
}

/// All dictionaries of one client.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Dictionaries {
    picture: ArcSwap<Picture>,
    /// The keys whose values are written without, as globs.
    excluded: Vec<Vec<u8>>,
    /// Always at hand, and what is written with whatever the key is, if anything is and once that is allowed.
    given: Option<Arc<Held>>,
    listed: Mutex<Listed>,
    /// Whether values are ever written with a dictionary.
    writes: bool,
    clock: AtomicU64,
    wake: Option<Py<PyAny>>,
    made: Instant,
    /// From when on the next use wakes, in milliseconds since `made`.
    wake_from: AtomicU64,
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
        let given = given.map(|given| Arc::new(Held::new(given.0.clone(), 0)));
        let held = given.iter().map(|held| (held.dictionary.id(), held.clone())).collect();
        let is_allowed = given.is_none() || wake.is_none();
        let used = given.clone().filter(|_| writes && is_allowed);
        let selection = used.map_or(Selection::Nothing, Selection::Everything);
        let listed = Listed {
            catalogue: Catalogue::default(),
            is_allowed,
            first_seen: HashMap::new(),
            refresh: Duration::ZERO,
        };
        Dictionaries {
            picture: ArcSwap::from_pointee(Picture { held, selection, active: Vec::new() }),
            excluded,
            given,
            listed: Mutex::new(listed),
            writes,
            clock: AtomicU64::new(1),
            wake,
            made: Instant::now(),
            wake_from: AtomicU64::new(0),
        }
    }

    /// Has `wake` called at the next use.
    fn sleep(&self) {
        self.wake_from.store(0, Ordering::Relaxed);
    }

    /// The IDs of those that are at hand.
    fn held(&self) -> Vec<u32> {
        self.picture.load().held.keys().copied().collect()
    }

    /// One that is at hand.
    fn get(&self, id: u32) -> Option<Dictionary> {
        self.picture.load().held.get(&id).map(|held| Dictionary(held.dictionary.clone()))
    }

    /// Keeps a dictionary at hand, and lets go of the one that was used least recently if there are too many.
    fn hold(&self, dictionary: &Dictionary, now: f64) {
        let listed = self.listed();
        let held = Arc::new(Held::new(dictionary.0.clone(), self.clock.fetch_add(1, Ordering::Relaxed)));
        let mut all = self.picture.load().held.clone();
        all.entry(dictionary.0.id()).or_insert(held);
        self.show(&listed, all, now);
    }

    /// Takes what the catalogue says; None for no catalogue. Returns the IDs that its writers need and that are not at
    /// hand, and those that are forgotten.
    ///
    /// Raises ValueError for what is no catalogue, which counts as none.
    fn read(&self, document: Option<&[u8]>, now: f64, refresh: f64) -> PyResult<(Vec<u32>, Vec<u32>)> {
        let decoded = document.map(Catalogue::decode).transpose();
        let mut listed = self.listed();
        listed.refresh = seconds(refresh);
        listed.catalogue = decoded.as_ref().ok().cloned().flatten().unwrap_or_default();
        let Listed { catalogue, first_seen, .. } = &mut *listed;
        let ids: Vec<u32> = catalogue.dictionaries.iter().map(|entry| entry.id).collect();
        let earlier = std::mem::take(first_seen);
        let seen = |id| (id, earlier.get(&id).copied().unwrap_or(seconds(now)));
        *first_seen = ids.into_iter().map(seen).collect();
        let mut held = self.picture.load().held.clone();
        held.retain(|id, _| self.is_given(*id) || !listed.catalogue.forgotten.contains(id));
        self.show(&listed, held, now);
        decoded.map_err(refused)?;
        if !self.writes || self.given.is_some() {
            return Ok((Vec::new(), listed.catalogue.forgotten.clone()));
        }
        let picture = self.picture.load();
        let choices = listed.choices(now).into_iter().filter_map(|(_, id)| id);
        let listed_ids = |id: &u32| listed.first_seen.contains_key(id);
        let active = listed.catalogue.active.iter().map(|row| row.id).filter(listed_ids);
        let mut wanted: Vec<u32> =
            choices.chain(active).filter(|id| !picture.held.contains_key(id)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        Ok((wanted, listed.catalogue.forgotten.clone()))
    }

    /// Says whether values may be written with dictionaries: not with one that is given and not beside the data.
    fn allow(&self, is_allowed: bool, now: f64) {
        let mut listed = self.listed();
        if listed.is_allowed != is_allowed {
            listed.is_allowed = is_allowed;
            let held = self.picture.load().held.clone();
            self.show(&listed, held, now);
        }
    }

    /// Chooses anew what to write with: time has passed.
    fn choose(&self, now: f64) {
        let listed = self.listed();
        let held = self.picture.load().held.clone();
        self.show(&listed, held, now);
    }

    /// Whether the values of this key are nobody's samples and written without.
    #[pyo3(name = "excludes")]
    fn is_excluded(&self, key: &[u8]) -> bool {
        self.excludes(key)
    }

    /// The ID of the dictionary that values of this key are written with, if their codec has dictionaries.
    fn chosen_for(&self, key: &[u8]) -> Option<u32> {
        let dictionary = if self.excludes(key) { None } else { self.for_key(key) };
        dictionary.map(|dictionary| dictionary.id())
    }

    /// For each active pattern of the catalogue the ID of the dictionary that is written with.
    fn choices(&self) -> Vec<(String, Option<u32>)> {
        match &self.picture.load().selection {
            Selection::Patterns(patterns) => {
                let id = |held: &Option<Arc<Held>>| held.as_ref().map(|held| held.dictionary.id());
                patterns.iter().map(|(pattern, held)| (pattern.to_string(), id(held))).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Held {
    fn new(dictionary: Arc<snugly_codec::Dictionary>, now: u64) -> Held {
        Held { dictionary, last_used: AtomicU64::new(now) }
    }

    fn used(&self, clock: &AtomicU64) -> &Arc<snugly_codec::Dictionary> {
        self.last_used.store(clock.load(Ordering::Relaxed), Ordering::Relaxed);
        &self.dictionary
    }
}

impl Listed {
    fn choices(&self, now: f64) -> Vec<(Box<str>, Option<u32>)> {
        let first_seen = |id| self.first_seen.get(&id).copied().unwrap_or(Duration::MAX);
        let choices = self.catalogue.choices(seconds(now), self.refresh, first_seen);
        choices.into_iter().map(|choice| (choice.pattern.into(), choice.id)).collect()
    }
}

impl Dictionaries {
    /// Whether values are ever written with a dictionary.
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Whether the values of this key are written without, and are nobody's samples.
    pub fn excludes(&self, key: &[u8]) -> bool {
        self.excluded.iter().any(|pattern| glob::matches(pattern, key, false))
    }

    /// The dictionary to write a value of this key with, which is not excluded.
    pub fn for_key(&self, key: &[u8]) -> Option<Arc<snugly_codec::Dictionary>> {
        let picture = self.picture.load();
        let held = match &picture.selection {
            Selection::Nothing => None,
            Selection::Everything(held) => Some(held),
            Selection::Patterns(patterns) => {
                let mut patterns = patterns.iter();
                let matching = patterns.find(|(pattern, _)| glob::matches(pattern.as_bytes(), key, false));
                matching.and_then(|(_, held)| held.as_ref())
            }
        };
        held.map(|held| held.used(&self.clock).clone())
    }

    /// The same for a value whose key nobody knows.
    pub fn for_any_key(&self) -> Option<Arc<snugly_codec::Dictionary>> {
        match &self.picture.load().selection {
            Selection::Everything(held) => Some(held.used(&self.clock).clone()),
            _ => None,
        }
    }

    /// The dictionary that keys of a pattern have, or are to have as soon as it may be used.
    pub fn active_for(&self, pattern: &[u8]) -> Option<Arc<snugly_codec::Dictionary>> {
        let picture = self.picture.load();
        if let Selection::Everything(held) = &picture.selection {
            return Some(held.dictionary.clone());
        }
        // To a glob, the stars of a pattern are bytes like any others.
        let mut active = picture.active.iter();
        let (_, id) = active.find(|(glob, _)| glob::matches(glob.as_bytes(), pattern, false))?;
        picture.held.get(id).map(|held| held.dictionary.clone())
    }

    /// Those that are at hand now.
    pub fn at_hand(&self) -> AtHand<'_> {
        AtHand { picture: self.picture.load(), clock: &self.clock }
    }

    /// Wakes who wants to know that dictionaries are used.
    pub fn woken(&self, py: Python<'_>) {
        let Some(wake) = &self.wake else { return };
        let now = self.made.elapsed().as_millis() as u64;
        // Of those who find that it is time, one wakes.
        let next = |from| (now >= from).then_some(now + WAKE_EVERY);
        if self.wake_from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
            && let Err(error) = wake.bind(py).call0()
        {
            error.write_unraisable(py, Some(wake.bind(py)));
        }
    }

    /// Whoever changes the picture holds this.
    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_given(&self, id: u32) -> bool {
        self.given.as_ref().is_some_and(|given| given.dictionary.id() == id)
    }

    /// Replaces the picture: these are at hand, and what is written with follows from what is listed.
    fn show(&self, listed: &Listed, mut held: HashMap<u32, Arc<Held>>, now: f64) {
        self.clock.fetch_add(1, Ordering::Relaxed);
        let active: &[_] = if listed.is_allowed { &listed.catalogue.active } else { &[] };
        let selection = match &self.given {
            _ if !self.writes || !listed.is_allowed => Selection::Nothing,
            Some(given) => Selection::Everything(given.clone()),
            None => {
                let find = |(pattern, id): (Box<str>, Option<u32>)| {
                    (pattern, id.and_then(|id| held.get(&id)).cloned())
                };
                Selection::Patterns(listed.choices(now).into_iter().map(find).collect())
            }
        };
        let mut others: Vec<(u64, u32)> = Vec::new();
        for (id, each) in &held {
            if !self.is_given(*id) && !selection.has(*id) && !active.iter().any(|row| row.id == *id) {
                others.push((each.last_used.load(Ordering::Relaxed), *id));
            }
        }
        others.sort_unstable();
        let excess = others.len().saturating_sub(MOST_HELD);
        for (_, id) in &others[..excess] {
            held.remove(id);
        }
        let active = active.iter().map(|row| (row.pattern.as_str().into(), row.id)).collect();
        self.picture.store(Arc::new(Picture { held, selection, active }));
    }
}

impl Selection {
    fn has(&self, id: u32) -> bool {
        match self {
            Selection::Nothing => false,
            Selection::Everything(held) => held.dictionary.id() == id,
            Selection::Patterns(patterns) => {
                patterns.iter().any(|(_, held)| held.as_ref().is_some_and(|held| held.dictionary.id() == id))
            }
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    // Not-a-number is 0.
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST).max(0.0))
}

fn refused(error: impl std::fmt::Display) -> PyErr {
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
