//! Nodes to records and back.

use std::sync::Arc;

use snugly_codec::{DecodeError, Decoder, Record};
use snugly_listpack::{Listpack, View};

use super::super::Session;
use crate::dictionaries::known::Known;
use crate::memory::entry::{self, Access, Entry, EntryRef};
use crate::memory::entry_allocation_size;
use crate::memory::keyspace::Place;
use crate::quicklist::List;
use crate::quicklist::node::Content;
use crate::quicklist::packing::Due;

/// The longest listpack that is believed, in bytes.
const MAX_NODE_LEN: usize = u32::MAX as usize;

/// Makes a listpack of a packed node.
pub(super) fn open(
    decoder: &mut Decoder,
    known: &Known,
    packed: EntryRef<'_>,
) -> Result<Listpack, DecodeError> {
    let record = Record::parse(packed.record_bytes()).expect("a node holds a record that was parsed before");
    let find = |number| known.version(number).map(|version| &**version.dictionary());
    let mut bytes = Vec::new();
    decoder.decode_with(&record, &find, MAX_NODE_LEN, &mut bytes)?;
    Ok(Listpack::of_known(bytes))
}

impl Session {
    /// Shows the elements of a node, which is decoded unless somebody has done that lately.
    pub(super) fn with_node<R>(
        &mut self,
        content: &Content,
        show: impl FnOnce(View<'_>) -> R,
    ) -> Result<R, DecodeError> {
        match content {
            Content::Plain(listpack) => Ok(show(listpack.view())),
            Content::Packed(packed) => {
                if let Some(listpack) = self.store.decoded.get(packed) {
                    return Ok(show(listpack.view()));
                }
                let listpack = Arc::new(open(&mut self.decoder, &self.known, packed.borrow())?);
                let result = show(listpack.view());
                self.store.decoded.keep(packed, listpack);
                Ok(result)
            }
        }
    }

    /// Packs the nodes that are to be packed, if the list is still that of the key.
    pub(super) fn pack_nodes(
        &mut self,
        database: usize,
        place: Place,
        key: &[u8],
        list: &Arc<List>,
        first: Due,
    ) {
        let mut next = Some(first);
        while let Some(due) = next.take() {
            let packed = self.packed(&due);
            let store = self.store.clone();
            let mut shard = store.keyspace.lock(place.shard);
            let presence = shard.locate(database, place.tag, key, self.now());
            if let Some(index) = presence.live()
                && shard.entry(database, index).list().is_some_and(|current| std::ptr::eq(current, &**list))
            {
                let packed = shard.with_list(database, index, |list| {
                    list.pack(due, packed);
                    list.next_due()
                });
                next = packed.flatten();
            }
        }
    }

    /// What a node is packed to; `None` if that is no smaller.
    fn packed(&mut self, due: &Due) -> Option<Entry> {
        let choice = self.settings.lists.compress_codec?;
        let access = Access::written(self.now());
        let overhead = entry::overhead(0, false);
        let record = self.encoder.encode(choice, due.bytes(), overhead, entry_allocation_size);
        if record.as_identity().is_some() {
            return None;
        }
        Some(Entry::new(b"", &record, None, access))
    }
}
