//! One client's connection: bytes in, requests, bytes out.
//!
//! A turn reads once, runs every request that is complete, and writes all replies at once. Input and output live in
//! the thread's shared buffers; only what is left over (half a request, or replies that the client is slow to take)
//! moves to memory of the connection's own. While replies wait no request runs, but input is taken: a client that writes
//! all its requests before it reads a reply would wait for the server as the server waits for it.
//!
//! Messages that no request asked for come from the socket's outbox, between two replies or while the connection is idle.
//! A request that waits pauses its own connection, never the thread.

use std::cell::{RefCell, RefMut};
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::timeout;
use tracing::debug;

use crate::outbox::Outbox;
use crate::service::{Next, Service};
use crate::socket::{READ_BUFFER, Socket};
use crate::transport::Transport;

/// The shared output buffer is given back if replies made it longer than this.
const KEPT_OUTPUT: usize = 1 << 20;

/// Service and buffer that the connections of one thread share. They take turns in using it, so that an idle connection holds no buffer.
pub(crate) struct Shared<S> {
    pub(crate) service: S,
    input: Box<[u8]>,
}

impl<S: Service> Shared<S> {
    pub(crate) fn new(service: S) -> Shared<S> {
        Shared { service, input: vec![0; READ_BUFFER].into_boxed_slice() }
    }
}

/// A connection that a service serves.
pub struct Connection<S: Service> {
    /// State of the client in the service.
    pub client: S::Client,
    transport: Transport,
    shared: Rc<RefCell<Shared<S>>>,
    input: Input,
    /// Whether the client has ended its side: what it has sent is still answered.
    ended: bool,
    /// The task that the outbox wakes.
    task: Option<Waker>,
}

/// The start of a request that has not arrived whole, or requests that wait for something.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    /// Number of bytes whose requests have run.
    taken: usize,
}

impl Input {
    fn waiting(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Forgets bytes at the start, and gives their memory back once they are most of it: to move the others each time would
    /// take a time that is quadratic.
    fn take(&mut self, len: usize) {
        self.taken += len;
        if self.taken > self.bytes.len() / 2 {
            self.bytes = self.waiting().to_vec();
            self.taken = 0;
        }
    }
}

/// Reason for which an idle connection was woken.
enum Event {
    Input,
    Messages,
}

/// The end of a turn.
enum Turn<L> {
    /// All input was answered; more is needed.
    Done,
    /// This output could not be sent at once, and this has to happen then; there may be input left.
    Unfinished(Vec<u8>, Option<L>),
    /// The client has gone, or is to go.
    Closed,
}

impl<S: Service> Connection<S> {
    pub(crate) fn open(transport: Transport, shared: Rc<RefCell<Shared<S>>>) -> io::Result<Connection<S>> {
        let client = shared.borrow_mut().service.open(transport.socket())?;
        Ok(Connection { client, transport, shared, input: Input::default(), ended: false, task: None })
    }

    fn socket(&self) -> &Arc<Socket> {
        self.transport.socket()
    }

