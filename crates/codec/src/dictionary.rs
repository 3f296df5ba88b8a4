//! Dictionaries: what many small values have in common, known to both sides beforehand.
//!
//! Only full zstd dictionaries are accepted (RFC 8878, section 5), and only those whose ID proves their
//! content, so that a value can never be decoded with the wrong one. Where dictionaries are kept is for
//! others to know.

mod shared;

use std::fmt;
use std::sync::Arc;

use xxhash_rust::xxh64::xxh64;

use crate::choice::Choice;
use crate::codecs::zstd::{self, Prepared};
use crate::codecs::{CodecId, lz4_dictionary};

const MAGIC: [u8; 4] = [0x37, 0xA4, 0x30, 0xEC];
/// Magic number and ID.
const HEADER_LEN: usize = 8;
/// The offsets that a dictionary starts with reach back so far into its content (RFC 8878, section 5).
const LEAST_CONTENT: usize = 8;
/// Smaller IDs are reserved for a public registry, and larger ones for the future (RFC 8878, section 5).
pub(crate) const FIRST_ID: u64 = 32_768;
const END_OF_IDS: u64 = 1 << 31;

/// A loaded dictionary: immutable, made ready once, shared by all threads.
pub struct Dictionary {
    id: u32,
    /// Shared with the tables for LZ4, which point at them.
    bytes: Arc<[u8]>,
    prepared: Prepared,
    lz4: lz4_dictionary::Tables,
}

impl Dictionary {
    /// The largest dictionary that is accepted, in bytes.
    pub const MAX_BYTES: usize = 1 << 20;
    /// The smallest dictionary that can be trained, in bytes (ZDICT_DICTSIZE_MIN).
    pub const MIN_TRAINED_BYTES: usize = 256;

    /// Loads a full zstd dictionary and checks that its ID is that of its content.
    ///
    /// # Errors
    /// Bytes that are no such dictionary, or any dictionary if this build has no zstd.
    pub fn load(bytes: impl Into<Box<[u8]>>) -> Result<Dictionary, LoadError> {
        let bytes: Box<[u8]> = bytes.into();
        if bytes.len() > Dictionary::MAX_BYTES {
            return Err(LoadError::TooLarge { len: bytes.len() });
        }
        let header = bytes.first_chunk::<HEADER_LEN>().ok_or(LoadError::NotADictionary)?;
        let [m0, m1, m2, m3, id @ ..] = *header;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(LoadError::NotADictionary);
        }
        let declared = u32::from_le_bytes(id);
        let id = content_id(&bytes);
        if declared != id {
            return Err(LoadError::WrongId { declared, content: id });
        }
        let prepared = Prepared::new(&bytes)?;
        Ok(Dictionary { id, bytes: bytes.into(), prepared, lz4: lz4_dictionary::Tables::new() })
    }

    /// Trains a dictionary of at most `max_bytes` bytes ([`Dictionary::MIN_TRAINED_BYTES`] to
    /// [`Dictionary::MAX_BYTES`]) from sample values: hundreds of them, together about a hundred times its
    /// size.
    ///
    /// A dictionary outlives the values that it was trained on and is shared by many readers: it is made of
    /// fragments of which any eight bytes in a row stand in several samples.
    ///
    /// # Errors
    /// Too few or too small samples, or nothing that they share, a size out of range, or a build without zstd.
    pub fn train<S: AsRef<[u8]>>(samples: &[S], max_bytes: usize) -> Result<Dictionary, TrainError> {
        if !(Dictionary::MIN_TRAINED_BYTES..=Dictionary::MAX_BYTES).contains(&max_bytes) {
            return Err(TrainError::SizeOutOfRange { max_bytes });
        }
        let samples: Vec<&[u8]> =
            samples.iter().map(AsRef::as_ref).filter(|sample| !sample.is_empty()).collect();
        let lengths: Vec<usize> = samples.iter().map(|sample| sample.len()).collect();
        let trained = zstd::train(&samples.concat(), &lengths, max_bytes)?;
        let unreadable = TrainError::Unusable(LoadError::Corrupt);
        let header_len = zstd::dictionary_header_len(&trained).ok_or(unreadable)?;
        let (header, content) = trained.split_at(header_len);
        let content = shared::fragments(content, &samples);
        if content.len() < LEAST_CONTENT {
            return Err(TrainError::Refused("the samples share nothing"));
        }
        let mut bytes = [header, &content].concat();
        let id = content_id(&bytes);
        bytes[MAGIC.len()..HEADER_LEN].copy_from_slice(&id.to_le_bytes());
        Dictionary::load(bytes).map_err(TrainError::Unusable)
    }

    /// The ID, which is derived from the content: two dictionaries share it only if they are the same.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The whole dictionary, as it is published and stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that the dictionary takes in memory once values were encoded with it by zstd at `level` and decoded: its
    /// content, and the tables that are made of it. They are made now if they are missing. Those of other levels and for
    /// LZ4 that are there count as well.
    pub fn memory(&self, level: i32) -> usize {
        self.prepared.prepare(&self.bytes, level);
        self.memory_taken()
    }

    /// As [`Dictionary::memory`], for the codec and the level of a choice. LZ4 has a table of 16 KiB for all levels up to
    /// 0, and one of 256 KiB for those above.
    pub fn memory_for(&self, choice: Choice) -> usize {
        match choice.codec().with_dictionary() {
            Some(CodecId::Lz4Dictionary) => self.lz4.prepare(&self.bytes, choice.level()),
            Some(_) => self.prepared.prepare(&self.bytes, choice.level()),
            None => {}
        }
        self.memory_taken()
    }

    /// Bytes that the dictionary takes in memory at this moment, as [`Dictionary::memory`] counts them.
    pub fn memory_taken(&self) -> usize {
        self.bytes.len() + self.prepared.memory() + self.lz4.memory()
    }

    pub(crate) fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The tables for LZ4, and the bytes that they are made of.
    pub(crate) fn lz4(&self) -> (&lz4_dictionary::Tables, &Arc<[u8]>) {
        (&self.lz4, &self.bytes)
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("id", &self.id).field("len", &self.bytes.len()).finish()
    }
}

