//! Commands that change strings, or return what they take away.

use super::call::{Call, Copies};
use super::plain::{Expiry, MadePlain, exists, replicate, restored_at, wrap};
use super::read;

/// SET with GET, with a comparison, or with both.
pub fn set(call: &Call<'_>) {
    let conditions = conditions(call);
    match conditions.iter().find(|&&at| call.is(at, b"ifeq")) {
        Some(&at) => compare_and_set(call, at, conditions.len() == 1),
        None => restored(call),
    }
}

/// Positions of the conditions behind the value of SET.
fn conditions(call: &Call<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 3;
    while at < call.len() {
        let has_argument =
            [&b"ifeq"[..], b"ex", b"px", b"exat", b"pxat"].iter().any(|word| call.is(at, word));
        if [&b"ifeq"[..], b"nx", b"xx"].iter().any(|word| call.is(at, word)) {
            found.push(at);
        }
        at += if has_argument { 2 } else { 1 };
    }
    found
}

/// SET with IFEQ at this position, and with other conditions or not.
fn compare_and_set(call: &Call<'_>, at: usize, is_only_condition: bool) {
    let name = call.get(1);
    let string = match restored_at(call.context, name) {
        Ok(string) => string,
        Err(damaged) => return call.context.reply_error(&damaged.to_string()),
    };
    let Some(string) = string else { return restored(call) };
    let is_equal = at + 1 < call.len() && call.get(at + 1).bytes() == string;
    // The server refuses several conditions.
    if !is_equal || !is_only_condition {
        compare(call);
        return;
    }
    // The module has compared: SET runs without the condition, here and on replicas.
    let mut arguments = call.arguments().to_vec();
    arguments.drain(at - 1..=at);
    let Some(reply) = call.forward_with(Copies::Told, &arguments) else { return call.no_reply() };
    match reply.string() {
        // GET returns what was there.
        Some(stored) if stored != b"OK" => call.context.reply(&string),
        _ => call.context.reply_as(&reply),
    }
}

/// DELIFEQ: the server compares with the plain string, and deletes it or leaves it as it was.
pub fn compare_and_delete(call: &Call<'_>) {
    let name = call.get(1);
    let Some(was_envelope) = compare(call) else { return };
    if was_envelope && !exists(call.context, name) {
        replicate(call.context, name, Expiry::Kept);
    }
}

/// A command that compares the plain string and does not change it. Returns whether it was an envelope, unless that is
/// damaged.
fn compare(call: &Call<'_>) -> Option<bool> {
    let mut plain = MadePlain::new(call.context);
    if let Err(reason) = plain.make(call.get(1)) {
        call.context.reply_error(&reason.to_string());
        return None;
    }
    let was_envelope = !plain.is_empty();
    call.answer(copies(was_envelope));
    Some(was_envelope)
}

/// A command that returns the whole string that was there. It is restored first: a command that cannot return it must not
/// take it away.
pub fn restored(call: &Call<'_>) {
    let string = match restored_at(call.context, call.get(1)) {
        Ok(string) => string,
        Err(damaged) => return call.context.reply_error(&damaged.to_string()),
    };
    let Some(reply) = call.forward(Copies::Told) else { return call.no_reply() };
    match string.filter(|_| reply.string().is_some()) {
        Some(string) => call.context.reply(&string),
        None => call.context.reply_as(&reply),
    }
}

/// A command that changes a part of the string, which stays plain: it may soon change again.
pub fn on_plain(call: &Call<'_>) {
    let (context, name) = (call.context, call.get(1));
    let mut plain = MadePlain::new(context);
    if let Err(reason) = plain.make(name) {
        return context.reply_error(&reason.to_string());
    }
    let was_envelope = !plain.is_empty();
    let Some(reply) = call.forward(copies(was_envelope)) else { return call.no_reply() };
    if reply.error().is_none() {
        plain.keep(name);
        if wrap(context, name) || was_envelope {
            replicate(context, name, Expiry::Kept);
        }
    }
    context.reply_as(&reply);
}

/// BITFIELD, which may only read.
pub fn fields(call: &Call<'_>) {
    let changes = (2..call.len()).any(|at| call.is(at, b"set") || call.is(at, b"incrby"));
    if changes { on_plain(call) } else { read::on_plain(call) }
}

/// INCRBYFLOAT: the server tells replicas the result.
pub fn increment(call: &Call<'_>) {
    let (context, name) = (call.context, call.get(1));
    let mut plain = MadePlain::new(context);
    if let Err(reason) = plain.make(name) {
        return context.reply_error(&reason.to_string());
    }
    let Some(reply) = call.forward(Copies::Told) else { return call.no_reply() };
    if reply.error().is_none() {
        plain.keep(name);
    }
    context.reply_as(&reply);
}

/// BITOP: stores its result at the first of the keys, and only reads the others.
pub fn combine(call: &Call<'_>) {
    let (context, target) = (call.context, call.get(2));
    let mut plain = MadePlain::new(context);
    if let Err(reason) = call.keys().skip(1).try_for_each(|name| plain.make(name)) {
        return context.reply_error(&reason.to_string());
    }
    let were_envelopes = !plain.is_empty();
    let Some(reply) = call.forward(copies(were_envelopes)) else { return call.no_reply() };
    if reply.error().is_none() {
        plain.keep(target);
        if wrap(context, target) || were_envelopes {
            replicate(context, target, Expiry::Gone);
        }
    }
    context.reply_as(&reply);
}

/// Replicas are told the original, unless it works on what is an envelope there.
fn copies(were_envelopes: bool) -> Copies {
    if were_envelopes { Copies::None } else { Copies::Told }
}
