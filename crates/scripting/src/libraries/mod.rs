//! The libraries that scripts find beside those of Lua: bit, cjson, cmsgpack and struct, and the random numbers of math.
//!
//! It knows what these do in Valkey, down to the texts of errors, and which settings a script can change. It must not
//! know the sandbox: who installs the libraries protects their tables.

mod bit;
mod cjson;
mod cmsgpack;
mod functions;
mod random;
mod structs;

use std::rc::Rc;

use mlua::{Lua, Table, Value};

/// The most bytes that a library makes of values: what a string of the protocol may have.
const MAX_RESULT: usize = 512 << 20;

/// The deepest nesting that the recursion of encoders and decoders takes, whatever the settings say: a part of the
/// stack of a thread.
const MAX_NESTING: usize = 1_000;

/// The most values that a function returns: C functions of Lua have 8,000 places on the stack.
const MAX_RESULTS: usize = 7_900;

/// What scripts can change in the libraries.
pub struct Libraries {
    settings: Rc<cjson::Shared>,
    random: Rc<random::Sequence>,
}

impl Libraries {
    /// Forgets what a script has changed: settings are the defaults, and a seed of random numbers is none any more.
    pub fn reset(&self) {
        self.settings.reset();
        self.random.reset();
    }
}

/// Makes the global tables `bit`, `cjson`, `cmsgpack` and `struct`, and replaces `math.random` and `math.randomseed`.
///
/// # Errors
///
/// If there is no memory for it, or no table `math`.
pub fn install(lua: &Lua) -> mlua::Result<Libraries> {
    let settings = Rc::new(cjson::Shared::default());
    let random = Rc::new(random::Sequence::default());
    let globals = lua.globals();
    globals.raw_set("bit", bit::table(lua)?)?;
    globals.raw_set("cjson", cjson::table(lua, &settings)?)?;
    globals.raw_set("cmsgpack", cmsgpack::table(lua)?)?;
    globals.raw_set("struct", structs::table(lua)?)?;
    random::replace(lua, &globals.raw_get("math")?, &random)?;
    Ok(Libraries { settings, random })
}

/// Calls the function with the keys of the table, in the order of `next`, until it returns false.
fn for_each_key(table: &Table, mut goes_on: impl FnMut(&Value) -> bool) -> mlua::Result<()> {
    let mut stopped = false;
    // A boolean is what Lua makes of any value without a reference to it. Which error stops the loop means nothing.
    let ended = table.for_each(|key: Value, _: bool| {
        stopped = !goes_on(&key);
        if stopped { Err(mlua::Error::BindError) } else { Ok(()) }
    });
    if stopped { Ok(()) } else { ended }
}

#[cfg(test)]
mod tests;
