//! MEMORY: what keys take, what the process takes, and what is wrong with that.

use std::sync::atomic::Ordering;

use snugly_protocol::resp::Args;

use super::options::{integer, is};
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, SUBCOMMAND_KEY, command, container};
use crate::memory::{Cost, Memory, ratio};
use crate::samples::Samples;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("memory", &[
        command("doctor", 2, Flags::NONE, NO_KEYS, doctor),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("malloc-stats", 2, Flags::LOADING, NO_KEYS, malloc_stats),
        command("purge", 2, Flags::LOADING, NO_KEYS, purge),
        command("stats", 2, Flags::NONE, NO_KEYS, stats),
        command("usage", -3, Flags::READONLY, SUBCOMMAND_KEY, usage),
    ]),
];

fn usage(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let mut options = args.from(3).iter();
    while let Some(option) = options.next() {
        let samples = options.next().filter(|_| is(option, "SAMPLES")).ok_or(Failure::SYNTAX)?;
        if integer(samples)? < 0 {
            return Err(Failure::SYNTAX);
        }
    }
    match context.session.peek(context.client.database, &args[2])? {
        Some(value) => context.replies.integer(value.memory() as i64),
        None => context.replies.null(),
    }
    Ok(Reply::Now)
}

/// A stat of MEMORY STATS.
enum Stat {
    Bytes(u64),
    Difference(i64),
    Ratio(f64),
}

fn stats(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let stats = memory_stats(context);
    context.replies.map(stats.len());
    for (name, stat) in stats {
        context.replies.bulk(name.as_bytes());
        match stat {
            Stat::Bytes(bytes) => context.replies.integer(bytes as i64),
            Stat::Difference(bytes) => context.replies.integer(bytes),
            Stat::Ratio(ratio) => context.replies.double(ratio),
        }
    }
    Ok(Reply::Now)
}

fn memory_stats(context: &Context<'_>) -> Vec<(&'static str, Stat)> {
    use Stat::{Bytes, Difference, Ratio};
    let memory = context.server.memory();
    let Samples { memory_at_start, memory_peak, .. } = context.server.samples();
    let store = context.server.store();
    // A disk that cannot be read is reported where it is read for data.
    let stats = |database| store.database_stats(database).unwrap_or_default();
    let keys: usize = (0..store.databases()).map(|database| stats(database).keys).sum();
    let (allocator, grown) = (memory.allocator, memory.grown_since(memory_at_start));
    let (process, fragmentation, overhead) =
        (memory.fragmentation(), memory.allocator_fragmentation(), memory.allocator_overhead());
    vec![
        ("peak.allocated", Bytes(memory.peak(memory_peak))),
        ("total.allocated", Bytes(memory.used())),
        ("startup.allocated", Bytes(memory_at_start)),
        ("replication.backlog", Bytes(0)),
        ("replicas.repl.buffer", Bytes(0)),
        ("clients.slaves", Bytes(0)),
        ("clients.normal", Bytes(context.server.client_memory() as u64)),
        ("cluster.links", Bytes(0)),
        ("aof.buffer", Bytes(0)),
        ("lua.caches", Bytes(0)),
        ("functions.caches", Bytes(0)),
        ("overhead.total", Bytes(memory.overhead())),
        ("keys.count", Bytes(keys as u64)),
        ("keys.bytes-per-key", Bytes(grown.checked_div(keys as u64).unwrap_or(0))),
        ("dataset.bytes", Bytes(memory.dataset)),
        ("dataset.percentage", Ratio(memory.dataset_percentage(memory_at_start))),
        ("peak.percentage", Ratio(memory.peak_percentage(memory_peak))),
        ("allocator.allocated", Bytes(allocator.allocated)),
        ("allocator.active", Bytes(allocator.active)),
        ("allocator.resident", Bytes(allocator.resident)),
        ("allocator-fragmentation.ratio", Ratio(fragmentation.ratio())),
        ("allocator-fragmentation.bytes", Difference(fragmentation.bytes())),
        ("allocator-rss.ratio", Ratio(overhead.ratio())),
        ("allocator-rss.bytes", Difference(overhead.bytes())),
        ("fragmentation", Ratio(process.ratio())),
        ("fragmentation.bytes", Difference(process.bytes())),
    ]
}

/// Below this there is nothing to say, in bytes.
const TOO_LITTLE: u64 = 5 << 20;
/// Losses below this are not worth a report, in bytes.
const WORTH_A_REPORT: i64 = 10 << 20;
/// Bytes that a client's buffers may hold on average.
const BIG_BUFFERS: u64 = 200 << 10;

