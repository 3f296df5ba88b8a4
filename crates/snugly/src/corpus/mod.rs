//! Generated values that look like what applications cache: unique, not repeated, with the entropy of real data.
//!
//! Value `index` of a corpus depends on nothing but the corpus's kind, size and seed, so values are made where they are
//! needed and made again to compare. How compressible they are beside real data is a test here and a table in the
//! documentation of the benchmarks.

mod csv;
mod html;
mod json;
mod sampler;
mod session;
mod vocabulary;

use clap::ValueEnum;
use sampler::Sampler;

/// What generated values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// JSON documents of an API: records, and pages of records from about 1,500 bytes
    Json,
    /// Rendered HTML: fragments, and whole pages from about 2,000 bytes
    Html,
    /// CSV exports: a header and rows
    Csv,
    /// Web sessions with tokens, serialised as PHP does or as JSON
    Session,
    /// Random bytes, which nothing compresses
    Random,
}

/// A sequence of unique values, made on demand.
#[derive(Clone, Copy, Debug)]
pub struct Corpus {
    kind: Kind,
    size: usize,
    seed: u64,
}

impl Corpus {
    /// Values of `kind` of about `size` bytes: each within about a fifth of it, on average close to it, except that
    /// nothing is shorter than its kind's smallest record.
    pub fn new(kind: Kind, size: usize, seed: u64) -> Self {
        Self { kind, size, seed }
    }

    /// The value number `index`.
    pub fn value(&self, index: u64) -> Vec<u8> {
        let mut sampler = Sampler::new(self.seed, index);
        if self.kind == Kind::Random {
            let mut bytes = vec![0; self.size];
            sampler.fill(&mut bytes);
            return bytes;
        }
        let spread = self.size / 5;
        let size = self.size - spread + sampler.number(0..=2 * spread);
        let text = match self.kind {
            Kind::Json => json::document(&mut sampler, index, size),
            Kind::Html => html::markup(&mut sampler, index, size),
            Kind::Csv => csv::export(&mut sampler, index, size),
            Kind::Session | Kind::Random => session::session(&mut sampler, index, size),
        };
        text.into_bytes()
    }
}
