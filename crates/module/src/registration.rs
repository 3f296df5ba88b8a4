//! How the server is told of the module's commands: flags, categories of access lists, positions of keys.

use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::size_of;
use std::ptr;

use crate::commands::{Keys, Served, TABLE};
use crate::server::Context;
use crate::server::table::{
    self, CommandFunction, CommandInfo, CommandInfoVersion, KeySpec, KeySpecBegin, Keyword, functions,
};

/// A command of the module.
pub struct Definition<'a> {
    pub name: &'a CStr,
    pub run: CommandFunction,
    /// Words that the server knows, such as `readonly fast`.
    pub flags: &'a str,
    /// Categories of access lists.
    pub categories: &'a str,
    /// Positions of keys, and what the command does with them (`KEY_...`).
    pub keys: Option<(Keys, u64)>,
    pub summary: &'a CStr,
}

const SERVED: &CStr = c"Serves the server's command of this name, of strings that are stored compressed.";

/// Registers the commands that run in the place of the server's, two for each.
///
/// # Errors
/// A text that names the command that the server has refused.
pub fn register_served(context: Context) -> Result<(), String> {
    for served in TABLE.iter().filter_map(|row| row.served.as_ref()) {
        register_both(context, served)?;
    }
    Ok(())
}

fn register_both(context: Context, served: &Served) -> Result<(), String> {
    let flags = served.flags.to_str().expect("flags are ASCII");
    let (kind, access, word) = match flags.starts_with("write") {
        true => (table::KEY_READ_WRITE, table::KEY_ACCESS | table::KEY_UPDATE, "write"),
        false => (table::KEY_READ_ONLY, table::KEY_ACCESS, "read"),
    };
    let speed = if flags.contains("fast") { "fast" } else { "slow" };
    let unchecked = Definition {
        name: served.unchecked.name,
        run: served.unchecked.run,
        flags,
        categories: &format!("{word} {speed} {}", served.group),
        keys: Some((served.keys, kind | access)),
        summary: SERVED,
    };
    register(context, &unchecked)?;
    // The rights to its keys are those that the original asks for, which it sees to itself.
    let checked = Definition {
        name: served.checked.name,
        run: served.checked.run,
        flags: &format!("{flags} no-auth"),
        keys: Some((served.keys, kind)),
        ..unchecked
    };
    register(context, &checked)
}

/// Registers a command.
///
/// # Errors
/// A text that names the command, if the server has refused it.
pub fn register(context: Context, definition: &Definition<'_>) -> Result<(), String> {
    let text = |text: &str| CString::new(text).expect("flags and categories have no zero");
    let (flags, categories) = (text(definition.flags), text(definition.categories));
    let specs: Vec<_> =
        definition.keys.map_or_else(|| vec![END_OF_KEY_SPECS], |(keys, flags)| key_specs(keys, flags));
    let info = CommandInfo {
        version: &COMMAND_INFO_VERSION,
        summary: definition.summary.as_ptr(),
        complexity: ptr::null(),
        since: ptr::null(),
        history: ptr::null(),
        tips: ptr::null(),
        arity: 0,
        key_specs: specs.as_ptr(),
        arguments: ptr::null(),
    };
    let (functions, name) = (functions(), definition.name.as_ptr());
    // SAFETY: all texts end with a zero; the server copies them and the structures, which are those of their version.
    let registered = unsafe {
        (functions.CreateCommand)(context.raw(), name, definition.run, flags.as_ptr(), 0, 0, 0) == table::OK
            && {
                let command = (functions.GetCommand)(context.raw(), name);
                (functions.SetCommandInfo)(command, &info) == table::OK
                    && (functions.SetCommandACLCategories)(command, categories.as_ptr()) == table::OK
            }
    };
    match registered {
        true => Ok(()),
        false => Err(format!("snugly could not register {}", definition.name.to_string_lossy())),
    }
}

static COMMAND_INFO_VERSION: CommandInfoVersion = CommandInfoVersion {
    version: 1,
    history_entry: 2 * size_of::<*const c_void>(),
    key_spec: size_of::<KeySpec>(),
    argument: 80,
};

const END_OF_KEY_SPECS: KeySpec = KeySpec {
    notes: ptr::null(),
    flags: 0,
    begin_search: 0,
    begin: KeySpecBegin { index: 0 },
    find_keys: 0,
    last: 0,
    step: 0,
    limit: 0,
};

/// Where keys are, with the end of these. Nodes of a cluster see by them whose a command is.
fn key_specs(keys: Keys, flags: u64) -> Vec<KeySpec> {
    // A last position from the start is counted from the first key.
    let last = if keys.last < 0 { keys.last } else { keys.last - keys.first as i32 };
    let first = KeySpec {
        flags,
        begin_search: table::BEGIN_AT_INDEX,
        begin: KeySpecBegin { index: keys.first as c_int },
        find_keys: table::FIND_RANGE,
        last,
        step: keys.step as c_int,
        ..END_OF_KEY_SPECS
    };
    let needs_rights = flags & table::KEY_ACCESS != 0;
    let behind = keys.behind.map(|word| KeySpec {
        flags: if needs_rights { table::KEY_OVERWRITE | table::KEY_UPDATE } else { table::KEY_OVERWRITE },
        begin_search: table::BEGIN_AT_KEYWORD,
        // The last one counts: the search begins at the last but one argument, backwards.
        begin: KeySpecBegin { keyword: Keyword { word: word.as_ptr(), start: -2 } },
        find_keys: table::FIND_RANGE,
        last: 0,
        step: 1,
        ..END_OF_KEY_SPECS
    });
    [first].into_iter().chain(behind).chain([END_OF_KEY_SPECS]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_that_the_server_is_told() {
        // valkeymodule.h on a 64-bit machine: pointers, enumerations and integers with their padding.
        assert_eq!(size_of::<KeySpec>(), 56);
        assert_eq!(size_of::<CommandInfo>(), 72);
        assert_eq!(size_of::<table::ClientInfo>(), 80);
    }
}
