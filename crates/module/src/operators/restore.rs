//! SNUGLY.RESTORE makes all strings plain, in the background; SNUGLY.RESTORE CANCEL compresses them again.

use std::ffi::c_int;

use crate::background::{self, Purpose};
use crate::guard;
use crate::server::table::{Ctx, Str};
use crate::server::{Context, Text};

pub unsafe extern "C" fn run(context: *mut Ctx, arguments: *mut *mut Str, len: c_int) -> c_int {
    // SAFETY: the server keeps all of them until this returns.
    let (context, option) = unsafe {
        let option = (len == 2).then(|| Text::from_raw(*arguments.add(1)).bytes());
        (Context::from_raw(context), option)
    };
    guard::answered(context, || match option {
        None if len == 1 => {
            if background::purpose() == Purpose::Compress {
                background::pursue(context, Purpose::Restore { restored: 0, empty_rounds: 0 });
            }
            context.reply_status(c"OK");
        }
        Some(option) if option.eq_ignore_ascii_case(b"cancel") => {
            background::pursue(context, Purpose::Compress);
            context.reply_status(c"OK");
        }
        _ => context.reply_error("ERR syntax error. Try SNUGLY.RESTORE, or SNUGLY.RESTORE CANCEL."),
    })
}
