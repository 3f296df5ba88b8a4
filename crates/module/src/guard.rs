//! The border to the server, which no panic crosses: it would end the process.

use std::ffi::{CString, c_int};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::server::Context;
use crate::server::table;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Panics that were caught since the module was loaded.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Lets panics tell in the server's log what has failed, and where.
pub fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let text = format!("snugly has failed, and goes on: {panic}").replace('\0', " ");
        let line = CString::new(text).expect("zeros are replaced");
        table::log(ptr::null_mut(), c"warning", &line);
    }));
}

/// Runs a command, and replies with an error if it panics: its client would wait for ever.
pub fn answered(context: Context, run: impl FnOnce()) -> c_int {
    if guarded(run).is_none() {
        context.reply_error("SNUGLY the module has failed at this command, and the server's log has why");
    }
    table::OK
}

/// Runs what the server has called; `None` if it panicked.
///
/// State that a panic leaves behind is whole: counters, caches, buffers that are emptied before use, and strings that were made
/// plain, which are envelopes again as soon as the stack is unwound.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).inspect_err(|_| _ = PANICS.fetch_add(1, Ordering::Relaxed)).ok()
}
