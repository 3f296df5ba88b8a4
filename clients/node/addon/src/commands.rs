//! The command table for JavaScript's arguments: which of them are values, and where values are in replies.

use std::cell::Cell;

use napi::Env;
use napi::bindgen_prelude::{Array, Error};
use napi_derive::napi;
use smallvec::SmallVec;
use snugly_commands::{Command, Found, Interpreter, Meaning, Refused, Shape, ValueType, commands, keys};

use crate::codec::ValueCodec;
use crate::words::Words;

/// A command whose reply has no values.
const NO_REPLY: i32 = -1;
/// A command that is none of our business.
const UNTOUCHED: i32 = -2;
/// A command with values that are to be encoded on the worker pool.
const LARGE: i32 = -3;

thread_local! {
    static FOUND: Cell<Found> = const { Cell::new(Found::new()) };
}

/// A row of the table, for one client.
#[napi(object, object_from_js = false)]
pub struct CommandRow {
    /// Name in capitals.
    pub name: String,
    /// Number.
    pub number: u32,
    /// Treatment: `untouched` or `read`, where the reply has its shape, whatever the arguments are; `asked`, where
    /// they decide.
    pub treatment: String,
    /// Number of the shape of its reply, or -1.
    pub shape: i32,
}

/// Shape of a reply with values.
#[napi(object, object_from_js = false)]
pub struct ShapeRow {
    /// `value`, `transaction`, `each`, `element` or `pairs`.
    pub kind: String,
    /// Number of the shape of a part.
    pub inner: Option<u32>,
    /// Index of the element.
    pub at: Option<u32>,
    /// Whether element i belongs to the i-th key of the arguments.
    pub has_arguments_keys: bool,
    /// Whether the key stands in the reply.
    pub has_key: bool,
}

/// A value among the arguments: its index and its key's.
#[napi(object, object_from_js = false)]
pub struct ValuePlace {
    /// Index of the value.
    pub at: u32,
    /// Index of the key.
    pub key: u32,
}

/// Values of a command and the shape of its reply.
#[napi(object, object_from_js = false)]
pub struct Request {
    /// Number of the shape of the reply; -1 if it has no values, -2 if the command passes as it is.
    pub shape: i32,
    /// Values to be encoded.
    pub values: Vec<ValuePlace>,
}

/// The table for a client that compresses values of certain types.
#[napi]
pub struct CommandTable {
    interpreter: Interpreter,
    shapes: Vec<&'static Shape>,
}

#[napi]
impl CommandTable {
    /// Types are the table's names of types of values.
    #[napi(constructor)]
    pub fn new(types: Vec<String>) -> CommandTable {
        let is_given = |each: &ValueType| types.iter().any(|name| name == each.name());
        let interpreter = Interpreter::new(ValueType::ALL.into_iter().filter(is_given));
        let mut shapes = Vec::new();
        for command in commands() {
            let mut shape = command.reply();
            while let Some(each) = shape.filter(|each| !shapes.contains(each)) {
                shapes.push(each);
                shape = each.inner();
            }
        }
        CommandTable { interpreter, shapes }
    }

