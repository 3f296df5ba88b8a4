//! The protocols that clients speak. Each is a [`snugly_net::Service`]: it finds requests in bytes, runs the operations
//! that they ask for, and writes the replies. Everything else about a connection is for `snugly_net`.
//!
//! - `resp`: the protocol of Redis and Valkey

mod resp;

pub(crate) use resp::Resp;
