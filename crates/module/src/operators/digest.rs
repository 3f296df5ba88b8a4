//! SNUGLY.DIGEST tells whether two nodes have the same strings, however each of them has stored them.

use std::ffi::c_int;

use xxhash_rust::xxh64::Xxh64;

use crate::background;
use crate::guard;
use crate::server::table::{Ctx, Str};
use crate::server::{Context, OpenKey, OwnedText};
use crate::values::{self, LEAST_ENVELOPE};

pub unsafe extern "C" fn run(context: *mut Ctx, _arguments: *mut *mut Str, len: c_int) -> c_int {
    // SAFETY: the server keeps the context until this returns.
    let context = unsafe { Context::from_raw(context) };
    guard::answered(context, || match len {
        1 => {
            let selected = context.database();
            let mut digests = Vec::new();
            background::each_key(context, |database, name| digests.extend(digest(context, database, name)));
            context.select(selected.into());
            // Keys are in no order, and a scan may meet one twice.
            digests.sort_unstable();
            digests.dedup();
            let sum = digests.iter().fold(0, |sum, digest| sum ^ digest);
            context.reply(format!("{sum:016x}").as_bytes());
        }
        _ => context.reply_error("ERR wrong number of arguments for 'snugly.digest' command"),
    })
}

/// Digest of a key and its string; `None` for a key of another type.
fn digest(context: Context, database: u32, name: &OwnedText) -> Option<u64> {
    let mut hash = Xxh64::new(database.into());
    let name = name.as_text();
    hash.update(&(name.bytes().len() as u64).to_le_bytes());
    hash.update(name.bytes());
    let key = OpenKey::look(context, name).filter(OpenKey::is_string)?;
    if key.len() < LEAST_ENVELOPE {
        // Is read as clients read it: a look at its bytes would change how it is stored.
        let reply = context.call(c"GET", c"v", &[name.raw()])?;
        hash.update(reply.string()?);
    } else if values::restored(key.bytes(), |string| hash.update(string)).is_err() {
        hash.update(key.bytes());
    }
    Some(hash.digest())
}
