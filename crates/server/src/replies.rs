//! The replies of a turn: bytes, and among them large values and ranges of lists that are decoded only as the socket takes
//! them, so that a request of a few bytes cannot make the server hold many times what it stores.
//!
//! It knows values and how they are framed. It knows no sockets and no commands.

use std::collections::{HashMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use snugly_protocol::resp::{Protocol, ReplyBuffer};
use snugly_store::{Elements, KeptElements, KeptValue, Session, StoreError, Value};

/// Values from this length on are decoded once for all connections that send them at the same time.
const SHARED_FROM: usize = 1 << 20;
/// Replies that are this long are sent before more requests are run.
pub(crate) const ENOUGH: usize = 256 << 10;
/// Bytes in front of a late value that are sent by themselves rather than copied.
const UNCOPIED: usize = 64 << 10;
/// Most memory of sent replies that is used again, in bytes.
const MOST_REUSED: usize = 1 << 20;
/// Bytes of replies behind which values from this length on are decoded only as the socket takes them.
const LATE_FROM: usize = 512;

/// The replies to the requests of a turn.
pub(crate) struct Replies {
    buffer: ReplyBuffer,
    late: VecDeque<Late>,
    /// Bytes of the late values on the wire.
    late_bytes: usize,
    /// Bytes of memory that the chunks take.
    chunk_bytes: usize,
    /// Bytes that these and the buffer may take.
    limit: usize,
}

/// The piece at this place of the bytes.
struct Late {
    at: usize,
    /// Its bytes on the wire; of elements approximately.
    len: usize,
    content: Content,
}

enum Content {
    Value(KeptValue),
    Elements(KeptElements),
    /// Replies that are not copied behind others.
    Chunk(Vec<u8>),
}

/// Strings of which it is not known how many there will be: an array as long as a limit allows.
pub(crate) struct Strings {
    chunks: Vec<Vec<u8>>,
    last: ReplyBuffer,
    count: usize,
    /// Bytes that they may still take.
    room: usize,
    is_over: bool,
}

impl Strings {
    pub(crate) fn push(&mut self, string: &[u8]) {
        if self.is_over {
            return;
        }
        self.last.bulk(string);
        self.count += 1;
        let len = self.last.as_bytes().len();
        if len > self.room {
            self.is_over = true;
            (self.chunks, self.last) = (Vec::new(), ReplyBuffer::default());
        } else if len >= ENOUGH {
            let mut chunk = std::mem::take(self.last.as_mut_vec());
            chunk.shrink_to_fit();
            self.chunks.push(chunk);
            self.room -= len;
        }
    }

    /// Returns whether they are too many, and those that come are for nothing.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Late {
    /// Bytes of memory that it takes as it is stored, and of what others hold as well, a part.
    fn memory(&self) -> usize {
        match &self.content {
            Content::Value(value) => value.value().memory_share(),
            Content::Elements(elements) => elements.memory_share(),
            Content::Chunk(bytes) => bytes.capacity(),
        }
    }

    fn chunk_bytes(&self) -> usize {
        if let Content::Chunk(bytes) = &self.content { bytes.capacity() } else { 0 }
    }
}

/// Replies on their way to the socket.
#[derive(Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    /// Number of bytes handed out.
    taken: usize,
    late: VecDeque<Late>,
    /// Memory of a piece that was sent, for the next one.
    spare: Vec<u8>,
}

/// The next piece to send.
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

impl Default for Replies {
    fn default() -> Replies {
        Replies::new(Protocol::default())
    }
}

impl Replies {
    pub(crate) fn new(protocol: Protocol) -> Replies {
        let (buffer, late) = (ReplyBuffer::new(protocol), VecDeque::new());
        Replies { buffer, late, late_bytes: 0, chunk_bytes: 0, limit: usize::MAX }
    }

    /// Length of the replies on the wire.
    pub(crate) fn wire_len(&self) -> usize {
        self.buffer.as_bytes().len() + self.late_bytes
    }

    /// Returns whether they are long enough to be sent before more requests are run.
    pub(crate) fn is_enough(&self) -> bool {
        self.wire_len() >= ENOUGH
    }

