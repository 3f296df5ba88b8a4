//! Many small elements in one allocation: the listpack of Valkey and Redis.
//!
//! ```text
//! length u32  elements u16  (encoding, data, back length) …  0xff          little-endian
//! ```
//!
//! An element that is the decimal form of an integer of 64 bits is stored as one, in 1 to 9 bytes; others
//! have a header of 1, 2 or 5 bytes. Its length follows each, so that elements can be walked from both ends.
//! 65,535 as the number of elements means that they must be counted. The source is Valkey's `listpack.c` and
//! its `listpack.md`.
//!
//! - [`element`]: one element and its encoding
//! - [`view`]: a borrowed, read-only view of a listpack
//! - [`Listpack`]: a listpack that can be changed
//!
//! The crate knows bytes. It must not know lists of several listpacks, nor compression.

pub mod element;
mod listpack;
pub mod view;

pub use element::{Element, Needle};
pub use listpack::Listpack;
pub use view::{Iter, View};

/// Error of bytes that are not a listpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no listpack: {reason}")]
pub struct Malformed {
    /// Description of the fault.
    pub reason: &'static str,
}

/// Bytes in front of the first element.
pub const HEADER_LEN: usize = 6;
/// The byte behind the last element.
const END: u8 = 0xff;
/// Number of elements that means that they must be counted.
const UNKNOWN_COUNT: u16 = u16::MAX;
/// Bytes of a listpack without elements.
pub const EMPTY_LEN: usize = HEADER_LEN + 1;
