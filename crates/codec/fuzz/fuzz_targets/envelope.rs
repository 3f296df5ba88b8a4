//! Feeds libFuzzer's bytes to the target's body, which the tests replay over its seeds.

#![no_main]

#[path = "../../tests/fuzzing/checks.rs"]
#[allow(dead_code, reason = "each target uses some of the checks")]
mod checks;
#[path = "../../tests/fuzzing/envelope.rs"]
mod envelope;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| envelope::run(bytes));
