//! Compression of a string that is there.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::PROGRESS;
use crate::server::{Context, OpenKey, OwnedText};
use crate::settings;
use crate::values::{self, LEAST_ENVELOPE};

/// A string that was used a shorter time ago stays plain: commands that change its parts work on plain ones.
const SETTLED: Duration = Duration::from_secs(10);

/// Strings are left alone that would be longer than this afterwards: the server keeps a reserve of as much for them.
const LONGEST: usize = 1 << 20;

/// Stores the string of a key in a smaller form, if it has one.
pub fn compress(context: Context, name: &OwnedText) {
    let Some(mut key) = OpenKey::rewrite(context, name.as_text()) else { return };
    // A shorter string must not be read: that would change how it is stored.
    if !key.is_string() || key.len() < LEAST_ENVELOPE {
        return;
    }
    let idle = key.idle();
    let is_idle = |least: Duration| idle.is_none_or(|idle| idle >= least);
    let string = key.bytes();
    let smaller = if values::is_envelope(string) {
        let is_cold = settings::cold_after().is_some_and(is_idle);
        is_cold.then(|| values::denser(string, <[u8]>::to_vec)).flatten()
    } else {
        is_idle(SETTLED).then(|| values::stored(string, <[u8]>::to_vec)).flatten()
    };
    let before = string.len();
    let Some(smaller) = smaller.filter(|smaller| smaller.len() <= LONGEST && smaller.len() < before) else {
        return;
    };
    if key.replace_for_long(&smaller).is_ok() {
        PROGRESS.compressed.fetch_add(1, Ordering::Relaxed);
        PROGRESS.bytes_before.fetch_add(before as u64, Ordering::Relaxed);
        PROGRESS.bytes_after.fetch_add(smaller.len() as u64, Ordering::Relaxed);
    }
}

/// Strings, their bytes, and the bytes that they would be stored in.
#[derive(Clone, Copy, Default)]
pub struct Observed {
    pub strings: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

impl Observed {
    /// Adds the string of a key.
    pub fn add(&mut self, context: Context, name: &OwnedText) {
        let Some(key) = OpenKey::look(context, name.as_text()).filter(OpenKey::is_string) else { return };
        let len = key.len();
        // A shorter string must not be read, and would not be compressed.
        let stored = match len < LEAST_ENVELOPE {
            true => None,
            false => values::restored(key.bytes(), <[u8]>::to_vec)
                .ok()
                .map(|string| (string.len(), values::observe(&string).unwrap_or(string.len()))),
        };
        let (before, after) = stored.unwrap_or((len, len));
        self.strings += 1;
        self.bytes_before += before as u64;
        self.bytes_after += after as u64;
    }
}
