//! Tasks of the [manager](crate::Manager), the requests that they make, and the answers of the driver that
//! fulfils them.
//!
//! A [`Task`] is an `async` function without an executor. Each of its awaits is one [`Request`]; the driver
//! answers it and gives the time. The order of steps is thus written down once, and connections, threads,
//! event loops and clocks stay outside.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use snugly_codec::Dictionary;

/// A command, argument by argument.
pub type Command = Vec<Vec<u8>>;

/// The time when a request is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Time of a clock that never goes back, since any moment.
    pub monotonic: Duration,
    /// Time of the wall clock, since 1970.
    pub wall: Duration,
}

/// A request to the driver of a task.
#[derive(Clone, Debug)]
pub enum Request {
    /// Send these commands in one round trip, and answer [`Answer::Replies`], one for each.
    Send(Vec<Command>),
    /// Wait for this time, and answer [`Answer::Done`].
    Sleep(Duration),
    /// Read the existing copies of these dictionaries, and answer [`Answer::Copies`].
    ReadCopies(Vec<u32>),
    /// Keep copies of these dictionaries, and answer [`Answer::Done`].
    WriteCopies(Vec<Arc<Dictionary>>),
    /// Remove the copies of these dictionaries, and answer [`Answer::Done`].
    RemoveCopies(Vec<u32>),
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Replies to commands, in their order.
    Replies(Vec<Result<Reply, Failure>>),
    /// Commands that may not have reached the server: there is no connection, or it was lost.
    Lost(String),
    /// Copies, each with the place where it is and its bytes.
    Copies(Vec<(u32, String, Vec<u8>)>),
    /// Completion of a request that has no result.
    Done,
}

/// A reply that is not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Null, of any kind.
    Nil,
    /// A simple or bulk string.
    Bytes(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// Anything else.
    Other,
}

impl Reply {
    /// Returns the bytes, if it is a string.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Reply::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns whether the command found or did something: not null and not 0.
    pub fn is_something(&self) -> bool {
        !matches!(self, Reply::Nil | Reply::Integer(0))
    }
}

/// The reason why a command has no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The user may not do it (NOPERM).
    #[error("{0}")]
    Denied(String),
    /// Any other error that the server answers.
    #[error("{0}")]
    Refused(String),
    /// There is no connection, or it was lost.
    #[error("{0}")]
    Lost(String),
}

/// An event for logs or statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A warning for the log.
    Warning(String),
    /// A dictionary was fetched, or its copy was read.
    Fetched,
    /// A missing dictionary was put back on the server.
    PutBack,
    /// A wrong value in a dictionary's place was overwritten.
    Mended,
    /// The catalogue is gone: all data was deleted, and dictionaries trained from it are useless.
    CatalogueLost,
}

/// The next step of a task, and the events on the way to it.
#[derive(Debug)]
pub struct Step<T> {
    /// Events since the last step.
    pub events: Vec<Event>,
    /// The request, or the end.
    pub next: Next<T>,
}

/// Continuation of a task.
#[derive(Debug)]
pub enum Next<T> {
    /// Request whose answer is given to [`Task::resume`].
    Ask(Request),
    /// The task has ended.
    Done(T),
}

#[derive(Default)]
struct Slot {
    request: Option<Request>,
    answer: Option<Answer>,
    now: Now,
    events: Vec<Event>,
}

/// The task's side of the exchange.
#[derive(Clone, Default)]
pub(crate) struct Driver(Arc<Mutex<Slot>>);

impl Driver {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time of the last answer.
    pub(crate) fn now(&self) -> Now {
        self.slot().now
    }

    pub(crate) fn tell(&self, event: Event) {
        self.slot().events.push(event);
    }

