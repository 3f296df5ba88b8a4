//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/cmsgpack.rs"]
mod cmsgpack;
#[path = "../../tests/fuzzing/state.rs"]
mod state;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cmsgpack::run(bytes));
