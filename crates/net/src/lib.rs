//! Sockets of a server: it listens, spreads connections over threads, reads, writes, waits and ends them, for any
//! protocol. The meaning of the bytes is for a [`Service`].
//!
//! - `listener`: accepts connections and hands them to the threads
//! - `worker`: one thread that serves connections
//! - `connection`: one client's bytes in and out, turn by turn
//! - `service`: what a protocol is asked
//! - `transport`: a connection's bytes, inside TLS where there is some
//! - `stream`: sockets of the system, over TCP or at a path
//! - `socket`: a connection's socket and its messages, as any thread may use them
//! - `outbox`: messages for a connection that no request of its own asked for
//! - `slots`: places for connections, counted exactly
//!
//! It knows no protocol, no store, no settings and no clients.

mod connection;
mod listener;
mod outbox;
mod service;
mod slots;
mod socket;
mod stream;
mod transport;
mod worker;

pub use connection::Connection;
pub use listener::{Endpoint, TlsSettings, accept, adopt, listen, listen_at_path};
pub use outbox::{CAPACITY, Full, Outbox};
pub use service::{Next, Service, Step};
pub use slots::{Slot, Slots};
pub use socket::{READ_BUFFER, Socket};
pub use stream::{Address, Listening};
pub use worker::{Assignments, WorkerHandle, Workers, channel, run};
