//! Holding several shards at once.
//!
//! Nobody waits for a shard while it holds others, except for one thread at a time: the one whose turn it is. So no two
//! threads wait for each other, and the one whose turn it is may hold some shards and take more later.

use std::cell::{Cell, RefCell};

use parking_lot::ReentrantMutexGuard;

use super::{Keyspace, ShardGuard};
use crate::key::KeyHash;

/// Shards that are held until this is dropped.
pub(crate) struct Held<'a> {
    _shards: Vec<ShardGuard<'a>>,
    _turn: Option<ReentrantMutexGuard<'a, ()>>,
}

/// Shards that are held until this is dropped, to which more may be added.
pub(crate) struct GrowingHold<'a> {
    keyspace: &'a Keyspace,
    /// Numbers of the shards, ascending.
    numbers: Vec<usize>,
    shards: RefCell<Vec<ShardGuard<'a>>>,
    has_all: Cell<bool>,
    _turn: ReentrantMutexGuard<'a, ()>,
}

/// Returns the shards of these keys in ascending order.
fn distinct_shards(keys: impl Iterator<Item = KeyHash>) -> Vec<usize> {
    let mut shards: Vec<usize> = keys.map(|key| key.shard).collect();
    shards.sort_unstable();
    shards.dedup();
    shards
}

impl Keyspace {
    /// Locks the shards of these keys against all other threads. The holder can lock them as ever, and must not wait for
    /// others.
    pub(crate) fn hold(&self, keys: impl Iterator<Item = KeyHash>) -> Held<'_> {
        let numbers = distinct_shards(keys);
        if let [number] = numbers[..] {
            return Held { _shards: vec![self.cells[number].shard.lock()], _turn: None };
        }
        let at_once: Option<Vec<_>> =
            numbers.iter().map(|number| self.cells[*number].shard.try_lock()).collect();
        if let Some(shards) = at_once {
            return Held { _shards: shards, _turn: None };
        }
        let turn = self.turn.lock();
        let shards = numbers.iter().map(|number| self.cells[*number].shard.lock()).collect();
        Held { _shards: shards, _turn: Some(turn) }
    }

    /// Like [`Keyspace::hold`], for all shards.
    pub(crate) fn hold_all(&self) -> Held<'_> {
        let turn = self.turn.lock();
        Held { _shards: self.lock_all(), _turn: Some(turn) }
    }

    /// Like [`Keyspace::hold`], for a thread that may need more shards later. Only one thread at a time does so.
    pub(crate) fn hold_and_grow(&self, keys: impl Iterator<Item = KeyHash>) -> GrowingHold<'_> {
        let numbers = distinct_shards(keys);
        let turn = self.turn.lock();
        let shards = numbers.iter().map(|number| self.cells[*number].shard.lock()).collect();
        GrowingHold {
            keyspace: self,
            numbers,
            shards: RefCell::new(shards),
            has_all: Cell::new(false),
            _turn: turn,
        }
    }

    fn lock_all(&self) -> Vec<ShardGuard<'_>> {
        self.cells.iter().map(|cell| cell.shard.lock()).collect()
    }
}

impl GrowingHold<'_> {
    /// Returns whether a key's shard is held.
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.has_all.get() || self.numbers.binary_search(&self.keyspace.hash(key).shard).is_ok()
    }

    /// Takes all shards that are not held yet.
    pub(crate) fn take_all(&self) {
        if !self.has_all.replace(true) {
            self.shards.borrow_mut().extend(self.keyspace.lock_all());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::changes::Changes;

    const SHARDS: usize = 16;

    fn keyspace() -> Keyspace {
        Keyspace::new(SHARDS, [1, 2], &Changes::new(None, None, vec![0]))
    }

    /// Hashes of keys, the first in shard 0, the next in shard 1, and so on.
    fn one_of_each_shard(keyspace: &Keyspace) -> Vec<KeyHash> {
        let hashes = (0_u32..).map(|number| keyspace.hash(&number.to_le_bytes()));
        let mut found = vec![None; SHARDS];
        for hash in hashes {
            found[hash.shard] = Some(hash);
            if found.iter().all(Option::is_some) {
                break;
            }
        }
        found.into_iter().flatten().collect()
    }

    #[test]
    fn a_hold_that_grows_and_others_that_want_the_same_shards_all_come_to_an_end() {
        let keyspace = keyspace();
        let keys = one_of_each_shard(&keyspace);
        thread::scope(|scope| {
            for start in 0..4 {
                let (keyspace, keys) = (&keyspace, &keys);
                scope.spawn(move || {
                    for round in 0..500 {
                        let keys = (0..3).map(|step| keys[(start + round * (step + 1)) % SHARDS]);
                        match (start + round) % 4 {
                            0 => drop(keyspace.hold_all()),
                            1 => keyspace.hold_and_grow(keys).take_all(),
                            _ => drop(keyspace.hold(keys)),
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn others_go_on_with_other_shards_until_the_hold_has_all() {
        let keyspace = keyspace();
        let keys = one_of_each_shard(&keyspace);
        let hold = keyspace.hold_and_grow([keys[3]].into_iter());
        let (done, is_done) = mpsc::channel();
        thread::scope(|scope| {
            let (keyspace, keys) = (&keyspace, &keys);
            scope.spawn(move || {
                drop(keyspace.hold([keys[1], keys[2]].into_iter()));
                done.send("others").expect("the test listens");
                drop(keyspace.hold([keys[1], keys[3]].into_iter()));
                done.send("the same").expect("the test listens");
            });
            assert_eq!(is_done.recv(), Ok("others"));
            hold.take_all();
            assert!(is_done.try_recv().is_err());
            drop(hold);
            assert_eq!(is_done.recv(), Ok("the same"));
        });
    }

    #[test]
    fn whoever_holds_shards_may_hold_them_again() {
        let keyspace = keyspace();
        let keys = one_of_each_shard(&keyspace);
        let _all = keyspace.hold_all();
        let growing = keyspace.hold_and_grow(keys.iter().copied());
        growing.take_all();
        drop(keyspace.hold(keys.iter().copied()));
        drop(keyspace.hold_all());
    }
}
