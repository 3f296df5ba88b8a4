//! `snugly bench server`: throughput, latency and CPU time of a server under load.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::at_least_one;
use super::keys::{KeyTraffic, Tally};
use super::load::{Outcome, Pressure, Run, Stop};
use super::process;
use super::report::{Column, Report};
use super::values::Source;
use super::workload::{Dataset, Distribution, Draw, Plan};
use crate::client::{Client, Target};
use crate::interrupt::Interrupt;

/// Requests that a connection sends at once while the keys are written before a test, and read back after it.
const FILL_PIPELINE: usize = 32;

/// Options of `snugly bench server`.
#[derive(Args, Debug)]
pub struct Options {
    /// Address of the server: redis://[[user]:password@]host[:port][/database]
    #[arg(long, default_value = "redis://127.0.0.1:7684")]
    url: Target,

    /// Tests to run, one after the other; get and mixed write all keys first
    #[arg(long, value_delimiter = ',', default_value = "set,get")]
    tests: Vec<Test>,

    /// Share of reads in the test mixed
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u32).range(0..=100))]
    read_percent: u32,

    /// Number of connections
    #[arg(long, short, default_value_t = 50, value_parser = at_least_one)]
    connections: usize,

    /// Requests that a connection sends before it waits for their replies
    #[arg(long, short = 'P', default_value_t = 1, value_parser = at_least_one)]
    pipeline: usize,

    /// Requests of each test
    #[arg(long, short = 'n', default_value_t = 100_000, conflicts_with = "duration")]
    requests: u64,

    /// Seconds of each test, instead of a number of requests
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,

    /// Threads of the load generator
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    threads: usize,

    /// Number of keys
    #[arg(long, short = 'r', default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=999_999_999_999))]
    keys: u64,

    /// Prefix of keys; twelve digits follow
    #[arg(long, default_value = "key:")]
    key_prefix: String,

    /// Distribution of the keys of requests: uniform, zipf or zipf:THETA
    #[arg(long, default_value = "uniform")]
    distribution: Distribution,

    #[command(flatten)]
    values: Source,

    /// Read and compare every key afterwards; missing or wrong values are an error
    #[arg(long)]
    verify: bool,

    /// Process of the server, for its CPU time where INFO does not have it
    #[arg(long)]
    pid: Option<u32>,

    /// Name of the server in the results [default: its name in INFO]
    #[arg(long)]
    label: Option<String>,

    /// Append the results to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Test {
    /// Writes only
    Set,
    /// Reads only
    Get,
    /// Reads and writes, see --read-percent
    Mixed,
}

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    Column { name: "server", title: Some("server") },
    Column { name: "test", title: Some("test") },
    Column { name: "connections", title: None },
    Column { name: "pipeline", title: None },
    Column { name: "threads", title: None },
    Column { name: "keys", title: None },
    Column { name: "distribution", title: None },
    Column { name: "values", title: None },
    Column { name: "value_bytes", title: None },
    Column { name: "requests", title: Some("requests") },
    Column { name: "errors", title: None },
    Column { name: "misses", title: Some("misses") },
    Column { name: "seconds", title: Some("seconds") },
    Column { name: "requests_per_second", title: Some("requests/s") },
    Column { name: "server_cpu_us_per_request", title: Some("CPU µs/req") },
    Column { name: "p50_us", title: Some("p50 µs") },
    Column { name: "p95_us", title: Some("p95 µs") },
    Column { name: "p99_us", title: Some("p99 µs") },
    Column { name: "p99_9_us", title: Some("p99.9 µs") },
    Column { name: "max_us", title: Some("max µs") },
];

/// Runs the tests and prints the results.
pub fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::on_interrupt()?;
    let mut control = Client::connect(&options.url)?;
    let label = match &options.label {
        Some(label) => label.clone(),
        None => control.server_name()?,
    };
    let dataset = Dataset::new(options.keys, &options.key_prefix, &options.values.open()?);
    println!(
        "{label} at {}: {} connections, pipeline {}, {} keys ({}), values {} of {:.0} bytes on average",
        options.url,
        options.connections,
        options.pipeline,
        options.keys,
        options.distribution,
        options.values.name(),
        dataset.value_bytes(),
    );
    let mut report = Report::new(COLUMNS);
    let mut filled = false;
    for &test in &options.tests {
        if test != Test::Set && !filled {
            sweep(options, &interrupt, &dataset, false)?;
            filled = true;
        }
        if interrupt.is_set() {
            break;
        }
        let before = cpu_time(options, &mut control)?;
        let (outcome, tally) = measure(options, &interrupt, &dataset, test)?;
        let after = cpu_time(options, &mut control)?;
        let cpu = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        report.push(row(options, &label, test, &dataset, &outcome, &tally, cpu));
    }
    report.print();
    if let Some(path) = &options.csv {
        report.append_csv(path)?;
    }
    if interrupt.is_set() {
        eprintln!(
            "Ctrl-C: this is what was measured until then{}",
            if options.verify { ", and nothing was read back" } else { "" }
        );
        return Ok(());
    }
    if options.verify {
        if !filled {
            sweep(options, &interrupt, &dataset, false)?;
        }
        let tally = sweep(options, &interrupt, &dataset, true)?;
        ensure!(tally.misses == 0, "{} of {} keys have lost their value", tally.misses, options.keys);
        println!("all {} values read back as written", options.keys);
    }
    Ok(())
}

