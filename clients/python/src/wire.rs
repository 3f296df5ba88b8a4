//! Conversion of one client's commands to bytes, with their values encoded.
//!
//! It knows RESP and Python's objects; the command table says where values are. It must not know sockets, and
//! waits for nothing.

use std::cell::Cell;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyMemoryView, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};
use snugly_commands::{Command, Found, Meaning};
use snugly_protocol::resp::{encode_array, encode_bulk};

use crate::codec::{self, Codec};
use crate::commands::{Interpreter, split, with_found};
use crate::exchange::Request;
use crate::leaving::inside;
use crate::memory::{copied, room_for};
use crate::names::shared;
use crate::replies::{Expected, Replies};
use crate::together;

/// The envelopes of the values that follow, if they have been encoded; None for one that is sent as it is.
type Envelopes = std::vec::IntoIter<Option<Vec<u8>>>;

/// Bytes that are sent before and behind an argument, at most.
const MOST_FRAMING: usize = 32;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static ENVELOPE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Packs commands and restores replies, for any number of connections.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Wire {
    codec: Option<Py<Codec>>,
    interpreter: Option<Py<Interpreter>>,
    encode: Py<PyAny>,
    /// Whether text is sent as UTF-8, and refused where it cannot be.
    sends_utf8: bool,
    replies: Replies,
}

#[pymethods]
impl Wire {
    /// Without `codec` and `interpreter` nothing is compressed. `encode` makes bytes of an argument. The rest is explained
    /// where it is used.
    #[new]
    #[pyo3(signature = (*, codec, interpreter, encode, sends_utf8, decodes, parse_error, unreadable, as_text))]
    #[allow(clippy::too_many_arguments, reason = "each is given by its name")]
    fn new(
        py: Python<'_>,
        codec: Option<Py<Codec>>,
        interpreter: Option<Py<Interpreter>>,
        encode: Py<PyAny>,
        sends_utf8: bool,
        decodes: Option<(String, String)>,
        parse_error: Py<PyAny>,
        unreadable: Py<PyAny>,
        as_text: Py<PyAny>,
    ) -> PyResult<Wire> {
        let replies = Replies::new(
            codec.as_ref().map(|codec| codec.clone_ref(py)),
            decodes,
            parse_error,
            unreadable,
            as_text,
        )?;
        Ok(Wire { codec, interpreter, encode, sends_utf8, replies })
    }

    /// Returns whether a command is for this transport. Raises CommandRefusedError.
    fn takes(&self, args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let _inside = inside(args.py());
        if let Some(interpreter) = &self.interpreter {
            let words = split(args)?;
            with_found(|found| interpreter.get().read(&words, found))?;
        }
        Ok(shared_command(args)?.is_some())
    }

    /// A command, ready to be sent; None if it is not for this transport. Raises CommandRefusedError, and DataError for
    /// an argument that cannot be sent.
    fn request(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>) -> PyResult<Option<Request>> {
        let _inside = inside(slf.py());
        packed(slf, |wire, out| Ok(wire.pack(args, out)?.map(|expected| smallvec![expected])))
    }

    /// The commands of a pipeline, pairs of arguments and options, ready to be sent; None if one of them is not for this
    /// transport. Raises as `request`.
    fn request_all(
        slf: &Bound<'_, Self>,
        commands: &Bound<'_, PyList>,
        transaction: bool,
    ) -> PyResult<Option<Request>> {
        let _inside = inside(slf.py());
        packed(slf, |wire, out| wire.pack_all(commands, transaction, out))
    }

    /// A request for each of several commands, pairs of arguments and options. Raises as `request`, and ValueError if
    /// one of them is not for this transport.
    fn requests(slf: &Bound<'_, Self>, commands: &Bound<'_, PyList>) -> PyResult<Vec<Request>> {
        let _inside = inside(slf.py());
        let mut envelopes = slf.get().encoded_together(commands)?.into_iter();
        let mut requests = Vec::with_capacity(commands.len());
        for command in commands.iter() {
            let args = command.cast_into::<PyTuple>()?.get_item(0)?.cast_into::<PyTuple>()?;
            let request = packed(slf, |wire, out| {
                Ok(wire.append(&args, &mut envelopes, out)?.map(|expected| smallvec![expected]))
            })?;
            requests
                .push(request.ok_or_else(|| PyValueError::new_err("a command is not for this transport"))?);
        }
        Ok(requests)
    }
}

fn packed(
    wire: &Bound<'_, Wire>,
    pack: impl FnOnce(&Wire, &mut Vec<u8>) -> PyResult<Option<SmallVec<[Expected; 1]>>>,
) -> PyResult<Option<Request>> {
    let mut out = SCRATCH.take();
    out.clear();
    let request = pack(wire.get(), &mut out).and_then(|expected| {
        let Some(expected) = expected else { return Ok(None) };
        let bytes = copied(wire.py(), &out)?.unbind();
        Ok(Some(Request::new(wire.clone().unbind(), bytes, expected)))
    });
    codec::keep(&SCRATCH, out);
    request
}

