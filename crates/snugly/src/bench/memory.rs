//! `snugly bench memory`: how much memory a value takes in a server.
//!
//! Counted is the growth of the server process's anonymous resident memory while it is filled, divided by the number of
//! values: what the values, their keys and all bookkeeping really cost, the allocator's waste included.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::client::{Scheme, Target};
use super::control::Control;
use super::memcached::check_key;
use super::process;
use super::report::{Column, Report};
use super::values::{Source, Values};

/// Values sent before their replies are read.
const BATCH: u64 = 64;
/// Of so many values one is read back and compared.
const CHECKED: u64 = 100;

/// A note on the results.
pub const NOTE: &str = "Values are counted as they were written. A snugly server learns dictionaries from them only \
    meanwhile and afterwards, which is not waited for and differs from run to run: start it with --dictionaries no to \
    leave them out. `make demo` shows what they save.";

/// Options of `snugly bench memory`.
#[derive(Args, Debug)]
pub struct Options {
    /// Address of the server, on this machine, empty and best just started: redis://host:port or memcached://host:port
    #[arg(long, default_value = "redis://127.0.0.1:7684")]
    url: Target,

    /// Number of values to store, each under a key of its own
    #[arg(long, default_value_t = 100_000)]
    values: u64,

    #[command(flatten)]
    source: Source,

    /// Prefix of keys; twelve digits follow
    #[arg(long, default_value = "key:")]
    key_prefix: String,

    /// Process of the server [default: reported by the server]
    #[arg(long)]
    pid: Option<u32>,

    /// Name of the server in the results [default: reported by the server]
    #[arg(long)]
    label: Option<String>,

    /// Append the result to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    Column { name: "server", title: Some("server") },
    Column { name: "source", title: Some("data") },
    Column { name: "values", title: Some("values") },
    Column { name: "distinct_values", title: None },
    Column { name: "key_bytes", title: Some("key bytes") },
    Column { name: "value_bytes", title: Some("value bytes") },
    Column { name: "empty_bytes", title: None },
    Column { name: "filled_bytes", title: None },
    Column { name: "bytes_per_value", title: Some("total per value") },
    Column { name: "overhead_per_key", title: Some("overhead per key") },
];

/// Fills the server and prints what a value takes.
pub fn run(options: &Options) -> Result<()> {
    let values = options.source.open()?;
    let key = |index: u64| format!("{}{index:012}", options.key_prefix);
    if options.url.scheme() == Scheme::Memcached {
        check_key(&key(0))?;
    }
    let mut server = Control::connect(&options.url)?;
    let pid = match options.pid {
        Some(pid) => pid,
        None => server.process_id()?,
    };
    ensure!(options.url.is_local() || options.pid.is_some(), "{} is not on this machine", options.url);
    ensure!(
        server.count()? == 0,
        "{} is not empty; start a fresh one, since a server that was emptied keeps memory of its past",
        options.url
    );
    let empty = process::settled_memory(pid)?;
    let value_bytes = fill(options, &mut server, &values, key)?;
    let stored = server.count()?;
    ensure!(
        stored == options.values,
        "{} holds {stored} of {} values: it has evicted or refused the others, give it more memory",
        options.url,
        options.values
    );
    for index in (0..options.values).step_by(CHECKED as usize) {
        let stored = server.get(&key(index))?;
        ensure!(stored == values.get(index), "the value of {} is not the one written", key(index));
    }
    let filled = process::settled_memory(pid)?;

    let count = options.values as f64;
    let per_value = (filled as f64 - empty as f64) / count;
    let average = value_bytes as f64 / count;
    let mut report = Report::new(COLUMNS);
    report.push(vec![
        match &options.label {
            Some(label) => label.clone(),
            None => server.name()?,
        },
        options.source.name(),
        options.values.to_string(),
        values.count().unwrap_or(options.values).min(options.values).to_string(),
        key(0).len().to_string(),
        format!("{average:.1}"),
        empty.to_string(),
        filled.to_string(),
        format!("{per_value:.1}"),
        format!("{:.1}", per_value - average),
    ]);
    report.print();
    match &options.csv {
        Some(path) => report.append_csv(path),
        None => Ok(()),
    }
}

/// Stores all values; returns their bytes in all.
fn fill(
    options: &Options,
    server: &mut Control,
    values: &Values,
    key: impl Fn(u64) -> String,
) -> Result<u64> {
    let progress = ProgressBar::new(options.values);
    progress
        .set_style(ProgressStyle::with_template("fill {wide_bar} {human_pos} of {human_len}, {eta} left")?);
    let mut bytes = 0;
    for start in (0..options.values).step_by(BATCH as usize) {
        let indexes = start..options.values.min(start + BATCH);
        let batch: Vec<_> = indexes.map(|index| (key(index), values.get(index))).collect();
        bytes += batch.iter().map(|(_, value)| value.len() as u64).sum::<u64>();
        server.set(&batch)?;
        progress.inc(batch.len() as u64);
    }
    progress.finish_and_clear();
    Ok(bytes)
}