    pub(crate) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Answers a value.
    pub(crate) fn value(&mut self, session: &mut Session, value: &Value) -> Result<(), StoreError> {
        let len = value.len();
        if self.is_late(len) {
            self.buffer.begin_absent_bulk(len);
            self.push(len, Content::Value(session.keep(value.clone())));
            self.buffer.end_bulk();
            return Ok(());
        }
        if let Some(out) = self.buffer.begin_bulk(len) {
            session.read(value, out)?;
            self.buffer.end_bulk();
        }
        Ok(())
    }

    /// Appends a value as it is, for a protocol that has framed it.
    pub(crate) fn raw_value(&mut self, session: &mut Session, value: &Value) -> Result<(), StoreError> {
        let len = value.len();
        if self.is_late(len) {
            self.push(len, Content::Value(session.keep(value.clone())));
            return Ok(());
        }
        session.read(value, self.buffer.as_mut_vec())
    }

    /// Returns whether a value of this length is decoded only as the socket takes it.
    fn is_late(&self, len: usize) -> bool {
        len >= SHARED_FROM || len >= LATE_FROM && self.is_enough()
    }

    /// Answers elements as an array; long ones are decoded a node at a time as the socket takes them.
    pub(crate) fn elements(&mut self, session: &mut Session, elements: Elements) -> Result<(), StoreError> {
        self.buffer.array(elements.len());
        let len = elements.node_lens().sum();
        if self.wire_len() + len >= ENOUGH {
            self.push(len, Content::Elements(session.keep_elements(elements)));
            return Ok(());
        }
        session.show(&elements, |element| element.with_bytes(|bytes| self.buffer.bulk(bytes)))
    }

    /// Sets how many bytes the buffer may hold, see [`ReplyBuffer::set_limit`], and how many it and chunks together.
    pub(crate) fn set_limits(&mut self, buffer: usize, all: usize) {
        self.buffer.set_limit(buffer);
        self.limit = all;
    }

    /// Strings to be answered with [`Replies::strings`].
    pub(crate) fn begin_strings(&self) -> Strings {
        let room = self.limit.saturating_sub(self.buffer.as_bytes().len() + self.chunk_bytes);
        Strings { chunks: Vec::new(), last: ReplyBuffer::default(), count: 0, room, is_over: false }
    }

    /// Answers an array of strings.
    pub(crate) fn strings(&mut self, strings: Strings) {
        let Strings { chunks, last, count, is_over, .. } = strings;
        if is_over {
            return self.buffer.give_up();
        }
        self.buffer.array(count);
        chunks.into_iter().for_each(|chunk| self.push(chunk.len(), Content::Chunk(chunk)));
        self.buffer.as_mut_vec().extend_from_slice(last.as_bytes());
    }

    fn push(&mut self, len: usize, content: Content) {
        let late = Late { at: self.buffer.as_bytes().len(), len, content };
        self.late_bytes += len;
        self.chunk_bytes += late.chunk_bytes();
        self.late.push_back(late);
    }

    /// Takes back all replies but those of the first `len` bytes, late values not counted.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.buffer.as_mut_vec().truncate(len);
        while let Some(late) = self.late.pop_back_if(|late| late.at > len) {
            self.late_bytes -= late.len;
            self.chunk_bytes -= late.chunk_bytes();
        }
    }

    /// Takes all replies away, to be sent.
    pub(crate) fn take(&mut self) -> Outgoing {
        (self.late_bytes, self.chunk_bytes) = (0, 0);
        let late = std::mem::take(&mut self.late);
        Outgoing { bytes: std::mem::take(self.buffer.as_mut_vec()), late, ..Outgoing::default() }
    }

    /// Uses the memory of replies that were sent for the next ones, unless there is more already.
    pub(crate) fn reuse(&mut self, sent: Outgoing) {
        let buffer = self.buffer.as_mut_vec();
        let mut spare = sent.spare;
        if buffer.is_empty() && (buffer.capacity()..=MOST_REUSED).contains(&spare.capacity()) {
            spare.clear();
            *buffer = spare;
        }
    }
}

