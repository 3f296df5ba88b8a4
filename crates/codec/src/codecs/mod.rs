//! The table of codecs: everything that differs between them is a column.
//!
//! A codec is a number of the format ([`CodecId`]), a row of [`CODECS`] and a module with its functions, which may need a
//! feature. A thread keeps its contexts inside each module; nothing here decides *whether* to compress.

pub(crate) mod block;
pub(crate) mod dictionary_block;
pub(crate) mod frame;
mod identity;
#[cfg_attr(not(feature = "lz4"), path = "lz4_absent.rs")]
mod lz4;
#[cfg_attr(not(feature = "lz4"), path = "lz4_dictionary_absent.rs")]
pub(crate) mod lz4_dictionary;
mod lzf;
#[cfg(test)]
mod reversed;
pub(crate) mod tail;
#[cfg_attr(not(feature = "zstd"), path = "zstd_absent.rs")]
pub(crate) mod zstd;

use std::fmt;
use std::ops::RangeInclusive;

use crate::dictionary::Dictionary;

/// Encoding of a record's payload. The numbers are the format's: never renumbered, never reused.
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
    /// One raw LZ4 block that needs a dictionary.
    Lz4Dictionary = 5,
    /// The bytes backwards: a codec that only the tests of the table have.
    #[cfg(test)]
    Reversed = 6,
}

impl CodecId {
    /// Every codec, in the order of the numbers.
    pub const ALL: [CodecId; COUNT] = {
        let mut all = [CodecId::Identity; COUNT];
        let mut number = 0;
        while number < COUNT {
            all[number] = ROWS[number].id;
            number += 1;
        }
        all
    };

    /// The codec with this number in a record, if there is one.
    pub fn from_number(number: u8) -> Option<CodecId> {
        CodecId::ALL.get(usize::from(number)).copied()
    }

    /// The codec's row.
    pub fn codec(self) -> &'static Codec {
        &CODECS[self as usize]
    }

    /// The name in counters, statistics and messages.
    pub fn name(self) -> &'static str {
        self.codec().name
    }

    /// Whether a payload can be read with a dictionary only.
    pub fn needs_dictionary(self) -> bool {
        matches!(self.codec().role, Role::WithDictionary { .. })
    }

    /// The same codec without a dictionary.
    pub fn without_dictionary(self) -> CodecId {
        match self.codec().role {
            Role::WithDictionary { of } => of,
            Role::Values | Role::Nodes => self,
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
pub struct Codec {
    id: CodecId,
    name: &'static str,
    role: Role,
    /// The codec of payloads that are encoded with a dictionary, if this one can take one.
    with_dictionary: Option<CodecId>,
    /// New payloads that are encoded with dictionaries that were learned, and not only with one that somebody gave.
    learned_for: &'static [Learned],
    levels: RangeInclusive<i32>,
    default_level: i32,
    probe_level: i32,
    /// Levels that a study of samples compares.
    candidates: &'static [i32],
    /// Number of bytes that are compressed while zstd compresses one, about.
    relative_speed: usize,
    pub(crate) envelope: Option<EnvelopeForm>,
    /// Reads a payload's structure: exactly one frame or block, nothing after it.
    pub(crate) extent: fn(Framing, &[u8]) -> Result<Extent, &'static str>,
    /// `None` where this build lacks the codec.
    pub(crate) functions: Option<Functions>,
}

/// New payloads for which dictionaries are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// Values of a store.
    Values,
    /// Nodes of a store's lists.
    Nodes,
    /// Values that clients write into other servers.
    Envelopes,
}

/// Settings that can name a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A setting for values, by its name.
    Values,
    /// The nodes of lists only.
    Nodes,
    /// Nobody: another codec becomes this one where there is a dictionary.
    WithDictionary { of: CodecId },
}

const COUNT: usize = ROWS.len();

/// The codecs that snugly knows, available in this build or not, in the order of their numbers.
pub static CODECS: &[Codec] = ROWS;

