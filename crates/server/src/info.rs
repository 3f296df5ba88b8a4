//! INFO: sections of fields, for people and for the clients that look for Valkey's names in them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::{DESCRIPTORS, Family};
use snugly_store::{Store, system_time};

use crate::clients::State;
use crate::commands::REGISTRY;
use crate::pause::{Paused, Scope};
use crate::server::Server;

/// The version of Redis whose commands and replies clients may expect; Valkey 9.1 says the same of itself.
const REDIS_VERSION: &str = "7.2.4";

struct Section {
    name: &'static str,
    /// Whether INFO without arguments shows it.
    default: bool,
    write: fn(&Server, &mut Fields),
}

#[rustfmt::skip]
const SECTIONS: &[Section] = &[
    Section { name: "Server", default: true, write: server },
    Section { name: "Clients", default: true, write: clients },
    Section { name: "Memory", default: true, write: memory },
    Section { name: "Stats", default: true, write: stats },
    Section { name: "Compression", default: true, write: compression },
    Section { name: "Replication", default: true, write: replication },
    Section { name: "CPU", default: true, write: cpu },
    Section { name: "Commandstats", default: false, write: commandstats },
    Section { name: "Cluster", default: true, write: cluster },
    Section { name: "Keyspace", default: true, write: keyspace },
];

/// The lines of a section.
struct Fields(String);

impl Fields {
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }
}

/// The text of INFO for the named sections (lower case); none is the default ones.
pub(crate) fn text(server: &Arc<Server>, names: &[String]) -> String {
    let everything = names.iter().any(|name| name == "all" || name == "everything");
    let defaults = names.is_empty() || names.iter().any(|name| name == "default");
    let asked = |section: &Section| {
        everything
            || defaults && section.default
            || names.iter().any(|name| section.name.eq_ignore_ascii_case(name))
    };
    let mut fields = Fields(String::new());
    for section in SECTIONS.iter().filter(|section| asked(section)) {
        if !fields.0.is_empty() {
            fields.0.push_str("\r\n");
        }
        let _ = write!(fields.0, "# {}\r\n", section.name);
        (section.write)(server, &mut fields);
    }
    fields.0
}

fn server(server: &Server, fields: &mut Fields) {
    let uptime = server.started.elapsed().as_secs();
    fields.add("redis_version", REDIS_VERSION);
    fields.add("server_name", "snugly");
    fields.add("snugly_version", env!("CARGO_PKG_VERSION"));
    fields.add("server_mode", "standalone");
    fields.add("redis_mode", "standalone");
    fields.add("os", std::env::consts::OS);
    fields.add("arch_bits", usize::BITS);
    fields.add("process_id", std::process::id());
    fields.add("tcp_port", server.addresses().first().map_or(0, |address| address.port()));
    fields.add("server_time_usec", system_time() * 1000);
    fields.add("uptime_in_seconds", uptime);
    fields.add("uptime_in_days", uptime / 86_400);
    fields.add("io_threads", server.worker_stats().len());
}

fn clients(server: &Server, fields: &mut Fields) {
    fields.add("connected_clients", server.clients().len());
    fields.add("maxclients", server.configuration().max_clients);
    fields.add("blocked_clients", server.clients().count(State::POSTPONED));
    fields.add("tracking_clients", server.interest().tracking_stats().clients);
    fields.add("pubsub_clients", server.clients().count(State::SUBSCRIBED));
    fields.add("watching_clients", server.interest().watching_clients());
    fields.add("total_watched_keys", server.interest().watched_keys());
    let paused = server.pause().current();
    fields.add("paused_reason", if paused.is_some() { "client_pause" } else { "none" });
    let actions = |paused: Paused| if paused.scope == Scope::All { "all" } else { "write" };
    fields.add("paused_actions", paused.map_or("none", actions));
    let rest = paused.and_then(Paused::rest).unwrap_or_default();
    fields.add("paused_timeout_milliseconds", rest.as_millis());
}

