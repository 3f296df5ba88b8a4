//! One client that waits for a list: what it wants, and what it is answered.
//!
//! The thread that serves it, its timeout, CLIENT UNBLOCK and the end of its connection are different threads; the
//! first of them ends the wait, and while it is being served the others have to wait for the result.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use snugly_protocol::resp::{ReplyBuffer, RequestQueue};
use snugly_store::{End, Ticket};

use crate::clients::ClientInfo;

/// A key of a list, and one of its ends.
pub(crate) type ListEnd = (Box<[u8]>, End);

/// The operation that a client waits for.
pub(crate) enum BlockedOn {
    /// An element of the first key that has a list; or with a number, up to so many.
    Elements { keys: Vec<Box<[u8]>>, end: End, count: Option<u64> },
    /// An element, to be moved to another list.
    Move { from: ListEnd, to: ListEnd },
}

/// Reason why a wait ends without an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its time is over.
    TimedOut,
    /// The wait is ended with an error.
    Unblocked,
    /// The server follows another one, whose lists are not for its clients to take.
    Following,
    /// The client has gone.
    Gone,
}

/// The reply after a wait.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) reply: Vec<u8>,
    /// The write that the reply tells of.
    pub(crate) ticket: Option<Ticket>,
    /// Reason why there is no element.
    pub(crate) ending: Option<Ending>,
}

/// A wait.
pub(crate) struct Waiter {
    pub(crate) client: Arc<ClientInfo>,
    pub(crate) database: usize,
    pub(crate) wanted: BlockedOn,
    /// The command that waits, as it was sent.
    pub(crate) request: RequestQueue,
    progress: Mutex<Progress>,
}

struct Progress {
    state: State,
    task: Option<Waker>,
}

enum State {
    Waiting,
    /// A thread tries to serve it; if that fails, the wait ends with this reason.
    BeingServed(Option<Ending>),
    Answered(Answer),
    /// The wait was answered, and the answer was taken.
    Over,
}

impl BlockedOn {
    /// The keys that are waited for.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let (several, one) = match self {
            BlockedOn::Elements { keys, .. } => (&keys[..], None),
            BlockedOn::Move { from, .. } => (&[][..], Some(&from.0)),
        };
        several.iter().chain(one).map(|key| &**key)
    }

    /// All keys that change when it is served.
    pub(crate) fn touched_keys(&self) -> impl Iterator<Item = &[u8]> {
        let target = match self {
            BlockedOn::Elements { .. } => None,
            BlockedOn::Move { to, .. } => Some(&*to.0),
        };
        self.keys().chain(target)
    }
}

impl Ending {
    fn answer(self, client: &ClientInfo) -> Answer {
        let mut reply = ReplyBuffer::new(client.protocol());
        match self {
            Ending::TimedOut => reply.null_array(),
            Ending::Unblocked => reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK"),
            Ending::Following => {
                reply.error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)");
            }
            Ending::Gone => {}
        }
        Answer { reply: reply.as_bytes().to_vec(), ticket: None, ending: Some(self) }
    }
}

impl Waiter {
    pub(crate) fn new(
        client: Arc<ClientInfo>,
        database: usize,
        wanted: BlockedOn,
        request: RequestQueue,
    ) -> Waiter {
        let progress = Mutex::new(Progress { state: State::Waiting, task: None });
        Waiter { client, database, wanted, request, progress }
    }

    /// Returns whether it still waits; then it is served now, until [`finish`](Self::finish).
    pub(super) fn begin(&self) -> bool {
        let mut progress = self.progress.lock();
        let waits = matches!(progress.state, State::Waiting);
        if waits {
            progress.state = State::BeingServed(None);
        }
        waits
    }

    /// Serving is done: it is answered, or waits on unless something has ended that meanwhile. Returns
    /// whether it is over.
    pub(super) fn finish(&self, answer: Option<Answer>) -> bool {
        let mut progress = self.progress.lock();
        let State::BeingServed(ending) = progress.state else { return true };
        match answer.or_else(|| ending.map(|ending| ending.answer(&self.client))) {
            Some(answer) => {
                progress.answer(answer);
                true
            }
            None => {
                progress.state = State::Waiting;
                false
            }
        }
    }

    /// Ends it, unless something else has; while it is served, unless it gets something.
    pub(super) fn end(&self, ending: Ending) -> Ended {
        let mut progress = self.progress.lock();
        match &mut progress.state {
            State::Waiting => {
                progress.answer(ending.answer(&self.client));
                Ended::Now
            }
            State::BeingServed(other) => {
                other.get_or_insert(ending);
                Ended::Soon
            }
            State::Answered(_) | State::Over => Ended::Before,
        }
    }

    /// The reply, once there is one.
    pub(crate) async fn answered(&self) -> Answer {
        poll_fn(|context| {
            let mut progress = self.progress.lock();
            if !matches!(progress.state, State::Answered(_)) {
                progress.task = Some(context.waker().clone());
                return Poll::Pending;
            }
            match std::mem::replace(&mut progress.state, State::Over) {
                State::Answered(answer) => Poll::Ready(answer),
                _ => unreachable!("it was just looked at"),
            }
        })
        .await
    }
}

/// The result of an attempt to end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Now,
    /// A thread is just serving it, and ends it.
    Soon,
    Before,
}

impl Progress {
    fn answer(&mut self, answer: Answer) {
        self.state = State::Answered(answer);
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }
}
