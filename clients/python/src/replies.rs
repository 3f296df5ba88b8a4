//! Conversion of replies to Python objects, with their values restored.
//!
//! It is given whole replies. Objects have the types that valkey-py's own parsers give them.

use std::ffi::CString;

use pyo3::exceptions::{PyException, PyUnicodeDecodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use snugly_commands::{Key, Shape};
use snugly_protocol::resp::{ProtocolError, ReplyLimits, ReplyScanner, Token, next_token};

use crate::allowance::Allowance;
use crate::codec::{Codec, EnvelopeError};
use crate::commands::key_of;
use crate::memory::{copied, room_for};

/// No limits: nothing is reserved for claimed lengths, and only whole replies are read.
pub(crate) const LIMITS: ReplyLimits =
    ReplyLimits { max_bulk: isize::MAX as usize, max_values: isize::MAX as usize, max_depth: 512 };

/// What there is no memory for.
const REPLY: &str = "a reply";

/// Most bytes that an inbox keeps for the next reply.
const MAX_KEPT: usize = 1 << 20;

pyo3::create_exception!(_native, ProtocolFault, PyException, "A server sent what is no reply.");

/// Expected reply to a command, and its treatment.
pub(crate) enum Expected {
    /// Nothing in it is a value.
    Plain,
    /// Reply with values where the shape says. Their keys are in the command, or in the reply.
    Shaped { words: Py<PyTuple>, shape: &'static Shape },
    /// EXEC's: its elements are the replies to these commands.
    Transaction(Vec<Expected>),
}

impl Expected {
    pub fn clone_ref(&self, py: Python<'_>) -> Expected {
        match self {
            Expected::Plain => Expected::Plain,
            Expected::Shaped { words, shape } => Expected::Shaped { words: words.clone_ref(py), shape },
            Expected::Transaction(commands) => {
                Expected::Transaction(commands.iter().map(|command| command.clone_ref(py)).collect())
            }
        }
    }
}

/// Text instead of bytes.
struct Decoding {
    is_utf8: bool,
    encoding: CString,
    errors: CString,
}

/// Settings for reading replies.
pub(crate) struct Replies {
    codec: Option<Py<Codec>>,
    decoding: Option<Decoding>,
    /// Decoding of the rest of a reply that has values: its text can be turned back into the bytes.
    escaping: Option<Decoding>,
    parse_error: Py<PyAny>,
    unreadable: Py<PyAny>,
    as_text: Py<PyAny>,
}

/// Rest of the bytes of a reply that is being read.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// The next token; attributes are left out.
    fn next(&mut self) -> PyResult<Token<'a>> {
        loop {
            let (token, taken) = next_token(self.0, &LIMITS).map_err(fault)?.ok_or_else(unfinished)?;
            self.0 = &self.0[taken..];
            let Token::Attribute(length) = token else { return Ok(token) };
            for _ in 0..2 * length {
                self.skip()?;
            }
        }
    }

    /// The next token, which is still ahead.
    fn peek(mut self) -> PyResult<Token<'a>> {
        self.next()
    }

    /// Goes over one value, and returns its bytes.
    fn skip(&mut self) -> PyResult<&'a [u8]> {
        let length = ReplyScanner::default().scan(self.0, &LIMITS).map_err(fault)?.ok_or_else(unfinished)?;
        let (value, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(value)
    }
}

/// A reply with values that is being read.
struct Reading<'a, 'py> {
    rest: Rest<'a>,
    /// The command.
    words: &'a Bound<'py, PyTuple>,
    allowance: &'a mut Allowance,
}

fn fault(error: ProtocolError) -> PyErr {
    ProtocolFault::new_err(error.to_string())
}

fn unfinished() -> PyErr {
    fault(ProtocolError::InvalidReply("one that ends too early"))
}

/// A reply came that nobody asked for.
pub(crate) fn unasked() -> PyErr {
    fault(ProtocolError::InvalidReply("one that answers nothing"))
}

