//! snugly inside Valkey: a module that stores the strings of a valkey-server compressed, while every client gets what
//! the server gives without it.
//!
//! ```text
//! valkey-server --loadmodule libsnugly_module.so
//! ```
//!
//! - [`filter`]: every command before it runs: strings that it stores are replaced by envelopes, and commands that have
//!   to work on restored ones by the module's
//! - [`commands`]: which commands there are, and those of the module
//! - [`foreign`]: commands that are not known, which find plain strings
//! - [`clients`], [`access`]: what a filter has to know of who sends a command
//! - [`background`]: compression and restoration of strings that are there
//! - [`dictionaries`]: what strings have in common, learned from them and kept beside them
//! - [`values`]: strings to envelopes and back
//! - [`settings`], [`operators`], [`statistics`], [`info`]: what operators set, do and see
//! - [`registration`]: how the server is told of commands
//! - [`server`], [`guard`]: the border to the server
//!
//! It knows envelopes by `snugly-codec` and the server by its module interface. It knows nothing of snugly's own server
//! and store and does no I/O. All of it runs on the server's main thread, but for learning.

mod access;
mod background;
mod clients;
mod commands;
mod dictionaries;
mod filter;
mod foreign;
mod guard;
mod info;
mod operators;
mod registration;
mod server;
mod settings;
mod statistics;
mod values;

use std::ffi::{CStr, CString, c_int, c_void};

use background::Hooks;
use commands::TABLE;
use server::table::{self, Ctx, Event, FilterCtx, Functions, Str};
use server::{Context, FilterContext};

const NAME: &CStr = c"snugly";

/// The oldest server that the module is tested with: 9.1.1, as 0xMMmmpp. Version 9.1.0 ends when a module that listens to its
/// cluster is loaded again.
const OLDEST_SERVER: i32 = 0x0009_0101;

/// Version of the module's part of the interface, which MODULE LIST shows: 1 for 0.1.
const VERSION: c_int = 1;

/// Called by the server to load the module.
///
/// # Safety
/// The server calls it, with a context and the module's arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ValkeyModule_OnLoad(
    context: *mut Ctx,
    _arguments: *mut *mut Str,
    len: c_int,
) -> c_int {
    let loaded = guard::guarded(|| {
        // SAFETY: the server has handed over the context.
        let functions = match unsafe { table::find(context) } {
            Ok(functions) => functions,
            // Without its functions there is no way to say so but this.
            Err(missing) => {
                eprintln!("snugly needs a server with ValkeyModule_{missing}: Valkey 9.1 or later");
                return false;
            }
        };
        // SAFETY: the server has handed over the context, and copies the name.
        let server = unsafe {
            if (functions.IsModuleNameBusy)(NAME.as_ptr()) != 0 {
                return false;
            }
            (functions.SetModuleAttribs)(context, NAME.as_ptr(), VERSION, table::API_VERSION);
            Context::from_raw(context)
        };
        guard::log_panics();
        match load(functions, server, len) {
            Ok(()) => true,
            Err(reason) => {
                let reason = CString::new(reason.replace('\0', " ")).unwrap_or_default();
                table::log(context, c"warning", &reason);
                false
            }
        }
    });
    if loaded == Some(true) { table::OK } else { table::ERR }
}

/// Called by the server to unload the module, which it refuses while strings are stored as envelopes.
///
/// # Safety
/// The server calls it, with a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ValkeyModule_OnUnload(context: *mut Ctx) -> c_int {
    let unloaded = guard::guarded(|| {
        // SAFETY: the server has handed over the context.
        match operators::leave(unsafe { Context::from_raw(context) }) {
            Ok(()) => true,
            Err(reason) => {
                table::log(context, c"warning", reason);
                false
            }
        }
    });
    if unloaded == Some(true) { table::OK } else { table::ERR }
}

