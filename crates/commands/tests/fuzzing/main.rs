//! The bodies of the fuzz targets, replayed over their seeds; `make fuzz` looks for new inputs.

mod arguments;
#[path = "../reference/mod.rs"]
mod reference;
mod replies;

use proptest::prelude::*;

#[test]
fn arguments_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/arguments"), arguments::run);
}

#[test]
fn replies_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/replies"), replies::run);
}

/// A name with a row, and words that its pattern knows among others.
fn command_line() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let rows: Vec<_> = reference::TABLE["commands"].as_object().unwrap().iter().collect();
    prop::sample::select(rows).prop_flat_map(|(name, row)| {
        let words = [
            "k",
            "v",
            "1",
            "2",
            "3",
            "*",
            "=",
            "~",
            "5-1",
            "5-*",
            "0123456789abcdef0123456789abcdef",
            "\0\x01\x02",
        ];
        let mut words: Vec<String> = words.map(str::to_owned).to_vec();
        for option in row["options"].as_object().into_iter().flat_map(serde_json::Map::keys) {
            words.extend([option.clone(), option.to_lowercase()]);
        }
        let name = name.as_bytes().to_vec();
        prop::collection::vec(prop::sample::select(words), 0..24).prop_map(move |words| {
            let words = words.into_iter().map(String::into_bytes);
            std::iter::once(name.clone()).chain(words).collect()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn command_lines_of_known_words_are_read_as_the_table_says(args in command_line()) {
        arguments::check(&args);
    }
}
