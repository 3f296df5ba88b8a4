//! RDB files, as far as tools ask for them, and logs of commands, of which there are none.

use super::Fields;
use crate::saves::History;
use crate::state::Server;

pub(super) fn persistence(server: &Server, fields: &mut Fields) {
    let History { last_at, count, has_failed, last_seconds, running_seconds, writes_before } =
        server.saves().history();
    let last_at = if last_at == 0 { server.started_at / 1_000 } else { last_at };
    let seconds = |seconds: Option<u64>| seconds.map_or(-1, |seconds| seconds as i64);
    fields.add("loading", u8::from(server.replica().is_loading()));
    fields.add("async_loading", 0);
    let changes = server.store().stats().writes.saturating_sub(writes_before);
    fields.add("rdb_changes_since_last_save", changes);
    fields.add("rdb_bgsave_in_progress", u8::from(running_seconds.is_some()));
    fields.add("rdb_last_save_time", last_at);
    fields.add("rdb_last_bgsave_status", if has_failed { "err" } else { "ok" });
    fields.add("rdb_last_bgsave_time_sec", seconds(last_seconds));
    fields.add("rdb_current_bgsave_time_sec", seconds(running_seconds));
    fields.add("rdb_saves", count);
    fields.add_all([
        ("aof_enabled", 0),
        ("aof_rewrite_in_progress", 0),
        ("aof_rewrite_scheduled", 0),
        ("aof_rewrites", 0),
        ("module_fork_in_progress", 0),
    ]);
}
