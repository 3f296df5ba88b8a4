//! `snugly bench storage`: what the store does with values on disk, without a server in front.
//!
//! For each size, kind of value and codec, a new store is filled, closed, and read twice: with the file's pages in the
//! system's cache, and after the system was asked to drop them. Memory has no limit unless it is given one, and is empty
//! when reading begins, so that every Get reads the file once. Within a round the codecs take turns, each round
//! beginning with another, and figures are compared within their round.
//!
//! The most that compression should cost is measured beside it: the codec alone, and a Set of random values as long as
//! the codec's output for the real ones.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::time::{ClockId, clock_gettime};
use snugly_codec::{Counters, Encoder};
use snugly_store::{Choice, Condition, Config, Durability, Expiry, Session, Storage, Store, allocation_size};

use super::report::{Column, Report};
use crate::allocator::purge_allocator;
use crate::corpus::{Corpus, Kind};

/// Options of `snugly bench storage`.
#[derive(Args, Debug)]
#[command(after_help = KINDS)]
pub struct Options {
    /// Folder for the stores, one after the other, on the disk or the tmpfs to measure
    #[arg(long, default_value = "snugly-bench")]
    folder: PathBuf,

    /// Lengths of values in bytes
    #[arg(long, value_delimiter = ',', default_value = "64,1024,4096,16384,262144,2097152")]
    sizes: Vec<usize>,

    /// Codecs to compare; the first is the baseline
    #[arg(long, value_delimiter = ',', default_value = "none,lz4,zstd")]
    codecs: Vec<String>,

    /// Bytes of values in each store
    #[arg(long, default_value_t = 64 << 20)]
    bytes: usize,

    /// Most values in each store
    #[arg(long, default_value_t = 100_000)]
    most_values: usize,

    /// Rounds, of which medians are shown
    #[arg(long, default_value_t = 5)]
    rounds: usize,

    /// Bytes of memory for keys and values, 0 for no limit
    #[arg(long, default_value_t = 0)]
    max_memory: u64,

    /// Guarantee of an answered write: fsync, batched or none
    #[arg(long, default_value = "batched", value_parser = durability)]
    durability: Durability,

    /// Run one round with a sixteenth of the values, to see that it works
    #[arg(long)]
    quick: bool,

    /// Append the results to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

const KINDS: &str = "\
Values:
  compressible  rows of a table as JSON, 160 bytes each, which differ in the
                number of the row, and from value to value in another; zstd
                makes 16 KiB of them 48 times smaller, and 256 KiB 100 times
  json          documents as applications cache them, of about the length
                (`snugly bench values` shows some)
  random        random bytes, which nothing compresses";

const LEGEND: &str = "
Set, Get  MiB of values a second, after the system's cache was dropped if cold
of first  times as fast as the first codec in the same round
CPU us    processor time of a Set with its share of the commit
of parts  that time, of: the codec alone, and a Set of random bytes as long as
          what the codec makes of the value
output    bytes that the codec makes of a value
file      bytes of the file for each value, with key and indexes
of bound  file, of: output and a page of 4,096 bytes
smaller   times smaller than the first codec's file";

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
    Column { name: "set_mib_per_second", title: Some("Set") },
    Column { name: "set_ratio", title: Some("of first") },
    Column { name: "set_cpu_microseconds", title: Some("CPU us") },
    Column { name: "set_cpu_ratio", title: Some("of first") },
    Column { name: "set_of_parts", title: Some("of parts") },
    Column { name: "output_bytes_per_value", title: Some("output") },
    Column { name: "file_bytes_per_value", title: Some("file") },
    Column { name: "file_of_bound", title: Some("of bound") },
    Column { name: "file_times_smaller", title: Some("smaller") },
    Column { name: "get_warm_mib_per_second", title: Some("Get warm") },
    Column { name: "get_warm_ratio", title: Some("of first") },
    Column { name: "get_cold_mib_per_second", title: Some("Get cold") },
    Column { name: "get_cold_ratio", title: Some("of first") },
];

