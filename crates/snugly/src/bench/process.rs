//! Resources that a server has used: CPU time and memory.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::client::Client;

/// CPU time that the server has used so far, user and system, by its own account (`INFO cpu`).
///
/// `None` if it does not say.
pub fn cpu_time(client: &mut Client) -> Result<Option<Duration>> {
    Ok(cpu_time_told(&client.info()?, ["used_cpu_user", "used_cpu_sys"]))
}

/// CPU time in what a server tells of itself: the sum of two fields in seconds.
pub fn cpu_time_told(told: &HashMap<String, String>, fields: [&str; 2]) -> Option<Duration> {
    let [user, system] = fields.map(|field| told.get(field)?.parse::<f64>().ok());
    Duration::try_from_secs_f64(user? + system?).ok()
}

/// CPU time that a process of this machine has used so far, in steps of the kernel's clock tick (10 ms).
pub fn cpu_time_of(pid: u32) -> Result<Duration> {
    const TICKS_PER_SECOND: f64 = 100.0; // USER_HZ, the same on all Linux platforms that Rust supports
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // proc_pid_stat(5): fields 14 and 15, counted from behind the name, which may hold spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>();
    Ok(Duration::from_secs_f64(ticks / TICKS_PER_SECOND))
}

/// Anonymous resident memory of a process in bytes: its heap, not its program text or mapped files.
pub fn anonymous_memory(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let rollup = fs::read_to_string(&path).with_context(|| {
        format!("cannot read {path}: is the server on this machine, and are you its user?")
    })?;
    rollup
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"))
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|kibibytes| kibibytes.trim().parse::<u64>().ok())
        .map(|kibibytes| kibibytes * 1024)
        .with_context(|| format!("{path} does not tell the anonymous memory"))
}

/// The process's anonymous memory once it no longer changes by more than a thousandth.
pub fn settled_memory(pid: u32) -> Result<u64> {
    let mut last = anonymous_memory(pid)?;
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(500));
        let now = anonymous_memory(pid)?;
        if now.abs_diff(last) * 1000 <= now {
            return Ok(now);
        }
        last = now;
    }
    bail!("the memory of process {pid} does not come to rest")
}
