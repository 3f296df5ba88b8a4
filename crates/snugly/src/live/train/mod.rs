//! `snugly train`: dictionaries for the clients of a server that others run, trained from its own values and published
//! beside them.
//!
//! - [`manage`]: listing and forgetting them

mod manage;

use std::fs;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{ArgGroup, ArgMatches, Args, Command, FromArgMatches};
use snugly_codec::Dictionary;
use snugly_dictionaries::{Catalogue, Entry, Keys};
use snugly_learning::Sample;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use super::address::Reach;
use super::deployment::Deployment;
use super::evaluation::{self, LEAST_SAMPLES, MIN_BYTES, Trial, Tried};
use super::sampling::{self, KeyFilter, Sampled, Speed};
use super::values::{look_at, needed_dictionaries};
use super::{catalogue, units};
use crate::interrupt::Interrupt;
use crate::table::lay_out;

/// With fewer values that no dictionary was trained on, what was measured says little.
const LEAST_HELD_OUT: usize = 50;

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("task").required(true).args(["pattern", "list", "orphans", "forget"]))]
struct Options {
    #[command(flatten)]
    reach: Reach,

    #[command(flatten)]
    speed: Speed,

    /// Pattern of the keys to train from, such as 'user:*' (a glob of KEYS)
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,

    /// Number of values to sample
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,

    /// Size of the dictionary; auto tries several and takes the one that saves most
    #[arg(long, value_name = "auto|BYTES", default_value = "auto")]
    size: Size,

    /// Publish the dictionary in the server's catalogue, where clients find it
    #[arg(long, requires = "pattern")]
    publish: bool,

    /// Write the dictionary to this file, in the format of zstd's own tools
    #[arg(long, value_name = "FILE", requires = "pattern")]
    out: Option<PathBuf>,

    /// Do not ask before writing to the server
    #[arg(long)]
    yes: bool,

    /// List the published dictionaries
    #[arg(long)]
    list: bool,

    /// List dictionaries that no catalogue has, since it was deleted or they were given to clients; scans all keys
    #[arg(long)]
    orphans: bool,

    /// End the use of a dictionary for new values; it stays for the values that need it
    #[arg(long, value_name = "ID")]
    forget: Option<u32>,

    /// Delete the dictionary of --forget, if no sampled value needs it; a value that needs it becomes unreadable
    #[arg(long, requires = "forget")]
    delete: bool,

    /// Prefix of the keys of dictionaries
    #[arg(long, value_name = "TEXT", default_value = Keys::DEFAULT_PREFIX)]
    prefix: String,
}

#[derive(Clone, Copy, Debug)]
struct Size(Option<usize>);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        if text == "auto" {
            return Ok(Size(None));
        }
        let range = Dictionary::MIN_TRAINED_BYTES..=Dictionary::MAX_BYTES;
        let size = text.parse().ok().filter(|size| range.contains(size));
        let refused = || format!("choose auto, or {} to {} bytes", range.start(), range.end());
        size.map(|size| Size(Some(size))).ok_or_else(refused)
    }
}

