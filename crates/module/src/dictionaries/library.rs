//! Dictionaries as libraries of functions, in which the server keeps them.
//!
//! ```text
//! snugly_dictionary_<ID>   one dictionary, in base64 in a comment; never changes
//! snugly_dictionaries      those for new strings: a line for each, with its ID and the pattern of its keys in base64
//! ```
//!
//! The server wants a function in each library: one of the same name, which does nothing. Texts may come from anybody who may
//! load functions, so a dictionary must be what its name says.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use snugly_codec::{Dictionary, LoadError};

/// Name of the library that says which dictionaries new strings are compressed with.
pub const CHOSEN: &str = "snugly_dictionaries";
/// Pattern of the names of all libraries.
pub const ALL: &str = "snugly_dictionar*";
const PREFIX: &str = "snugly_dictionary_";
/// Begins the lines that are data.
const DATA: &[u8] = b"-- ";

/// Name of a dictionary's library.
pub fn name(id: u32) -> String {
    format!("{PREFIX}{id}")
}

/// ID of the dictionary that a library of this name has.
pub fn id(name: &[u8]) -> Option<u32> {
    std::str::from_utf8(name.strip_prefix(PREFIX.as_bytes())?).ok()?.parse().ok()
}

/// Text of a dictionary's library.
pub fn dictionary_code(dictionary: &Dictionary) -> String {
    code(&name(dictionary.id()), [BASE64.encode(dictionary.bytes())])
}

/// The dictionary in a library's text.
///
/// # Errors
/// A text that says why there is none with this ID.
pub fn dictionary(id: u32, code: &[u8]) -> Result<Dictionary, String> {
    let data = data(code)
        .next()
        .and_then(|line| BASE64.decode(line).ok())
        .ok_or("it has no dictionary in base64")?;
    let dictionary = Dictionary::load(data).map_err(|error: LoadError| error.to_string())?;
    match dictionary.id() == id {
        true => Ok(dictionary),
        false => Err(format!("its dictionary has the ID {}", dictionary.id())),
    }
}

/// Text of the library that says which dictionaries are chosen, by patterns and IDs.
pub fn chosen_code<'a>(chosen: impl IntoIterator<Item = (&'a [u8], u32)>) -> String {
    code(CHOSEN, chosen.into_iter().map(|(pattern, id)| format!("{id} {}", BASE64.encode(pattern))))
}

/// Patterns and IDs in the text of that library. A line that says something else is none.
pub fn chosen(code: &[u8]) -> Vec<(Vec<u8>, u32)> {
    let parse = |line: &[u8]| {
        let (id, pattern) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        Some((BASE64.decode(pattern).ok()?, id.parse().ok()?))
    };
    data(code).filter_map(parse).collect()
}

fn code(name: &str, data: impl IntoIterator<Item = String>) -> String {
    let lines: String = data.into_iter().map(|line| format!("-- {line}\n")).collect();
    format!(
        "#!lua name={name}\n{lines}server.register_function{{function_name='{name}', callback=function() end, \
         description='What values of snugly share, which must be there to restore them', flags={{'no-writes'}}}}\n"
    )
}

fn data(code: &[u8]) -> impl Iterator<Item = &[u8]> {
    code.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(DATA))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dictionaries::sample;

    proptest! {
        #[test]
        fn any_text_is_a_library_or_none(bytes: Vec<u8>, lines in "(-- [0-9]{0,12} ?[A-Za-z0-9+/=]{0,40}\\PC{0,3}\n){0,9}") {
            for text in [&bytes[..], lines.as_bytes()] {
                prop_assert!(dictionary(40_000, text).is_err());
                prop_assert!(chosen(text).len() <= text.len());
                let _ = id(text);
            }
        }
    }

    #[test]
    fn a_dictionary_comes_back_from_its_library() {
        let written = sample("user");
        let code = dictionary_code(&written);
        let read = dictionary(written.id(), code.as_bytes()).expect("it is whole");
        assert_eq!(read.bytes(), written.bytes());
        assert_eq!(id(name(written.id()).as_bytes()), Some(written.id()));
        assert_eq!(id(CHOSEN.as_bytes()), None);
    }

    #[test]
    fn a_library_of_something_else_is_no_dictionary() {
        let written = sample("user");
        let code = dictionary_code(&written);
        assert!(
            dictionary(written.id() + 1, code.as_bytes()).expect_err("another ID").contains("has the ID")
        );
        for text in
            ["", "-- ", "-- @", "#!lua name=x\nreturn 1", &code[..code.len() / 2], &code.replace("-- ", "--")]
        {
            assert!(dictionary(written.id(), text.as_bytes()).is_err());
        }
    }

    #[test]
    fn choices_come_back_whatever_bytes_a_pattern_has() {
        let patterns: [&[u8]; 4] = [b"user:*", b"", b"a\nb -- c", b"\xff\0'*"];
        let code = chosen_code(patterns.iter().copied().zip(7..));
        let expected: Vec<_> = patterns.iter().map(|pattern| pattern.to_vec()).zip(7..).collect();
        assert_eq!(chosen(code.as_bytes()), expected);
        assert_eq!(chosen(b"-- 7\n-- x Kg==\n-- 7 *\n-- 8 Kg==\n"), [(b"*".to_vec(), 8)]);
        assert_eq!(chosen(chosen_code([]).as_bytes()), []);
    }
}
