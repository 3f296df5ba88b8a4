//! The load generator: connections that send batches of requests and time the replies.
//!
//! It shares the machine with the server that it measures, so it does little itself: one thread drives many connections
//! through epoll, requests are copied from prepared bytes, replies are looked at where they arrive, and the clock is
//! read once a batch. Requests, and the check of replies, are for the [`Traffic`].

use std::io::{ErrorKind, Read, Write};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token as Id};

use super::client::Target;
use super::control::Control;
use crate::interrupt::Interrupt;

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

/// The strength of the load.
#[derive(Clone, Copy, Debug)]
pub struct Pressure {
    pub connections: usize,
    /// Requests that a connection sends before it waits for their replies.
    pub pipeline: usize,
}

/// The requests of the connections of one thread, and the check of their replies.
pub trait Traffic: Send {
    /// State of a request, kept until its reply comes.
    type Request;

    /// Appends the next request of a connection, by its number within the thread; `None` if it has no more to ask.
    fn ask(&mut self, connection: usize, out: &mut Vec<u8>) -> Result<Option<Self::Request>>;

    /// Looks at the reply that `input` begins with; returns its length, or `None` if it is not all there.
    ///
    /// An error ends the measurement.
    fn hear(&mut self, request: &mut Self::Request, input: &[u8]) -> Result<Option<usize>>;
}

/// The results of a run.
pub struct Outcome {
    pub requests: u64,
    pub elapsed: Duration,
    /// Nanoseconds from sending a batch to reading each of its replies.
    pub latency: Histogram<u64>,
}

impl Outcome {
    fn new() -> Self {
        let slowest = SLOWEST.as_nanos() as u64;
        Self {
            requests: 0,
            elapsed: Duration::ZERO,
            latency: Histogram::new_with_bounds(1000, slowest, 3).expect("the bounds are valid"),
        }
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latency += other.latency;
    }

    /// Requests a second, as tables show them.
    pub fn rate(&self) -> String {
        format!("{:.0}", self.requests.max(1) as f64 / self.elapsed.as_secs_f64())
    }

    /// Microseconds of processor time for each request, as tables show them.
    pub fn cpu_each(&self, cpu: Option<Duration>) -> String {
        let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / self.requests.max(1) as f64;
        cpu.map_or("n/a".to_owned(), |cpu| format!("{:.2}", each(cpu)))
    }

    /// Microseconds within which this share of replies came, as tables show them; all of them at 100.
    pub fn percentile(&self, percent: f64) -> String {
        format!("{:.1}", self.latency.value_at_percentile(percent) as f64 / 1000.0)
    }
}

/// One measurement.
pub struct Run<'a> {
    pub target: &'a Target,
    pub pressure: Pressure,
    pub stop: Stop,
    /// Ends it earlier, when the replies to what was sent are there.
    pub interrupt: &'a Interrupt,
}

impl Run<'_> {
    /// Sends requests from a thread for each traffic until it is time to stop, with a progress bar on a terminal; gives
    /// the traffic back.
    pub fn execute<T: Traffic>(&self, name: &'static str, traffic: Vec<T>) -> Result<(Outcome, Vec<T>)> {
        let (length, template) = match self.stop {
            Stop::Requests(requests) => {
                (requests, "{msg:>13} {wide_bar} {human_pos} of {human_len} requests, {eta} left")
            }
            Stop::After(time) => (time.as_millis() as u64, "{msg:>13} {wide_bar} {percent} %, {eta} left"),
        };
        let progress = ProgressBar::new(length).with_message(name);
        progress.set_style(ProgressStyle::with_template(template)?);
        let found = self.work(traffic, &progress);
        progress.finish_and_clear();
        found
    }

    fn work<T: Traffic>(&self, traffic: Vec<T>, progress: &ProgressBar) -> Result<(Outcome, Vec<T>)> {
        let threads = traffic.len();
        let ready = Barrier::new(threads);
        let answered = AtomicU64::new(0);
        let start = Instant::now();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (traffic.into_iter().enumerate())
                .map(|(thread, traffic)| {
                    let (ready, answered) = (&ready, &answered);
                    scope.spawn(move || {
                        let worker = Worker::connect(self, traffic, thread as u64, threads as u64);
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
            let (mut total, mut traffic) = (Outcome::new(), Vec::new());
            for worker in workers {
                let (outcome, used) = worker.join().expect("a worker thread panicked")?;
                total.add(outcome);
                traffic.push(used);
            }
            Ok((total, traffic))
        })
    }
}

/// One thread and its connections.
struct Worker<'a, T: Traffic> {
    connections: Vec<Connection<T::Request>>,
    poll: Poll,
    pipeline: usize,
    traffic: T,
    /// Requests that may still be sent.
    allowance: u64,
    /// Time to send, if that is limited.
    time: Option<Duration>,
    interrupt: &'a Interrupt,
    outcome: Outcome,
}

