//! SNUGLY.STATS tells what INFO snugly does, in a form for programs.

use std::ffi::c_int;

use crate::guard;
use crate::server::Context;
use crate::server::table::{Ctx, Str};
use crate::statistics::{self, Field};

pub unsafe extern "C" fn run(context: *mut Ctx, _arguments: *mut *mut Str, len: c_int) -> c_int {
    // SAFETY: the server keeps the context until this returns.
    let context = unsafe { Context::from_raw(context) };
    guard::answered(context, || match len {
        1 => {
            let fields = statistics::fields();
            context.reply_map(fields.len());
            for (name, field) in fields {
                context.reply(name.as_bytes());
                match field {
                    Field::Number(number) => context.reply_number(number as usize),
                    Field::Word(word) => context.reply(word.as_bytes()),
                }
            }
        }
        _ => context.reply_error("ERR wrong number of arguments for 'snugly.stats' command"),
    })
}