    /// Serves the client until either side ends the connection; gives back the transport if it was the service, once what it
    /// answered was sent. If anything panics, the connection ends, and its bytes with
    /// it: the thread's connections share buffers, and nothing of it may reach another one.
    pub(crate) async fn serve(mut self) -> Option<Transport> {
        let ended = {
            let mut serving = pin!(self.serve_unguarded());
            poll_fn(|context| {
                let poll = catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(context)));
                poll.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
            })
            .await
        };
        match ended {
            Ok(Ok(())) if S::is_closing(&self.client) => return Some(self.transport),
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(client = %self.socket().address(), %error, "connection lost"),
            Err(_) => self.service().recover(&self.client),
        }
        None
    }

    async fn serve_unguarded(&mut self) -> io::Result<()> {
        let mut read = true;
        loop {
            if read && self.ended {
                return Ok(());
            }
            let event = if read { self.event().await? } else { Event::Input };
            let turn = match event {
                Event::Input => self.turn(read)?,
                Event::Messages => self.deliver()?,
            };
            match turn {
                Turn::Done => read = true,
                Turn::Unfinished(unsent, later) => {
                    self.send_rest(unsent).await?;
                    if let Some(later) = later {
                        S::finish(self, later).await?;
                    }
                    if S::is_closing(&self.client) {
                        return Ok(());
                    }
                    read = false;
                }
                Turn::Closed => return Ok(()),
            }
        }
    }

    async fn event(&mut self) -> io::Result<Event> {
        let idle_timeout = self.service().idle_timeout(&self.client);
        within(idle_timeout, poll_fn(|context| self.poll_event(context))).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Event>> {
        attach(&self.transport.socket().outbox, &mut self.task, context.waker());
        match self.transport.poll_readable(context) {
            Poll::Ready(ready) => Poll::Ready(ready.map(|()| Event::Input)),
            Poll::Pending if !self.socket().outbox.is_empty() => Poll::Ready(Ok(Event::Messages)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Sends the messages that wait.
    fn deliver(&mut self) -> io::Result<Turn<S::Later>> {
        let shared = self.shared.clone();
        let service = &mut shared.borrow_mut().service;
        self.socket().outbox.drain_into(service.output());
        let unsent = send_now(&mut self.transport, service, &self.client)?;
        Ok(unsent.map_or(Turn::Done, |unsent| Turn::Unfinished(unsent, None)))
    }

    fn turn(&mut self, read: bool) -> io::Result<Turn<S::Later>> {
        let shared = self.shared.clone();
        let Shared { service, input: buffer } = &mut *shared.borrow_mut();
        let mut own = std::mem::take(&mut self.input);
        let is_shared = own.waiting().is_empty();
        let mut received = 0;
        if read {
            let outcome = if is_shared {
                self.transport.receive(buffer)
            } else {
                own.bytes.reserve(S::wanted(&self.client));
                self.transport.receive_more(&mut own.bytes)
            };
            received = match outcome {
                Ok(0) => return Ok(Turn::Closed),
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.input = own;
                    return Ok(Turn::Done);
                }
                Err(error) => return Err(error),
            };
            service.received(&self.client, received);
        }
        // The client hears of what others did before it sent these requests, and then the answers.
        self.socket().outbox.drain_into(service.output());
        service.begin_turn(&mut self.client);
        let input = if is_shared { &buffer[..received] } else { own.waiting() };
        let mut taken = 0;
        let (unsent, later) = loop {
            let step = service.run(&mut self.client, &input[taken..]);
            taken += step.taken;
            let (later, goes_on) = match step.next {
                Next::Read => (None, false),
                Next::Run => (None, true),
                Next::Later(later) => (Some(later), false),
                Next::Close => {
                    empty(service.output());
                    return Ok(Turn::Closed);
                }
            };
            let unsent = send_now(&mut self.transport, service, &self.client)?;
            if !goes_on || unsent.is_some() {
                break (unsent, later);
            }
        };
        if is_shared {
            own.bytes = buffer[taken..received].to_vec();
        } else {
            own.take(taken);
        }
        self.input = own;
        S::holds_input(&self.client, self.input.waiting().len());
        Ok(match (unsent, later) {
            (None, None) if S::is_closing(&self.client) => Turn::Closed,
            (None, None) => Turn::Done,
            (unsent, later) => Turn::Unfinished(unsent.unwrap_or_default(), later),
        })
    }

    /// The service of the connection's thread; not to be held while anything is waited for.
    pub fn service(&self) -> RefMut<'_, S> {
        RefMut::map(self.shared.borrow_mut(), |shared| &mut shared.service)
    }

    /// Waits for something. Input of the client is taken meanwhile, so as to see it go, and it is sent its messages.
    ///
    /// # Errors
    /// If the connection ends; `UnexpectedEof` if the client has ended its side, and may still read.
    pub async fn wait<R>(&mut self, wait: impl Future<Output = R>) -> io::Result<R> {
        let mut wait = pin!(wait);
        loop {
            let event = poll_fn(|context| match wait.as_mut().poll(context) {
                Poll::Ready(result) => Poll::Ready(Ok(Err(result))),
                Poll::Pending if self.ended => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Poll::Pending => self.poll_event(context).map_ok(Ok),
            });
            match event.await? {
                Err(result) => return Ok(result),
                Ok(Event::Input) => self.read_ahead()?,
                Ok(Event::Messages) => {
                    if let Turn::Unfinished(messages, _) = self.deliver()? {
                        self.send_rest(messages).await?;
                    }
                }
            }
        }
    }

    /// Sends nothing to the client for some time. If `reads`, input is taken meanwhile, so as to notice its end.
    ///
    /// # Errors
    /// Errors of the connection if it ends, or if the client ends its side.
    pub async fn hold_back(&mut self, length: Duration, reads: bool) -> io::Result<()> {
        let held_back = timeout(length, async {
            loop {
                self.receive_or_end(reads).await?;
            }
        });
        held_back.await.unwrap_or(Ok(()))
    }

    /// Takes some of what the client sends, if it `reads`, or waits for the end of the connection.
    async fn receive_or_end(&mut self, reads: bool) -> io::Result<()> {
        let (transport, task) = (&mut self.transport, &mut self.task);
        poll_fn(|context| {
            let outbox = &transport.socket().outbox;
            attach(outbox, task, context.waker());
            if outbox.is_closed() {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            } else if reads {
                transport.poll_readable(context)
            } else {
                Poll::Pending
            }
        })
        .await?;
        self.read_ahead()?;
        if self.ended { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Takes input for later, as far as the service allows, or notes that there will be no more.
    fn read_ahead(&mut self) -> io::Result<()> {
        self.service().read_ahead(&self.client, self.input.waiting().len())?;
        self.input.bytes.reserve(READ_BUFFER);
        match self.transport.receive_more(&mut self.input.bytes) {
            Ok(0) => self.ended = true,
            Ok(received) => {
                self.service().received(&self.client, received);
                S::holds_input(&self.client, self.input.waiting().len());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sends output that the socket did not take at once.
    async fn send_rest(&mut self, unsent: Vec<u8>) -> io::Result<()> {
        S::holds_output(&self.client, unsent.len());
        self.send(&unsent).await?;
        S::holds_output(&self.client, 0);
        Ok(())
    }

    /// Sends bytes as the socket takes them. They are for the caller to note as output that the connection holds.
    ///
    /// # Errors
    /// If the connection ends, or the client takes nothing for as long as it may be idle.
    pub async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            let sent = self.transport.send(bytes)?;
            self.service().sent(&self.client, sent);
            bytes = &bytes[sent..];
            if bytes.is_empty() && self.transport.is_flushed() {
                return Ok(());
            }
            let idle_timeout = self.service().idle_timeout(&self.client);
            within(idle_timeout, self.wait_for_room()).await?;
        }
    }

    /// Waits until the socket takes more, and takes input meanwhile.
    async fn wait_for_room(&mut self) -> io::Result<()> {
        loop {
            let is_input = poll_fn(|context| match self.transport.poll_writable(context) {
                Poll::Ready(ready) => Poll::Ready(ready.map(|()| false)),
                Poll::Pending if self.ended => Poll::Pending,
                Poll::Pending => self.transport.poll_readable(context).map_ok(|()| true),
            });
            if !is_input.await? {
                return Ok(());
            }
            self.read_ahead()?;
        }
    }
}

/// Waits for something within a time, if there is one.
async fn within<R>(time: Option<Duration>, wait: impl Future<Output = io::Result<R>>) -> io::Result<R> {
    match time {
        None => wait.await,
        Some(time) => timeout(time, wait).await.map_err(io::Error::from)?,
    }
}

/// Makes the outbox wake the running task, if it does not already.
fn attach(outbox: &Outbox, task: &mut Option<Waker>, running: &Waker) {
    if !task.as_ref().is_some_and(|task| task.will_wake(running)) {
        outbox.attach(running);
        *task = Some(running.clone());
    }
}

/// Sends what the socket takes of the output at once; gives back the rest, if there is one.
fn send_now<S: Service>(
    transport: &mut Transport,
    service: &mut S,
    client: &S::Client,
) -> io::Result<Option<Vec<u8>>> {
    let output = service.output();
    let outcome = transport.send(output);
    let unsent = match outcome {
        Ok(sent) if sent < output.len() || !transport.is_flushed() => Some(output[sent..].to_vec()),
        _ => None,
    };
    empty(output);
    service.sent(client, outcome?);
    Ok(unsent)
}

fn empty(output: &mut Vec<u8>) {
    output.clear();
    output.shrink_to(KEPT_OUTPUT);
}
