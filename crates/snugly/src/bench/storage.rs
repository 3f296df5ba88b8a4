//! `snugly bench storage`: what the store does with values on disk, without a server in front.
//!
//! For each size, kind of value and codec, a new store is filled, closed, and read twice: with the file's pages in the
//! system's cache, and after the system was asked to drop them. Memory holds next to nothing meanwhile, so that Get reads
//! the file. The codecs take turns within a round, and their figures are compared within it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use snugly_store::{Choice, Condition, Config, Durability, Expiry, Session, Storage, Store};

use super::report::{Column, Report};
use crate::corpus::{Corpus, Kind};

/// Options of `snugly bench storage`.
#[derive(Args, Debug)]
pub struct Options {
    /// Where the stores are made, one after the other; on the disk or the tmpfs that is to be measured
    #[arg(long, default_value = "snugly-bench")]
    folder: PathBuf,

    /// Lengths of values in bytes
    #[arg(long, value_delimiter = ',', default_value = "64,1024,4096,16384,262144,2097152")]
    sizes: Vec<usize>,

    /// Codecs to compare; the first is what the others are compared with
    #[arg(long, value_delimiter = ',', default_value = "none,lz4,zstd")]
    codecs: Vec<String>,

    /// Bytes of values in each store
    #[arg(long, default_value_t = 64 << 20)]
    bytes: usize,

    /// Values in each store at most
    #[arg(long, default_value_t = 100_000)]
    most_values: usize,

    /// Rounds; shown is the median
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// When a write is answered: fsync, batched or none
    #[arg(long, default_value = "batched", value_parser = durability)]
    durability: Durability,

    /// Append the results to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "fsync" => Ok(Durability::Fsync),
        "batched" => Ok(Durability::Batched),
        "none" => Ok(Durability::None),
        _ => Err("must be fsync, batched or none".into()),
    }
}

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    Column { name: "values", title: Some("values") },
    Column { name: "value_bytes", title: Some("bytes") },
    Column { name: "codec", title: Some("codec") },
    Column { name: "set_mib_per_second", title: Some("Set MiB/s") },
    Column { name: "set_ratio", title: Some("of first") },
    Column { name: "get_warm_mib_per_second", title: Some("Get warm MiB/s") },
    Column { name: "get_warm_ratio", title: Some("of first") },
    Column { name: "get_cold_mib_per_second", title: Some("Get cold MiB/s") },
    Column { name: "get_cold_ratio", title: Some("of first") },
    Column { name: "footprint_bytes_per_value", title: Some("file per value") },
    Column { name: "footprint_ratio", title: Some("times smaller") },
];

/// Values that compress as much as values do at best: a table whose rows differ in a few digits.
fn table(len: usize, index: u64) -> Vec<u8> {
    let row = |number: usize| {
        format!(
            "{{\"row\":{number:06},\"of\":{index:08},\"state\":\"active\",\"group\":\"default\",\"tags\":[\"a\",\"b\"]}},\n"
        )
    };
    let mut value: Vec<u8> = (0..).flat_map(|number| row(number).into_bytes()).take(len).collect();
    value.truncate(len);
    value
}

struct Data {
    name: &'static str,
    value: fn(usize, u64) -> Vec<u8>,
}

const DATA: &[Data] = &[
    Data { name: "compressible", value: table },
    Data { name: "json", value: |len, index| Corpus::new(Kind::Json, len, 1).value(index) },
    Data { name: "random", value: |len, index| Corpus::new(Kind::Random, len, 1).value(index) },
];

/// What one store did with its values; times for all of them.
#[derive(Clone, Copy)]
struct Measured {
    bytes: usize,
    set: Duration,
    get_warm: Duration,
    get_cold: Duration,
    /// Bytes of the file's pages in use.
    footprint: u64,
}

/// Fills and reads stores, and prints what they did.
pub fn run(options: &Options) -> Result<()> {
    let cells = options.sizes.len() * DATA.len();
    let progress = ProgressBar::new((cells * options.rounds * options.codecs.len()) as u64);
    progress
        .set_style(ProgressStyle::with_template("{msg} {wide_bar} {human_pos} of {human_len}, {eta} left")?);
    let mut report = Report::new(COLUMNS);
    for &size in &options.sizes {
        for data in DATA {
            let count = (options.bytes / size).clamp(1, options.most_values);
            let values: Vec<Vec<u8>> = (0..count as u64).map(|index| (data.value)(size, index)).collect();
            let mut rounds: Vec<Vec<Measured>> = vec![Vec::new(); options.codecs.len()];
            for _ in 0..options.rounds {
                for (codec, measured) in options.codecs.iter().zip(&mut rounds) {
                    progress.set_message(format!("{} of {size} bytes, {codec}", data.name));
                    measured.push(measure(options, codec, &values)?);
                    progress.inc(1);
                }
            }
            for (codec, measured) in options.codecs.iter().zip(&rounds) {
                report.push(row(data.name, size, codec, count, measured, &rounds[0]));
            }
        }
    }
    progress.finish_and_clear();
    report.print();
    match &options.csv {
        Some(path) => report.append_csv(path),
        None => Ok(()),
    }
}

