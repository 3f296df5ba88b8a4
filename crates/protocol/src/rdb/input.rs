//! Sources of the bytes of values: a payload, of which they are borrowed, or a file, out of which they are read.

use std::borrow::Cow;

use super::error::Fault;

/// Bytes, one after the other. A claimed length reserves no more memory than there are bytes.
pub(super) trait Input<'a> {
    /// Takes `N` bytes as an array.
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault>;

    /// Takes `len` bytes, at most `limit`.
    fn bytes(&mut self, len: u64, limit: usize) -> Result<Cow<'a, [u8]>, Fault>;

    /// Skips `len` bytes.
    fn skip(&mut self, len: u64) -> Result<(), Fault>;

    /// One byte.
    fn byte(&mut self) -> Result<u8, Fault> {
        self.array().map(|[byte]| byte)
    }
}

impl<'a> Input<'a> for &'a [u8] {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (array, rest) = self.split_first_chunk().ok_or(Fault::Ended)?;
        *self = rest;
        Ok(*array)
    }

    fn bytes(&mut self, len: u64, limit: usize) -> Result<Cow<'a, [u8]>, Fault> {
        let len = usize::try_from(len).map_err(|_| Fault::Ended)?;
        let (bytes, rest) = self.split_at_checked(len).ok_or(Fault::Ended)?;
        *self = rest;
        checked(bytes.len() as u64, limit)?;
        Ok(bytes.into())
    }

    fn skip(&mut self, len: u64) -> Result<(), Fault> {
        self.bytes(len, usize::MAX).map(drop)
    }
}

/// A length that is within a limit.
pub(super) fn checked(len: u64, limit: usize) -> Result<usize, Fault> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len > limit { Err(Fault::TooLong { len, limit }) } else { Ok(len) }
}
