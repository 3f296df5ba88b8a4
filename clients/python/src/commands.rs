//! The command table for Python's objects: which arguments of a command are values, and which parts of its reply.
//!
//! Encoding and decoding a value are passed in.

use std::borrow::Cow;
use std::cell::Cell;
use std::vec;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use snugly_commands::{
    Arguments, Command, Found, Key, Meaning, Opened, Refused, Reply, Shape, ValueType, command,
};

use crate::allowance::Budget;
use crate::codec;
use crate::leaving::inside;

/// Keys, or values, of a command that a thread keeps room for at most.
const MAX_KEPT: usize = 1000;

thread_local! {
    static FOUND: Cell<Found> = const { Cell::new(Found::new()) };
}

/// The table for a client that compresses values of certain types.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Interpreter {
    table: snugly_commands::Interpreter,
    refused: Py<PyAny>,
}

#[pymethods]
impl Interpreter {
    /// `types` are the table's names of types of values. `refused` makes an exception of a message and the name of a
    /// command.
    #[new]
    fn new(types: Vec<String>, refused: Py<PyAny>) -> Interpreter {
        let is_given = |each: &ValueType| types.iter().any(|name| name == each.name());
        let table = snugly_commands::Interpreter::new(ValueType::ALL.into_iter().filter(is_given));
        Interpreter { table, refused }
    }

    /// Returns whether a command has values, in its arguments or its reply, by its name as a client writes
    /// it.
    fn carries_values(&self, name: &Bound<'_, PyAny>) -> bool {
        command(first_word(&word(name.as_borrowed())))
            .is_some_and(|command| self.table.carries_values(command))
    }

    /// The names of commands that pass as they are, whatever their arguments, as do their replies, but EXEC's.
    fn untouched(&self) -> Vec<&'static str> {
        self.table.untouched().map(Command::name).collect()
    }

    /// The arguments to send, each value as `encode(value, key)` returns it; and whether the reply may have values, None
    /// if the command has none at all. Raises what `refused` makes.
    fn request<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        encode: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyTuple>, Option<bool>)> {
        let py = args.py();
        let _inside = inside(py);
        let words = split(args)?;
        with_found(|found| {
            let has_reply = match self.read(&words, found)? {
                Meaning::Touched { reply: Some(Shape::Transaction) }
                | Meaning::Untouched
                | Meaning::Unknown => {
                    return Ok((args.clone(), None));
                }
                Meaning::Touched { reply } => reply.is_some(),
            };
            if found.values().is_empty() {
                return Ok((words.clone(), Some(has_reply)));
            }
            let mut sent: Vec<_> = words.iter().collect();
            for value in found.values() {
                sent[value.at] = encode.call1((&sent[value.at], &sent[value.key]))?;
            }
            Ok((PyTuple::new(py, sent)?, Some(has_reply)))
        })
    }

    /// The reply to a command that was sent, each value as `decode(value, key, budget)` returns it; the key is None if
    /// it is not known.
    fn restored<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        reply: &Bound<'py, PyAny>,
        decode: &Bound<'py, PyAny>,
        budget: &Bound<'py, Budget>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _inside = inside(args.py());
        with_found(|found| {
            let Meaning::Touched { reply: Some(shape) } = self.read(args, found)? else {
                return Ok(reply.clone());
            };
            let whole = PyList::new(args.py(), [reply])?;
            let place = Place { holder: Holder::List(whole.clone(), 0), part: reply.clone() };
            shape.walk(place, |place, key| {
                let key = match key {
                    Key::Argument(at) => found.keys().get(at).map(|&at| args.get_item(at)).transpose()?,
                    Key::Named(name) => Some(name),
                };
                place.holder.put(decode.call1((&place.part, key, budget))?)
            })?;
            whole.get_item(0)
        })
    }
}

impl Interpreter {
    /// Reads a command by the table.
    ///
    /// # Errors
    /// CommandRefusedError.
    pub fn read(&self, words: &Bound<'_, PyTuple>, found: &mut Found) -> PyResult<Meaning> {
        self.table.read(&Words(words), found).map_err(|refused| self.refusal(words.py(), refused))
    }

    /// Reads a command whose name has been looked up.
    ///
    /// # Errors
    /// As [`Interpreter::read`].
    pub fn read_as(
        &self,
        command: &'static Command,
        words: &Bound<'_, PyTuple>,
        found: &mut Found,
    ) -> PyResult<Meaning> {
        self.table.read_as(command, &Words(words), found).map_err(|refused| self.refusal(words.py(), refused))
    }

    fn refusal(&self, py: Python<'_>, refused: Refused) -> PyErr {
        let error = self.refused.bind(py).call1((refused.to_string(), refused.command));
        error.map_or_else(|error| error, PyErr::from_value)
    }
}

