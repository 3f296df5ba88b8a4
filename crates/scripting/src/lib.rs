//! Scripts in Lua 5.1, as Valkey runs them (<https://valkey.io/topics/lua-api/>).
//!
//! It knows Lua, the sandbox, and how values of Lua become replies and replies become values. It must not know commands,
//! keys or connections: what a script asks of the server is asked of a [`Host`], which the caller gives.
//!
//! - [`Engine`]: a virtual machine with its compiled scripts; one for each thread
//! - `sandbox`: the environment of scripts (`sandbox.lua`), and [`libraries`] beside those of Lua
//! - `calls`: what scripts find in `redis` and `server`; `command_call`: the commands that they run
//! - `incoming`: replies of commands as values of Lua; `outgoing`: values of Lua as replies
//! - [`Registered`]: functions, which libraries of them register
//! - [`Header`]: the first line of a script, which may say how it is to be run

mod c_functions;
mod calls;
mod command_call;
mod digest;
mod engine;
mod failure;
mod header;
mod host;
mod incoming;
pub mod libraries;
mod library;
mod outgoing;
mod sandbox;
mod script;

pub use digest::{Digest, digest};
pub use engine::Engine;
pub use failure::{CompileError, EngineError, Failure};
pub use header::{Header, HeaderError};
pub use host::Host;
pub use library::{LibraryError, Registered, split_library};
pub use script::Script;
