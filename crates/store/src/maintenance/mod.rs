//! Background maintenance of a store: training dictionaries, from stored values on request ([`backfill`]),
//! re-encoding records with the current dictionary ([`reencoder`]), encoding those that stay with what suits
//! them ([`settling`]) and idle ones at a stronger level ([`cold`]), a few at a time ([`attempts`]), and
//! dropping dictionaries that no record needs any more.
//!
//! It is done in steps, which the embedding program calls at a time and a pace that suit it. It knows the
//! store and the operations of its sessions; it must not know how dictionaries are trained.

mod attempts;
mod backfill;
mod cold;
mod reencoder;
mod settling;
mod slice;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use snugly_codec::Family;

use crate::dictionaries::set::DictionarySet;
use crate::dictionaries::training::{StudyContext, Wanted};
use crate::disk::Disk;
use crate::session::Session;
use crate::store::Store;
use crate::values::Kind;
use backfill::Backfill;
use cold::ColdPass;
use reencoder::Reencoder;
use settling::SettlingPass;
use slice::Slice;

/// Maintenance of a store's dictionaries, whose values are sampled while this lives, and recompression of
/// idle records. One for each store is enough.
pub struct StoreMaintenance {
    store: Arc<Store>,
    session: Session,
    /// Clock of the thread's processor time.
    clock: Clock,
    existing: Backfill,
    walk: Reencoder,
    settling: SettlingPass,
    cold: ColdPass,
    /// Whether the last step studied a class; the next begins with the re-encoding pass.
    has_studied: bool,
    /// Times of the last looks for unused versions and for dead classes, in Unix milliseconds.
    looked_at: u64,
    looked_for_dead_at: u64,
    /// Versions without records, by number: inactive ones, and active ones.
    unused: HashMap<u32, Unused>,
    dead: HashMap<u32, Unused>,
}

/// Observations of an unused version.
struct Unused {
    /// Time of the first one, in Unix milliseconds.
    since: u64,
    /// Number of observations.
    looks: u32,
    /// Number of values that the version had noted at first.
    noted: u64,
}

/// Clock of the calling thread's processor time.
pub(crate) type Clock = Box<dyn Fn() -> Duration + Send>;

/// Least and greatest number of reads for each write.
const FEWEST_READS: f64 = 0.1;
const MOST_READS: f64 = 100.0;
/// Interval between looks for unused versions, in milliseconds.
const LOOK_EVERY: u64 = 1_000;
/// Time in milliseconds, and number of looks since the clock may jump, without records after which a version
/// is dropped.
const UNUSED_FOR: u64 = 5_000;
const UNUSED_LOOKS: u32 = 4;
/// Interval between looks for dead classes, in milliseconds,
const LOOK_FOR_DEAD_EVERY: u64 = 60_000;
/// and number of looks without a record or a new value after which the use of a dictionary ends.
const DEAD_LOOKS: u32 = 11;
/// Keys of a database from which the number of values of a class is estimated.
const POPULATION_SAMPLE: u64 = 10_000;

impl Store {
    /// Starts maintenance: training dictionaries, choosing encodings for a [`Settings::goal`](crate::Settings::goal), and
    /// recompressing idle records ([`Settings::recompression`](crate::Settings::recompression)), as long as steps are called. `clock` returns
    /// the processor time of the calling thread.
    pub fn maintenance(self: &Arc<Store>, clock: impl Fn() -> Duration + Send + 'static) -> StoreMaintenance {
        StoreMaintenance::new(self, Box::new(clock))
    }
}

impl StoreMaintenance {
    /// Starts sampling.
    pub(crate) fn new(store: &Arc<Store>, clock: Clock) -> StoreMaintenance {
        store.dictionaries.set_maintained(true);
        StoreMaintenance {
            store: store.clone(),
            session: store.uncounted_session(),
            clock,
            existing: Backfill::default(),
            walk: Reencoder::default(),
            settling: SettlingPass::default(),
            cold: ColdPass::default(),
            has_studied: false,
            looked_at: 0,
            looked_for_dead_at: 0,
            unused: HashMap::new(),
            dead: HashMap::new(),
        }
    }