pub(crate) fn command(command: Command) -> Command {
    Options::augment_args(command)
        .about("Trains dictionaries for clients that compress, from the values of a live Valkey or Redis")
        .after_help(
            "Without --publish it only reads. Ctrl-C ends the sampling and trains with the samples taken by then.\n\nExamples:\n  \
             snugly train redis://localhost:6379 --pattern 'user:*'\n  \
             snugly train redis://localhost:6379 --pattern 'user:*' --publish\n  \
             snugly train redis://localhost:6379 --list",
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let options = Options::from_arg_matches(matches)?;
    let mut deployment = Deployment::open(&options.reach)?;
    let keys = Keys::new(&options.prefix);
    match (&options.pattern, options.forget) {
        (Some(pattern), _) => train(&options, &mut deployment, &keys, pattern),
        (None, Some(id)) => manage::forget(&options, &mut deployment, &keys, id),
        (None, None) if options.orphans => manage::list_orphans(&options, &mut deployment, &keys),
        (None, None) => manage::list(&mut deployment, &keys),
    }
}

fn train(options: &Options, deployment: &mut Deployment, keys: &Keys, pattern: &str) -> Result<()> {
    let most = Catalogue::MAX_PATTERN_BYTES;
    ensure!(pattern.len() <= most, "a pattern has at most {most} bytes, and this has {}", pattern.len());
    if let Some(warning) = deployment.eviction_warning() {
        eprintln!("warning: {warning}");
    }
    let without = catalogue::all_keys(&options.prefix);
    let wanted = KeyFilter {
        keys: options.samples,
        pattern: Some(pattern.as_bytes()),
        only_strings: true,
        value_bytes: sampling::MAX_VALUE_BYTES,
        without: without.as_bytes(),
    };
    let stop = Interrupt::on_interrupt()?;
    let sampled = sampling::sample(deployment, &wanted, &options.speed.of_pattern(), &stop)?;
    eprintln!("{pattern}: sampled {}", sampled.summary());
    sampled.notes.iter().for_each(|note| eprintln!("note: {note}"));
    let samples = samples(deployment, keys, &sampled)?;
    ensure!(
        samples.len() >= LEAST_SAMPLES,
        "{} of the sampled values have {MIN_BYTES} bytes and more, and at least {LEAST_SAMPLES} are needed: does the \
         pattern match keys of strings?",
        samples.len()
    );
    let training = sampling::spinner("training");
    let trial = evaluation::try_sizes(&samples, options.size.0);
    training.finish_and_clear();
    let trial = trial.with_context(|| format!("no dictionary for {pattern}"))?;
    let best = trial.best(sampled.population).context("this build has no zstd, which dictionaries need")?;
    print(&table(&trial, best, sampled.population))?;
    if let Some(warning) = doubt(trial.held_out) {
        eprintln!("{warning}");
    }
    let is_worth_it = tell_worth(&trial, best, sampled.population);
    let population = sampled.population;
    sampled.failure()?;
    keep(options, deployment, keys, pattern, (&trial, best, population), is_worth_it)
}

/// The sampled values as the application gave them.
fn samples(deployment: &mut Deployment, keys: &Keys, sampled: &Sampled) -> Result<Vec<Sample>> {
    let stored = || sampled.found.iter().filter_map(|found| Some((&found.key, found.value.as_ref()?)));
    let needed = needed_dictionaries(stored().map(|(_, value)| value));
    let dictionaries = catalogue::fetch_all(deployment, keys, &needed)?;
    let values: Vec<(&[u8], Vec<u8>)> =
        stored().filter_map(|(key, value)| Some((&key[..], look_at(value, &dictionaries).value?))).collect();
    Ok(evaluation::samples(values.iter().map(|(key, value)| (*key, &value[..]))))
}

/// The measurements, with the best one marked.
fn table(trial: &Trial, best: &Tried, population: u64) -> String {
    let row = |tried: &Tried| {
        let way = tried.way();
        let mark = if std::ptr::eq(tried, best) { " *" } else { "" };
        vec![
            format!("{}{mark}", way.name),
            format!("{:.3}", way.ratio),
            units::percent(1.0 - way.ratio, 1.0),
            units::saved(tried.saved(population)),
            units::microseconds(way.encode_microseconds),
            units::microseconds(way.decode_microseconds),
        ]
    };
    let rows: Vec<_> = trial.tried.iter().map(row).collect();
    let titles = ["way", "ratio", "saved", "of all keys", "write", "read"];
    format!(
        "{}* saves the most, itself counted. Trained from {} values, measured with {} others\n",
        lay_out(&titles, &rows),
        trial.trained,
        trial.held_out
    )
}

/// A warning about figures that stand on few values.
fn doubt(held_out: usize) -> Option<String> {
    let is_little = held_out < LEAST_HELD_OUT;
    is_little.then(|| {
        format!(
            "warning: measured with {held_out} values only, so other values may save much less; it takes some \
             {LEAST_HELD_OUT} and more to trust it"
        )
    })
}

fn tell_worth(trial: &Trial, best: &Tried, population: u64) -> bool {
    let is_worth_it =
        trial.without(best).is_none_or(|without| best.saved(population) > without.saved(population));
    if !is_worth_it {
        eprintln!(
            "the dictionary saves no more than {} alone: these values have little in common, or are few",
            best.measured.choice.codec().name()
        );
    }
    is_worth_it
}

/// Writes the dictionary to where it was asked for.
fn keep(
    options: &Options,
    deployment: &mut Deployment,
    keys: &Keys,
    pattern: &str,
    (trial, best, population): (&Trial, &Tried, u64),
    is_worth_it: bool,
) -> Result<()> {
    let dictionary = best.dictionary.as_ref().expect("the best one has a dictionary");
    if let Some(file) = &options.out {
        fs::write(file, dictionary.bytes()).with_context(|| format!("cannot write {}", file.display()))?;
        println!("dictionary {} is in {}", dictionary.id(), file.display());
    }
    if !options.publish {
        if options.out.is_none() {
            println!("nothing was written: --publish lets clients use it, --out FILE keeps it");
        }
        return Ok(());
    }
    let place = String::from_utf8_lossy(&keys.dictionary(dictionary.id())).into_owned();
    let size = units::bytes(dictionary.bytes().len() as u64);
    let codec = best.measured.choice.codec().name();
    let doubt = if is_worth_it { "" } else { &*format!(", although it saves no more than {codec} alone") };
    confirm(options, &format!("Publish it for {pattern} as {place} ({size}){doubt}?"))?;
    let entry = Entry {
        id: dictionary.id(),
        pattern: pattern.to_owned(),
        bytes: dictionary.bytes().len() as u64,
        trained_at: now(),
        samples: trial.trained as u64,
        ratio_before: trial.without(best).map(|without| without.measured.ratio()),
        ratio_after: Some(best.measured.ratio()),
        ..Entry::default()
    };
    let notes = catalogue::publish(deployment, keys, dictionary, entry)?;
    notes.iter().for_each(|note| eprintln!("warning: {note}"));
    println!(
        "published as {place}. Clients that use the catalogue (dictionary=\"catalogue\" in Python, UseCatalogue in Go, \
         catalogue in Java) write with it for {pattern} after one refresh ({} by default); about {} keys match",
        indicatif::HumanDuration(Duration::from_secs(60)),
        units::count(population)
    );
    Ok(())
}

/// Asks on a terminal whether to go on.
///
/// # Errors
/// If somebody does not want to, or nobody can be asked and --yes was not said.
fn confirm(options: &Options, question: &str) -> Result<()> {
    if options.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        bail!("{question} Nobody can be asked here: say --yes");
    }
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().eq_ignore_ascii_case("y") || answer.trim().eq_ignore_ascii_case("yes") {
        true => Ok(()),
        false => Err(anyhow!("nothing was changed")),
    }
}

/// This moment as in RFC 3339.
fn now() -> String {
    let mut text = String::new();
    SystemTime.format_time(&mut Writer::new(&mut text)).expect("a string takes all");
    text
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_stand_on_few_values_are_doubted() {
        assert!(doubt(5).is_some_and(|warning| warning.contains("5 values only")));
        assert_eq!(doubt(LEAST_HELD_OUT), None);
    }

    #[test]
    fn sizes_are_auto_or_what_can_be_trained() {
        assert_eq!("auto".parse::<Size>().unwrap().0, None);
        assert_eq!("4096".parse::<Size>().unwrap().0, Some(4096));
        for refused in ["0", "255", "1048577", "4k", ""] {
            assert!(refused.parse::<Size>().unwrap_err().contains("256 to 1048576"), "{refused}");
        }
    }

    #[test]
    fn moments_are_written_as_in_rfc_3339() {
        let now = now();
        assert!(now.starts_with("20") && now.ends_with('Z') && now.as_bytes()[10] == b'T', "{now}");
    }
}
