//! The command table, beside real servers and the specification.

mod valkey;
mod vectors;

#[path = "../reference/mod.rs"]
mod reference;
#[path = "../../../protocol/tests/servers/mod.rs"]
mod servers;
