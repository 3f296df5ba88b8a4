//! `snugly bench memory`: how much memory a value takes in a server.
//!
//! Counted is the growth of the server process's anonymous resident memory while it is filled, divided by the number of
//! values: what the values, their keys and all bookkeeping really cost, the allocator's waste included.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use snugly_protocol::resp::{Value, encode_command};

use super::process;
use super::report::{Column, Report};
use super::values::{Source, Values};
use crate::client::{Client, Scheme, Target};

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
    let mut server = Server::connect(&options.url)?;
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
    let key = |index: u64| format!("{}{index:012}", options.key_prefix);
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
fn fill(options: &Options, server: &mut Server, values: &Values, key: impl Fn(u64) -> String) -> Result<u64> {
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

/// A server to fill.
enum Server {
    Resp(Client),
    Memcached(Memcached),
}

impl Server {
    fn connect(target: &Target) -> Result<Self> {
        match target.scheme() {
            Scheme::Resp => Client::connect(target).map(Self::Resp),
            Scheme::Memcached => Ok(Self::Memcached(Memcached(BufReader::new(target.open()?)))),
        }
    }

    fn process_id(&mut self) -> Result<u32> {
        let (fields, name) = match self {
            Self::Resp(client) => (client.info()?, "process_id"),
            Self::Memcached(client) => (client.stats()?, "pid"),
        };
        let pid = fields.get(name).and_then(|pid| pid.parse().ok());
        pid.context("the server does not tell its process ID, give it with --pid")
    }

    fn name(&mut self) -> Result<String> {
        match self {
            Self::Resp(client) => client.server_name(),
            Self::Memcached(client) => {
                Ok(format!("memcached {}", client.stats()?.remove("version").unwrap_or_default()))
            }
        }
    }

    /// Number of values it holds.
    fn count(&mut self) -> Result<u64> {
        match self {
            Self::Resp(client) => match client.command(&["DBSIZE"])? {
                Value::Integer(count) => Ok(count.try_into()?),
                other => bail!("unexpected answer to DBSIZE: {other:?}"),
            },
            Self::Memcached(client) => {
                let count = client.stats()?.remove("curr_items").context("no curr_items in stats")?;
                Ok(count.parse()?)
            }
        }
    }

    fn set(&mut self, batch: &[(String, Vec<u8>)]) -> Result<()> {
        match self {
            Self::Resp(client) => {
                let mut requests = Vec::new();
                for (key, value) in batch {
                    encode_command(&[b"SET", key.as_bytes(), value], &mut requests);
                }
                client.send(&requests)?;
                for _ in batch {
                    if let Value::Error(text) = client.reply()? {
                        bail!("SET: {}", String::from_utf8_lossy(&text));
                    }
                }
                Ok(())
            }
            Self::Memcached(client) => client.set(batch),
        }
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>> {
        match self {
            Self::Resp(client) => match client.command(&["GET", key])? {
                Value::Bulk(value) => Ok(value),
                other => bail!("unexpected answer to GET {key}: {other:?}"),
            },
            Self::Memcached(client) => client.get(key),
        }
    }
}

/// A connection that speaks memcached's text protocol
/// (<https://github.com/memcached/memcached/blob/master/doc/protocol.txt>).
struct Memcached(BufReader<TcpStream>);

impl Memcached {
    fn set(&mut self, batch: &[(String, Vec<u8>)]) -> Result<()> {
        let mut requests = Vec::new();
        for (key, value) in batch {
            write!(requests, "set {key} 0 0 {}\r\n", value.len())?;
            requests.extend_from_slice(value);
            requests.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&requests)?;
        for (key, _) in batch {
            let reply = self.line()?;
            ensure!(reply == "STORED", "set {key}: {reply}");
        }
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>> {
        self.0.get_mut().write_all(format!("get {key}\r\n").as_bytes())?;
        let head = self.line()?; // VALUE <key> <flags> <bytes>
        let length = head.rsplit(' ').next().and_then(|length| length.parse::<usize>().ok());
        let length = length.with_context(|| format!("get {key}: {head}"))?;
        let mut value = vec![0; length + 2];
        std::io::Read::read_exact(&mut self.0, &mut value)?;
        value.truncate(length);
        ensure!(self.line()? == "END", "get {key}: no END behind the value");
        Ok(value)
    }

    fn stats(&mut self) -> Result<HashMap<String, String>> {
        self.0.get_mut().write_all(b"stats\r\n")?;
        let mut stats = HashMap::new();
        loop {
            let line = self.line()?;
            if line == "END" {
                return Ok(stats);
            }
            let mut words = line.split(' ').skip(1); // STAT <name> <value>
            if let (Some(name), Some(value)) = (words.next(), words.next()) {
                stats.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.0.read_line(&mut line)? > 0, "the server closed the connection");
        Ok(line.trim_end().to_owned())
    }
}
