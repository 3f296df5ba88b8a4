//! `snugly bench`: measures servers with real or generated values. Works with any Redis, Valkey or snugly server, and
//! for single values with memcached, so that figures of peers come from the same program; and the store without a server.

mod client;
mod control;
mod keys;
mod lists;
mod load;
mod memcached;
mod memory;
mod process;
mod protocol;
mod report;
mod server;
mod storage;
mod values;
mod workload;

use anyhow::Result;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// One row for each benchmark.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    options: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Result<()>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "server",
        about: "Sends requests to a server; reports throughput, latency and the server's CPU time",
        options: server::Options::augment_args,
        run: |matches| server::run(&server::Options::from_arg_matches(matches)?),
    },
    Benchmark {
        name: "memory",
        about: "Fills an empty server; reports the memory that a value takes",
        options: |command| memory::Options::augment_args(command).after_help(memory::NOTE),
        run: |matches| memory::run(&memory::Options::from_arg_matches(matches)?),
    },
    Benchmark {
        name: "lists",
        about: "Fills lists of a server and asks for them; reports throughput, latency, CPU time and memory",
        options: lists::options,
        run: |matches| lists::run(&lists::Options::from_arg_matches(matches)?),
    },
    Benchmark {
        name: "storage",
        about: "Fills and reads stores on disk, without a server; compares codecs",
        options: storage::Options::augment_args,
        run: |matches| storage::run(&storage::Options::from_arg_matches(matches)?),
    },
    Benchmark {
        name: "values",
        about: "Prints generated values that look like real ones, one a line",
        options: values::Options::augment_args,
        run: |matches| values::run(&values::Options::from_arg_matches(matches)?),
    },
];

pub(crate) fn command(command: Command) -> Command {
    let subcommand =
        |benchmark: &Benchmark| (benchmark.options)(Command::new(benchmark.name)).about(benchmark.about);
    command
        .about("Measures servers with real or generated values")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(BENCHMARKS.iter().map(subcommand))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
    let benchmark = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
    let benchmark = benchmark.expect("clap knows no other subcommands");
    (benchmark.run)(matches)
}

/// Of a number of connections and the like.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("is no whole number".to_owned()),
    }
}
