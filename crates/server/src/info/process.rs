//! The process: what it is, who is connected, what it takes.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use snugly_net::Address;

use super::Fields;
use crate::clients::State;
use crate::key_watch::TrackingStats;
use crate::listeners::{Listener, Protocol, first_port};
use crate::memory::{Cost, Memory};
use crate::pause::{Paused, Scope};
use crate::samples::Samples;
use crate::scripts::ScriptTotals;
use crate::stat::{Group, Metric, Stat, Value, counter, gauge, nothing, only_metric, plain, stat};
use crate::state::Server;

/// The version of Redis whose commands and replies clients may expect; Valkey 9.1 says the same of itself.
pub(crate) const REDIS_VERSION: &str = "7.2.4";

/// The program's version, as a label.
pub(super) static BUILD: Group<()> = Group {
    labels: &["version"],
    stats: &[only_metric(|()| Value::Count(1), gauge("build_info", "1, for the version that runs"))],
    each: |_, show| show(&[env!("CARGO_PKG_VERSION")], &()),
};

pub(super) static UPTIME: Group<Duration> = Group {
    labels: &[],
    stats: &[
        stat(
            "uptime_in_seconds",
            |time| time.as_secs().into(),
            gauge("uptime_seconds", "Time since the server was started"),
        ),
        plain("uptime_in_days", |time| (time.as_secs() / 86_400).into()),
    ],
    each: |server, show| show(&[], &server.started.elapsed()),
};

pub(super) fn server(server: &Server, fields: &mut Fields) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    fields.add("redis_version", REDIS_VERSION);
    fields.add("server_name", "snugly");
    fields.add("snugly_version", env!("CARGO_PKG_VERSION"));
    fields.add("server_mode", "standalone");
    fields.add("redis_mode", "standalone");
    fields.add("os", operating_system());
    fields.add("arch_bits", usize::BITS);
    fields.add("process_id", std::process::id());
    fields.add("process_supervised", "no");
    fields.add("run_id", &server.run_id);
    let resp = |listener: &Listener| listener.protocol == Protocol::Resp && !listener.is_tls;
    fields.add("tcp_port", first_port(server.listeners(), resp).unwrap_or(0));
    fields.add("server_time_usec", now.as_micros());
    fields.lines(&UPTIME, server);
    if let Ok(program) = std::env::current_exe() {
        fields.add("executable", program.display());
    }
    let file = server.configuration_file().map(Path::to_string_lossy);
    fields.add("config_file", file.unwrap_or_default());
    fields.add("io_threads", server.worker_stats().len());
    let resp = server.listeners().iter().filter(|listener| listener.protocol == Protocol::Resp);
    for (number, Listener { is_tls, address, .. }) in resp.enumerate() {
        let listener = match address {
            Address::Tcp(address) => {
                let name = if *is_tls { "tls" } else { "tcp" };
                format!("name={name},bind={},port={}", address.ip(), address.port())
            }
            Address::Unix(path) => format!("name=unix,bind={}", path.display()),
        };
        fields.add(&format!("listener{number}"), listener);
    }
}

/// Name and release of the system, and the kind of machine, as `uname` gives them.
fn operating_system() -> String {
    let mut names = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: uname writes a whole utsname to the pointer, which is one; if it failed, the zeroes are one too.
    let names = unsafe {
        libc::uname(names.as_mut_ptr());
        names.assume_init()
    };
    let text = |field: &[libc::c_char]| {
        let bytes: Vec<u8> = field.iter().map(|&byte| byte as u8).collect();
        CStr::from_bytes_until_nul(&bytes)
            .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
    };
    format!("{} {} {}", text(&names.sysname), text(&names.release), text(&names.machine))
}

/// Connected clients, by activity.
pub(super) struct Connected {
    clients: usize,
    most_input: usize,
    most_output: usize,
    max_clients: usize,
    blocked: usize,
    subscribed: usize,
    tracking: TrackingStats,
    watching: usize,
    watched_keys: usize,
    awaited_keys: usize,
}

pub(super) static CLIENTS: Group<Connected> = Group {
    labels: &[],
    stats: CLIENT_STATS,
    each: |server, show| {
        let clients = server.clients().list();
        let input = clients.iter().map(|client| client.buffered_input.load(Ordering::Relaxed));
        let output = clients.iter().map(|client| client.output());
        let blocked = server.blocked_clients.load(Ordering::Relaxed);
        let connected = Connected {
            clients: clients.len(),
            most_input: input.max().unwrap_or(0),
            most_output: output.max().unwrap_or(0),
            max_clients: server.configuration().max_clients,
            blocked: blocked
                + server.clients().count(State::POSTPONED)
                + server.key_watch().waiting_clients(),
            awaited_keys: server.key_watch().awaited_keys(),
            subscribed: server.clients().count(State::SUBSCRIBED),
            tracking: server.key_watch().tracking_stats(),
            watching: server.key_watch().watching_clients(),
            watched_keys: server.key_watch().watched_keys(),
        };
        show(&[], &connected);
    },
};

