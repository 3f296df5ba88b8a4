//! The interface of a protocol: all that connections need of it to turn bytes into bytes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::connection::Connection;
use crate::socket::{READ_BUFFER, Socket};

/// A protocol and what stands behind it, as one thread runs it for its connections.
///
/// Requests run in [`run`](Self::run), on the thread's event loop, which they must not block. A wait is a
/// [`Later`](Self::Later), which [`finish`](Self::finish) does while the thread serves its other connections. If either
/// panics, the connection ends, and no other.
pub trait Service: Sized + 'static {
    /// State of one connection. It is dropped when the connection ends, however it does.
    type Client;
    /// Work that has to be done before more of a connection's requests run.
    type Later;

    /// Takes a new connection in.
    ///
    /// # Errors
    /// If the connection is to end, or has ended.
    fn open(&mut self, socket: &Arc<Socket>) -> io::Result<Self::Client>;

    /// Notes that a client was not taken in, since it did not agree with the server on TLS, or not in time.
    fn refused_handshake(&mut self, _socket: &Socket, _error: &io::Error) {}

    /// Prepares for the requests of one read, for which [`run`](Self::run) is called next.
    fn begin_turn(&mut self, _client: &mut Self::Client) {}

    /// Runs complete requests at the start of `input`, and appends their replies to [`output`](Self::output).
    ///
    /// Input that it does not take is shown again, with what has arrived behind it.
    fn run(&mut self, client: &mut Self::Client, input: &[u8]) -> Step<Self::Later>;

    /// Does what [`run`](Self::run) has left for later, and sends what is answered then. No other request of the connection
    /// runs meanwhile.
    ///
    /// # Errors
    /// The error that the connection has ended with.
    fn finish(connection: &mut Connection<Self>, later: Self::Later) -> impl Future<Output = io::Result<()>>;

    /// The bytes that are sent when [`run`](Self::run) returns.
    fn output(&mut self) -> &mut Vec<u8>;

    /// Resets the service after a request of this client has panicked, so that nothing of it reaches another connection.
    fn recover(&mut self, client: &Self::Client);

    /// Does what is to be done about once a second, even if no connection asks for anything.
    fn housekeeping(&mut self) {}

    /// Time that clients may take for their last replies when the thread is to end.
    fn last_replies_within(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// Returns whether the connection ends once what was answered is sent.
    fn is_closing(_client: &Self::Client) -> bool {
        false
    }

    /// More bytes of the request that has arrived in part that are worth room, if that is known.
    fn wanted(_client: &Self::Client) -> usize {
        READ_BUFFER
    }

    /// Time that a connection may do nothing, or take nothing of its replies.
    fn idle_timeout(&self, _client: &Self::Client) -> Option<Duration> {
        None
    }

    /// Decides whether more is read while a request waits, or its reply does, given how many bytes have arrived behind it.
    ///
    /// # Errors
    /// If the connection is to end instead.
    fn read_ahead(&mut self, client: &Self::Client, bytes: usize) -> io::Result<()>;

    /// Counts bytes that have arrived.
    fn received(&mut self, _client: &Self::Client, _bytes: usize) {}

    /// Counts bytes that were sent.
    fn sent(&mut self, _client: &Self::Client, _bytes: usize) {}

    /// Notes how many bytes of input the connection holds from now on.
    fn holds_input(_client: &Self::Client, _bytes: usize) {}

    /// Notes how many bytes of output the connection holds from now on.
    fn holds_output(_client: &Self::Client, _bytes: usize) {}
}

/// Outcome of some input.
pub struct Step<L> {
    /// Number of its bytes taken.
    pub taken: usize,
    /// Continuation once the output is sent.
    pub next: Next<L>,
}

/// Continuation of a turn once the output is sent.
pub enum Next<L> {
    /// More is read: the rest holds no complete request.
    Read,
    /// The rest is run.
    Run,
    /// This, and then the rest is run.
    Later(L),
    /// The connection ends, and the output is not sent.
    Close,
}
