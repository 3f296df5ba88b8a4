//! Changed nodes in the middle of lists that are not compressed yet, since they may change again: up to a
//! number of bytes for all lists.

use std::collections::VecDeque;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::node::NodeId;
use crate::values::collection::Collection;

/// One of these nodes.
pub(crate) struct DirtyNode {
    pub(crate) database: usize,
    pub(crate) key: Box<[u8]>,
    pub(crate) list: Weak<Collection>,
    pub(crate) id: NodeId,
    /// Bytes that it took when it was changed.
    pub(crate) bytes: usize,
}

impl DirtyNode {
    fn cost(&self) -> usize {
        size_of::<DirtyNode>() + self.key.len() + self.bytes
    }
}

/// Changed nodes of a store, the oldest first. Some may have been compressed or removed since.
#[derive(Default)]
pub(crate) struct DirtyNodes {
    queue: Mutex<Queue>,
    /// Number of nodes, readable without the lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    nodes: VecDeque<DirtyNode>,
    /// Bytes of all of them.
    bytes: usize,
}

impl DirtyNodes {
    pub(crate) fn note(&self, node: DirtyNode) {
        let mut queue = self.queue.lock();
        queue.bytes += node.cost();
        queue.nodes.push_back(node);
        self.count.store(queue.nodes.len(), Ordering::Relaxed);
    }

    /// Returns the number of nodes.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Applies an exchange of two databases.
    pub(crate) fn swapped(&self, first: usize, second: usize) {
        for node in &mut self.queue.lock().nodes {
            node.database = match node.database {
                database if database == first => second,
                database if database == second => first,
                database => database,
            };
        }
    }

    /// Returns the next node to compress, if all take more than `limit` bytes.
    pub(crate) fn next_above(&self, limit: u64) -> Option<DirtyNode> {
        let mut queue = self.queue.lock();
        let node = if queue.bytes as u64 > limit { queue.nodes.pop_front() } else { None };
        queue.bytes -= node.as_ref().map_or(0, DirtyNode::cost);
        self.count.store(queue.nodes.len(), Ordering::Relaxed);
        node
    }
}
