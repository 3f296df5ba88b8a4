//! The connection to a primary, whose one thread waits for it: no longer than the primary may be silent, and not once another
//! server is to be followed or this one ends.
//!
//! It knows sockets and time. It knows nothing of what is sent.

use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use snugly_net::Socket;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::replica::Followed;
use crate::state::Server;

/// Interval at which a thread that waits looks around.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A connection to a primary.
pub(super) struct Wire<'a> {
    server: &'a Server,
    runtime: &'a Runtime,
    stream: TcpStream,
    /// The same connection, as other threads may end it.
    socket: Arc<Socket>,
    silence: Silence,
    /// Number of changes of what is followed when it was made.
    version: u64,
    /// Bytes that are sent every second while something is read.
    keep_alive: Option<&'static [u8]>,
    kept_alive_at: Instant,
}

/// The time for which the primary has said nothing.
struct Silence {
    since: Instant,
    most: Duration,
}

impl<'a> Wire<'a> {
    /// Connects to a primary.
    ///
    /// # Errors
    /// Errors of the system, and `TimedOut`.
    pub(super) fn connect(
        server: &'a Server,
        runtime: &'a Runtime,
        followed: &Followed,
        version: u64,
    ) -> io::Result<Wire<'a>> {
        let address = (&*followed.primary.host, followed.primary.port);
        let connect = async {
            let mut connecting = pin!(TcpStream::connect(address));
            loop {
                if is_over(server, version) {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                if let Some(connected) = before_news(connecting.as_mut(), server, LOOK_EVERY).await {
                    return connected;
                }
            }
        };
        let stream =
            runtime.block_on(async { timeout(followed.timeout, connect).await }).map_err(|_| {
                let seconds = followed.timeout.as_secs();
                let reason = format!("the primary does not accept it for {seconds} seconds (repl-timeout)");
                io::Error::new(io::ErrorKind::TimedOut, reason)
            })??;
        let (stream, other) = {
            let _within = runtime.enter();
            let stream = stream.into_std()?;
            let other = TcpStream::from_std(stream.try_clone()?)?;
            (TcpStream::from_std(stream)?, other)
        };
        let socket = Arc::new(Socket::new(other)?);
        let now = Instant::now();
        Ok(Wire {
            server,
            runtime,
            stream,
            socket,
            silence: Silence { since: now, most: followed.timeout },
            version,
            keep_alive: None,
            kept_alive_at: now,
        })
    }

    /// The connection, as other threads may end it.
    pub(super) fn socket(&self) -> Arc<Socket> {
        self.socket.clone()
    }

    /// Sends these bytes every second from now on, while something is read.
    pub(super) fn keep_alive(&mut self, with: Option<&'static [u8]>) {
        self.keep_alive = with;
    }

    /// Reads what has arrived, or waits a moment for something; `None` if nothing has come.
    ///
    /// # Errors
    /// Errors of the connection; `TimedOut` if the primary has been silent for too long; `ConnectionAborted` if the link is
    /// to end.
    pub(super) fn read_within(&mut self, buffer: &mut [u8], most: Duration) -> io::Result<Option<usize>> {
        if is_over(self.server, self.version) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let (stream, server) = (&self.stream, self.server);
        let receiving = async { before_news(pin!(receive(stream, buffer)), server, most).await };
        let read = self.runtime.block_on(receiving).transpose()?;
        match read {
            Some(_) => {
                self.silence.since = Instant::now();
                self.server.replica().note_heard();
            }
            None if self.silence.since.elapsed() >= self.silence.most => {
                let seconds = self.silence.most.as_secs();
                let reason = format!("the primary has been silent for {seconds} seconds (repl-timeout)");
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            None => {}
        }
        Ok(read)
    }

    /// Sends all these bytes.
    ///
    /// # Errors
    /// Errors of the connection; `TimedOut` if the primary takes nothing for as long as it may be silent.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let (stream, most) = (&self.stream, self.silence.most);
        self.runtime.block_on(async {
            while !bytes.is_empty() {
                timeout(most, stream.writable()).await??;
                match stream.try_write(bytes) {
                    Ok(sent) => bytes = &bytes[sent..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
    }

    /// Sends what keeps the connection alive, if it is time.
    fn send_sign_of_life(&mut self) -> io::Result<()> {
        match self.keep_alive {
            Some(sign) if self.kept_alive_at.elapsed() >= LOOK_EVERY => {
                self.kept_alive_at = Instant::now();
                self.send(sign)
            }
            _ => Ok(()),
        }
    }
}

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.send_sign_of_life()?;
            if let Some(read) = self.read_within(buffer, LOOK_EVERY)? {
                return Ok(read);
            }
        }
    }
}

/// Returns whether a link of this version is to end.
pub(super) fn is_over(server: &Server, version: u64) -> bool {
    server.is_stopping() || server.replica().version() != version
}

/// Waits for something, unless it takes longer than this or there is something to look at for the link.
async fn before_news<F: Future>(waiting: Pin<&mut F>, server: &Server, most: Duration) -> Option<F::Output> {
    let mut waiting = waiting;
    let mut news = pin!(server.replica().changed());
    let first = poll_fn(|context| match waiting.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => news.as_mut().poll(context).map(|()| None),
    });
    timeout(most, first).await.unwrap_or(None)
}

async fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}
