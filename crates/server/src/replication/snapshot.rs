//! The transfer of all keys of a primary into the store, of which no client sees a part: from where the old ones go until
//! all are there, requests about keys are refused.
//!
//! It knows the transfer and the store. A store on disk is marked meanwhile, so that a start after a crash serves no part
//! either.

use std::io::Read;
use std::sync::atomic::Ordering;

use snugly_protocol::rdb::Reader;
use tracing::info;

use super::incoming::{Extent, Incoming};
use super::wire::is_over;
use crate::key_watch::Ending;
use crate::rdb::{self, KeepError, LeftOut, Rules};
use crate::replica::{Followed, Transfer};
use crate::state::Server;

/// Takes the place of all keys by those of the transfer that begins here.
///
/// # Errors
/// [`KeepError`]. If the transfer does not begin as it should, the keys are what they were; otherwise there are none, and
/// requests about keys are refused until another transfer succeeds.
pub(super) fn load<R: Read>(
    server: &Server,
    followed: &Followed,
    version: u64,
    incoming: &mut Incoming<R>,
    extent: Extent,
) -> Result<(), KeepError> {
    let total = extent.len();
    let limit = server.limits_of_primary().max_bulk;
    let mut transfer = incoming.transfer(extent);
    let mut reader = Reader::new(&mut transfer, limit)?;
    let replica = server.replica();
    replica.set_loading(true);
    settle(server);
    let store = server.store();
    store.mark_load(Some(&rdb::mark_of_replica(followed.primary.to_string())));
    server.freeing.free(store.flush(None));
    info!(primary = %followed.primary, bytes = total, "loading the keys of the primary");
    let mut rules = PrimaryRules { server, version, total };
    let kept = rdb::keep_all(store, &mut reader, &mut rules);
    drop(reader);
    match kept.and_then(|()| transfer.finish().map_err(KeepError::BrokenOff)) {
        Ok(()) => {
            store.mark_load(None);
            replica.full_syncs.fetch_add(1, Ordering::Relaxed);
            replica.set_loading(false);
            Ok(())
        }
        Err(error) => {
            server.freeing.free(store.flush(None));
            Err(error)
        }
    }
}

/// Waits for requests that have not seen what they may do now, and ends the waits of clients for lists: what a replica has is
/// not theirs to take.
pub(super) fn settle(server: &Server) {
    server.turns().wait();
    server.key_watch().end_all_waits(Ending::Following);
}

/// The rules of a primary: keys that there cannot be here are left out, if the settings say so.
struct PrimaryRules<'a> {
    server: &'a Server,
    version: u64,
    total: Option<u64>,
}

impl Rules for PrimaryRules<'_> {
    fn goes_on(&mut self, read: u64) -> bool {
        self.server.replica().set_transfer(Transfer { total: self.total, read });
        !is_over(self.server, self.version)
    }

    fn total(&self) -> Option<u64> {
        self.total
    }

    fn leave_out(&mut self, _why: LeftOut) -> bool {
        let replica = self.server.replica();
        if replica.skips() {
            replica.skipped.note_key();
        }
        replica.skips()
    }
}
