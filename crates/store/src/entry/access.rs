//! Access statistics of an entry.
//!
//! The pass of recompression has four bits: whether it has come by, and how often the value was read since, which is counted
//! by powers of two (Morris, "Counting large numbers of events in small registers", 1978).

use snugly_learning::ReadRate;

/// Time of the last use and frequency of an entry, whether its value was ever used, and what the pass of recompression sees of
/// it: one bit, one bit and 3 bits of reads above 3 bits of frequency and 24 bits of seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access(pub(super) u32);

const SECONDS_BITS: u32 = 24;
const SECONDS_MASK: u32 = (1 << SECONDS_BITS) - 1;
const FREQUENCY_MASK: u32 = u32::from_be_bytes([0b0000_0111, 0, 0, 0]);
const READS_SHIFT: u32 = 27;
const READS_MASK: u32 = u32::from_be_bytes([0b0011_1000, 0, 0, 0]);
const WAS_VISITED: u32 = 1 << 30;
const WAS_USED: u32 = 1 << 31;

impl Access {
    /// Greatest frequency that an entry can count.
    pub(crate) const MAX_FREQUENCY: u8 = (FREQUENCY_MASK >> SECONDS_BITS) as u8;
    const MAX_READS: u32 = READS_MASK >> READS_SHIFT;

    /// Returns the statistics of an entry that was just written and not yet read.
    pub(crate) fn written(now_ms: u64) -> Access {
        Access((now_ms / 1000) as u32 & SECONDS_MASK)
    }

    /// Returns the statistics of an entry last used this many seconds ago.
    pub(crate) fn idle(now_ms: u64, seconds: u64) -> Access {
        Access((now_ms / 1000).wrapping_sub(seconds) as u32 & SECONDS_MASK)
    }

    /// Counts one more use, as frequency up to `cap`, and as a read for the pass with the help of a random number.
    pub(crate) fn used(self, now_ms: u64, cap: u8, random: impl FnOnce() -> u32) -> Access {
        let frequency = self.frequency().saturating_add(1).min(cap);
        let reads = self.reads();
        // One of 2^n reads leads from n to n + 1.
        let is_counted = reads < Access::MAX_READS && random() & ((1 << reads) - 1) == 0;
        let reads = (reads + u32::from(is_counted)) << READS_SHIFT;
        let kept = self.0 & WAS_VISITED;
        Access(Access::written(now_ms).with_frequency(frequency).0 | kept | reads | WAS_USED)
    }

    /// Returns whether the value was used since it was written.
    pub(crate) fn was_used(self) -> bool {
        self.0 & WAS_USED != 0
    }

    /// Returns whether the pass has come by since the value was written.
    pub(crate) fn was_visited(self) -> bool {
        self.0 & WAS_VISITED != 0
    }

    /// Returns the binary logarithm of one more than the number of uses since the pass came by, about.
    fn reads(self) -> u32 {
        (self.0 & READS_MASK) >> READS_SHIFT
    }

    /// Returns how often the value was read since the pass came by: once may be by chance, about 4, 16 and 128 times.
    pub(crate) fn rate(self) -> ReadRate {
        match self.reads() {
            0..=1 => ReadRate::Unread,
            2..=3 => ReadRate::Seldom,
            4..=6 => ReadRate::Often,
            _ => ReadRate::Constantly,
        }
    }

    /// Notes a visit of the pass, from which on reads are counted anew.
    pub(crate) fn visited(self) -> Access {
        Access(self.0 & !READS_MASK | WAS_VISITED)
    }

    /// Returns the number of uses since the eviction hand passed the entry, up to the policy's cap.
    pub(crate) fn frequency(self) -> u8 {
        ((self.0 & FREQUENCY_MASK) >> SECONDS_BITS) as u8
    }

    pub(crate) fn with_frequency(self, frequency: u8) -> Access {
        Access(self.0 & !FREQUENCY_MASK | u32::from(frequency.min(Access::MAX_FREQUENCY)) << SECONDS_BITS)
    }

    /// Returns the seconds since the last use; exact up to 194 days, where 24 bits of seconds wrap.
    pub(crate) fn idle_seconds(self, now_ms: u64) -> u32 {
        ((now_ms / 1000) as u32).wrapping_sub(self.0) & SECONDS_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    #[test]
    fn reads_are_counted_anew_from_each_visit_on_and_frequency_is_not() {
        let mut access = Access::written(NOW);
        assert_eq!((access.was_visited(), access.was_used(), access.reads()), (false, false, 0));
        for uses in 1..20 {
            access = access.used(NOW, 7, || 0);
            let counted = uses.min(7);
            let found = (access.reads(), u32::from(access.frequency()), access.was_used());
            assert_eq!(found, (counted, counted, true));
        }
        let visited = access.visited();
        assert_eq!((visited.was_visited(), visited.was_used()), (true, true));
        assert_eq!((visited.reads(), visited.frequency()), (0, 7));
        let used = visited.used(NOW + 5_000, 1, || 0);
        assert_eq!((used.was_visited(), used.reads(), used.frequency()), (true, 1, 1));
        assert_eq!(used.idle_seconds(NOW + 8_000), 3);
    }

    #[test]
    fn rates_tell_apart_what_is_read_a_few_times_and_what_is_read_a_hundred_times() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut mean = |uses: u32| {
            let mut counted =
                || (0..uses).fold(Access::written(NOW), |access, _| access.used(NOW, 7, || random.u32(..)));
            f64::from((0..1_000).map(|_| (1 << counted().reads()) - 1).sum::<u32>()) / 1_000.0
        };
        for uses in [0, 1, 4, 16, 60] {
            assert!((mean(uses) - f64::from(uses)).abs() <= 0.1 * f64::from(uses), "{uses}: {}", mean(uses));
        }
        let rate = |uses| (0..uses).fold(Access::written(NOW), |access, _| access.used(NOW, 7, || 0)).rate();
        assert_eq!(
            [0, 1, 2, 3].map(rate),
            [ReadRate::Unread, ReadRate::Unread, ReadRate::Seldom, ReadRate::Seldom]
        );
        assert_eq!([4, 6, 7].map(rate), [ReadRate::Often, ReadRate::Often, ReadRate::Constantly]);
    }

    #[test]
    fn frequency_leaves_everything_else_as_it_is() {
        let access = Access::written(NOW).visited().used(NOW, 7, || 0).used(NOW, 7, || 0);
        let halved = access.with_frequency(1);
        assert_eq!((halved.frequency(), halved.reads(), halved.was_visited()), (1, 2, true));
        assert_eq!(access.with_frequency(u8::MAX).frequency(), Access::MAX_FREQUENCY);
        assert_eq!((halved.was_used(), halved.idle_seconds(NOW)), (true, 0));
    }
}
