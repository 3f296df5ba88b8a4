//! Reads the vectors of `spec/vectors`, and expands their rules for bytes.

#![allow(dead_code, reason = "each user needs some of these")]

use std::path::Path;

use serde_json::Value;

/// A file of `spec`.
pub fn specified(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// A file of `spec/vectors`.
pub fn vectors(file: &str) -> Value {
    specified(&format!("vectors/{file}"))
}

/// The cases of a list, of which there is at least one.
pub fn cases(vectors: &Value, list: &str) -> Vec<Value> {
    let cases = vectors[list].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

pub fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("no {field} in {case}"))
}

pub fn number(case: &Value, field: &str) -> usize {
    case[field].as_u64().unwrap_or_else(|| panic!("no {field} in {case}")) as usize
}

/// The bytes that a rule of the vectors stands for (`spec/vectors/README.md`).
pub fn expand(rule: &Value) -> Vec<u8> {
    let rule_is = |name: &str| rule.get(name).is_some();
    if rule_is("text") {
        text(rule, "text").into()
    } else if rule_is("hex") {
        let digits = text(rule, "hex");
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    } else if rule_is("repeat") {
        expand(&rule["repeat"]).into_iter().cycle().take(number(rule, "size")).collect()
    } else if rule_is("count") {
        let unit = text(rule, "count");
        (0..)
            .flat_map(|n: u64| unit.replace('#', &n.to_string()).into_bytes())
            .take(number(rule, "size"))
            .collect()
    } else if rule_is("noise") {
        let mut state = rule["noise"].as_u64().unwrap();
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..number(rule, "size")).map(next).collect()
    } else if rule_is("join") {
        rule["join"].as_array().unwrap().iter().flat_map(expand).collect()
    } else {
        panic!("no rule for bytes: {rule}")
    }
}
