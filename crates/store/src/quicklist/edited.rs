//! Nodes in the middle of lists that were changed and are not packed yet, since they may change again: so many bytes at
//! most, whatever lists they are in.

use std::collections::VecDeque;
use std::sync::Weak;

use parking_lot::Mutex;

use super::List;
use super::node::NodeId;

/// One of these nodes.
pub(crate) struct EditedNode {
    pub(crate) database: usize,
    pub(crate) key: Box<[u8]>,
    pub(crate) list: Weak<List>,
    pub(crate) id: NodeId,
    /// Bytes that it took when it was changed.
    pub(crate) bytes: usize,
}

impl EditedNode {
    fn cost(&self) -> usize {
        size_of::<EditedNode>() + self.key.len() + self.bytes
    }
}

/// Those of a store, the longest ago first. Some may have been packed or removed since.
#[derive(Default)]
pub(crate) struct EditedNodes(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    nodes: VecDeque<EditedNode>,
    /// What they cost together.
    bytes: usize,
}

impl EditedNodes {
    pub(crate) fn note(&self, node: EditedNode) {
        let mut queue = self.0.lock();
        queue.bytes += node.cost();
        queue.nodes.push_back(node);
    }

    /// The next one that is to be packed, if they are more than `limit` bytes.
    pub(crate) fn next_above(&self, limit: u64) -> Option<EditedNode> {
        let mut queue = self.0.lock();
        let node = if queue.bytes as u64 > limit { queue.nodes.pop_front() } else { None };
        queue.bytes -= node.as_ref().map_or(0, EditedNode::cost);
        node
    }
}
