//! How replies become Python objects, with their values restored.
//!
//! It is given whole replies. Which object a reply becomes is as valkey-py's own parsers have it.

use std::ffi::CString;
use std::sync::Arc;

use pyo3::exceptions::{PyException, PyUnicodeDecodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use snugly_protocol::resp::{ProtocolError, ReplyLimits, ReplyScanner, Token, next_token};

use crate::codec::Codec;

/// As much as there is: nothing is reserved for what is claimed, and only whole replies are read.
pub(crate) const LIMITS: ReplyLimits =
    ReplyLimits { max_bulk: isize::MAX as usize, max_values: isize::MAX as usize, max_depth: 512 };

/// What an inbox keeps for the next reply, in bytes at most.
const MAX_KEPT: usize = 1 << 20;

pyo3::create_exception!(_native, ProtocolFault, PyException, "A server sent what is no reply.");

/// What the reply to a command is, and what is to be done with it.
pub(crate) enum Expected {
    /// Nothing in it is a value.
    Plain,
    /// It is the value of the key at this position of the arguments.
    Value { args: Py<PyTuple>, key: Option<usize> },
    /// It is a value, or its elements are, of the keys at these positions.
    Each { args: Py<PyTuple>, keys: Arc<[usize]> },
    /// What a function of Python makes of it.
    Restored(Py<PyAny>),
    /// EXEC's: its elements are the replies to these commands.
    Transaction(Vec<Expected>),
}

impl Expected {
    pub fn clone_ref(&self, py: Python<'_>) -> Expected {
        match self {
            Expected::Plain => Expected::Plain,
            Expected::Value { args, key } => Expected::Value { args: args.clone_ref(py), key: *key },
            Expected::Each { args, keys } => Expected::Each { args: args.clone_ref(py), keys: keys.clone() },
            Expected::Restored(restore) => Expected::Restored(restore.clone_ref(py)),
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

/// How replies are read.
pub(crate) struct Replies {
    codec: Option<Py<Codec>>,
    decoding: Option<Decoding>,
    /// The same for what Python restores: from such text the bytes can be had back.
    escaping: Option<Decoding>,
    parse_error: Py<PyAny>,
    unreadable: Py<PyAny>,
    as_text: Py<PyAny>,
}

/// A reply that is being read: what is left of its bytes.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn next(&mut self) -> PyResult<Token<'a>> {
        match next_token(self.0, &LIMITS).map_err(fault)? {
            Some((token, taken)) => {
                self.0 = &self.0[taken..];
                Ok(token)
            }
            None => Err(unfinished()),
        }
    }
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
    /// error's text. `unreadable` is given an envelope, its key or None, and the error, and returns the bytes to take
    /// for the value, or what stands for it; `as_text` is given one of these, the stored bytes and the key, and returns
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

    /// The object that a whole reply is. Errors are exceptions, not raised.
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        reply: &[u8],
        expected: &Expected,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.expected(py, &mut Rest(reply), expected) {
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
        rest: &mut Rest<'_>,
        expected: &Expected,
    ) -> PyResult<Bound<'py, PyAny>> {
        match expected {
            Expected::Plain => self.next(py, rest, self.decoding.as_ref(), 0),
            Expected::Value { args, key } => self.value(py, rest, args, *key),
            Expected::Each { args, keys } => self.each(py, rest, args, keys),
            Expected::Restored(restore) => {
                let reply = self.next(py, rest, self.escaping.as_ref(), 0)?;
                if reply.is_instance_of::<PyException>() {
                    Ok(reply)
                } else {
                    restore.bind(py).call1((reply,))
                }
            }
            Expected::Transaction(commands) => self.transaction(py, rest, commands),
        }
    }

    fn value<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest<'_>,
        args: &Py<PyTuple>,
        key: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match rest.next()? {
            Token::Bulk(stored) => self.restored(py, stored, args, key),
            token => self.object(py, token, rest, self.decoding.as_ref(), 0),
        }
    }

    fn each<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest<'_>,
        args: &Py<PyTuple>,
        keys: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let first = keys.first().copied();
        match rest.next()? {
            Token::Bulk(stored) => self.restored(py, stored, args, first),
            Token::Array(length) => {
                let elements = PyList::empty(py);
                for position in 0..length {
                    let key = keys.get(position).copied().or(first);
                    elements.append(self.value(py, rest, args, key)?)?;
                }
                Ok(elements.into_any())
            }
            token => self.object(py, token, rest, self.decoding.as_ref(), 0),
        }
    }

    fn transaction<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest<'_>,
        commands: &[Expected],
    ) -> PyResult<Bound<'py, PyAny>> {
        match rest.next()? {
            Token::Array(length) if length == commands.len() => {
                let replies = PyList::empty(py);
                for command in commands {
                    replies.append(self.element(py, rest, command)?)?;
                }
                Ok(replies.into_any())
            }
            token => self.object(py, token, rest, self.decoding.as_ref(), 0),
        }
    }

    /// A reply among others: what is wrong with it is not wrong with them.
    fn element<'py>(
        &self,
        py: Python<'py>,
        rest: &mut Rest<'_>,
        expected: &Expected,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut end = Rest(rest.0);
        skip(&mut end)?;
        let reply = self.read(py, &rest.0[..rest.0.len() - end.0.len()], expected);
        rest.0 = end.0;
        reply
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
            Token::Null => Ok(py.None().into_bound(py)),
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
            Token::Attribute(length) => {
                for _ in 0..2 * length {
                    skip(rest)?;
                }
                self.next(py, rest, decoding, depth + 1)
            }
        }
    }

    /// The value that was stored as these bytes, under the key at a position of the arguments.
    fn restored<'py>(
        &self,
        py: Python<'py>,
        stored: &[u8],
        args: &Py<PyTuple>,
        key: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(codec) = self.codec.as_ref().map(Py::get) else {
            return plain(py, stored, self.decoding.as_ref());
        };
        let key = || key.and_then(|key| args.bind(py).get_item(key).ok());
        let value = match codec.decode_slice(py, stored) {
            Ok(Some(value)) => value,
            Ok(None) => PyBytes::new(py, stored),
            Err(error) => {
                let value = self.unreadable.bind(py).call1((PyBytes::new(py, stored), key(), error))?;
                match value.cast_into::<PyBytes>() {
                    Ok(value) => value,
                    // What stands for a value that is to be had later.
                    Err(other) if self.decoding.is_none() => return Ok(other.into_inner()),
                    Err(other) => {
                        let stored = PyBytes::new(py, stored);
                        return self.as_text.bind(py).call1((other.into_inner(), stored, key()));
                    }
                }
            }
        };
        let Some(decoding) = &self.decoding else { return Ok(value.into_any()) };
        decoding.text(py, value.as_bytes()).or_else(|error| {
            if error.is_instance_of::<PyUnicodeDecodeError>(py) {
                return self.as_text.bind(py).call1((value, PyBytes::new(py, stored), key()));
            }
            Err(error)
        })
    }
}