#[rustfmt::skip]
const CLIENT_STATS: &[Stat<Connected>] = &[
    stat("connected_clients", |c| c.clients.into(),
        gauge("connected_clients", "Clients that are connected")),
    nothing("cluster_connections"),
    stat("maxclients", |c| c.max_clients.into(),
        gauge("max_clients", "Clients that may be connected, max-clients")),
    plain("client_recent_max_input_buffer", |c| c.most_input.into()),
    plain("client_recent_max_output_buffer", |c| c.most_output.into()),
    stat("blocked_clients", |c| c.blocked.into(),
        gauge("blocked_clients", "Clients whose command waits")),
    stat("tracking_clients", |c| c.tracking.clients.into(),
        gauge("tracking_clients", "Clients that track keys for client-side caching")),
    stat("pubsub_clients", |c| c.subscribed.into(),
        gauge("pubsub_clients", "Clients that have subscribed to a channel")),
    stat("watching_clients", |c| c.watching.into(),
        gauge("watching_clients", "Clients that watch keys for a transaction")),
    stat("total_watched_keys", |c| c.watched_keys.into(),
        gauge("watched_keys", "Keys that clients watch")),
    stat("total_blocking_keys", |c| c.awaited_keys.into(),
        gauge("awaited_keys", "Keys of lists that clients wait for")),
    nothing("total_blocking_keys_on_nokey"),
];

pub(super) fn clients(server: &Server, fields: &mut Fields) {
    fields.lines(&CLIENTS, server);
    let paused = server.pause().current();
    fields.add("paused_reason", if paused.is_some() { "client_pause" } else { "none" });
    let actions = |paused: Paused| if paused.scope == Scope::All { "all" } else { "write" };
    fields.add("paused_actions", paused.map_or("none", actions));
    let rest = paused.and_then(Paused::rest).unwrap_or_default();
    fields.add("paused_timeout_milliseconds", rest.as_millis());
}

/// Memory in use, by purpose, and its limits.
pub(super) struct InUse {
    memory: Memory,
    /// Bytes of the keys and values as clients gave them.
    given: u64,
    /// Buffers that threads keep.
    buffers: u64,
    scripts: ScriptTotals,
    samples: Samples,
    /// Memory of the machine in bytes, if the system tells.
    system: Option<u64>,
    max_memory: u64,
    policy: &'static str,
    clients: usize,
    allocator: &'static str,
    /// By asynchronous flushes.
    keys_to_free: u64,
    keys_freed: u64,
}

pub(super) static MEMORY: Group<InUse> = Group {
    labels: &[],
    stats: MEMORY_STATS,
    each: |server, show| {
        let configuration = server.configuration();
        let in_use = InUse {
            memory: server.memory(),
            given: server.store().given_memory(),
            buffers: server.store().buffer_bytes(),
            scripts: server.scripts().totals(),
            samples: server.samples(),
            system: system_memory(),
            max_memory: configuration.max_memory,
            policy: configuration.max_memory_policy.name(),
            clients: server.client_memory(),
            allocator: server.allocator().name,
            keys_to_free: server.freeing.pending(),
            keys_freed: server.freeing.freed(),
        };
        show(&[], &in_use);
    },
};

