//! The table of algorithms: what each can do, and how to call it.
//!
//! Adding an algorithm is adding a [`CodecId`] (a number of the format) and a row to [`ALGORITHMS`]. Contexts
//! are kept per thread inside each algorithm's module; nothing here decides *whether* to compress.

pub(crate) mod block;
pub(crate) mod frame;
mod identity;
#[cfg_attr(not(feature = "lz4"), path = "lz4_absent.rs")]
mod lz4;
mod lzf;
pub(crate) mod tail;
#[cfg_attr(not(feature = "zstd"), path = "zstd_absent.rs")]
pub(crate) mod zstd;

use std::fmt;
use std::ops::RangeInclusive;

use crate::dictionary::Dictionary;

/// How a record's payload is encoded. The numbers are the format's: never renumbered, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CodecId {
    /// The value as it is.
    Identity = 0,
    /// One raw LZ4 block.
    Lz4 = 1,
    /// One zstd frame (RFC 8878).
    Zstd = 2,
    /// One zstd frame that needs a dictionary.
    ZstdDictionary = 3,
    /// One LZF stream.
    Lzf = 4,
}

impl CodecId {
    /// Every codec, in the order of the numbers.
    pub const ALL: [CodecId; 5] =
        [CodecId::Identity, CodecId::Lz4, CodecId::Zstd, CodecId::ZstdDictionary, CodecId::Lzf];

    /// The codec with this number in a record, if there is one.
    pub fn from_number(number: u8) -> Option<CodecId> {
        CodecId::ALL.get(usize::from(number)).copied()
    }

    /// The codec's name in counters, statistics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            CodecId::Identity => "none",
            CodecId::Lz4 => "lz4",
            CodecId::Zstd => "zstd",
            CodecId::ZstdDictionary => "zstd_dictionary",
            CodecId::Lzf => "lzf",
        }
    }

    /// The row that encodes and decodes this codec.
    pub fn algorithm(self) -> &'static Algorithm {
        match self {
            CodecId::Identity => &ALGORITHMS[0],
            CodecId::Lz4 => &ALGORITHMS[1],
            CodecId::Zstd | CodecId::ZstdDictionary => &ALGORITHMS[2],
            CodecId::Lzf => &ALGORITHMS[3],
        }
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Algorithm {
    id: CodecId,
    name: &'static str,
    /// Whether it is among those that a setting for values can name.
    is_for_values: bool,
    levels: RangeInclusive<i32>,
    default_level: i32,
    probe_level: i32,
    /// Reads a payload's structure: exactly one frame or block, nothing after it.
    pub(crate) extent: fn(Framing, &[u8]) -> Result<Extent, &'static str>,
    pub(crate) backend: Option<Backend>,
}

/// The algorithms that snugly knows, available in this build or not.
pub static ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        id: CodecId::Identity,
        name: "none",
        is_for_values: true,
        levels: 0..=0,
        default_level: 0,
        probe_level: 0,
        extent: identity::extent,
        backend: Some(identity::BACKEND),
    },
    Algorithm {
        id: CodecId::Lz4,
        name: "lz4",
        is_for_values: true,
        levels: -128..=12,
        default_level: 0,
        probe_level: 0,
        extent: block::extent,
        backend: lz4::BACKEND,
    },
    Algorithm {
        id: CodecId::Zstd,
        name: "zstd",
        is_for_values: true,
        levels: -131_072..=22,
        default_level: 3,
        probe_level: 1,
        extent: frame::extent,
        backend: zstd::BACKEND,
    },
    Algorithm {
        id: CodecId::Lzf,
        name: "lzf",
        is_for_values: false,
        levels: 0..=0,
        default_level: 0,
        probe_level: 0,
        extent: lzf::extent,
        backend: Some(lzf::BACKEND),
    },
];

impl Algorithm {
    /// The row called `name`, available or not.
    pub fn by_name(name: &str) -> Option<&'static Algorithm> {
        ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
    }

    /// The codec that a value compressed by this algorithm without a dictionary is stored under.
    pub fn id(&self) -> CodecId {
        self.id
    }

    /// The name in settings and messages: `none`, `lz4`, `zstd` or `lzf`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether values can be compressed with it; LZF is for the nodes of lists only.
    pub fn is_for_values(&self) -> bool {
        self.is_for_values
    }

    /// The levels that the algorithm accepts; below 0 is faster, above 0 is smaller.
    pub fn levels(&self) -> RangeInclusive<i32> {
        self.levels.clone()
    }

    /// The level that is used when none is chosen.
    pub fn default_level(&self) -> i32 {
        self.default_level
    }

    /// Whether this build contains the algorithm.
    pub fn is_available(&self) -> bool {
        self.backend.is_some()
    }

    /// A level, at most `level`, that finds out cheaply whether a value compresses at all.
    pub(crate) fn probe_level(&self, level: i32) -> i32 {
        level.min(self.probe_level)
    }
}

/// Where a payload stands, which decides what it must say about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// In a record, which has the raw length and the dictionary's number.
    Record,
    /// In an envelope, where the payload is on its own.
    Envelope,
}

/// How a value is to be compressed.
#[derive(Clone, Copy)]
pub(crate) struct Encoding<'a> {
    pub level: i32,
    pub framing: Framing,
    pub checksum: bool,
    pub dictionary: Option<&'a Dictionary>,
}

/// How a payload is to be decompressed.
#[derive(Clone, Copy)]
pub(crate) struct Decoding<'a> {
    pub framing: Framing,
    pub dictionary: Option<&'a Dictionary>,
    /// The most bytes that may be written.
    pub limit: usize,
}

/// What a payload's structure says about the size of its value, before any memory is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// What the payload claims, if it claims anything.
    pub claimed: Option<u64>,
    /// The most that the payload could decode to.
    pub reach: u64,
}

/// A failure inside an algorithm, in the algorithm's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The output does not fit into the room it was given, or a compressed value would be no smaller.
    OutputFull,
    /// The memory for it cannot be had.
    OutOfMemory,
    /// Anything else.
    Other(&'static str),
}

/// The functions of an available algorithm.
#[derive(Debug)]
pub(crate) struct Backend {
    /// Appends the payload. The buffer is unchanged after a failure.
    pub compress: Compress,
    /// Appends the value and returns its length. The buffer is unchanged after a failure.
    pub decompress: Decompress,
}

type Compress = fn(&Encoding<'_>, &[u8], &mut Vec<u8>) -> Result<(), Fault>;
type Decompress = fn(&Decoding<'_>, &[u8], &mut Vec<u8>) -> Result<usize, Fault>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_is_that_of_its_number_and_is_read_by_its_algorithm() {
        for (number, codec) in CodecId::ALL.into_iter().enumerate() {
            assert_eq!(codec as usize, number);
            let dictionary_free = if codec == CodecId::ZstdDictionary { CodecId::Zstd } else { codec };
            assert_eq!(codec.algorithm().id(), dictionary_free);
        }
        assert_eq!(CodecId::from_number(5), None);
    }

    #[test]
    fn the_default_level_is_in_range() {
        for algorithm in ALGORITHMS {
            assert!(algorithm.levels().contains(&algorithm.default_level()));
            assert!(algorithm.levels().contains(&algorithm.probe_level(*algorithm.levels().end())));
        }
    }
}
