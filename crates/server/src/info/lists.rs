//! Lists: how many there are, and what they take before and after compression.
//!
//! The sums are the store's, which keeps them with every change; nothing is walked. COMPRESSION EXPLAIN and DEBUG OBJECT
//! tell the same of one list.

use snugly_store::{CollectionTotals, Kind};

use super::Fields;
use crate::stat::{Group, Stat, gauge, stat};
use crate::state::Server;

pub(super) struct Lists {
    totals: CollectionTotals,
    cached_bytes: u64,
}

pub(super) static LISTS: Group<Lists> = Group {
    labels: &[],
    stats: STATS,
    each: |server, show| {
        let store = server.store();
        show(
            &[],
            &Lists { totals: store.collection_totals(Kind::List), cached_bytes: store.decoded_node_bytes() },
        );
    },
};

#[rustfmt::skip]
const STATS: &[Stat<Lists>] = &[
    stat("lists", |l| l.totals.values.into(),
        gauge("lists", "Lists in memory")),
    stat("list_elements", |l| l.totals.elements.into(),
        gauge("list_elements", "Elements of these lists")),
    stat("list_nodes", |l| l.totals.nodes.into(),
        gauge("list_nodes", "Nodes of these lists")),
    stat("list_original_bytes", |l| l.totals.raw_bytes.into(),
        gauge("list_original_bytes", "Bytes of all their nodes, uncompressed")),
    stat("list_compressed_nodes", |l| l.totals.compressed_nodes.into(),
        gauge("list_compressed_nodes", "Nodes in memory that are compressed")),
    stat("list_compressed_original_bytes", |l| l.totals.compressed_raw_bytes.into(),
        gauge("list_compressed_original_bytes", "Bytes of these nodes, uncompressed")),
    stat("list_compressed_bytes", |l| l.totals.compressed_bytes.into(),
        gauge("list_compressed_bytes", "Bytes of these nodes, compressed")),
    stat("list_memory_bytes", |l| l.totals.memory.into(),
        gauge("list_memory_bytes", "Memory of these lists, compressed, with the overhead of their nodes")),
    stat("list_cache_bytes", |l| l.cached_bytes.into(),
        gauge("list_cache_bytes", "Decompressed nodes that are cached for further reads")),
];

pub(super) fn lists(server: &Server, fields: &mut Fields) {
    fields.lines(&LISTS, server);
}
