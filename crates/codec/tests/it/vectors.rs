//! The test vectors of `spec/vectors`, which every language runs, against this crate.
#![cfg(all(feature = "zstd", feature = "lz4"))]

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use crate::rules::{cases, expand, number, text, vectors};
use serde_json::Value;
use snugly_codec::envelope::{self, Decoded, ExistingEnvelopes, Options, Outcome};
use snugly_codec::{Choice, Dictionary, LoadError};

fn dictionaries(vectors: &Value) -> HashMap<String, Arc<Dictionary>> {
    let rows = vectors["dictionaries"].as_object().unwrap();
    let load = |row: &Value| Arc::new(Dictionary::load(expand(&row["bytes"])).unwrap());
    rows.iter().map(|(name, row)| (name.clone(), load(row))).collect()
}

#[test]
fn readers_find_what_the_vectors_say() {
    for file in ["envelopes.json", "lz4_dictionary.json"] {
        readers_find_what_is_said_in(&vectors(file));
    }
}

fn readers_find_what_is_said_in(vectors: &Value) {
    let dictionaries = dictionaries(vectors);
    for case in cases(vectors, "cases") {
        let mut options = Options::default();
        if let Some(limit) = case["options"]["max_decompressed_size"].as_u64() {
            options.max_decompressed_size = limit as usize;
        }
        let names = case["dictionaries"].as_array().map(Vec::as_slice).unwrap_or_default();
        let at_hand = |id| {
            let mut named = names.iter().map(|name| &dictionaries[name.as_str().unwrap()]);
            named.find(|dictionary| dictionary.id() == id).map(|dictionary| &**dictionary)
        };
        let mut out = b"before".to_vec();
        let result = envelope::decode_with(&options, &at_hand, &expand(&case["envelope"]), &mut out);
        let restored = out.strip_prefix(b"before").unwrap();
        let name = text(&case, "name");
        match text(&case, "expect") {
            "value" => {
                let value = expand(&case["value"]);
                assert!(
                    matches!(result, Ok(Decoded::Restored { len, .. }) if len == value.len()),
                    "{name}: {result:?}"
                );
                assert!(restored == value, "{name}: another value");
            }
            "untouched" => assert_eq!((result, restored), (Ok(Decoded::AsIs), &b""[..]), "{name}"),
            "error" => {
                let error = result.expect_err(name);
                assert_eq!((error.kind(), restored), (text(&case, "error"), &b""[..]), "{name}: {error}");
            }
            other => panic!("{name}: no expectation is called {other}"),
        }
    }
}

#[test]
fn writers_do_what_the_vectors_say() {
    let vectors = vectors("writers.json");
    for case in cases(&vectors, "cases") {
        let setting = |name: &str| match &case["options"][name] {
            Value::Null => vectors["defaults"][name].clone(),
            given => given.clone(),
        };
        let level = setting("level").as_i64().map(|level| level as i32);
        let min_bytes = setting("min_compression_size").as_u64().unwrap() as usize;
        let options = Options {
            choice: Choice::new(setting("backend").as_str().unwrap(), level, min_bytes).unwrap(),
            existing_envelopes: match setting("existing_envelopes").as_str() {
                Some("keep") => ExistingEnvelopes::Keep,
                Some("wrap") => ExistingEnvelopes::Wrap,
                other => panic!("no setting {other:?}"),
            },
            ..Options::default()
        };
        let value = expand(&case["value"]);
        let mut sent = Vec::new();
        // A thread of its own for each case: an encoder that has just met random bytes tries less hard.
        let outcome = thread::scope(|scope| {
            scope.spawn(|| envelope::encode(&options, &value, &mut sent)).join().unwrap()
        });
        let name = text(&case, "name");
        match text(&case, "expect") {
            "as_is" => assert!(matches!(outcome, Outcome::AsIs(_)) && sent.is_empty(), "{name}: {outcome:?}"),
            "encoded" => {
                assert!(
                    matches!(outcome, Outcome::Encoded { len, .. } if len == sent.len()),
                    "{name}: {outcome:?}"
                );
                assert!(envelope::inspect(&sent).unwrap().is_well_formed(usize::MAX), "{name}");
                let mut restored = Vec::new();
                envelope::decode(&options, &sent, &mut restored).expect(name);
                assert!(restored == value, "{name}: another value");
            }
            other => panic!("{name}: no expectation is called {other}"),
        }
    }
}

#[test]
fn dictionaries_are_taken_by_the_id_of_their_content() {
    let vectors = vectors("envelopes.json");
    for (name, dictionary) in dictionaries(&vectors) {
        assert_eq!(dictionary.id() as usize, number(&vectors["dictionaries"][&name], "id"), "{name}");
    }
}

#[test]
fn what_is_no_dictionary_is_refused() {
    for case in cases(&vectors("catalogue.json"), "refused") {
        let refused = match Dictionary::load(expand(&case["bytes"])).expect_err(text(&case, "name")) {
            LoadError::NotADictionary => "not_a_dictionary",
            LoadError::WrongId { .. } => "wrong_id",
            LoadError::TooLarge { .. } => "too_large",
            LoadError::Corrupt => "corrupt",
            LoadError::NotBuiltIn => "not_built_in",
        };
        assert_eq!(refused, text(&case, "error"), "{}", text(&case, "name"));
    }
}

#[test]
fn ids_come_from_the_bytes_behind_the_header() {
    for case in cases(&vectors("catalogue.json"), "ids") {
        let mut bytes = [0x37, 0xA4, 0x30, 0xEC, 0, 0, 0, 0].to_vec();
        bytes.extend(expand(&case["content"]));
        let id = match Dictionary::load(bytes) {
            Err(LoadError::WrongId { content, .. }) => content,
            other => panic!("{case}: {other:?}"),
        };
        assert_eq!(id as usize, number(&case, "id"), "{case}");
    }
}
