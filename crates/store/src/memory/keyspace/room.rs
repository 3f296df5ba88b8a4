//! Making room: eviction when a write needs more than the budget has left.

use std::sync::atomic::Ordering;

use super::{Keyspace, Locked};
use crate::eviction::{EvictionPolicy, Victim};

/// Shards without anything to evict that a write passes over, where there is a disk tier.
const IDLE_SHARDS_OF_A_CACHE: usize = 64;
/// Shards whose next expiry is compared before one of their entries is taken for the next to expire of all.
const NEXT_TO_EXPIRE_SAMPLE: usize = 256;

impl Keyspace {
    /// Makes room for `need` more bytes under `budget`; false if the policy finds nothing more to remove. A thread that
    /// holds shards passes over those that others have.
    pub(crate) fn make_room(
        &self,
        policy: EvictionPolicy,
        budget: u64,
        need: u64,
        holding: bool,
        random: impl FnMut() -> u64,
    ) -> bool {
        if !self.is_cache && need > 0 && self.empty_size() + need > budget {
            // No key is evicted for a value that does not fit even alone.
            return false;
        }
        let seize = |shard| if holding { self.try_lock(shard) } else { Some(self.lock(shard)) };
        if !holding {
            self.limit_fragmentation(need);
        }
        let over = || (self.used() + need).saturating_sub(budget) as usize;
        let (volatile_only, victim) = match self.is_cache {
            // Nothing is lost by leaving memory: the longest unused entry goes, whatever may go from the
            // disk.
            true => (false, policy.victim().or_recency()),
            false => (policy.volatile_only(), policy.victim()),
        };
        match victim {
            Victim::None => over() == 0,
            Victim::Hand { cap } => self.sweep(volatile_only, cap, over, seize),
            Victim::Random => self.evict_random(volatile_only, over, seize, random),
            Victim::NextToExpire => self.evict_next_to_expire(over, seize, random),
        }
    }

    fn sweep<'a>(
        &'a self,
        volatile_only: bool,
        cap: u8,
        over: impl Fn() -> usize,
        seize: impl Fn(usize) -> Option<Locked<'a>>,
    ) -> bool {
        // Each round takes at least half of every frequency, so after these rounds nothing is left that could stay.
        let rounds = 2 + cap.checked_ilog2().unwrap_or(0) as usize + 1;
        let patience = match self.is_cache {
            // Changes on their way to the disk must stay. The next write continues where this one gives up.
            true => self.cells.len().min(IDLE_SHARDS_OF_A_CACHE),
            false => rounds * self.cells.len(),
        };
        let mut idle_shards = 0;
        loop {
            // Read once: another thread may fill what this one has freed, which is that thread's to make up for.
            let need = over();
            if need == 0 {
                return true;
            }
            if idle_shards == patience {
                return false;
            }
            let shard = self.hand.load(Ordering::Relaxed) % self.cells.len();
            let sweep = seize(shard).map(|mut shard| shard.sweep(volatile_only, need));
            if sweep.as_ref().is_none_or(|sweep| sweep.finished) {
                let next = (shard + 1) % self.cells.len();
                // Another thread may have moved the hand on already.
                let _ = self.hand.compare_exchange(shard, next, Ordering::Relaxed, Ordering::Relaxed);
            }
            idle_shards =
                if sweep.is_none_or(|sweep| sweep.evicted.is_empty()) { idle_shards + 1 } else { 0 };
        }
    }

    fn evict_random<'a>(
        &'a self,
        volatile_only: bool,
        over: impl Fn() -> usize,
        seize: impl Fn(usize) -> Option<Locked<'a>>,
        mut random: impl FnMut() -> u64,
    ) -> bool {
        while over() > 0 {
            let start = random() as usize % self.cells.len();
            let victim = (0..self.cells.len()).find_map(|step| {
                seize((start + step) % self.cells.len())?.evict_random(volatile_only, random())
            });
            if victim.is_none() {
                return false;
            }
        }
        true
    }

    fn evict_next_to_expire<'a>(
        &'a self,
        over: impl Fn() -> usize,
        seize: impl Fn(usize) -> Option<Locked<'a>>,
        mut random: impl FnMut() -> u64,
    ) -> bool {
        while over() > 0 {
            let start = random() as usize;
            let mut candidates: Vec<_> = (0..self.cells.len())
                .map(|step| (start.wrapping_add(step)) % self.cells.len())
                .map(|shard| (self.cells[shard].next_expiry.load(Ordering::Relaxed), shard))
                .filter(|(at, _)| *at != u64::MAX)
                .take(NEXT_TO_EXPIRE_SAMPLE)
                .collect();
            candidates.sort_unstable();
            let victim = candidates.into_iter().find_map(|(_, shard)| seize(shard)?.evict_next_to_expire());
            if victim.is_none() {
                return false;
            }
        }
        true
    }
}
