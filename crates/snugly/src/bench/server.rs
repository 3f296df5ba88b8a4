//! `snugly bench server`: throughput, latency and CPU time of a server under load.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::at_least_one;
use super::client::{Scheme, Target};
use super::control::Control;
use super::keys::{KeyTraffic, Tally};
use super::load::{Outcome, Pressure, Run, Stop};
use super::process;
use super::protocol::Keys;
use super::report::{Column, Report};
use super::values::Source;
use super::workload::{Dataset, Distribution, Draw, Plan};
use crate::interrupt::Interrupt;

/// Requests that a connection sends at once while the keys are written before a test, and read back after it.
const FILL_PIPELINE: usize = 32;

/// Options of `snugly bench server`.
#[derive(Args, Debug)]
pub struct Options {
    /// Address of the server: redis://[[user]:password@]host[:port][/database], or memcached://[user:password@]host[:port]
    /// [default: redis://127.0.0.1:7684, or memcached://127.0.0.1:11211 with --protocol memcached]
    #[arg(long)]
    url: Option<Target>,

    /// Protocol to speak [default: that of the URL]
    #[arg(long)]
    protocol: Option<Scheme>,

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

    /// Keys that a read asks for at once, with MGET or memcached's get; it counts as one request
    #[arg(long, value_name = "KEYS", default_value_t = 1, value_parser = at_least_one)]
    keys_per_get: usize,

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

    /// Write nothing before a test: the keys are there, as an earlier run with the same keys and values has left them
    #[arg(long)]
    filled: bool,

    #[command(flatten)]
    values: Source,

    /// Read and compare every key afterwards; missing or wrong values are an error
    #[arg(long)]
    verify: bool,

    /// Process of the server, for its CPU time where the server does not tell it
    #[arg(long)]
    pid: Option<u32>,

    /// Name of the server in the results [default: what it calls itself]
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
    Column { name: "protocol", title: None },
    Column { name: "test", title: Some("test") },
    Column { name: "connections", title: None },
    Column { name: "pipeline", title: None },
    Column { name: "keys_per_get", title: None },
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

impl Options {
    /// The address, in the protocol that was asked for.
    fn target(&self) -> Result<Target> {
        let default = match self.protocol {
            Some(Scheme::Memcached) => "memcached://127.0.0.1:11211",
            Some(Scheme::Resp) | None => "redis://127.0.0.1:7684",
        };
        let target = self.url.clone().map_or_else(|| default.parse(), Ok)?;
        if let Some(protocol) = self.protocol {
            ensure!(
                protocol == target.scheme(),
                "the URL of {target} is one of {}, and --protocol says {protocol}: write {}://{target}, or leave \
                 --protocol out",
                target.scheme(),
                if protocol == Scheme::Memcached { "memcached" } else { "redis" },
            );
        }
        Ok(target)
    }
}

/// State that all tests of a run share.
struct Bench<'a> {
    options: &'a Options,
    target: Target,
    dataset: Dataset,
    interrupt: Interrupt,
}

/// Runs the tests and prints the results.
pub fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::on_interrupt()?;
    let target = options.target()?;
    let keys = Keys::new(target.scheme(), &options.key_prefix)?;
    let mut control = Control::connect(&target)?;
    let label = match &options.label {
        Some(label) => label.clone(),
        None => control.name()?,
    };
    let dataset = Dataset::new(options.keys, keys, &options.values.open()?);
    let bench = Bench { options, target, dataset, interrupt };
    println!(
        "{label} at {}: {} connections, pipeline {}, {} keys ({}){}, values {} of {:.0} bytes on average",
        bench.target,
        options.connections,
        options.pipeline,
        options.keys,
        options.distribution,
        if options.keys_per_get > 1 { format!(", {} a read", options.keys_per_get) } else { String::new() },
        options.values.name(),
        bench.dataset.value_bytes(),
    );
    let mut report = Report::new(COLUMNS);
    let mut filled = options.filled;
    for &test in &options.tests {
        if test != Test::Set && !filled {
            bench.sweep(false)?;
            filled = true;
        }
        if bench.interrupt.is_set() {
            break;
        }
        let before = bench.cpu_time(&mut control)?;
        let (outcome, tally) = bench.measure(test)?;
        let after = bench.cpu_time(&mut control)?;
        let cpu = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        report.push(bench.row(&label, test, &outcome, &tally, cpu));
    }
    report.print();
    if let Some(path) = &options.csv {
        report.append_csv(path)?;
    }
    if bench.interrupt.is_set() {
        eprintln!(
            "Ctrl-C: this is what was measured until then{}",
            if options.verify { ", and nothing was read back" } else { "" }
        );
        return Ok(());
    }
    if options.verify {
        if !filled {
            bench.sweep(false)?;
        }
        let tally = bench.sweep(true)?;
        ensure!(tally.misses == 0, "{} of {} keys have lost their value", tally.misses, options.keys);
        println!("all {} values read back as written", options.keys);
    }
    Ok(())
}

