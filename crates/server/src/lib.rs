//! The server: it joins the protocol to the store.
//!
//! - `lifecycle`: listen, start, serve, stop
//! - `listening`: opens the sockets for clients, or takes those that are passed
//! - `dialects`: the protocols of clients, from bytes to commands and back
//! - `commands`: the command table; a command is one row and one function
//! - `replication`: the thread that follows another server
//! - `rdb`: files that people move in and out with
//! - `dump_folder`: where clients may have files written
//! - `learning`: the thread that learns dictionaries and encodes older values anew
//! - `admin`: HTTP for those who watch the server
//! - `metrics`: its numbers for Prometheus; `info`: the sections of INFO; `stat`: numbers to show, a row each
//! - `threads`: how threads start, and what happens if one ends that must not
//! - `client_memory`: ends connections that hold too much
//! - `state`: what all threads share
//!
//! The parts of the state do not know their users:
//!
//! - `settings`: one table of settings behind flags, environment, CONFIG and the banner
//! - `accounts`: users, and what was denied to them
//! - `tls`: certificates and keys for clients; `listeners`, `places`: where they connect, and how many may
//! - `clients`: who is connected
//! - `channels`: who listens to which channels; `subscriptions`: what one client listens to
//! - `replies`: what is on its way to a client
//! - `key_events`: publishing what happens to keys; `event_classes`: which of it
//! - `key_watch`: who is to hear of changed keys; `pause`: whether requests have to wait
//! - `counters`: what is counted; `samples`: what is known by looking again and again
//! - `memory`, `allocator`: what memory is used for; `freeing`: memory that is given back in the background
//! - `background`: what background work has taken
//! - `delayed_flush`: a flush that is to happen later
//! - `replica`: which server is followed, and how far; `turns`: when everybody has seen a change
//! - `saves`, `backups`: how saves of RDB files and backups of the store went
//! - `command_log`, `latency`, `monitors`: remarkable commands, slow events, and the stream of everything that runs
//! - `log_limit`: log lines that clients can cause at will
//!
//! A module uses those below it and none above: `tests/modules_test.py` looks.
//!
//! It knows commands and clients. The storage of values is the store's business, the bytes of replies the protocol's,
//! and their transport that of `snugly_net`. It starts no process-wide machinery (allocator, logging, signals): that is
//! the program's.

mod accounts;
mod admin;
mod allocator;
mod background;
mod backups;
mod channels;
mod client_memory;
mod clients;
mod command_log;
mod commands;
mod counters;
mod delayed_flush;
mod dialects;
mod dump_folder;
mod event_classes;
mod freeing;
mod info;
mod key_events;
mod key_watch;
mod latency;
mod learning;
mod lifecycle;
mod listeners;
mod listening;
mod log_limit;
mod long_double;
mod memory;
mod metrics;
mod monitors;
mod pause;
mod places;
mod rdb;
mod replica;
mod replication;
mod replies;
mod samples;
mod saves;
mod scripts;
pub mod settings;
mod stat;
mod state;
mod subscriptions;
mod threads;
mod tls;
mod turns;

pub use allocator::{Allocator, AllocatorStats};
pub use commands::{UsersError, command_names};
pub use event_classes::EventClasses;
pub use info::learned_fields;
pub use lifecycle::{Running, StartError};
pub use listeners::{Listener, Protocol};
pub use listening::{ListenError, PassedSocket, Purpose};
pub use metrics::{Described, metrics};
pub use rdb::{KeepError, LoadError};
pub use settings::{
    Configuration, FORMER_NAMES, Given, LogFormat, LogSettings, Origin, Reload, SETTINGS, SecretError,
    Setting, SettingsError, Sources, advice_on, environment, file_line, nearest, read_secret,
};
pub use snugly_net::{Address, Listening, adopt};
pub use snugly_store::Durability;
pub use state::{ChangeError, Server};
pub use threads::SystemError;
pub use tls::TlsError;
