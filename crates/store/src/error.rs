//! Errors of the store's operations.

use thiserror::Error;

/// Failure of a write or a read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The memory budget is used up and the eviction policy found nothing to remove.
    #[error(
        "out of memory: {used} of {max_memory} bytes are used and the policy {policy} finds nothing to evict; raise max-memory or choose another maxmemory-policy"
    )]
    OutOfMemory {
        /// Bytes in use.
        used: u64,
        /// The budget.
        max_memory: u64,
        /// The policy's name.
        policy: &'static str,
    },
    /// The key is longer than `max_key_len`.
    #[error("the key has {len} bytes, at most {limit} are allowed (max-key-bytes)")]
    KeyTooLong {
        /// The key's length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The value is longer than `max_value_len`.
    #[error("the value has {len} bytes, at most {limit} are allowed")]
    ValueTooLong {
        /// The value's length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A stored record could not be decoded.
    #[error("the value of {key:?} cannot be read: {source}", key = String::from_utf8_lossy(key))]
    Unreadable {
        /// The key.
        key: Vec<u8>,
        /// Error of the decoder.
        source: snugly_codec::DecodeError,
    },
    /// Allocation failed for the result of an operation on stored values.
    #[error("the system has no memory for a value of {len} bytes")]
    NoMemory {
        /// The length of the value in bytes.
        len: usize,
    },
    /// The key has a value of another kind than the operation is for.
    #[error("the key holds a value of another kind")]
    WrongType,
    /// A value on disk is not what was written.
    #[error("the value of {key:?} on disk is damaged; write or delete the key to mend it", key = String::from_utf8_lossy(key))]
    Damaged {
        /// The key.
        key: Vec<u8>,
    },
    /// A value on disk is of a kind that this program does not know.
    #[error(
        "the value of {key:?} on disk is of kind {kind}, which this program does not know; use the program that wrote it, or delete the key",
        key = String::from_utf8_lossy(key)
    )]
    UnknownKind {
        /// The key.
        key: Vec<u8>,
        /// The number of the kind.
        kind: u8,
    },
    /// The disk cannot be read or written.
    #[error("{reason}")]
    Disk {
        /// Description of the failure.
        reason: String,
    },
    /// The disk's budget is used up and the eviction policy found nothing to remove, or has no room for what is written
    /// at once.
    #[error(
        "the disk tier has no room for it in its {max_disk} bytes; raise max-disk, choose a maxmemory-policy that evicts, or remove some keys, few at once"
    )]
    DiskFull {
        /// The budget in bytes.
        max_disk: u64,
    },
}

impl StoreError {
    /// Returns whether only one value is unreadable, so that an operation on many values skips it.
    pub(crate) fn is_of_a_value(&self) -> bool {
        matches!(
            self,
            StoreError::Unreadable { .. } | StoreError::Damaged { .. } | StoreError::UnknownKind { .. }
        )
    }
}
