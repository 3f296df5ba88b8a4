//! Times of expiry as clients write them: relative, absolute, never or already over.
//!
//! It knows the rule, and is given the time.

/// Longest time that counts from now, in seconds: 30 days. What is above is a Unix time (protocol.txt,
/// "Expiration times").
const LONGEST_RELATIVE: i64 = 60 * 60 * 24 * 30;

/// A time of expiry as it was written in a request, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exptime(pub i64);

/// When an item expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Not at all.
    Never,
    /// At this Unix time, in milliseconds, which is later than now.
    At(u64),
    /// It has expired: it is stored for nobody to find.
    Past,
}

impl Exptime {
    /// Never.
    pub const NEVER: Exptime = Exptime(0);

    /// When that is, at `now`, a Unix time in milliseconds: 0 is never, up to 30 days count from now, more is a Unix time,
    /// and below 0 is over.
    pub fn expiry(self, now: u64) -> Expiry {
        match self.0 {
            0 => Expiry::Never,
            relative @ 1..=LONGEST_RELATIVE => Expiry::At(now.saturating_add(relative as u64 * 1000)),
            time if time > 0 && (time as u64).saturating_mul(1000) > now => {
                Expiry::At((time as u64).saturating_mul(1000))
            }
            _ => Expiry::Past,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_500;
    const SECOND: i64 = 1_700_000_000;

    #[test]
    fn zero_is_never_and_below_zero_is_over() {
        assert_eq!(Exptime(0).expiry(NOW), Expiry::Never);
        assert_eq!(Exptime(-1).expiry(NOW), Expiry::Past);
        assert_eq!(Exptime(i64::MIN).expiry(NOW), Expiry::Past);
    }

    #[test]
    fn up_to_thirty_days_count_from_now() {
        assert_eq!(Exptime(1).expiry(NOW), Expiry::At(NOW + 1_000));
        assert_eq!(Exptime(2_592_000).expiry(NOW), Expiry::At(NOW + 2_592_000_000));
    }

    #[test]
    fn more_than_thirty_days_are_a_unix_time() {
        assert_eq!(Exptime(2_592_001).expiry(NOW), Expiry::Past);
        assert_eq!(Exptime(SECOND).expiry(NOW), Expiry::Past);
        assert_eq!(Exptime(SECOND + 1).expiry(NOW), Expiry::At(NOW + 500));
        assert_eq!(Exptime(i64::MAX).expiry(NOW), Expiry::At(u64::MAX));
    }

    #[test]
    fn a_clock_at_its_end_does_not_overflow() {
        assert_eq!(Exptime(5).expiry(u64::MAX), Expiry::At(u64::MAX));
    }
}
