//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/store_operations.rs"]
mod store_operations;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| store_operations::run(bytes));
