//! A virtual machine of Lua, and the running of scripts on it.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Value, VmState};
use snugly_protocol::resp::{Args, Protocol, ReplyBuffer};

use crate::c_functions::string_table;
use crate::calls;
use crate::command_call::{choose_protocol, protocol};
use crate::failure::{CompileError, EngineError, Failure, Killed, message};
use crate::host::{HOST, Host};
use crate::libraries::{self, Libraries};
use crate::library::{LibraryError, Loading, Registered, Registry, register_function};
use crate::outgoing::{self, Unanswerable};
use crate::sandbox::{Sandbox, compile};
use crate::script::Script;

/// The names of scripts and of libraries in errors.
const SCRIPT_NAME: &str = "@user_script";
const LIBRARY_NAME: &str = "@user_function";
/// Instructions after which a script is asked whether it is to go on.
const INTERVAL: u32 = 20_000;
/// The deepest place of the stack that is looked at for where a script is.
const DEEPEST: usize = 16;
/// Bytes of garbage after which everything that no script needs is given back.
const GARBAGE: usize = 1 << 20;

/// A virtual machine of Lua.
pub struct Engine {
    lua: Lua,
    sandbox: Sandbox,
    libraries: Libraries,
    /// The error that has ended the last script, and where.
    failure: Kept,
    registry: Registry,
    /// Bytes in use when everything else had been given back.
    in_use: usize,
}

/// The source and the line of a script.
type Place = (String, usize);
/// The error that has ended a script, and where, until it is asked for.
type Kept = Rc<RefCell<Option<(Failure, Option<Place>)>>>;

