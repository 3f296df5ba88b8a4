//! What can be wrong with bytes that are to be decoded.

use crate::codecs::CodecId;

/// Why a payload was not decoded. Nothing has been appended to the output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The value is, or claims to be, longer than the caller allows.
    #[error(
        "a {codec} payload holds a value of {raw} bytes, over the limit of {limit}: raise the limit to read it"
    )]
    TooLarge {
        /// Encoding of the payload.
        codec: CodecId,
        /// The claimed or least possible length of the value, in bytes.
        raw: u64,
        /// The caller's limit, in bytes.
        limit: usize,
    },
    /// The payload claims more than its bytes could ever decode to.
    #[error(
        "a {codec} payload of {payload} bytes claims {raw} bytes but can reach {reach} at most: it is corrupt"
    )]
    Unreachable {
        /// Encoding of the payload.
        codec: CodecId,
        /// The claimed length of the value, in bytes.
        raw: u64,
        /// The length of the payload, in bytes.
        payload: usize,
        /// The most bytes that the payload could decode to.
        reach: u64,
    },
    /// The payload is cut off, followed by other bytes, or damaged.
    #[error("a {codec} payload of {payload} bytes is corrupt: {reason}")]
    Corrupt {
        /// Encoding of the payload.
        codec: CodecId,
        /// The length of the payload, in bytes.
        payload: usize,
        /// Finding of the check or the codec.
        reason: &'static str,
    },
    /// The payload decodes to fewer bytes than declared.
    #[error(
        "a {codec} payload of {payload} bytes decodes to {actual} bytes where {raw} are declared: it is corrupt"
    )]
    LengthMismatch {
        /// Encoding of the payload.
        codec: CodecId,
        /// The length of the payload, in bytes.
        payload: usize,
        /// The declared length of the value, in bytes.
        raw: u64,
        /// The length that it has, in bytes.
        actual: u64,
    },
    /// The payload decodes to another value than its checksum is of: it is damaged, or names a dictionary that it was not
    /// made with.
    #[error(
        "a {codec} payload of {payload} bytes decodes to a value with the checksum {actual:08x} where {declared:08x} is declared: it is corrupt"
    )]
    ChecksumMismatch {
        /// Encoding of the payload.
        codec: CodecId,
        /// The length of the payload, in bytes.
        payload: usize,
        /// The declared checksum.
        declared: u32,
        /// The checksum that the value has.
        actual: u32,
    },
    /// The payload needs a dictionary that the caller does not have.
    #[error("a payload of {payload} bytes needs the dictionary {dictionary}, which is not at hand")]
    DictionaryMissing {
        /// The dictionary's ID in an envelope, or its number in a record.
        dictionary: u32,
        /// The length of the payload, in bytes.
        payload: usize,
    },
    /// This build does not contain the codec.
    #[error("this build has no {}: rebuild with the feature `{}`", codec.without_dictionary(), codec.without_dictionary())]
    NotBuiltIn {
        /// Encoding of the payload.
        codec: CodecId,
    },
    /// The memory for the value cannot be had.
    #[error("no memory for a value of {bytes} bytes")]
    OutOfMemory {
        /// The bytes asked for.
        bytes: usize,
    },
}

impl DecodeError {
    /// A short name that never changes, for statistics and for bindings in other languages.
    pub fn name(&self) -> &'static str {
        match self {
            DecodeError::TooLarge { .. } => "too_large",
            DecodeError::Unreachable { .. } => "unreachable",
            DecodeError::Corrupt { .. } => "corrupt",
            DecodeError::LengthMismatch { .. } => "length_mismatch",
            DecodeError::ChecksumMismatch { .. } => "checksum_mismatch",
            DecodeError::DictionaryMissing { .. } => "dictionary_missing",
            DecodeError::NotBuiltIn { .. } => "not_built_in",
            DecodeError::OutOfMemory { .. } => "out_of_memory",
        }
    }
}
