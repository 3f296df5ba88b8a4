//! SORT, which may look strings up by patterns that elements are put into.

use std::iter;

use super::call::{Call, Copies};
use super::plain::{MadePlain, NotPlain};
use super::read::reply_restored;
use crate::server::{OpenKey, OwnedText, Text, table};

/// SORT, which may store its result.
pub fn sort(call: &Call<'_>) {
    match target(call) {
        Some(target) => sort_and_store(call, target),
        None => read(call, Copies::Told),
    }
}

/// SORT_RO.
pub fn sort_read_only(call: &Call<'_>) {
    read(call, Copies::None);
}

/// Replies with elements and strings. Those that elements are compared by are plain meanwhile; those that are returned are
/// restored in the reply: there may be far more that are not.
fn read(call: &Call<'_>, copies: Copies) {
    let plain = match plain(call, &[b"by"]) {
        Ok(plain) => plain,
        Err(reason) => return call.context.reply_error(&reason.to_string()),
    };
    let Some(reply) = call.forward(copies) else { return call.no_reply() };
    drop(plain);
    let gets: Vec<_> =
        patterns(call, &[b"get"]).into_iter().map(|pattern| split(pattern).is_some()).collect();
    let Some(len) = reply.array().filter(|_| gets.contains(&true)) else {
        return call.context.reply_as(&reply);
    };
    call.context.reply_array(len);
    for at in 0..len {
        let element = reply.element(at);
        let string = element.as_ref().and_then(|element| element.string());
        match (string, &element) {
            (Some(string), _) if gets[at % gets.len()] => reply_restored(call.context, string),
            (_, Some(element)) => call.context.reply_as(element),
            (_, None) => call.context.reply_null(),
        }
    }
}

/// Stores the result. Replicas, which would look envelopes up, are told what it is.
fn sort_and_store(call: &Call<'_>, target: Text<'_>) {
    let plain = match plain(call, &[b"by", b"get"]) {
        Ok(plain) => plain,
        Err(reason) => return call.context.reply_error(&reason.to_string()),
    };
    let copies = if plain.is_empty() { Copies::Told } else { Copies::None };
    let Some(reply) = call.forward(copies) else { return call.no_reply() };
    drop(plain);
    if copies == Copies::None && reply.error().is_none() {
        replicate(call, target);
    }
    call.context.reply_as(&reply);
}

/// Makes the strings plain that these options may look up.
fn plain(call: &Call<'_>, options: &[&[u8]]) -> Result<MadePlain, NotPlain> {
    let patterns: Vec<_> = patterns(call, options).into_iter().filter_map(split).collect();
    let elements = if patterns.is_empty() { Vec::new() } else { elements(call, call.get(1)) };
    let mut plain = MadePlain::new(call.context);
    for (before, after) in patterns {
        for element in &elements {
            plain.make(OwnedText::new(&[before, &element[..], after].concat()).as_text())?;
        }
    }
    Ok(plain)
}

/// The key that the result is stored at.
fn target<'a>(call: &Call<'a>) -> Option<Text<'a>> {
    options(call).filter(|&at| call.is(at, b"store")).last().map(|at| call.get(at + 1))
}

/// Positions of options that have an argument.
fn options(call: &Call<'_>) -> impl Iterator<Item = usize> {
    let mut found = Vec::new();
    let mut at = 2;
    while at < call.len() {
        let has_argument = [&b"by"[..], b"get", b"store"].iter().any(|word| call.is(at, word));
        if has_argument && at + 1 < call.len() {
            found.push(at);
        }
        at += 1 + usize::from(has_argument) + 2 * usize::from(call.is(at, b"limit"));
    }
    found.into_iter()
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

/// The patterns behind these options, in their order.
fn patterns<'a>(call: &Call<'a>, names: &[&[u8]]) -> Vec<&'a [u8]> {
    let is_one = |&at: &usize| names.iter().any(|name| call.is(at, name));
    options(call).filter(is_one).map(|at| call.get(at + 1).bytes()).collect()
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
