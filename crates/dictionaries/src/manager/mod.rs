//! Rules for the dictionaries of one client: its requests to its server, and their times
//! (`spec/dictionaries.md`).
//!
//! It knows the rules, as [tasks](crate::Task): [`Manager::fetch`] for readers that miss dictionaries,
//! [`Manager::refresh`] for periodic maintenance, and [`Manager::keep`] for the last time. It must not know
//! connections, threads, clocks or files. Any number of tasks may be under way at the same time.
//!
//! - [`lookup`]: look-ups for readers; [`unknown`]: the limit on look-ups for IDs that no catalogue has
//! - [`maintenance`]: keeping the held dictionaries on the server

mod lookup;
mod maintenance;
mod unknown;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use snugly_codec::Dictionary;

pub use self::lookup::Found;
use self::unknown::Unknown;
use crate::cache::{DictionaryCache, Needed};
use crate::exchange::{Driver, Event, Failure, Now};
use crate::{Command, Keys};

/// Rounds of maintenance for each time that the catalogue is read.
const ROUNDS_PER_REFRESH: u32 = 12;
/// Most different warnings that are reported.
const MOST_WARNINGS: usize = 1_000;

/// Settings of a client that do not change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Prefix of the names of all keys of dictionaries.
    pub prefix: String,
    /// Time between reads of the catalogue, and from the publication of a dictionary to its use.
    pub refresh: Duration,
    /// Whether unknown dictionaries are waited for: the client has dictionaries of its own.
    pub waits: bool,
    /// Whether copies are kept in a folder.
    pub has_copies: bool,
    /// Time that the client lets the server take for a reply; `None` for any time.
    pub read_timeout: Option<Duration>,
}

/// State of the server's dictionaries beside those in the cache.
#[derive(Default)]
struct State {
    /// Whether there was a catalogue at the last read, or one was published since.
    is_known: bool,
    /// Times of the next read of the catalogue, and of the next round.
    read_at: Duration,
    round_at: Duration,
    /// Time until which dictionaries are not asked for, for want of permission; whether that was so at the
    /// last request.
    off_until: Duration,
    was_off: bool,
    /// Time until which dictionaries are not kept from eviction, for want of permission.
    unkept_until: Duration,
    wanted: Vec<u32>,
    forgotten: HashSet<u32>,
    missing: Missing,
    unknown: Unknown,
    /// ID of the last dictionary that was compared with the value in its place.
    compared: u32,
    /// Whether the server could not be reached in the last round.
    has_failed: bool,
    warned: HashSet<String>,
}

/// IDs that were not found, and the times until which they are not looked up again.
#[derive(Default)]
struct Missing {
    until: HashMap<u32, Duration>,
    order: VecDeque<u32>,
}

impl Missing {
    fn note(&mut self, id: u32, until: Duration) {
        if self.until.insert(id, until).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > unknown::MOST {
            let oldest = self.order.pop_front();
            oldest.and_then(|id| self.until.remove(&id));
        }
    }

    fn forget(&mut self, id: u32) {
        if self.until.remove(&id).is_some() {
            self.order.retain(|other| *other != id);
        }
    }

    fn has(&self, id: u32, now: Duration) -> bool {
        self.until.get(&id).is_some_and(|until| now < *until)
    }
}

/// The dictionaries of one client and its server. Times are by the monotonic clock of [`Now`] unless stated
/// otherwise.
pub struct Manager {
    settings: Settings,
    keys: Keys,
    cache: Arc<DictionaryCache>,
    state: Mutex<State>,
}

impl Manager {
    /// Creates the manager of a client that knows nothing of its server yet.
    pub fn new(settings: Settings, cache: Arc<DictionaryCache>) -> Manager {
        let keys = Keys::new(settings.prefix.clone());
        Manager { settings, keys, cache, state: Mutex::default() }
    }

    /// Returns the time between rounds.
    pub fn interval(&self) -> Duration {
        self.settings.refresh / ROUNDS_PER_REFRESH
    }

    /// Returns the cache of held dictionaries.
    pub fn cache(&self) -> &Arc<DictionaryCache> {
        &self.cache
    }

    /// Returns the keys of dictionaries on the server.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns whether looking up this dictionary now is useless.
    pub fn is_missing(&self, id: u32, now: Duration) -> bool {
        let state = self.state();
        now < state.off_until || state.missing.has(id, now)
    }