    async fn ask(&self, request: Request) -> Answer {
        self.slot().request = Some(request);
        poll_fn(|_| self.slot().answer.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    pub(crate) async fn sleep(&self, pause: Duration) {
        self.ask(Request::Sleep(pause)).await;
    }

    /// Sends one command.
    pub(crate) async fn send(&self, command: Command) -> Result<Reply, Failure> {
        self.send_all(vec![command]).await?.pop().unwrap_or_else(|| Err(Failure::Lost("no reply".to_owned())))
    }

    /// Sends commands in one round trip; returns as many replies.
    pub(crate) async fn send_all(
        &self,
        commands: Vec<Command>,
    ) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        let count = commands.len();
        match self.ask(Request::Send(commands)).await {
            Answer::Replies(replies) if replies.len() == count => Ok(replies),
            Answer::Lost(reason) => Err(Failure::Lost(reason)),
            _ => Err(Failure::Lost(format!("{count} commands have not as many replies"))),
        }
    }

    pub(crate) async fn read_copies(&self, ids: Vec<u32>) -> Vec<(u32, String, Vec<u8>)> {
        match self.ask(Request::ReadCopies(ids)).await {
            Answer::Copies(copies) => copies,
            _ => Vec::new(),
        }
    }

    pub(crate) async fn write_copies(&self, dictionaries: Vec<Arc<Dictionary>>) {
        self.ask(Request::WriteCopies(dictionaries)).await;
    }

    pub(crate) async fn remove_copies(&self, ids: Vec<u32>) {
        self.ask(Request::RemoveCopies(ids)).await;
    }
}

/// A procedure that waits for its driver. It can be dropped at any step.
pub struct Task<T> {
    steps: Pin<Box<dyn Future<Output = T> + Send>>,
    driver: Driver,
}

impl<T> Task<T> {
    pub(crate) fn new<F>(start: impl FnOnce(Driver) -> F) -> Task<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let driver = Driver::default();
        Task { steps: Box::pin(start(driver.clone())), driver }
    }

    /// Runs the task to its first request.
    pub fn start(&mut self, now: Now) -> Step<T> {
        self.driver.slot().now = now;
        self.step()
    }

    /// Passes on the answer to the last request, and runs to the next.
    pub fn resume(&mut self, answer: Answer, now: Now) -> Step<T> {
        let mut slot = self.driver.slot();
        (slot.answer, slot.now) = (Some(answer), now);
        drop(slot);
        self.step()
    }

    fn step(&mut self) -> Step<T> {
        let polled = self.steps.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let mut slot = self.driver.slot();
        let next = match polled {
            Poll::Ready(outcome) => Next::Done(outcome),
            Poll::Pending => Next::Ask(slot.request.take().expect("a task waits for nothing but its driver")),
        };
        Step { events: std::mem::take(&mut slot.events), next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(seconds: u64) -> Now {
        Now { monotonic: Duration::from_secs(seconds), wall: Duration::ZERO }
    }

    #[test]
    fn a_task_asks_is_answered_and_ends() {
        let mut task = Task::new(|driver| async move {
            let reply = driver.send(vec![b"GET".to_vec(), b"key".to_vec()]).await;
            driver.tell(Event::Fetched);
            (reply, driver.now())
        });
        let step = task.start(now(1));
        assert!(matches!(&step.next, Next::Ask(Request::Send(commands)) if commands.len() == 1));
        assert!(step.events.is_empty());
        let step = task.resume(Answer::Replies(vec![Ok(Reply::Nil)]), now(2));
        assert_eq!(step.events, [Event::Fetched]);
        assert!(matches!(step.next, Next::Done((Ok(Reply::Nil), at)) if at == now(2)));
    }

    #[test]
    fn too_few_replies_are_a_lost_connection() {
        let mut task = Task::new(|driver| async move { driver.send_all(vec![Vec::new(), Vec::new()]).await });
        task.start(now(0));
        let step = task.resume(Answer::Replies(vec![Ok(Reply::Nil)]), now(0));
        assert!(matches!(step.next, Next::Done(Err(Failure::Lost(_)))));
    }
}