impl Replies {
    /// `decodes` is an encoding and an error handler if replies are text. `parse_error` makes an exception of an
    /// error's text. `unreadable` is given an envelope, its key or None, the error and the reply's budget, and returns the
    /// bytes to take for the value, or what stands for it; `as_text` is given one of these, the stored bytes and the key, and returns
    /// text. Both may raise instead.
    pub fn new(
        codec: Option<Py<Codec>>,
        decodes: Option<(String, String)>,
        parse_error: Py<PyAny>,
        unreadable: Py<PyAny>,
        as_text: Py<PyAny>,
    ) -> PyResult<Replies> {
        let decoding =
            |errors: &str| decodes.as_ref().map(|(encoding, _)| Decoding::new(encoding, errors)).transpose();
        let escaping = decoding("surrogateescape")?;
        let decoding = decoding(decodes.as_ref().map_or("", |(_, errors)| errors))?;
        Ok(Replies { codec, decoding, escaping, parse_error, unreadable, as_text })
    }

    /// Creates the allowance of one more reply.
    pub fn allowance(&self) -> Allowance {
        self.codec.as_ref().map_or_else(Allowance::unbounded, |codec| codec.get().allowance())
    }

    /// The object that a whole reply is. Errors are exceptions, not raised.
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        reply: &[u8],
        expected: &Expected,
        allowance: &mut Allowance,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.expected(py, reply, expected, allowance) {
            // An error of one reply is that reply; those behind it can be read. What ends a program is none.
            Err(error)
                if error.is_instance_of::<PyException>(py) && !error.is_instance_of::<ProtocolFault>(py) =>
            {
                Ok(error.into_value(py).into_bound(py).into_any())
            }
            reply => reply,
        }
    }

    fn expected<'py>(
        &self,
        py: Python<'py>,
        reply: &[u8],
        expected: &Expected,
        allowance: &mut Allowance,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut rest = Rest(reply);
        match expected {
            Expected::Plain => self.next(py, &mut rest, self.decoding.as_ref(), 0),
            Expected::Shaped { words, shape } => {
                let mut reading = Reading { rest, words: words.bind(py), allowance };
                self.shaped(py, shape, Key::Argument(0), &mut reading)
            }
            Expected::Transaction(commands) => self.transaction(py, &mut rest, commands, allowance),
        }
    }

    fn transaction<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest<'_>,
        commands: &[Expected],
        allowance: &mut Allowance,
    ) -> PyResult<Bound<'py, PyAny>> {
        match rest.next()? {
            Token::Array(length) if length == commands.len() => {
                let replies = PyList::empty(py);
                for command in commands {
                    // An error in one of them does not affect the others.
                    replies.append(self.read(py, rest.skip()?, command, allowance)?)?;
                }
                Ok(replies.into_any())
            }
            token => self.object(py, token, rest, self.decoding.as_ref(), 0),
        }
    }

    /// A reply or a part of one, read as [`Shape::walk`] goes over it.
    fn shaped<'a, 'py>(
        &self,
        py: Python<'py>,
        shape: &Shape,
        key: Key<&'a [u8]>,
        reading: &mut Reading<'a, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let token = reading.rest.next()?;
        self.shaped_token(py, shape, token, key, reading)
    }

    fn shaped_token<'a, 'py>(
        &self,
        py: Python<'py>,
        shape: &Shape,
        token: Token<'a>,
        key: Key<&'a [u8]>,
        reading: &mut Reading<'a, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (shape, token) {
            (Shape::Value, Token::Bulk(stored)) => self.restored(py, stored, &key, reading),
            (Shape::Each { inner, has_arguments_keys }, Token::Array(length)) => {
                let elements = PyList::empty(py);
                for at in 0..length {
                    let own = if *has_arguments_keys { Key::Argument(at) } else { key.clone() };
                    elements.append(self.shaped(py, inner, own, reading)?)?;
                }
                Ok(elements.into_any())
            }
            (Shape::Each { inner, .. }, token) => self.shaped_token(py, inner, token, key, reading),
            (Shape::Element { at, inner, has_key }, Token::Array(length)) => {
                let elements = PyList::empty(py);
                let mut key = key;
                for each in 0..length {
                    elements.append(match each {
                        _ if each == *at => self.shaped(py, inner, key.clone(), reading)?,
                        0 => self.name(py, *has_key, &mut key, reading)?,
                        _ => self.without_values(py, reading)?,
                    })?;
                }
                Ok(elements.into_any())
            }
            (Shape::Pairs { inner, has_key }, Token::Map(length)) => {
                let map = PyDict::new(py);
                for _ in 0..length {
                    let [name, value] = self.pair(py, inner, *has_key, &key, reading)?;
                    map.set_item(name, value)?;
                }
                Ok(map.into_any())
            }
            (Shape::Pairs { inner, has_key }, Token::Array(length)) => {
                let pair = |reading: &mut _| self.pair(py, inner, *has_key, &key, reading);
                self.pairs(py, length, pair, reading)
            }
            (_, token) => self.object(py, token, &mut reading.rest, self.escaping.as_ref(), 0),
        }
    }

    /// An array of arrays of two, if its first element is an array, or else one that alternates.
    fn pairs<'a, 'py>(
        &self,
        py: Python<'py>,
        length: usize,
        pair: impl Fn(&mut Reading<'a, 'py>) -> PyResult<[Bound<'py, PyAny>; 2]>,
        reading: &mut Reading<'a, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let elements = PyList::empty(py);
        let is_nested = length > 0 && matches!(reading.rest.peek()?, Token::Array(_));
        if is_nested {
            for _ in 0..length {
                let mut inside = reading.rest;
                if matches!(inside.next()?, Token::Array(2)) {
                    reading.rest = inside;
                    elements.append(PyList::new(py, pair(reading)?)?)?;
                } else {
                    elements.append(self.without_values(py, reading)?)?;
                }
            }
        } else {
            for _ in 0..length / 2 {
                for part in pair(reading)? {
                    elements.append(part)?;
                }
            }
            if length % 2 == 1 {
                elements.append(self.without_values(py, reading)?)?;
            }
        }
        Ok(elements.into_any())
    }

    /// Two parts of a reply, of which the second has a shape. The first may be its key.
    fn pair<'a, 'py>(
        &self,
        py: Python<'py>,
        inner: &Shape,
        has_key: bool,
        key: &Key<&'a [u8]>,
        reading: &mut Reading<'a, 'py>,
    ) -> PyResult<[Bound<'py, PyAny>; 2]> {
        let mut key = key.clone();
        let name = self.name(py, has_key, &mut key, reading)?;
        Ok([name, self.shaped(py, inner, key, reading)?])
    }

    /// A part of a reply without values, which is the key of the next part if `has_key`.
    fn name<'a, 'py>(
        &self,
        py: Python<'py>,
        has_key: bool,
        key: &mut Key<&'a [u8]>,
        reading: &mut Reading<'a, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if has_key && let Token::Bulk(name) = reading.rest.peek()? {
            *key = Key::Named(name);
        }
        self.without_values(py, reading)
    }

    fn without_values<'py>(
        &self,
        py: Python<'py>,
        reading: &mut Reading<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.next(py, &mut reading.rest, self.escaping.as_ref(), 0)
    }

    fn next<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest<'_>,
        decoding: Option<&Decoding>,
        depth: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let token = rest.next()?;
        self.object(py, token, rest, decoding, depth)
    }

    fn object<'py>(
        &self,
        py: Python<'py>,
        token: Token<'_>,
        rest: &mut Rest<'_>,
        decoding: Option<&Decoding>,
        depth: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if depth > LIMITS.max_depth {
            return Err(fault(ProtocolError::ReplyTooBig("nested too deeply")));
        }
        match token {
            Token::Simple(bytes) | Token::Bulk(bytes) | Token::Verbatim(_, bytes) => {
                plain(py, bytes, decoding)
            }
            Token::Error(text) => self.parse_error.bind(py).call1((String::from_utf8_lossy(text),)),
            Token::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
            // `Rest::next` leaves attributes out.
            Token::Null | Token::Attribute(_) => Ok(py.None().into_bound(py)),
            Token::Boolean(truth) => Ok(truth.into_pyobject(py)?.to_owned().into_any()),
            Token::Double(number) => Ok(PyFloat::new(py, number).into_any()),
            Token::BigNumber(digits) => {
                py.get_type::<PyInt>().call1((PyBytes::new(py, digits),)).map(Bound::into_any)
            }
            Token::Array(length) | Token::Set(length) | Token::Push(length) => {
                let elements = PyList::empty(py);
                for _ in 0..length {
                    elements.append(self.next(py, rest, decoding, depth + 1)?)?;
                }
                Ok(elements.into_any())
            }
            Token::Map(length) => {
                let map = PyDict::new(py);
                for _ in 0..length {
                    let key = self.next(py, rest, decoding, depth + 1)?;
                    map.set_item(key, self.next(py, rest, decoding, depth + 1)?)?;
                }
                Ok(map.into_any())
            }
        }
    }

    /// The value that was stored as these bytes.
    fn restored<'py>(
        &self,
        py: Python<'py>,
        stored: &[u8],
        key: &Key<&[u8]>,
        reading: &mut Reading<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(codec) = self.codec.as_ref().map(Py::get) else {
            return plain(py, stored, self.decoding.as_ref());
        };
        let words = reading.words;
        let key = || match key {
            Key::Argument(number) => key_of(words, *number),
            Key::Named(name) => Some(PyBytes::new(py, name).into_any()),
        };
        let value = match codec.decode_slice(py, stored, reading.allowance, None) {
            Ok(Some(value)) => value,
            Ok(None) => copied(py, stored)?,
            Err(error) if !error.is_instance_of::<EnvelopeError>(py) => return Err(error),
            Err(error) => {
                let left = reading.allowance.shared(py)?;
                let value = self.unreadable.bind(py).call1((copied(py, stored)?, key(), error, left))?;
                match value.cast_into::<PyBytes>() {
                    Ok(value) => value,
                    // Stand-in for a value that is restored later.
                    Err(other) if self.decoding.is_none() => return Ok(other.into_inner()),
                    Err(other) => {
                        return self.as_text.bind(py).call1((other.into_inner(), copied(py, stored)?, key()));
                    }
                }
            }
        };
        let Some(decoding) = &self.decoding else { return Ok(value.into_any()) };
        decoding.text(py, value.as_bytes()).or_else(|error| {
            if error.is_instance_of::<PyUnicodeDecodeError>(py) {
                return self.as_text.bind(py).call1((value, copied(py, stored)?, key()));
            }
            Err(error)
        })
    }
}

