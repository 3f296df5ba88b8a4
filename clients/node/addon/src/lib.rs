//! The native half of the Node.js package: envelopes, the command table, dictionaries and learning for JavaScript's
//! objects.
//!
//! It knows strings, Buffers and promises of JavaScript. It must not know clients, connections or timers, which are the
//! TypeScript around it; the rules are those of the crates below. What takes long runs on the worker pool of libuv.

mod codec;
mod commands;
mod dictionaries;
mod learner;
mod manager;
mod words;
