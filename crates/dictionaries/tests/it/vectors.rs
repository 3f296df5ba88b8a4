//! The test vectors of `spec/vectors/catalogue.json`, which every language runs, against this crate.

use std::time::Duration;

use serde_json::{Value, json};
use snugly_dictionaries::{Catalogue, CatalogueError, Entry};

fn cases(list: &str) -> Vec<Value> {
    let vectors = include_bytes!("../../../../spec/vectors/catalogue.json");
    let vectors: Value = serde_json::from_slice(vectors).unwrap();
    let cases = vectors[list].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

fn catalogue(active: &Value, dictionaries: &Value) -> Catalogue {
    let document = json!({"version": 1, "active": active, "dictionaries": dictionaries});
    Catalogue::decode(document.to_string().as_bytes()).unwrap()
}

#[test]
fn the_first_pattern_that_matches_decides() {
    for case in cases("patterns") {
        let catalogue = catalogue(&case["active"], &json!([]));
        for (key, wanted) in case["keys"].as_object().unwrap() {
            let found = catalogue.active_for(key.as_bytes());
            assert_eq!(found.map(u64::from), wanted.as_u64(), "{}: {key}", case["name"]);
        }
    }
}

#[test]
fn a_new_dictionary_takes_its_place_among_the_patterns() {
    for case in cases("adding") {
        let mut catalogue = catalogue(&case["active"], &json!([]));
        let pattern = case["add"]["pattern"].as_str().unwrap().into();
        let id = case["add"]["id"].as_u64().unwrap() as u32;
        catalogue.add(Entry { id, pattern, ..Entry::default() });
        let active: Vec<Value> =
            catalogue.active.iter().map(|row| json!({"pattern": row.pattern, "id": row.id})).collect();
        assert_eq!(&Value::from(active), &case["becomes"], "{}", case["name"]);
    }
}

#[test]
fn writers_wait_before_they_use_a_dictionary() {
    for case in cases("choosing") {
        let seconds = |value: &Value| Duration::from_secs(value.as_u64().unwrap());
        let catalogue = catalogue(&case["active"], &case["dictionaries"]);
        let first_seen = |id: u32| seconds(&case["first_seen"][id.to_string()]);
        for (now, wanted) in case["at"].as_object().unwrap() {
            let now = Duration::from_secs(now.parse().unwrap());
            let choices = catalogue.choices(now, seconds(&case["refresh"]), first_seen);
            let found: Vec<Value> = choices.iter().map(|choice| choice.id.into()).collect();
            assert_eq!(&Value::from(found), wanted, "{}: {now:?}", case["name"]);
        }
    }
}

#[test]
fn documents_are_read_or_refused() {
    for case in cases("documents") {
        let read = Catalogue::decode(case["document"].as_str().unwrap().as_bytes());
        let error = read.err().map(|error| match error {
            CatalogueError::Version { .. } => "version",
            CatalogueError::Unreadable { .. } | CatalogueError::Twice { .. } => "unreadable",
            CatalogueError::TooLong { .. }
            | CatalogueError::TooMany { .. }
            | CatalogueError::PatternTooLong { .. } => "too_large",
        });
        assert_eq!(error, case["error"].as_str(), "{}", case["name"]);
    }
}