impl Engine {
    /// A virtual machine whose scripts may take `memory` bytes together.
    ///
    /// # Errors
    /// If there is too little memory for it.
    pub fn new(memory: usize) -> Result<Engine, EngineError> {
        let standard = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(standard, LuaOptions::new().catch_rust_panics(true))?;
        let libraries = libraries::install(&lua)?;
        let failure = Kept::default();
        let kept = failure.clone();
        let fail = move |lua: &Lua, error: Value| {
            let place = place(lua);
            *kept.borrow_mut() = Some((Failure::of(&error).without_sandbox(place.as_ref()), place));
            Ok(())
        };
        let registry: Registry = Rc::new(RefCell::new(Ok(Vec::new())));
        let sandbox = Sandbox::new(
            &lua,
            &calls::natives(&lua)?,
            lua.create_function(fail)?,
            register_function(&lua, registry.clone())?,
        )?;
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(INTERVAL), |_, _| {
            if HOST.is_set() && HOST.with(|host| host.is_killed()) {
                return Err(mlua::Error::external(Killed(HOST.with(|host| host.kind()))));
            }
            Ok(VmState::Continue)
        })?;
        lua.set_memory_limit(memory)?;
        let in_use = lua.used_memory();
        Ok(Engine { lua, sandbox, libraries, failure, registry, in_use })
    }

    /// Bytes that the machine takes, compiled scripts included.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }

    /// Sets how many bytes scripts may take together.
    pub fn set_memory_limit(&self, bytes: usize) {
        // It fails only for a machine with another allocator.
        let _ = self.lua.set_memory_limit(bytes);
    }

    /// Compiles a script without its header.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub fn compile(&self, code: &[u8]) -> Result<Script, CompileError> {
        compile(&self.lua, code, SCRIPT_NAME, &self.sandbox.scripts)
            .map(|function| Script { function, is_of_library: false })
            .map_err(|error| CompileError(message(&error).into_bytes()))
    }

    /// Runs the code of a library without its header, and returns the functions that it registers.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub fn load_library(&mut self, code: &[u8]) -> Result<Vec<Registered>, LibraryError> {
        let function = compile(&self.lua, code, LIBRARY_NAME, &self.sandbox.libraries)
            .map_err(|error| LibraryError::Code(message(&error)))?;
        *self.registry.borrow_mut() = Ok(Vec::new());
        let mut loading = Loading::begin();
        let outcome = HOST.set(&mut loading, || self.sandbox.load_library.call::<(bool, Value)>(function));
        self.libraries.reset();
        self.give_back();
        let registered = self.registry.replace(Ok(Vec::new()));
        let failed = |text: &[u8]| LibraryError::Failed(String::from_utf8_lossy(text).into_owned());
        match outcome {
            _ if loading.is_killed() => Err(LibraryError::TooLong),
            Err(error) => Err(failed(message(&error).as_bytes())),
            Ok((false, error)) => {
                let failure = self.failure.take().map_or_else(|| Failure::of(&error), |(failure, _)| failure);
                Err(failed(&failure.text))
            }
            Ok((true, _)) => match registered? {
                functions if functions.is_empty() => Err(LibraryError::NoFunctions),
                functions => Ok(functions),
            },
        }
    }

    /// Runs a script, and writes what it returns.
    ///
    /// # Errors
    /// The error that it has ended with, or has returned. Then nothing is written.
    pub fn run(
        &mut self,
        script: &Script,
        keys: Args<'_>,
        arguments: Args<'_>,
        host: &mut dyn Host,
        replies: &mut ReplyBuffer,
    ) -> Result<(), Failure> {
        choose_protocol(Protocol::Resp2);
        let start = replies.as_bytes().len();
        let outcome = HOST.set(host, || self.run_and_reply(script, keys, arguments, replies));
        self.libraries.reset();
        self.give_back();
        outcome.inspect_err(|_| replies.as_mut_vec().truncate(start))
    }

    fn run_and_reply(
        &self,
        script: &Script,
        keys: Args<'_>,
        arguments: Args<'_>,
        replies: &mut ReplyBuffer,
    ) -> Result<(), Failure> {
        let value =
            self.value_of(script, keys, arguments).map_err(|error| Failure::new(&message(&error)))??;
        if let Value::Table(table) = &value
            && let Ok(Value::String(_)) = table.raw_get("err")
        {
            return Err(Failure::of(&value));
        }
        outgoing::reply(value, protocol(), replies).map_err(|reason| match reason {
            Unanswerable::TooDeep => Failure::new("reached lua stack limit"),
            Unanswerable::Lua(error) => Failure::new(&message(&error)),
        })
    }

    /// The first value that a script returns, or the failure that ends it. The outer error is one of the machine itself.
    fn value_of(
        &self,
        script: &Script,
        keys: Args<'_>,
        arguments: Args<'_>,
    ) -> mlua::Result<Result<Value, Failure>> {
        let (keys, arguments) = (string_table(&self.lua, keys)?, string_table(&self.lua, arguments)?);
        let Sandbox { run_script, run_function, .. } = &self.sandbox;
        let run = if script.is_of_library { run_function } else { run_script };
        let mut results: MultiValue = run.call((&script.function, keys, arguments))?;
        let is_ok = matches!(results.pop_front(), Some(Value::Boolean(true)));
        let value = results.pop_front().unwrap_or(Value::Nil);
        if is_ok {
            return Ok(Ok(value));
        }
        // Lua's own handling of errors may have failed, for want of memory or stack.
        Ok(Err(match self.failure.take() {
            Some((failure, Some((source, line)))) => failure.at(&source, line),
            Some((failure, None)) => failure,
            None => Failure::of(&value),
        }))
    }

    /// Gives memory back once a script has left much of it.
    fn give_back(&mut self) {
        if self.lua.used_memory() > 2 * self.in_use + GARBAGE {
            // What cannot be collected now is collected after the next script.
            let _ = self.lua.gc_collect();
            self.in_use = self.lua.used_memory();
        }
    }
}

/// The source and the line of the script that has raised an error.
fn place(lua: &Lua) -> Option<Place> {
    (1..DEEPEST).find_map(|level| {
        let place = lua.inspect_stack(level, |frame| {
            let source = frame.source().source.filter(|source| !source.starts_with('='))?.into_owned();
            Some((source, frame.current_line()?))
        });
        place.flatten()
    })
}

#[cfg(test)]
mod tests;
