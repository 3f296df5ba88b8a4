//! SNUGLY.EXPLAIN key tells how a string is stored, and why.

use std::ffi::c_int;

use snugly_codec::{Reason, envelope};

use crate::guard;
use crate::server::table::{Ctx, Str};
use crate::server::{Context, OpenKey, Text};
use crate::settings;
use crate::values::{self, LEAST_ENVELOPE};

/// How a string is stored.
struct Explained {
    codec: &'static str,
    len: usize,
    stored: usize,
    why: String,
}

pub unsafe extern "C" fn run(context: *mut Ctx, arguments: *mut *mut Str, len: c_int) -> c_int {
    // SAFETY: the server keeps all of them until this returns.
    let (context, name) = unsafe {
        let name = (len == 2).then(|| Text::from_raw(*arguments.add(1)));
        (Context::from_raw(context), name)
    };
    guard::answered(context, || match name {
        Some(name) => reply(context, name),
        None => context.reply_error("ERR wrong number of arguments for 'snugly.explain' command"),
    })
}

fn reply(context: Context, name: Text<'_>) {
    let Some(key) = OpenKey::look(context, name) else { return context.reply_null() };
    if !key.is_string() {
        return context.reply_error("WRONGTYPE Operation against a key holding the wrong kind of value");
    }
    let explained = explain(name, &key);
    let idle = key.idle().map(|idle| idle.as_secs());
    context.reply_map(4 + usize::from(idle.is_some()));
    for (field, number) in [("length", explained.len), ("stored-length", explained.stored)] {
        context.reply(field.as_bytes());
        context.reply_number(number);
    }
    if let Some(seconds) = idle {
        context.reply(b"idle-seconds");
        context.reply_number(seconds as usize);
    }
    for (field, text) in [("codec", explained.codec), ("why", &explained.why)] {
        context.reply(field.as_bytes());
        context.reply(text.as_bytes());
    }
}

fn explain(name: Text<'_>, key: &OpenKey) -> Explained {
    let stored = key.len();
    let plain = |why: String| Explained { codec: "none", len: stored, stored, why };
    // A shorter string must not be read: that would change how it is stored.
    if stored < LEAST_ENVELOPE {
        return plain(format!("shorter than {LEAST_ENVELOPE} bytes"));
    }
    let bytes = key.bytes();
    if values::is_envelope(bytes) {
        let codec = envelope::inspect(bytes)
            .and_then(|envelope| envelope.codec())
            .map_or("none", |codec| codec.name());
        return match values::restored(bytes, <[u8]>::len) {
            Ok(len) => Explained { codec, len, stored, why: "compressed".into() },
            Err(damaged) => Explained { codec, len: stored, stored, why: damaged.to_string() },
        };
    }
    plain(match values::observe(name.bytes(), bytes) {
        Ok(len) if settings::compresses() => format!("not compressed yet: it would be {len} bytes long"),
        Ok(len) => format!("compression is off: it would be {len} bytes long"),
        Err(Reason::Small) => "shorter than snugly.min-bytes".into(),
        Err(Reason::Compressed) => "in a compressed format, or looks random".into(),
        Err(Reason::NoGain) => "does not shrink, or strings like it have not".into(),
        Err(reason) => reason.name().into(),
    })
}
