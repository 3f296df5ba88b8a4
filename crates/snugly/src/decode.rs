//! `snugly decode`: shows what a cached value really holds, wherever it lies.
//!
//! It restores envelopes (spec/envelope.md). The value goes to standard output, everything said about it to standard
//! error, so that the output can be piped on.

mod json;
mod messagepack;

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use redis::Value;
use snugly_codec::Dictionary;
use snugly_codec::envelope::{self, Decoded, Envelope, EnvelopeError};
use snugly_dictionaries::Keys;

use crate::live::address::{Address, Trust};
use crate::live::node::Node;

/// The exit code when there is a value that cannot be restored; 1 is for values that cannot be had.
pub(crate) const EXIT_UNDECODABLE: u8 = 3;

#[derive(Args, Debug)]
struct Options {
    /// File to read, - for standard input; with --url the key to read
    #[arg(value_name = "FILE|KEY", default_value = "-")]
    source: String,

    /// Read the key from this server: redis://[[user]:password@]host[:port][/database], or valkey://, snugly://, rediss://,
    /// valkeys:// and snuglys:// with TLS, or unix:///path?db=0. A password may be in REDISCLI_AUTH instead, or in the file that
    /// SNUGLY_PASSWORD_FILE names
    #[arg(long)]
    url: Option<Address>,

    #[command(flatten)]
    trust: Trust,

    /// Key to read, as an alternative to naming it alone; without --url from snugly on this machine
    #[arg(long, conflicts_with = "source")]
    key: Option<String>,

    /// File of a dictionary that values may need; published ones are fetched from the server
    #[arg(long, value_name = "FILE")]
    dictionary: Vec<PathBuf>,

    /// Only describe how the value is stored
    #[arg(long, conflicts_with_all = ["raw", "pretty"])]
    info: bool,

    /// Print the stored bytes without decompressing them
    #[arg(long, conflicts_with = "pretty")]
    raw: bool,

    /// Format JSON for reading, and show MessagePack as JSON; the default on a terminal
    #[arg(long)]
    pretty: bool,

    /// Limit of a decompressed value
    #[arg(long, value_name = "BYTES", default_value_t = envelope::DEFAULT_MAX_DECOMPRESSED_SIZE)]
    max_bytes: usize,
}

pub(crate) fn command(command: Command) -> Command {
    Options::augment_args(command).about("Shows the content of a cached value, and how it is stored").after_help(
        "Examples:\n  \
               snugly decode --url redis://localhost:6379 user:1\n  \
               redis-cli get user:1 | snugly decode\n  \
               snugly decode --info value.bin\n\n\
             Exit codes: 0 shown, 1 the value could not be read, 2 wrong usage, 3 the value is damaged or its \
             dictionary is missing.",
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let options = Options::from_arg_matches(matches)?;
    let mut stored = options.fetch()?;
    eprintln!("{}", stored.origin);
    if options.raw {
        return print(&stored.bytes);
    }
    let (value, description) = restore(&options, &mut stored)?;
    eprintln!("{description}");
    let pretty = !options.info && (options.pretty || std::io::stdout().is_terminal());
    let text = match messagepack::to_json(&value) {
        Some(json) => {
            let shown = pretty.then(|| json::pretty(json.as_bytes())).flatten();
            eprintln!("the value is MessagePack{}", if shown.is_some() { ", shown as JSON" } else { "" });
            shown
        }
        None if pretty => json::pretty(&value),
        None => None,
    };
    match text {
        _ if options.info => Ok(()),
        Some(text) => print(text.as_bytes()),
        None => print(&value),
    }
}

/// A value that is there and cannot be restored.
#[derive(Debug)]
pub(crate) struct Undecodable(EnvelopeError);

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. --raw prints the stored bytes", self.0)
    }
}

impl Error for Undecodable {}

/// A value as it was found.
struct Stored {
    bytes: Vec<u8>,
    /// The source of the value, for people.
    origin: String,
    key: Option<String>,
    /// The server that it came from.
    client: Option<Node>,
}