/// Bytes that are no value.
fn plain<'py>(py: Python<'py>, bytes: &[u8], decoding: Option<&Decoding>) -> PyResult<Bound<'py, PyAny>> {
    match decoding {
        None => Ok(PyBytes::new(py, bytes).into_any()),
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
        if self.is_utf8
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Ok(PyString::new(py, text).into_any());
        }
        let bytes = PyBytes::new(py, bytes);
        let text = PyString::from_encoded_object(&bytes, Some(&self.encoding), Some(&self.errors))?;
        Ok(text.into_any())
    }
}

/// Goes over one value.
fn skip(rest: &mut Rest<'_>) -> PyResult<()> {
    match ReplyScanner::default().scan(rest.0, &LIMITS).map_err(fault)? {
        Some(length) => rest.0 = &rest.0[length..],
        None => return Err(unfinished()),
    }
    Ok(())
}

/// Bytes as they arrive, of which whole replies are taken.
#[derive(Default)]
pub(crate) struct Inbox {
    /// What has arrived of the next reply, if that is not whole.
    begun: Vec<u8>,
    scanner: ReplyScanner,
}

impl Inbox {
    /// Calls `take` with each reply that is whole, also if only now.
    pub fn receive(&mut self, data: &[u8], mut take: impl FnMut(&[u8]) -> PyResult<()>) -> PyResult<()> {
        let begun = !self.begun.is_empty();
        let mut owned = std::mem::take(&mut self.begun);
        if begun {
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
            self.begun = owned;
        } else {
            self.begun.extend_from_slice(&bytes[start..]);
        }
        if self.begun.is_empty() && self.begun.capacity() > MAX_KEPT {
            self.begun = Vec::new();
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }
}
