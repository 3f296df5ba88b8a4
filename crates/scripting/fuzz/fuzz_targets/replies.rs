//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/replies.rs"]
mod replies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| replies::run(bytes));
