//! Nodes that would be encoded with another dictionary if they were packed now: to everybody but the disk, their list has
//! not changed.

use snugly_codec::Record;
use tracing::debug;

use super::super::{Anew, Session, StoreError};
use super::nodes::unpack;
use crate::memory::entry::Entry;
use crate::memory::keyspace::Place;
use crate::quicklist::anew::{Found, FoundIn};
use crate::quicklist::node::NodeId;
use crate::quicklist::{List, NodeError};

/// How many nodes of a list are looked at in one go.
const LOOKED_AT: usize = 64;

/// What is to become of a node.
enum Wanted {
    /// It is as it would be if it were packed now, or it is gone.
    Same,
    /// It takes another record.
    Record(Entry),
    /// It needs this dictionary, which is not there.
    Missing(u32),
}

impl Session {
    /// As [`Session::encode_anew`], some nodes of a list, from one on or from the first; `part` then says where to go on, and
    /// nothing at the end. Nodes that are only on disk and stay as they are, are not taken into memory.
    pub(in crate::session) fn encode_nodes_anew(
        &mut self,
        database: usize,
        place: Place,
        key: &[u8],
        list: &List,
        part: &mut Option<NodeId>,
    ) -> Result<Anew, StoreError> {
        let (found, next) = list.lock().packed_from(*part, LOOKED_AT, self.settings.lists.layout());
        let (mut anew, mut outcome, mut more) = (Vec::new(), Anew::Same, 0);
        for node in found {
            match self.wanted(key, &node) {
                Ok(Wanted::Record(packed)) => {
                    more += self.more_than(&node, &packed);
                    anew.push((node, packed));
                }
                Ok(Wanted::Missing(number)) => outcome = Anew::Missing(number),
                Ok(Wanted::Same) => {}
                Err(NodeError::Disk(reason)) => return Err(StoreError::Disk { reason }),
                // It stays as it is; whoever reads it is told.
                Err(error) => debug!(%error, "a node of a list cannot be encoded anew"),
            }
        }
        if !anew.is_empty() {
            if more > 0 && !self.has_room_for(more as u64)? {
                return Err(self.out_of_memory());
            }
            self.refuse_if_disk_does()?;
            outcome = self.put_nodes_anew(database, place, key, &anew)?;
        }
        *part = next;
        Ok(outcome)
    }

    fn put_nodes_anew(
        &self,
        database: usize,
        place: Place,
        key: &[u8],
        anew: &[(Found, Entry)],
    ) -> Result<Anew, StoreError> {
        let (mut shard, presence) = self.resolve(database, place, key)?;
        // Where it is gone, none of its nodes is there.
        let Some(index) = presence.live() else { return Ok(Anew::Same) };
        let put = shard.with_list(database, index, |list| {
            anew.iter().filter(|(node, packed)| list.encode_anew(node, packed.clone())).count()
        });
        let put = put.unwrap_or_default();
        if put > 0 {
            shard.list_encoded_anew(database, index);
        }
        Ok(if put == anew.len() { Anew::EncodedNodes } else { Anew::Missed })
    }

    /// How many bytes of memory are needed to put a record in the place of a node's. One that was on disk alone, or is to go
    /// there again, is in memory until then.
    fn more_than(&self, node: &Found, packed: &Entry) -> usize {
        let need = packed.borrow().allocation_size();
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
        let record = Record::parse(old.borrow().record_bytes()).map_err(|_| NodeError::Damaged)?;
        let current = record.dictionary();
        let version = self.node_version(key, record.raw_len()).filter(|_| node.is_inside);
        let wanted = version.map(|version| version.number());
        let is_outdated =
            current.is_some_and(|number| !self.known.is_active(number) || self.is_excluded(key));
        if current == wanted || wanted.is_none() && !is_outdated {
            return Ok(Wanted::Same);
        }
        if let Some(number) = current.filter(|number| self.known.version(*number).is_none()) {
            return Ok(Wanted::Missing(number));
        }
        let listpack = unpack(&mut self.decoder, &self.known, &self.store, old.borrow())?;
        let record = self.encode_node(key, listpack.as_bytes(), false);
        let packed = Entry::new(b"", &record, None, old.borrow().access());
        let is_smaller = packed.borrow().allocation_size() < old.borrow().allocation_size();
        Ok(if is_smaller || is_outdated { Wanted::Record(packed) } else { Wanted::Same })
    }
}
