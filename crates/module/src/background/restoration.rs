//! Restoration of a string that is there, before the module is unloaded.

use std::sync::atomic::Ordering;

use super::PROGRESS;
use crate::commands::{Expiry, replicate};
use crate::server::{Context, OpenKey, OwnedText};
use crate::values::{self, LEAST_ENVELOPE};

/// Makes the string of a key plain, if it is an envelope; returns whether it was. Files and replicas are told: what commands
/// do to a plain string is sent to them as it is.
///
/// A client's own envelope keeps the one around it for now: without it reads would restore the client's.
pub fn restore(context: Context, name: &OwnedText) -> bool {
    let Some((mut key, string)) = restored(context, name) else { return false };
    let is_plain = !values::is_envelope(&string) && key.replace_for_long(&string).is_ok();
    drop(key);
    if is_plain {
        replicate(context, name.as_text(), Expiry::Kept);
    }
    PROGRESS.restored.fetch_add(is_plain.into(), Ordering::Relaxed);
    is_plain
}

/// Takes the envelope around a client's own away, too.
pub fn unwrap(context: Context, name: &OwnedText) {
    let Some((mut key, string)) = restored(context, name) else { return };
    let is_plain = key.replace_for_long(&string).is_ok();
    drop(key);
    if is_plain {
        replicate(context, name.as_text(), Expiry::Kept);
    }
}

/// The key and its string, if that is stored as an envelope which can be restored.
fn restored(context: Context, name: &OwnedText) -> Option<(OpenKey, Vec<u8>)> {
    let key = OpenKey::rewrite(context, name.as_text())?;
    if !key.is_string() || key.len() < LEAST_ENVELOPE || !values::is_envelope(key.bytes()) {
        return None;
    }
    match values::restored(key.bytes(), <[u8]>::to_vec) {
        Ok(string) => Some((key, string)),
        Err(_) => {
            PROGRESS.damaged.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}
