//! Whatever the rows of a store hold, reading them is an error or gives what was written, and nothing else.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| snugly_store::parse_anything(bytes));
