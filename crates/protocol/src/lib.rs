//! Wire protocols: bytes to requests and replies to bytes, and the client's direction of both; values as one server gives
//! them to another, alone or in files; the patterns that both sides match keys with; and how bytes are shown to people.
//!
//! This crate knows how requests, replies and dumped values look as bytes and which limits a peer must keep to. It must
//! not know what a command means, where values live, or how bytes travel: there is no I/O, no store and no async here.
//! What is too large for memory is read from and written to what the caller has opened.

pub mod escape;
pub mod glob;
pub mod rdb;
pub mod resp;
