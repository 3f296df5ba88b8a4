//! The disk tier: what the file takes, what waits for it, how it is doing, and backups of it.

use snugly_store::DiskStats;

use super::Fields;
use crate::backups::History;
use crate::stat::{Group, Stat, Value, counter, gauge, only_metric, plain, stat};
use crate::state::Server;

pub(super) static DISK: Group<DiskStats> = Group {
    labels: &[],
    stats: STATS,
    each: |server, show| {
        if let Some(stats) = server.store().disk_stats() {
            show(&[], &stats);
        }
    },
};

#[rustfmt::skip]
const STATS: &[Stat<DiskStats>] = &[
    stat("disk_used_bytes", |s| s.used_bytes.into(),
        gauge("disk_used_bytes", "Pages of the file in use, and the journal")),
    stat("disk_file_bytes", |s| s.file_bytes.into(),
        gauge("disk_file_bytes", "Size of the file and of the journal")),
    stat("disk_max_bytes", |s| s.max_disk.into(),
        gauge("disk_max_bytes", "The budget, max-disk; 0 is no limit")),
    stat("disk_pending_bytes", |s| s.pending_bytes.into(),
        gauge("disk_pending_bytes", "Changes that wait for their commit")),
    stat("disk_pending_milliseconds", |s| Value::Real(s.pending_age.as_secs_f64() * 1e3, 3),
        gauge("disk_pending_seconds", "Time that the oldest of these changes has waited").divided_by(1e3)),
    stat("disk_commits", |s| s.commits.into(),
        counter("disk_commits", "Commits")),
    stat("disk_commit_milliseconds", |s| Value::Real(s.commit_nanoseconds as f64 / 1e6, 3),
        counter("disk_commit_seconds", "Time spent in commits").divided_by(1e3)),
    stat("disk_commit_bytes", |s| s.commit_bytes.into(),
        counter("disk_commit_bytes", "Bytes of the changes in commits, counted as those that wait")),
    stat("disk_journal_records", |s| s.journal_records.into(),
        counter("disk_journal_records", "Records written to the journal, each with one sync")),
    stat("disk_journal_milliseconds", |s| Value::Real(s.journal_nanoseconds as f64 / 1e6, 3),
        counter("disk_journal_seconds", "Time spent in writing these records, for which their writers wait").divided_by(1e3)),
    stat("disk_reads", |s| s.reads.into(),
        counter("disk_reads", "Values and keys looked up in the file")),
    stat("disk_expired_keys", |s| s.expired.into(),
        counter("disk_expired_keys", "Keys removed from the file because they expired")),
    stat("disk_evicted_keys", |s| s.evicted.into(),
        counter("disk_evicted_keys", "Keys removed from the file to make room")),
    stat("disk_damaged_reads", |s| s.damaged.into(),
        counter("disk_damaged_reads", "Reads that met damage")),
    stat("disk_failed_commits", |s| s.failed_commits.into(),
        counter("disk_failed_commits", "Attempts to commit that failed and are tried again")),
    plain("disk_last_commit_status", |s| if s.failure.is_some() { "err" } else { "ok" }.to_owned().into()),
    only_metric(|s| s.failure.is_some().into(),
        gauge("disk_commit_failing", "1 while the file cannot be written, else 0")),
];

pub(super) static BACKUPS: Group<History> = Group {
    labels: &[],
    stats: BACKUP_STATS,
    each: |server, show| {
        if server.store().durability().is_some() {
            show(&[], &server.backups().history());
        }
    },
};

#[rustfmt::skip]
const BACKUP_STATS: &[Stat<History>] = &[
    stat("backup_in_progress", |h| h.current.is_some().into(),
        gauge("backup_in_progress", "1 while a backup is being made, else 0")),
    plain("backup_written_bytes", |h| h.current.as_ref().map_or(0, |current| current.written_bytes).into()),
    plain("backup_expected_bytes", |h| h.current.as_ref().map_or(0, |current| current.expected_bytes).into()),
    plain("last_backup_status", |h| match &h.last {
        None => "none",
        Some(last) if last.outcome.is_ok() => "ok",
        Some(_) => "err",
    }.to_owned().into()),
    plain("last_backup_seconds", |h| h.last.as_ref().map_or(0, |last| last.duration.as_secs()).into()),
    stat("last_backup_time", |h| h.made_at.into(),
        gauge("last_backup_timestamp_seconds", "Unix time when the last backup was made since the start; 0 if none was")),
    stat("failed_backups", |h| h.failures.into(),
        counter("failed_backups", "Backups that failed, of which nothing is left")),
];

pub(super) fn disk(server: &Server, fields: &mut Fields) {
    fields.add("disk_enabled", u8::from(server.store().durability().is_some()));
    fields.lines(&DISK, server);
    fields.lines(&BACKUPS, server);
}
