//! `snugly analyze`: what is in a live server, and what compression in its clients would save and cost.
//!
//! - [`findings`]: what was found, as numbers
//! - [`clients`]: what is to be done about it, in each client's language
//! - [`text`], [`html`]: the same for people

mod clients;
mod findings;
mod html;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use snugly_dictionaries::Keys;
use snugly_learning::Goal;

use super::address::Reach;
use super::deployment::Deployment;
use super::sampling::{self, Ended, KeyFilter, Sampled, Speed};
use super::values::needed_dictionaries;
use super::{catalogue, traffic};
use crate::interrupt::Interrupt;

#[derive(Args, Debug)]
struct Options {
    #[command(flatten)]
    reach: Reach,

    #[command(flatten)]
    speed: Speed,

    /// Number of keys to sample
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    sample: u64,

    /// Goal of the choice: memory, balanced or speed
    #[arg(long, default_value_t = Goal::default(), value_parser = goal_parser(), hide_possible_values = true)]
    goal: Goal,

    /// Seconds to count commands; 0 takes the counts since the server was started
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    observe: f64,

    /// Also write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    /// Prefix of the keys of dictionaries
    #[arg(long, value_name = "TEXT", default_value = Keys::DEFAULT_PREFIX)]
    prefix: String,
}

fn goal_parser() -> impl TypedValueParser<Value = Goal> {
    PossibleValuesParser::new(Goal::names()).try_map(|name| name.parse::<Goal>())
}

pub(crate) fn command(command: Command) -> Command {
    Options::augment_args(command)
        .about("Estimates the savings and the cost of compression in a live Valkey, Redis or snugly")
        .after_help(
            "Reads only: SCAN, TYPE, PTTL, MEMORY USAGE, STRLEN, GET, GETRANGE, DBSIZE and INFO, --rate keys a second. \
             Ctrl-C ends the sampling and evaluates the samples taken by then.\n\nExample:\n  snugly analyze \
             redis://localhost:6379 --html report.html",
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let options = Options::from_arg_matches(matches)?;
    if let Some(file) = &options.html {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let is_there = folder.is_none_or(Path::is_dir) && !file.is_dir();
        ensure!(is_there, "--html {}: there is no such folder, or this is one", file.display());
    }
    let mut deployment = Deployment::open(&options.reach)?;
    let stop = Interrupt::on_interrupt()?;
    let counting = sampling::spinner("counting commands");
    let pause = Duration::try_from_secs_f64(options.observe).context("--observe takes seconds")?;
    let traffic = traffic::observe(&mut deployment, pause, &stop)?;
    counting.finish_and_clear();
    let without = catalogue::all_keys(&options.prefix);
    let wanted = KeyFilter {
        keys: options.sample,
        pattern: None,
        only_strings: false,
        value_bytes: sampling::MAX_VALUE_BYTES,
        without: without.as_bytes(),
    };
    let sampled = sampling::sample(&mut deployment, &wanted, &options.speed, &stop)?;
    let is_stopped = matches!(sampled.ended, Ended::Stopped);
    ensure!(!(is_stopped && sampled.found.is_empty()), "stopped before a key was sampled: nothing to report");
    let dictionaries = dictionaries(&mut deployment, &options.prefix, &sampled).unwrap_or_default();
    let evaluating = sampling::spinner("evaluating");
    let findings =
        findings::find(&options.reach.url, &deployment, &sampled, &dictionaries, traffic, options.goal);
    evaluating.finish_and_clear();
    let told = match options.json {
        true => serde_json::to_string_pretty(&findings)? + "\n",
        false => text::report(&findings),
    };
    std::io::stdout().lock().write_all(told.as_bytes())?;
    if let Some(file) = &options.html {
        let written = std::fs::write(file, html::page(&findings));
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    sampled.failure()
}

/// The dictionaries that sampled values need. There are none if the server is gone meanwhile.
fn dictionaries(
    deployment: &mut Deployment,
    prefix: &str,
    sampled: &Sampled,
) -> Result<catalogue::Dictionaries> {
    let needed = needed_dictionaries(sampled.found.iter().filter_map(|found| found.value.as_ref()));
    catalogue::fetch_all(deployment, &Keys::new(prefix), &needed)
}
