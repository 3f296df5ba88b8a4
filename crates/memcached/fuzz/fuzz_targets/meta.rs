//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/lines.rs"]
mod lines;
#[path = "../../tests/fuzzing/meta.rs"]
mod meta;
#[path = "../../tests/fuzzing/requests.rs"]
mod requests;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| meta::run(bytes));
