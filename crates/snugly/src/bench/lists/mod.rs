//! `snugly bench lists`: throughput, latency, CPU time and memory of a server whose keys hold long lists.

mod model;
mod traffic;

use std::io::{BufRead, Lines, StdinLock, stdin, stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command};

use super::at_least_one;
use super::client::{Client, Target};
use super::load::{Outcome, Pressure, Run, Stop};
use super::process;
use super::report::{Column, Report};
use super::values::Source;
use super::workload::Bulks;
use crate::interrupt::Interrupt;
use model::{End, Lists};
use traffic::{ListTraffic, Position, Request};

/// Requests that a connection sends at once while lists are filled.
const FILL_PIPELINE: usize = 32;

/// One row for each test.
#[derive(Debug)]
struct Test {
    name: &'static str,
    about: &'static str,
    request: Request,
    /// Of so many requests that are asked for one is sent: what takes longer is asked less often.
    divisor: u64,
}

#[rustfmt::skip]
const TESTS: &[Test] = &[
    Test { name: "fill-rpush", about: "RPUSH, pipelined, until all lists are full", request: Request::Fill(End::Tail), divisor: 1 },
    Test { name: "lindex-fixed", about: "LINDEX in the middle", request: Request::Index(MIDDLE), divisor: 1 },
    Test { name: "lindex-random", about: "LINDEX anywhere", request: Request::Index(Position::Random), divisor: 1 },
    Test { name: "lrange-fixed", about: "LRANGE of 100 elements, from two fifths on", request: Request::Range(Position::Fixed(400)), divisor: 5 },
    Test { name: "lrange-random", about: "LRANGE of 100 elements anywhere", request: Request::Range(Position::Random), divisor: 5 },
    Test { name: "lrange-all", about: "LRANGE 0 -1", request: Request::Whole, divisor: 100 },
    Test { name: "lset-fixed", about: "LSET in the middle", request: Request::Set(MIDDLE), divisor: 1 },
    Test { name: "lset-random", about: "LSET anywhere", request: Request::Set(Position::Random), divisor: 1 },
    Test { name: "lpush", about: "LPUSH on full lists", request: Request::Push(End::Head), divisor: 1 },
    Test { name: "rpush", about: "RPUSH on full lists", request: Request::Push(End::Tail), divisor: 1 },
    Test { name: "rpop", about: "RPOP", request: Request::Pop, divisor: 1 },
    Test { name: "fill-lpush", about: "LPUSH, pipelined, until all lists are full", request: Request::Fill(End::Head), divisor: 1 },
];
const MIDDLE: Position = Position::Fixed(500);
const FILL: &Test = &TESTS[0];
const READ_BACK: Test = Test { name: "read back", about: "", request: Request::ReadBack, divisor: 1 };

impl Test {
    fn fills(&self) -> bool {
        matches!(self.request, Request::Fill(_))
    }
}

/// Options of `snugly bench lists`.
#[derive(Args, Debug)]
pub struct Options {
    /// Address of the server: redis://[[user]:password@]host[:port][/database]
    #[arg(long, default_value = "redis://127.0.0.1:7684")]
    url: Target,

    /// Tests to run, one after the other [default: all]
    #[arg(long, value_delimiter = ',', value_parser = test_parser(), hide_possible_values = true)]
    tests: Vec<&'static Test>,

    /// Number of lists
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    lists: u32,

    /// Elements of a list
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    elements: u32,

    /// Prefix of keys; the number of the list follows
    #[arg(long, default_value = "snugly-bench:list:")]
    key_prefix: String,

    /// Connections, each with lists of its own: at most as many as lists
    #[arg(long, short, default_value_t = 50, value_parser = at_least_one)]
    connections: usize,

    /// Requests that a connection sends before it waits for their replies; 32 while lists are filled
    #[arg(long, short = 'P', default_value_t = 1, value_parser = at_least_one)]
    pipeline: usize,

    /// Requests of each test that fills no lists; LRANGE gets a fifth, of whole lists a hundredth
    #[arg(long, short = 'n', default_value_t = 100_000)]
    requests: u64,

    #[command(flatten)]
    values: Source,

    /// Process of the server, for its memory [default: reported by a server on this machine]
    #[arg(long)]
    pid: Option<u32>,

    /// Name of the server in the results [default: its name in INFO]
    #[arg(long)]
    label: Option<String>,

    /// Append the results to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Wait for a line on standard input before each test and before the final comparison, and print results as CSV, to
    /// measure servers in turn
    #[arg(long)]
    step: bool,
}

