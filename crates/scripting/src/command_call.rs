//! `call` and `pcall` of `server`: a command of a script, from its arguments on Lua's stack to its reply there.
//!
//! Scripts do little but this, so it works on the stack itself. What Lua raises leaves a function by a long jump: nothing
//! here has a destructor while Lua may raise something.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;

use mlua::{Function, Lua, Value, ffi};
use snugly_protocol::resp::{ArgsBuffer, Protocol, format_double, parse_integer};

use crate::failure::COUNTED;
use crate::host::HOST;
use crate::incoming;

/// Memory that is kept for the arguments of the next command, in bytes.
const KEPT_ARGUMENTS: usize = 64 << 10;
const NO_ARGUMENTS: &[u8] = b"ERR Please specify at least one argument for this call";
const WRONG_ARGUMENTS: &[u8] = b"ERR Command arguments must be strings or integers";

thread_local! {
    static ARGUMENTS: RefCell<ArgsBuffer> = RefCell::default();
    /// The version of RESP that the script that runs has chosen.
    static PROTOCOL: Cell<Protocol> = const { Cell::new(Protocol::Resp2) };
    /// The reply that is to be put on the stack: its place and length.
    static REPLY: Cell<(*const u8, usize)> = const { Cell::new((std::ptr::null(), 0)) };
    /// The panic of a command, on its way past Lua.
    static PANIC: Cell<Option<Box<dyn Any + Send>>> = const { Cell::new(None) };
}

/// The version of RESP that the script of this thread has chosen.
pub(crate) fn protocol() -> Protocol {
    PROTOCOL.get()
}

/// Chooses the version of RESP for what follows on this thread.
pub(crate) fn choose_protocol(protocol: Protocol) {
    PROTOCOL.set(protocol);
}

/// The functions `call`, which raises the error of a command, and `pcall`, which returns it.
pub(crate) fn functions(lua: &Lua) -> mlua::Result<(Function, Function)> {
    // For replies of several parts, and for panics, which must not pass through Lua.
    let convert = lua.create_function(|lua, ()| {
        if let Some(panic) = PANIC.take() {
            resume_unwind(panic);
        }
        // SAFETY: `run` has just set it, and the host keeps its reply until it is called again.
        let reply = unsafe { reply() };
        incoming::value(lua, reply, PROTOCOL.get())
    })?;
    // SAFETY: the closures find `convert` as their only upvalue.
    let closure = |function| unsafe {
        lua.exec_raw(convert.clone(), |state| ffi::lua_pushcclosure(state, function, 1))
    };
    Ok((closure(call)?, closure(pcall)?))
}

unsafe extern "C-unwind" fn call(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: it is a closure with `convert`, called by Lua; the error on top of the stack is what it raises.
    unsafe {
        if run(state) {
            ffi::lua_error(state);
        }
    }
    1
}

unsafe extern "C-unwind" fn pcall(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: it is a closure with `convert`, called by Lua.
    unsafe { run(state) };
    1
}

/// Outcome of a command, whose answer is not on the stack yet.
#[derive(Clone, Copy)]
enum Outcome {
    Replied,
    Refused(&'static [u8]),
    Panicked,
}

/// Runs a command whose arguments are on the stack, and puts what it answers on top; returns whether that is an error.
///
/// # Safety
/// It is for a closure with `convert` as its upvalue, which Lua has called.
unsafe fn run(state: *mut ffi::lua_State) -> bool {
    // Neither Lua's nor the host's: it neither raises nor keeps anything.
    let outcome = catch_unwind(AssertUnwindSafe(|| ask(state))).unwrap_or_else(|panic| {
        PANIC.set(Some(panic));
        Outcome::Panicked
    });
    // SAFETY: at most a table, a name and a text are pushed at a time, for which Lua has seen to room; `ask` has set the
    // reply, and the host keeps it until it is called again.
    unsafe {
        match outcome {
            Outcome::Replied => push_reply(state),
            Outcome::Refused(reason) => {
                push_error(state, reason, false);
                true
            }
            Outcome::Panicked => {
                convert(state);
                false
            }
        }
    }
}

/// Asks the host to run a command, whose reply is then in `REPLY`.
fn ask(state: *mut ffi::lua_State) -> Outcome {
    ARGUMENTS.with_borrow_mut(|arguments| {
        arguments.clear(KEPT_ARGUMENTS);
        // SAFETY: Lua has called the function, with its arguments on the stack.
        match unsafe { collect(state, arguments) } {
            Ok(()) => HOST.with(|host| {
                let reply = host.call(arguments.args(), PROTOCOL.get());
                REPLY.set((reply.as_ptr(), reply.len()));
                Outcome::Replied
            }),
            Err(reason) => Outcome::Refused(reason),
        }
    })
}

/// Takes the arguments of a command from the stack.
///
/// # Safety
/// The state is one whose function is called.
unsafe fn collect(state: *mut ffi::lua_State, arguments: &mut ArgsBuffer) -> Result<(), &'static [u8]> {
    // SAFETY: the places are within the stack. A string is not converted, and it stays as long as it is there.
    unsafe {
        let count = ffi::lua_gettop(state);
        if count == 0 {
            return Err(NO_ARGUMENTS);
        }
        for place in 1..=count {
            match ffi::lua_type(state, place) {
                ffi::LUA_TSTRING => {
                    let mut len = 0;
                    let text = ffi::lua_tolstring(state, place, &raw mut len);
                    arguments.push(slice::from_raw_parts(text.cast(), len));
                }
                ffi::LUA_TNUMBER => {
                    let number = ffi::lua_tonumber(state, place);
                    arguments.push_with(|out| write_number(number, out));
                }
                _ => return Err(WRONG_ARGUMENTS),
            }
        }
        Ok(())
    }
}

