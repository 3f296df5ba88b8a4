//! memcached's protocols (text, meta and binary) as bytes to requests, and outcomes to the bytes of replies.
//!
//! A [`RequestParser`] turns the bytes of a connection into a [`Request`]: an [`Operation`], which is the
//! same whatever protocol it came in, and the [`ReplyForm`] that its outcome is written in. A server runs the
//! operation, and tells the form what came of it; what the client asked not to be told, the form leaves out.
//!
//! ```
//! use snugly_memcached::{Item, Limits, Operation, Parsed, RequestParser};
//!
//! let mut parser = RequestParser::default();
//! let mut replies = Vec::new();
//! let parsed = parser.parse(b"mg key f v\r\n", &Limits::default());
//! let Parsed::Request(request, taken) = parsed else { panic!() };
//! assert_eq!(taken, 12);
//! let Operation::Get(get) = request.operation else { panic!() };
//! assert_eq!(get.key.plain(), Some(&b"key"[..]));
//! request.form.begin_hit(&Item { flags: 7, len: 5, ..Item::default() }, &mut replies);
//! replies.extend_from_slice(b"value");
//! request.form.end_hit(&mut replies);
//! assert_eq!(replies, b"VA 5 f7\r\nvalue\r\n");
//! ```
//!
//! - `operation`: what a server is asked to do
//! - `request`: from bytes to operations, with a file for each protocol
//! - `reply`: from outcomes to bytes, with a file for each protocol
//! - [`client`]: the other direction, for what measures and tests a server
//! - `refusal`: what is wrong with a request, and memcached's words for it
//! - `key`, `exptime`, `line`, `opcode`: parts of requests that more than one of these read
//!
//! This crate knows the bytes of requests and replies, and the limits that a peer must keep to. It must not
//! know values beyond their length, what time it is, or how bytes travel: there is no I/O, no store and no
//! clock here.
//!
//! Accepted and refused input, and the words of the refusal, are those of memcached 1.6; its documentation is
//! `doc/protocol.txt` (text and meta) and `doc/protocol-binary.txt`. Different on purpose:
//!
//! - Bytes of a value are never read as commands: what follows a refused `set` is passed over as long as it
//!   is said to be, and after a value that ends wrongly the rest of its line as well. If the length is a
//!   number that no value can have, the connection is to be closed.
//! - A key in base64 and the same key as it is are one key; it is answered as it was asked for.
//! - A line of keys is bounded, see [`Limits::max_line`].
//! - Client flags beyond 32 bits and `gat` without a key are refused, and `c` of `ms` is answered only if it
//!   was stored.
//! - What is newer than 1.6.18 is there as well: the flags E and x, s of `ms`, N of an appending `ms`, modes
//!   in small letters; and the binary protocol's Verbosity, which memcached has documented only.
//! - Commands about memcached's own memory (`slabs`, `lru`, `lru_crawler`, `watch` and the like) are unknown.

pub mod client;
mod exptime;
mod key;
mod line;
mod opcode;
mod operation;
mod refusal;
mod reply;
mod request;

pub use exptime::{Expiry, Exptime};
pub use key::{Key, KeyBuffer, MAX_KEY};
pub use operation::{
    Arithmetic, Delete, Direction, Get, Initial, Operation, Recache, Refused, Request, Store, StoreMode,
};
pub use refusal::Refusal;
pub use reply::{Item, Outcome, ReplyForm};
pub use request::{Limits, Parsed, Protocol, RequestParser};