impl From<Vec<u8>> for Outgoing {
    fn from(bytes: Vec<u8>) -> Outgoing {
        Outgoing { bytes, ..Outgoing::default() }
    }
}

impl Outgoing {
    /// The next piece to send; `None` if everything was handed out.
    ///
    /// # Errors
    /// A value that cannot be read: the reply cannot be ended any more.
    pub(crate) fn next(
        &mut self,
        session: &mut Session,
        values: &DecodedValues,
    ) -> Result<Option<Piece>, StoreError> {
        let mut piece = std::mem::take(&mut self.spare);
        while let Some(late) = self.late.pop_front() {
            if piece.is_empty() && self.taken == 0 && late.at >= UNCOPIED {
                let first = late.at;
                self.late.push_front(late);
                return Ok(Some(Piece::Bytes(self.split_off(first))));
            }
            piece.extend_from_slice(&self.bytes[self.taken..late.at]);
            self.taken = late.at;
            match late.content {
                Content::Value(value) if late.len < SHARED_FROM => session.read_kept(&value, &mut piece)?,
                Content::Value(_) if !piece.is_empty() => {
                    self.late.push_front(late);
                    return Ok(Some(Piece::Bytes(piece)));
                }
                Content::Value(value) => {
                    self.spare = piece;
                    return Ok(Some(Piece::Shared(values.get(value))));
                }
                Content::Chunk(bytes) if piece.is_empty() => piece = bytes,
                Content::Chunk(bytes) => piece.extend_from_slice(&bytes),
                Content::Elements(mut elements) => {
                    if append_elements(session, &mut elements, &mut piece)? {
                        self.late.push_front(Late { content: Content::Elements(elements), ..late });
                    }
                }
            }
            if piece.len() >= ENOUGH {
                return Ok(Some(Piece::Bytes(piece)));
            }
        }
        let mut rest = std::mem::take(&mut self.bytes);
        rest.drain(..std::mem::take(&mut self.taken));
        // Replies without late values are not copied.
        if piece.is_empty() {
            self.spare = piece;
            return Ok((!rest.is_empty()).then_some(Piece::Bytes(rest)));
        }
        piece.append(&mut rest);
        Ok(Some(Piece::Bytes(piece)))
    }

    /// All that is left, in one piece.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn gather(
        &mut self,
        session: &mut Session,
        values: &DecodedValues,
    ) -> Result<Vec<u8>, StoreError> {
        let mut gathered = Vec::new();
        while let Some(piece) = self.next(session, values)? {
            match piece {
                Piece::Bytes(bytes) => gathered.extend_from_slice(&bytes),
                Piece::Shared(value) => {
                    let no_memory = |_| StoreError::NoMemory { len: value.len() };
                    gathered.extend_from_slice(value.bytes(session).map_err(no_memory)?);
                }
            }
        }
        Ok(gathered)
    }

    /// Takes off the first bytes, without a copy of them.
    fn split_off(&mut self, first: usize) -> Vec<u8> {
        self.late.iter_mut().for_each(|late| late.at -= first);
        let rest = self.bytes.split_off(first);
        std::mem::replace(&mut self.bytes, rest)
    }

    /// Takes the memory of a piece that was sent, for the next one.
    pub(crate) fn take_back(&mut self, mut piece: Vec<u8>) {
        if piece.capacity() > self.spare.capacity() {
            piece.clear();
            self.spare = piece;
        }
    }

    /// Bytes of memory that they take: what was answered, and values that are kept for it, as they are stored.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.late.iter().map(Late::memory).sum::<usize>()
    }
}

/// Appends elements until the piece is long enough; returns whether there may be more.
fn append_elements(
    session: &mut Session,
    elements: &mut KeptElements,
    piece: &mut Vec<u8>,
) -> Result<bool, StoreError> {
    let mut framed = ReplyBuffer::default();
    std::mem::swap(framed.as_mut_vec(), piece);
    let mut has_more = true;
    while has_more && framed.as_bytes().len() < ENOUGH {
        has_more =
            session.next_elements(elements, |element| element.with_bytes(|bytes| framed.bulk(bytes)))?;
    }
    std::mem::swap(framed.as_mut_vec(), piece);
    Ok(has_more)
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
    /// Bytes of all of them.
    total: Arc<AtomicUsize>,
}