impl Options {
    fn fetch(&self) -> Result<Stored> {
        let key = self.key.as_ref().or(self.url.as_ref().map(|_| &self.source));
        match key {
            None => read_file(&self.source),
            Some(key) if key == "-" && self.key.is_none() => bail!("which key? snugly decode --url URL KEY"),
            Some(key) => {
                let local = || "snugly://127.0.0.1".parse().expect("a valid URL");
                read_key(&self.trust, &self.url.clone().unwrap_or_else(local), key)
            }
        }
    }
}

fn read_file(source: &str) -> Result<Stored> {
    let mut bytes = Vec::new();
    let name = match source {
        "-" => {
            std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
            "standard input"
        }
        path => {
            let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
            read.with_context(|| format!("cannot read {path}"))?;
            path
        }
    };
    Ok(Stored { origin: format!("{name}: {} bytes", bytes.len()), bytes, key: None, client: None })
}

fn read_key(trust: &Trust, address: &Address, key: &str) -> Result<Stored> {
    let mut client = Node::open(trust, address)?;
    let kind: String = client.ask(&["TYPE", key])?;
    match kind.as_str() {
        "string" => {}
        "none" => bail!("{address} has no key \"{key}\""),
        kind => bail!("\"{key}\" at {address} is a {kind}, not a string{}", hint(kind, key)),
    }
    let bytes: Option<Vec<u8>> = client.ask(&["GET", key])?;
    let Some(bytes) = bytes else { bail!("\"{key}\" has just expired at {address}") };
    let mut origin = format!("\"{key}\" at {address}: {} bytes", bytes.len());
    if let Ok(encoding) = client.query::<String, _>(&["OBJECT", "ENCODING", key]) {
        origin.push_str(&format!(", encoding {encoding}"));
    }
    if let Some(codec) = stored_codec(&mut client, key) {
        origin.push_str(&format!(", kept by the server under {codec}"));
    }
    if let Ok(bytes) = client.query::<u64, _>(&["MEMORY", "USAGE", key]) {
        origin.push_str(&format!(", {bytes} bytes of the server's memory with key and bookkeeping"));
    }
    Ok(Stored { bytes, origin, key: Some(key.to_owned()), client: Some(client) })
}

/// Snugly's storage of the value, in words; `None` of any other server, which has no such command.
fn stored_codec(client: &mut Node, key: &str) -> Option<String> {
    let fields: HashMap<String, Value> = client.query(&["OBJECT", "COMPRESSION", key]).ok()?;
    match (fields.get("codec")?, fields.get("stored_bytes")?) {
        (Value::BulkString(codec), Value::Int(stored)) => {
            Some(format!("{} in {stored} bytes", String::from_utf8_lossy(codec)))
        }
        _ => None,
    }
}

/// A hint at the command that reads one element of a key of this type.
fn hint(kind: &str, key: &str) -> String {
    let command = match kind {
        "hash" => format!("HGET '{key}' FIELD"),
        "list" => format!("LINDEX '{key}' INDEX"),
        "stream" => format!("XRANGE '{key}' - + COUNT 1"),
        _ => return String::new(),
    };
    format!("; to decode one element: redis-cli {command} | snugly decode")
}

/// The value, and in words how it is stored.
fn restore(options: &Options, stored: &mut Stored) -> Result<(Vec<u8>, String)> {
    let Some(envelope) = envelope::inspect(&stored.bytes) else {
        return Ok((stored.bytes.clone(), describe_plain(&stored.bytes)));
    };
    let dictionary = find_dictionary(options, &envelope, stored.client.as_mut())?;
    let described = describe(&envelope);
    let settings = envelope::Options { max_decompressed_size: options.max_bytes, ..Default::default() };
    let decode = |bytes: &[u8], out: &mut Vec<u8>| {
        envelope::decode_with(
            &settings,
            &|id| dictionary.as_deref().filter(|found| found.id() == id),
            bytes,
            out,
        )
    };
    let mut value = Vec::new();
    let mut note = "";
    let decoded = decode(&stored.bytes, &mut value).or_else(|error| match stored.bytes.strip_suffix(b"\n") {
        // Only what has come through a file or a pipe; from a server every byte is meant.
        Some(without) if stored.client.is_none() => {
            note = "\nthe line end behind the envelope, which redis-cli adds, was left out";
            // If only the dictionary is missing, the value is whole and its line end no damage.
            let is_whole = |error: &EnvelopeError| error.name() == "dictionary_missing";
            decode(without, &mut value).map_err(|other| if is_whole(&other) { other } else { error })
        }
        _ => Err(error),
    });
    match decoded {
        Ok(Decoded::Restored { len, .. }) => {
            let saved = 100.0 - 100.0 * stored.bytes.len() as f64 / len.max(1) as f64;
            Ok((value, format!("{described}, restored to {len} bytes: {saved:.1} % saved{note}")))
        }
        Ok(Decoded::AsIs) => unreachable!("inspect has found an envelope"),
        Err(error) => {
            let named = match &stored.key {
                Some(key) => error.for_key(key.as_bytes()),
                None => error,
            };
            Err(Undecodable(named).into())
        }
    }
}

