//! Memory that is given back in the background: what an asynchronous flush has removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use snugly_store::Flushed;

/// Number of keys on their way out, and number of freed ones.
#[derive(Default)]
pub(crate) struct Freeing {
    pending: AtomicU64,
    freed: AtomicU64,
}

/// Keys on their way out, until this is dropped: also if freeing them panics.
struct Pending {
    freeing: Arc<Freeing>,
    keys: u64,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.freeing.pending.fetch_sub(self.keys, Ordering::Relaxed);
    }
}

impl Freeing {
    /// Frees the memory of what a flush removed, on a thread of its own; without one, here and now.
    pub(crate) fn free(self: &Arc<Freeing>, flushed: Flushed) {
        let pending = Pending { freeing: self.clone(), keys: flushed.keys() };
        self.pending.fetch_add(pending.keys, Ordering::Relaxed);
        let free = move || {
            drop(flushed);
            pending.freeing.freed.fetch_add(pending.keys, Ordering::Relaxed);
        };
        // Without a thread the closure, and what it frees, is dropped.
        let _ = thread::Builder::new().name("free".into()).spawn(free);
    }

    /// Keys whose memory is yet to be given back.
    pub(crate) fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    /// Keys whose memory was given back in the background since the start or the last CONFIG RESETSTAT.
    pub(crate) fn freed(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }

    pub(crate) fn reset(&self) {
        self.freed.store(0, Ordering::Relaxed);
    }
}