const ROWS: &[Codec] = &[
    Codec {
        id: CodecId::Identity,
        name: "none",
        role: Role::Values,
        with_dictionary: None,
        learned_for: &[],
        levels: 0..=0,
        default_level: 0,
        probe_level: 0,
        candidates: &[0],
        relative_speed: usize::MAX,
        envelope: None,
        extent: identity::extent,
        functions: Some(identity::FUNCTIONS),
    },
    Codec {
        id: CodecId::Lz4,
        name: "lz4",
        role: Role::Values,
        with_dictionary: Some(CodecId::Lz4Dictionary),
        learned_for: &[Learned::Values, Learned::Envelopes],
        levels: -128..=12,
        default_level: 0,
        probe_level: 0,
        candidates: &[0, 9],
        relative_speed: 8,
        envelope: Some(EnvelopeForm { backend: 0x02, lengths_first: false, claims: block::claims }),
        extent: block::extent,
        functions: lz4::FUNCTIONS,
    },
    Codec {
        id: CodecId::Zstd,
        name: "zstd",
        role: Role::Values,
        with_dictionary: Some(CodecId::ZstdDictionary),
        learned_for: &[Learned::Values, Learned::Nodes, Learned::Envelopes],
        levels: -131_072..=22,
        default_level: 3,
        probe_level: 1,
        candidates: &[1, 3, 6, 9],
        relative_speed: 1,
        envelope: Some(EnvelopeForm { backend: 0x01, lengths_first: false, claims: frame::claims }),
        extent: frame::extent,
        functions: zstd::FUNCTIONS,
    },
    Codec {
        id: CodecId::ZstdDictionary,
        name: "zstd_dictionary",
        role: Role::WithDictionary { of: CodecId::Zstd },
        with_dictionary: None,
        learned_for: &[],
        levels: -131_072..=22,
        default_level: 3,
        probe_level: 1,
        candidates: &[],
        relative_speed: 1,
        envelope: Some(EnvelopeForm { backend: 0x81, lengths_first: false, claims: frame::claims }),
        extent: frame::extent,
        functions: zstd::FUNCTIONS,
    },
    Codec {
        id: CodecId::Lzf,
        name: "lzf",
        role: Role::Nodes,
        with_dictionary: None,
        learned_for: &[],
        levels: 0..=0,
        default_level: 0,
        probe_level: 0,
        candidates: &[],
        relative_speed: 1,
        envelope: None,
        extent: lzf::extent,
        functions: Some(lzf::FUNCTIONS),
    },
    Codec {
        id: CodecId::Lz4Dictionary,
        name: "lz4_dictionary",
        role: Role::WithDictionary { of: CodecId::Lz4 },
        with_dictionary: None,
        learned_for: &[],
        levels: -128..=12,
        default_level: 0,
        probe_level: 0,
        candidates: &[],
        relative_speed: 8,
        envelope: Some(EnvelopeForm { backend: 0x82, lengths_first: true, claims: dictionary_block::claims }),
        extent: dictionary_block::extent,
        functions: lz4_dictionary::FUNCTIONS,
    },
    #[cfg(test)]
    Codec {
        id: CodecId::Reversed,
        name: "reversed",
        role: Role::Nodes,
        with_dictionary: None,
        learned_for: &[],
        levels: 0..=0,
        default_level: 0,
        probe_level: 0,
        candidates: &[],
        relative_speed: 1,
        envelope: Some(EnvelopeForm { backend: 0x9f, lengths_first: false, claims: reversed::claims }),
        extent: reversed::extent,
        functions: Some(reversed::FUNCTIONS),
    },
];

impl Codec {
    /// The codec that a setting can call `name`, available or not.
    pub fn by_name(name: &str) -> Option<&'static Codec> {
        CODECS.iter().find(|codec| codec.name == name && !codec.id.needs_dictionary())
    }

    /// The number of records, without a dictionary.
    pub fn id(&self) -> CodecId {
        self.id
    }

    /// The name in settings and messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a setting for values can name it. The others are for the nodes of lists, or for values with a dictionary.
    pub fn is_for_values(&self) -> bool {
        self.role == Role::Values
    }

    /// The codec of payloads that are encoded with a dictionary, if it can take one.
    pub fn with_dictionary(&self) -> Option<CodecId> {
        self.with_dictionary
    }

    /// Whether these are encoded with dictionaries that were learned: what stores and clients ask that make dictionaries by
    /// themselves. Where it is false, only a caller that hands over a dictionary gets payloads that need one: what reads
    /// them may be younger than what reads the codec's other payloads, or they were not found to be worth it.
    pub fn uses_learned_dictionaries(&self, learned: Learned) -> bool {
        self.learned_for.contains(&learned)
    }

    /// The levels that the codec accepts; below 0 is faster, above 0 is smaller.
    pub fn levels(&self) -> RangeInclusive<i32> {
        self.levels.clone()
    }

    /// The level that is used when none is chosen.
    pub fn default_level(&self) -> i32 {
        self.default_level
    }

    /// The levels that a study of samples compares.
    pub fn candidates(&self) -> &'static [i32] {
        self.candidates
    }

    /// Number of bytes that are compressed while zstd compresses one, about; `usize::MAX` if nothing is done at all.
    pub fn relative_speed(&self) -> usize {
        self.relative_speed
    }

    /// Whether this build contains the codec.
    pub fn is_available(&self) -> bool {
        self.functions.is_some()
    }

    /// A level, at most `level`, that finds out cheaply whether a value compresses at all.
    pub(crate) fn probe_level(&self, level: i32) -> i32 {
        level.min(self.probe_level)
    }
}

