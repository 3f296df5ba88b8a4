//! Errors in a payload for RESTORE, and in an RDB file.

use std::io;

use thiserror::Error;

/// Reason why a payload cannot be restored. `Display` gives the words of Valkey 9.1, as far as it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RestoreError {
    /// The version is not read here, or the checksum does not fit the bytes.
    #[error("DUMP payload version or checksum are wrong")]
    Footer,
    /// The checksum fits, but the bytes are no value.
    #[error("Bad data format")]
    Malformed,
    /// The payload is of a newer version, with a type that is not known here.
    #[error("Bad data format: type {number} of version {version} is not known")]
    UnknownType {
        /// The type's number.
        number: u8,
        /// The payload's version.
        version: u16,
    },
    /// The value is neither a string nor a list.
    #[error("Unsupported data type: {0}")]
    UnsupportedType(&'static str),
    /// A string or an element is longer than the caller allows.
    #[error("the payload holds a string of {len} bytes, at most {limit} are allowed")]
    TooLong {
        /// The claimed length, in bytes.
        len: usize,
        /// The caller's limit, in bytes.
        limit: usize,
    },
    /// The system has no memory for a string.
    #[error("the system has no memory for a value of {len} bytes")]
    NoMemory {
        /// The string's length, in bytes.
        len: usize,
    },
}

/// Reason why an RDB file cannot be read. Offsets are bytes from the start of the file, behind the last read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file is not an RDB file.
    #[error("this is no RDB file: it begins with \"{}\", not with REDIS or VALKEY and a version", .start.escape_ascii())]
    NotRdb {
        /// Its first bytes.
        start: Vec<u8>,
    },
    /// There is no such version.
    #[error(
        "this is an RDB file {magic} {version}, and there are only REDIS 1 to 79 and VALKEY from 80 on: take another \
         copy"
    )]
    Version {
        /// The word in front of the version.
        magic: &'static str,
        /// The number behind it.
        version: u16,
    },
    /// The file has a version newer than what is known here, and something that came with it.
    #[error(
        "the RDB file is {magic} {version}, newer than what is known here, and cannot be read at byte {offset}, {place}: \
         {reason}; remove that where the file was written, or have it written by Redis up to 7.2 or Valkey up to 9.1",
        place = .key.as_ref().map_or("outside of keys".into(), |key| format!("in the key \"{}\"", key.escape_ascii()))
    )]
    Newer {
        /// The word in front of the version.
        magic: &'static str,
        /// The number behind it.
        version: u16,
        /// The offset at which it was noticed.
        offset: u64,
        /// The reason.
        reason: &'static str,
        /// The key whose value has it, if it is known.
        key: Option<Vec<u8>>,
    },
    /// The file ends in the middle of its contents.
    #[error(
        "the RDB file ends at byte {offset}, in the middle of what it holds: it is cut off, take a whole copy"
    )]
    Ended {
        /// Its length, in bytes.
        offset: u64,
    },
    /// The bytes make no sense.
    #[error("the RDB file is damaged at byte {offset}: {reason}; take another copy")]
    Malformed {
        /// The offset at which it was noticed.
        offset: u64,
        /// The reason.
        reason: &'static str,
    },
    /// The file has something that cannot even be skipped.
    #[error(
        "the RDB file has {what} at byte {offset}, which cannot be read: remove that where the file was written"
    )]
    Unsupported {
        /// The offset at which it was noticed.
        offset: u64,
        /// The unsupported part.
        what: &'static str,
    },
    /// A key, a string or an element is longer than the caller allows.
    #[error(
        "the RDB file holds a string of {len} bytes at byte {offset}, at most {limit} are allowed: raise the limit"
    )]
    TooLong {
        /// The offset at which it was noticed.
        offset: u64,
        /// The claimed length, in bytes.
        len: usize,
        /// The caller's limit, in bytes.
        limit: usize,
    },
    /// The bytes are others than those that were written.
    #[error(
        "the checksum at the end of the RDB file does not fit its bytes: it is damaged, take another copy"
    )]
    Checksum,
    /// Reading failed.
    #[error("cannot read the RDB file at byte {offset}: {source}")]
    Io {
        /// The offset at which that was noticed.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
}

/// A fault in bytes, wherever they come from.
#[derive(Debug)]
pub(super) enum Fault {
    Ended,
    Malformed(&'static str),
    Unsupported(&'static str),
    TooLong { len: usize, limit: usize },
    NoMemory { len: usize },
    Checksum,
    Io(io::Error),
}

impl Fault {
    /// The error of a file that was read so far.
    pub fn at(self, offset: u64) -> FileError {
        match self {
            Fault::Ended => FileError::Ended { offset },
            Fault::Malformed(reason) => FileError::Malformed { offset, reason },
            Fault::Unsupported(what) => FileError::Unsupported { offset, what },
            Fault::TooLong { len, limit } => FileError::TooLong { offset, len, limit },
            Fault::Checksum => FileError::Checksum,
            Fault::NoMemory { .. } => FileError::Io { offset, source: io::ErrorKind::OutOfMemory.into() },
            Fault::Io(source) => FileError::Io { offset, source },
        }
    }
}

impl From<Fault> for RestoreError {
    fn from(fault: Fault) -> RestoreError {
        match fault {
            Fault::TooLong { len, limit } => RestoreError::TooLong { len, limit },
            Fault::NoMemory { len } => RestoreError::NoMemory { len },
            _ => RestoreError::Malformed,
        }
    }
}
