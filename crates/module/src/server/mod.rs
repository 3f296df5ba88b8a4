//! The server that the module is loaded in: its functions, and what they hand out.
//!
//! - [`Context`]: replies, calls of other commands, keys
//! - [`Text`], [`OwnedText`]: strings of the server
//! - [`OpenKey`]: a key and its value
//! - [`Scan`]: a walk over all keys
//! - [`CallReply`]: the reply to a called command
//! - [`cluster`]: the other nodes of a cluster, and messages to them
//! - [`FilterContext`]: a command before it is looked up
//!
//! It knows `valkeymodule.h` and no command. All of it runs on the server's main thread, which is the only one that
//! calls the module.

pub mod cluster;
mod context;
mod filter;
mod key;
mod reply;
mod scan;
pub mod table;
mod text;

pub use context::{Caller, Context};
pub use filter::FilterContext;
pub use key::OpenKey;
pub use reply::CallReply;
pub use scan::Scan;
pub use text::{OwnedText, Text};
