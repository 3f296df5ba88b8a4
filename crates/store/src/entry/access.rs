//! Access statistics of an entry.

/// Time of the last use and frequency of an entry, and whether its value was ever used: one bit above 7 bits of
/// frequency and 24 bits of seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access(pub(super) u32);

const SECONDS_BITS: u32 = 24;
const SECONDS_MASK: u32 = (1 << SECONDS_BITS) - 1;
const WAS_USED: u32 = 1 << 31;
const FREQUENCY_MASK: u32 = !(SECONDS_MASK | WAS_USED);
const MAX_FREQUENCY: u8 = (FREQUENCY_MASK >> SECONDS_BITS) as u8;

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
        Access(Access::written(now_ms).with_frequency(frequency).0 | WAS_USED)
    }

    /// Returns whether the value was used since it was written.
    pub(crate) fn was_used(self) -> bool {
        self.0 & WAS_USED != 0
    }

    /// Returns the number of uses since the eviction hand passed the entry, up to the policy's cap.
    pub(crate) fn frequency(self) -> u8 {
        ((self.0 & FREQUENCY_MASK) >> SECONDS_BITS) as u8
    }

    pub(crate) fn with_frequency(self, frequency: u8) -> Access {
        Access(self.0 & !FREQUENCY_MASK | u32::from(frequency.min(MAX_FREQUENCY)) << SECONDS_BITS)
    }

    /// Returns the seconds since the last use; exact up to 194 days, where 24 bits of seconds wrap.
    pub(crate) fn idle_seconds(self, now_ms: u64) -> u32 {
        ((now_ms / 1000) as u32).wrapping_sub(self.0) & SECONDS_MASK
    }
}
