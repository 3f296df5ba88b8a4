//! A connection's socket, and the messages that it is to be sent, as any thread may use them.

use std::io;
use std::net::Shutdown;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;

use crate::outbox::Outbox;
use crate::stream::{Address, Stream};

/// Bytes that a read takes at most; requests that are longer continue in a buffer of their connection's own.
pub const READ_BUFFER: usize = 64 << 10;

/// A connection's socket. Only the connection's own thread reads and writes; others send messages, and end it.
pub struct Socket {
    stream: Stream,
    address: Address,
    local_address: Address,
    listener: usize,
    /// Messages that answer none of the client's requests.
    pub outbox: Outbox,
}

impl Socket {
    /// A connected socket that no listener of a server has accepted.
    ///
    /// # Errors
    /// If the connection has ended already.
    pub fn new(stream: TcpStream) -> io::Result<Socket> {
        let address = stream.peer_addr()?;
        Socket::accepted(Stream::Tcp(stream), Address::Tcp(address), 0)
    }

    /// A connected socket, with the address of its client and the number of the listener that has accepted it.
    ///
    /// # Errors
    /// If the connection has ended already.
    pub(crate) fn accepted(stream: Stream, address: Address, listener: usize) -> io::Result<Socket> {
        let local_address = stream.local_address()?.map_or_else(|| address.clone(), Address::Tcp);
        stream.set_nodelay()?;
        Ok(Socket { stream, address, local_address, listener, outbox: Outbox::default() })
    }

    /// Address of the client.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Address that the client has connected to.
    pub fn local_address(&self) -> &Address {
        &self.local_address
    }

    /// Number of the listener that has accepted the connection.
    pub fn listener(&self) -> usize {
        self.listener
    }

    /// Makes the system check after `period`, and then three times as often, whether the client is still
    /// there. Does nothing for clients on the same machine that use a path.
    ///
    /// # Errors
    /// Errors of the system if the connection has ended already.
    pub fn keep_alive(&self, period: Duration) -> io::Result<()> {
        self.stream.keep_alive(period)
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
        let _ = self.stream.shut_down(how);
    }

    /// Reads into a buffer; 0 is the end of the input.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = self.stream.try_read(buffer)?;
        if received < buffer.len() {
            self.stream.mark_drained();
        }
        Ok(received)
    }

    /// Reads into the room behind a buffer's bytes; 0 is the end of the input.
    pub(crate) fn receive_more(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let received = self.stream.try_read_buf(buffer)?;
        if buffer.len() < buffer.capacity() {
            self.stream.mark_drained();
        }
        Ok(received)
    }

    /// Sends what the socket takes at once; returns the number of bytes.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.write(&bytes[sent..]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Sends in one go what the socket takes at once; `WouldBlock` is nothing.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.try_write(bytes)
    }

    /// As [`Socket::write`], of bytes in several places.
    pub(crate) fn write_vectored(&self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.stream.try_write_vectored(parts)
    }

    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_readable(context)
    }

    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_writable(context)
    }
}
