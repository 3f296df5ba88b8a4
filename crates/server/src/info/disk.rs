//! The disk tier: what the file takes, what waits for it, and how it is doing.

use super::Fields;
use crate::server::Server;

pub(super) fn disk(server: &Server, fields: &mut Fields) {
    let Some(stats) = server.store().disk_stats() else {
        return fields.add("disk_enabled", 0);
    };
    let milliseconds = |nanoseconds: u64| format!("{:.3}", nanoseconds as f64 / 1e6);
    fields.add("disk_enabled", 1);
    fields.add("disk_used_bytes", stats.used_bytes);
    fields.add("disk_file_bytes", stats.file_bytes);
    fields.add("disk_max_bytes", stats.max_disk);
    fields.add("disk_pending_bytes", stats.pending_bytes);
    fields.add("disk_commits", stats.commits);
    fields.add("disk_commit_milliseconds", milliseconds(stats.commit_nanoseconds));
    fields.add("disk_journal_records", stats.journal_records);
    fields.add("disk_reads", stats.reads);
    fields.add("disk_expired_keys", stats.expired);
    fields.add("disk_evicted_keys", stats.evicted);
    fields.add("disk_damaged_reads", stats.damaged);
    fields.add("disk_last_commit_status", if stats.failure.is_some() { "err" } else { "ok" });
}
