//! Decoded nodes, kept for those who read them again: a bounded number of bytes, of all lists together.
//!
//! A node that changes is a new one here: what is kept goes by the packed form, which never does, and goes when nobody has
//! read it for a while.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use snugly_listpack::Listpack;

use crate::memory::entry::Entry;

/// So many bytes are about what one takes, to begin with.
const NODE_BYTES: u64 = 8 << 10;

pub(crate) struct DecodedNodes {
    /// By the address of the packed form, which is kept as well, so that no other has the address.
    nodes: Cache<usize, Arc<Decoded>, Bytes>,
}

/// A node's listpack, beside the packed form.
pub(crate) struct Decoded {
    _packed: Entry,
    pub(crate) listpack: Listpack,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<usize, Arc<Decoded>> for Bytes {
    fn weight(&self, _address: &usize, decoded: &Arc<Decoded>) -> u64 {
        decoded.listpack.capacity() as u64
    }
}

impl DecodedNodes {
    /// Keeps at most so many bytes.
    pub(crate) fn new(bytes: u64) -> DecodedNodes {
        let count = (bytes / NODE_BYTES) as usize;
        DecodedNodes { nodes: Cache::with_weighter(count, bytes, Bytes) }
    }

    /// Keeps at most so many bytes from now on.
    pub(crate) fn limit(&self, bytes: u64) {
        self.nodes.set_capacity(bytes);
    }

    /// A packed node, if it is there.
    pub(crate) fn get(&self, packed: &Entry) -> Option<Arc<Decoded>> {
        self.nodes.get(&address(packed))
    }

    pub(crate) fn keep(&self, packed: &Entry, listpack: Listpack) {
        if self.nodes.capacity() > 0 {
            self.nodes.insert(address(packed), Arc::new(Decoded { _packed: packed.clone(), listpack }));
        }
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.nodes.weight()
    }
}

fn address(packed: &Entry) -> usize {
    packed.borrow().address().addr()
}
