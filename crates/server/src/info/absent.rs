//! Features that tools ask for and that do not exist here: modules, a cluster.

use super::Fields;
use crate::state::Server;

pub(super) fn modules(_server: &Server, _fields: &mut Fields) {}

pub(super) fn cluster(_server: &Server, fields: &mut Fields) {
    fields.add("cluster_enabled", 0);
}
