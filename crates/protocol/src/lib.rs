//! Wire protocols: bytes to requests and replies to bytes, and the client's direction of both; values as one server gives
//! them to another, alone or in files; and how bytes are shown to people.
//!
//! This crate knows the bytes of requests, replies and dumped values, and the limits that a peer must keep to. It must
//! not know the meaning of a command, the place of values, or the transport of bytes: there is no I/O, no store and no
//! async here. Data too large for memory is read from and written to files that the caller has opened.

pub mod escape;
pub mod rdb;
pub mod resp;
