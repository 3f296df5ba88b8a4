//! LATENCY: what took too long and when, and how long commands take.

use hdrhistogram::Histogram;
use snugly_protocol::resp::{Args, ReplyBuffer};

use super::options::is;
use super::registry::{as_c_string, reply_help};
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, REGISTRY, Reply, command, container};
use crate::command_log::Kind;
use crate::counters::latencies;
use crate::latency::SlowLog;

const LATENCIES: Flags = Flags::ADMINISTRATION;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("latency", &[
        command("doctor", 2, LATENCIES, NO_KEYS, doctor),
        command("graph", 3, LATENCIES, NO_KEYS, graph),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("histogram", -2, LATENCIES, NO_KEYS, histogram),
        command("history", 3, LATENCIES, NO_KEYS, history),
        command("latest", 2, LATENCIES, NO_KEYS, latest),
        command("reset", -2, LATENCIES, NO_KEYS, reset),
    ]),
];

fn latest(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let events = context.server.latency().events();
    let replies = &mut context.replies;
    replies.array(events.len());
    for (event, series) in events {
        let last = series.samples.back().map_or((0, 0), |sample| (sample.at, sample.milliseconds));
        replies.array(6);
        replies.bulk(event.name().as_bytes());
        let numbers = [last.0, last.1, series.longest, series.sum, series.count];
        numbers.iter().for_each(|&number| replies.integer(number as i64));
    }
    Ok(Reply::Now)
}

fn history(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let samples =
        context.server.latency().event(&args[2]).map(|(_, series)| series.samples).unwrap_or_default();
    let replies = &mut context.replies;
    replies.array(samples.len());
    for sample in samples {
        replies.array(2);
        replies.integer(sample.at as i64);
        replies.integer(sample.milliseconds as i64);
    }
    Ok(Reply::Now)
}

fn reset(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let names = args.from(2);
    let asked = |event: &str| names.is_empty() || names.iter().any(|name| is(name, event));
    context.integer(context.server.latency().reset(asked) as i64)
}

fn graph(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (event, series) = context.server.latency().event(&args[2]).ok_or_else(|| {
        Failure::new(
            [b"ERR No samples available for event '", as_c_string(&args[2], usize::MAX), b"'"].concat(),
        )
    })?;
    context.replies.verbatim(b"txt", series.graph(event).as_bytes());
    Ok(Reply::Now)
}

fn doctor(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let slow_log = SlowLog { threshold: context.server.command_log().threshold(Kind::Slow) };
    let report = context.server.latency().report(slow_log);
    context.replies.verbatim(b"txt", report.as_bytes());
    Ok(Reply::Now)
}

fn histogram(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let names = args.from(2);
    let workers = context.server.worker_stats();
    // A container stands for its subcommands.
    let asked = |full_name: &str| {
        let container = full_name.split('|').next().unwrap_or(full_name);
        names.is_empty() || names.iter().any(|name| is(name, full_name) || is(name, container))
    };
    let rows = REGISTRY.rows().iter().enumerate().filter(|(_, row)| asked(&row.full_name));
    let found: Vec<_> = rows
        .filter_map(|(place, row)| latencies(&workers, place).map(|latencies| (&row.full_name, latencies)))
        .collect();
    context.replies.map(found.len());
    for (full_name, latencies) in found {
        context.replies.bulk(full_name.as_bytes());
        reply_distribution(context.replies, &latencies);
    }
    Ok(Reply::Now)
}

fn reply_distribution(replies: &mut ReplyBuffer, latencies: &Histogram<u64>) {
    let distribution = distribution(latencies);
    replies.map(2);
    replies.bulk(b"calls");
    replies.integer(latencies.len() as i64);
    replies.bulk(b"histogram_usec");
    replies.map(distribution.len());
    for (microseconds, calls) in distribution {
        replies.integer(microseconds as i64);
        replies.integer(calls as i64);
    }
}

/// Number of calls that took so many microseconds or less, for powers of two of 1024 ns; none where no call is added.
/// The numbers of microseconds are Valkey's, whose histograms have the same precision.
fn distribution(latencies: &Histogram<u64>) -> Vec<(u64, u64)> {
    let mut distribution = Vec::new();
    let mut before = 0;
    let mut limit = 1024;
    while before < latencies.len() {
        let highest = latencies.highest_equivalent(limit);
        let calls = latencies.count_between(0, highest);
        if calls > before {
            distribution.push((highest / 1000, calls));
        }
        before = calls;
        limit *= 2;
    }
    distribution
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "latency")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_the_numbers_that_valkey_gives() {
        let mut latencies = Histogram::new(2).expect("two digits are a precision");
        for microseconds in [0, 1, 5, 20, 60, 100, 200, 1_000_000] {
            latencies.record((microseconds * 1000).max(1)).expect("a histogram grows");
        }
        assert_eq!(
            distribution(&latencies),
            [(1, 2), (8, 3), (33, 4), (66, 5), (132, 6), (264, 7), (1_082_130, 8)]
        );
        assert_eq!(distribution(&Histogram::new(2).expect("two digits are a precision")), []);
    }
}