/// Writes a number as Valkey does for commands of scripts: as in replies, with the sign of one that is none.
pub(crate) fn write_number(number: f64, out: &mut Vec<u8>) {
    if number.is_nan() && number.is_sign_negative() {
        out.push(b'-');
    }
    format_double(number, out);
}

/// The reply of the last command.
///
/// # Safety
/// The host that has given it must not have been called since.
unsafe fn reply<'a>() -> &'a [u8] {
    let (place, len) = REPLY.get();
    // SAFETY: they are those of a slice that is still there, as the caller promises.
    unsafe { slice::from_raw_parts(place, len) }
}

/// Puts the reply of the last command on the stack; returns whether it is an error.
///
/// # Safety
/// There is room on the stack, `REPLY` is set, and the function is a closure with `convert`.
unsafe fn push_reply(state: *mut ffi::lua_State) -> bool {
    // SAFETY: as the caller promises. What is pushed is copied.
    unsafe {
        let reply = reply();
        let (kind, line) = match reply.split_first() {
            Some((kind, rest)) => (*kind, rest.strip_suffix(b"\r\n").unwrap_or(rest)),
            None => (0, reply),
        };
        match kind {
            b'-' => {
                push_error(state, line, true);
                return true;
            }
            b':' if let Some(number) = parse_integer(line) => ffi::lua_pushnumber(state, number as f64),
            b'$' if line == b"-1" => ffi::lua_pushboolean(state, 0),
            b'$' => match bulk(line) {
                Some(text) => push_text(state, text),
                None => convert(state),
            },
            b'+' => {
                ffi::lua_createtable(state, 0, 1);
                push_text(state, b"ok");
                push_text(state, line);
                ffi::lua_rawset(state, -3);
            }
            _ => convert(state),
        }
    }
    false
}

/// The text of a string's reply, without what is in front of it; `None` if that is no length.
fn bulk(line: &[u8]) -> Option<&[u8]> {
    let digits = line.iter().position(|&byte| byte == b'\r')?;
    let text = line.get(digits + 2..)?;
    let len = line[..digits].iter().try_fold(0_usize, |len, byte| match byte {
        b'0'..=b'9' => len.checked_mul(10)?.checked_add(usize::from(byte - b'0')),
        _ => None,
    })?;
    (text.len() == len).then_some(text)
}

unsafe fn push_text(state: *mut ffi::lua_State, text: &[u8]) {
    // SAFETY: the text is copied; there is room for it, as the callers see to.
    unsafe { ffi::lua_pushlstring(state, text.as_ptr().cast(), text.len()) };
}

/// Puts an error on the stack as scripts know it: a table with its text.
unsafe fn push_error(state: *mut ffi::lua_State, text: &[u8], is_counted: bool) {
    // SAFETY: a table, a name and a value are three places, for which the callers see to room.
    unsafe {
        ffi::lua_createtable(state, 0, 2);
        push_text(state, b"err");
        push_text(state, text);
        ffi::lua_rawset(state, -3);
        if is_counted {
            push_text(state, COUNTED.as_bytes());
            ffi::lua_pushboolean(state, 1);
            ffi::lua_rawset(state, -3);
        }
    }
}

/// Puts what `convert` returns on the stack.
unsafe fn convert(state: *mut ffi::lua_State) {
    // SAFETY: the upvalue is a function that takes nothing and returns one value.
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_call(state, 0, 1);
    }
}

/// The arguments of a command that other functions are given.
pub(crate) fn collect_values(
    arguments: &mut ArgsBuffer,
    values: &mlua::MultiValue,
) -> Result<(), &'static [u8]> {
    if values.is_empty() {
        return Err(NO_ARGUMENTS);
    }
    for value in values {
        match value {
            Value::String(text) => arguments.push(&text.as_bytes()),
            Value::Number(number) => arguments.push_with(|out| write_number(*number, out)),
            Value::Integer(number) => arguments.push_with(|out| write_number(*number as f64, out)),
            _ => return Err(WRONG_ARGUMENTS),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_what_its_length_says() {
        assert_eq!(bulk(b"3\r\nabc"), Some(&b"abc"[..]));
        assert_eq!(bulk(b"0\r\n"), Some(&b""[..]));
        assert_eq!(bulk(b"4\r\na\r\nb"), Some(&b"a\r\nb"[..]));
        for wrong in [&b"-1"[..], b"2\r\nabc", b"x\r\nabc", b"3", b"", b"99999999999999999999999\r\nx"] {
            assert_eq!(bulk(wrong), None, "{}", wrong.escape_ascii());
        }
    }
}
