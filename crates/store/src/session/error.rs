//! Why operations fail.

use thiserror::Error;

/// Why a write or a read failed.
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
        /// What is wrong with the record.
        source: snugly_codec::DecodeError,
    },
    /// The key has a list where the operation is for strings, or the other way round.
    #[error("the key holds a value of another kind")]
    WrongType,
    /// A value on disk is not what was written.
    #[error("the value of {key:?} on disk is damaged; write or delete the key to mend it", key = String::from_utf8_lossy(key))]
    Damaged {
        /// The key.
        key: Vec<u8>,
    },
    /// The disk cannot be read or written.
    #[error("{reason}")]
    Disk {
        /// What is wrong.
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
