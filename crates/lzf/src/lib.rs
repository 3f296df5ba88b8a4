//! LZF, as liblzf and Valkey write it: literal bytes, and copies of bytes that came before.
//!
//! ```text
//! 000nnnnn                    n + 1 literal bytes follow
//! lllddddd dddddddd           copy l + 2 bytes from d + 1 bytes back, l being 1 to 6
//! 111ddddd llllllll dddddddd  the same with l + 7 for l
//! ```
//!
//! Nothing in it says how long it is or what it stands for: both lengths are kept elsewhere. The crate knows bytes. It
//! does not know what is worth compressing.

mod compress;
mod decompress;

pub use compress::compress;
pub use decompress::{decompress, decompress_to, reach};

/// The most bytes that follow one another without a copy.
const LONGEST_LITERAL: usize = 32;
/// The lengths of copies start at this one more than they are written.
const SHORTEST_COPY: usize = 2;
/// The length in a copy's first byte that says that more of it is in the second.
const LONG_COPY: usize = 7;
const LONGEST_COPY: usize = SHORTEST_COPY + LONG_COPY + u8::MAX as usize;
/// Greatest distance of a copy, in bytes.
const FARTHEST: usize = 1 << (OFFSET_BITS + u8::BITS);
/// The bits of an offset that are in a copy's first byte.
const OFFSET_BITS: u32 = 5;