impl Options {
    /// Elements of all lists when they are full.
    fn all_elements(&self) -> u64 {
        u64::from(self.lists) * u64::from(self.elements)
    }
}

/// The options, with the tests below them.
pub fn options(command: Command) -> Command {
    let tests: String = TESTS.iter().map(|test| format!("\n  {:<14} {}", test.name, test.about)).collect();
    Options::augment_args(command)
        .mut_arg("generate", |arg| arg.default_value("events"))
        .mut_arg("value_size", |arg| arg.long("element-size").default_value("512"))
        .after_help(format!(
            "Tests:{tests}\n\nExisting lists under these keys are deleted before they are filled, and stay afterwards. If \
             the first test fills none, all are filled before it. Every element that is read is compared, and all lists \
             are at the end. Memory is reported if the first test filled lists."
        ))
}

fn test_parser() -> impl TypedValueParser<Value = &'static Test> {
    PossibleValuesParser::new(TESTS.iter().map(|test| PossibleValue::new(test.name)))
        .map(|name| TESTS.iter().find(|test| test.name == name).expect("clap knows no other names"))
}

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    Column { name: "server", title: Some("server") },
    Column { name: "test", title: Some("test") },
    Column { name: "connections", title: None },
    Column { name: "pipeline", title: None },
    Column { name: "lists", title: None },
    Column { name: "elements", title: None },
    Column { name: "values", title: None },
    Column { name: "element_bytes", title: None },
    Column { name: "requests", title: Some("requests") },
    Column { name: "seconds", title: Some("seconds") },
    Column { name: "requests_per_second", title: Some("requests/s") },
    Column { name: "server_cpu_us_per_request", title: Some("CPU µs/req") },
    Column { name: "p50_us", title: Some("p50 µs") },
    Column { name: "p99_us", title: Some("p99 µs") },
    Column { name: "max_us", title: Some("max µs") },
    Column { name: "given_bytes", title: Some("given bytes") },
    Column { name: "used_memory", title: Some("used_memory") },
    Column { name: "anonymous_bytes", title: Some("anonymous") },
];

/// Runs the tests and prints the results.
pub fn run(options: &Options) -> Result<()> {
    ensure!(
        options.connections <= options.lists as usize,
        "{} connections have less than one list each of {}: ask for fewer, or for more lists",
        options.connections,
        options.lists
    );
    let mut bench = Bench::new(options)?;
    let all: Vec<&Test> = TESTS.iter().collect();
    let tests = if options.tests.is_empty() { &all } else { &options.tests };
    let mut report = Report::new(COLUMNS);
    let mut steps = options.step.then(|| stdin().lock().lines());
    let mut is_first = true;
    for test in tests {
        if is_first && !test.fills() {
            bench.measure(FILL)?;
        }
        wait(&mut steps)?;
        report.push(if is_first && test.fills() { bench.measure_memory(test)? } else { bench.row(test)? });
        is_first = false;
        if options.step {
            report.write_last_csv(stdout())?;
        }
    }
    if !options.step {
        report.print();
    }
    if let Some(path) = &options.csv {
        report.append_csv(path)?;
    }
    wait(&mut steps)?;
    bench.measure(&READ_BACK).map(drop)
}

/// Waits for a line where there are steps.
fn wait(steps: &mut Option<Lines<StdinLock<'_>>>) -> Result<()> {
    if let Some(lines) = steps {
        lines.next().context("standard input has ended before the last step")??;
    }
    Ok(())
}

/// A server, and lists that are as they are there.
struct Bench<'a> {
    options: &'a Options,
    label: String,
    control: Client,
    lists: Lists,
}

impl<'a> Bench<'a> {
    fn new(options: &'a Options) -> Result<Self> {
        let mut control = Client::connect(&options.url)?;
        let label = match &options.label {
            Some(label) => label.clone(),
            None => control.server_name()?,
        };
        let (count, filled) = (options.lists as usize, options.elements as usize);
        let elements = Bulks::new(&options.values.open()?, options.all_elements());
        let lists = Lists::new(count, filled, &options.key_prefix, elements);
        Ok(Self { options, label, control, lists })
    }

