//! Says to AddressSanitizer which slots are free, so that it tells of their use as it does for other memory.
//!
//! In builds with `--cfg fuzzing`, which cargo-fuzz sets; they need `-Zsanitizer=address`. Elsewhere it does nothing.

use std::ptr::NonNull;

#[cfg(fuzzing)]
unsafe extern "C" {
    fn __asan_poison_memory_region(address: *const u8, size: usize);
    fn __asan_unpoison_memory_region(address: *const u8, size: usize);
}

/// From now on nobody may touch these bytes.
#[cfg_attr(not(fuzzing), allow(unused_variables))]
pub(super) fn forbid(start: NonNull<u8>, size: usize) {
    #[cfg(fuzzing)]
    // SAFETY: it changes only the sanitizer's own records of these bytes.
    unsafe {
        __asan_poison_memory_region(start.as_ptr(), size);
    }
}

/// From now on these bytes may be used.
#[cfg_attr(not(fuzzing), allow(unused_variables))]
pub(super) fn allow(start: NonNull<u8>, size: usize) {
    #[cfg(fuzzing)]
    // SAFETY: it changes only the sanitizer's own records of these bytes.
    unsafe {
        __asan_unpoison_memory_region(start.as_ptr(), size);
    }
}
