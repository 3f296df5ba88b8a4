//! Counters since the start or the last CONFIG RESETSTAT: in all, by command, by error; and the contents of the
//! databases.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use snugly_store::{DatabaseStats, Stats};

use super::{Fields, words};
use crate::counters::{
    CommandStats, ConnectionTotals, Counter, command_names, errors, family_latencies, latencies,
};
use crate::key_watch::TrackingStats;
use crate::memory::ratio;
use crate::samples::{Samples, Totals};
use crate::stat::{
    Distribution, Group, Stat, Value, counter, gauge, histogram, nothing, only_metric, plain, stat,
};
use crate::state::Server;
use crate::subscriptions::Kind;

/// Totals.
pub(super) struct Done {
    connections: ConnectionTotals,
    totals: Totals,
    rates: Samples,
    stats: Stats,
    tracking: TrackingStats,
    channels: usize,
    patterns: usize,
    shard_channels: usize,
    errors: u64,
}

pub(super) static STATS: Group<Done> = Group {
    labels: &[],
    stats: STATS_STATS,
    each: |server, show| {
        let workers = server.worker_stats();
        let done = Done {
            connections: server.connections.totals(),
            totals: Totals::of(&workers),
            rates: server.samples(),
            stats: server.stats(),
            tracking: server.key_watch().tracking_stats(),
            channels: server.channels().count(Kind::Channel),
            patterns: server.channels().count(Kind::Pattern),
            shard_channels: server.channels().count(Kind::ShardChannel),
            errors: errors(&workers).values().sum(),
        };
        show(&[], &done);
    },
};

#[rustfmt::skip]
const STATS_STATS: &[Stat<Done>] = &[
    stat("total_connections_received", |d| d.connections.accepted.into(),
        counter("connections_received", "Connections of clients that were accepted")),
    stat("total_commands_processed", |d| d.totals.commands.into(),
        counter("commands_processed", "Commands that ran")),
    plain("instantaneous_ops_per_sec", |d| d.rates.commands_per_second().into()),
    stat("total_net_input_bytes", |d| d.totals.bytes_in.into(),
        counter("net_input_bytes", "Bytes that clients sent")),
    stat("total_net_output_bytes", |d| d.totals.bytes_out.into(),
        counter("net_output_bytes", "Bytes that clients were sent")),
    nothing("total_net_repl_input_bytes"),
    nothing("total_net_repl_output_bytes"),
    plain("instantaneous_input_kbps", |d| kilobytes(d.rates.bytes_in_per_second())),
    plain("instantaneous_output_kbps", |d| kilobytes(d.rates.bytes_out_per_second())),
    stat("rejected_connections", |d| d.connections.refused.into(),
        counter("rejected_connections", "Connections over max-clients, which were closed")),
    stat("acl_access_denied_auth", |d| d.connections.failed_logins.into(),
        counter("failed_logins", "Wrong passwords, which were refused")),
    stat("acl_access_denied_cmd", |d| d.connections.denied_commands.into(),
        counter("denied_commands", "Requests whose user may not run the command, which were refused")),
    stat("acl_access_denied_key", |d| d.connections.denied_keys.into(),
        counter("denied_keys", "Requests whose user may not touch one of their keys, which were refused")),
    stat("acl_access_denied_channel", |d| d.connections.denied_channels.into(),
        counter("denied_channels", "Requests whose user may not use one of their channels, which were refused")),
    stat("acl_access_denied_db", |d| d.connections.denied_databases.into(),
        counter("denied_databases", "Requests whose user may not touch their database, which were refused")),
    stat("refused_tls_handshakes", |d| d.connections.refused_handshakes.into(),
        counter("refused_tls_handshakes", "Connections that were closed because client and server did not agree on TLS")),
    stat("broken_connections", |d| d.connections.broken.into(),
        counter("broken_connections", "Connections that were closed because a command panicked, which is a bug")),
    nothing("sync_full"),
    nothing("sync_partial_ok"),
    nothing("sync_partial_err"),
    stat("expired_keys", |d| d.stats.expired.into(),
        counter("expired_keys", "Keys removed because they expired")),
    stat("evicted_keys", |d| d.stats.evicted.into(),
        counter("evicted_keys", "Keys removed to make room")),
    stat("evicted_clients", |d| d.connections.evicted.into(),
        counter("evicted_clients", "Connections that were closed because all clients held more than maxmemory-clients")),
    nothing("evicted_scripts"),
    stat("keyspace_hits", |d| d.stats.hits.into(),
        counter("keyspace_hits", "Lookups for reading that found a key")),
    stat("keyspace_misses", |d| d.stats.misses.into(),
        counter("keyspace_misses", "Lookups for reading that found none")),
    stat("pubsub_channels", |d| d.channels.into(),
        gauge("pubsub_channels", "Channels that clients listen to")),
    stat("pubsub_patterns", |d| d.patterns.into(),
        gauge("pubsub_patterns", "Patterns of channels that clients listen to")),
    stat("pubsubshard_channels", |d| d.shard_channels.into(),
        gauge("pubsub_shard_channels", "Shard channels that clients listen to")),
    nothing("latest_fork_usec"),
    nothing("total_forks"),
    nothing("migrate_cached_sockets"),
    nothing("slave_expires_tracked_keys"),
    stat("tracking_total_keys", |d| d.tracking.keys.into(),
        gauge("tracking_keys", "Keys whose readers are remembered for client-side caching")),
    stat("tracking_total_items", |d| d.tracking.items.into(),
        gauge("tracking_items", "Pairs of such a key and a client")),
    stat("tracking_total_prefixes", |d| d.tracking.prefixes.into(),
        gauge("tracking_prefixes", "Key prefixes that clients track")),
    stat("client_query_buffer_limit_disconnections", |d| d.connections.over_input_limit.into(),
        counter("query_buffer_limit_disconnections",
            "Connections that were closed because they sent more than client-query-buffer-limit")),
    stat("client_output_buffer_limit_disconnections", |d| d.connections.over_output_limit.into(),
        counter("output_buffer_limit_disconnections",
            "Connections that were closed because they did not take their replies or messages")),
    plain("total_error_replies", |d| d.errors.into()),
];

