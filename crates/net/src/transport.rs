//! The bytes of one connection, as its own thread reads and writes them: as they are, or inside TLS (RFC 8446, RFC 5246).
//!
//! It knows what is encrypted, and what of it waits. Bytes are counted as they are inside.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, Read as _, Write};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::{ServerConfig, ServerConnection};

use crate::socket::{READ_BUFFER, Socket};

thread_local! {
    /// Encrypted bytes of one read, for all connections of the thread.
    static ENCRYPTED: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BUFFER].into_boxed_slice());
}

/// Both directions of a connection.
pub(crate) struct Transport {
    socket: Arc<Socket>,
    tls: Option<Box<Tls>>,
}

impl Transport {
    /// A transport with TLS if there is a configuration of it.
    ///
    /// # Errors
    /// If the configuration does not allow a session.
    pub(crate) fn new(socket: Arc<Socket>, config: Option<Arc<ServerConfig>>) -> io::Result<Transport> {
        let tls = config.map(Tls::new).transpose().map_err(io::Error::other)?;
        Ok(Transport { socket, tls: tls.map(Box::new) })
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Agrees with the client on keys. Does nothing without TLS.
    ///
    /// # Errors
    /// If the connection ends, or the client does not offer what is needed.
    pub(crate) async fn shake_hands(&mut self) -> io::Result<()> {
        let Transport { socket, tls } = self;
        let Some(tls) = tls else { return Ok(()) };
        while tls.session.is_handshaking() || tls.session.wants_write() {
            match tls.session.wants_write() {
                true => poll_fn(|context| socket.poll_writable(context)).await?,
                false => poll_fn(|context| socket.poll_readable(context)).await?,
            }
            match tls.advance(socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                advanced => advanced?,
            }
        }
        Ok(())
    }

    /// Reads into a buffer; 0 is the end of the input.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.receive(buffer),
            Some(tls) => tls.receive(&self.socket, buffer),
        }
    }

    /// Reads into the room behind a buffer's bytes; 0 is the end of the input.
    pub(crate) fn receive_more(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.receive_more(buffer) };
        let before = buffer.len();
        // A buffer may have room for all of a large request; it is filled with zeros only as far as one read goes.
        buffer.resize(before + (buffer.capacity() - before).min(READ_BUFFER), 0);
        let received = tls.receive(&self.socket, &mut buffer[before..]);
        buffer.truncate(before + received.as_ref().map_or(0, |received| *received));
        received
    }

    /// Sends what the socket takes at once; returns the number of bytes. The last of them may still wait inside TLS, as
    /// [`Transport::is_flushed`] says.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.send(bytes),
            Some(tls) => tls.send(&self.socket, bytes),
        }
    }

    /// Returns whether all bytes that were taken are with the system. Others need another [`Transport::send`] once the socket
    /// takes more.
    pub(crate) fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.session.wants_write())
    }

    pub(crate) fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.tls {
            Some(tls) if tls.has_input() => Poll::Ready(Ok(())),
            _ => self.socket.poll_readable(context),
        }
    }

    pub(crate) fn poll_writable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_writable(context)
    }

    /// Tells the client that it is sent no more.
    pub(crate) fn stop_writing(&mut self) {
        self.say_goodbye();
        self.socket.stop_writing();
    }

    /// Ends TLS, so that the client knows that nothing was cut off. Whether the socket takes it is left to chance.
    fn say_goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.session.send_close_notify();
            let _ = tls.flush(&self.socket);
        }
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.say_goodbye();
    }
}

/// TLS on a connection.
struct Tls {
    session: ServerConnection,
    /// Encrypted bytes that have arrived, for which there was no room once they are decrypted.
    waiting: Vec<u8>,
    /// Decrypted bytes that the session holds.
    readable: usize,
    has_ended: bool,
}

impl Tls {
    fn new(config: Arc<ServerConfig>) -> Result<Tls, rustls::Error> {
        let session = ServerConnection::new(config)?;
        Ok(Tls { session, waiting: Vec::new(), readable: 0, has_ended: false })
    }

    fn has_input(&self) -> bool {
        self.readable > 0 || !self.waiting.is_empty()
    }

    /// One step of the handshake.
    fn advance(&mut self, socket: &Socket) -> io::Result<()> {
        self.flush(socket)?;
        if self.session.is_handshaking() && !self.session.wants_write() {
            self.read(socket, &mut [])?;
        }
        match self.has_ended && self.session.is_handshaking() {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }

    fn receive(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let mut received = self.take(buffer)?;
        while received == 0 && !self.has_ended {
            received = self.read(socket, buffer)?;
        }
        Ok(received)
    }

    /// Decrypts what has arrived, and answers it where TLS itself has to.
    fn read(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let waiting = mem::take(&mut self.waiting);
        let decrypted = if waiting.is_empty() {
            ENCRYPTED.with_borrow_mut(|encrypted| match socket.receive(encrypted)? {
                0 => {
                    self.has_ended = true;
                    Ok(0)
                }
                received => self.decrypt(&encrypted[..received], buffer),
            })
        } else {
            self.decrypt(&waiting, buffer)
        };
        // After an error it is the alert that says which one.
        let flushed = self.flush(socket);
        let decrypted = decrypted?;
        flushed.map(|()| decrypted)
    }

    /// Decrypts into the buffer; bytes that are left when it is full wait.
    fn decrypt(&mut self, mut encrypted: &[u8], buffer: &mut [u8]) -> io::Result<usize> {
        let mut decrypted = 0;
        while !encrypted.is_empty() && self.readable == 0 && !self.has_ended {
            self.session.read_tls(&mut encrypted)?;
            let state = self.session.process_new_packets();
            let state = state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.readable = state.plaintext_bytes_to_read();
            decrypted += self.take(&mut buffer[decrypted..])?;
            self.has_ended = state.peer_has_closed();
        }
        self.waiting = encrypted.to_vec();
        Ok(decrypted)
    }

    /// Takes decrypted bytes of the session.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut taken = 0;
        while self.readable > 0 && taken < buffer.len() {
            let more = self.session.reader().read(&mut buffer[taken..])?;
            taken += more;
            self.readable -= more;
        }
        Ok(taken)
    }

    fn send(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        loop {
            self.flush(socket)?;
            if self.session.wants_write() || sent == bytes.len() {
                return Ok(sent);
            }
            sent += self.session.writer().write(&bytes[sent..])?;
        }
    }

    /// Sends encrypted bytes as far as the socket takes them at once.
    fn flush(&mut self, socket: &Socket) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Sender(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A socket, for those who write.
struct Sender<'a>(&'a Socket);

impl Write for Sender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
