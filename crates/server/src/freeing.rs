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

impl Freeing {
    /// Frees the memory of what a flush removed, on a thread of its own.
    pub(crate) fn free(self: &Arc<Freeing>, flushed: Flushed) {
        let keys = flushed.keys();
        self.pending.fetch_add(keys, Ordering::Relaxed);
        let freeing = self.clone();
        let free = move || {
            drop(flushed);
            freeing.pending.fetch_sub(keys, Ordering::Relaxed);
            freeing.freed.fetch_add(keys, Ordering::Relaxed);
        };
        if thread::Builder::new().name("free".into()).spawn(free).is_err() {
            // Without a thread the memory was given back here and now.
            self.pending.fetch_sub(keys, Ordering::Relaxed);
        }
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
