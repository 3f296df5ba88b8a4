//! Commands for operators, and the end of the module.
//!
//! - [`restore`]: SNUGLY.RESTORE makes all strings plain
//! - [`explain`]: SNUGLY.EXPLAIN tells how a string is stored, and why
//! - [`digest`]: SNUGLY.DIGEST tells whether two nodes have the same strings
//! - [`stats`]: SNUGLY.STATS tells what INFO does
//! - [`dictionary`]: SNUGLY.DICTIONARY lists dictionaries, and hands them out and in

mod dictionary;
mod digest;
mod explain;
mod restore;
mod stats;

use std::ffi::CStr;

use crate::background::{self, Purpose};
use crate::commands::ONE;
use crate::dictionaries;
use crate::filter;
use crate::registration::{self, Definition};
use crate::server::Context;
use crate::server::table::{KEY_ACCESS, KEY_READ_ONLY};

/// Registers the commands.
///
/// # Errors
/// A text that names the command that the server has refused.
pub fn register(context: Context) -> Result<(), String> {
    let definitions = [
        Definition {
            name: c"snugly.restore",
            run: restore::run,
            flags: "admin",
            categories: "admin dangerous slow",
            keys: None,
            summary: c"Makes all strings plain in the background, so that the module can be unloaded.",
        },
        Definition {
            name: c"snugly.explain",
            run: explain::run,
            flags: "readonly",
            categories: "read string slow",
            keys: Some((ONE, KEY_READ_ONLY | KEY_ACCESS)),
            summary: c"Tells how a string is stored, and why.",
        },
        Definition {
            name: c"snugly.digest",
            run: digest::run,
            flags: "admin readonly",
            categories: "admin dangerous slow",
            keys: None,
            summary:
                c"Returns a digest of all strings as clients see them. The server stands still meanwhile.",
        },
        Definition {
            name: c"snugly.stats",
            run: stats::run,
            flags: "admin fast",
            categories: "admin fast",
            keys: None,
            summary: c"Tells counts, state and dictionaries, as INFO snugly does.",
        },
        Definition {
            name: c"snugly.dictionary",
            run: dictionary::run,
            flags: "admin",
            categories: "admin dangerous slow",
            keys: None,
            summary: c"Lists dictionaries, forgets or exports one, or imports one for new strings of a pattern of keys.",
        },
    ];
    definitions.iter().try_for_each(|definition| registration::register(context, definition))
}

/// Prepares for the module's end.
///
/// # Errors
/// A text that says what has to be done before.
pub fn leave(context: Context) -> Result<(), &'static CStr> {
    if background::purpose() != Purpose::Rest {
        return Err(c"snugly is not unloaded: strings are stored compressed. Run SNUGLY.RESTORE, and wait until INFO snugly \
                     has snugly_state:restored");
    }
    if !context.may_tell() {
        return Err(c"snugly is not unloaded: writes are paused. Try again later");
    }
    if filter::has_transactions() {
        return Err(c"snugly is not unloaded: a client has a transaction open, in which its commands may be queued. Try again \
                     later");
    }
    background::end(context);
    dictionaries::end(context);
    filter::forget();
    Ok(())
}