/// The server's CPU time so far: from INFO, else from its process if that is known.
fn cpu_time(options: &Options, control: &mut Client) -> Result<Option<Duration>> {
    match (process::cpu_time(control)?, options.pid) {
        (Some(time), _) => Ok(Some(time)),
        (None, Some(pid)) => process::cpu_time_of(pid).map(Some),
        (None, None) => Ok(None),
    }
}

fn measure(
    options: &Options,
    interrupt: &Interrupt,
    dataset: &Dataset,
    test: Test,
) -> Result<(Outcome, Tally)> {
    let read_percent = match test {
        Test::Set => 0,
        Test::Get => 100,
        Test::Mixed => options.read_percent,
    };
    let run = Run {
        target: &options.url,
        pressure: Pressure { connections: options.connections, pipeline: options.pipeline },
        stop: match options.duration {
            Some(seconds) => Stop::After(Duration::try_from_secs_f64(seconds)?),
            None => Stop::Requests(options.requests),
        },
        interrupt,
    };
    let plan = Plan::Mix { distribution: options.distribution, read_percent };
    execute(options, &run, dataset, plan, test_name(test))
}

/// Writes or reads every key once.
fn sweep(options: &Options, interrupt: &Interrupt, dataset: &Dataset, read: bool) -> Result<Tally> {
    let run = Run {
        target: &options.url,
        pressure: Pressure { connections: options.connections.min(8), pipeline: FILL_PIPELINE },
        stop: Stop::Requests(options.keys),
        interrupt,
    };
    let name = if read { "read back" } else { "fill" };
    execute(options, &run, dataset, Plan::Sweep { read }, name).map(|(_, tally)| tally)
}

/// Errors of the server and wrong values end the benchmark.
fn execute(
    options: &Options,
    run: &Run<'_>,
    dataset: &Dataset,
    plan: Plan,
    name: &'static str,
) -> Result<(Outcome, Tally)> {
    let threads = options.threads.min(run.pressure.connections) as u64;
    let seed = options.values.seed;
    let traffic = |thread| KeyTraffic {
        dataset,
        draw: Draw::new(plan, dataset.keys, seed, thread, threads),
        tally: Tally::default(),
    };
    let (outcome, used) = run.execute(name, (0..threads).map(traffic).collect())?;
    let tally = Tally::of(used);
    tally.check(outcome.requests)?;
    Ok((outcome, tally))
}

fn test_name(test: Test) -> &'static str {
    match test {
        Test::Set => "set",
        Test::Get => "get",
        Test::Mixed => "mixed",
    }
}

fn row(
    options: &Options,
    label: &str,
    test: Test,
    dataset: &Dataset,
    outcome: &Outcome,
    tally: &Tally,
    cpu: Option<Duration>,
) -> Vec<String> {
    let test = match test {
        Test::Mixed => format!("mixed {} % reads", options.read_percent),
        other => test_name(other).to_owned(),
    };
    vec![
        label.to_owned(),
        test,
        options.connections.to_string(),
        options.pipeline.to_string(),
        options.threads.to_string(),
        options.keys.to_string(),
        options.distribution.to_string(),
        options.values.name(),
        format!("{:.0}", dataset.value_bytes()),
        outcome.requests.to_string(),
        tally.errors.to_string(),
        tally.misses.to_string(),
        format!("{:.3}", outcome.elapsed.as_secs_f64()),
        outcome.rate(),
        outcome.cpu_each(cpu),
        outcome.percentile(50.0),
        outcome.percentile(95.0),
        outcome.percentile(99.0),
        outcome.percentile(99.9),
        outcome.percentile(100.0),
    ]
}
