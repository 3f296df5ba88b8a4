//! A connected stream of bytes of the system, over TCP or at a path of this machine, and the listener that accepts them.
//!
//! It knows system calls and addresses. It does not know what the bytes are, nor whether they are encrypted.

use std::fmt;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Address of one end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and port.
    Tcp(SocketAddr),
    /// Path of the server's end; clients have no address of their own.
    Unix(Arc<Path>),
}

impl Address {
    /// The host, if it is not this machine's own file system.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Address::Tcp(address) => Some(address.ip()),
            Address::Unix(_) => None,
        }
    }

    /// Returns whether this end is on the same machine.
    pub fn is_local(&self) -> bool {
        self.ip().is_none_or(|ip| ip.to_canonical().is_loopback())
    }
}

/// As Valkey writes it: a path has the port 0.
impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(formatter),
            Address::Unix(path) => write!(formatter, "{}:0", path.display()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

/// A socket that listens.
#[derive(Debug)]
pub enum Listening {
    /// At a host and port.
    Tcp(std::net::TcpListener),
    /// At a path.
    Unix(StdUnixListener, Arc<Path>),
}

impl Listening {
    /// The listener at a host and port.
    pub fn over_tcp(self) -> Option<std::net::TcpListener> {
        match self {
            Listening::Tcp(listener) => Some(listener),
            Listening::Unix(..) => None,
        }
    }

    /// The address that clients connect to.
    ///
    /// # Errors
    /// The system's error.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Listening::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Listening::Unix(_, path) => Ok(Address::Unix(path.clone())),
        }
    }
}

/// A listener that an event loop watches.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Arc<Path>),
}

impl Listener {
    /// # Errors
    /// If the event loop cannot watch it.
    pub(crate) fn new(listening: Listening) -> io::Result<Listener> {
        match listening {
            Listening::Tcp(listener) => TcpListener::from_std(listener).map(Listener::Tcp),
            Listening::Unix(listener, path) => {
                UnixListener::from_std(listener).map(|listener| Listener::Unix(listener, path))
            }
        }
    }

    /// Waits for a connection, and gives it with the address of the client.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, Address)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((Stream::Tcp(stream), Address::Tcp(address)))
            }
            Listener::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), Address::Unix(path.clone())))
            }
        }
    }
}

/// A connected stream that an event loop watches.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connected stream on its way from one event loop to another.
pub(crate) enum Unwatched {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Unwatched {
    pub(crate) fn watch(self) -> io::Result<Stream> {
        match self {
            Unwatched::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            Unwatched::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        }
    }
}

/// The same call on whichever stream it is.
macro_rules! either {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($inner) => $call,
            Stream::Unix($inner) => $call,
        }
    };
}

impl Stream {
    pub(crate) fn unwatch(self) -> io::Result<Unwatched> {
        match self {
            Stream::Tcp(stream) => stream.into_std().map(Unwatched::Tcp),
            Stream::Unix(stream) => stream.into_std().map(Unwatched::Unix),
        }
    }

    /// Sends replies without waiting for more of them.
    pub(crate) fn set_nodelay(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nodelay(true),
            Stream::Unix(_) => Ok(()),
        }
    }

    /// The host and port that the client has connected to; `None` is a path.
    pub(crate) fn local_address(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().map(Some),
            Stream::Unix(_) => Ok(None),
        }
    }

    pub(crate) fn keep_alive(&self, period: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                let keepalive = TcpKeepalive::new().with_time(period).with_interval(period / 3);
                SockRef::from(stream).set_tcp_keepalive(&keepalive)
            }
            Stream::Unix(_) => Ok(()),
        }
    }

    pub(crate) fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        let descriptor = either!(self, stream => stream.as_fd());
        SockRef::from(&descriptor).shutdown(how)
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => stream.try_read(buffer))
    }

    pub(crate) fn try_read_buf(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        either!(self, stream => stream.try_read_buf(buffer))
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, stream => stream.try_write(bytes))
    }

    pub(crate) fn try_write_vectored(&self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        either!(self, stream => stream.try_write_vectored(parts))
    }

    /// Tells the event loop that a read which filled less than its buffer has emptied the socket, so that the
    /// next turn saves a system call that would only find it empty.
    pub(crate) fn mark_drained(&self) {
        let empty = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        let _ = either!(self, stream => stream.try_io(Interest::READABLE, empty));
    }

    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read_ready(context))
    }

    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_write_ready(context))
    }
}
