//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/rdb_files.rs"]
mod rdb_files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rdb_files::run(bytes));
