//! The server: it joins the protocol to the store.
//!
//! - `settings`: one table of settings behind flags, environment, CONFIG and the banner
//! - `server`: what all threads share; listening, starting, stopping
//! - `worker`: one thread, its runtime, its session of the store and its buffers
//! - `connection`: from the bytes of one client to commands and back
//! - `pipeline`: requests that arrived together, run together
//! - `replies`: what is on its way to a client
//! - `clients`: who is connected; `client_memory`: what they may hold
//! - `interest`: who is to hear of changed keys
//! - `outbox`: messages for a connection that no request of its own asked for
//! - `pause`: whether requests have to wait
//! - `commands`: the command table; a command is one row and one function
//! - `learning`: the thread that learns dictionaries and encodes older values anew
//! - `admin`: HTTP for those who watch the server
//! - `figure`: numbers to show, a row each
//! - `info`: the sections of INFO
//! - `metrics`: the same numbers for Prometheus
//! - `memory`, `samples`: what memory is used for; what is known by looking again and again
//! - `connection_counters`: what happened to connections
//! - `freeing`: memory that is given back in the background
//! - `counter`: numbers that one thread counts up
//! - `slots`: places for connections, counted exactly
//! - `threads`: how threads start, and what happens if one ends that must not
//! - `access`: who may use what is protected
//! - `log_limit`: log lines that clients can cause at will
//! - `command_log`, `latency`, `monitors`: remarkable commands, slow events, and the stream of everything that runs
//!
//! It knows commands and clients. How values are kept is the store's business, how replies look as bytes the
//! protocol's. It starts no process-wide machinery (allocator, logging, signals): that is the program's.

mod access;
mod admin;
mod client_memory;
mod clients;
mod command_log;
mod commands;
mod connection;
mod connection_counters;
mod counter;
mod figure;
mod freeing;
mod info;
mod interest;
mod latency;
mod learning;
mod log_limit;
mod long_double;
mod memory;
mod metrics;
mod monitors;
mod outbox;
mod pause;
mod pipeline;
mod rdb;
mod replies;
mod samples;
pub mod server;
pub mod settings;
mod slots;
mod threads;
mod worker;

pub use commands::command_names;
pub use info::learned_fields;
pub use metrics::{Described, metrics};
pub use rdb::LoadError;
pub use server::{Allocator, AllocatorStats, Server, StartError};
pub use settings::{Configuration, LogSettings, SETTINGS, Setting};
pub use snugly_store::Durability;
