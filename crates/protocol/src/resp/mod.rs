//! RESP2 and RESP3, the protocol of Redis and Valkey
//! (<https://valkey.io/topics/protocol/>), and inline commands as people type them into a terminal.
//!
//! - A server reads with [`RequestParser`] and answers through [`ReplyBuffer`]; [`RequestQueue`] keeps requests for later.
//! - A client writes with [`encode_command`] and reads with [`ReplyParser`]; or finds whole replies with a
//!   [`ReplyScanner`], to read them token by token with [`next_token`].
//!
//! Accepted and refused input, and the words of the refusal, are those of Valkey 9.1.

mod args;
mod client;
mod error;
mod inline;
mod number;
mod queue;
mod reply;
mod request;
mod scanner;

pub use args::{Args, ArgsBuffer, ArgsIter};
pub use client::{
    ReplyLimits, ReplyParser, Token, Value, encode_array, encode_bulk, encode_command, next_token,
};
pub use error::ProtocolError;
pub use number::{format_double, parse_integer};
pub use queue::RequestQueue;
pub use reply::{Protocol, ReplyBuffer};
pub use request::{Limits, RequestParser};
pub use scanner::ReplyScanner;

/// Appends a header line: a type byte and a number.
#[inline]
fn write_head(out: &mut Vec<u8>, kind: u8, number: i64) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    out.reserve(digits.len() + 3);
    out.push(kind);
    out.extend_from_slice(digits);
    out.extend_from_slice(b"\r\n");
}
