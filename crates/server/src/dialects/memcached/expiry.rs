//! Times of expiry: those of requests as the store knows them, and back.

use snugly_memcached::Exptime;
use snugly_store::Expiry;

/// A time that is over.
const PAST: Expiry = Expiry::At(0);

/// When a key expires that was given this time at `now`, in Unix milliseconds.
pub(super) fn expiry(exptime: Exptime, now: u64) -> Expiry {
    match exptime.expiry(now) {
        snugly_memcached::Expiry::Never => Expiry::Never,
        snugly_memcached::Expiry::At(at) => Expiry::At(at),
        snugly_memcached::Expiry::Past => PAST,
    }
}

/// Seconds until a key expires, a started one included; `None` if it does not.
pub(super) fn seconds_left(expiry: Option<u64>, now: u64) -> Option<u64> {
    expiry.map(|at| at.saturating_sub(now).div_ceil(1000))
}

/// The end of a key with this expiry, in Unix milliseconds; `None` if it has none.
pub(super) fn end_of(expiry: Expiry) -> Option<u64> {
    match expiry {
        Expiry::At(at) => Some(at),
        Expiry::Never | Expiry::Keep => None,
    }
}