#[rustfmt::skip]
const MEMORY_STATS: &[Stat<InUse>] = &[
    stat("used_memory", |m| Value::Bytes(m.memory.used()),
        gauge("memory_used_bytes", "Memory given to the whole process")),
    stat("used_memory_rss", |m| Value::Bytes(m.memory.resident()),
        gauge("memory_resident_bytes", "Physical memory of the process")),
    stat("used_memory_peak", |m| Value::Bytes(m.memory.peak(m.samples.memory_peak)),
        gauge("memory_peak_bytes", "Peak of the memory given to the process")),
    plain("used_memory_peak_perc", |m| percentage(m.memory.peak_percentage(m.samples.memory_peak))),
    stat("used_memory_overhead", |m| m.memory.overhead().into(),
        gauge("memory_overhead_bytes", "Memory for anything but keys and values")),
    stat("used_memory_startup", |m| m.samples.memory_at_start.into(),
        gauge("memory_startup_bytes", "Memory that was used at the start")),
    stat("used_memory_dataset", |m| Value::Bytes(m.memory.dataset),
        gauge("memory_dataset_bytes", "Memory for keys, values and their tables, which max-memory bounds")),
    plain("used_memory_dataset_perc", |m| percentage(m.memory.dataset_percentage(m.samples.memory_at_start))),
    stat("dataset_given_bytes", |m| m.given.into(),
        gauge("memory_given_bytes", "Keys and values in memory, in the bytes that clients gave")),
    stat("thread_buffer_bytes", |m| m.buffers.into(),
        gauge("thread_buffer_bytes", "Buffers that threads keep for the next values")),
    stat("allocator_allocated", |m| m.memory.allocator.allocated.into(),
        gauge("allocator_allocated_bytes", "Memory that the allocator has given to the program")),
    stat("allocator_active", |m| m.memory.allocator.active.into(),
        gauge("allocator_active_bytes", "Pages of the allocator in use")),
    stat("allocator_resident", |m| m.memory.allocator.resident.into(),
        gauge("allocator_resident_bytes", "Physical memory of the allocator")),
    stat("slab_slot_bytes", |m| m.memory.slabs.slot_bytes.into(),
        gauge("slab_slot_bytes", "Slots for entries that are in use")),
    stat("slab_page_bytes", |m| m.memory.slabs.page_bytes.into(),
        gauge("slab_page_bytes", "Pages of these slots")),
    stat("total_system_memory", |m| m.system.map_or(Value::Unknown, Value::Bytes),
        gauge("system_memory_bytes", "Physical memory of the machine")),
    stat("used_memory_lua", |m| m.scripts.machine_bytes.into(),
        gauge("script_engine_bytes", "Memory of the engines that run scripts, one for each thread")),
    plain("used_memory_functions", |m| m.scripts.library_bytes.into()),
    stat("used_memory_scripts", |m| m.scripts.cached_bytes.into(),
        gauge("cached_script_bytes", "Texts of the scripts that EVALSHA knows")),
    stat("number_of_cached_scripts", |m| m.scripts.cached.into(),
        gauge("cached_scripts", "Scripts that EVALSHA knows")),
    stat("number_of_functions", |m| m.scripts.functions.into(),
        gauge("functions", "Functions that FCALL knows")),
    plain("number_of_libraries", |m| m.scripts.libraries.into()),
    stat("maxmemory", |m| Value::Bytes(m.max_memory),
        gauge("max_memory_bytes", "The budget, max-memory; 0 is no limit")),
    plain("maxmemory_policy", |m| m.policy.to_owned().into()),
    plain("allocator_frag_ratio", |m| times(m.memory.allocator_fragmentation())),
    plain("allocator_frag_bytes", |m| Value::Difference(m.memory.allocator_fragmentation().bytes())),
    plain("allocator_rss_ratio", |m| times(m.memory.allocator_overhead())),
    plain("allocator_rss_bytes", |m| Value::Difference(m.memory.allocator_overhead().bytes())),
    stat("mem_fragmentation_ratio", |m| times(m.memory.fragmentation()),
        gauge("memory_fragmentation_ratio", "Physical memory for each byte given to the process")),
    plain("mem_fragmentation_bytes", |m| Value::Difference(m.memory.fragmentation().bytes())),
    nothing("mem_not_counted_for_evict"),
    nothing("mem_replication_backlog"),
    nothing("mem_clients_slaves"),
    stat("mem_clients_normal", |m| m.clients.into(),
        gauge("memory_clients_bytes", "Memory of requests and replies kept for clients")),
    nothing("mem_cluster_links"),
    nothing("mem_aof_buffer"),
    plain("mem_allocator", |m| m.allocator.to_owned().into()),
    plain("lazyfree_pending_objects", |m| m.keys_to_free.into()),
    plain("lazyfreed_objects", |m| m.keys_freed.into()),
];

fn percentage(value: f64) -> Value {
    Value::Text(format!("{value:.2}%"))
}

fn times(cost: Cost) -> Value {
    Value::Real(cost.ratio(), 2)
}

pub(super) fn memory(server: &Server, fields: &mut Fields) {
    fields.lines(&MEMORY, server);
}

/// Bytes of physical memory of the machine, if the system tells.
fn system_memory() -> Option<u64> {
    // SAFETY: sysconf reads nothing of ours and returns a number; -1 says that it does not know.
    let (pages, page_bytes) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(page_bytes).ok()?)
}

pub(super) static CPU: Group<Spent> = Group {
    labels: &[],
    stats: CPU_STATS,
    each: |_, show| {
        let spent =
            Spent { own: process_times(libc::RUSAGE_SELF), children: process_times(libc::RUSAGE_CHILDREN) };
        show(&[], &spent);
    },
};

/// Processor time of the process, and of children that it has waited for.
pub(super) struct Spent {
    own: ProcessTimes,
    children: ProcessTimes,
}

struct ProcessTimes {
    user: f64,
    system: f64,
}

const SPENT: Metric = counter("cpu_seconds", "Processor time that the process used, by mode");

#[rustfmt::skip]
const CPU_STATS: &[Stat<Spent>] = &[
    stat("used_cpu_sys", |s| Value::Real(s.own.system, 6), SPENT.labelled("mode", "system")),
    stat("used_cpu_user", |s| Value::Real(s.own.user, 6), SPENT.labelled("mode", "user")),
    plain("used_cpu_sys_children", |s| Value::Real(s.children.system, 6)),
    plain("used_cpu_user_children", |s| Value::Real(s.children.user, 6)),
];

pub(super) fn cpu(server: &Server, fields: &mut Fields) {
    fields.lines(&CPU, server);
}

/// Seconds of processor time that the process has used, in user mode and in the system.
pub(crate) fn process_seconds() -> [f64; 2] {
    let times = process_times(libc::RUSAGE_SELF);
    [times.user, times.system]
}

/// Seconds of processor time that the process, or the children it has waited for, have used.
fn process_times(whose: libc::c_int) -> ProcessTimes {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes a whole rusage to the pointer, which is one; if it failed, the zeroes are one too.
    let usage = unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    ProcessTimes { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) }
}
