//! The dictionaries that one client holds, and which of them it writes with.
//!
//! It knows dictionaries and catalogues; it must not know how and when they are fetched, which is up to the
//! [manager](crate::Manager). Encoders and decoders read an immutable snapshot, without a lock; it is
//! replaced when anything changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use snugly_codec::Dictionary;
use snugly_glob::Pattern;

use crate::{Catalogue, CatalogueError};

/// Most dictionaries that are kept besides those that the client writes with.
pub(crate) const MOST_HELD: usize = 128;

/// A held dictionary.
struct Held {
    dictionary: Arc<Dictionary>,
    /// Time of the last use, by the cache's own clock, which advances with each change.
    last_used: AtomicU64,
}

impl Held {
    fn new(dictionary: Arc<Dictionary>, now: u64) -> Held {
        Held { dictionary, last_used: AtomicU64::new(now) }
    }

    fn used(&self, clock: &AtomicU64) -> &Arc<Dictionary> {
        self.last_used.store(clock.load(Ordering::Relaxed), Ordering::Relaxed);
        &self.dictionary
    }
}

/// Selection of the dictionary for a key.
enum Selection {
    Nothing,
    Everything(Arc<Held>),
    /// The first pattern that matches decides.
    Patterns(Vec<Rule>),
}

/// The dictionary of the keys that match a pattern, if there is one.
struct Rule {
    pattern: Box<str>,
    glob: Pattern,
    held: Option<Arc<Held>>,
}

impl Selection {
    fn has(&self, id: u32) -> bool {
        match self {
            Selection::Nothing => false,
            Selection::Everything(held) => held.dictionary.id() == id,
            Selection::Patterns(rules) => {
                rules.iter().any(|rule| rule.held.as_ref().is_some_and(|held| held.dictionary.id() == id))
            }
        }
    }
}

/// State of the cache that encoders and decoders see.
struct State {
    held: HashMap<u32, Arc<Held>>,
    selection: Selection,
    /// Dictionary of each pattern of the catalogue, whether it may be used yet or not.
    active: Vec<(Box<str>, u32)>,
}

/// A view of the cache at one moment.
pub struct Snapshot<'a> {
    state: Guard<Arc<State>>,
    clock: &'a AtomicU64,
}

impl Snapshot<'_> {
    /// Returns the dictionary of this ID, if it is held.
    pub fn find(&self, id: u32) -> Option<&Dictionary> {
        self.state.held.get(&id).map(|held| &**held.used(self.clock))
    }
}

/// The catalogue as last read.
struct Listed {
    catalogue: Catalogue,
    /// Whether values may be written with dictionaries.
    is_allowed: bool,
    /// Times at which each of its dictionaries was first seen, since 1970.
    first_seen: HashMap<u32, Duration>,
    refresh: Duration,
}

impl Listed {
    fn choices(&self, now: Duration) -> Vec<(Box<str>, Option<u32>)> {
        let first_seen = |id| self.first_seen.get(&id).copied().unwrap_or(Duration::MAX);
        let choices = self.catalogue.choices(now, self.refresh, first_seen);
        choices.into_iter().map(|choice| (choice.pattern.into(), choice.id)).collect()
    }
}

/// Dictionaries that a catalogue requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// IDs that are written with, now or soon, and that are not held.
    pub wanted: Vec<u32>,
    /// IDs that must not come back.
    pub forgotten: Vec<u32>,
}

/// All dictionaries of one client, for any number of threads. Times are counted from 1970.
pub struct DictionaryCache {
    state: ArcSwap<State>,
    /// Globs of keys whose values are written without a dictionary.
    excluded: Vec<Pattern>,
    /// Dictionary that is always held, and used to write every key once that is allowed.
    given: Option<Arc<Held>>,
    listed: Mutex<Listed>,
    writes: bool,
    clock: AtomicU64,
}

