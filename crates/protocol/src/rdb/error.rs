//! What can be wrong with a payload for RESTORE.

use thiserror::Error;

/// Why a payload holds no string that can be restored. `Display` gives the words of Valkey 9.1, as far as it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RestoreError {
    /// The version is not read here, or the checksum does not fit the bytes.
    #[error("DUMP payload version or checksum are wrong")]
    Footer,
    /// The checksum fits, but the bytes are no value.
    #[error("Bad data format")]
    Malformed,
    /// The value is of another type than string.
    #[error("Unsupported data type: {0}. Only strings can be restored")]
    UnsupportedType(&'static str),
    /// The string is longer than the caller allows.
    #[error("the payload holds a string of {len} bytes, at most {limit} are allowed")]
    TooLong {
        /// The claimed length, in bytes.
        len: usize,
        /// The caller's limit, in bytes.
        limit: usize,
    },
}
