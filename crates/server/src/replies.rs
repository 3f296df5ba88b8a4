//! The replies of a turn: bytes, and large values among them that are decoded only as the socket takes them, so that a
//! request of a few bytes cannot make the server hold many times what it stores.
//!
//! It knows values and how they are framed. It knows no sockets and no commands.

use std::collections::{HashMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use snugly_protocol::resp::{Protocol, ReplyBuffer};
use snugly_store::{KeptValue, Session, StoreError, Value};

/// Values from this length on are decoded once for all connections that send them at the same time.
const SHARED_FROM: usize = 1 << 20;
/// Replies that are this long are sent before more requests are run.
const ENOUGH: usize = 256 << 10;
/// Behind so many bytes of replies, values from this length on are decoded only as the socket takes them.
const LATE_FROM: usize = 512;

/// The replies to the requests of a turn.
#[derive(Default)]
pub(crate) struct Replies {
    buffer: ReplyBuffer,
    late: VecDeque<Late>,
    /// What the late values will take on the wire.
    late_bytes: usize,
}

/// A value that belongs at this place of the bytes.
struct Late {
    at: usize,
    value: KeptValue,
}

/// Replies on their way to the socket.
#[derive(Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    /// How many of the bytes were handed out.
    taken: usize,
    late: VecDeque<Late>,
}

/// What is sent next.
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    Shared(Arc<Decoded>),
}

impl Deref for Replies {
    type Target = ReplyBuffer;

    fn deref(&self) -> &ReplyBuffer {
        &self.buffer
    }
}

impl DerefMut for Replies {
    fn deref_mut(&mut self) -> &mut ReplyBuffer {
        &mut self.buffer
    }
}

impl Replies {
    pub(crate) fn new(protocol: Protocol) -> Replies {
        Replies { buffer: ReplyBuffer::new(protocol), ..Replies::default() }
    }

    /// How long the replies are on the wire.
    pub(crate) fn wire_len(&self) -> usize {
        self.buffer.as_bytes().len() + self.late_bytes
    }

    /// Whether they are long enough to be sent before more requests are run.
    pub(crate) fn is_enough(&self) -> bool {
        self.wire_len() >= ENOUGH
    }

    pub(crate) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Answers a value.
    pub(crate) fn value(&mut self, session: &mut Session, value: &Value) -> Result<(), StoreError> {
        let len = value.len();
        if len >= SHARED_FROM || len >= LATE_FROM && self.is_enough() {
            self.buffer.begin_absent_bulk(len);
            self.late
                .push_back(Late { at: self.buffer.as_bytes().len(), value: session.keep(value.clone()) });
            self.late_bytes += len;
            self.buffer.end_bulk();
            return Ok(());
        }
        if let Some(out) = self.buffer.begin_bulk(len) {
            session.read(value, out)?;
            self.buffer.end_bulk();
        }
        Ok(())
    }

    /// Takes back all replies but those of the first `len` bytes, late values not counted.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.buffer.as_mut_vec().truncate(len);
        while let Some(late) = self.late.pop_back_if(|late| late.at > len) {
            self.late_bytes -= late.value.value().len();
        }
    }

    /// Takes all replies away, to be sent.
    pub(crate) fn take(&mut self) -> Outgoing {
        self.late_bytes = 0;
        let late = std::mem::take(&mut self.late);
        Outgoing { bytes: std::mem::take(self.buffer.as_mut_vec()), taken: 0, late }
    }
}

impl From<Vec<u8>> for Outgoing {
    fn from(bytes: Vec<u8>) -> Outgoing {
        Outgoing { bytes, ..Outgoing::default() }
    }
}

impl Outgoing {
    /// What is sent next; `None` if everything was handed out.
    ///
    /// # Errors
    /// A value that cannot be read: the reply cannot be ended any more.
    pub(crate) fn next(
        &mut self,
        session: &mut Session,
        values: &DecodedValues,
    ) -> Result<Option<Piece>, StoreError> {
        let mut piece = Vec::new();
        while let Some(late) = self.late.front() {
            piece.extend_from_slice(&self.bytes[self.taken..late.at]);
            self.taken = late.at;
            if late.value.value().len() >= SHARED_FROM {
                if piece.is_empty()
                    && let Some(late) = self.late.pop_front()
                {
                    return Ok(Some(Piece::Shared(values.get(late.value))));
                }
                return Ok(Some(Piece::Bytes(piece)));
            }
            session.read_kept(&late.value, &mut piece)?;
            self.late.pop_front();
            if piece.len() >= ENOUGH {
                return Ok(Some(Piece::Bytes(piece)));
            }
        }
        let mut rest = std::mem::take(&mut self.bytes);
        rest.drain(..std::mem::take(&mut self.taken));
        // Replies without late values are not copied.
        if piece.is_empty() {
            piece = rest;
        } else {
            piece.append(&mut rest);
        }
        Ok((!piece.is_empty()).then_some(Piece::Bytes(piece)))
    }

    /// Bytes of memory that they take: what was answered, and values that are kept for it, as they are stored.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.late.iter().map(|late| late.value.value().memory()).sum::<usize>()
    }
}

/// Large values that are being sent, decoded once for all connections that send them.
#[derive(Default)]
pub(crate) struct DecodedValues {
    /// By the value's identity.
    values: Mutex<HashMap<usize, Weak<Decoded>>>,
    bytes: Arc<AtomicUsize>,
}