impl DictionaryCache {
    /// Creates a cache that is empty except for the dictionary given to the client, if any. If it `writes`,
    /// that one is used for every key, as soon as it `is_allowed`; without one, those that the catalogue
    /// names are. Values whose keys match a glob of `excluded` are written without a dictionary.
    pub fn new(
        given: Option<Arc<Dictionary>>,
        writes: bool,
        is_allowed: bool,
        excluded: Vec<Vec<u8>>,
    ) -> DictionaryCache {
        let given = given.map(|dictionary| Arc::new(Held::new(dictionary, 0)));
        let held = given.iter().map(|held| (held.dictionary.id(), held.clone())).collect();
        let used = given.clone().filter(|_| writes && is_allowed);
        let selection = used.map_or(Selection::Nothing, Selection::Everything);
        let listed = Listed {
            catalogue: Catalogue::default(),
            is_allowed,
            first_seen: HashMap::new(),
            refresh: Duration::ZERO,
        };
        DictionaryCache {
            state: ArcSwap::from_pointee(State { held, selection, active: Vec::new() }),
            excluded: excluded.iter().map(|pattern| Pattern::new(pattern, false)).collect(),
            given,
            listed: Mutex::new(listed),
            writes,
            clock: AtomicU64::new(1),
        }
    }

    /// Returns whether values are ever written with a dictionary.
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Returns whether values are written with a dictionary now.
    pub fn is_written_with(&self) -> bool {
        self.writes
            && match &self.state.load().selection {
                Selection::Nothing => false,
                Selection::Everything(_) => true,
                Selection::Patterns(rules) => rules.iter().any(|rule| rule.held.is_some()),
            }
    }

