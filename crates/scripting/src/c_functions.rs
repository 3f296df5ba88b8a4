//! Functions of Lua's C interface, where those of Rust would look different to scripts, and those of Lua 5.1 go too far.
//!
//! It knows the stack of Lua. Nothing in a function here has a destructor, so that errors may leave it by a long jump.

use std::ffi::c_int;

use mlua::{Function, Lua, Table, ffi};
use snugly_protocol::resp::Args;

/// Hides a function of the sandbox behind one that looks as if it were of Lua's own: a call in tail position leaves its
/// caller on the stack, where errors find its line.
pub(crate) fn as_native(lua: &Lua, inner: Function) -> mlua::Result<Function> {
    // SAFETY: the stack holds `inner`, which becomes the only upvalue of the closure that takes its place, as the
    // closure expects of its upvalues.
    unsafe { lua.exec_raw(inner, |state| ffi::lua_pushcclosure(state, call_upvalue, 1)) }
}

unsafe extern "C-unwind" fn call_upvalue(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: Lua calls it with the arguments on the stack and twenty places above; one is used, for the upvalue.
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, ffi::lua_gettop(state) - 1, ffi::LUA_MULTRET);
        ffi::lua_gettop(state)
    }
}

/// A table of these strings.
pub(crate) fn string_table(lua: &Lua, strings: Args<'_>) -> mlua::Result<Table> {
    let len = c_int::try_from(strings.len()).map_err(mlua::Error::external)?;
    // SAFETY: a table and a string are on the stack at a time. What Lua raises is caught outside of the closure, which has
    // nothing with a destructor.
    unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_createtable(state, len, 0);
            for (index, string) in (1..).zip(strings) {
                ffi::lua_pushlstring(state, string.as_ptr().cast(), string.len());
                ffi::lua_rawseti(state, -2, index);
            }
        })
    }
}

/// `pcall`, which sees to it that there is room for what it adds to the results, as Lua 5.1's own does not.
pub(crate) fn protected_call(lua: &Lua) -> mlua::Result<Function> {
    // SAFETY: the closure has no upvalues.
    unsafe { lua.exec_raw((), |state| ffi::lua_pushcclosure(state, call_protected, 0)) }
}

/// `xpcall`, like [`protected_call`].
pub(crate) fn protected_call_with_handler(lua: &Lua) -> mlua::Result<Function> {
    // SAFETY: the closure has no upvalues.
    unsafe { lua.exec_raw((), |state| ffi::lua_pushcclosure(state, call_protected_with_handler, 0)) }
}

unsafe extern "C-unwind" fn call_protected(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: there is a value to call, and what is behind it are its arguments.
    unsafe {
        if ffi::lua_gettop(state) == 0 {
            // To call nothing is an error that is caught, as in Valkey.
            ffi::lua_pushboolean(state, 1);
        }
        let status = ffi::lua_pcall(state, ffi::lua_gettop(state) - 1, ffi::LUA_MULTRET, 0);
        let results = ffi::lua_gettop(state);
        push_status(state, status);
        ffi::lua_insert(state, 1);
        results + 1
    }
}

unsafe extern "C-unwind" fn call_protected_with_handler(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the handler comes to stand in front of the function, which is called without arguments; what is behind the
    // handler then are the results.
    unsafe {
        ffi::luaL_checkany(state, 2);
        ffi::lua_settop(state, 2);
        ffi::lua_insert(state, 1);
        let status = ffi::lua_pcall(state, 0, ffi::LUA_MULTRET, 1);
        let results = ffi::lua_gettop(state);
        push_status(state, status);
        ffi::lua_replace(state, 1);
        results
    }
}

/// Pushes whether a call has succeeded.
///
/// # Safety
/// It is for a function that Lua has called: the error of a full stack leaves it.
unsafe fn push_status(state: *mut ffi::lua_State, status: c_int) {
    // SAFETY: room is made before it is used.
    unsafe {
        ffi::luaL_checkstack(state, 1, c"too many results".as_ptr());
        ffi::lua_pushboolean(state, c_int::from(status == ffi::LUA_OK));
    }
}