/// The name of a command in capitals, by its name as a client writes it; None if the table has none.
#[pyfunction]
pub(crate) fn command_name(name: &Bound<'_, PyAny>) -> Option<&'static str> {
    command(first_word(&word(name.as_borrowed()))).map(|command| command.name())
}

/// The key with this number among the arguments of a command.
pub(crate) fn key_of<'py>(words: &Bound<'py, PyTuple>, number: usize) -> Option<Bound<'py, PyAny>> {
    let args = Words(words);
    let mut found = Found::default();
    command(&args.get(0))?.find(&args, &mut found);
    words.get_item(*found.keys().get(number)?).ok()
}

/// Calls `work` with memory for positions that this thread uses again and again.
pub(crate) fn with_found<T>(work: impl FnOnce(&mut Found) -> PyResult<T>) -> PyResult<T> {
    let mut found = FOUND.take();
    let result = work(&mut found);
    if found.keys().len().max(found.values().len()) <= MAX_KEPT {
        FOUND.set(found);
    }
    result
}

/// The words of a command: its arguments, but for a name that has the first of them in the same string. Clients split
/// that as well.
pub(crate) fn split<'py>(args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    let words = Words(args);
    let name = words.get(0);
    if !name.iter().any(is_space) {
        return Ok(args.clone());
    }
    let words = name.split(is_space).filter(|word| !word.is_empty());
    let words = words.map(|word| PyBytes::new(args.py(), word).into_any());
    PyTuple::new(args.py(), words.chain(args.iter().skip(1)).collect::<Vec<_>>())
}

/// The first word of a name.
fn first_word(name: &[u8]) -> &[u8] {
    name.split(is_space).find(|word| !word.is_empty()).unwrap_or_default()
}

/// White space as Python has it in bytes.
fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == 0x0b
}

/// The words of a command for the table.
pub(crate) struct Words<'a, 'py>(pub &'a Bound<'py, PyTuple>);

impl Arguments for Words<'_, '_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, at: usize) -> Cow<'_, [u8]> {
        self.0.get_borrowed_item(at).map_or_else(|_| Cow::default(), word)
    }
}

/// An argument as the table compares it; empty for what can be no word.
fn word<'a>(argument: Borrowed<'a, '_, PyAny>) -> Cow<'a, [u8]> {
    if let Ok(text) = argument.cast::<PyString>() {
        return match argument.extract::<&str>() {
            Ok(text) => Cow::Borrowed(text.as_bytes()),
            Err(_) => Cow::Owned(text.to_string_lossy().into_owned().into_bytes()),
        };
    }
    if let Ok(bytes) = argument.extract::<&[u8]>() {
        return Cow::Borrowed(bytes);
    }
    if argument.is_instance_of::<PyInt>() {
        return Cow::Owned(argument.to_string().into_bytes());
    }
    codec::bytes(&argument).map_or_else(|_| Cow::default(), |bytes| Cow::Owned(bytes.as_bytes().to_vec()))
}

/// A part of a reply, and where another can be put in its place.
struct Place<'py> {
    holder: Holder<'py>,
    part: Bound<'py, PyAny>,
}

enum Holder<'py> {
    List(Bound<'py, PyList>, usize),
    /// The value of a key in a map.
    Map(Bound<'py, PyDict>, Bound<'py, PyAny>),
    /// A map's key stays.
    Key,
}

impl<'py> Holder<'py> {
    fn put(&self, part: Bound<'py, PyAny>) -> PyResult<()> {
        match self {
            Holder::List(list, at) => list.set_item(*at, part),
            Holder::Map(map, key) => map.set_item(key, part),
            Holder::Key => Ok(()),
        }
    }
}

impl<'py> Place<'py> {
    /// Opens a copy that takes the part's place: somebody else may have the reply, too, such as a client-side cache.
    fn open_copy(&self) -> PyResult<Opened<Place<'py>>> {
        if let Ok(list) = self.part.cast::<PyList>() {
            let copy = list.get_slice(0, list.len());
            self.holder.put(copy.clone().into_any())?;
            let place = |(at, part)| Place { holder: Holder::List(copy.clone(), at), part };
            return Ok(Opened::Array(copy.iter().enumerate().map(place).collect::<Vec<_>>().into_iter()));
        }
        let Ok(map) = self.part.cast::<PyDict>() else { return Ok(Opened::Other) };
        let copy = map.copy()?;
        self.holder.put(copy.clone().into_any())?;
        let pair = |(key, part): (Bound<'py, PyAny>, _)| {
            let value = Place { holder: Holder::Map(copy.clone(), key.clone()), part };
            (Place { holder: Holder::Key, part: key }, value)
        };
        Ok(Opened::Map(copy.iter().map(pair).collect::<Vec<_>>().into_iter()))
    }
}

impl<'py> Reply for Place<'py> {
    type Elements = vec::IntoIter<Place<'py>>;
    type Pairs = vec::IntoIter<(Place<'py>, Place<'py>)>;
    type Name = Bound<'py, PyAny>;

    fn open(self) -> Opened<Place<'py>> {
        if self.part.is_instance_of::<PyBytes>() || self.part.is_instance_of::<PyString>() {
            return Opened::Bulk(self);
        }
        self.open_copy().unwrap_or(Opened::Other)
    }

    fn name(self) -> Bound<'py, PyAny> {
        self.part
    }
}
