//! The other nodes of a cluster, and messages to them over the cluster's bus.

use std::ffi::{CString, c_char, c_uchar};
use std::{ptr, slice};

use super::context::Context;
use super::table::{self, functions};

/// Length of a node's identity, in bytes.
const IDENTITY: usize = 40;

/// Identity of a node.
pub type NodeId = [u8; IDENTITY];

/// A node, as this one sees it.
pub struct Node {
    pub id: NodeId,
    pub is_primary: bool,
    /// Whether it answers, as far as this node knows.
    pub is_reachable: bool,
}

/// All other nodes; none if the server is not one of a cluster.
pub fn others(context: Context) -> Vec<Node> {
    let mut len = 0;
    // SAFETY: the context lives; what is returned is the caller's to free.
    let list = unsafe { (functions().GetClusterNodesList)(context.raw(), &mut len) };
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: the server says that there are so many pointers, each to an identity.
    let nodes = unsafe {
        let ids = slice::from_raw_parts(list, len).iter().map(|id| *id.cast::<NodeId>());
        ids.filter_map(|id| node(context, id)).collect()
    };
    // SAFETY: it is not used any more.
    unsafe { (functions().FreeClusterNodesList)(list) };
    nodes
}

/// The node with this identity, as this one sees it; `None` for itself.
fn node(context: Context, id: NodeId) -> Option<Node> {
    // The longest address of IPv6, and the identity of a primary, which is not used.
    let (mut address, mut primary, mut port, mut flags) =
        ([0 as c_char; 64], [0 as c_char; IDENTITY + 1], 0, 0);
    let name = CString::new(id).ok()?;
    // SAFETY: the context lives, the name ends with a zero, and there is room for what is written.
    let found = unsafe {
        (functions().GetClusterNodeInfo)(
            context.raw(),
            name.as_ptr(),
            address.as_mut_ptr(),
            primary.as_mut_ptr(),
            &mut port,
            &mut flags,
        )
    };
    (found == table::OK && flags & table::NODE_MYSELF == 0).then_some(Node {
        id,
        is_primary: flags & table::NODE_PRIMARY != 0,
        is_reachable: flags & (table::NODE_PFAIL | table::NODE_FAIL) == 0,
    })
}

/// Sends a message of a kind to a node, or to all. It may get lost.
pub fn send(context: Context, node: Option<&NodeId>, kind: u8, bytes: &[u8]) {
    let node = node.and_then(|id| CString::new(*id).ok());
    let target = node.as_ref().map_or(ptr::null(), |id| id.as_ptr());
    // SAFETY: the context lives, the identity ends with a zero, and the server copies the bytes.
    unsafe {
        (functions().SendClusterMessage)(
            context.raw(),
            target,
            kind,
            bytes.as_ptr().cast(),
            bytes.len() as u32,
        );
    }
}

/// Hands messages of a kind over from now on, or no more.
pub fn receive(context: Context, kind: u8, receiver: Option<table::ClusterMessageFunction>) {
    // SAFETY: the context lives; the function lives as long as the module, and takes what the server gives it.
    unsafe { (functions().RegisterClusterMessageReceiver)(context.raw(), kind, receiver) };
}

/// The sender and the bytes of a message.
///
/// # Safety
/// The server has handed both over, and keeps them as long as `'a`.
pub unsafe fn message<'a>(sender: *const c_char, bytes: *const c_uchar, len: u32) -> (NodeId, &'a [u8]) {
    // SAFETY: as demanded of the caller; identities have this length.
    unsafe {
        let bytes = if len == 0 { &[][..] } else { slice::from_raw_parts(bytes, len as usize) };
        (*sender.cast::<NodeId>(), bytes)
    }
}