    /// Returns a view for decoders.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { state: self.state.load(), clock: &self.clock }
    }

    /// Returns the IDs of the held dictionaries, in order.
    pub fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.state.load().held.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Returns a held dictionary, without counting that as a use.
    pub fn get(&self, id: u32) -> Option<Arc<Dictionary>> {
        self.state.load().held.get(&id).map(|held| held.dictionary.clone())
    }

    /// Returns the ID of the dictionary that the client was given.
    pub fn given(&self) -> Option<u32> {
        self.given.as_ref().map(|given| given.dictionary.id())
    }

    /// Returns whether the last catalogue lists the dictionary of this ID.
    pub fn lists(&self, id: u32) -> bool {
        self.listed().first_seen.contains_key(&id)
    }

    /// Returns whether the values of this key are written without a dictionary and never sampled.
    pub fn excludes(&self, key: &[u8]) -> bool {
        self.excluded.iter().any(|pattern| pattern.matches(key))
    }

    /// Returns the dictionary to write a value of this key with, which is not excluded.
    pub fn for_key(&self, key: &[u8]) -> Option<Arc<Dictionary>> {
        let state = self.state.load();
        let held = match &state.selection {
            Selection::Nothing => None,
            Selection::Everything(held) => Some(held),
            Selection::Patterns(rules) => {
                rules.iter().find(|rule| rule.glob.matches(key)).and_then(|rule| rule.held.as_ref())
            }
        };
        held.map(|held| held.used(&self.clock).clone())
    }

    /// Returns the dictionary to write a value with whose key is not known.
    pub fn for_any_key(&self) -> Option<Arc<Dictionary>> {
        match &self.state.load().selection {
            Selection::Everything(held) => Some(held.used(&self.clock).clone()),
            _ => None,
        }
    }

    /// Returns the dictionary that keys of a pattern have, or will have as soon as it may be used.
    pub fn active_for(&self, pattern: &[u8]) -> Option<Arc<Dictionary>> {
        let state = self.state.load();
        if let Selection::Everything(held) = &state.selection {
            return Some(held.dictionary.clone());
        }
        // To a glob, the stars of a pattern are bytes like any others.
        let mut active = state.active.iter();
        let (_, id) = active.find(|(glob, _)| snugly_glob::matches(glob.as_bytes(), pattern, false))?;
        state.held.get(id).map(|held| held.dictionary.clone())
    }

    /// Returns the ID of the dictionary in use for each active pattern of the catalogue.
    pub fn choices(&self) -> Vec<(String, Option<u32>)> {
        match &self.state.load().selection {
            Selection::Patterns(rules) => {
                let id = |rule: &Rule| rule.held.as_ref().map(|held| held.dictionary.id());
                rules.iter().map(|rule| (rule.pattern.to_string(), id(rule))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Holds a dictionary, and drops the least recently used one if there are too many.
    pub fn hold(&self, dictionary: Arc<Dictionary>, now: Duration) {
        let listed = self.listed();
        let mut all = self.state.load().held.clone();
        let id = dictionary.id();
        let held = Held::new(dictionary, self.clock.fetch_add(1, Ordering::Relaxed));
        all.entry(id).or_insert_with(|| Arc::new(held));
        self.store(&listed, all, now);
    }

    /// Applies a catalogue; `None` for no catalogue.
    ///
    /// # Errors
    /// [`CatalogueError`] if the document is not a catalogue, which counts as none.
    pub fn read(
        &self,
        document: Option<&[u8]>,
        now: Duration,
        refresh: Duration,
    ) -> Result<Needed, CatalogueError> {
        let decoded = document.map(Catalogue::decode).transpose();
        let mut listed = self.listed();
        listed.refresh = refresh;
        listed.catalogue = decoded.as_ref().ok().cloned().flatten().unwrap_or_default();
        let Listed { catalogue, first_seen, .. } = &mut *listed;
        let ids: Vec<u32> = catalogue.dictionaries.iter().map(|entry| entry.id).collect();
        let earlier = std::mem::take(first_seen);
        *first_seen = ids.into_iter().map(|id| (id, earlier.get(&id).copied().unwrap_or(now))).collect();
        let mut held = self.state.load().held.clone();
        held.retain(|id, _| self.given() == Some(*id) || !listed.catalogue.forgotten.contains(id));
        self.store(&listed, held, now);
        decoded?;
        let forgotten = listed.catalogue.forgotten.clone();
        let wanted = if self.writes && self.given.is_none() { self.wanted(&listed, now) } else { Vec::new() };
        Ok(Needed { wanted, forgotten })
    }

    fn wanted(&self, listed: &Listed, now: Duration) -> Vec<u32> {
        let state = self.state.load();
        let chosen = listed.choices(now).into_iter().filter_map(|(_, id)| id);
        let is_listed = |id: &u32| listed.first_seen.contains_key(id);
        let active = listed.catalogue.active.iter().map(|row| row.id).filter(is_listed);
        let mut wanted: Vec<u32> = chosen.chain(active).filter(|id| !state.held.contains_key(id)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Sets whether values may be written with dictionaries: not while a given one is not beside the data.
    pub fn allow(&self, is_allowed: bool, now: Duration) {
        let mut listed = self.listed();
        if listed.is_allowed != is_allowed {
            listed.is_allowed = is_allowed;
            let held = self.state.load().held.clone();
            self.store(&listed, held, now);
        }
    }

    /// Chooses the dictionaries to write with again after time has passed.
    pub fn choose(&self, now: Duration) {
        let listed = self.listed();
        let held = self.state.load().held.clone();
        self.store(&listed, held, now);
    }

    /// Locks the catalogue that determines the state: whoever replaces the state holds this lock.
    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the state by these held dictionaries and the selection that follows from the catalogue.
    fn store(&self, listed: &Listed, mut held: HashMap<u32, Arc<Held>>, now: Duration) {
        self.clock.fetch_add(1, Ordering::Relaxed);
        let active: &[_] = if listed.is_allowed { &listed.catalogue.active } else { &[] };
        let selection = match &self.given {
            _ if !self.writes || !listed.is_allowed => Selection::Nothing,
            Some(given) => Selection::Everything(given.clone()),
            None => {
                let find = |(pattern, id): (Box<str>, Option<u32>)| Rule {
                    glob: Pattern::new(pattern.as_bytes(), false),
                    held: id.and_then(|id| held.get(&id)).cloned(),
                    pattern,
                };
                Selection::Patterns(listed.choices(now).into_iter().map(find).collect())
            }
        };
        let mut others: Vec<(u64, u32)> = Vec::new();
        for (id, each) in &held {
            if self.given() != Some(*id) && !selection.has(*id) && !active.iter().any(|row| row.id == *id) {
                others.push((each.last_used.load(Ordering::Relaxed), *id));
            }
        }
        others.sort_unstable();
        let excess = others.len().saturating_sub(MOST_HELD);
        for (_, id) in &others[..excess] {
            held.remove(id);
        }
        let active = active.iter().map(|row| (row.pattern.as_str().into(), row.id)).collect();
        self.state.store(Arc::new(State { held, selection, active }));
    }
}