fn kilobytes(bytes: f64) -> Value {
    Value::Real(bytes / 1024.0, 2)
}

pub(super) fn stats(server: &Server, fields: &mut Fields) {
    fields.lines(&STATS, server);
}

/// Totals of one command on all threads.
pub(super) struct CommandTotals {
    calls: u64,
    microseconds: u64,
    rejected: u64,
    failed: u64,
}

pub(super) static COMMANDS: Group<CommandTotals> = Group {
    labels: &["command"],
    stats: COMMAND_STATS,
    each: |server, show| {
        let workers = server.worker_stats();
        for (place, name) in command_names(&workers).enumerate() {
            let sum = |counter: fn(&CommandStats) -> &Counter| -> u64 {
                workers.iter().map(|worker| counter(&worker.commands[place]).get()).sum()
            };
            let totals = CommandTotals {
                calls: sum(|c| &c.calls),
                microseconds: sum(|c| &c.nanoseconds) / 1000,
                rejected: sum(|c| &c.rejected),
                failed: sum(|c| &c.failed),
            };
            if totals.calls + totals.rejected + totals.failed > 0 {
                show(&[name], &totals);
            }
        }
    },
};

#[rustfmt::skip]
const COMMAND_STATS: &[Stat<CommandTotals>] = &[
    stat("calls", |c| c.calls.into(),
        counter("command_calls", "Calls of the command; one that was never called is left out")),
    stat("usec", |c| c.microseconds.into(),
        counter("command_seconds", "Time that these calls took").divided_by(1e6)),
    plain("usec_per_call", |c| Value::Real(ratio(c.microseconds, c.calls), 2)),
    stat("rejected_calls", |c| c.rejected.into(),
        counter("command_rejected_calls", "Requests for the command that were refused before it ran")),
    stat("failed_calls", |c| c.failed.into(),
        counter("command_failed_calls", "Calls of the command that gave an error")),
];

pub(super) fn commandstats(server: &Server, fields: &mut Fields) {
    (COMMANDS.each)(server, &mut |labels, totals| {
        fields.add(&format!("cmdstat_{}", labels[0]), words(COMMAND_STATS, totals));
    });
}

pub(super) static LATENCIES: Group<Histogram<u64>> = Group {
    labels: &["family"],
    stats: LATENCY_STATS,
    each: |server, show| {
        for (family, latencies) in family_latencies(&server.worker_stats()) {
            show(&[family], &latencies);
        }
    },
};

const LATENCY_STATS: &[Stat<Histogram<u64>>] = &[only_metric(
    |latencies| Value::Times(distribution(latencies)),
    histogram(
        "command_duration_seconds",
        "Time that calls of commands of a family took, with latency-tracking",
    ),
)];

/// Upper bounds of the buckets, in nanoseconds. From a second on durations are not told apart.
const BOUNDS: [u64; 18] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
];

