//! Regular removals by the writer: expired keys, rows of flushed generations, and, when the budget is used
//! up, keys that the policy evicts.

use std::collections::HashSet;

use super::super::engine::{Engine, EngineError, Read, Table, Write};
use super::super::existing_rows::{ExistingRow, delete_if_possible, expiring, key_of, rows_from, successor};
use super::super::row::{self, NODES, RowKey};
use super::super::state::State;
use super::{Effects, PASSES, Writer};
use crate::eviction::EvictionPolicy;

/// Most rows that the eviction hand visits in one commit.
const LOOKED_AT: usize = 64 << 10;
/// Most bytes that are evicted in one commit.
const EVICTED_BYTES_AT_ONCE: u64 = 32 << 20;

impl Writer<'_> {
    /// Returns whether there is work without changes.
    pub(super) fn has_work(&self, now: u64) -> Result<bool, EngineError> {
        let snapshot = self.shared.engine.read()?;
        let mut is_due = false;
        let scanned = snapshot.scan(Table::Expiries, &[], &mut |key, _| {
            let due = row::parse_expiry_key(key).ok().filter(|(at, _)| *at <= now);
            is_due = due.is_some_and(|(_, row_key)| !self.shared.is_unwritable(row_key.place()));
            due.is_some() && !is_due
        });
        self.passed_over(scanned)?;
        Ok(is_due || !self.state.dead.is_empty() || self.shared.excess(snapshot.usage()?.used) > 0)
    }

    /// Removes expired keys.
    pub(super) fn expire(
        &self,
        transaction: &mut impl Write,
        state: &mut State,
        now: u64,
        most: usize,
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        let mut due = Vec::new();
        self.passed_over(expiring(transaction, most, |at| at <= now, &mut due))?;
        due.retain(|(_, row_key)| !self.shared.is_unwritable(row_key.place()));
        effects.more |= due.len() == most;
        for (at, row_key) in due {
            self.at.set(Some(row_key.place()));
            let bytes = transaction.get(Table::Entries, &row_key.0)?;
            match bytes.map(|bytes| ExistingRow::parse(row_key, bytes)) {
                Some(old) if old.expiry == Some(at) => {
                    effects.expired_keys.extend(key_of(transaction, &old)?.map(|key| (row_key, key)));
                    self.remove(transaction, state, &old, &HashSet::new())?;
                    effects.expired += 1;
                }
                // Left behind by a row that was damaged when it was replaced.
                _ => delete_if_possible(transaction, Table::Expiries, &row_key.expiry_key(at))?,
            }
        }
        Ok(())
    }

    /// Removes rows of flushed generations, except nodes of collections that other keys are still to get.
    pub(super) fn bury(
        &self,
        transaction: &mut impl Write,
        state: &mut State,
        written: &HashSet<u64>,
        most: usize,
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        let Some(&generation) = state.dead.first() else { return Ok(()) };
        let mut rows = Vec::new();
        let is_of_it = |row_key: RowKey| row_key.generation() == generation;
        let found = rows_from(transaction, RowKey::new(generation, 0, 0), most, is_of_it, &mut rows);
        let is_whole = self.passed_over(found)?;
        let is_last = rows.len() < most && is_whole;
        rows.retain(|old| !self.shared.is_unwritable(old.row_key.place()));
        if is_last {
            state.dead.remove(0);
        }
        effects.more |= !state.dead.is_empty() && !rows.is_empty();
        effects.buried += rows.len() as u64;
        rows.iter().try_for_each(|old| self.remove(transaction, state, old, written))
    }

    /// Evicts keys by the policy while the budget is exceeded.
    pub(super) fn make_room(
        &mut self,
        transaction: &mut impl Write,
        state: &mut State,
        least: u64,
        most: usize,
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        let excess = self.shared.excess(transaction.usage()?.used);
        let target = excess.max(least).min(EVICTED_BYTES_AT_ONCE);
        if target == 0 {
            return Ok(());
        }
        let policy = *self.shared.eviction.lock();
        let Some(memory) = self.shared.queue.memory() else { return Ok(()) };
        if policy == EvictionPolicy::NoEviction {
            effects.full = excess > 0 && state.dead.is_empty();
            return Ok(());
        }
        let candidates = match policy.volatile_only() {
            true => self.next_to_expire(transaction)?,
            false => self.next_of_the_hand(transaction)?,
        };
        // The first passes spare keys that are used often.
        let spare_used = self.passes < 2;
        let mut freed = 0;
        for old in candidates {
            if freed >= target || effects.evicted as usize >= most {
                break;
            }
            if !policy.volatile_only() {
                self.hand = successor(old.row_key);
            }
            if self.shared.is_unwritable(old.row_key.place()) {
                continue;
            }
            self.at.set(Some(old.row_key.place()));
            let Some(key) = key_of(transaction, &old)? else { continue };
            let generation = old.row_key.generation();
            if let Some(tombstone) = memory.give_up(generation, old.row_key.hash(), &key, spare_used) {
                freed += old.bytes();
                effects.evicted += 1;
                effects.evicted_keys.push(tombstone);
                self.remove(transaction, state, &old, &HashSet::new())?;
            }
        }
        if effects.evicted > 0 {
            self.passes = 0;
        } else {
            self.passes = self.passes.saturating_add(1);
        }
        let is_stuck = self.passes > PASSES && state.dead.is_empty();
        effects.full = excess > 0 && is_stuck;
        effects.more = !is_stuck;
        Ok(())
    }

    /// Accepts what was found in front of a damaged page as all the work; returns whether it is all.
    fn passed_over(&self, found: Result<(), EngineError>) -> Result<bool, EngineError> {
        match found {
            Err(EngineError::Damaged(damage)) => {
                self.shared.report_page(&damage);
                Ok(false)
            }
            found => found.map(|()| true),
        }
    }

    fn next_of_the_hand(&mut self, transaction: &impl Write) -> Result<Vec<ExistingRow>, EngineError> {
        let is_key = |row_key: RowKey| row_key.generation() != NODES;
        let mut rows = Vec::new();
        self.passed_over(rows_from(transaction, self.hand, LOOKED_AT, is_key, &mut rows))?;
        if rows.len() < LOOKED_AT {
            self.hand = RowKey::new(0, 0, 0);
        }
        Ok(rows)
    }

    fn next_to_expire(&self, transaction: &impl Write) -> Result<Vec<ExistingRow>, EngineError> {
        let (mut found, mut due) = (Vec::new(), Vec::new());
        self.passed_over(expiring(transaction, LOOKED_AT, |_| true, &mut due))?;
        for (_, row_key) in due {
            self.at.set(Some(row_key.place()));
            found.extend(
                transaction.get(Table::Entries, &row_key.0)?.map(|bytes| ExistingRow::parse(row_key, bytes)),
            );
        }
        Ok(found)
    }
}