/// A table whose rows differ in a few digits: about as compressible as the values of published benchmarks of stores
/// that compress, which [`KINDS`] says in figures.
fn table(len: usize, index: u64) -> Vec<u8> {
    let row = |number: usize| {
        format!(
            "{{\"row\":{number:06},\"of\":{index:08},\"state\":\"active\",\"group\":\"default\",\
             \"owner\":\"nobody in particular\",\"tags\":[\"first\",\"second\",\"third\"],\
             \"comment\":\"as all the others\"}},\n"
        )
    };
    (0..).flat_map(|number| row(number).into_bytes()).take(len).collect()
}

fn random(len: usize, index: u64) -> Vec<u8> {
    Corpus::new(Kind::Random, len, 1).value(index)
}

struct Data {
    name: &'static str,
    value: fn(usize, u64) -> Vec<u8>,
}

const DATA: &[Data] = &[
    Data { name: "compressible", value: table },
    Data { name: "json", value: |len, index| Corpus::new(Kind::Json, len, 1).value(index) },
    Data { name: "random", value: random },
];

/// The results of one store; times for all values.
#[derive(Clone, Copy)]
struct Measured {
    set: Duration,
    set_cpu: Duration,
    /// Processor time of the codec alone, and of Sets of values as long as its output.
    parts_cpu: Duration,
    get_warm: Duration,
    get_cold: Duration,
    /// Bytes that the codec made of all values.
    output: usize,
    /// Bytes of the file's pages in use.
    file: u64,
}

/// Fills and reads stores, and prints what they did.
pub fn run(options: &Options) -> Result<()> {
    let (rounds, bytes) =
        if options.quick { (1, options.bytes / 16) } else { (options.rounds.max(1), options.bytes) };
    let cells = options.sizes.len() * DATA.len();
    let progress = ProgressBar::new((cells * rounds * options.codecs.len()) as u64);
    progress
        .set_style(ProgressStyle::with_template("{msg} {wide_bar} {human_pos} of {human_len}, {eta} left")?);
    let mut report = Report::new(COLUMNS);
    for &size in &options.sizes {
        for data in DATA {
            let count = (bytes / size).clamp(1, options.most_values);
            let values: Vec<Vec<u8>> = (0..count as u64).map(|index| (data.value)(size, index)).collect();
            let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); options.codecs.len()];
            for round in 0..rounds {
                for turn in 0..options.codecs.len() {
                    let number = (round + turn) % options.codecs.len();
                    let codec = &options.codecs[number];
                    progress.set_message(format!("{} of {size} bytes, {codec}", data.name));
                    measured[number].push(measure(options, codec, &values)?);
                    progress.inc(1);
                }
            }
            for (codec, rounds) in options.codecs.iter().zip(&measured) {
                report.push(row([data.name, &size.to_string(), codec], &values, rounds, &measured[0]));
            }
        }
    }
    progress.finish_and_clear();
    report.print();
    println!("{LEGEND}");
    match &options.csv {
        Some(path) => report.append_csv(path),
        None => Ok(()),
    }
}

