//! Replication: the primary that the server follows, if it does. It has no replicas itself.

use std::sync::atomic::Ordering;

use super::Fields;
use crate::replica::{Stage, Status};
use crate::stat::{Group, Stat, Value, counter, gauge, only_metric};
use crate::state::Server;

/// Identity of a stream where there is none.
const NO_STREAM: &str = "0000000000000000000000000000000000000000";

/// A server's part as a replica.
pub(super) struct Part {
    status: Option<Status>,
    skipped_commands: u64,
    skipped_keys: u64,
    full_syncs: u64,
    resumed_links: u64,
}

pub(super) static REPLICATION: Group<Part> =
    Group { labels: &[], stats: STATS, each: |server, show| show(&[], &Part::of(server)) };

#[rustfmt::skip]
const STATS: &[Stat<Part>] = &[
    only_metric(|part| part.status.is_some().into(),
        gauge("replica", "1 if the server follows a primary as its replica")),
    only_metric(|part| part.status.as_ref().is_some_and(is_up).into(),
        gauge("replica_link_up", "1 if the changes of the primary arrive")),
    only_metric(|part| part.status.as_ref().map_or(Value::Unknown, |status| status.offset.into()),
        gauge("replica_offset_bytes", "Bytes of the primary's stream whose requests have run here")),
    only_metric(|part| part.full_syncs.into(),
        counter("replica_full_syncs", "Transfers of all keys of a primary")),
    only_metric(|part| part.resumed_links.into(),
        counter("replica_resumed_links", "Links to a primary that went on where the one before had ended")),
    only_metric(|part| part.skipped_commands.into(),
        gauge("replica_skipped_commands", "Commands of the primary that were left out")),
    only_metric(|part| part.skipped_keys.into(),
        gauge("replica_skipped_keys", "Keys of the primary that were left out when all were loaded")),
];

impl Part {
    fn of(server: &Server) -> Part {
        let replica = server.replica();
        Part {
            status: replica.status(),
            skipped_commands: replica.skipped.commands(),
            skipped_keys: replica.skipped.keys(),
            full_syncs: replica.full_syncs.load(Ordering::Relaxed),
            resumed_links: replica.resumed_links.load(Ordering::Relaxed),
        }
    }
}

fn is_up(status: &Status) -> bool {
    status.stage == Stage::Up
}

pub(super) fn replication(server: &Server, fields: &mut Fields) {
    let part = Part::of(server);
    fields.add("role", if part.status.is_some() { "slave" } else { "master" });
    if let Some(status) = &part.status {
        link(status, fields);
        fields.add("slave_priority", 100);
        fields.add("slave_read_only", u8::from(server.replica().refuses_writes()));
        fields.add("replica_announced", 1);
        fields.add("replica_full_syncs", part.full_syncs);
        fields.add("replica_resumed_links", part.resumed_links);
        fields.add("replica_skipped_commands", part.skipped_commands);
        fields.add("replica_skipped_keys", part.skipped_keys);
        fields.add("replica_error", &status.error);
    }
    fields.add("connected_slaves", 0);
    fields.add("replicas_waiting_psync", 0);
    fields.add("master_failover_state", "no-failover");
    let (stream, offset) = part.status.as_ref().map_or(("", 0), |status| (&*status.stream, status.offset));
    fields.add("master_replid", if stream.is_empty() { NO_STREAM } else { stream });
    fields.add("master_replid2", NO_STREAM);
    fields.add("master_repl_offset", offset);
    fields.add("second_repl_offset", -1);
    fields.add_all([
        ("repl_backlog_active", 0),
        ("repl_backlog_size", 0),
        ("repl_backlog_first_byte_offset", 0),
        ("repl_backlog_histlen", 0),
    ]);
}

/// The fields of the link, as Valkey has them.
fn link(status: &Status, fields: &mut Fields) {
    let (is_up, is_loading) = (is_up(status), status.stage == Stage::Loading);
    let silent = if is_up || is_loading { status.silent_seconds as i64 } else { -1 };
    fields.add("master_host", &status.primary.host);
    fields.add("master_port", status.primary.port);
    fields.add("master_link_status", if is_up { "up" } else { "down" });
    fields.add("master_last_io_seconds_ago", silent);
    fields.add("master_sync_in_progress", u8::from(is_loading));
    fields.add("slave_read_repl_offset", status.offset);
    fields.add("slave_repl_offset", status.offset);
    if is_loading {
        let (total, read) = (status.transfer.total, status.transfer.read);
        let percent = total.map_or(0.0, |total| read as f64 * 100.0 / total.max(1) as f64);
        fields.add("master_sync_total_bytes", total.unwrap_or(0));
        fields.add("master_sync_read_bytes", read);
        fields.add("master_sync_left_bytes", total.map_or(-1, |total| total.saturating_sub(read) as i64));
        fields.add("master_sync_perc", format!("{percent:.2}"));
        fields.add("master_sync_last_io_seconds_ago", status.silent_seconds);
    }
    if let Some(since) = status.down_since {
        fields.add("master_link_down_since_seconds", since.elapsed().as_secs());
    }
}
