//! The codec as its users see it: envelopes, records, dictionaries, and the rules that every language shares.

mod dictionary;
mod envelope;
mod lz4_dictionary;
mod policy;
mod roundtrip;
mod vectors;

#[path = "../values/rules.rs"]
mod rules;
#[path = "../values/mod.rs"]
mod values;