/// Counts by duration. The sum is that of the counted durations, each rounded as the histogram does.
fn distribution(latencies: &Histogram<u64>) -> Distribution {
    let mut buckets: Vec<(f64, u64)> = BOUNDS.iter().map(|&bound| (bound as f64 / 1e9, 0)).collect();
    buckets.push((f64::INFINITY, 0));
    let mut sum = 0.0;
    for step in latencies.iter_recorded() {
        let nanoseconds = latencies.median_equivalent(step.value_iterated_to());
        let count = step.count_at_value();
        let bucket = BOUNDS.partition_point(|&bound| bound < nanoseconds);
        buckets[bucket].1 += count;
        sum += nanoseconds as f64 / 1e9 * count as f64;
    }
    Distribution { buckets, sum }
}

pub(super) static ERRORS: Group<u64> = Group {
    labels: &["code"],
    stats: ERROR_STATS,
    each: |server, show| {
        for (code, count) in errors(&server.worker_stats()) {
            show(&[&code], &count);
        }
    },
};

const ERROR_STATS: &[Stat<u64>] =
    &[stat("count", |count| (*count).into(), counter("error_replies", "Errors answered, by their code"))];

pub(super) fn errorstats(server: &Server, fields: &mut Fields) {
    (ERRORS.each)(server, &mut |labels, count| {
        fields.add(&format!("errorstat_{}", labels[0]), words(ERROR_STATS, count));
    });
}

pub(super) fn latencystats(server: &Server, fields: &mut Fields) {
    let workers = server.worker_stats();
    let percentiles = &server.configuration().latency_percentiles;
    for (place, name) in command_names(&workers).enumerate() {
        if let Some(latencies) = latencies(&workers, place) {
            let field = format!("latency_percentiles_usec_{name}");
            fields.add(&field, summary(&latencies, percentiles));
        }
    }
}

/// Percentiles of nanoseconds, in microseconds: `p50=1.003,p99=9.023`.
fn summary(latencies: &Histogram<u64>, percentiles: &[f64]) -> String {
    let mut summary = String::new();
    for percentile in percentiles {
        if !summary.is_empty() {
            summary.push(',');
        }
        let nanoseconds = latencies.value_at_percentile(*percentile);
        // Writing to a String cannot fail.
        let _ = write!(summary, "p{percentile}={:.3}", nanoseconds as f64 / 1000.0);
    }
    summary
}

pub(super) static KEYSPACE: Group<DatabaseStats> = Group {
    labels: &["database"],
    stats: KEYSPACE_STATS,
    each: |server, show| {
        let store = server.store();
        for database in 0..store.databases() {
            // A disk that cannot be read is reported where it is read for data.
            let stats = store.database_stats(database).unwrap_or_default();
            show(&[&database.to_string()], &stats);
        }
    },
};

#[rustfmt::skip]
const KEYSPACE_STATS: &[Stat<DatabaseStats>] = &[
    stat("keys", |d| d.keys.into(),
        gauge("keys", "Keys in the database")),
    stat("expires", |d| d.volatile_keys.into(),
        gauge("volatile_keys", "Keys in the database that expire")),
    nothing("avg_ttl"),
    nothing("keys_with_volatile_items"),
];

pub(super) fn keyspace(server: &Server, fields: &mut Fields) {
    (KEYSPACE.each)(server, &mut |labels, stats| {
        if stats.keys > 0 {
            fields.add(&format!("db{}", labels[0]), words(KEYSPACE_STATS, stats));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_in_the_bucket_of_its_duration() {
        let mut latencies = Histogram::new(2).expect("two digits are a precision");
        for nanoseconds in [1, 800, 30_000, 30_000, 499_000_000, 900_000_000, 1_000_000_000] {
            latencies.record(nanoseconds).expect("a histogram grows");
        }
        let Distribution { buckets, sum } = distribution(&latencies);
        let counted: Vec<_> = buckets.iter().filter(|(_, count)| *count > 0).copied().collect();
        assert_eq!(counted, [(1e-6, 2), (5e-5, 2), (0.5, 1), (f64::INFINITY, 2)]);
        assert!((sum - 2.399).abs() < 0.02, "{sum}");
        let none = distribution(&Histogram::new(2).expect("two digits are a precision"));
        assert_eq!((none.count(), none.sum), (0, 0.0));
    }

    #[test]
    fn percentiles_are_shown_as_valkey_shows_them() {
        let mut latencies = Histogram::new(2).expect("two digits are a precision");
        for microseconds in [1, 1, 1, 9, 113] {
            latencies.record(microseconds * 1000).expect("a histogram grows");
        }
        assert_eq!(summary(&latencies, &[50.0, 80.0, 99.9]), "p50=1.003,p80=9.023,p99.9=113.151");
        assert_eq!(summary(&latencies, &[]), "");
    }
}