fn describe(envelope: &Envelope<'_>) -> String {
    let backend = envelope.backend();
    match (envelope.codec(), envelope.dictionary_id()) {
        (Some(codec), Some(id)) if codec.needs_dictionary() => {
            let codec = codec.without_dictionary();
            format!("envelope: {codec} with dictionary {id} (backend {backend:02x})")
        }
        (Some(codec), _) => format!("envelope: {codec} (backend {backend:02x})"),
        (None, _) => format!("envelope: unknown backend {backend:02x}"),
    }
}

/// Compressed formats that other clients store without an envelope, by their first bytes.
const FOREIGN_FORMATS: &[(&[u8], &str)] = &[
    (&[0x28, 0xb5, 0x2f, 0xfd], "a zstd frame without an envelope: zstd -d restores it"),
    (&[0x04, 0x22, 0x4d, 0x18], "an LZ4 frame without an envelope: lz4 -d restores it"),
    (&[0x1f, 0x8b], "gzip: gunzip restores it"),
];

/// The entry of the Go package's cache for a missing value; a byte that begins neither JSON nor MessagePack.
const NOT_FOUND: &[u8] = &[0xc1];

fn describe_plain(bytes: &[u8]) -> String {
    if bytes == NOT_FOUND {
        return "plain: what the cache of snugly's Go package remembers of something that does not exist"
            .to_owned();
    }
    let format = FOREIGN_FORMATS.iter().find(|(magic, _)| bytes.starts_with(magic));
    match format {
        Some((_, format)) => format!("plain, no envelope, but it looks like {format}"),
        None => "plain: no envelope, the bytes are the value".to_owned(),
    }
}

/// The dictionary that the envelope needs, from a file or from the server's catalogue.
fn find_dictionary(
    options: &Options,
    envelope: &Envelope<'_>,
    client: Option<&mut Node>,
) -> Result<Option<Arc<Dictionary>>> {
    let Some(id) = envelope.dictionary_id() else { return Ok(None) };
    for path in &options.dictionary {
        let dictionary = load_dictionary(path)?;
        if dictionary.id() == id {
            return Ok(Some(Arc::new(dictionary)));
        }
    }
    let Some(client) = client else { return Ok(None) };
    let key = Keys::new(Keys::DEFAULT_PREFIX).dictionary(id);
    let bytes: Option<Vec<u8>> = client.ask(&[b"GET", &key[..]])?;
    let Some(bytes) = bytes else { return Ok(None) };
    let refused = || format!("{} holds no dictionary", String::from_utf8_lossy(&key));
    Ok(Some(Arc::new(Dictionary::load(bytes).with_context(refused)?)))
}

fn load_dictionary(path: &Path) -> Result<Dictionary> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Dictionary::load(bytes).with_context(|| format!("{} is no dictionary", path.display()))
}

/// Writes the bytes; on a terminal with a line end, and with escapes if they are not text.
fn print(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = if !out.is_terminal() {
        out.write_all(bytes)
    } else if is_text(bytes) {
        out.write_all(bytes).and_then(|()| out.write_all(b"\n"))
    } else {
        eprintln!("not text: shown with escapes here, exact when sent to a file or a pipe");
        writeln!(out, "{}", bytes.escape_ascii())
    };
    written.and_then(|()| out.flush()).context("cannot write")
}

/// Whether a terminal can show it: UTF-8 without control characters other than line ends and tabs.
fn is_text(bytes: &[u8]) -> bool {
    let harmless = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(harmless))
}
