//! Maintenance of the held dictionaries, so that a server keeps them, and gets back those that it lost
//! (`spec/dictionaries.md`, Keeping dictionaries).

use std::sync::Arc;
use std::time::Duration;

use super::{Manager, get, touch};
use crate::exchange::{Driver, Event, Failure, Task};

/// Time until the next round while the server cannot be reached.
const HURRY: Duration = Duration::from_millis(500);

/// Dictionaries that the server should have.
struct Absent {
    /// IDs whose keys do not exist.
    gone: Vec<u32>,
    /// IDs whose keys have other values.
    wrong: Vec<u32>,
}

impl Manager {
    /// Does the work that is due now, and returns the time until more is due.
    pub fn refresh(self: &Arc<Manager>) -> Task<Duration> {
        let manager = self.clone();
        Task::new(|driver| async move {
            if manager.begins_round(driver.now().monotonic) {
                manager.round(&driver).await;
            }
            manager.until_round(driver.now().monotonic)
        })
    }

    fn begins_round(&self, now: Duration) -> bool {
        let mut state = self.state();
        let is_due = now >= state.round_at;
        if is_due {
            state.round_at = now + self.interval();
        }
        is_due
    }

    fn until_round(&self, now: Duration) -> Duration {
        let mut state = self.state();
        if state.has_failed {
            state.round_at = state.round_at.min(now + HURRY);
        }
        state.round_at.saturating_sub(now)
    }

    /// Makes the server register the held dictionaries as in use, puts back missing ones, and overwrites
    /// wrong values.
    pub fn keep(self: &Arc<Manager>) -> Task<()> {
        let manager = self.clone();
        Task::new(|driver| async move { manager.kept(&driver).await })
    }

    async fn round(&self, driver: &Driver) {
        let has_none = !self.cache.writes() && self.cache.ids().is_empty();
        if has_none || self.is_off(driver.now().monotonic) {
            return;
        }
        if driver.now().monotonic >= self.state().read_at {
            self.read_catalogue(driver).await;
            if self.is_off(driver.now().monotonic) {
                return;
            }
        }
        let wanted = self.state().wanted.clone();
        let wanted: Vec<u32> = wanted.into_iter().filter(|id| self.cache.get(*id).is_none()).collect();
        if !wanted.is_empty() {
            self.load(driver, wanted, false).await;
        }
        self.cache.choose(driver.now().wall);
        if driver.now().monotonic >= self.state().unkept_until {
            self.kept(driver).await;
        }
    }

    async fn kept(&self, driver: &Driver) {
        let failure = self.look_after(driver).await.err();
        // The next round tries again.
        self.state().has_failed = matches!(failure, Some(Failure::Refused(_) | Failure::Lost(_)));
        if let Some(Failure::Denied(reason)) = failure {
            self.state().unkept_until = driver.now().monotonic + self.settings.refresh;
            self.note(driver, self.cache.given(), false);
            let warning =
                format!("dictionaries are not kept from eviction, since that is not allowed: {reason}");
            self.warn(driver, warning);
        }
    }

    async fn look_after(&self, driver: &Driver) -> Result<(), Failure> {
        let Absent { gone, wrong } = self.touched(driver).await?;
        // A dictionary may be gone because it is to be forgotten.
        if !(gone.is_empty() && wrong.is_empty()) && self.read_catalogue(driver).await {
            self.put_back(driver, gone, true).await?;
            self.put_back(driver, wrong, false).await?;
        }
        Ok(())
    }

    /// Makes the server register which dictionaries are in use.
    async fn touched(&self, driver: &Driver) -> Result<Absent, Failure> {
        let held = self.cache.ids();
        let mut absent = Absent { gone: Vec::new(), wrong: Vec::new() };
        for &id in &held {
            let is_there = driver.send(touch(self.keys.dictionary(id))).await?.is_something();
            let is_forgotten = self.state().forgotten.contains(&id);
            self.note(driver, Some(id), is_there && !is_forgotten);
            if !is_there {
                absent.gone.push(id);
            }
        }
        driver.send(touch(self.keys.catalogue())).await?;
        // One in each round, in turn.
        let last = self.state().compared;
        let next = held.iter().find(|id| **id > last).or(held.first()).copied();
        if let Some(id) = next {
            self.state().compared = id;
            if !absent.gone.contains(&id) && !self.is_right(driver, id).await? {
                absent.wrong.push(id);
            }
        }
        Ok(absent)
    }

    /// Returns whether this dictionary, and nothing else, is in its place.
    async fn is_right(&self, driver: &Driver, id: u32) -> Result<bool, Failure> {
        let reply = match driver.send(get(self.keys.dictionary(id))).await {
            // The value is of another type.
            Err(Failure::Refused(_)) => return Ok(false),
            reply => reply?,
        };
        let held = self.cache.get(id);
        let is_other = reply.bytes().zip(held).is_some_and(|(bytes, held)| bytes != held.bytes());
        Ok(!is_other)
    }

    async fn put_back(&self, driver: &Driver, ids: Vec<u32>, only_if_gone: bool) -> Result<(), Failure> {
        for id in ids {
            // A given dictionary is held, whatever the catalogue says.
            let is_forgotten = self.state().forgotten.contains(&id);
            let Some(held) = self.cache.get(id).filter(|_| !is_forgotten) else { continue };
            let mut command = vec![b"SET".to_vec(), self.keys.dictionary(id), held.bytes().to_vec()];
            command.extend(only_if_gone.then(|| b"NX".to_vec()));
            match driver.send(command).await {
                Ok(reply) => {
                    if reply.is_something() {
                        driver.tell(if only_if_gone { Event::PutBack } else { Event::Mended });
                    }
                    self.note(driver, Some(id), true);
                }
                // The server may accept another dictionary, and this one another time.
                Err(Failure::Refused(reason) | Failure::Denied(reason)) => self.warn(
                    driver,
                    format!("dictionaries are not kept from eviction, since the server does not take them: {reason}"),
                ),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Allows writing with the given dictionary only while it is beside the data.
    fn note(&self, driver: &Driver, id: Option<u32>, is_there: bool) {
        if id.is_some() && id == self.cache.given() {
            self.cache.allow(is_there, driver.now().wall);
        }
    }
}
