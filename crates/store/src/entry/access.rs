//! Access statistics of an entry.

/// Time of the last use and frequency of an entry: 8 bits of frequency above 24 bits of seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access(pub(super) u32);

const SECONDS_BITS: u32 = 24;
const SECONDS_MASK: u32 = (1 << SECONDS_BITS) - 1;

impl Access {
    /// Returns the statistics of an entry that was just written and not yet read.
    pub(crate) fn written(now_ms: u64) -> Access {
        Access((now_ms / 1000) as u32 & SECONDS_MASK)
    }

    /// Returns the statistics of an entry last used this many seconds ago.
    pub(crate) fn idle(now_ms: u64, seconds: u64) -> Access {
        Access((now_ms / 1000).wrapping_sub(seconds) as u32 & SECONDS_MASK)
    }

    /// Counts one more use, up to `cap`.
    pub(crate) fn used(self, now_ms: u64, cap: u8) -> Access {
        let frequency = self.frequency().saturating_add(1).min(cap);
        Access::written(now_ms).with_frequency(frequency)
    }

    /// Returns the number of uses since the eviction hand passed the entry, up to the policy's cap.
    pub(crate) fn frequency(self) -> u8 {
        (self.0 >> SECONDS_BITS) as u8
    }

    pub(crate) fn with_frequency(self, frequency: u8) -> Access {
        Access(self.0 & SECONDS_MASK | u32::from(frequency) << SECONDS_BITS)
    }

    /// Returns the seconds since the last use; exact up to 194 days, where 24 bits of seconds wrap.
    pub(crate) fn idle_seconds(self, now_ms: u64) -> u32 {
        ((now_ms / 1000) as u32).wrapping_sub(self.0) & SECONDS_MASK
    }
}