struct Connection<R> {
    socket: TcpStream,
    /// The requests of the batch, and how many of these bytes are sent.
    output: Vec<u8>,
    written: usize,
    /// Bytes that have arrived and not been looked at: the first `filled` ones.
    input: Vec<u8>,
    filled: usize,
    batch: Vec<R>,
    answered: usize,
    sent: Instant,
}

impl<'a, T: Traffic> Worker<'a, T> {
    /// Connects the share of thread `thread` of `threads`.
    fn connect(run: &Run<'a>, traffic: T, thread: u64, threads: u64) -> Result<Self> {
        let share = |total: u64| total / threads + u64::from(thread < total % threads);
        let poll = Poll::new()?;
        let connections = (0..share(run.pressure.connections as u64) as usize)
            .map(|id| {
                let socket = Control::connect(run.target)?.into_socket();
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
            traffic,
            allowance: match run.stop {
                Stop::Requests(requests) => share(requests),
                Stop::After(_) => u64::MAX,
            },
            time: match run.stop {
                Stop::Requests(_) => None,
                Stop::After(time) => Some(time),
            },
            interrupt: run.interrupt,
            outcome: Outcome::new(),
        })
    }

    fn run(mut self, answered: &AtomicU64) -> Result<(Outcome, T)> {
        let start = Instant::now();
        let deadline = self.time.map(|time| start + time);
        let mut events = Events::with_capacity(1024);
        let mut connections = std::mem::take(&mut self.connections);
        let mut busy = 0;
        for (id, connection) in connections.iter_mut().enumerate() {
            busy += usize::from(self.send_batch(id, connection, start)?);
        }
        while busy > 0 {
            match self.poll.poll(&mut events, Some(PATIENCE)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            ensure!(!events.is_empty(), "the server has not answered for {} seconds", PATIENCE.as_secs());
            for event in &events {
                let Id(id) = event.token();
                let connection = &mut connections[id];
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
                    if self.interrupt.is_set() || deadline.is_some_and(|deadline| now >= deadline) {
                        self.allowance = 0;
                    }
                    busy -= usize::from(!self.send_batch(id, connection, now)?);
                }
            }
        }
        self.outcome.elapsed = start.elapsed();
        Ok((self.outcome, self.traffic))
    }

    /// Starts the next batch of a connection that has none, unless enough has been sent.
    fn send_batch(
        &mut self,
        id: usize,
        connection: &mut Connection<T::Request>,
        now: Instant,
    ) -> Result<bool> {
        connection.batch.clear();
        connection.answered = 0;
        connection.output.clear();
        connection.written = 0;
        for _ in 0..self.allowance.min(self.pipeline as u64) {
            let Some(request) = self.traffic.ask(id, &mut connection.output)? else { break };
            connection.batch.push(request);
        }
        self.allowance -= connection.batch.len() as u64;
        connection.sent = now;
        connection.flush()?;
        Ok(!connection.batch.is_empty())
    }

    /// Reads and checks what has arrived; returns how many replies that was.
    fn receive(&mut self, connection: &mut Connection<T::Request>) -> Result<u64> {
        let before = connection.answered;
        while !connection.is_done() && connection.read()? {
            let mut start = 0;
            while !connection.is_done() {
                let unread = &connection.input[start..connection.filled];
                let request = &mut connection.batch[connection.answered];
                let Some(taken) = self.traffic.hear(request, unread)? else { break };
                connection.answered += 1;
                start += taken;
            }
            if start > 0 {
                connection.input.copy_within(start..connection.filled, 0);
                connection.filled -= start;
            }
        }
        Ok((connection.answered - before) as u64)
    }
}

impl<R> Connection<R> {
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
