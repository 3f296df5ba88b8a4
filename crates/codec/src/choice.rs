//! A writer's choice: which codec, at which level, for values from which size on.

use std::fmt;

use crate::codecs::{CODECS, Codec, CodecId, Learned};

/// Treatment of values by a writer. Readers never need it: records and envelopes say how they are encoded.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    codec: &'static Codec,
    level: i32,
    min_bytes: usize,
}

/// No value shorter than this is compressed, whatever the setting: numbers stay numbers.
pub const LEAST_MIN_BYTES: usize = 32;

impl Choice {
    /// Chooses the codec called `name` (`none`, `lz4` or `zstd`) at `level` (its default if `None`), for
    /// values of `min_bytes` bytes or more (and never fewer than [`LEAST_MIN_BYTES`]).
    ///
    /// # Errors
    /// An unknown name, a codec that is not for values or that this build lacks, or a level out of its range.
    pub fn new(name: &str, level: Option<i32>, min_bytes: usize) -> Result<Choice, SelectError> {
        let codec = Codec::by_name(name).ok_or_else(|| SelectError::Unknown { name: name.to_owned() })?;
        if !codec.is_for_values() {
            return Err(SelectError::NotForValues { codec });
        }
        if !codec.is_available() {
            return Err(SelectError::NotBuiltIn { codec });
        }
        let level = level.unwrap_or(codec.default_level());
        if !codec.levels().contains(&level) {
            return Err(SelectError::LevelOutOfRange { codec, level });
        }
        Ok(Choice { codec, level, min_bytes: min_bytes.max(LEAST_MIN_BYTES) })
    }

    /// Every value stays as it is.
    pub fn none() -> Choice {
        Choice { codec: CodecId::Identity.codec(), level: 0, min_bytes: LEAST_MIN_BYTES }
    }

    /// LZF for nodes of lists of `min_bytes` bytes or more (and never fewer than [`LEAST_MIN_BYTES`]). No setting names
    /// it, and in an envelope it compresses nothing.
    pub fn lzf(min_bytes: usize) -> Choice {
        Choice::for_nodes(CodecId::Lzf, min_bytes)
    }

    pub(crate) fn for_nodes(codec: CodecId, min_bytes: usize) -> Choice {
        Choice { codec: codec.codec(), ..Choice::none() }.with_min_bytes(min_bytes)
    }

    /// The codec that values are compressed with.
    pub fn codec(&self) -> &'static Codec {
        self.codec
    }

    /// The level, within the codec's range.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// Values shorter than this, in bytes, are left alone.
    pub fn min_bytes(&self) -> usize {
        self.min_bytes
    }

    /// The same choice for values of `min_bytes` bytes or more (and never fewer than [`LEAST_MIN_BYTES`]).
    pub fn with_min_bytes(self, min_bytes: usize) -> Choice {
        Choice { min_bytes: min_bytes.max(LEAST_MIN_BYTES), ..self }
    }

    /// The codec of payloads with this dictionary, and the dictionary, unless the codec can take none.
    pub(crate) fn with_dictionary<D>(&self, dictionary: Option<D>) -> (CodecId, Option<D>) {
        match (self.codec.with_dictionary(), dictionary) {
            (Some(codec), Some(dictionary)) => (codec, Some(dictionary)),
            _ => (self.codec.id(), None),
        }
    }

    /// The dictionary, which was learned for these, unless the codec
    /// [uses no learned ones there](Codec::uses_learned_dictionaries).
    pub fn learned<D>(&self, learned: Learned, dictionary: Option<D>) -> Option<D> {
        dictionary.filter(|_| self.codec.uses_learned_dictionaries(learned))
    }

    /// Whether values are compressed at all.
    pub fn compresses(&self) -> bool {
        self.codec.id() != CodecId::Identity
    }
}

