//! One client's connection: bytes in, commands, bytes out.
//!
//! A turn reads once, runs every request that is complete, and writes all replies at once. Input and output live in
//! the thread's shared buffers; only what is left over (half a request, or replies that the client is slow to take)
//! moves to memory of the connection's own. While replies are waiting nothing is read, so a slow reader slows down
//! only itself.
//!
//! Messages that no request asked for come from the client's outbox, between two replies or while it is idle. A command
//! that waits pauses its own connection, never the thread.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use snugly_protocol::resp::{ReplyBuffer, RequestParser};
use snugly_store::{Ticket, system_time};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tracing::{debug, error};

use crate::clients::{ClientInfo, State};
use crate::commands::{self, Client, Context, Delay, Failure, Wait};
use crate::connection_counters::count;
use crate::interest::{self, Ending};
use crate::outbox::Outbox;
use crate::pipeline::Next;
use crate::replies::{Outgoing, Piece, Replies};
use crate::server::Server;
use crate::worker::{READ_BUFFER, Worker, WorkerStats};

/// The shared reply buffer is given back if a reply made it longer than this.
const KEPT_REPLY_BUFFER: usize = 1 << 20;

pub(crate) struct Connection {
    stream: Arc<TcpStream>,
    server: Arc<Server>,
    worker: Rc<RefCell<Worker>>,
    client: Client,
    parser: RequestParser,
    /// The start of a request that has not arrived whole, or requests that wait for replies to be taken.
    input: Vec<u8>,
    /// The task that the client's outbox wakes.
    task: Option<Waker>,
    /// Whether the keys of the next requests were just fetched from disk.
    fetched: bool,
}

/// What an idle connection was woken by.
enum Event {
    Input,
    Messages,
}

/// How a turn ended.
enum Turn {
    /// Everything was answered; more input is needed.
    Done,
    /// These replies could not be sent at once; there may be input left.
    Blocked(Outgoing),
    /// These replies are sent when this write, which they tell of, is on disk.
    Uncommitted(Ticket, Outgoing),
    /// These replies are sent after a delay, and when the write is on disk, if there is one; there may be input left.
    Delayed(Delay, Option<Ticket>, Outgoing),
    /// These replies are sent, when the write that they tell of is on disk, if there is one; then the answer to a command
    /// that waits for a list. There may be input left.
    Blocking(Wait, Option<Ticket>, Outgoing),
    /// Something has to happen before the rest of the input is run.
    Waiting(Next),
    /// The client has gone, or is to go.
    Closed,
}

impl Connection {
    /// Takes a new connection in; `None` if it has gone already.
    pub(crate) fn open(
        stream: TcpStream,
        server: Arc<Server>,
        worker: Rc<RefCell<Worker>>,
    ) -> Option<Connection> {
        let (address, local_address) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
        stream.set_nodelay(true).ok()?;
        let configuration = server.configuration();
        if configuration.tcp_keepalive > 0 {
            let period = Duration::from_secs(configuration.tcp_keepalive);
            let keepalive = TcpKeepalive::new().with_time(period).with_interval(period / 3);
            SockRef::from(&stream).set_tcp_keepalive(&keepalive).ok()?;
        }
        let stream = Arc::new(stream);
        let info = server.clients().enter(stream.clone(), address, local_address);
        if server.stopping.load(Ordering::SeqCst) {
            // Whoever stops the server may have counted its clients already, and would not end this one.
            info.kill();
        }
        let client = Client::new(info, configuration.password.is_empty());
        Some(Connection {
            stream,
            server,
            worker,
            client,
            parser: RequestParser::default(),
            input: Vec::new(),
            task: None,
            fetched: false,
        })
    }