    /// Does the next work that is due at this time (Unix milliseconds), which takes some tenths of a millisecond, or for
    /// a training up to about a second; returns whether there was any. If not, the next one is due in about a
    /// second.
    pub fn step(&mut self, now: u64) -> bool {
        self.session.set_now(Some(now));
        self.session.follow();
        if now.abs_diff(self.looked_at) >= LOOK_EVERY {
            self.looked_at = now;
            self.store.dictionaries.watch_for_drift();
            self.store.dictionaries.look_again(now);
            self.drop_unused(now);
            self.session.close_drafts();
            self.session.rest();
            self.store.node_cache.forget_gone();
        }
        if now.abs_diff(self.looked_for_dead_at) >= LOOK_FOR_DEAD_EVERY {
            self.looked_for_dead_at = now;
            self.end_dead(now);
        }
        if self.store.settings().learns() && self.existing.step(&self.store, &mut self.session) {
            self.has_studied = false;
            return true;
        }
        // In turns, so that many classes that become ready do not hold up the pass.
        let has_worked = match self.has_studied {
            true => self.walk_on(now) || self.study(now),
            false => self.study(now) || self.walk_on(now),
        };
        // Records that are to get another dictionary get that first.
        let has_worked = has_worked || self.recompress(now);
        let tables = [self.walk.table_bytes(), self.settling.table_bytes(), self.cold.table_bytes()];
        self.store.recompression.set_table_bytes(tables.iter().sum());
        has_worked
    }

    /// Returns whether the last step studied a class.
    pub fn has_studied(&self) -> bool {
        self.has_studied
    }

    /// Encodes some records for the stage that they have come to; returns whether there were any.
    fn recompress(&mut self, now: u64) -> bool {
        let (store, session) = (&self.store, &mut self.session);
        let slice = Slice::begin(&self.clock);
        self.settling.step(store, session, slice, now) || self.cold.step(store, session, slice, now)
    }

    /// Studies a class that has enough samples.
    fn study(&mut self, now: u64) -> bool {
        let settings = self.store.settings();
        self.has_studied = settings.learns()
            && self.store.dictionaries.study(&StudyContext {
                settings: &settings,
                now,
                reads: &|| self.reads(),
                population: &|wanted| self.population(wanted),
                nodes: &|| self.store.collection_totals(Kind::List).inner_nodes,
                clock: &*self.clock,
                changes: &self.store.changes,
            });
        self.has_studied
    }

    /// Estimates the number of reads for each write.
    fn reads(&self) -> f64 {
        let stats = self.store.stats();
        let written = stats.codec.total(Family::EncodedValues);
        if written == 0 { 1.0 } else { (stats.hits as f64 / written as f64).clamp(FEWEST_READS, MOST_READS) }
    }

    fn walk_on(&mut self, now: u64) -> bool {
        self.has_studied = false;
        self.walk.step(&self.store, &mut self.session, Slice::begin(&self.clock), now)
    }

    /// Estimates the number of the store's keys that satisfy the predicate on key and length of the value.
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

    /// Drops inactive versions that no record has needed for a while. If a record does, another pass over the
    /// records is requested.
    fn drop_unused(&mut self, now: u64) {
        let known = self.store.dictionaries.set();
        if known.versions().len() == known.active().len() {
            return self.unused.clear();
        }
        // Before the records are counted: a session that may still write a record of a version holds it.
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

    /// Ends the use of dictionaries whose class has died: for minutes it has had no record and no new value.
    /// Imported ones stay.
    fn end_dead(&mut self, now: u64) {
        let known = self.store.dictionaries.set();
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
                // An unknown dictionary is gone already.
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

/// Returns whether an active version is still there, and has been offered no value since it was first seen
/// without records.
fn is_unused(known: &DictionarySet, number: u32, dead: &Unused) -> bool {
    known.is_active(number) && known.version(number).is_some_and(|version| version.noted() == dead.noted)
}

impl Drop for StoreMaintenance {
    fn drop(&mut self) {
        self.store.dictionaries.set_maintained(false);
    }
}
