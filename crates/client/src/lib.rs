//! Treatment of values by a client library, for languages that call Rust.
//!
//! - [`ValueCodec`]: values to envelopes and back under one configuration, with the dictionary and the method
//!   that a key's class has
//! - [`Learner`]: dictionaries and decisions from the values that a client writes
//! - [`Statistics`]: counters of one client, and those of the process
//! - [`WakeTimer`]: when to tell the keeper of the dictionaries that they are used
//!
//! It knows keys as bytes. It must not know commands, connections, threads, or objects of a language: work that may run on
//! another thread is split into what is begun, run and counted.

mod codec;
mod learner;
mod statistics;
mod wake;

pub use codec::{Encoded, Encoding, Method, Read, Reading, Run, Settings, Unread, ValueCodec, claimed_len};
pub use learner::{Decided, Explained, Learner, Lesson, Row};
pub use statistics::{Description, Operation, Own, Statistics, descriptions, process_statistics};
pub use wake::WakeTimer;