    /// One test, and the server's CPU time for it if it tells that.
    fn measure(&mut self, test: &'static Test) -> Result<(Outcome, Option<Duration>)> {
        if test.fills() {
            self.clear()?;
        }
        let run = Run {
            target: &self.options.url,
            pressure: Pressure { connections: self.options.connections, pipeline: self.pipeline(test) },
            stop: Stop::Requests(match test.request {
                Request::Fill(_) => self.options.all_elements(),
                Request::ReadBack => self.options.lists.into(),
                _ => (self.options.requests / test.divisor).max(1),
            }),
            interrupt: &Interrupt::default(),
        };
        let (connections, seed) = (self.options.connections, self.options.values.seed);
        let traffic = ListTraffic::new(test.name, test.request, &mut self.lists, connections, seed);
        let before = process::cpu_time(&mut self.control)?;
        let (outcome, _) = run.execute(test.name, vec![traffic])?;
        let after = process::cpu_time(&mut self.control)?;
        Ok((outcome, after.zip(before).map(|(after, before)| after.saturating_sub(before))))
    }

    fn pipeline(&self, test: &Test) -> usize {
        if test.fills() { FILL_PIPELINE } else { self.options.pipeline }
    }

    fn clear(&mut self) -> Result<()> {
        self.lists.clear();
        for list in 0..self.lists.count() {
            self.control.command(&["DEL", &self.lists.key(list)])?;
        }
        Ok(())
    }

    /// Results without those of memory.
    fn row(&mut self, test: &'static Test) -> Result<Vec<String>> {
        let (outcome, cpu) = self.measure(test)?;
        Ok([self.cells(test, &outcome, cpu), vec!["n/a".to_owned(); 3]].concat())
    }

    /// Results of filling a server, with the bytes of all elements and by how much its memory grew.
    fn measure_memory(&mut self, test: &'static Test) -> Result<Vec<String>> {
        let empty = self.memory()?;
        let (outcome, cpu) = self.measure(test)?;
        let full = self.memory()?;
        let grown = |of: fn(&Memory) -> Option<u64>| {
            let bytes = of(&full).zip(of(&empty)).map(|(full, empty)| full.saturating_sub(empty));
            bytes.map_or("n/a".to_owned(), |bytes| bytes.to_string())
        };
        let memory = vec![
            self.lists.given_bytes().to_string(),
            grown(|memory| memory.used),
            grown(|memory| memory.anonymous),
        ];
        Ok([self.cells(test, &outcome, cpu), memory].concat())
    }

    fn cells(&self, test: &Test, outcome: &Outcome, cpu: Option<Duration>) -> Vec<String> {
        vec![
            self.label.clone(),
            test.name.to_owned(),
            self.options.connections.to_string(),
            self.pipeline(test).to_string(),
            self.options.lists.to_string(),
            self.options.elements.to_string(),
            self.options.values.name(),
            format!("{:.0}", self.lists.element_bytes()),
            outcome.requests.to_string(),
            format!("{:.3}", outcome.elapsed.as_secs_f64()),
            outcome.rate(),
            outcome.cpu_each(cpu),
            outcome.percentile(50.0),
            outcome.percentile(99.0),
            outcome.percentile(100.0),
        ]
    }

    fn memory(&mut self) -> Result<Memory> {
        let info = self.control.info()?;
        let number = |field: &str| info.get(field).and_then(|value| value.parse::<u64>().ok());
        let told = number("process_id").filter(|_| self.options.url.is_local());
        let pid = self.options.pid.or(told.and_then(|pid| u32::try_from(pid).ok()));
        let anonymous = pid.map(process::settled_memory).transpose()?;
        // Asked again, since what is freed in the background is by now.
        let used = self.control.info()?.get("used_memory").and_then(|value| value.parse().ok());
        Ok(Memory { used, anonymous })
    }
}

/// Memory of a server, in bytes, as far as that is known.
struct Memory {
    /// By its own account (`used_memory` of INFO).
    used: Option<u64>,
    /// Anonymous resident memory of its process.
    anonymous: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tests_have_names_of_their_own_and_the_first_one_fills() {
        let names: HashSet<&str> = TESTS.iter().map(|test| test.name).collect();
        assert_eq!(names.len(), TESTS.len());
        assert!(FILL.fills());
    }

    #[test]
    fn help_tells_what_each_test_does_and_what_elements_are_by_default() {
        let help = options(Command::new("lists")).render_long_help().to_string();
        for test in TESTS {
            assert!(help.contains(test.about), "{help}");
        }
        assert!(help.contains("--element-size") && help.contains("[default: 512]"), "{help}");
        assert!(help.contains("[default: events]"), "{help}");
    }
}