/// Form of payloads in envelopes.
#[derive(Debug)]
pub(crate) struct EnvelopeForm {
    /// The backend's byte.
    pub backend: u8,
    /// Whether lengths are checked before the dictionary is looked for, because they stand in front of the payload.
    pub lengths_first: bool,
    /// Reads the start of a payload; `None` if it is none of this backend.
    pub claims: fn(&[u8]) -> Option<Claims>,
}

/// Claims of the start of an envelope's payload, true or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    /// The length of the value, in bytes.
    pub len: Option<u64>,
    /// The length that the payload can reach, where a value that is claimed to be longer shows that it is no envelope.
    pub reach: Option<u64>,
    /// The ID of the dictionary that the payload needs.
    pub dictionary: Option<u32>,
}

/// Place of a payload, which decides what it must say about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// In a record, which has the raw length and the dictionary's number.
    Record,
    /// In an envelope, where the payload is on its own.
    Envelope,
}

/// Parameters of a compression.
#[derive(Clone, Copy)]
pub(crate) struct Encoding<'a> {
    pub level: i32,
    pub framing: Framing,
    pub checksum: bool,
    pub dictionary: Option<&'a Dictionary>,
}

/// Parameters of a decompression.
#[derive(Clone, Copy)]
pub(crate) struct Decoding<'a> {
    pub framing: Framing,
    pub dictionary: Option<&'a Dictionary>,
    /// The most bytes that may be written.
    pub limit: usize,
}

/// Size of a payload's value by its structure, before any memory is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Size that the payload claims, if it claims one.
    pub claimed: Option<u64>,
    /// The most that the payload could decode to.
    pub reach: u64,
}

/// A failure inside a codec, in the codec's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The output does not fit into the room it was given, or a compressed value would be no smaller.
    OutputFull,
    /// The memory for it cannot be had.
    OutOfMemory,
    /// The value is not the one that the payload's checksum is of.
    Checksum {
        /// The payload's checksum.
        declared: u32,
        /// That of the value.
        actual: u32,
    },
    /// Anything else.
    Other(&'static str),
}

/// The functions of an available codec.
#[derive(Debug)]
pub(crate) struct Functions {
    /// Appends the payload. The buffer is unchanged after a failure.
    pub compress: Compress,
    /// Appends the value and returns its length. The buffer is unchanged after a failure.
    pub decompress: Decompress,
}

type Compress = fn(&Encoding<'_>, &[u8], &mut Vec<u8>) -> Result<(), Fault>;
type Decompress = fn(&Decoding<'_>, &[u8], &mut Vec<u8>) -> Result<usize, Fault>;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_their_numbers() {
        for (number, codec) in CODECS.iter().enumerate() {
            assert_eq!(codec.id as usize, number);
            assert_eq!(CodecId::from_number(number as u8), Some(codec.id));
        }
        assert_eq!(CodecId::from_number(CODECS.len() as u8), None);
    }

    #[test]
    fn names_and_backends_are_unique() {
        let names: HashSet<_> = CODECS.iter().map(Codec::name).collect();
        assert_eq!(names.len(), CODECS.len());
        let backends: Vec<_> = CODECS.iter().filter_map(|codec| codec.envelope.as_ref()).collect();
        let bytes: HashSet<_> = backends.iter().map(|form| form.backend).collect();
        assert_eq!(bytes.len(), backends.len());
    }

    #[test]
    fn a_codec_and_its_form_with_a_dictionary_name_each_other() {
        for codec in CODECS {
            assert_eq!(codec.id.without_dictionary() != codec.id, codec.id.needs_dictionary());
            if let Some(with) = codec.with_dictionary {
                assert_eq!((with.needs_dictionary(), with.without_dictionary()), (true, codec.id));
                assert_eq!(with.codec().levels, codec.levels);
            }
            assert!(codec.with_dictionary.is_some() || codec.learned_for.is_empty(), "{codec:?}");
        }
    }

    #[test]
    fn levels_are_in_range() {
        for codec in CODECS {
            let (least, most) = codec.levels().into_inner();
            let levels = [codec.default_level, codec.probe_level(most)];
            for level in levels.iter().chain(codec.candidates) {
                assert!((least..=most).contains(level), "{codec:?}");
            }
        }
    }
}