impl DecodedValues {
    fn get(&self, value: KeptValue) -> Arc<Decoded> {
        let identity = value.value().identity();
        let mut values = self.values.lock();
        // The identity is unique as long as the value is being sent.
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
    /// Length of the value in bytes.
    pub(crate) fn len(&self) -> usize {
        self.value.value().len()
    }

    /// The value's [`Value::identity`].
    pub(crate) fn identity(&self) -> usize {
        self.value.value().identity()
    }

    /// Returns whether it has been decoded.
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
    use snugly_store::{Choice, Condition, Config, End, Expiry, Store};

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
    fn memory_of_what_was_sent_is_used_again() {
        let mut session = session();
        let value = stored(&mut session, b"key", &[b'x'; 50_000]);
        let mut replies = Replies::default();
        (0..20).for_each(|_| replies.value(&mut session, &value).expect("readable"));
        let mut outgoing = replies.take();
        let (mut pieces, mut sent) = (Vec::new(), Vec::new());
        while let Some(piece) = outgoing.next(&mut session, &DecodedValues::default()).expect("readable") {
            let Piece::Bytes(bytes) = piece else { panic!("none is shared") };
            pieces.push(bytes.as_ptr());
            sent.extend_from_slice(&bytes);
            outgoing.take_back(bytes);
        }
        assert!(sent == bulk(&[b'x'; 50_000]).repeat(20));
        assert_eq!(pieces.len(), 4);
        assert_eq!(pieces[2], pieces[1], "the second piece grows beyond the first");
        replies.reuse(outgoing);
        assert!(replies.as_bytes().is_empty() && replies.as_mut_vec().capacity() >= ENOUGH);
    }

    #[test]
    fn long_ranges_of_lists_come_whole_and_in_their_order() {
        let mut session = session();
        let elements: Vec<Vec<u8>> =
            (0..2_000).map(|number: u32| vec![number as u8; number as usize % 700]).collect();
        session
            .list_push(0, b"list", End::Right, elements.iter().map(Vec::as_slice), false)
            .expect("there is room");
        let mut replies = Replies::default();
        replies.simple("before");
        let range = session.list_range(0, b"list", 0, -1).expect("undamaged").expect("there is one");
        replies.elements(&mut session, range).expect("readable");
        replies.simple("behind");
        assert!(replies.has_late() && replies.as_bytes().len() < 100);
        session.delete(0, b"list").expect("undamaged");
        let expected: Vec<u8> = elements.iter().flat_map(|element| bulk(element)).collect();
        let expected = [b"+before\r\n*2000\r\n", &expected[..], b"+behind\r\n"].concat();
        assert!(sent(&mut session, replies.take(), &DecodedValues::default()) == expected);
    }

    #[test]
    fn many_strings_come_whole_and_those_beyond_the_limit_are_given_up() {
        let mut session = session();
        let names: Vec<Vec<u8>> = (0..100_000).map(|number| number.to_string().into_bytes()).collect();
        let mut replies = Replies::default();
        replies.simple("before");
        let mut strings = replies.begin_strings();
        names.iter().for_each(|name| strings.push(name));
        replies.strings(strings);
        replies.simple("behind");
        let all: Vec<u8> = names.iter().flat_map(|name| bulk(name)).collect();
        let expected = [b"+before\r\n*100000\r\n", &all[..], b"+behind\r\n"].concat();
        assert_eq!(replies.wire_len(), expected.len());
        assert!(sent(&mut session, replies.take(), &DecodedValues::default()) == expected);

        replies.set_limits(usize::MAX, all.len() / 2);
        let mut strings = replies.begin_strings();
        names.iter().for_each(|name| strings.push(name));
        assert!(strings.is_over());
        replies.strings(strings);
        assert!(replies.is_over());
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
