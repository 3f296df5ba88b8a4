//! Messages for a client that answer none of its requests: the stream of MONITOR, notices that a key has
//! changed.
//!
//! Any thread may push; the connection's own task is woken, and takes the messages between two replies. The
//! box is bounded: a push into a full one fails, and its caller has to end the connection. It knows bytes and
//! a task to wake, and nothing of sockets or of what the bytes mean.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

/// Bytes that may wait before no message is taken any more; the one that passes this is still taken whole.
pub const CAPACITY: usize = 32 << 20;

/// The messages of one connection.
#[derive(Default)]
pub struct Outbox {
    /// Whether there are messages: all that a connection without any has to look at.
    waiting: AtomicBool,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    /// Whether nothing is kept any more.
    closed: bool,
    task: Option<Waker>,
}

/// Too many bytes wait: the client does not take its messages.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("too many bytes of messages wait, and the client does not take them")
    }
}

impl std::error::Error for Full {}

impl Outbox {
    /// Adds a message, which is a whole reply in the client's version of the protocol, and wakes the connection.
    ///
    /// # Errors
    /// [`Full`], once: the box lets go of all that it holds, and ignores what comes later.
    pub fn push(&self, message: &[u8]) -> Result<(), Full> {
        self.push_within(message, CAPACITY)
    }

    /// Adds a message as [`push`](Self::push) does, with another limit than [`CAPACITY`]: no message is taken any more once
    /// `most` bytes wait, and the one that passes this is still taken whole.
    ///
    /// # Errors
    /// [`Full`], as for [`push`](Self::push).
    pub fn push_within(&self, message: &[u8], most: usize) -> Result<(), Full> {
        let mut queue = self.queue.lock();
        if queue.closed {
            return Ok(());
        }
        if queue.bytes.len() >= most {
            queue.close();
            return Err(Full);
        }
        let was_empty = queue.bytes.is_empty();
        queue.bytes.extend_from_slice(message);
        self.waiting.store(true, Ordering::Release);
        let task = if was_empty { queue.task.clone() } else { None };
        drop(queue);
        if let Some(task) = task {
            task.wake();
        }
        Ok(())
    }

    /// The task to wake from now on. It must look at [`is_empty`](Self::is_empty) after this call and before it sleeps.
    pub fn attach(&self, task: &Waker) {
        self.queue.lock().task = Some(task.clone());
    }

    /// Drops what it holds, accepts nothing any more, and wakes the connection, which is to end.
    pub fn close(&self) {
        let mut queue = self.queue.lock();
        queue.close();
        let task = queue.task.clone();
        drop(queue);
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Returns whether it takes nothing any more.
    pub fn is_closed(&self) -> bool {
        self.queue.lock().closed
    }

    /// Returns whether no messages wait.
    pub fn is_empty(&self) -> bool {
        !self.waiting.load(Ordering::Acquire)
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.queue.lock().bytes.len() }
    }

    /// Moves all messages behind `replies`.
    pub fn drain_into(&self, replies: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let mut queue = self.queue.lock();
        self.waiting.store(false, Ordering::Release);
        let messages = std::mem::take(&mut queue.bytes);
        drop(queue);
        replies.extend_from_slice(&messages);
    }
}

impl Queue {
    fn close(&mut self) {
        self.closed = true;
        self.bytes = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn messages_come_out_in_order_and_once() {
        let outbox = Outbox::default();
        assert!(outbox.is_empty());
        outbox.push(b"+a\r\n").expect("there is room");
        outbox.push(b"+b\r\n").expect("there is room");
        assert_eq!((outbox.is_empty(), outbox.len()), (false, 8));
        let mut replies = b":1\r\n".to_vec();
        outbox.drain_into(&mut replies);
        outbox.drain_into(&mut replies);
        assert_eq!(replies, b":1\r\n+a\r\n+b\r\n");
        assert!(outbox.is_empty());
    }

    #[test]
    fn the_task_is_woken_once_until_it_has_taken_what_waits() {
        let outbox = Outbox::default();
        let counter = Arc::<Counter>::default();
        outbox.attach(&counter.clone().into());
        for _ in 0..2 {
            outbox.push(b"+a\r\n").expect("there is room");
            outbox.push(b"+b\r\n").expect("there is room");
            outbox.drain_into(&mut Vec::new());
        }
        assert_eq!(counter.0.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_full_box_says_so_once_and_keeps_nothing() {
        let outbox = Outbox::default();
        outbox.push(&vec![b'a'; CAPACITY - 1]).expect("there is room");
        outbox.push(b"the message that passes the limit is taken whole").expect("there is room");
        assert_eq!(outbox.push(b"+b\r\n"), Err(Full));
        assert_eq!(outbox.push(b"+c\r\n"), Ok(()));
        let mut replies = Vec::new();
        outbox.drain_into(&mut replies);
        assert!(replies.is_empty());
    }

    #[test]
    fn a_limit_of_the_callers_takes_the_place_of_the_capacity() {
        let outbox = Outbox::default();
        assert_eq!(outbox.push_within(b"123", 4), Ok(()));
        assert_eq!(outbox.push_within(b"45", 4), Ok(()));
        assert_eq!(outbox.push_within(b"6", 4), Err(Full));
        assert_eq!((outbox.push_within(b"7", 4), outbox.len()), (Ok(()), 0));
    }

    #[test]
    fn closing_wakes_the_task_and_keeps_nothing() {
        let outbox = Outbox::default();
        let counter = Arc::<Counter>::default();
        outbox.push(b"+a\r\n").expect("there is room");
        outbox.attach(&counter.clone().into());
        assert!(!outbox.is_closed());
        outbox.close();
        assert_eq!((outbox.is_closed(), outbox.len(), counter.0.load(Ordering::SeqCst)), (true, 0, 1));
    }

    #[test]
    fn no_message_of_several_threads_is_lost() {
        let outbox = Arc::<Outbox>::default();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let outbox = outbox.clone();
                std::thread::spawn(move || (0..1000).try_for_each(|_| outbox.push(b"12345678")))
            })
            .collect();
        let mut taken = Vec::new();
        while taken.len() < 4 * 1000 * 8 {
            outbox.drain_into(&mut taken);
            std::thread::yield_now();
        }
        for thread in threads {
            thread.join().expect("pushing does not panic").expect("there is room");
        }
        assert_eq!(taken, b"12345678".repeat(4000));
    }
}
