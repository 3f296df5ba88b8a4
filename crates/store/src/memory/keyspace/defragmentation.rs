//! The walk that moves entries out of sparse pages, in the background and with the help of writers.

use std::sync::atomic::Ordering;

use super::Keyspace;
use crate::memory::shard::Position;
use crate::slab::{SLAB, Tolerance};

/// Approximate number of entries visited under one taking of a shard's lock.
const DEFRAGMENT_BATCH: usize = 64;
/// Bytes of pages allocated between two checks for fragmentation by writers.
const LOOK_EVERY: u64 = 1 << 20;
/// Amount of reclaimable pages above which entries are moved in the background (to fuzzing, any are too
/// many),
const TOLERATED: Tolerance = Tolerance { bytes: if cfg!(fuzzing) { 0 } else { 256 << 10 }, share: 64 };
/// and above which writers move entries as well.
const URGENT: Tolerance = Tolerance { bytes: if cfg!(fuzzing) { 0 } else { 2 << 20 }, share: 16 };
/// Divisor of the bytes in memory: an urgent walk ends when that much has been written, and each writer does
/// its part.
const WALK_PACE: u64 = 50;

impl Keyspace {
    /// Visits about `limit` entries and moves those in sparse pages to fuller ones; returns the number
    /// visited: 0 if memory is not fragmented.
    pub(crate) fn defragment(&self, limit: usize) -> usize {
        SLAB.trim();
        if !self.is_walking() && SLAB.mark_sparse(&TOLERATED) {
            self.start_walk(false);
        }
        let mut seen = 0;
        while seen < limit
            && let Some(shard) = self.claim_shard()
        {
            seen += self.defragment_shard(shard);
        }
        seen
    }

    /// Helps with the walk in proportion to a write of `need` bytes, so that pages do not become much more
    /// than their contents. Counting pages instead of entries against the budget would not do: evicting
    /// entries empties hardly a page.
    pub(super) fn limit_fragmentation(&self, need: u64) {
        let helps = || self.urgent.load(Ordering::Relaxed) && self.is_walking();
        let taken = SLAB.taken_bytes();
        let look_at = self.look_at.load(Ordering::Relaxed);
        if taken >= look_at && !helps() {
            let (next, order) = (taken + LOOK_EVERY, Ordering::Relaxed);
            let is_first = self.look_at.compare_exchange(look_at, next, order, order).is_ok();
            if is_first && SLAB.mark_sparse(&URGENT) {
                self.start_walk(true);
            }
        }
        if helps() {
            let share = need * WALK_PACE * self.cells.len() as u64 / self.used().max(1);
            for shard in (0..=share).map_while(|_| self.claim_shard()) {
                self.defragment_shard(shard);
            }
        }
    }

    fn is_walking(&self) -> bool {
        self.walk.load(Ordering::Relaxed) < self.cells.len()
    }

    fn start_walk(&self, urgent: bool) {
        self.urgent.store(urgent, Ordering::Relaxed);
        self.walk.store(0, Ordering::Relaxed);
    }

    /// Claims the next shard of the walk for one thread.
    fn claim_shard(&self) -> Option<usize> {
        let next = |shard| (shard < self.cells.len()).then(|| shard + 1);
        self.walk.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
    }

    /// Defragments a shard; returns the number of entries visited, where an empty shard counts as one.
    fn defragment_shard(&self, shard: usize) -> usize {
        let mut seen = 0;
        let mut position = Some(Position::default());
        while let Some(from) = position {
            let stretch = self.lock(shard).defragment(from, DEFRAGMENT_BATCH);
            seen += stretch.seen;
            position = stretch.rest;
        }
        seen.max(1)
    }
}
