//! SNUGLY.DICTIONARY lists the dictionaries of this node, forgets one, exports it, or imports one.

use std::ffi::c_int;
use std::sync::Arc;

use snugly_codec::Dictionary;

use crate::dictionaries::{self, Known};
use crate::guard;
use crate::server::table::{Ctx, Str};
use crate::server::{Context, Text};
use crate::settings;

const SYNTAX: &str =
    "ERR syntax error. Try SNUGLY.DICTIONARY LIST, FORGET id, EXPORT id, or IMPORT pattern dictionary.";

pub unsafe extern "C" fn run(context: *mut Ctx, arguments: *mut *mut Str, len: c_int) -> c_int {
    // SAFETY: the server keeps all of them until this returns.
    let (context, words) = unsafe {
        let words = (1..len as usize).map(|at| Text::from_raw(*arguments.add(at)).bytes());
        (Context::from_raw(context), words.collect::<Vec<&[u8]>>())
    };
    guard::answered(context, || {
        let Some((word, rest)) = words.split_first() else { return context.reply_error(SYNTAX) };
        let done = match (word.to_ascii_lowercase().as_slice(), rest) {
            (b"list", []) => list(context),
            (b"forget", [id]) => forget(context, id),
            (b"export", [id]) => export(context, id),
            (b"import", [pattern, bytes]) => import(context, pattern, bytes),
            _ => Err(SYNTAX.into()),
        };
        if let Err(error) = done {
            context.reply_error(&error);
        }
    })
}

fn list(context: Context) -> Result<(), String> {
    dictionaries::with(|known| {
        context.reply_array(known.all().count());
        for dictionary in known.all() {
            let chosen = known.chosen().iter().find(|chosen| chosen.dictionary.id() == dictionary.id());
            context.reply_map(4);
            context.reply(b"id");
            context.reply_number(dictionary.id() as usize);
            context.reply(b"pattern");
            match chosen {
                Some(chosen) => context.reply(chosen.pattern.text()),
                None => context.reply_null(),
            }
            for (field, number) in
                [("bytes", dictionary.bytes().len()), ("memory-bytes", dictionary.memory_taken())]
            {
                context.reply(field.as_bytes());
                context.reply_number(number);
            }
        }
    });
    Ok(())
}

fn export(context: Context, id: &[u8]) -> Result<(), String> {
    context.reply(find(id)?.bytes());
    Ok(())
}

fn forget(context: Context, id: &[u8]) -> Result<(), String> {
    let dictionary = find(id)?;
    may_decide(context)?;
    dictionaries::forget(context, dictionary.id());
    context.reply_status(c"OK");
    Ok(())
}

fn import(context: Context, pattern: &[u8], bytes: &[u8]) -> Result<(), String> {
    let dictionary = Dictionary::load(bytes).map_err(|error| format!("ERR {error}"))?;
    may_decide(context)?;
    if !settings::uses_dictionaries() {
        return Err(
            "ERR no dictionaries are used: not in a fleet that is mixed, while everything is made plain, or \
                    with snugly.dictionary-memory 0"
                .into(),
        );
    }
    dictionaries::adopt(context, pattern.to_vec(), Arc::new(dictionary))
        .map_err(|error| format!("ERR {error}"))?;
    context.reply_status(c"OK");
    Ok(())
}

fn find(id: &[u8]) -> Result<Arc<Dictionary>, String> {
    let id: Option<u32> = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
    let found = |known: &Known| known.find(id?).cloned();
    dictionaries::with(found).ok_or_else(|| "ERR no such dictionary. Try SNUGLY.DICTIONARY LIST.".into())
}

fn may_decide(context: Context) -> Result<(), String> {
    if context.is_replica() {
        return Err("READONLY a replica has the dictionaries of its primary.".into());
    }
    match context.may_tell() {
        true => Ok(()),
        false => Err("ERR writes are paused. Try again later.".into()),
    }
}
