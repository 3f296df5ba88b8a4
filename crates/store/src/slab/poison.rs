//! Annotations of free slots for AddressSanitizer, so that it reports their use as it does for other memory.
//!
//! They exist in builds with `--cfg fuzzing`, which cargo-fuzz sets; these need `-Zsanitizer=address`.
//! Elsewhere the functions do nothing.

use std::ptr::NonNull;

#[cfg(fuzzing)]
unsafe extern "C" {
    fn __asan_poison_memory_region(address: *const u8, size: usize);
    fn __asan_unpoison_memory_region(address: *const u8, size: usize);
}

/// Marks bytes as unusable.
#[cfg_attr(not(fuzzing), allow(unused_variables))]
pub(super) fn forbid(start: NonNull<u8>, size: usize) {
    #[cfg(fuzzing)]
    // SAFETY: it changes only the sanitizer's own records of these bytes.
    unsafe {
        __asan_poison_memory_region(start.as_ptr(), size);
    }
}

/// Marks bytes as usable.
#[cfg_attr(not(fuzzing), allow(unused_variables))]
pub(super) fn allow(start: NonNull<u8>, size: usize) {
    #[cfg(fuzzing)]
    // SAFETY: it changes only the sanitizer's own records of these bytes.
    unsafe {
        __asan_unpoison_memory_region(start.as_ptr(), size);
    }
}