/// Bytes that are no value.
fn plain<'py>(py: Python<'py>, bytes: &[u8], decoding: Option<&Decoding>) -> PyResult<Bound<'py, PyAny>> {
    match decoding {
        None => Ok(copied(py, bytes)?.into_any()),
        Some(decoding) => decoding.text(py, bytes),
    }
}

impl Decoding {
    fn new(encoding: &str, errors: &str) -> PyResult<Decoding> {
        let normal = encoding.to_ascii_lowercase().replace(['-', '_'], "");
        Ok(Decoding {
            is_utf8: normal == "utf8",
            encoding: CString::new(encoding)?,
            errors: CString::new(errors)?,
        })
    }

    fn text<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if self.is_utf8 {
            match PyString::from_bytes(py, bytes) {
                Err(error) if error.is_instance_of::<PyUnicodeDecodeError>(py) => {}
                text => return text.map(Bound::into_any),
            }
        }
        let bytes = copied(py, bytes)?;
        let text = PyString::from_encoded_object(&bytes, Some(&self.encoding), Some(&self.errors))?;
        Ok(text.into_any())
    }
}

/// Bytes as they arrive, of which whole replies are taken.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Bytes of the next reply, if that has not arrived as a whole.
    begun: Vec<u8>,
    scanner: ReplyScanner,
}

impl Inbox {
    /// Calls `take` with each reply that is whole, also if only now.
    pub fn receive(&mut self, data: &[u8], mut take: impl FnMut(&[u8]) -> PyResult<()>) -> PyResult<()> {
        let mut owned = std::mem::take(&mut self.begun);
        let begun = !owned.is_empty();
        if begun {
            room_for(&mut owned, data.len(), REPLY)?;
            owned.extend_from_slice(data);
        }
        let bytes = if begun { &owned[..] } else { data };
        let mut start = 0;
        while let Some(length) = self.scanner.scan(&bytes[start..], &LIMITS).map_err(fault)? {
            take(&bytes[start..start + length])?;
            start += length;
        }
        if begun {
            owned.drain(..start);
        } else {
            room_for(&mut owned, data.len() - start, REPLY)?;
            owned.extend_from_slice(&data[start..]);
        }
        self.begun = owned;
        if self.begun.is_empty() && self.begun.capacity() > MAX_KEPT {
            self.begun = Vec::new();
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }
}
