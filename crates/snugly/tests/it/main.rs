//! The program's tools, run as a person runs them.

mod bench;
mod decode;

#[path = "../support/mod.rs"]
mod support;
