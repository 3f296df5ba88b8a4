//! Sockets that the server listens on for clients: what is spoken there, and inside what.
//!
//! It knows which there are. It does not know who accepts connections, nor what a protocol is.

use std::net::SocketAddr;
use std::sync::Arc;

use snugly_net::{Address, TlsSettings};

/// The protocols of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP, and memcached's binary protocol where the settings say so.
    Resp,
    /// Memcached's protocols.
    Memcached,
}

/// A socket that clients connect to.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Protocols of clients there.
    pub protocol: Protocol,
    /// Whether it is inside TLS.
    pub is_tls: bool,
    /// Whether somebody else opened it, and may pass it to the next process.
    pub is_passed: bool,
    /// The address that clients connect to.
    pub address: Address,
}

impl Listener {
    /// The TCP port, if it has one.
    pub fn port(&self) -> Option<u16> {
        match &self.address {
            Address::Tcp(address) => Some(address.port()),
            Address::Unix(_) => None,
        }
    }
}

/// Everything that the server listens on.
pub(crate) struct Listeners {
    /// Sockets for clients, each at its number.
    pub(crate) clients: Vec<Listener>,
    /// Addresses that answer HTTP for monitoring.
    pub(crate) admin: Vec<SocketAddr>,
    /// Encryption of those listeners that have it.
    pub(crate) tls: Option<Arc<TlsSettings>>,
}

/// The first TCP port of those that listeners like this have.
pub(crate) fn first_port(listeners: &[Listener], is_like: impl Fn(&Listener) -> bool) -> Option<u16> {
    listeners.iter().filter(|listener| is_like(listener)).find_map(Listener::port)
}