/// The ID that a dictionary with this content must have; `bytes` is at least a header.
fn content_id(bytes: &[u8]) -> u32 {
    let hash = xxh64(&bytes[HEADER_LEN..], 0);
    (FIRST_ID + hash % (END_OF_IDS - FIRST_ID)) as u32
}

/// Why bytes are not accepted as a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Longer than [`Dictionary::MAX_BYTES`].
    #[error("a dictionary of {len} bytes is too large: at most {} are accepted", Dictionary::MAX_BYTES)]
    TooLarge {
        /// Its length, in bytes.
        len: usize,
    },
    /// No magic number: raw content would decode into wrong bytes without a word.
    #[error("not a zstd dictionary: it must start with the dictionary magic number 37 a4 30 ec")]
    NotADictionary,
    /// The content is not what the ID was derived from.
    #[error(
        "the dictionary says that its ID is {declared}, but its content has the ID {content}: it is not what was published, or was not trained by snugly"
    )]
    WrongId {
        /// The ID in its header.
        declared: u32,
        /// The ID of its content.
        content: u32,
    },
    /// zstd cannot read the entropy tables.
    #[error("the dictionary is corrupt: zstd cannot load its tables")]
    Corrupt,
    /// This build does not contain zstd.
    #[error("this build has no zstd, which dictionaries need: rebuild with the feature `zstd`")]
    NotBuiltIn,
}

/// Why no dictionary was trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// The size asked for is out of range.
    #[error(
        "cannot train a dictionary of {max_bytes} bytes: choose {} to {}",
        Dictionary::MIN_TRAINED_BYTES,
        Dictionary::MAX_BYTES
    )]
    SizeOutOfRange {
        /// The size asked for, in bytes.
        max_bytes: usize,
    },
    /// zstd's trainer gave up, most often for want of samples.
    #[error(
        "no dictionary can be trained from these samples ({0}): give more of them, or ask for a smaller one"
    )]
    Refused(&'static str),
    /// The trained dictionary does not load.
    #[error("the trained dictionary is unusable: {0}")]
    Unusable(LoadError),
    /// This build does not contain zstd.
    #[error("this build has no zstd, which dictionaries need: rebuild with the feature `zstd`")]
    NotBuiltIn,
}
