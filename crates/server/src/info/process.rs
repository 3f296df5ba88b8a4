//! The process: what it is, who is connected, what it takes.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Fields, human};
use crate::clients::State;
use crate::pause::{Paused, Scope};
use crate::server::Server;

/// The version of Redis whose commands and replies clients may expect; Valkey 9.1 says the same of itself.
pub(crate) const REDIS_VERSION: &str = "7.2.4";

pub(super) fn server(server: &Server, fields: &mut Fields) {
    let uptime = server.started.elapsed().as_secs();
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
    fields.add("tcp_port", server.addresses().first().map_or(0, |address| address.port()));
    fields.add("server_time_usec", now.as_micros());
    fields.add("uptime_in_seconds", uptime);
    fields.add("uptime_in_days", uptime / 86_400);
    if let Ok(program) = std::env::current_exe() {
        fields.add("executable", program.display());
    }
    fields.add("config_file", "");
    fields.add("io_threads", server.worker_stats().len());
    for (number, address) in server.addresses().iter().enumerate() {
        fields.add(
            &format!("listener{number}"),
            format_args!("name=tcp,bind={},port={}", address.ip(), address.port()),
        );
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

pub(super) fn clients(server: &Server, fields: &mut Fields) {
    let clients = server.clients().list();
    let buffered_input = clients.iter().map(|client| client.buffered_input.load(Ordering::Relaxed));
    let buffered_output = clients.iter().map(|client| client.waiting_output());
    fields.add("connected_clients", clients.len());
    fields.add("cluster_connections", 0);
    fields.add("maxclients", server.configuration().max_clients);
    fields.add("client_recent_max_input_buffer", buffered_input.max().unwrap_or(0));
    fields.add("client_recent_max_output_buffer", buffered_output.max().unwrap_or(0));
    let blocked = server.blocked_clients.load(Ordering::Relaxed);
    fields.add("blocked_clients", blocked + server.clients().count(State::POSTPONED));
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

pub(super) fn memory(server: &Server, fields: &mut Fields) {
    let memory = server.memory();
    let samples = server.samples();
    let configuration = server.configuration();
    let allocator = memory.allocator;
    let with_human = |fields: &mut Fields, name: &str, bytes: u64| {
        fields.add(name, bytes);
        fields.add(&format!("{name}_human"), human(bytes));
    };
    with_human(fields, "used_memory", memory.used());
    with_human(fields, "used_memory_rss", memory.resident());
    with_human(fields, "used_memory_peak", memory.peak(samples.memory_peak));
    let percentage = |value: f64| format!("{value:.2}%");
    fields.add("used_memory_peak_perc", percentage(memory.peak_percentage(samples.memory_peak)));
    fields.add("used_memory_overhead", memory.overhead());
    fields.add("used_memory_startup", samples.memory_at_start);
    with_human(fields, "used_memory_dataset", memory.dataset);
    let dataset_percentage = memory.dataset_percentage(samples.memory_at_start);
    fields.add("used_memory_dataset_perc", percentage(dataset_percentage));
    fields.add("allocator_allocated", allocator.allocated);
    fields.add("allocator_active", allocator.active);
    fields.add("allocator_resident", allocator.resident);
    fields.add("slab_slot_bytes", memory.slabs.slot_bytes);
    fields.add("slab_page_bytes", memory.slabs.page_bytes);
    if let Some(bytes) = system_memory() {
        with_human(fields, "total_system_memory", bytes);
    }
    fields.add_all([("used_memory_lua", 0), ("used_memory_functions", 0), ("used_memory_scripts", 0)]);
    fields.add_all([("number_of_cached_scripts", 0), ("number_of_functions", 0), ("number_of_libraries", 0)]);
    with_human(fields, "maxmemory", configuration.max_memory);
    fields.add("maxmemory_policy", configuration.max_memory_policy.name());
    for (ratio, bytes, cost) in [
        ("allocator_frag_ratio", "allocator_frag_bytes", memory.allocator_fragmentation()),
        ("allocator_rss_ratio", "allocator_rss_bytes", memory.allocator_overhead()),
        ("mem_fragmentation_ratio", "mem_fragmentation_bytes", memory.fragmentation()),
    ] {
        fields.add(ratio, format_args!("{:.2}", cost.ratio()));
        fields.add(bytes, cost.bytes());
    }
    fields.add_all([
        ("mem_not_counted_for_evict", 0),
        ("mem_replication_backlog", 0),
        ("mem_clients_slaves", 0),
    ]);
    fields.add("mem_clients_normal", server.clients().buffered_bytes());
    fields.add_all([("mem_cluster_links", 0), ("mem_aof_buffer", 0)]);
    fields.add("mem_allocator", server.allocator().name);
}

/// Bytes of physical memory of the machine, if the system tells.
fn system_memory() -> Option<u64> {
    // SAFETY: sysconf reads nothing of ours and returns a number; -1 says that it does not know.
    let (pages, page_bytes) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(page_bytes).ok()?)
}

pub(super) fn cpu(_server: &Server, fields: &mut Fields) {
    let own = process_times(libc::RUSAGE_SELF);
    let children = process_times(libc::RUSAGE_CHILDREN);
    for (name, seconds) in [
        ("used_cpu_sys", own.system),
        ("used_cpu_user", own.user),
        ("used_cpu_sys_children", children.system),
        ("used_cpu_user_children", children.user),
    ] {
        fields.add(name, format_args!("{seconds:.6}"));
    }
}

struct ProcessTimes {
    user: f64,
    system: f64,
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
