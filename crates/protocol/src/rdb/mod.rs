//! Values as one server gives them to another: in the payloads of DUMP and RESTORE, and in RDB files.
//!
//! - [`restore`] and [`dump`]: one value with a footer
//! - [`Reader`]: the keys of a file, one after the other
//! - [`Writer`]: such a file
//!
//! Strings and lists are read in every form in which Redis and Valkey up to 9.1 have written them. Values of other
//! types are skipped in files, and refused in payloads. Newer versions are read as far as they have nothing new. The output is of version 11 of the format, which Valkey and
//! Redis read from 7.2 on. The source is Valkey's `rdb.c`. The module knows bytes, and reads and writes them where it
//! is told to; the use of a value is for others.

mod error;
mod input;
mod kinds;
mod length;
mod list;
mod payload;
mod reader;
mod string;
mod writer;
mod ziplist;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crc::{CRC_64_REDIS, Crc, Table};

pub use error::{FileError, RestoreError};
pub use list::{NODE_BYTES, Node};
pub use payload::{append_footer, dump, dump_libraries, dumped_len, restore, restore_libraries};
pub use reader::{Content, Entry, Event, Reader, Usage};
pub use writer::{Origin, Writer};

/// The version that is written.
const WRITTEN_VERSION: u16 = 11;
/// The versions that Redis and Valkey up to 8 wrote, and that of Valkey 9: all of them is known. Versions between belong
/// to newer Redis servers.
const KNOWN_VERSIONS: [RangeInclusive<u16>; 2] = [1..=11, 80..=80];

/// Returns whether all that a value of this version can be is known here.
fn is_known(version: u16) -> bool {
    KNOWN_VERSIONS.iter().any(|versions| versions.contains(&version))
}

/// Treatment of payloads whose version is newer than what is known here (Valkey's `rdb-version-check`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionCheck {
    /// They are refused.
    #[default]
    Strict,
    /// Values of known types are read.
    Relaxed,
}

// The types that are written.
const STRING: u8 = 0;
const LIST: u8 = 18;

// Opcodes: they stand in a file where a type could be.
const IDLE: u8 = 248;
const FREQUENCY: u8 = 249;
const AUX: u8 = 250;
const SIZES: u8 = 251;
const EXPIRY_MILLISECONDS: u8 = 252;
const EXPIRY_SECONDS: u8 = 253;
const DATABASE: u8 = 254;
const END: u8 = 255;

static CRC_64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);
type Checksum = crc::Digest<'static, u64, Table<16>>;

/// A value that can be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string.
    String(Cow<'a, [u8]>),
    /// The nodes of a list. A list that was read has at least one, none of them empty.
    List(Vec<Node<'a>>),
}