impl Wire {
    pub fn replies(&self) -> &Replies {
        &self.replies
    }

    /// Appends a command and says what its reply will be; None if it is not for this transport. What was appended is of
    /// no use then, nor after an error.
    ///
    /// # Errors
    /// Whatever Python says of the arguments: that the command is refused, or that one of them cannot be sent.
    pub fn pack(&self, args: &Bound<'_, PyTuple>, out: &mut Vec<u8>) -> PyResult<Option<Expected>> {
        self.append(args, &mut Vec::new().into_iter(), out)
    }

    /// Appends the commands of a pipeline, pairs of arguments and options, and says what the replies will be; None if
    /// one is not for this transport. What was appended is of no use then, nor after an error.
    ///
    /// # Errors
    /// As [`Wire::pack`].
    fn pack_all(
        &self,
        commands: &Bound<'_, PyList>,
        transaction: bool,
        out: &mut Vec<u8>,
    ) -> PyResult<Option<SmallVec<[Expected; 1]>>> {
        let mut envelopes = self.encoded_together(commands)?.into_iter();
        let mut expected = Vec::with_capacity(commands.len());
        if transaction {
            encode_array(1, out);
            encode_bulk(b"MULTI", out);
        }
        for command in commands.iter() {
            let args = command.cast_into::<PyTuple>()?.get_item(0)?.cast_into::<PyTuple>()?;
            match self.append(&args, &mut envelopes, out)? {
                Some(reply) => expected.push(reply),
                None => return Ok(None),
            }
        }
        if !transaction {
            return Ok(Some(expected.into()));
        }
        encode_array(1, out);
        encode_bulk(b"EXEC", out);
        let queued = std::iter::repeat_with(|| Expected::Plain).take(expected.len() + 1);
        Ok(Some(queued.chain([Expected::Transaction(expected)]).collect()))
    }

    fn append(
        &self,
        args: &Bound<'_, PyTuple>,
        envelopes: &mut Envelopes,
        out: &mut Vec<u8>,
    ) -> PyResult<Option<Expected>> {
        let Some((command, words)) = shared_command(args)? else { return Ok(None) };
        encode_array(words.len(), out);
        encode_bulk(command.name().as_bytes(), out);
        let meaning = with_found(|found| {
            let meaning = self.read(command, &words, found)?;
            let mut values = found.values().iter();
            let mut next = values.next();
            for (at, word) in words.iter_borrowed().enumerate().skip(1) {
                match next {
                    Some(value) if value.at == at => {
                        next = values.next();
                        self.append_value(&word, || words.get_item(value.key), envelopes, out)?;
                    }
                    _ => self.append_argument(&word, out)?,
                }
            }
            Ok(meaning)
        })?;
        Ok(Some(match meaning {
            Meaning::Touched { reply: Some(shape) } => Expected::Shaped { words: words.unbind(), shape },
            _ => Expected::Plain,
        }))
    }

    /// Reads a command. Raises CommandRefusedError.
    fn read(
        &self,
        command: &'static Command,
        words: &Bound<'_, PyTuple>,
        found: &mut Found,
    ) -> PyResult<Meaning> {
        match &self.interpreter {
            Some(interpreter) => interpreter.get().read_as(command, words, found),
            None => Ok(Meaning::Untouched),
        }
    }

