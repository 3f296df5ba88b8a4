//! Requests, replies and RDB files, beside real servers.

mod rdb;
mod valkey;

#[path = "../servers/mod.rs"]
mod servers;