const EMPTY: &str = "Hi Sam, this instance is empty or is using very little memory, my issues detector can't be used in these conditions. Please, leave for your mission on Earth and fill it with some data. The new Sam and I will be back to our programming as soon as I finished rebooting.\n";
const NO_ISSUES: &str = "Hi Sam, I can't find any memory issue in your instance. I can only account for what occurs on this base.\n";
const ISSUES: &str = "Sam, I detected a few issues in this Valkey instance memory implants:\n\n";
const PEAK: &str = " * Peak memory: In the past this instance used more than 150% the memory that is currently using. The allocator is normally not able to release memory after a peak, so you can expect to see a big fragmentation ratio, however this is actually harmless and is only due to the memory peak, and if the Valkey instance Resident Set Size (RSS) is currently bigger than expected, the memory will be used as soon as you fill the Valkey instance with more data. If the memory peak was only occasional and you want to try to reclaim memory, please try the MEMORY PURGE command, otherwise the only other option is to shutdown and restart the instance.\n\n";
const FRAGMENTATION: &str = " * High total RSS: This instance has a memory fragmentation and RSS overhead greater than 1.4 (this means that the Resident Set Size of the Valkey process is much larger than the sum of the logical allocations Valkey performed). This problem is usually due either to a large peak memory (check if there is a peak memory entry above in the report) or may result from a workload that causes the allocator to fragment memory a lot. If the problem is a large peak memory, then there is no issue. Otherwise, make sure you are using the Jemalloc allocator and not the default libc malloc. Note: The currently used allocator is \"";
const ALLOCATOR_FRAGMENTATION: &str = " * High allocator fragmentation: This instance has an allocator external fragmentation greater than 1.1. This problem is usually due either to a large peak memory (check if there is a peak memory entry above in the report) or may result from a workload that causes the allocator to fragment memory a lot. You can try enabling 'activedefrag' config option.\n\n";
const ALLOCATOR_RSS: &str = " * High allocator RSS overhead: This instance has an RSS memory overhead is greater than 1.1 (this means that the Resident Set Size of the allocator is much larger than the sum what the allocator actually holds). This problem is usually due to a large peak memory (check if there is a peak memory entry above in the report), you can try the MEMORY PURGE command to reclaim it.\n\n";
const CLIENT_BUFFERS: &str = " * Big client buffers: The clients output buffers in this instance are greater than 200K per client (on average). This may result from different causes, like Pub/Sub clients subscribed to channels bot not receiving data fast enough, so that data piles on the Valkey instance output buffer, or clients sending commands with large replies or very large sequences of commands in the same pipeline. Please use the CLIENT LIST command in order to investigate the issue if it causes problems in your instance, or to understand better why certain clients are using a big amount of memory.\n\n";
const FAREWELL: &str = "I'm here to keep you safe, Sam. I want to help you.\n";

fn doctor(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let server = context.server;
    let clients = server.clients().len().max(1) as u64;
    let patient = Patient {
        memory: server.memory(),
        peak: server.samples().memory_peak,
        buffered_per_client: server.client_memory() as u64 / clients,
        allocator: server.allocator().name,
    };
    context.replies.verbatim(b"txt", patient.report().as_bytes());
    Ok(Reply::Now)
}

/// The stats that MEMORY DOCTOR checks.
struct Patient {
    memory: Memory,
    peak: u64,
    buffered_per_client: u64,
    allocator: &'static str,
}

impl Patient {
    /// The report, in Valkey's words; what it says about replicas and scripts has no meaning here.
    fn report(&self) -> String {
        let memory = &self.memory;
        if memory.used() < TOO_LITTLE {
            return EMPTY.to_owned();
        }
        let is_too_much = |cost: Cost, most: f64| cost.ratio() > most && cost.bytes() > WORTH_A_REPORT;
        let fragmentation = format!("{FRAGMENTATION}{}\".\n\n", self.allocator);
        let issues: String = [
            (ratio(self.peak, memory.used()) > 1.5, PEAK),
            (is_too_much(memory.fragmentation(), 1.4), &fragmentation),
            (is_too_much(memory.allocator_fragmentation(), 1.1), ALLOCATOR_FRAGMENTATION),
            (is_too_much(memory.allocator_overhead(), 1.1), ALLOCATOR_RSS),
            (self.buffered_per_client > BIG_BUFFERS, CLIENT_BUFFERS),
        ]
        .into_iter()
        .filter_map(|(found, text)| found.then_some(text))
        .collect();
        if issues.is_empty() { NO_ISSUES.to_owned() } else { [ISSUES, &issues, FAREWELL].concat() }
    }
}

fn malloc_stats(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let report = (context.server.allocator().report)();
    context.replies.verbatim(b"txt", report.as_bytes());
    Ok(Reply::Now)
}

fn purge(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.session.give_back();
    context.server.purges.fetch_add(1, Ordering::Relaxed);
    context.server.store().forget_decoded_nodes();
    (context.server.allocator().purge)();
    context.ok()
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AllocatorStats;

    const MEGABYTE: u64 = 1 << 20;

    fn report(allocated: u64, active: u64, resident: u64, peak: u64, buffered_per_client: u64) -> String {
        let allocator = AllocatorStats {
            allocated: allocated * MEGABYTE,
            active: active * MEGABYTE,
            resident: resident * MEGABYTE,
        };
        let memory = Memory { allocator, ..Memory::default() };
        Patient { memory, peak: peak * MEGABYTE, buffered_per_client, allocator: "jemalloc" }.report()
    }

    #[test]
    fn the_doctor_finds_what_is_wrong_and_nothing_else() {
        assert_eq!(report(4, 100, 200, 900, 0), EMPTY);
        assert_eq!(report(100, 105, 110, 120, 0), NO_ISSUES);
        assert_eq!(report(100, 105, 110, 151, 0), [ISSUES, PEAK, FAREWELL].concat());
        assert_eq!(report(100, 120, 125, 100, 0), [ISSUES, ALLOCATOR_FRAGMENTATION, FAREWELL].concat());
        assert_eq!(report(100, 109, 125, 100, 0), [ISSUES, ALLOCATOR_RSS, FAREWELL].concat());
        assert_eq!(report(100, 105, 110, 100, 300_000), [ISSUES, CLIENT_BUFFERS, FAREWELL].concat());
        let fragmented = report(100, 105, 150, 100, 0);
        assert!(fragmented.contains("Note: The currently used allocator is \"jemalloc\".\n"));
    }
}
