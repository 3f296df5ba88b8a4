//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, in Unix milliseconds.
pub fn system_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
