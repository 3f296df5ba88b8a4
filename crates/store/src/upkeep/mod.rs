//! What a store does for its dictionaries in the background: training, with what is stored if somebody asks for it
//! ([`existing`]), encoding records anew with the dictionary that is for them now ([`walk`]), or at a stronger level if
//! nobody uses them ([`cold`]), and dropping what no record needs any more.
//!
//! It is done in steps that whoever embeds the store asks for, at the time and the pace that suit it. It knows the store
//! and what its sessions do; how dictionaries are learned is their own business.

mod cold;
mod existing;
mod walk;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use snugly_codec::Family;

use crate::dictionaries::known::Known;
use crate::dictionaries::tending::{Surroundings, Wanted};
use crate::disk::Disk;
use crate::session::Session;
use crate::store::Store;
use cold::ColdPass;
use existing::Existing;
use walk::Walk;

/// Tends the dictionaries of a store, which samples values while this lives, and packs what nobody uses. One a store is
/// enough.
pub struct DictionaryTender {
    store: Arc<Store>,
    session: Session,
    /// Gives the processor time of the thread.
    clock: Clock,
    existing: Existing,
    walk: Walk,
    cold: ColdPass,
    /// Whether the last step studied a class: the next begins with the walk.
    has_studied: bool,
    /// When it was last looked what is no longer used, and by whole classes, in Unix milliseconds.
    looked_at: u64,
    looked_for_dead_at: u64,
    /// Versions that have no record, by number: inactive ones, and active ones.
    unused: HashMap<u32, Unused>,
    dead: HashMap<u32, Unused>,
}

/// Since when something has not been used.
struct Unused {
    /// In Unix milliseconds.
    since: u64,
    /// How often that was seen.
    looks: u32,
    /// How many values the version had noted at first.
    noted: u64,
}

/// Gives the processor time of the thread that asks.
pub(crate) type Clock = Box<dyn Fn() -> Duration + Send>;

/// Between which bounds reads for each write count.
const FEWEST_READS: f64 = 0.1;
const MOST_READS: f64 = 100.0;
/// How often it is looked what is no longer used, in milliseconds.
const LOOK_EVERY: u64 = 1_000;
/// A version goes when no record has needed it for so long, in milliseconds, and so many looks: the clock may jump.
const UNUSED_FOR: u64 = 5_000;
const UNUSED_LOOKS: u32 = 4;
/// How often it is looked for classes that have died, in milliseconds,
const LOOK_FOR_DEAD_EVERY: u64 = 60_000;
/// and after how many looks without a record or a new value the use of a dictionary ends.
const DEAD_LOOKS: u32 = 11;
/// So many keys of a database tell how many values of a class there are.
const POPULATION_SAMPLE: u64 = 10_000;

impl DictionaryTender {
    /// Starts sampling.
    pub(crate) fn new(store: &Arc<Store>, clock: Clock) -> DictionaryTender {
        store.dictionaries.set_tended(true);
        DictionaryTender {
            store: store.clone(),
            session: store.uncounted_session(),
            clock,
            existing: Existing::default(),
            walk: Walk::default(),
            cold: ColdPass::default(),
            has_studied: false,
            looked_at: 0,
            looked_for_dead_at: 0,
            unused: HashMap::new(),
            dead: HashMap::new(),
        }
    }

    /// Does the next thing that is to be done at this time (Unix milliseconds), which takes some milliseconds, or for a
    /// training up to about a second; says whether there was anything. If not, the next one is due in about a second.
    pub fn step(&mut self, now: u64) -> bool {
        self.session.set_now(Some(now));
        self.session.follow();
        if now.abs_diff(self.looked_at) >= LOOK_EVERY {
            self.looked_at = now;
            self.store.dictionaries.watch_for_drift();
            self.store.dictionaries.look_again(now);
            self.drop_unused(now);
        }
        if now.abs_diff(self.looked_for_dead_at) >= LOOK_FOR_DEAD_EVERY {
            self.looked_for_dead_at = now;
            self.end_dead(now);
        }
        if self.store.settings().learns() && self.existing.step(&self.store, &mut self.session) {
            return true;
        }
        // In turns, so that many classes that become ready do not hold the walk up.
        let has_worked = match self.has_studied {
            true => self.walk_on(now) || self.study(now),
            false => self.study(now) || self.walk_on(now),
        };
        // What is to have another dictionary gets that first.
        has_worked || self.cold.step(&self.store, &mut self.session, now)
    }

    /// Studies a class that has enough samples.
    fn study(&mut self, now: u64) -> bool {
        let settings = self.store.settings();
        self.has_studied = settings.learns()
            && self.store.dictionaries.study(&Surroundings {
                settings: &settings,
                now,
                reads: &|| self.reads(),
                population: &|wanted| self.population(wanted),
                nodes: &|| self.store.list_totals().inner_nodes,
                clock: &*self.clock,
                changes: &self.store.changes,
            });
        self.has_studied
    }

