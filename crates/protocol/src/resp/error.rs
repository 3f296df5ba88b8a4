//! Errors in the bytes of a peer.

use std::fmt;

/// Bytes that are not the protocol, or that claim more than the limits allow.
///
/// The stream cannot be resynchronised: the connection is to be closed, by a server after it has sent
/// [`ReplyBuffer::protocol_error`](super::ReplyBuffer::protocol_error). `Display` gives Valkey 9.1's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments (`*...`) is no integer or above [`Limits::max_args`](super::Limits::max_args).
    InvalidMultibulkLength,
    /// The length of an argument (`$...`) is no integer, negative, or above the limit.
    InvalidBulkLength,
    /// An argument starts with this byte instead of `$`.
    ExpectedBulk(u8),
    /// An argument that is not followed by CR LF.
    InvalidCrlf,
    /// An inline request longer than [`Limits::max_inline`](super::Limits::max_inline).
    InlineTooBig,
    /// A line that should hold the number of arguments and does not end.
    MultibulkCountTooBig,
    /// A line that should hold the length of an argument and does not end.
    BulkCountTooBig,
    /// A quote that an inline request opens and does not close.
    UnbalancedQuotes,
    /// More than 10 arguments before the client has authenticated.
    UnauthenticatedMultibulk,
    /// An argument of more than 16 KiB before the client has authenticated.
    UnauthenticatedBulk,
    /// A request larger in all than [`Limits::max_request`](super::Limits::max_request).
    RequestTooBig {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A reply that is not RESP.
    InvalidReply(&'static str),
    /// A reply beyond [`ReplyLimits`](super::ReplyLimits).
    ReplyTooBig(&'static str),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match *self {
            Self::InvalidMultibulkLength => f.write_str("invalid multibulk length"),
            Self::InvalidBulkLength => f.write_str("invalid bulk length"),
            Self::ExpectedBulk(byte) => {
                write!(f, "expected '$', got '{}'", char::from(byte).escape_default())
            }
            Self::InvalidCrlf => f.write_str("invalid CRLF in request"),
            Self::InlineTooBig => f.write_str("too big inline request"),
            Self::MultibulkCountTooBig => f.write_str("too big mbulk count string"),
            Self::BulkCountTooBig => f.write_str("too big bulk count string"),
            Self::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            Self::UnauthenticatedMultibulk => f.write_str("unauthenticated multibulk length"),
            Self::UnauthenticatedBulk => f.write_str("unauthenticated bulk length"),
            Self::RequestTooBig { limit } => {
                write!(f, "request larger than {limit} bytes, raise client-query-buffer-limit to allow it")
            }
            Self::InvalidReply(what) => write!(f, "invalid reply: {what}"),
            Self::ReplyTooBig(what) => write!(f, "reply too big: {what}"),
        }
    }
}

impl std::error::Error for ProtocolError {}
