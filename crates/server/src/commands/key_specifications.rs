//! Finding keys among a request's arguments by the specifications that COMMAND INFO tells, as clients do.

use snugly_protocol::resp::{Args, parse_integer};

use super::documentation::{BeginSearch, Documentation, FindKeys, KeySpecification};
use super::options::is;

/// A key and what the command does with it.
pub(super) type FoundKey<'a> = (&'a [u8], Vec<&'a str>);

/// The keys of a request of this command; `None` if its arguments say that there are keys where there are no arguments.
pub(super) fn keys<'a>(
    full_name: &str,
    documentation: &'a Documentation,
    request: Args<'a>,
) -> Option<Vec<FoundKey<'a>>> {
    let mut keys = Vec::new();
    for specification in documentation.key_specifications.iter().filter(|found| found.is_about_keys()) {
        let Some(range) = places(specification, request)? else { continue };
        let flags = flags(full_name, specification, request);
        for place in range {
            keys.push((request.get(place)?, flags.clone()));
        }
    }
    if full_name == "sort" {
        keys.extend(stored_by_sort(request).map(|key| (key, vec!["OW", "update"])));
    }
    Some(keys)
}

/// The key behind the last STORE, which no specification finds.
fn stored_by_sort(request: Args<'_>) -> Option<&[u8]> {
    const VALUES: [(&str, usize); 4] = [("LIMIT", 2), ("GET", 1), ("BY", 1), ("STORE", 0)];
    let (mut place, mut stored) = (2, None);
    while let Some(arg) = request.get(place) {
        let values = VALUES.iter().find(|(name, _)| is(arg, name)).map_or(0, |(_, values)| *values);
        place += 1 + values;
        if is(arg, "STORE") {
            stored = request.get(place).or(stored);
        }
    }
    stored
}

type Places = std::iter::StepBy<std::ops::RangeInclusive<usize>>;

/// Positions of the keys of a specification; none if its word does not occur. `None` if it does not fit the request.
fn places(specification: &KeySpecification, request: Args<'_>) -> Option<Option<Places>> {
    let count = request.len() as i64;
    let first = match &specification.begin_search {
        BeginSearch::Index { index } => Some(*index),
        BeginSearch::Keyword { keyword, startfrom } => behind_word(keyword, *startfrom, request),
        BeginSearch::Unknown {} => None,
    };
    let Some(first) = first else { return Some(None) };
    let (first, last, step) = match specification.find_keys {
        FindKeys::Range { lastkey, keystep, limit } => {
            let last = match lastkey {
                0.. => first + lastkey,
                _ if limit == 0 => count + lastkey,
                _ => first + (count - first) / limit + lastkey,
            };
            (first, last, keystep)
        }
        FindKeys::KeyNum { keynumidx, firstkey, keystep } => {
            let number = request.get(usize::try_from(first + keynumidx).ok()?).and_then(parse_integer)?;
            let number = Some(number).filter(|number| (1..=count).contains(number))?;
            let first = first + firstkey;
            (first, first + (number - 1) * keystep, keystep)
        }
        FindKeys::Unknown {} => return Some(None),
    };
    if first < 1 || last < first || last >= count {
        return None;
    }
    Some(Some((first as usize..=last as usize).step_by(usize::try_from(step).ok()?)))
}

/// The place behind a word.
fn behind_word(word: &str, from: i64, request: Args<'_>) -> Option<i64> {
    let places = 1..request.len();
    let found = |&place: &usize| is(&request[place], word);
    let place = match usize::try_from(from) {
        Ok(from) => places.skip(from.saturating_sub(1)).find(found)?,
        Err(_) => places.rev().skip(from.unsigned_abs() as usize - 1).find(found)?,
    };
    Some(place as i64 + 1)
}

