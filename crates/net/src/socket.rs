//! A connection's socket, and the messages that it is to be sent, as any thread may use them.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::outbox::Outbox;

/// A connection's socket. Only the connection's own thread reads and writes; others send messages, and end it.
pub struct Socket {
    stream: TcpStream,
    address: SocketAddr,
    local_address: SocketAddr,
    /// Messages that answer none of the client's requests.
    pub outbox: Outbox,
}

impl Socket {
    /// A connected socket.
    ///
    /// # Errors
    /// If the connection has ended already.
    pub fn new(stream: TcpStream) -> io::Result<Socket> {
        let (address, local_address) = (stream.peer_addr()?, stream.local_addr()?);
        stream.set_nodelay(true)?;
        Ok(Socket { stream, address, local_address, outbox: Outbox::default() })
    }

    /// Address of the client.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address that the client has connected to.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Makes the system check after `period`, and then three times as often, whether the client is still
    /// there.
    ///
    /// # Errors
    /// Errors of the system if the connection has ended already.
    pub fn keep_alive(&self, period: Duration) -> io::Result<()> {
        let keepalive = TcpKeepalive::new().with_time(period).with_interval(period / 3);
        SockRef::from(&self.stream).set_tcp_keepalive(&keepalive)
    }

    /// Ends the connection: its thread sees the end of the input, and sends nothing more.
    pub fn kill(&self) {
        self.outbox.close();
        self.shut_down(Shutdown::Both);
    }

    /// Ends the connection once the requests that have arrived are answered.
    pub fn stop_reading(&self) {
        self.shut_down(Shutdown::Read);
    }

    /// Tells the client that it is sent no more.
    pub(crate) fn stop_writing(&self) {
        self.shut_down(Shutdown::Write);
    }

    fn shut_down(&self, how: Shutdown) {
        // An error means that it has ended already.
        let _ = SockRef::from(&self.stream).shutdown(how);
    }

    /// Reads into a buffer; 0 is the end of the input.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = self.stream.try_read(buffer)?;
        if received < buffer.len() {
            self.mark_drained();
        }
        Ok(received)
    }

    /// Reads into the room behind a buffer's bytes; 0 is the end of the input.
    pub(crate) fn receive_more(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let received = self.stream.try_read_buf(buffer)?;
        if buffer.len() < buffer.capacity() {
            self.mark_drained();
        }
        Ok(received)
    }

    /// Tells the event loop that a read which filled less than its buffer has emptied the socket, so that the
    /// next turn saves a system call that would only find it empty.
    fn mark_drained(&self) {
        let _ = self.stream.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }

    /// Sends what the socket takes at once; returns the number of bytes.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.try_write(&bytes[sent..]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_read_ready(context)
    }

    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_write_ready(context)
    }
}