    /// Returns all commands of the table.
    #[napi]
    pub fn commands(&self) -> Vec<CommandRow> {
        let row = |command: &'static Command| {
            let is_read = self.interpreter.carries_values(command) && command.is_only_read();
            let treatment = if self.is_untouched(command) {
                "untouched"
            } else if is_read {
                "read"
            } else {
                "asked"
            };
            CommandRow {
                name: command.name().to_owned(),
                number: command.number() as u32,
                treatment: treatment.to_owned(),
                shape: if is_read { self.number(command.reply()) } else { NO_REPLY },
            }
        };
        commands().iter().map(row).collect()
    }

    /// Returns all shapes, by their numbers.
    #[napi]
    pub fn shapes(&self) -> Vec<ShapeRow> {
        self.shapes.iter().map(|shape| self.shape(shape)).collect()
    }

    /// Reads a command. Its name takes the first `from` elements of the arguments, 0 or 1. Throws
    /// `CommandRefused`.
    #[napi]
    pub fn read(&self, name: String, args: Array<'_>, from: u32) -> napi::Result<Request, String> {
        let words = Words::new(&name, &args, from as usize);
        let mut found = Found::default();
        let shape = match self.interpreter.read(&words, &mut found).map_err(refusal)? {
            Meaning::Touched { reply } => self.number(reply),
            Meaning::Untouched | Meaning::Unknown => UNTOUCHED,
        };
        let place = |value: &snugly_commands::Value| ValuePlace {
            at: words.index(value.at),
            key: words.index(value.key),
        };
        Ok(Request { shape, values: found.values().iter().map(place).collect() })
    }

    /// Encodes the values of the command of a number, which the codec returns, and returns the shape of the reply as
    /// [`read`](Self::read) does; -3 if a value has `large_from` bytes or more, and then nothing is encoded. Throws
    /// `CommandRefused`.
    #[napi]
    pub fn encode(
        &self,
        env: &Env,
        codec: &ValueCodec,
        number: u32,
        mut args: Array<'_>,
        from: u32,
        large_from: f64,
    ) -> napi::Result<i32, String> {
        let Some(command) = commands().get(number as usize) else { return Ok(UNTOUCHED) };
        let mut found = FOUND.take();
        let words = Words::new(command.name(), &args, from as usize);
        let meaning = self.interpreter.read_as(command, &words, &mut found).map_err(refusal);
        let values = found.values().iter().map(|value| (words.index(value.at), words.index(value.key)));
        let values: SmallVec<[_; 4]> = values.collect();
        FOUND.set(found);
        let reply = match meaning? {
            Meaning::Touched { reply } => reply,
            Meaning::Untouched | Meaning::Unknown => return Ok(UNTOUCHED),
        };
        let is_encoded = codec.encode_in(env, &mut args, &values, large_from as usize).map_err(failure)?;
        Ok(if is_encoded { self.number(reply) } else { LARGE })
    }

    /// Returns the indices of the keys in the arguments of a command.
    #[napi]
    pub fn keys(&self, name: String, args: Array<'_>, from: u32) -> Vec<u32> {
        let words = Words::new(&name, &args, from as usize);
        let mut found = Found::default();
        let found = keys(&words, &mut found).unwrap_or_default();
        found.iter().map(|&at| words.index(at)).collect()
    }
}

impl CommandTable {
    fn is_untouched(&self, command: &'static Command) -> bool {
        command.name() != "EXEC" && self.interpreter.is_untouched(command)
    }

    fn number(&self, shape: Option<&'static Shape>) -> i32 {
        let number = shape.and_then(|shape| self.shapes.iter().position(|each| *each == shape));
        number.map_or(NO_REPLY, |number| number as i32)
    }

    fn shape(&self, shape: &'static Shape) -> ShapeRow {
        let inner = shape.inner().map(|inner| self.number(Some(inner)) as u32);
        let row = |kind: &str| ShapeRow {
            kind: kind.to_owned(),
            inner,
            at: None,
            has_arguments_keys: false,
            has_key: false,
        };
        match shape {
            Shape::Value => row("value"),
            Shape::Transaction => row("transaction"),
            Shape::Each { has_arguments_keys, .. } => {
                ShapeRow { has_arguments_keys: *has_arguments_keys, ..row("each") }
            }
            Shape::Element { at, has_key, .. } => {
                ShapeRow { at: Some(*at as u32), has_key: *has_key, ..row("element") }
            }
            Shape::Pairs { has_key, .. } => ShapeRow { has_key: *has_key, ..row("pairs") },
        }
    }
}

fn refusal(refused: Refused) -> Error<String> {
    Error::new("CommandRefused".to_owned(), refused.to_string())
}

fn failure(error: Error) -> Error<String> {
    Error::new(error.status.to_string(), error.reason.clone())
}
