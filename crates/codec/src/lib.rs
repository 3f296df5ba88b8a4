//! Bytes in, smaller bytes out: codecs, levels, dictionaries, envelope, record, policy and counters.
//!
//! A store keeps [`Record`]s, made by an [`Encoder`] and read by a [`Decoder`], one of each a thread. A
//! client sends and reads [`envelope`]s. Both leave a value as it is when compressing it gains nothing, and
//! neither trusts a byte that it reads. The crate does no I/O, knows no keys, commands or sockets, and
//! decides for nobody what is worth caching.
//!
//! ```
//! use std::sync::Arc;
//! use snugly_codec::{Choice, Counters, Decoder, Encoder, Record};
//!
//! let counters = Arc::new(Counters::default());
//! let mut encoder = Encoder::new(counters.clone());
//! let mut decoder = Decoder::new(counters.clone());
//! # if !snugly_codec::Codec::by_name("zstd").unwrap().is_available() { return Ok(()); }
//! let choice = Choice::new("zstd", None, 256)?;
//!
//! let value = br#"{"name": "value", "tags": ["cache", "cached", "caching"]}"#.repeat(10);
//! let mut stored = Vec::new();
//! encoder.encode(choice, &value, 0, |bytes| bytes).append_to(&mut stored);
//! assert!(stored.len() < value.len() / 4);
//!
//! let mut restored = Vec::new();
//! decoder.decode(&Record::parse(&stored)?, 1 << 20, &mut restored)?;
//! assert_eq!(restored, value);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without the features `zstd` and `lz4` the crate stores all values as they are; choosing a missing codec
//! and reading what it wrote are errors that say so. LZF, for the nodes of lists, is always there.

#![cfg_attr(
    not(all(feature = "zstd", feature = "lz4")),
    allow(dead_code, reason = "what only a codec reads is unused in a build without it")
)]

mod choice;
mod codecs;
mod counters;
mod decoder;
mod dictionary;
mod encoder;
pub mod envelope;
mod error;
mod outcome;
mod policy;
mod record;
mod stopwatch;

pub use choice::{Choice, LEAST_MIN_BYTES, SelectError};
pub use codecs::{CODECS, Codec, CodecId, Learned};
pub use counters::{Counters, DESCRIPTORS, Descriptor, Family, Snapshot};
pub use decoder::{Decoder, Dictionaries};
pub use dictionary::{Dictionary, LoadError, TrainError};
pub use encoder::Encoder;
pub use error::DecodeError;
pub use outcome::Reason;
pub use record::{MAX_HEADER, Record, RecordError};
pub use stopwatch::{Ended, Started, Stopwatch};