    /// Returns whether dictionaries are not available now, for want of permission.
    pub fn is_off(&self, now: Duration) -> bool {
        now < self.state().off_until
    }

    /// Returns whether permission was missing at the last request.
    pub fn was_off(&self) -> bool {
        self.state().was_off
    }

    /// Returns whether there was a catalogue at the last read, or one was published since.
    pub fn is_known(&self) -> bool {
        self.state().is_known
    }

    /// Notes that the catalogue is gone, as all data was deleted.
    pub fn lose(&self) {
        self.state().is_known = false;
    }

    /// Notes that this client has published a dictionary itself.
    pub fn has_published(&self, dictionary: Arc<Dictionary>, now: Now) {
        self.cache.hold(dictionary, now.wall);
        let mut state = self.state();
        state.is_known = true;
        state.read_at = Duration::ZERO;
    }

    /// Makes the next [`Manager::refresh`] check everything: a connection was lost, and the server may have
    /// lost more.
    pub fn hurry(&self) {
        self.state().round_at = Duration::ZERO;
    }

    /// Forgets the tasks under way that will never end: those of a process before a fork.
    pub fn forget_tasks(&self) {
        let mut state = self.state();
        state.unknown = Unknown::default();
        state.round_at = Duration::ZERO;
    }

    /// Returns whether a warning is new. Each is reported once.
    pub fn is_new_warning(&self, warning: &str) -> bool {
        let warned = &mut self.state().warned;
        warned.len() < MOST_WARNINGS && warned.insert(warning.to_owned())
    }

    fn warn(&self, driver: &Driver, warning: String) {
        if self.is_new_warning(&warning) {
            driver.tell(Event::Warning(warning));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a catalogue, and removes the copies of forgotten dictionaries.
    async fn take_catalogue(&self, driver: &Driver, document: Option<&[u8]>) {
        self.note_catalogue(driver, document);
        let needed = self.cache.read(document, driver.now().wall, self.settings.refresh);
        match needed {
            Ok(needed) => self.take_needed(driver, needed).await,
            Err(error) => self.warn(driver, format!("values are written without dictionaries: {error}")),
        }
    }

    fn note_catalogue(&self, driver: &Driver, document: Option<&[u8]>) {
        let now = driver.now();
        let mut state = self.state();
        state.read_at = now.monotonic + self.settings.refresh;
        state.off_until = Duration::ZERO;
        state.was_off = false;
        state.wanted.clear();
        if document.is_none() && state.is_known {
            driver.tell(Event::CatalogueLost);
        }
        state.is_known = document.is_some();
        drop(state);
        if self.cache.given().is_none() {
            // Permission may have been missing before.
            self.cache.allow(true, now.wall);
        }
    }

    async fn take_needed(&self, driver: &Driver, needed: Needed) {
        self.note_needed(&needed);
        if self.settings.has_copies && !needed.forgotten.is_empty() {
            driver.remove_copies(needed.forgotten).await;
        }
    }

    fn note_needed(&self, needed: &Needed) {
        let mut state = self.state();
        state.wanted.clone_from(&needed.wanted);
        state.forgotten = needed.forgotten.iter().copied().collect();
    }

    /// Stops all requests until a refresh has passed: the keys may not be read.
    fn turn_off(&self, driver: &Driver, reason: &str) {
        let now = driver.now();
        {
            let mut state = self.state();
            state.off_until = now.monotonic + self.settings.refresh;
            state.was_off = true;
            state.read_at = state.off_until;
            state.wanted.clear();
        }
        self.cache.allow(false, now.wall);
        let prefix = &self.settings.prefix;
        self.warn(
            driver,
            format!("dictionaries are off, since the keys {prefix}:* may not be read: {reason}"),
        );
    }
}

fn get(key: Vec<u8>) -> Command {
    vec![b"GET".to_vec(), key]
}

fn touch(key: Vec<u8>) -> Command {
    vec![b"TOUCH".to_vec(), key]
}

/// Returns the first reply that says that something is not allowed.
fn denied<R>(replies: &[Result<R, Failure>]) -> Option<&str> {
    replies.iter().find_map(|reply| match reply {
        Err(Failure::Denied(reason)) => Some(&**reason),
        _ => None,
    })
}