/// A large value, decoded when the first connection sends it.
pub(crate) struct Decoded {
    value: KeptValue,
    bytes: OnceLock<Result<Vec<u8>, String>>,
    /// What all of them take.
    total: Arc<AtomicUsize>,
}

impl DecodedValues {
    fn get(&self, value: KeptValue) -> Arc<Decoded> {
        let identity = value.value().identity();
        let mut values = self.values.lock();
        // Nobody else can have this identity as long as somebody sends the value.
        if let Some(decoded) = values.get(&identity).and_then(Weak::upgrade) {
            return decoded;
        }
        values.retain(|_, decoded| decoded.strong_count() > 0);
        let decoded = Arc::new(Decoded { value, bytes: OnceLock::new(), total: self.bytes.clone() });
        values.insert(identity, Arc::downgrade(&decoded));
        decoded
    }

    /// Bytes that the values take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Decoded {
    /// How many bytes the value has.
    pub(crate) fn len(&self) -> usize {
        self.value.value().len()
    }

    /// The value's [`Value::identity`].
    pub(crate) fn identity(&self) -> usize {
        self.value.value().identity()
    }

    /// Whether somebody has decoded it.
    pub(crate) fn is_there(&self) -> bool {
        self.bytes.get().is_some()
    }

    /// The value's bytes, decoded by the first who asks.
    ///
    /// # Errors
    /// Why it cannot be read, or that the system has no memory for it.
    pub(crate) fn bytes(&self, session: &mut Session) -> Result<&[u8], &str> {
        let decoded = self.bytes.get_or_init(|| {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(self.len()).map_err(|error| error.to_string())?;
            session.read_kept(&self.value, &mut bytes).map_err(|error| error.to_string())?;
            self.total.fetch_add(bytes.capacity(), Ordering::Relaxed);
            Ok(bytes)
        });
        decoded.as_ref().map(|bytes| &bytes[..]).map_err(|reason| &reason[..])
    }
}

impl Drop for Decoded {
    fn drop(&mut self) {
        if let Some(Ok(bytes)) = self.bytes.get() {
            self.total.fetch_sub(bytes.capacity(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use snugly_store::{Choice, Condition, Config, Expiry, Store};

    use super::*;

    fn session() -> Session {
        Store::new(Config::new(Choice::new("none", None, 64).expect("it is in every build"))).session()
    }

    fn stored(session: &mut Session, key: &[u8], bytes: &[u8]) -> Value {
        session.set(0, key, bytes, Expiry::Never, Condition::Always).expect("there is room");
        session.get(0, key).expect("undamaged").expect("it was just written")
    }

    fn sent(session: &mut Session, mut replies: Outgoing, values: &DecodedValues) -> Vec<u8> {
        let mut sent = Vec::new();
        while let Some(piece) = replies.next(session, values).expect("readable") {
            match piece {
                Piece::Bytes(bytes) => sent.extend_from_slice(&bytes),
                Piece::Shared(value) => sent.extend_from_slice(value.bytes(session).expect("readable")),
            }
        }
        sent
    }

    fn bulk(bytes: &[u8]) -> Vec<u8> {
        [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
    }

    #[test]
    fn values_come_in_their_order_whenever_they_are_decoded() {
        let mut session = session();
        let lens =
            [3, SHARED_FROM, 0, SHARED_FROM + 1, LATE_FROM, LATE_FROM - 1, 100_000, SHARED_FROM, 200_000];
        let mut replies = Replies::default();
        let mut expected = Vec::new();
        for (number, len) in lens.into_iter().enumerate() {
            let bytes = vec![b'a' + number as u8; len];
            let value = stored(&mut session, &[number as u8], &bytes);
            replies.value(&mut session, &value).expect("readable");
            expected.extend(bulk(&bytes));
        }
        assert_eq!(replies.wire_len(), expected.len());
        let outgoing = replies.take();
        assert!(outgoing.memory() < expected.len() * 2);
        assert!(sent(&mut session, outgoing, &DecodedValues::default()) == expected);
        assert_eq!((replies.wire_len(), replies.has_late()), (0, false));
    }

    #[test]
    fn what_is_taken_back_is_not_sent() {
        let mut session = session();
        let large = stored(&mut session, b"large", &vec![b'x'; SHARED_FROM]);
        let mut replies = Replies::default();
        replies.value(&mut session, &large).expect("readable");
        let len = replies.as_bytes().len();
        replies.value(&mut session, &large).expect("readable");
        replies.truncate(len);
        replies.simple("OK");
        let expected = [bulk(&vec![b'x'; SHARED_FROM]), b"+OK\r\n".to_vec()].concat();
        assert_eq!(replies.wire_len(), expected.len());
        let outgoing = replies.take();
        assert!(sent(&mut session, outgoing, &DecodedValues::default()) == expected);
    }

    #[test]
    fn a_value_is_decoded_once_for_all_who_are_sent_it_and_let_go_after_the_last() {
        let mut session = session();
        let large = stored(&mut session, b"large", &vec![b'x'; SHARED_FROM]);
        let values = DecodedValues::default();
        let [first, second] = [(); 2].map(|()| values.get(session.keep(large.clone())));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!((first.is_there(), values.bytes()), (false, 0));
        first.bytes(&mut session).expect("readable");
        assert_eq!((second.is_there(), values.bytes()), (true, SHARED_FROM));
        drop((first, second));
        assert_eq!(values.bytes(), 0);
    }
}
