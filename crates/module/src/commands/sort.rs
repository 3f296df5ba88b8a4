//! SORT, which may look strings up by patterns that elements are put into.

use std::iter;

use super::call::{Call, Copies};
use super::plain::MadePlain;
use crate::server::{CallReply, OpenKey, OwnedText, Text, table};

/// SORT, which may store its result.
pub fn sort(call: &Call<'_>) {
    let Some(reply) = sorted(call, Copies::Told) else { return };
    call.context.reply_as(&reply);
}

/// SORT_RO.
pub fn sort_read_only(call: &Call<'_>) {
    let Some(reply) = sorted(call, Copies::None) else { return };
    call.context.reply_as(&reply);
}

/// The server's reply, where the strings that it looks up are plain; `None` if this has replied with an error.
fn sorted<'a>(call: &Call<'a>, copies: Copies) -> Option<CallReply<'a>> {
    let names = names(call);
    let mut plain = MadePlain::new(call.context);
    if let Err(damaged) = names.iter().try_for_each(|name| plain.make(name.as_text())) {
        plain.put_back();
        call.context.reply_error(&damaged.to_string());
        return None;
    }
    // Replicas would look envelopes up.
    let target = target(call).filter(|_| copies == Copies::Told && !plain.is_empty());
    let reply = call.forward(if target.is_some() { Copies::None } else { copies });
    plain.put_back();
    match (&reply, target) {
        (None, _) => call.no_reply(),
        (Some(reply), Some(target)) if reply.error().is_none() => replicate(call, target),
        _ => (),
    }
    reply
}

/// The key that the result is stored at.
fn target<'a>(call: &Call<'a>) -> Option<Text<'a>> {
    let is_option = |&at: &usize| call.get(at).bytes().eq_ignore_ascii_case(b"store");
    (2..call.len().saturating_sub(1)).rev().find(is_option).map(|at| call.get(at + 1))
}

/// Tells replicas the stored result.
fn replicate(call: &Call<'_>, target: Text<'_>) {
    call.context.replicate(c"DEL", &[target.raw()]);
    let elements = elements(call, target);
    let texts: Vec<_> = elements.iter().map(|element| OwnedText::new(element)).collect();
    if !texts.is_empty() {
        let arguments: Vec<_> =
            iter::once(target).chain(texts.iter().map(OwnedText::as_text)).map(Text::raw).collect();
        call.context.replicate(c"RPUSH", &arguments);
    }
}

/// The keys whose strings the command may look up.
fn names(call: &Call<'_>) -> Vec<OwnedText> {
    let patterns = patterns(call);
    let elements = if patterns.is_empty() { Vec::new() } else { elements(call, call.get(1)) };
    let named = |(before, after): &(&[u8], &[u8]), element: &Vec<u8>| {
        OwnedText::new(&[before, &element[..], after].concat())
    };
    patterns.iter().flat_map(|pattern| elements.iter().map(|element| named(pattern, element))).collect()
}

/// The patterns behind BY and GET that name keys of strings, each split at the place of the element.
fn patterns<'a>(call: &Call<'a>) -> Vec<(&'a [u8], &'a [u8])> {
    let is_option = |word: &[u8]| word.eq_ignore_ascii_case(b"by") || word.eq_ignore_ascii_case(b"get");
    let options = (2..call.len().saturating_sub(1)).filter(|&at| is_option(call.get(at).bytes()));
    options.filter_map(|at| split(call.get(at + 1).bytes())).collect()
}

/// A pattern's bytes before and behind the place of the element, unless it names fields of hashes or no element.
fn split(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let star = memchr::memchr(b'*', pattern)?;
    let after = &pattern[star + 1..];
    let field = after.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < after.len());
    field.is_none().then_some((&pattern[..star], after))
}

/// The elements of the list, set or sorted set at a key.
fn elements(call: &Call<'_>, key: Text<'_>) -> Vec<Vec<u8>> {
    let Some(kind) = OpenKey::look(call.context, key).map(|key| key.kind()) else { return Vec::new() };
    let bounds = [&b"0"[..], b"-1"].map(OwnedText::new);
    let (key, first, last) = (key.raw(), bounds[0].as_text().raw(), bounds[1].as_text().raw());
    let reply = match kind {
        table::KEY_TYPE_LIST => call.context.call(c"LRANGE", c"Ev", &[key, first, last]),
        table::KEY_TYPE_SET => call.context.call(c"SMEMBERS", c"Ev", &[key]),
        table::KEY_TYPE_SORTED_SET => call.context.call(c"ZRANGE", c"Ev", &[key, first, last]),
        _ => None,
    };
    let Some(reply) = reply else { return Vec::new() };
    let elements = (0..reply.array().unwrap_or(0)).filter_map(|at| reply.element(at));
    elements.filter_map(|element| element.string().map(<[u8]>::to_vec)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_split_at_its_first_star() {
        assert_eq!(split(b"weight:*"), Some((&b"weight:"[..], &b""[..])));
        assert_eq!(split(b"a*b*c"), Some((&b"a"[..], &b"b*c"[..])));
        assert_eq!(split(b"a*->"), Some((&b"a"[..], &b"->"[..])));
    }

    #[test]
    fn patterns_of_fields_and_of_no_element_name_no_string() {
        assert_eq!(split(b"key:*->field"), None);
        assert_eq!(split(b"nosort"), None);
        assert_eq!(split(b"#"), None);
    }
}
