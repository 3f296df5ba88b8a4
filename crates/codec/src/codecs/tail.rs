//! Appending to a caller's buffer from C without filling it with zeros first.

use super::Fault;

/// Makes room for `additional` bytes, or says that there is none (a plain `reserve` would abort).
pub(crate) fn reserve(out: &mut Vec<u8>, additional: usize) -> Result<(), Fault> {
    out.try_reserve(additional).map_err(|_| Fault::OutOfMemory)
}

/// The room after a vector's contents: `limit` bytes, uninitialised until they are committed.
pub(crate) struct Tail<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    limit: usize,
}

impl<'a> Tail<'a> {
    /// Reserves exactly the room that the caller allows to be written, whatever the vector's capacity.
    pub fn reserve(out: &'a mut Vec<u8>, limit: usize) -> Result<Self, Fault> {
        reserve(out, limit)?;
        Ok(Tail { start: out.len(), limit, out })
    }

    /// The start of `limit` writable bytes.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        // SAFETY: start <= capacity, so the result stays inside the vector's allocation or one past its end.
        unsafe { self.out.as_mut_ptr().add(self.start) }
    }

    /// Makes the first `written` bytes part of the vector.
    ///
    /// # Safety
    /// They must be initialised, and no more than `limit`.
    pub unsafe fn commit(&mut self, written: usize) {
        debug_assert!(written <= self.limit);
        // SAFETY: start + limit <= capacity by construction, and the caller has initialised the bytes.
        unsafe { self.out.set_len(self.start + written) };
    }
}

// SAFETY: as_mut_ptr is valid for `limit` = capacity() writes, as_slice covers committed bytes only, and
// filled_until commits exactly the bytes that zstd reports as written.
#[cfg(feature = "zstd")]
unsafe impl zstd_safe::WriteBuf for Tail<'_> {
    fn as_slice(&self) -> &[u8] {
        &self.out[self.start..]
    }

    fn capacity(&self) -> usize {
        self.limit
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        Tail::as_mut_ptr(self)
    }

    unsafe fn filled_until(&mut self, n: usize) {
        // SAFETY: the caller's promise is commit's.
        unsafe { self.commit(n) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_follows_what_was_there() {
        let mut out = b"before ".to_vec();
        for (limit, word) in [(100, &b"one "[..]), (4, b"two "), (0, b"")] {
            let mut tail = Tail::reserve(&mut out, limit).expect("there is memory");
            // SAFETY: the words are no longer than their limits.
            unsafe {
                tail.as_mut_ptr().copy_from_nonoverlapping(word.as_ptr(), word.len());
                tail.commit(word.len());
            }
        }
        assert_eq!(out, b"before one two ");
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let mut out = b"before".to_vec();
        assert_eq!(Tail::reserve(&mut out, usize::MAX / 2).err(), Some(Fault::OutOfMemory));
        assert_eq!(out, b"before");
    }
}