/// The access to the keys; for BITFIELD and SET it depends on the arguments.
fn flags<'a>(full_name: &str, specification: &'a KeySpecification, request: Args<'_>) -> Vec<&'a str> {
    match full_name {
        "bitfield" if is_reading_bitfield(request) => vec!["RO", "access"],
        "bitfield" => vec!["RW", "access", "update"],
        "set" if request.from(3).iter().any(|arg| is(arg, "GET")) => vec!["RW", "access", "update"],
        "set" => vec!["OW", "update"],
        _ => specification.flags.iter().map(String::as_str).collect(),
    }
}

/// Returns whether a BITFIELD only reads; one that cannot be understood may write.
fn is_reading_bitfield(request: Args<'_>) -> bool {
    const HARMLESS: [(&str, usize); 2] = [("GET", 2), ("OVERFLOW", 1)];
    let mut place = 2;
    while let Some(arg) = request.get(place) {
        let values = HARMLESS.iter().find(|(name, _)| is(arg, name)).map(|(_, values)| *values);
        let Some(values) = values.filter(|values| place + values < request.len()) else { return false };
        place += 1 + values;
    }
    true
}

#[cfg(test)]
mod tests {
    use snugly_protocol::resp::{Limits, RequestParser};

    use super::*;

    fn found(begin_search: BeginSearch, find_keys: FindKeys, line: &str) -> Option<Vec<String>> {
        let specification = KeySpecification { notes: None, flags: Vec::new(), begin_search, find_keys };
        let line = format!("{line}\r\n");
        let mut parser = RequestParser::default();
        parser.parse(line.as_bytes(), &Limits::default()).expect("the line is a request");
        let request = parser.args(line.as_bytes());
        let places = places(&specification, request)?;
        let text = |place: usize| String::from_utf8_lossy(&request[place]).into_owned();
        Some(places.map_or_else(Vec::new, |places| places.map(text).collect()))
    }

    fn range(lastkey: i64, keystep: i64, limit: i64) -> FindKeys {
        FindKeys::Range { lastkey, keystep, limit }
    }

    #[test]
    fn keys_are_found_by_place_by_word_and_by_number() {
        let index = |index| BeginSearch::Index { index };
        let word = |startfrom| BeginSearch::Keyword { keyword: "KEYS".into(), startfrom };
        let number = FindKeys::KeyNum { keynumidx: 0, firstkey: 1, keystep: 2 };
        for (begin, find, line, keys) in [
            (index(1), range(0, 1, 0), "get a", Some(vec!["a"])),
            (index(1), range(-1, 2, 0), "mset a 1 b 2", Some(vec!["a", "b"])),
            (index(2), range(-1, 1, 0), "bitop and d", Some(vec!["d"])),
            (word(1), range(-1, 1, 0), "x 1 keys a b", Some(vec!["a", "b"])),
            (word(-2), range(-1, 1, 0), "x keys a keys b c", Some(vec!["b", "c"])),
            (word(1), range(-1, 1, 0), "x 1 a b", Some(vec![])),
            (word(1), range(-1, 1, 2), "xread keys a b 1 2", Some(vec!["a", "b"])),
            (index(1), number, "msetex 2 a 1 b 2 ex 5", Some(vec!["a", "b"])),
            (BeginSearch::Unknown {}, FindKeys::Unknown {}, "sort a by b", Some(vec![])),
        ] {
            let keys = keys.map(|keys| keys.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(found(begin, find, line), keys, "{line}");
        }
    }

    #[test]
    fn keys_that_are_said_to_be_where_no_arguments_are_do_not_fit() {
        let number = || FindKeys::KeyNum { keynumidx: 0, firstkey: 1, keystep: 1 };
        let index = || BeginSearch::Index { index: 1 };
        for line in ["x 3 a b", "x abc a", "x -1 a", "x 9223372036854775807 a", "x"] {
            assert_eq!(found(index(), number(), line), None, "{line}");
        }
        assert_eq!(found(BeginSearch::Index { index: 5 }, range(0, 1, 0), "x a"), None);
    }
}