fn memory(server: &Server, fields: &mut Fields) {
    let allocator = server.allocator_stats();
    let slabs = Store::slab_stats();
    let configuration = server.configuration();
    // Entries live in slabs of their own, everything else in the allocator.
    let used = allocator.allocated + slabs.slot_bytes;
    let resident = allocator.resident + slabs.page_bytes;
    for (name, bytes) in [
        ("used_memory", used),
        ("used_memory_rss", resident),
        ("used_memory_dataset", server.store().used_memory()),
        ("maxmemory", configuration.max_memory),
    ] {
        fields.add(name, bytes);
        fields.add(&format!("{name}_human"), human(bytes));
    }
    fields.add("maxmemory_policy", configuration.max_memory_policy.name());
    fields.add("mem_fragmentation_ratio", format_args!("{:.2}", resident as f64 / used.max(1) as f64));
    fields.add("allocator_allocated", allocator.allocated);
    fields.add("allocator_active", allocator.active);
    fields.add("allocator_resident", allocator.resident);
    fields.add("slab_slot_bytes", slabs.slot_bytes);
    fields.add("slab_page_bytes", slabs.page_bytes);
    fields.add("mem_allocator", "jemalloc");
}

fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes}B") } else { format!("{amount:.2}{unit}") }
}

fn stats(server: &Server, fields: &mut Fields) {
    let stats = server.stats();
    let workers = server.worker_stats();
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let commands = workers.iter().flat_map(|worker| &worker.commands);
    let failed: u64 =
        workers.iter().flat_map(|worker| &worker.commands).map(|c| load(&c.failed) + load(&c.rejected)).sum();
    fields.add("total_connections_received", load(&server.connections_accepted));
    fields.add("total_commands_processed", commands.map(|command| load(&command.calls)).sum::<u64>());
    fields.add("total_net_input_bytes", workers.iter().map(|worker| load(&worker.bytes_in)).sum::<u64>());
    fields.add("total_net_output_bytes", workers.iter().map(|worker| load(&worker.bytes_out)).sum::<u64>());
    fields.add("rejected_connections", load(&server.connections_refused));
    fields.add("expired_keys", stats.expired);
    fields.add("evicted_keys", stats.evicted);
    fields.add("keyspace_hits", stats.hits);
    fields.add("keyspace_misses", stats.misses);
    let tracking = server.interest().tracking_stats();
    fields.add("tracking_total_keys", tracking.keys);
    fields.add("tracking_total_items", tracking.items);
    fields.add("tracking_total_prefixes", tracking.prefixes);
    fields.add("total_error_replies", failed);
}

fn compression(server: &Server, fields: &mut Fields) {
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

fn replication(_server: &Server, fields: &mut Fields) {
    fields.add("role", "master");
    fields.add("connected_slaves", 0);
}

fn cluster(_server: &Server, fields: &mut Fields) {
    fields.add("cluster_enabled", 0);
}

fn cpu(_server: &Server, fields: &mut Fields) {
    let usage = process_times();
    fields.add("used_cpu_sys", format_args!("{:.6}", usage.system));
    fields.add("used_cpu_user", format_args!("{:.6}", usage.user));
}

struct ProcessTimes {
    user: f64,
    system: f64,
}

/// Seconds of processor time that the whole process has used.
fn process_times() -> ProcessTimes {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes a whole rusage to the pointer, which is one; if it failed, the zeroes are one too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    ProcessTimes { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) }
}

fn commandstats(server: &Server, fields: &mut Fields) {
    let workers = server.worker_stats();
    for (place, row) in REGISTRY.rows().iter().enumerate() {
        let sum = |counter: fn(&crate::worker::CommandStats) -> &AtomicU64| -> u64 {
            workers.iter().map(|worker| counter(&worker.commands[place]).load(Ordering::Relaxed)).sum()
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

fn keyspace(server: &Server, fields: &mut Fields) {
    let store = server.store();
    for database in 0..store.databases() {
        // A disk that cannot be read is reported where it is read for data.
        let stats = store.database_stats(database).unwrap_or_default();
        if stats.keys > 0 {
            fields.add(
                &format!("db{database}"),
                format_args!("keys={},expires={},avg_ttl=0", stats.keys, stats.volatile_keys),
            );
        }
    }
}
