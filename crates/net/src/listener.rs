//! Listening for connections, and handing them to the threads that serve them.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use parking_lot::RwLock;
use rustls::ServerConfig;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tracing::warn;

use crate::slots::Slot;
use crate::stream::{Address, Listener, Listening};
use crate::worker::{Accepted, Workers};

/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// Pause in which nothing is accepted after the system could not.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Listens on an address, and of IPv6 on nothing but that.
///
/// # Errors
/// The system's error.
pub fn listen(address: SocketAddr) -> io::Result<Listening> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(Listening::Tcp(socket.into()))
}

/// Listens at a path, in place of a server that has ended and left its socket there. `mode` has the permissions of the
/// socket, those of who may connect; without it the process's mask decides.
///
/// # Errors
/// The system's error; `AddrInUse` if a server listens there, and `AlreadyExists` if something else than a socket is there.
pub fn listen_at_path(path: &Path, mode: Option<u32>) -> io::Result<Listening> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(io::ErrorKind::AlreadyExists.into()),
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(io::ErrorKind::AddrInUse.into()),
        Ok(_) => fs::remove_file(path)?,
        Err(_) => {}
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    if let Some(mode) = mode {
        // Before it listens, so that nobody connects who may not.
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    socket.listen(BACKLOG)?;
    Ok(Listening::Unix(socket.into(), path.into()))
}

/// Takes a socket that listens already, opened by somebody else.
///
/// # Errors
/// The system's error; `InvalidInput` if it is no listening socket of TCP or at a path.
pub fn adopt(socket: OwnedFd) -> io::Result<Listening> {
    let socket = Socket::from(socket);
    if socket.r#type()? != Type::STREAM || !socket.is_listener()? {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no listening socket"));
    }
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    match address.as_pathname() {
        _ if address.as_socket().is_some() => Ok(Listening::Tcp(socket.into())),
        Some(path) => Ok(Listening::Unix(socket.into(), path.into())),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "it has neither a port nor a path")),
    }
}

/// TLS for the connections that are accepted from now on.
pub struct TlsSettings(RwLock<Arc<ServerConfig>>);

impl TlsSettings {
    /// These settings until they are replaced.
    pub fn new(config: Arc<ServerConfig>) -> TlsSettings {
        TlsSettings(RwLock::new(config))
    }

    /// Uses other certificates, keys and rules for connections that are accepted from now on.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.write() = config;
    }

    fn current(&self) -> Arc<ServerConfig> {
        self.0.read().clone()
    }
}

/// A listening socket, and what is to become of its connections.
pub struct Endpoint {
    /// Number that a connection's [`Socket`](crate::Socket) tells the service.
    pub number: usize,
    /// The socket.
    pub listening: Listening,
    /// Encryption of its connections.
    pub tls: Option<Arc<TlsSettings>>,
}

/// Accepts connections for ever, each for the worker whose turn it is. `admit` gives a connection from an address its
/// place, or says what it is sent before it is closed; with TLS it is just closed.
///
/// # Panics
/// If the event loop cannot watch the socket.
pub async fn accept(
    endpoint: Endpoint,
    workers: Arc<Workers>,
    admit: impl Fn(&Address) -> Result<Slot, &'static [u8]>,
) {
    let Endpoint { number, listening, tls } = endpoint;
    let listener = Listener::new(listening).expect("a listening socket can be watched");
    loop {
        match listener.accept().await {
            Ok((stream, address)) => match admit(&address) {
                Ok(slot) => {
                    // The socket moves from the listener's event loop to its worker's.
                    if let Ok(stream) = stream.unwatch() {
                        let tls = tls.as_ref().map(|tls| tls.current());
                        workers.next().serve(Accepted { stream, address, listener: number, tls }, slot);
                    }
                }
                Err(_) if tls.is_some() => {}
                Err(refusal) => {
                    // The refusal is a courtesy; a client that is gone already misses nothing.
                    let _ = stream.try_write(refusal);
                }
            },
            Err(error) => {
                warn!(%error, "cannot accept a connection; if files ran out, raise the limit (ulimit -n)");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }
}