fn row(names: [&str; 3], values: &[Vec<u8>], rounds: &[Measured], first: &[Measured]) -> Vec<String> {
    const PAGE: f64 = 4096.0;
    let mebibytes = bytes_of(values) as f64 / (1 << 20) as f64;
    let count = values.len() as f64;
    let of_rounds = |figure: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(figure));
    let faster = |time: fn(&Measured) -> Duration| {
        let pairs = rounds.iter().zip(first);
        format!(
            "{:.2}",
            median(pairs.map(|(one, first)| time(first).as_secs_f64() / time(one).as_secs_f64()))
        )
    };
    let speed = |time: fn(&Measured) -> Duration| {
        let speed = of_rounds(&|one| mebibytes / time(one).as_secs_f64());
        [format!("{speed:.1}"), faster(time)]
    };
    let output = of_rounds(&|one| one.output as f64 / count);
    let file = of_rounds(&|one| one.file as f64 / count);
    let first_file = median(first.iter().map(|one| one.file as f64 / count));
    let mut cells: Vec<String> = names.map(str::to_owned).into();
    cells.extend(speed(|one| one.set));
    cells.push(format!("{:.2}", of_rounds(&|one| one.set_cpu.as_secs_f64() * 1e6 / count)));
    cells.push(faster(|one| one.set_cpu));
    cells.push(format!("{:.2}", of_rounds(&|one| one.set_cpu.as_secs_f64() / one.parts_cpu.as_secs_f64())));
    cells.push(format!("{output:.0}"));
    cells.push(format!("{file:.0}"));
    cells.push(format!("{:.2}", file / (output + PAGE)));
    cells.push(format!("{:.2}", first_file / file));
    cells.extend(speed(|one| one.get_warm));
    cells.extend(speed(|one| one.get_cold));
    cells
}

fn bytes_of(values: &[Vec<u8>]) -> usize {
    values.iter().map(Vec::len).sum()
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn measure(options: &Options, codec: &str, values: &[Vec<u8>]) -> Result<Measured> {
    let folder = options.folder.join("store");
    let (encode, outputs) = encode(codec, values)?;
    let alike: Vec<Vec<u8>> =
        outputs.iter().enumerate().map(|(index, &len)| random(len, index as u64)).collect();
    let (_, set_alike) = fill(options, &folder, "none", &alike)?;
    drop(alike);
    let (set, set_cpu) = fill(options, &folder, codec, values)?;

    let store = open(options, &folder, codec)?;
    let file = store.disk_stats().context("the store is on disk")?.used_bytes;
    let get_warm = read_all(&mut store.session(), values)?;
    drop(store);
    drop_cache(&folder)?;
    let store = open(options, &folder, codec)?;
    let get_cold = read_all(&mut store.session(), values)?;
    drop(store);
    remove(&folder)?;
    let output = outputs.iter().sum();
    Ok(Measured { set, set_cpu, parts_cpu: encode + set_alike, get_warm, get_cold, output, file })
}

/// The codec's processor time for the values, and how long what it makes of each is.
fn encode(codec: &str, values: &[Vec<u8>]) -> Result<(Duration, Vec<usize>)> {
    let choice = Choice::new(codec, None, MIN_BYTES)?;
    let mut encoder = Encoder::new(Arc::new(Counters::default()));
    let started = cpu_time();
    let outputs = values
        .iter()
        .map(|value| encoder.encode(choice, value, 0, allocation_size).payload().len())
        .collect();
    Ok((cpu_time() - started, outputs))
}

/// Sets the values in a new store and closes it; gives the time, and the processor time, until all is committed.
fn fill(options: &Options, folder: &Path, codec: &str, values: &[Vec<u8>]) -> Result<(Duration, Duration)> {
    remove(folder)?;
    let store = open(options, folder, codec)?;
    let mut session = store.session();
    purge_allocator();
    let (started, cpu) = (Instant::now(), cpu_time());
    for (index, value) in values.iter().enumerate() {
        session.set(0, &key(index), value, Expiry::Never, Condition::Always)?;
    }
    drop(session);
    store.close()?;
    Ok((started.elapsed(), cpu_time() - cpu))
}

/// Processor time of this process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// From which length on values are compressed: the server's default.
const MIN_BYTES: usize = 256;

fn open(options: &Options, folder: &Path, codec: &str) -> Result<Arc<Store>> {
    let mut config = Config::new(Choice::new(codec, None, MIN_BYTES)?);
    config.settings.max_memory = options.max_memory;
    Ok(Store::open(config, Storage { durability: options.durability, ..Storage::new(folder) })?)
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
    purge_allocator();
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
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
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
