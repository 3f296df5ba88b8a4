//! Generated values that look like what applications cache: unique, not repeated, with the entropy of real data.
//!
//! Value `index` of a corpus depends on nothing but the corpus's kind, size and seed, so values are made where they are
//! needed and made again to compare. Their compressibility beside real data is a test here and a table in the
//! documentation of the benchmarks.

mod csv;
mod event;
mod html;
mod json;
mod sampler;
mod session;
mod ticket;
mod vocabulary;

use clap::ValueEnum;
use sampler::Sampler;

/// Kinds of generated values.
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
    /// Events of an application: JSON records of one form that differ in ids, times, people and words
    Events,
    /// Tickets of a help desk: JSON of which half of the words stand in no other value, and so in no dictionary
    Tickets,
    /// Events that differ in nothing but their number
    Repetitive,
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
        let size = match self.kind {
            Kind::Repetitive | Kind::Random => self.size,
            _ => {
                let spread = self.size / 5;
                self.size - spread + sampler.number(0..=2 * spread)
            }
        };
        let text = match self.kind {
            Kind::Json => json::document(&mut sampler, index, size),
            Kind::Html => html::markup(&mut sampler, index, size),
            Kind::Csv => csv::export(&mut sampler, index, size),
            Kind::Session => session::session(&mut sampler, index, size),
            Kind::Events => event::varied(&mut sampler, index, size),
            Kind::Tickets => ticket::ticket(&mut sampler, index, size),
            Kind::Repetitive => event::repetitive(self.seed, index, size),
            Kind::Random => {
                let mut bytes = vec![0; size];
                sampler.fill(&mut bytes);
                return bytes;
            }
        };
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const TEXTS: [Kind; 7] =
        [Kind::Json, Kind::Html, Kind::Csv, Kind::Session, Kind::Events, Kind::Tickets, Kind::Repetitive];

    #[test]
    fn the_same_seed_and_index_give_the_same_value_and_others_give_others() {
        for kind in TEXTS.into_iter().chain([Kind::Random]) {
            let corpus = Corpus::new(kind, 700, 1);
            assert_eq!(corpus.value(5), Corpus::new(kind, 700, 1).value(5));
            assert_ne!(corpus.value(5), Corpus::new(kind, 700, 2).value(5));
            let distinct: HashSet<Vec<u8>> = (0..5000).map(|index| corpus.value(index)).collect();
            assert_eq!(distinct.len(), 5000, "{kind:?}");
        }
    }

    #[test]
    fn values_have_about_the_size_that_was_asked_for() {
        for kind in TEXTS {
            for size in [500, 900, 2500, 6000] {
                let corpus = Corpus::new(kind, size, 1);
                let total: usize = (0..500).map(|index| corpus.value(index).len()).sum();
                let average = total as f64 / 500.0;
                assert!((average / size as f64 - 1.0).abs() < 0.12, "{kind:?} of {size}: {average}");
            }
        }
        for kind in [Kind::Repetitive, Kind::Random] {
            assert_eq!(Corpus::new(kind, 1234, 1).value(9).len(), 1234);
        }
    }

    #[test]
    fn json_documents_events_and_json_sessions_are_json() {
        for size in [200, 900, 4000] {
            for index in 0..200 {
                let document = Corpus::new(Kind::Json, size, 3).value(index);
                serde_json::from_slice::<serde_json::Value>(&document).unwrap();
                for kind in [Kind::Events, Kind::Tickets, Kind::Repetitive] {
                    let event = Corpus::new(kind, size, 3).value(index);
                    serde_json::from_slice::<serde_json::Value>(&event).unwrap();
                }
                let session = Corpus::new(Kind::Session, size, 3).value(index);
                assert!(
                    session.starts_with(b"_token|")
                        || serde_json::from_slice::<serde_json::Value>(&session).is_ok()
                );
            }
        }
    }

    #[test]
    fn half_of_the_words_of_a_ticket_stand_in_no_other_one() {
        let words = |index| -> Vec<String> {
            let ticket = Corpus::new(Kind::Tickets, 1_000, 1).value(index);
            let ticket: serde_json::Value = serde_json::from_slice(&ticket).unwrap();
            ticket["description"].as_str().unwrap().split(' ').map(str::to_owned).collect()
        };
        let others: HashSet<String> = (1..500).flat_map(words).collect();
        let (all, own) = (words(0).len(), words(0).iter().filter(|word| !others.contains(*word)).count());
        assert!((0.3..0.65).contains(&(own as f64 / all as f64)), "{own} of {all}");
    }

    /// Real values, zstd level 3, a value at a time: 900 B movie records 39 % saved, 2,600 B pages of them 53 %, 680 B
    /// HTML fragments 47 %, 6,000 B HTML pages 62 %, 1,280 B CSV exports 60 %, 340 B log records 28 %.
    #[cfg(feature = "zstd")]
    #[test]
    fn values_compress_about_as_well_as_real_ones() {
        for (kind, size, real) in [
            (Kind::Json, 340, 28.0),
            (Kind::Json, 900, 39.0),
            (Kind::Json, 2600, 53.0),
            (Kind::Html, 680, 47.0),
            (Kind::Html, 6000, 62.0),
            (Kind::Csv, 1280, 60.0),
            (Kind::Random, 1000, 0.0),
        ] {
            let saved = saved_percent(Corpus::new(kind, size, 1));
            assert!((saved - real).abs() < 6.0, "{kind:?} of {size}: {saved:.1} % instead of {real} %");
        }
    }

    /// Nodes of lists are of 8 KiB by default.
    #[cfg(feature = "lz4")]
    #[test]
    fn events_compress_two_to_three_times_where_many_are_together_and_those_nearly_alike_far_better() {
        use snugly_codec::Choice;
        use snugly_codec::envelope::{Options, encode};

        let times = |kind| {
            let corpus = Corpus::new(kind, 512, 1);
            let options = Options { choice: Choice::new("lz4", None, 32).unwrap(), ..Options::default() };
            let (mut given, mut stored) = (0, 0);
            for node in 0..100 {
                let value: Vec<u8> = (0..16).flat_map(|index| corpus.value(node * 16 + index)).collect();
                let mut out = Vec::new();
                encode(&options, &value, &mut out);
                given += value.len();
                stored += out.len();
            }
            given as f64 / stored as f64
        };
        let (varied, repetitive) = (times(Kind::Events), times(Kind::Repetitive));
        assert!((2.0..3.0).contains(&varied), "{varied}");
        assert!((20.0..50.0).contains(&repetitive), "{repetitive}");
    }

    #[cfg(feature = "zstd")]
    fn saved_percent(corpus: Corpus) -> f64 {
        use snugly_codec::Choice;
        use snugly_codec::envelope::{Options, encode};

        const HEADER: usize = 5;
        let options = Options { choice: Choice::new("zstd", Some(3), 32).unwrap(), ..Options::default() };
        let (mut given, mut stored) = (0, 0);
        for index in 0..1000 {
            let value = corpus.value(index);
            let mut out = Vec::new();
            encode(&options, &value, &mut out);
            given += value.len();
            stored += if out.is_empty() { value.len() } else { out.len() - HEADER };
        }
        100.0 - 100.0 * stored as f64 / given as f64
    }
}