fn load(functions: &Functions, context: Context, arguments: c_int) -> Result<(), String> {
    // SAFETY: takes nothing.
    let version = unsafe { (functions.GetServerVersion)() };
    if version < OLDEST_SERVER {
        return Err(format!(
            "snugly {} needs Valkey {} or later, and this is {}",
            env!("CARGO_PKG_VERSION"),
            dotted(OLDEST_SERVER),
            dotted(version)
        ));
    }
    if arguments > 0 {
        return Err(
            "snugly takes no arguments: settings are given as snugly.NAME VALUE, beside --loadmodule".into(),
        );
    }
    if let Some(name) = hidden_command(context) {
        return Err(format!(
            "snugly needs the command {name}, which rename-command hides: use an access list instead"
        ));
    }
    let options = table::OPTION_NO_IMPLICIT_SIGNAL_MODIFIED | table::OPTION_HANDLE_ATOMIC_SLOT_MIGRATION;
    // SAFETY: the server has handed over the context.
    unsafe { (functions.SetModuleOptions)(context.raw(), options) };
    if !settings::register(context) {
        return Err("snugly could not register its settings".into());
    }
    registration::register_served(context)?;
    operators::register(context)?;
    filter::prepare(context.detached());
    // SAFETY: the functions live as long as the module, and take what the server gives them.
    let registered = unsafe {
        (functions.SubscribeToServerEvent)(context.raw(), table::EVENT_CLIENT_CHANGE, client_changed)
            == table::OK
            && (functions.SubscribeToServerEvent)(context.raw(), table::EVENT_CRON_LOOP, ticked) == table::OK
            && (functions.SubscribeToServerEvent)(context.raw(), table::EVENT_MODULE_CHANGE, modules_changed)
                == table::OK
            && (functions.SubscribeToServerEvent)(context.raw(), table::EVENT_LOADING, loaded) == table::OK
            && (functions.SubscribeToServerEvent)(context.raw(), table::EVENT_ASYNC_LOADING, loaded)
                == table::OK
            && (functions.RegisterInfoFunc)(context.raw(), info::report) == table::OK
            && !(functions.RegisterCommandFilter)(context.raw(), filter_command, 0).is_null()
    };
    if !registered {
        return Err("snugly could not register its filter and events".into());
    }
    filter::commands_changed(context);
    dictionaries::begin(context);
    let hooks = Hooks { before: filter::settle, waits: filter::expects_strings };
    background::begin(context, databases(context)?, hooks);
    Ok(())
}

/// The most databases: what the server tells of a client has 16 bits for the one that it has selected.
const MOST_DATABASES: u32 = 1 << 16;

/// Number of the server's databases.
///
/// # Errors
/// A text that says that there are too many.
fn databases(context: Context) -> Result<u32, String> {
    let number = (0..=MOST_DATABASES).find(|&number| !context.select(number));
    context.select(0);
    number.ok_or_else(|| {
        format!("snugly works with {MOST_DATABASES} databases at most, and this server has more")
    })
}

/// A command that the server hides (`rename-command`): what is served by its name would not be what clients send.
fn hidden_command(context: Context) -> Option<&'static str> {
    let names = TABLE.iter().filter(|row| row.served.is_some()).map(|row| row.name).chain(["client"]);
    names.into_iter().find(|name| {
        let name = CString::new(*name).expect("names have no zero");
        // None of them runs without arguments.
        let reply = context.call(&name, c"Ev", &[]);
        reply
            .as_ref()
            .and_then(|reply| reply.error())
            .is_none_or(|error| error.starts_with(b"ERR unknown command"))
    })
}

/// A version such as 0x090102, written with dots.
fn dotted(version: i32) -> String {
    format!("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff)
}

unsafe extern "C" fn filter_command(context: *mut FilterCtx) {
    // SAFETY: the server keeps the context until this returns.
    guard::guarded(|| filter::filter(unsafe { FilterContext::from_raw(context) }));
}

unsafe extern "C" fn client_changed(_context: *mut Ctx, _event: Event, change: u64, client: *mut c_void) {
    // SAFETY: with this event comes the structure, of version 1.
    let identity = unsafe { (*client.cast::<table::ClientInfo>()).id };
    guard::guarded(|| match change {
        table::CLIENT_CONNECTED => filter::connected(identity),
        table::CLIENT_DISCONNECTED => filter::disconnected(identity),
        _ => (),
    });
}

unsafe extern "C" fn modules_changed(context: *mut Ctx, _event: Event, _: u64, _: *mut c_void) {
    // SAFETY: the server keeps the context until this returns.
    guard::guarded(|| filter::commands_changed(unsafe { Context::from_raw(context) }));
}

/// A data set is loaded, with other functions perhaps. That it begins or fails counts, too: it does no harm.
unsafe extern "C" fn loaded(_context: *mut Ctx, _event: Event, _: u64, _: *mut c_void) {
    guard::guarded(dictionaries::functions_changed);
}

unsafe extern "C" fn ticked(context: *mut Ctx, _event: Event, _: u64, _: *mut c_void) {
    guard::guarded(|| {
        filter::ticked();
        // SAFETY: the server keeps the context until this returns.
        let context = unsafe { Context::from_raw(context) };
        dictionaries::go_on(context);
        background::go_on(context);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_written_with_dots() {
        assert_eq!(dotted(0x0009_0102), "9.1.2");
    }
}
