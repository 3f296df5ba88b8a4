//! Nodes that would be encoded with another dictionary if they were compressed now: to everybody but the disk, their value has
//! not changed.

use tracing::debug;

use super::super::{ReencodeOutcome, Session, StoreError};
use super::nodes::decompress;
use crate::entry::{Entry, Properties};
use crate::key::Key;
use crate::values::collection::{Collection, Found, FoundIn, NodeError};
use crate::values::quicklist::node::NodeId;

/// Number of nodes of a value looked at in one call.
const LOOKED_AT: usize = 64;

/// Action for a node.
enum Wanted {
    /// The node has the encoding of a new one already, or is gone.
    Same,
    /// The node gets another record.
    Record(Entry),
    /// The node needs this dictionary, which is missing.
    Missing(u32),
}

impl Session {
    /// Like [`Session::reencode`], for some nodes of a collection, from one on or from the first; `part` is
    /// then set to the position to continue from, or to nothing at the end. Nodes that are only on disk and
    /// stay as they are, are not taken into memory.
    pub(in crate::session) fn reencode_nodes(
        &mut self,
        key: Key<'_>,
        collection: &Collection,
        part: &mut Option<NodeId>,
    ) -> Result<ReencodeOutcome, StoreError> {
        let (found, next) = collection.lock().compressed_from(*part, LOOKED_AT, self.settings.lists.layout());
        let (mut anew, mut outcome, mut more) = (Vec::new(), ReencodeOutcome::Same, 0);
        for node in found {
            match self.wanted(key.bytes, &node) {
                Ok(Wanted::Record(compressed)) => {
                    more += self.more_than(&node, &compressed);
                    anew.push((node, compressed));
                }
                Ok(Wanted::Missing(number)) => outcome = ReencodeOutcome::Missing(number),
                Ok(Wanted::Same) => {}
                Err(NodeError::Disk(reason)) => return Err(StoreError::Disk { reason }),
                // The node stays as it is; its readers get the error.
                Err(error) => debug!(%error, "a node cannot be re-encoded"),
            }
        }
        if !anew.is_empty() {
            if more > 0 && !self.has_room_for(more as u64)? {
                return Err(self.out_of_memory());
            }
            self.refuse_if_disk_does()?;
            outcome = self.replace_nodes(key, &anew)?;
        }
        *part = next;
        Ok(outcome)
    }

    fn replace_nodes(&self, key: Key<'_>, anew: &[(Found, Entry)]) -> Result<ReencodeOutcome, StoreError> {
        let (mut shard, presence) = self.resolve(key)?;
        // The collection is gone, and its nodes with it.
        let Some(index) = presence.live() else { return Ok(ReencodeOutcome::Same) };
        let put = shard.with_collection(key.database, index, |collection| {
            anew.iter().filter(|(node, compressed)| collection.reencode(node, compressed.clone())).count()
        });
        let put = put.unwrap_or_default();
        self.store.recompression.reencoded(put);
        if put > 0 {
            shard.nodes_reencoded(key.database, index);
        }
        Ok(if put == anew.len() { ReencodeOutcome::EncodedNodes } else { ReencodeOutcome::Missed })
    }

    /// Returns the bytes of memory needed to replace a node's record. One that was on disk alone, or is to go
    /// there again, is in memory until then.
    fn more_than(&self, node: &Found, compressed: &Entry) -> usize {
        let need = compressed.borrow().allocation_size();
        match &node.place {
            FoundIn::Memory(old) if self.store.disk().is_none() => {
                need.saturating_sub(old.borrow().allocation_size())
            }
            _ => need,
        }
    }

    fn wanted(&mut self, key: &[u8], node: &Found) -> Result<Wanted, NodeError> {
        let old = match &node.place {
            FoundIn::Memory(entry) => entry.clone(),
            FoundIn::Disk(node) => match self.store.load_node(*node)? {
                Some(entry) => entry,
                None => return Ok(Wanted::Same),
            },
        };
        let record = old.borrow().record().ok_or(NodeError::Damaged)?;
        let current = record.dictionary();
        let version = self.node_version(key, record.raw_len()).filter(|_| node.is_inside);
        let wanted = version.map(|version| version.number());
        let is_outdated =
            current.is_some_and(|number| !self.dictionaries.is_active(number) || self.is_excluded(key));
        if current == wanted || wanted.is_none() && !is_outdated {
            return Ok(Wanted::Same);
        }
        if let Some(number) = current.filter(|number| self.dictionaries.version(*number).is_none()) {
            return Ok(Wanted::Missing(number));
        }
        let listpack = decompress(&mut self.decoder, &self.dictionaries, &self.store, old.borrow())?;
        let record = self.encode_node(key, listpack.as_bytes(), false);
        let compressed = Entry::new(b"", &record, Properties::plain(old.borrow().access()));
        let is_smaller = compressed.borrow().allocation_size() < old.borrow().allocation_size();
        Ok(if is_smaller || is_outdated { Wanted::Record(compressed) } else { Wanted::Same })
    }
}
