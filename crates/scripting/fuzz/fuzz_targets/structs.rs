//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/state.rs"]
mod state;
#[path = "../../tests/fuzzing/structs.rs"]
mod structs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| structs::run(bytes));
