//! What was done since the start or the last CONFIG RESETSTAT: in all, by command, by error, by codec; and what there is
//! now in the databases.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;
use snugly_codec::{DESCRIPTORS, Family};

use super::Fields;
use crate::commands::REGISTRY;
use crate::counter::Counter;
use crate::samples::Totals;
use crate::server::Server;
use crate::worker::{CommandStats, errors, latencies};

pub(super) fn stats(server: &Server, fields: &mut Fields) {
    let stats = server.stats();
    let workers = server.worker_stats();
    let totals = Totals::of(&workers);
    let rates = server.samples();
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let kilobytes = |bytes: f64| format!("{:.2}", bytes / 1024.0);
    fields.add("total_connections_received", load(&server.connections_accepted));
    fields.add("total_commands_processed", totals.commands);
    fields.add("instantaneous_ops_per_sec", rates.commands_per_second());
    fields.add("total_net_input_bytes", totals.bytes_in);
    fields.add("total_net_output_bytes", totals.bytes_out);
    fields.add_all([("total_net_repl_input_bytes", 0), ("total_net_repl_output_bytes", 0)]);
    fields.add("instantaneous_input_kbps", kilobytes(rates.bytes_in_per_second()));
    fields.add("instantaneous_output_kbps", kilobytes(rates.bytes_out_per_second()));
    fields.add("rejected_connections", load(&server.connections_refused));
    fields.add_all([("sync_full", 0), ("sync_partial_ok", 0), ("sync_partial_err", 0)]);
    fields.add("expired_keys", stats.expired);
    fields.add("evicted_keys", stats.evicted);
    fields.add_all([("evicted_clients", 0), ("evicted_scripts", 0)]);
    fields.add("keyspace_hits", stats.hits);
    fields.add("keyspace_misses", stats.misses);
    fields.add_all([("pubsub_channels", 0), ("pubsub_patterns", 0), ("pubsubshard_channels", 0)]);
    fields.add_all([("latest_fork_usec", 0), ("total_forks", 0), ("migrate_cached_sockets", 0)]);
    fields.add("slave_expires_tracked_keys", 0);
    let tracking = server.interest().tracking_stats();
    fields.add("tracking_total_keys", tracking.keys);
    fields.add("tracking_total_items", tracking.items);
    fields.add("tracking_total_prefixes", tracking.prefixes);
    fields.add("total_error_replies", errors(&workers).values().sum::<u64>());
}

pub(super) fn compression(server: &Server, fields: &mut Fields) {
    let configuration = server.configuration();
    let snapshot = server.stats().codec;
    let bytes_in = snapshot.total(Family::EncodedBytesIn);
    let bytes_out = snapshot.total(Family::EncodedBytesOut);
    fields.add("compression", &configuration.compression);
    if let Ok(choice) = configuration.compression() {
        fields.add("compression_level", choice.level());
    }
    fields.add("compression_min_bytes", configuration.compression_min_bytes);
    fields.add("compression_saved_bytes", bytes_in.saturating_sub(bytes_out));
    fields.add(
        "compression_ratio",
        format_args!("{:.3}", if bytes_out == 0 { 1.0 } else { bytes_in as f64 / bytes_out as f64 }),
    );
    for descriptor in &DESCRIPTORS {
        fields.add(&descriptor.to_string(), descriptor.value(&snapshot));
    }
}

pub(super) fn commandstats(server: &Server, fields: &mut Fields) {
    let workers = server.worker_stats();
    for (place, row) in REGISTRY.rows().iter().enumerate() {
        let sum = |counter: fn(&CommandStats) -> &Counter| -> u64 {
            workers.iter().map(|worker| counter(&worker.commands[place]).get()).sum()
        };
        let (calls, rejected, failed) = (sum(|c| &c.calls), sum(|c| &c.rejected), sum(|c| &c.failed));
        if calls + rejected + failed == 0 {
            continue;
        }
        let microseconds = sum(|c| &c.nanoseconds) / 1000;
        let per_call = if calls == 0 { 0.0 } else { microseconds as f64 / calls as f64 };
        fields.add(
            &format!("cmdstat_{}", row.full_name),
            format_args!(
                "calls={calls},usec={microseconds},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

pub(super) fn errorstats(server: &Server, fields: &mut Fields) {
    for (code, count) in errors(&server.worker_stats()) {
        fields.add(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

pub(super) fn latencystats(server: &Server, fields: &mut Fields) {
    let workers = server.worker_stats();
    let percentiles = &server.configuration().latency_percentiles;
    for (place, row) in REGISTRY.rows().iter().enumerate() {
        if let Some(latencies) = latencies(&workers, place) {
            let name = format!("latency_percentiles_usec_{}", row.full_name);
            fields.add(&name, summary(&latencies, percentiles));
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

pub(super) fn keyspace(server: &Server, fields: &mut Fields) {
    let store = server.store();
    for database in 0..store.databases() {
        // A disk that cannot be read is reported where it is read for data.
        let stats = store.database_stats(database).unwrap_or_default();
        if stats.keys > 0 {
            fields.add(
                &format!("db{database}"),
                format_args!(
                    "keys={},expires={},avg_ttl=0,keys_with_volatile_items=0",
                    stats.keys, stats.volatile_keys
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
