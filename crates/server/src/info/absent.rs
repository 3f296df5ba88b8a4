//! Features that tools ask for and that do not exist here: replication, modules, a cluster.

use super::Fields;
use crate::state::Server;

pub(super) fn replication(_server: &Server, fields: &mut Fields) {
    fields.add("role", "master");
    fields.add("connected_slaves", 0);
    fields.add("replicas_waiting_psync", 0);
    fields.add("master_failover_state", "no-failover");
    fields.add_all([
        ("master_repl_offset", 0),
        ("second_repl_offset", -1),
        ("repl_backlog_active", 0),
        ("repl_backlog_size", 0),
        ("repl_backlog_first_byte_offset", 0),
        ("repl_backlog_histlen", 0),
    ]);
}

pub(super) fn modules(_server: &Server, _fields: &mut Fields) {}

pub(super) fn cluster(_server: &Server, fields: &mut Fields) {
    fields.add("cluster_enabled", 0);
}
