//! Opening the sockets that a server listens on, or taking those that whoever started it has opened already.
//!
//! It knows settings and the system's errors, and gives advice on them. It does not know who accepts connections.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use snugly_net::{Endpoint, Listening, TlsSettings};
use thiserror::Error;

use crate::listeners::{Listener, Protocol};
use crate::settings::Configuration;

/// Reason why a server does not listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// An address could not be listened on.
    #[error("cannot listen on {address}: {reason}{hint}")]
    Address {
        /// The address, as it was given.
        address: String,
        /// The system's error.
        reason: io::Error,
        /// Advice on the remedy.
        hint: String,
    },
    /// A socket has no address.
    #[error("a socket has no address to tell: {0}")]
    Unknown(#[from] io::Error),
    /// Clients have nowhere to connect to.
    #[error("nothing is listened on: give a --port, a --tls-port or a --unix-socket")]
    Nowhere,
}

/// The purpose of a socket, by whom it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Clients that speak RESP.
    Resp,
    /// Clients that speak RESP inside TLS.
    Tls,
    /// Clients that speak memcached's protocols.
    Memcached,
    /// Clients that speak memcached's protocols inside TLS.
    MemcachedTls,
    /// Those who watch the server, over HTTP.
    Admin,
}

impl Purpose {
    /// The protocol of clients there, and whether it is inside TLS; none if it is for no clients.
    fn of_clients(self) -> Option<(Protocol, bool)> {
        match self {
            Purpose::Resp => Some((Protocol::Resp, false)),
            Purpose::Tls => Some((Protocol::Resp, true)),
            Purpose::Memcached => Some((Protocol::Memcached, false)),
            Purpose::MemcachedTls => Some((Protocol::Memcached, true)),
            Purpose::Admin => None,
        }
    }
}

/// A listening socket that whoever started the process has opened.
#[derive(Debug)]
pub struct PassedSocket {
    /// The purpose that it was opened for.
    pub purpose: Purpose,
    /// The socket.
    pub listening: Listening,
}

/// A port that clients connect to.
struct Port {
    /// The flag that gives it.
    flag: &'static str,
    purpose: Purpose,
    number: Option<u16>,
}

struct ForClients {
    listening: Listening,
    purpose: Purpose,
    is_passed: bool,
}

/// Everything that a server listens on.
pub(crate) struct Sockets {
    clients: Vec<ForClients>,
    /// Those of the admin endpoint.
    pub(crate) admin: Vec<TcpListener>,
}

impl Sockets {
    /// Takes the sockets that are passed, and opens what the settings say for other purposes.
    pub(crate) fn open(
        configuration: &Configuration,
        passed: Vec<PassedSocket>,
    ) -> Result<Sockets, ListenError> {
        let (passed, for_admin): (Vec<_>, Vec<_>) =
            passed.into_iter().partition(|socket| socket.purpose.of_clients().is_some());
        let mut clients: Vec<ForClients> = passed
            .into_iter()
            .map(|PassedSocket { purpose, listening }| ForClients { listening, purpose, is_passed: true })
            .collect();
        for Port { flag, purpose, number } in ports(configuration) {
            let is_passed = clients.iter().any(|socket| socket.is_passed && socket.purpose == purpose);
            let Some(number) = number.filter(|_| !is_passed) else { continue };
            for listening in listen(configuration, number, flag)? {
                clients.push(ForClients { listening, purpose, is_passed: false });
            }
        }
        if !configuration.unix_socket.is_empty() {
            let path = Path::new(&configuration.unix_socket);
            let listening = snugly_net::listen_at_path(path, configuration.unix_socket_permissions)
                .map_err(|reason| refused_path(path, reason))?;
            clients.push(ForClients { listening, purpose: Purpose::Resp, is_passed: false });
        }
        if clients.is_empty() {
            return Err(ListenError::Nowhere);
        }
        let admin = match for_admin.is_empty() {
            true => listen_for_admin(configuration)?,
            false => for_admin.into_iter().map(|socket| socket.listening).collect(),
        };
        Ok(Sockets { clients, admin: admin.into_iter().filter_map(Listening::over_tcp).collect() })
    }

    /// Returns whether clients connect inside TLS.
    pub(crate) fn need_tls(&self) -> bool {
        self.clients.iter().any(|socket| socket.purpose.of_clients().is_some_and(|(_, is_tls)| is_tls))
    }

    /// Returns the sockets for clients, described and to accept from, each at its number.
    pub(crate) fn into_endpoints(
        self,
        tls: Option<&Arc<TlsSettings>>,
    ) -> Result<(Vec<Listener>, Vec<Endpoint>), ListenError> {
        let (mut listeners, mut endpoints) = (Vec::new(), Vec::new());
        for ForClients { listening, purpose, is_passed } in self.clients {
            let Some((protocol, is_tls)) = purpose.of_clients() else { continue };
            let number = listeners.len();
            listeners.push(Listener { protocol, is_tls, is_passed, address: listening.address()? });
            endpoints.push(Endpoint { number, listening, tls: tls.filter(|_| is_tls).cloned() });
        }
        Ok((listeners, endpoints))
    }
}

fn ports(configuration: &Configuration) -> [Port; 4] {
    let Configuration { port, tls_port, memcached_port, memcached_tls_port, .. } = *configuration;
    [
        Port { flag: "--port", purpose: Purpose::Resp, number: port },
        Port { flag: "--tls-port", purpose: Purpose::Tls, number: tls_port },
        Port { flag: "--memcached-port", purpose: Purpose::Memcached, number: memcached_port },
        Port { flag: "--memcached-tls-port", purpose: Purpose::MemcachedTls, number: memcached_tls_port },
    ]
}

fn refused_path(path: &Path, reason: io::Error) -> ListenError {
    let hint = match reason.kind() {
        io::ErrorKind::AddrInUse => {
            "; is another server running there? Choose another path with --unix-socket"
        }
        io::ErrorKind::AlreadyExists => "; something that is no socket is there: choose another path",
        _ => "",
    };
    ListenError::Address { address: path.display().to_string(), reason, hint: hint.to_owned() }
}

/// Listens on a port, which `flag` gives, of all addresses.
fn listen(configuration: &Configuration, port: u16, flag: &str) -> Result<Vec<Listening>, ListenError> {
    let mut listeners = Vec::new();
    for host in configuration.bind.split([' ', ',']).filter(|host| !host.is_empty()) {
        let found = (host, port).to_socket_addrs();
        listeners.extend(listen_on_all(&format!("{host}:{port}"), found, flag)?);
    }
    Ok(listeners)
}

fn listen_for_admin(configuration: &Configuration) -> Result<Vec<Listening>, ListenError> {
    match configuration.admin_address.as_str() {
        "" => Ok(Vec::new()),
        address => listen_on_all(address, address.to_socket_addrs(), "--admin-address"),
    }
}

/// Listens on what was found for an address that `flag` gives.
fn listen_on_all(
    address: &str,
    found: io::Result<impl Iterator<Item = SocketAddr>>,
    flag: &str,
) -> Result<Vec<Listening>, ListenError> {
    let listeners = found.and_then(|found| found.map(snugly_net::listen).collect());
    listeners.map_err(|reason| ListenError::Address {
        hint: match reason.kind() {
            io::ErrorKind::AddrInUse => {
                format!("; is another server running there? Choose another port with {flag}")
            }
            io::ErrorKind::PermissionDenied => {
                format!("; ports below 1024 are for root, choose another with {flag}")
            }
            _ => String::new(),
        },
        address: address.to_owned(),
        reason,
    })
}
