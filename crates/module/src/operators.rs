//! Commands for operators: SNUGLY.RESTORE, and the end of the module.

use std::ffi::{CStr, c_int};

use crate::background::{self, Purpose};
use crate::filter;
use crate::guard;
use crate::server::table::{self, Ctx, Functions, Str};
use crate::server::{Context, Text};

const RESTORE: &CStr = c"snugly.restore";

/// Registers the commands.
///
/// # Errors
/// A text that says that the server has refused one.
pub fn register(functions: &Functions, context: Context) -> Result<(), String> {
    // SAFETY: the context lives; the server copies names and categories.
    let registered = unsafe {
        (functions.CreateCommand)(context.raw(), RESTORE.as_ptr(), restore, c"admin".as_ptr(), 0, 0, 0)
            == table::OK
            && (functions.SetCommandACLCategories)(
                (functions.GetCommand)(context.raw(), RESTORE.as_ptr()),
                c"admin dangerous slow".as_ptr(),
            ) == table::OK
    };
    if registered { Ok(()) } else { Err("snugly could not register snugly.restore".into()) }
}

/// SNUGLY.RESTORE makes all strings plain, in the background; SNUGLY.RESTORE CANCEL compresses them again.
unsafe extern "C" fn restore(context: *mut Ctx, arguments: *mut *mut Str, len: c_int) -> c_int {
    // SAFETY: the server keeps all of them until this returns.
    let (context, option) = unsafe {
        let option = (len == 2).then(|| Text::from_raw(*arguments.add(1)).bytes());
        (Context::from_raw(context), option)
    };
    guard::guarded(|| match option {
        None if len == 1 => {
            if background::purpose() == Purpose::Compress {
                background::pursue(context, Purpose::Restore { restored: 0 });
            }
            context.reply_status(c"OK");
        }
        Some(option) if option.eq_ignore_ascii_case(b"cancel") => {
            background::pursue(context, Purpose::Compress);
            context.reply_status(c"OK");
        }
        _ => context.reply_error("ERR syntax error. Try SNUGLY.RESTORE, or SNUGLY.RESTORE CANCEL."),
    });
    table::OK
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
    if filter::has_transactions() {
        return Err(c"snugly is not unloaded: a client has a transaction open, in which its commands may be queued. Try again \
                     later");
    }
    background::end(context);
    filter::forget();
    Ok(())
}