    /// Serves the client until either side ends the connection.
    pub(crate) async fn serve(mut self) {
        let mut read = true;
        loop {
            let event = if read { self.event().await } else { Ok(Event::Input) };
            let turn = match event {
                Ok(Event::Input) => self.guarded(|connection| connection.turn(read)),
                Ok(Event::Messages) => self.guarded(Connection::deliver),
                Err(error) => Err(error),
            };
            match turn {
                Ok(Turn::Done) => read = true,
                Ok(Turn::Blocked(replies)) => {
                    if self.send(replies).await.is_err() || self.client.closing {
                        break;
                    }
                    read = false;
                }
                Ok(Turn::Uncommitted(ticket, replies)) => {
                    if self.send_durable(ticket, replies).await.is_err() || self.client.closing {
                        break;
                    }
                    read = false;
                }
                Ok(Turn::Delayed(delay, ticket, replies)) => {
                    if self.send_after(delay, ticket, replies).await.is_err() || self.client.closing {
                        break;
                    }
                    read = false;
                }
                Ok(Turn::Blocking(wait, ticket, replies)) => {
                    let answered = self.answer(&wait, ticket, replies).await;
                    self.server.interest().end_wait(&wait.waiter, Ending::Gone);
                    if answered.is_err() || self.client.closing {
                        break;
                    }
                    read = false;
                }
                Ok(Turn::Waiting(next)) => {
                    if let Err(error) = self.wait_for(next).await {
                        debug!(client = self.client.info.id, %error, "connection lost");
                        break;
                    }
                    read = false;
                }
                Ok(Turn::Closed) => break,
                Err(error) => {
                    debug!(client = self.client.info.id, %error, "connection lost");
                    break;
                }
            }
        }
    }

    /// Does something with the buffers that the thread's connections share. If it panics, this connection ends, and its
    /// bytes with it: nothing of them may reach another one.
    fn guarded<R>(&mut self, run: impl FnOnce(&mut Connection) -> io::Result<R>) -> io::Result<R> {
        catch_unwind(AssertUnwindSafe(|| run(self))).unwrap_or_else(|_| {
            self.worker.borrow_mut().recover(&self.server);
            count(&self.server.connections.broken);
            error!(client = self.client.info.id, "a command panicked: its connection is closed");
            Err(io::Error::other("a command panicked"))
        })
    }

    async fn event(&mut self) -> io::Result<Event> {
        let timeout = self.server.idle_timeout();
        let event = poll_fn(|context| self.poll_event(context));
        match timeout {
            None => event.await,
            Some(timeout) => tokio::time::timeout(timeout, event).await.map_err(io::Error::from)?,
        }
    }