fn row(
    data: &str,
    size: usize,
    codec: &str,
    count: usize,
    measured: &[Measured],
    first: &[Measured],
) -> Vec<String> {
    const MIB: f64 = (1 << 20) as f64;
    let speed = |time: fn(&Measured) -> Duration| {
        median(measured.iter().map(|one| one.bytes as f64 / MIB / time(one).as_secs_f64()))
    };
    let ratio = |time: fn(&Measured) -> Duration| {
        median(
            measured
                .iter()
                .zip(first)
                .map(|(one, first)| time(first).as_secs_f64() / time(one).as_secs_f64()),
        )
    };
    let footprint = median(measured.iter().map(|one| one.footprint as f64));
    let first_footprint = median(first.iter().map(|one| one.footprint as f64));
    let mut cells = vec![data.to_owned(), size.to_string(), codec.to_owned()];
    for time in [|one: &Measured| one.set, |one: &Measured| one.get_warm, |one: &Measured| one.get_cold] {
        cells.push(format!("{:.1}", speed(time)));
        cells.push(format!("{:.2}", ratio(time)));
    }
    cells.push(format!("{:.0}", footprint / count as f64));
    cells.push(format!("{:.2}", first_footprint / footprint));
    cells
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn measure(options: &Options, codec: &str, values: &[Vec<u8>]) -> Result<Measured> {
    let folder = options.folder.join("store");
    remove(&folder)?;
    let open = || open(&folder, codec, options.durability);
    let store = open()?;
    let started = Instant::now();
    let mut session = store.session();
    for (index, value) in values.iter().enumerate() {
        session.set(0, &key(index), value, Expiry::Never, Condition::Always)?;
    }
    drop(session);
    store.close()?;
    let set = started.elapsed();
    drop(store);

    let store = open()?;
    let footprint = store.disk_stats().context("the store is on disk")?.used_bytes;
    let get_warm = read_all(&mut store.session(), values)?;
    drop(store);
    drop_cache(&folder)?;
    let store = open()?;
    let get_cold = read_all(&mut store.session(), values)?;
    drop(store);
    remove(&folder)?;
    let bytes = values.iter().map(Vec::len).sum();
    Ok(Measured { bytes, set, get_warm, get_cold, footprint })
}

/// In bytes: so little that next to nothing is read from memory.
const MEMORY: u64 = 1 << 20;

fn open(folder: &Path, codec: &str, durability: Durability) -> Result<Arc<Store>> {
    let mut config = Config::new(Choice::new(codec, None, 64)?);
    config.settings.max_memory = MEMORY;
    config.shards = Some(64);
    Ok(Store::open(config, Storage { durability, ..Storage::new(folder) })?)
}

fn key(index: usize) -> Vec<u8> {
    format!("key:{index:020}").into_bytes()
}

/// Reads all values in an order that is not that of writing, and compares some.
fn read_all(session: &mut Session, values: &[Vec<u8>]) -> Result<Duration> {
    const CHECKED: usize = 100;
    // A step without common divisors with the count visits every value once.
    let step = (values.len() * 5 / 8..).find(|step| gcd(*step, values.len()) == 1).unwrap_or(1);
    let mut bytes = Vec::new();
    let started = Instant::now();
    for number in 0..values.len() {
        let index = number * step % values.len();
        let value = session.get(0, &key(index))?.context("a value is missing")?;
        bytes.clear();
        session.read(&value, &mut bytes)?;
        ensure!(bytes.len() == values[index].len(), "a value came back with another length");
        if number % CHECKED == 0 {
            ensure!(bytes == values[index], "a value came back different");
        }
    }
    Ok(started.elapsed())
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Asks the system to forget the file's pages; where it does not (tmpfs), cold is as warm.
fn drop_cache(folder: &Path) -> Result<()> {
    let file = File::open(folder.join("data.mdb"))?;
    file.sync_all()?;
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        // SAFETY: advice about the whole of an open file; it changes nothing but what is cached.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
