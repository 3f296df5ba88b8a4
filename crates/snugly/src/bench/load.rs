//! The load generator: connections that send batches of requests and time the replies.
//!
//! It shares the machine with the server that it measures, so it does little itself: one thread drives many
//! connections through epoll, requests are copied from prepared bytes, replies are looked at where they arrive, and the
//! clock is read once a batch.

use std::io::{ErrorKind, Read, Write};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token as Id};
use snugly_protocol::resp::{ReplyLimits, Token, next_token};

use super::workload::{Dataset, Draw, Operation, Plan};
use crate::client::{Client, Target};

/// Longest latency that is told apart from longer ones.
const SLOWEST: Duration = Duration::from_secs(60);
/// Without a reply for this long the server is taken for dead.
const PATIENCE: Duration = Duration::from_secs(30);
const INPUT_BUFFER: usize = 64 * 1024;

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// After this many requests.
    Requests(u64),
    /// After this time.
    After(Duration),
}

/// How hard to push.
#[derive(Clone, Copy, Debug)]
pub struct Pressure {
    pub connections: usize,
    /// Requests that a connection sends before it waits for their replies.
    pub pipeline: usize,
    pub threads: usize,
}

/// What came of a run.
pub struct Outcome {
    pub requests: u64,
    /// Error replies, and the text of the first one.
    pub errors: u64,
    pub first_error: Option<String>,
    /// Reads of keys that had no value.
    pub misses: u64,
    /// Reads whose value was another than the one written.
    pub mismatches: u64,
    pub elapsed: Duration,
    /// Nanoseconds from sending a batch to reading each of its replies.
    pub latency: Histogram<u64>,
}

impl Outcome {
    fn new() -> Self {
        let slowest = SLOWEST.as_nanos() as u64;
        Self {
            requests: 0,
            errors: 0,
            first_error: None,
            misses: 0,
            mismatches: 0,
            elapsed: Duration::ZERO,
            latency: Histogram::new_with_bounds(1000, slowest, 3).expect("the bounds are valid"),
        }
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
        self.misses += other.misses;
        self.mismatches += other.mismatches;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latency += other.latency;
    }

    /// Counts what is wrong with the reply to `operation`, if anything.
    #[inline]
    fn judge(&mut self, operation: Operation, reply: Token<'_>, dataset: &Dataset) {
        match reply {
            Token::Bulk(value) if operation.read => {
                self.mismatches += u64::from(value != dataset.value(operation.key));
            }
            Token::Null if operation.read => self.misses += 1,
            Token::Simple(_) if !operation.read => {}
            Token::Error(text) => {
                self.errors += 1;
                self.first_error.get_or_insert_with(|| String::from_utf8_lossy(text).into_owned());
            }
            other => {
                self.errors += 1;
                self.first_error.get_or_insert_with(|| format!("unexpected reply {other:?}"));
            }
        }
    }
}

/// One measurement.
pub struct Run<'a> {
    pub target: &'a Target,
    pub pressure: Pressure,
    pub dataset: &'a Dataset,
    pub plan: Plan,
    pub stop: Stop,
    pub seed: u64,
}

impl Run<'_> {
    /// Sends the requests of the plan until it is time to stop; `progress` follows.
    pub fn execute(&self, progress: &ProgressBar) -> Result<Outcome> {
        let threads = self.pressure.threads.min(self.pressure.connections);
        let ready = Barrier::new(threads);
        let answered = AtomicU64::new(0);
        let start = Instant::now();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    let (ready, answered) = (&ready, &answered);
                    scope.spawn(move || {
                        let worker = Worker::connect(self, thread as u64, threads as u64);
                        ready.wait();
                        worker?.run(answered).with_context(|| format!("while measuring {}", self.target))
                    })
                })
                .collect();
            while !workers.iter().all(|worker| worker.is_finished()) {
                progress.set_position(match self.stop {
                    Stop::Requests(_) => answered.load(Ordering::Relaxed),
                    Stop::After(_) => start.elapsed().as_millis() as u64,
                });
                std::thread::sleep(Duration::from_millis(20));
            }
            let mut total = Outcome::new();
            for worker in workers {
                total.add(worker.join().expect("a worker thread panicked")?);
            }
            Ok(total)
        })
    }
}

/// One thread and its connections.
struct Worker<'a> {
    connections: Vec<Connection>,
    poll: Poll,
    pipeline: usize,
    dataset: &'a Dataset,
    draw: Draw,
    /// Requests that may still be sent.
    allowance: u64,
    /// How long to send, if that is limited.
    time: Option<Duration>,
    outcome: Outcome,
}

struct Connection {
    socket: TcpStream,
    /// The requests of the batch, and how many of these bytes are sent.
    output: Vec<u8>,
    written: usize,
    /// Bytes that have arrived and not been looked at: the first `filled` ones.
    input: Vec<u8>,
    filled: usize,
    batch: Vec<Operation>,
    answered: usize,
    sent: Instant,
}

