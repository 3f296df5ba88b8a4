//! Cache of decoded nodes for repeated reads: a bounded number of bytes, of all lists together.
//!
//! A changed node is a new one here: the key is the compressed form, which never changes, and an entry goes
//! when it has not been read for a while.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use snugly_listpack::Listpack;

use crate::entry::Entry;

/// Estimated bytes of a node.
const NODE_BYTES: u64 = 8 << 10;

pub(crate) struct NodeCache {
    /// Decoded nodes by the address of the compressed form, which is kept as well, so that no other has the
    /// address.
    nodes: Cache<usize, Arc<Decoded>, Bytes>,
}

/// A node's listpack, beside the compressed form.
pub(crate) struct Decoded {
    compressed: Entry,
    pub(crate) listpack: Listpack,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<usize, Arc<Decoded>> for Bytes {
    fn weight(&self, _address: &usize, decoded: &Arc<Decoded>) -> u64 {
        decoded.listpack.capacity() as u64
    }
}

impl NodeCache {
    /// Creates a cache of at most this many bytes.
    pub(crate) fn new(bytes: u64) -> NodeCache {
        let count = (bytes / NODE_BYTES) as usize;
        NodeCache { nodes: Cache::with_weighter(count, bytes, Bytes) }
    }

    /// Sets the most bytes from now on.
    pub(crate) fn limit(&self, bytes: u64) {
        self.nodes.set_capacity(bytes);
    }

    /// A compressed node, if it is there.
    pub(crate) fn get(&self, compressed: &Entry) -> Option<Arc<Decoded>> {
        self.nodes.get(&address(compressed))
    }

    pub(crate) fn keep(&self, compressed: &Entry, listpack: Listpack) {
        if self.nodes.capacity() > 0 {
            self.nodes
                .insert(address(compressed), Arc::new(Decoded { compressed: compressed.clone(), listpack }));
        }
    }

    /// Removes those whose compressed form nobody else holds: their lists have changed, or are gone.
    pub(crate) fn forget_gone(&self) {
        // A form that is nobody else's cannot be looked for again.
        self.nodes.retain(|_, decoded| decoded.compressed.borrow().is_held());
    }

    pub(crate) fn clear(&self) {
        self.nodes.clear();
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.nodes.weight()
    }
}

fn address(compressed: &Entry) -> usize {
    compressed.borrow().address().addr()
}