impl PartialEq for Choice {
    fn eq(&self, other: &Choice) -> bool {
        (self.codec.id(), self.level, self.min_bytes) == (other.codec.id(), other.level, other.min_bytes)
    }
}

impl Eq for Choice {}

/// Why a [`Choice`] cannot be made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SelectError {
    /// No codec has this name.
    #[error("unknown codec `{name}`: choose one of {}", Names(Codec::is_for_values))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// The codec is for the nodes of lists.
    #[error("{} is for the nodes of lists only: choose one of {}", codec.name(), Names(Codec::is_for_values))]
    NotForValues {
        /// The codec chosen.
        codec: &'static Codec,
    },
    /// The codec was left out when the program was built.
    #[error("this build has no {0}: rebuild with the feature `{0}` or choose one of {1}", codec.name(), Names(|row| row.is_for_values() && row.is_available()))]
    NotBuiltIn {
        /// The codec chosen.
        codec: &'static Codec,
    },
    /// The codec has no such level.
    #[error("{} has no level {level}: choose one from {} to {} (default {})", codec.name(), codec.levels().start(), codec.levels().end(), codec.default_level())]
    LevelOutOfRange {
        /// The codec chosen.
        codec: &'static Codec,
        /// The level given.
        level: i32,
    },
}

/// The names of the codecs that pass a filter, as a list for people.
struct Names(fn(&Codec) -> bool);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = CODECS.iter().filter(|row| (self.0)(row)).map(Codec::name).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str, level: Option<i32>) -> String {
        Choice::new(name, level, 64).expect_err("it is refused").to_string()
    }

    #[test]
    fn an_unknown_codec_is_refused_with_the_known_ones() {
        assert_eq!(error("brotli", None), "unknown codec `brotli`: choose one of none, lz4, zstd");
    }

    #[test]
    fn lzf_is_for_the_nodes_of_lists_and_refused_for_values() {
        assert_eq!(error("lzf", None), "lzf is for the nodes of lists only: choose one of none, lz4, zstd");
        let choice = Choice::lzf(48);
        assert_eq!((choice.codec().id(), choice.min_bytes()), (CodecId::Lzf, 48));
        assert!(choice.compresses());
    }

    #[test]
    fn a_codec_that_is_not_built_in_is_refused_with_what_to_do() {
        let named = CODECS.iter().filter(|codec| !codec.id().needs_dictionary());
        for codec in named.filter(|codec| !codec.is_available()) {
            let error = error(codec.name(), None);
            let name = codec.name();
            assert!(
                error.starts_with(&format!("this build has no {name}: rebuild with the feature `{name}`"))
            );
            assert!(error.contains("or choose one of none"), "{error}");
        }
    }

    #[test]
    fn levels_are_held_to_the_range_of_the_algorithm() {
        let selectable = |row: &&Codec| row.is_for_values() && row.is_available();
        for codec in CODECS.iter().filter(selectable) {
            let (least, most) = codec.levels().into_inner();
            let level = |level| Choice::new(codec.name(), level, 64).map(|choice| choice.level()).ok();
            assert_eq!(level(None), Some(codec.default_level()));
            assert_eq!(level(Some(least)), Some(least));
            assert_eq!(level(Some(most)), Some(most));
            assert_eq!(level(Some(most + 1)), None);
            let error = error(codec.name(), Some(least - 1));
            assert!(error.contains(&format!("choose one from {least} to {most}")), "{error}");
        }
    }

    #[test]
    fn no_threshold_lets_numbers_be_compressed() {
        assert_eq!(Choice::new("none", None, 0).expect("it exists").min_bytes(), LEAST_MIN_BYTES);
        assert_eq!(Choice::new("none", None, 256).expect("it exists").min_bytes(), 256);
        assert_eq!(Choice::none().with_min_bytes(0).min_bytes(), LEAST_MIN_BYTES);
        assert_eq!(Choice::none().with_min_bytes(64).min_bytes(), 64);
    }
}