    fn append_value<'py>(
        &self,
        argument: &Bound<'py, PyAny>,
        key: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
        envelopes: &mut Envelopes,
        out: &mut Vec<u8>,
    ) -> PyResult<()> {
        let py = argument.py();
        let Some(codec) = self.codec.as_ref().map(Py::get) else {
            return self.append_argument(argument, out);
        };
        if let Some(value) = self.readily(argument)? {
            match envelopes.next() {
                Some(envelope) => append_word(envelope.as_deref().unwrap_or(value), out)?,
                None => self.append_encoded(codec, py, value, key, out)?,
            }
        } else if argument.is_instance_of::<PyByteArray>() || argument.is_instance_of::<PyMemoryView>() {
            self.append_encoded(codec, py, codec::bytes(argument)?.as_bytes(), key, out)?;
        } else if argument.is_instance_of::<PyString>() || argument.is_instance_of::<PyBytes>() {
            let value = self.encode.bind(py).call1((argument,))?;
            self.append_encoded(codec, py, codec::bytes(&value)?.as_bytes(), key, out)?;
        } else {
            // Numbers stay numbers; what is no value at all is refused there.
            self.append_argument(argument, out)?;
        }
        Ok(())
    }

    /// Appends a value as one word: its envelope, or itself.
    fn append_encoded<'py>(
        &self,
        codec: &Codec,
        py: Python<'py>,
        value: &[u8],
        key: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
        out: &mut Vec<u8>,
    ) -> PyResult<()> {
        let method = codec.method(py, value, |choose| self.tell_key(&key()?, choose))?;
        let mut envelope = ENVELOPE.take();
        envelope.clear();
        let encoded = codec.encode_into(py, value, method, &mut envelope);
        let appended = append_word(if encoded { &envelope } else { value }, out);
        codec::keep(&ENVELOPE, envelope);
        appended
    }

    /// Returns the bytes of a key, as it is sent.
    fn tell_key(&self, key: &Bound<'_, PyAny>, choose: &mut dyn FnMut(&[u8])) -> PyResult<()> {
        match self.readily(key)? {
            Some(bytes) => choose(bytes),
            None => choose(codec::bytes(&self.encode.bind(key.py()).call1((key,))?)?.as_bytes()),
        }
        Ok(())
    }

    /// The bytes of an argument that has them at hand.
    fn readily<'a>(&self, argument: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a [u8]>> {
        if let Ok(value) = argument.cast_exact::<PyBytes>() {
            return Ok(Some(value.as_bytes()));
        }
        match argument.cast_exact::<PyString>() {
            Ok(value) if self.sends_utf8 => Ok(Some(value.to_str()?.as_bytes())),
            _ => Ok(None),
        }
    }

    /// The envelopes of all values in a pipeline that have their bytes at hand, if it is worth encoding them together;
    /// else nothing.
    fn encoded_together(&self, commands: &Bound<'_, PyList>) -> PyResult<Vec<Option<Vec<u8>>>> {
        let Some(codec) = self.codec.as_ref().map(Py::get).filter(|_| commands.len() > 1) else {
            return Ok(Vec::new());
        };
        if rough_bytes(commands)? < codec.worth_threads() {
            return Ok(Vec::new());
        }
        let mut arguments = Vec::with_capacity(commands.len());
        let mut found = Found::default();
        for command in commands.iter() {
            let args = command.cast_into::<PyTuple>()?.get_item(0)?.cast_into::<PyTuple>()?;
            let Some((command, words)) = shared_command(&args)? else { continue };
            self.read(command, &words, &mut found)?;
            for value in found.values() {
                arguments.push((words.get_item(value.at)?, words.get_item(value.key)?));
            }
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, key) in &arguments {
            if let Some(value) = self.readily(argument)? {
                values.push((value, key));
            }
        }
        let bytes: usize = values.iter().map(|(value, _)| value.len()).sum();
        if values.len() < 2 || bytes < codec.worth_threads() {
            return Ok(Vec::new());
        }
        let with_method = |(value, key)| {
            let method = codec.method(commands.py(), value, |choose| self.tell_key(key, choose))?;
            Ok((value, method))
        };
        let values = values.into_iter().map(with_method).collect::<PyResult<_>>()?;
        Ok(together::encode(codec, commands.py(), values))
    }

    fn append_argument(&self, argument: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
        if let Some(bytes) = self.readily(argument)? {
            return append_word(bytes, out);
        }
        if let Ok(number) = argument.cast_exact::<PyInt>()
            && let Ok(number) = number.extract::<i64>()
        {
            return append_word(itoa::Buffer::new().format(number).as_bytes(), out);
        }
        let bytes = self.encode.bind(argument.py()).call1((argument,))?;
        append_word(codec::bytes(&bytes)?.as_bytes(), out)
    }
}

/// Appends an argument of any length. Raises MemoryError.
fn append_word(word: &[u8], out: &mut Vec<u8>) -> PyResult<()> {
    room_for(out, word.len() + MOST_FRAMING, "a request")?;
    encode_bulk(word, out);
    Ok(())
}

/// A command and its words; None if it is not for this transport.
fn shared_command<'py>(
    args: &Bound<'py, PyTuple>,
) -> PyResult<Option<(&'static Command, Bound<'py, PyTuple>)>> {
    let name = args.get_borrowed_item(0)?;
    let Ok(name) = name.cast_exact::<PyString>() else { return Ok(None) };
    let name = name.to_str()?;
    let Some(command) = shared(name) else { return Ok(None) };
    let words = if name.contains(' ') { split(args)? } else { args.clone() };
    Ok(Some((command, words)))
}

/// About how many bytes all arguments have in sum.
fn rough_bytes(commands: &Bound<'_, PyList>) -> PyResult<usize> {
    let mut sum = 0;
    for command in commands.iter() {
        let command = command.cast_into::<PyTuple>()?;
        let args = command.get_borrowed_item(0)?;
        for argument in args.cast::<PyTuple>()?.iter_borrowed() {
            if argument.is_exact_instance_of::<PyBytes>() || argument.is_exact_instance_of::<PyString>() {
                sum += argument.len()?;
            }
        }
    }
    Ok(sum)
}
