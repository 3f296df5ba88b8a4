//! The values that benchmarks send: from a file of real ones, or generated.
//!
//! In a `.jsonl` file a line that is a JSON string stands for the string's bytes; any other line is a value itself.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::corpus::{Corpus, Kind};

/// The source of values.
#[derive(Args, Debug)]
pub struct Source {
    /// File of values, one a line: JSON, or a JSON string that holds the value
    #[arg(long, value_name = "FILE", conflicts_with_all = ["generate", "value_size"])]
    data: Option<PathBuf>,

    /// Generate values of this kind (json, html, csv, session, events, repetitive or random), of this many bytes
    #[arg(long, value_name = "KIND[:SIZE]", default_value = "json")]
    generate: Generate,

    /// Approximate bytes of a generated value
    #[arg(long, value_name = "BYTES", default_value_t = 900)]
    value_size: usize,

    /// Seed of generated values and of the choice of keys
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Debug)]
struct Generate {
    kind: Kind,
    size: Option<usize>,
}

impl FromStr for Generate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, size) = match text.split_once(':') {
            Some((kind, size)) => {
                (kind, Some(size.parse().map_err(|_| format!("{size} is no number of bytes"))?))
            }
            None => (text, None),
        };
        Ok(Self { kind: Kind::from_str(kind, true)?, size })
    }
}

impl Source {
    /// Reads the file, or sets up the generator.
    pub fn open(&self) -> Result<Values> {
        match &self.data {
            Some(path) => Values::read(path),
            None => Ok(Values::Generated(self.corpus())),
        }
    }

    /// The name of these values in a table.
    pub fn name(&self) -> String {
        match &self.data {
            Some(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            None => {
                let kind = self.generate.kind.to_possible_value().expect("no kind is hidden");
                format!("{}:{}", kind.get_name(), self.generate.size.unwrap_or(self.value_size))
            }
        }
    }

    fn corpus(&self) -> Corpus {
        Corpus::new(self.generate.kind, self.generate.size.unwrap_or(self.value_size), self.seed)
    }
}

/// Values by number.
pub enum Values {
    /// The values of a file.
    Read(Vec<Vec<u8>>),
    /// Made on demand, all different.
    Generated(Corpus),
}

impl Values {
    fn read(path: &Path) -> Result<Self> {
        let context = || format!("cannot read values from {}", path.display());
        let mut values = Vec::new();
        for (number, line) in BufReader::new(File::open(path).with_context(context)?).lines().enumerate() {
            let line = line.with_context(context)?;
            let value = match line.starts_with('"') {
                true => serde_json::from_str(&line).with_context(|| {
                    format!("line {} of {} is no JSON string", number + 1, path.display())
                })?,
                false => line,
            };
            values.push(value.into_bytes());
        }
        ensure!(!values.is_empty(), "{} holds no values", path.display());
        Ok(Self::Read(values))
    }

    /// Number of different values; `None` if it is unlimited.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Read(values) => Some(values.len() as u64),
            Self::Generated(_) => None,
        }
    }

    /// The value number `index`; those of a file start over after the last one.
    pub fn get(&self, index: u64) -> Vec<u8> {
        match self {
            Self::Read(values) => values[(index % values.len() as u64) as usize].clone(),
            Self::Generated(corpus) => corpus.value(index),
        }
    }
}

/// Options of `snugly bench values`.
#[derive(Args, Debug)]
pub struct Options {
    /// Kind of values
    #[arg(long, value_enum, default_value_t = Kind::Json)]
    kind: Kind,

    /// Number of values
    #[arg(long, default_value_t = 10)]
    count: u64,

    /// Approximate bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 900)]
    size: usize,

    /// Seed of the values; the same seed gives the same values
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Prints generated values, one a line, as [`Source`] reads them.
pub fn run(options: &Options) -> Result<()> {
    ensure!(options.kind != Kind::Random, "random values are not text: use another kind");
    let corpus = Corpus::new(options.kind, options.size, options.seed);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for index in 0..options.count {
        let value = String::from_utf8(corpus.value(index))?;
        if value.starts_with('{') {
            writeln!(out, "{value}")?;
        } else {
            writeln!(out, "{}", serde_json::to_string(&value)?)?;
        }
    }
    out.flush()?;
    Ok(())
}
