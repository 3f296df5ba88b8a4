//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/catalogue.rs"]
mod catalogue;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| catalogue::run(bytes));