impl Bench<'_> {
    /// The server's CPU time so far: what it tells, else that of its process if that is known.
    fn cpu_time(&self, control: &mut Control) -> Result<Option<Duration>> {
        match (control.cpu_time()?, self.options.pid) {
            (Some(time), _) => Ok(Some(time)),
            (None, Some(pid)) => process::cpu_time_of(pid).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn measure(&self, test: Test) -> Result<(Outcome, Tally)> {
        let options = self.options;
        let read_percent = match test {
            Test::Set => 0,
            Test::Get => 100,
            Test::Mixed => options.read_percent,
        };
        let stop = match options.duration {
            Some(seconds) => Stop::After(Duration::try_from_secs_f64(seconds)?),
            None => Stop::Requests(options.requests),
        };
        let pressure = Pressure { connections: options.connections, pipeline: options.pipeline };
        let (distribution, keys_per_get) = (options.distribution, options.keys_per_get);
        self.execute(pressure, stop, Plan::Mix { distribution, read_percent, keys_per_get }, test_name(test))
    }

    /// Writes or reads every key once.
    fn sweep(&self, read: bool) -> Result<Tally> {
        let pressure = Pressure { connections: self.options.connections.min(8), pipeline: FILL_PIPELINE };
        let name = if read { "read back" } else { "fill" };
        let stop = Stop::Requests(self.options.keys);
        self.execute(pressure, stop, Plan::Sweep { read }, name).map(|(_, tally)| tally)
    }

    /// Errors of the server and wrong values end the benchmark.
    fn execute(
        &self,
        pressure: Pressure,
        stop: Stop,
        plan: Plan,
        name: &'static str,
    ) -> Result<(Outcome, Tally)> {
        let run = Run { target: &self.target, pressure, stop, interrupt: &self.interrupt };
        let threads = self.options.threads.min(pressure.connections) as u64;
        let seed = self.options.values.seed;
        let traffic = |thread| KeyTraffic {
            dataset: &self.dataset,
            draw: Draw::new(plan, self.dataset.keys, seed, thread, threads),
            tally: Tally::default(),
        };
        let (outcome, used) = run.execute(name, (0..threads).map(traffic).collect())?;
        let tally = Tally::of(used);
        tally.check(outcome.requests)?;
        Ok((outcome, tally))
    }

    fn row(
        &self,
        label: &str,
        test: Test,
        outcome: &Outcome,
        tally: &Tally,
        cpu: Option<Duration>,
    ) -> Vec<String> {
        let options = self.options;
        let test = match test {
            Test::Mixed => format!("mixed {} % reads", options.read_percent),
            other => test_name(other).to_owned(),
        };
        vec![
            label.to_owned(),
            self.target.scheme().to_string(),
            test,
            options.connections.to_string(),
            options.pipeline.to_string(),
            options.keys_per_get.to_string(),
            options.threads.to_string(),
            options.keys.to_string(),
            options.distribution.to_string(),
            options.values.name(),
            format!("{:.0}", self.dataset.value_bytes()),
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
}

fn test_name(test: Test) -> &'static str {
    match test {
        Test::Set => "set",
        Test::Get => "get",
        Test::Mixed => "mixed",
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn target(arguments: &[&str]) -> Result<String> {
        let command = Options::augment_args(Command::new("server").no_binary_name(true));
        let options = Options::from_arg_matches(&command.try_get_matches_from(arguments)?)?;
        options.target().map(|target| format!("{} {target}", target.scheme()))
    }

    #[test]
    fn the_protocol_is_that_of_the_url_or_the_url_that_of_the_protocol() {
        for (arguments, expected) in [
            (&[][..], "resp 127.0.0.1:7684"),
            (&["--protocol", "memcached"], "memcached 127.0.0.1:11211"),
            (&["--url", "memcached://host:7000"], "memcached host:7000"),
            (&["--url", "memcached://host", "--protocol", "memcached"], "memcached host:11211"),
        ] {
            assert_eq!(target(arguments).unwrap(), expected, "{arguments:?}");
        }
        let error = target(&["--url", "redis://host:1", "--protocol", "memcached"]).unwrap_err().to_string();
        assert!(error.contains("write memcached://host:1, or leave --protocol out"), "{error}");
    }
}
