//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/list_operations.rs"]
mod list_operations;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| list_operations::run(bytes));