    fn poll_event(&mut self, context: &mut TaskContext<'_>) -> Poll<io::Result<Event>> {
        let outbox = &self.client.info.outbox;
        attach(outbox, &mut self.task, context.waker());
        match self.stream.poll_read_ready(context) {
            Poll::Ready(ready) => Poll::Ready(ready.map(|()| Event::Input)),
            Poll::Pending if !outbox.is_empty() => Poll::Ready(Ok(Event::Messages)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Waits until a pause is over or another one.
    async fn outlast_pause(&mut self) -> io::Result<()> {
        let server = self.server.clone();
        let info = self.client.info.clone();
        info.states.set(State::POSTPONED);
        self.outlast(server.pause().changed()).await?;
        info.states.clear(State::POSTPONED);
        Ok(())
    }

    /// Waits for something. What the client sends meanwhile is taken, so as to see it go, and it is sent its messages.
    async fn outlast<R>(&mut self, wait: impl Future<Output = R>) -> io::Result<R> {
        let mut wait = pin!(wait);
        loop {
            let event = poll_fn(|context| match wait.as_mut().poll(context) {
                Poll::Ready(result) => Poll::Ready(Ok(Err(result))),
                Poll::Pending => self.poll_event(context).map_ok(Ok),
            });
            match event.await? {
                Err(result) => return Ok(result),
                Ok(Event::Input) => self.receive_ahead()?,
                Ok(Event::Messages) => {
                    if let Turn::Blocked(messages) = self.deliver()? {
                        self.send(messages).await?;
                    }
                }
            }
        }
    }

    /// Sends replies, and then that of a command that waits for a list, once it has one or its time is over.
    async fn answer(&mut self, wait: &Wait, ticket: Option<Ticket>, replies: Outgoing) -> io::Result<()> {
        self.send_once_durable(ticket, replies).await?;
        let (waiter, server) = (&wait.waiter, self.server.clone());
        let answer = self.outlast(async {
            match tokio::time::timeout(wait.timeout, waiter.answered()).await {
                Ok(answer) => answer,
                Err(_) => {
                    server.interest().end_wait(waiter, Ending::TimedOut);
                    waiter.answered().await
                }
            }
        });
        let answer = answer.await?;
        if answer.ending.is_some() {
            commands::note_ended(&self.server, &self.worker.borrow().stats, waiter, &answer.reply);
        }
        let reply = if wait.silent { Outgoing::default() } else { answer.reply.into() };
        self.send_once_durable(answer.ticket.filter(|_| self.server.answers_durably()), reply).await
    }

    fn receive_ahead(&mut self) -> io::Result<()> {
        if self.input.len() > self.server.limits(self.client.authenticated).max_request {
            count(&self.server.connections.over_input_limit);
            return Err(io::Error::other(
                "more was sent while a command waited than client-query-buffer-limit allows",
            ));
        }
        self.input.reserve(READ_BUFFER);
        match receive_more(&self.stream, &mut self.input) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(received) => {
                self.client.info.bytes_in.add(received as u64);
                self.worker.borrow().stats.bytes_in.add(received as u64);
                self.client.info.buffered_input.store(self.input.len(), Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends the messages that wait.
    fn deliver(&mut self) -> io::Result<Turn> {
        let Worker { replies, stats, .. } = &mut *self.worker.borrow_mut();
        self.client.info.outbox.drain_into(replies.as_mut_vec());
        let unsent = send_now(&self.stream, replies, &self.client.info, stats)?;
        Ok(unsent.map_or(Turn::Done, |unsent| Turn::Blocked(unsent.into())))
    }

    fn turn(&mut self, read: bool) -> io::Result<Turn> {
        let worker = self.worker.clone();
        let Worker { session, input: shared, pipeline, replies, stats } = &mut *worker.borrow_mut();
        let mut own = std::mem::take(&mut self.input);
        let mut received = 0;
        if read {
            let outcome = if own.is_empty() {
                receive(&self.stream, shared)
            } else {
                own.reserve(self.parser.wanted());
                receive_more(&self.stream, &mut own)
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
        }
        let now = system_time();
        session.set_now(Some(now));
        interest::act_for(&self.client.info);
        let info = &self.client.info;
        info.last_active.store(now, Ordering::Relaxed);
        info.bytes_in.add(received as u64);
        stats.bytes_in.add(received as u64);

        // What others did before the client sent these requests, it hears before the answers.
        info.outbox.drain_into(replies.as_mut_vec());
        replies.set_limit(self.server.longest_replies());
        let input = if own.is_empty() { &shared[..received] } else { &own[..] };
        let mut taken = 0;
        let ending = loop {
            let limits = self.server.limits(self.client.authenticated);
            let mut context =
                Context { session, client: &mut self.client, server: &self.server, replies, stats };
            let fetched = std::mem::take(&mut self.fetched);
            let progress = pipeline.run(&mut self.parser, &input[taken..], &limits, fetched, &mut context);
            taken += progress.taken;
            if replies.is_over() {
                *replies = Replies::default();
                self.server.end_over_output_limit(&self.client.info);
                return Ok(Turn::Closed);
            }
            self.server.interest().broadcast();
            self.client.info.outbox.drain_into(replies.as_mut_vec());
            let ticket = session.take_ticket().filter(|_| self.server.answers_durably());
            if let Some(wait) = self.client.wait.take() {
                break Some(Turn::Blocking(wait, ticket, replies.take()));
            }
            if let Some(delay) = self.client.delay.take() {
                break Some(Turn::Delayed(delay, ticket, replies.take()));
            }
            if let Some(ticket) = ticket {
                break Some(Turn::Uncommitted(ticket, replies.take()));
            }
            if replies.has_late() {
                break Some(Turn::Blocked(replies.take()));
            }
            if let Some(unsent) = send_now(&self.stream, replies, &self.client.info, stats)? {
                break Some(Turn::Blocked(unsent.into()));
            }
            match progress.next {
                Next::Send => {}
                Next::Read => break None,
                next => break Some(Turn::Waiting(next)),
            }
        };
        if own.is_empty() {
            self.input = shared[taken..received].to_vec();
        } else if taken < own.len() {
            own.drain(..taken);
            self.input = own;
        }
        self.client.info.buffered_input.store(self.input.len(), Ordering::Relaxed);
        Ok(match ending {
            Some(turn) => turn,
            None if self.client.closing => Turn::Closed,
            None => Turn::Done,
        })
    }

    /// Sends replies once the write is on disk; if it could not be kept, an error, and the connection ends, since it is
    /// not known which of the replies tell of it.
    async fn send_durable(&mut self, ticket: Ticket, replies: Outgoing) -> io::Result<()> {
        match self.server.store().durable(ticket).await {
            Ok(()) => self.send(replies).await,
            Err(error) => {
                self.client.closing = true;
                let mut refusal = ReplyBuffer::default();
                refusal.error(Failure::not_on_disk(&error).text());
                self.send(refusal.as_bytes().to_vec().into()).await
            }
        }
    }

    async fn wait_for(&mut self, next: Next) -> io::Result<()> {
        match next {
            Next::Read | Next::Send => {}
            Next::EndPause => self.outlast_pause().await?,
            Next::CatchUp => self.server.store().ready_to_write().await,
            Next::Fetch(keys) => {
                let (store, database) = (self.server.store().clone(), self.client.database);
                let fetch = move || keys.iter().for_each(|key| store.fetch(database, key, system_time()));
                // The task can fail only by a panic of the store, which shows again when the requests are run.
                let _ = tokio::task::spawn_blocking(fetch).await;
                self.fetched = true;
            }
        }
        Ok(())
    }

    async fn send_after(
        &mut self,
        delay: Delay,
        ticket: Option<Ticket>,
        replies: Outgoing,
    ) -> io::Result<()> {
        self.wait_out(delay).await?;
        self.send_once_durable(ticket, replies).await
    }

    async fn send_once_durable(&mut self, ticket: Option<Ticket>, replies: Outgoing) -> io::Result<()> {
        match ticket {
            Some(ticket) => self.send_durable(ticket, replies).await,
            None => self.send(replies).await,
        }
    }

    /// Waits as long as a command has asked for, or until the connection ends.
    async fn wait_out(&mut self, delay: Delay) -> io::Result<()> {
        if delay.busy {
            return match tokio::time::timeout(delay.length, self.killed()).await {
                Ok(()) => Err(io::ErrorKind::ConnectionAborted.into()),
                Err(_) => Ok(()),
            };
        }
        let server = self.server.clone();
        server.blocked_clients.fetch_add(1, Ordering::Relaxed);
        let waited = tokio::time::timeout(delay.length, async {
            loop {
                self.take_in().await?;
            }
        });
        let waited = waited.await;
        server.blocked_clients.fetch_sub(1, Ordering::Relaxed);
        waited.unwrap_or(Ok(()))
    }

    async fn killed(&mut self) {
        let (outbox, task) = (&self.client.info.outbox, &mut self.task);
        poll_fn(|context| {
            attach(outbox, task, context.waker());
            if outbox.is_closed() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Reads on while a command waits, so that the client's end is noticed; at most one buffer full.
    async fn take_in(&mut self) -> io::Result<()> {
        let (stream, outbox, task) = (&self.stream, &self.client.info.outbox, &mut self.task);
        let full = self.input.len() >= READ_BUFFER;
        poll_fn(|context| {
            attach(outbox, task, context.waker());
            if outbox.is_closed() {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            } else if full {
                Poll::Pending
            } else {
                stream.poll_read_ready(context)
            }
        })
        .await?;
        self.input.reserve(READ_BUFFER);
        match receive_more(&self.stream, &mut self.input) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(received) => {
                self.client.info.bytes_in.add(received as u64);
                self.worker.borrow().stats.bytes_in.add(received as u64);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends replies as the socket takes them. What is decoded only then is counted, and there must be room for it.
    async fn send(&mut self, mut replies: Outgoing) -> io::Result<()> {
        while let Some(piece) = self.guarded(|connection| connection.next_piece(&mut replies))? {
            match piece {
                Piece::Bytes(bytes) => self.send_bytes(&bytes, replies.memory()).await?,
                Piece::Shared(value) => {
                    self.client.info.shared_value.store(value.identity(), Ordering::Relaxed);
                    self.client.info.shared_output.store(value.len(), Ordering::Relaxed);
                    if !value.is_there() {
                        self.server.evict_clients();
                    }
                    let bytes = self.guarded(|connection| {
                        let bytes = value.bytes(&mut connection.worker.borrow_mut().session);
                        bytes.map_err(|reason| unreadable(&connection.client.info, reason))
                    })?;
                    self.send_bytes(bytes, replies.memory()).await?;
                    self.client.info.shared_output.store(0, Ordering::Relaxed);
                }
            }
        }
        self.client.info.buffered_output.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn next_piece(&mut self, replies: &mut Outgoing) -> io::Result<Option<Piece>> {
        let mut worker = self.worker.borrow_mut();
        let piece = replies.next(&mut worker.session, &self.server.decoded);
        piece.map_err(|error| unreadable(&self.client.info, &error.to_string()))
    }

    /// Sends bytes, while replies that take `rest` bytes of memory wait behind them.
    async fn send_bytes(&self, mut bytes: &[u8], rest: usize) -> io::Result<()> {
        let info = &self.client.info;
        let own = if info.shared_output.load(Ordering::Relaxed) > 0 { 0 } else { bytes.len() };
        info.buffered_output.store(own + rest, Ordering::Relaxed);
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(sent) => {
                    info.bytes_out.add(sent as u64);
                    self.worker.borrow().stats.bytes_out.add(sent as u64);
                    bytes = &bytes[sent..];
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the client takes more of its replies, which it must do within the time that it may be idle.
    async fn writable(&self) -> io::Result<()> {
        let writable = poll_fn(|context| self.stream.poll_write_ready(context));
        match self.server.idle_timeout() {
            None => writable.await,
            Some(timeout) => tokio::time::timeout(timeout, writable).await.map_err(io::Error::from)?,
        }
    }
}

impl Drop for Connection {
    /// Leaves whatever knows the client, however the connection has ended.
    fn drop(&mut self) {
        commands::discard_all(&mut self.client, self.server.interest());
        self.server.interest().untrack(&self.client.info);
        self.server.monitors().leave(&self.client.info);
        self.server.clients().leave(self.client.info.id);
    }
}

/// Lets the outbox wake the running task, if it does not already.
fn attach(outbox: &Outbox, task: &mut Option<Waker>, running: &Waker) {
    if !task.as_ref().is_some_and(|task| task.will_wake(running)) {
        outbox.attach(running);
        *task = Some(running.clone());
    }
}

/// A value that was promised and cannot be sent: the connection ends with a reply that is not whole.
fn unreadable(client: &ClientInfo, reason: &str) -> io::Error {
    error!(client = client.id, reason, "a value cannot be read: the connection that was to get it is closed");
    io::Error::other("a value cannot be read")
}

/// Sends what the socket takes at once; gives back the rest.
fn send_now(
    stream: &TcpStream,
    replies: &mut ReplyBuffer,
    info: &ClientInfo,
    stats: &WorkerStats,
) -> io::Result<Option<Vec<u8>>> {
    let buffer = replies.as_mut_vec();
    let mut sent = 0;
    let blocked = loop {
        if sent == buffer.len() {
            break false;
        }
        match stream.try_write(&buffer[sent..]) {
            Ok(more) => sent += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break true,
            Err(error) => {
                buffer.clear();
                return Err(error);
            }
        }
    };
    info.bytes_out.add(sent as u64);
    stats.bytes_out.add(sent as u64);
    let unsent = blocked.then(|| buffer[sent..].to_vec());
    buffer.clear();
    buffer.shrink_to(KEPT_REPLY_BUFFER);
    Ok(unsent)
}

/// Reads into a buffer; 0 is the end of the input.
fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let received = stream.try_read(buffer)?;
    if received < buffer.len() {
        mark_drained(stream);
    }
    Ok(received)
}

/// Reads into the room behind a buffer's bytes; 0 is the end of the input.
fn receive_more(stream: &TcpStream, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let received = stream.try_read_buf(buffer)?;
    if buffer.len() < buffer.capacity() {
        mark_drained(stream);
    }
    Ok(received)
}

/// A read that fills less than its buffer has emptied the socket. Saying so spares the next turn a call to the system
/// that would only find it empty.
fn mark_drained(stream: &TcpStream) {
    let _ = stream.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
}
