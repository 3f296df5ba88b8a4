//! Who is told of changes: every change to a key passes here, under the lock of its shard.

use std::sync::Arc;

/// Is told that keys have changed, by whomever: written, deleted, expired, evicted, given another expiry.
///
/// It is called while the key's shard is locked, so that nobody sees the change earlier than the observer. It must be
/// quick and must not use the store.
pub trait Observer: Send + Sync {
    /// A key has changed.
    fn changed(&self, database: usize, key: &[u8]);

    /// All keys of a database have changed, or of all databases.
    fn flushed(&self, database: Option<usize>);
}

/// Where the shards report what changes.
#[derive(Clone, Default)]
pub(crate) struct Changes {
    observer: Option<Arc<dyn Observer>>,
}

impl Changes {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Changes {
        Changes { observer }
    }

    pub(crate) fn changed(&self, database: usize, key: &[u8]) {
        if let Some(observer) = &self.observer {
            observer.changed(database, key);
        }
    }

    pub(crate) fn flushed(&self, database: Option<usize>) {
        if let Some(observer) = &self.observer {
            observer.flushed(database);
        }
    }
}
