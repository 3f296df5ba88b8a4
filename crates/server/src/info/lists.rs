//! Lists: how many there are, and what they take before and after compression.
//!
//! The sums are the store's, which keeps them with every change; nothing is walked. COMPRESSION EXPLAIN and DEBUG OBJECT
//! tell the same of one list.

use snugly_store::ListTotals;

use super::Fields;
use crate::figure::{Figure, Group, figure, gauge};
use crate::server::Server;

pub(super) struct Lists {
    totals: ListTotals,
    cached_bytes: u64,
}

pub(super) static LISTS: Group<Lists> = Group {
    labels: &[],
    figures: FIGURES,
    each: |server, show| {
        let store = server.store();
        show(&[], &Lists { totals: store.list_totals(), cached_bytes: store.decoded_node_bytes() });
    },
};

#[rustfmt::skip]
const FIGURES: &[Figure<Lists>] = &[
    figure("lists", |l| l.totals.lists.into(),
        gauge("lists", "Lists in memory")),
    figure("list_elements", |l| l.totals.elements.into(),
        gauge("list_elements", "Elements of these lists")),
    figure("list_nodes", |l| l.totals.nodes.into(),
        gauge("list_nodes", "Nodes of these lists")),
    figure("list_original_bytes", |l| l.totals.raw_bytes.into(),
        gauge("list_original_bytes", "Bytes of all their nodes, uncompressed")),
    figure("list_compressed_nodes", |l| l.totals.compressed_nodes.into(),
        gauge("list_compressed_nodes", "Nodes in memory that are compressed")),
    figure("list_compressed_original_bytes", |l| l.totals.compressed_raw_bytes.into(),
        gauge("list_compressed_original_bytes", "Bytes of these nodes, uncompressed")),
    figure("list_compressed_bytes", |l| l.totals.compressed_bytes.into(),
        gauge("list_compressed_bytes", "Bytes of these nodes, compressed")),
    figure("list_memory_bytes", |l| l.totals.memory.into(),
        gauge("list_memory_bytes", "Memory that these lists take, compressed and with all that is around the nodes")),
    figure("list_cache_bytes", |l| l.cached_bytes.into(),
        gauge("list_cache_bytes", "Nodes that are kept uncompressed for those who read them again")),
];

pub(super) fn lists(server: &Server, fields: &mut Fields) {
    fields.lines(&LISTS, server);
}