impl<'a> Worker<'a> {
    /// Connects the share of thread `thread` of `threads`.
    fn connect(run: &Run<'a>, thread: u64, threads: u64) -> Result<Self> {
        let share = |total: u64| total / threads + u64::from(thread < total % threads);
        let poll = Poll::new()?;
        let connections = (0..share(run.pressure.connections as u64) as usize)
            .map(|id| {
                let socket = Client::connect(run.target)?.into_socket();
                socket.set_nonblocking(true)?;
                let mut connection = Connection::new(TcpStream::from_std(socket));
                let interest = Interest::READABLE | Interest::WRITABLE;
                poll.registry().register(&mut connection.socket, Id(id), interest)?;
                Ok(connection)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            connections,
            poll,
            pipeline: run.pressure.pipeline,
            dataset: run.dataset,
            draw: Draw::new(run.plan, run.dataset.keys, run.seed, thread, threads),
            allowance: match run.stop {
                Stop::Requests(requests) => share(requests),
                Stop::After(_) => u64::MAX,
            },
            time: match run.stop {
                Stop::Requests(_) => None,
                Stop::After(time) => Some(time),
            },
            outcome: Outcome::new(),
        })
    }

    fn run(mut self, answered: &AtomicU64) -> Result<Outcome> {
        let start = Instant::now();
        let deadline = self.time.map(|time| start + time);
        let mut events = Events::with_capacity(1024);
        let mut connections = std::mem::take(&mut self.connections);
        let mut busy = 0;
        for connection in &mut connections {
            busy += usize::from(self.send_batch(connection, start)?);
        }
        while busy > 0 {
            match self.poll.poll(&mut events, Some(PATIENCE)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            ensure!(!events.is_empty(), "the server has not answered for {} seconds", PATIENCE.as_secs());
            for event in &events {
                let connection = &mut connections[event.token().0];
                if connection.is_done() {
                    continue; // it had its last reply
                }
                connection.flush()?;
                let count = self.receive(connection)?;
                if count == 0 {
                    continue;
                }
                let now = Instant::now();
                let latency = now.duration_since(connection.sent).as_nanos() as u64;
                self.outcome.latency.saturating_record_n(latency, count);
                self.outcome.requests += count;
                answered.fetch_add(count, Ordering::Relaxed);
                if connection.is_done() {
                    if deadline.is_some_and(|deadline| now >= deadline) {
                        self.allowance = 0;
                    }
                    busy -= usize::from(!self.send_batch(connection, now)?);
                }
            }
        }
        self.outcome.elapsed = start.elapsed();
        Ok(self.outcome)
    }

    /// Starts the next batch of a connection that has none, unless enough has been sent.
    fn send_batch(&mut self, connection: &mut Connection, now: Instant) -> Result<bool> {
        let count = self.allowance.min(self.pipeline as u64);
        self.allowance -= count;
        connection.batch.clear();
        connection.answered = 0;
        connection.output.clear();
        connection.written = 0;
        for _ in 0..count {
            let operation = self.draw.next();
            connection.batch.push(operation);
            self.dataset.append(operation, &mut connection.output);
        }
        connection.sent = now;
        connection.flush()?;
        Ok(count > 0)
    }

    /// Reads and checks what has arrived; returns how many replies that was.
    fn receive(&mut self, connection: &mut Connection) -> Result<u64> {
        let before = connection.answered;
        while !connection.is_done() && connection.read()? {
            let mut start = 0;
            while !connection.is_done() {
                let unread = &connection.input[start..connection.filled];
                let Some((reply, taken)) = next_token(unread, &ReplyLimits::default())? else { break };
                self.outcome.judge(connection.batch[connection.answered], reply, self.dataset);
                connection.answered += 1;
                start += taken;
            }
            connection.input.copy_within(start..connection.filled, 0);
            connection.filled -= start;
        }
        Ok((connection.answered - before) as u64)
    }
}

impl Connection {
    fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            output: Vec::new(),
            written: 0,
            input: vec![0; INPUT_BUFFER],
            filled: 0,
            batch: Vec::new(),
            answered: 0,
            sent: Instant::now(),
        }
    }

    /// Whether all replies to its batch have come.
    fn is_done(&self) -> bool {
        self.answered == self.batch.len()
    }

    /// Writes as much of the batch as the socket takes.
    fn flush(&mut self) -> Result<()> {
        while self.written < self.output.len() {
            match self.socket.write(&self.output[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot send"),
            }
        }
        Ok(())
    }

    /// Reads what is there; `false` if that is nothing.
    fn read(&mut self) -> Result<bool> {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        loop {
            match self.socket.read(&mut self.input[self.filled..]) {
                Ok(0) => anyhow::bail!("the server closed the connection"),
                Ok(count) => {
                    self.filled += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot receive"),
            }
        }
    }
}