    /// How often a value is read, about, for each time that one is written.
    fn reads(&self) -> f64 {
        let stats = self.store.stats();
        let written = stats.codec.total(Family::EncodedValues);
        if written == 0 { 1.0 } else { (stats.hits as f64 / written as f64).clamp(FEWEST_READS, MOST_READS) }
    }

    fn walk_on(&mut self, now: u64) -> bool {
        self.has_studied = false;
        self.walk.step(&self.store, &mut self.session, now)
    }

    /// About how many of the store's keys are wanted, by key and length of the value.
    fn population(&self, wanted: Wanted<'_>) -> u64 {
        let of_database = |database| {
            // A disk that cannot be read is reported where it is read for data.
            let keys = self.store.database_stats(database).unwrap_or_default().keys as u128;
            if keys == 0 {
                return 0;
            }
            let (found, looked_at) = self.store.keyspace.count_some(database, POPULATION_SAMPLE, wanted);
            (keys * u128::from(found) / u128::from(looked_at.max(1))) as u64
        };
        (0..self.store.databases()).map(of_database).sum()
    }

    /// Drops versions that new values are not encoded with and that no record has needed for a while. If some does, the
    /// records are to be looked at once more.
    fn drop_unused(&mut self, now: u64) {
        let known = self.store.dictionaries.known();
        if known.versions().len() == known.active().len() {
            return self.unused.clear();
        }
        // Before the records are counted: whoever may still write a record of a version holds it.
        let unheld = known.unheld();
        let Some(needed) = self.needed() else { return self.unused.clear() };
        let is_needed = |number: &u32| needed.contains(number);
        if known
            .versions()
            .iter()
            .any(|version| !known.is_active(version.number()) && is_needed(&version.number()))
        {
            self.walk.once_more(now);
        }
        self.unused.retain(|number, _| unheld.contains(number) && !is_needed(number));
        for number in unheld.into_iter().filter(|number| !is_needed(number)) {
            self.unused.entry(number).or_insert(Unused { since: now, looks: 0, noted: 0 }).looks += 1;
        }
        let is_over =
            |unused: &Unused| unused.looks >= UNUSED_LOOKS && now.abs_diff(unused.since) >= UNUSED_FOR;
        let mut gone: Vec<u32> =
            self.unused.iter().filter(|(_, unused)| is_over(unused)).map(|(number, _)| *number).collect();
        drop(known);
        if gone.is_empty() {
            return;
        }
        // A record that was moved while the shards were counted one by one may not have been seen.
        let held = self.store.keyspace.hold_all();
        let needed = self.needed();
        gone.retain(|number| needed.as_ref().is_some_and(|needed| !needed.contains(number)));
        self.store.dictionaries.drop_versions(&gone, &self.store.changes);
        drop(held);
        self.unused.retain(|number, _| !gone.contains(number));
    }

    /// Ends the use of dictionaries whose class has died: for minutes it has had no record and no new value. What somebody
    /// has imported stays.
    fn end_dead(&mut self, now: u64) {
        let known = self.store.dictionaries.known();
        if known.active().is_empty() {
            return self.dead.clear();
        }
        let Some(needed) = self.needed() else { return self.dead.clear() };
        self.dead.retain(|number, dead| is_unused(&known, *number, dead));
        for version in known.active() {
            let number = version.number();
            if version.is_imported() || needed.contains(&number) {
                self.dead.remove(&number);
                continue;
            }
            let first = Unused { since: now, looks: 0, noted: version.noted() };
            let dead = self.dead.entry(number).or_insert(first);
            dead.looks += 1;
            if dead.looks >= DEAD_LOOKS {
                // That it is gone already is as good.
                let _ = self.store.dictionaries.forget(number, &self.store.changes);
            }
        }
    }

    /// The dictionaries that records need; `None` if the disk cannot be read, which is reported where it is read for data.
    fn needed(&self) -> Option<HashSet<u32>> {
        let in_memory = self.store.keyspace.dictionary_uses();
        let on_disk = self.store.disk().map(Disk::dictionary_uses).transpose().ok()?;
        Some(in_memory.into_keys().chain(on_disk.unwrap_or_default().into_keys()).collect())
    }
}

/// Whether an active version is still there, and has been offered no value since it was first seen without records.
fn is_unused(known: &Known, number: u32, dead: &Unused) -> bool {
    known.is_active(number) && known.version(number).is_some_and(|version| version.noted() == dead.noted)
}

impl Drop for DictionaryTender {
    fn drop(&mut self) {
        self.store.dictionaries.set_tended(false);
    }
}
