//! The vectors of the specification (`spec/vectors/commands.json`), which every client plays.

use std::sync::LazyLock;

use crate::reference::{Tree, values_in_reply};
use serde_json::{Value as Json, json};
use snugly_commands::{Found, Interpreter, ValueType, command, keys};

static VECTORS: LazyLock<Json> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../spec/vectors/commands.json"))
        .expect("the vectors can be read")
});

fn cases(section: &str) -> &'static [Json] {
    VECTORS[section].as_array().unwrap()
}

/// Arguments: text, or bytes by the rules of `spec/vectors/README.md` that occur here.
fn arguments(case: &Json) -> Vec<Vec<u8>> {
    case["arguments"].as_array().unwrap().iter().map(argument).collect()
}

fn argument(rule: &Json) -> Vec<u8> {
    if let Some(text) = rule.as_str().or(rule["text"].as_str()) {
        return text.as_bytes().to_vec();
    }
    if let Some(hex) = rule["hex"].as_str() {
        return (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
    }
    let size = rule["size"].as_u64().expect("no other rule occurs") as usize;
    argument(&rule["repeat"]).into_iter().cycle().take(size).collect()
}

#[test]
fn keys_and_values_are_where_the_vectors_say() {
    let mut found = Found::default();
    for case in cases("commands") {
        let args = arguments(case);
        let row = command(&args[0]);
        // A command without a row has a pattern that takes everything.
        let fits = row.is_none_or(|row| row.find(&args[..], &mut found));
        if row.is_none() {
            found.clear();
        }
        assert_eq!(json!(fits), case["fits"], "{case}");
        let values: Vec<_> = found.values().iter().map(|value| [value.at, value.key]).collect();
        for (name, positions) in
            [("keys", json!(found.keys())), ("values", json!(values)), ("compared", json!(found.compared()))]
        {
            assert_eq!(&positions, case.get(name).unwrap_or(&json!([])), "{name} of {case}");
        }
    }
}

#[test]
fn refusals_have_the_words_of_the_vectors() {
    let mut found = Found::default();
    for case in cases("commands") {
        let args = arguments(case);
        for value_type in ValueType::ALL {
            let refused = Interpreter::new([value_type]).read(&args[..], &mut found).err();
            let told = refused.map_or(Json::Null, |refused| json!(refused.to_string()));
            assert_eq!(told, case["refused"][value_type.name()], "{} of {case}", value_type.name());
        }
    }
}

#[test]
fn positions_are_those_of_the_vectors() {
    let mut found = Found::default();
    for case in cases("positions") {
        let args = arguments(case);
        assert_eq!(json!(keys(&args[..], &mut found)), case["keys"], "{case}");
    }
}

fn tree(reply: &Json) -> Tree {
    match reply {
        Json::String(text) => Tree::Bulk(text.clone()),
        Json::Array(elements) => Tree::Array(elements.iter().map(tree).collect()),
        _ => match reply.get("map") {
            Some(pairs) => {
                let pairs = pairs.as_array().unwrap().iter();
                Tree::Map(pairs.map(|pair| (tree(&pair[0]), tree(&pair[1]))).collect())
            }
            None => Tree::Other,
        },
    }
}

#[test]
fn values_in_replies_are_those_of_the_vectors() {
    for case in cases("replies") {
        let args: Vec<String> =
            arguments(case).into_iter().map(|argument| String::from_utf8(argument).unwrap()).collect();
        assert_eq!(json!(values_in_reply(&args, &tree(&case["reply"]))), case["values"], "{case}");
    }
}
