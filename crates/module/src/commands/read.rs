//! Commands that read strings.

use super::call::{Call, Copies};
use super::plain::MadePlain;
use crate::values;

/// GET: restores the string without a copy of what is stored.
pub fn get(call: &Call<'_>) {
    let Some(key) = call.open_envelope(call.get(1)) else { return call.answer(Copies::None) };
    if let Err(damaged) = values::restored(key.bytes(), |value| call.context.reply(value)) {
        call.context.reply_error(&damaged.to_string());
    }
}

/// STRLEN: most envelopes say how long the string is.
pub fn strlen(call: &Call<'_>) {
    let Some(key) = call.open_envelope(call.get(1)) else { return call.answer(Copies::None) };
    match values::restored_len(key.bytes()) {
        Ok(len) => call.context.reply_number(len),
        Err(damaged) => call.context.reply_error(&damaged.to_string()),
    }
}

/// MGET: the server's reply with its strings restored.
pub fn mget(call: &Call<'_>) {
    let Some(reply) = call.forward(Copies::None) else { return call.no_reply() };
    let Some(len) = reply.array() else { return call.context.reply_as(&reply) };
    call.context.reply_array(len);
    for element in (0..len).map(|at| reply.element(at)) {
        match element.as_ref().and_then(|element| element.string()) {
            Some(stored) => {
                if let Err(damaged) = values::restored(stored, |value| call.context.reply(value)) {
                    call.context.reply_error(&damaged.to_string());
                }
            }
            None => call.context.reply_null(),
        }
    }
}

/// A command that the server runs on the plain strings, which are envelopes again when it has replied.
pub fn on_plain(call: &Call<'_>) {
    let mut plain = MadePlain::new(call.context);
    match call.keys().try_for_each(|name| plain.make(name)) {
        Ok(()) => call.answer(Copies::None),
        Err(damaged) => call.context.reply_error(&damaged.to_string()),
    }
    plain.put_back();
}
