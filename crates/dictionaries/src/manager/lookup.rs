//! Lookup of dictionaries that values need (`spec/dictionaries.md`, Reading).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use snugly_codec::Dictionary;

use super::unknown::Outcome;
use super::{Manager, denied, get};
use crate::exchange::{Driver, Event, Failure, Reply, Task};

/// Found dictionaries by ID.
pub type Found = HashMap<u32, Arc<Dictionary>>;

/// Rounds for which a missing dictionary is waited for, in halves: within one its holders put it back. Long
/// enough for two look-ups for unknown ones.
const PATIENCE_HALVES: u32 = 3;
const LEAST_PATIENCE: Duration = Duration::from_millis(1_500);
/// Time between two look-ups, which doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Rounds for which a dictionary that was not found is not looked up again.
const MISSING_ROUNDS: u32 = 2;
const LEAST_MISSING: Duration = Duration::from_secs(1);

impl Manager {
    /// Looks up dictionaries, all together and repeatedly for a while, and returns those found.
    pub fn fetch(self: &Arc<Manager>, ids: Vec<u32>) -> Task<Found> {
        let manager = self.clone();
        Task::new(|driver| async move { manager.found(&driver, &ids).await })
    }

    async fn found(&self, driver: &Driver, wanted: &[u32]) -> Found {
        let until = driver.now().monotonic + self.patience();
        let mut pause = FIRST_PAUSE;
        let mut found = Found::new();
        let mut looked_for = BTreeSet::new();
        let mut missing: BTreeSet<u32> = wanted.iter().copied().collect();
        let unknown = missing.iter().copied().filter(|id| !self.cache.lists(*id)).collect();
        let _waiting = Waiting::join(self, unknown);
        loop {
            // Another reader may have brought some.
            self.find_cached(&mut missing, &mut found);
            let listed: Vec<u32> = missing.iter().copied().filter(|id| self.cache.lists(*id)).collect();
            let claim = Claim::take(self, driver, listed.len() < missing.len());
            if !listed.is_empty() || !claim.ids.is_empty() {
                let asked: Vec<u32> = listed.iter().chain(&claim.ids).copied().collect();
                let loaded = self.look_up(driver, listed, claim).await;
                if loaded.is_answered {
                    looked_for.extend(asked);
                }
                found.extend(loaded.found);
                missing.retain(|id| !found.contains_key(id));
            } else {
                drop(claim);
            }
            if !self.settings.waits {
                missing.retain(|id| self.is_worth_waiting(driver, *id, &looked_for));
            }
            let now = driver.now().monotonic;
            if missing.is_empty() || self.is_off(now) || now > until {
                break;
            }
            driver.sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        let until = driver.now().monotonic + (self.interval() * MISSING_ROUNDS).max(LEAST_MISSING);
        let is_in_vain = |id: &u32| {
            // One that its holders have not had the time to put back may be there in a moment.
            let is_given_up = self.cache.lists(*id) && self.patience() < self.interval();
            looked_for.contains(id) && !found.contains_key(id) && !is_given_up
        };
        for id in wanted.iter().filter(|id| is_in_vain(id)) {
            self.state().missing.note(*id, until);
        }
        found
    }

    /// Time for which readers wait for what is missing, all of it together.
    fn patience(&self) -> Duration {
        let patience = (self.interval() * PATIENCE_HALVES / 2).max(LEAST_PATIENCE);
        self.settings.read_timeout.map_or(patience, |timeout| patience.min(timeout))
    }

    fn find_cached(&self, missing: &mut BTreeSet<u32>, found: &mut Found) {
        missing.retain(|id| match self.cache.get(*id) {
            Some(dictionary) => {
                found.insert(*id, dictionary);
                false
            }
            None => true,
        });
    }

    /// Returns whether a client without dictionaries of its own waits: for dictionaries that the catalogue
    /// lists, or that are being looked up.
    fn is_worth_waiting(&self, driver: &Driver, id: u32, looked_for: &BTreeSet<u32>) -> bool {
        let is_vain = || self.state().unknown.is_vain(driver.now().monotonic);
        self.cache.lists(id) || !(looked_for.contains(&id) || is_vain())
    }

    /// Looks up once, and reads the catalogue as well if there are unknown IDs.
    async fn look_up(&self, driver: &Driver, listed: Vec<u32>, mut claim: Claim<'_>) -> Loaded {
        let has_unknown = !claim.ids.is_empty();
        let mut ids = listed;
        // An unknown ID may be listed by now.
        let unlisted: Vec<u32> = claim.ids.iter().copied().filter(|id| !ids.contains(id)).collect();
        ids.extend(unlisted);
        let loaded = self.load(driver, ids, has_unknown).await;
        let is_there = |id: &u32| loaded.found.contains_key(id) || self.cache.lists(*id);
        claim.outcome = match loaded.is_answered {
            false => Outcome::Unanswered,
            true if claim.ids.iter().all(is_there) => Outcome::Useful,
            true => Outcome::InVain,
        };
        loaded
    }

    /// Gets dictionaries in one round trip, and the catalogue as well.
    pub(super) async fn load(&self, driver: &Driver, ids: Vec<u32>, and_catalogue: bool) -> Loaded {
        let mut loaded = Found::new();
        if self.settings.has_copies {
            for (id, place, bytes) in driver.read_copies(ids.clone()).await {
                loaded.extend(self.proven(driver, id, &bytes, &place).map(|dictionary| (id, dictionary)));
            }
        }
        let rest = ids.into_iter().filter(|id| !loaded.contains_key(id)).collect();
        let fetched = self.load_from_server(driver, rest, and_catalogue).await;
        let is_answered = fetched.is_some();
        let fetched = fetched.unwrap_or_default();
        if self.settings.has_copies && !fetched.is_empty() {
            driver.write_copies(fetched.values().cloned().collect()).await;
        }
        loaded.extend(fetched);
        for (id, dictionary) in &loaded {
            self.cache.hold(dictionary.clone(), driver.now().wall);
            driver.tell(Event::Fetched);
            self.state().missing.forget(*id);
        }
        Loaded { found: loaded, is_answered }
    }

    /// Returns `None` if the server was lost.
    async fn load_from_server(&self, driver: &Driver, ids: Vec<u32>, and_catalogue: bool) -> Option<Found> {
        let mut commands: Vec<_> = ids.iter().map(|id| get(self.keys.dictionary(*id))).collect();
        if and_catalogue {
            commands.push(get(self.keys.catalogue()));
        }
        if commands.is_empty() {
            return Some(Found::new());
        }
        let replies = driver.send_all(commands).await.ok()?;
        if let Some(reason) = denied(&replies) {
            self.turn_off(driver, reason);
            return Some(Found::new());
        }
        let mut found = Found::new();
        for (id, reply) in ids.iter().zip(&replies) {
            let bytes = reply.as_ref().ok().and_then(Reply::bytes);
            let place = || self.keys.dictionary(*id).escape_ascii().to_string();
            let proven = bytes.and_then(|bytes| self.proven(driver, *id, bytes, &place()));
            found.extend(proven.map(|dictionary| (*id, dictionary)));
        }
        if and_catalogue && let Some(Ok(document)) = replies.last() {
            self.take_catalogue(driver, document.bytes()).await;
        }
        Some(found)
    }

    /// Returns the dictionary of this ID, if these bytes are its content.
    fn proven(&self, driver: &Driver, id: u32, bytes: &[u8], place: &str) -> Option<Arc<Dictionary>> {
        match Dictionary::load(bytes) {
            Ok(dictionary) if dictionary.id() == id => return Some(Arc::new(dictionary)),
            Ok(other) => self
                .warn(driver, format!("what is at {place} is not used: it is the dictionary {}", other.id())),
            Err(error) => self.warn(driver, format!("what is at {place} is not used: {error}")),
        }
        None
    }

    /// Reads the catalogue; returns whether the server answered.
    pub(super) async fn read_catalogue(&self, driver: &Driver) -> bool {
        match driver.send(get(self.keys.catalogue())).await {
            Ok(document) => {
                self.take_catalogue(driver, document.bytes()).await;
                true
            }
            Err(Failure::Denied(reason)) => {
                self.turn_off(driver, &reason);
                false
            }
            Err(Failure::Refused(_) | Failure::Lost(_)) => false,
        }
    }
}

/// Outcome of a look-up.
pub(super) struct Loaded {
    pub(super) found: Found,
    /// Whether the server answered.
    is_answered: bool,
}

/// A reader that waits for unknown IDs, until it is dropped.
struct Waiting<'m> {
    manager: &'m Manager,
    ids: Vec<u32>,
}

impl Waiting<'_> {
    fn join(manager: &Manager, ids: Vec<u32>) -> Waiting<'_> {
        manager.state().unknown.join(&ids);
        Waiting { manager, ids }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.manager.state().unknown.leave(&self.ids);
    }
}

/// A look-up for unknown IDs, until it is dropped; without IDs if it is not the time for one.
struct Claim<'m> {
    manager: &'m Manager,
    driver: &'m Driver,
    ids: Vec<u32>,
    outcome: Outcome,
}

impl<'m> Claim<'m> {
    fn take(manager: &'m Manager, driver: &'m Driver, is_needed: bool) -> Claim<'m> {
        let now = driver.now().monotonic;
        let ids = if is_needed { manager.state().unknown.claim(now) } else { Vec::new() };
        Claim { manager, driver, ids, outcome: Outcome::Unanswered }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.ids.is_empty() {
            self.manager.state().unknown.release(self.outcome, self.driver.now().monotonic);
        }
    }
}
