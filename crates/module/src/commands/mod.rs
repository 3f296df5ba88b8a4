//! The server's commands about strings, and how the module serves them.
//!
//! - [`table`]: which commands there are, and what each is to the module
//! - [`call`]: a command of the module that runs in the place of one of the server's
//! - [`read`], [`change`], [`sort`]: what such a command does
//!
//! It knows strings that are stored as envelopes, and calls the server's own command for everything else: options,
//! expiry, events and errors are the server's.

mod call;
mod change;
mod keys;
mod plain;
mod read;
mod sort;
mod table;

pub use call::{CHECKED_PREFIX, PREFIX, Ticket, leave_ticket};
pub use keys::{Keys, ONE};
pub use plain::{Expiry, MadePlain, is_envelope, make_portable, replicate};
pub use table::{Kind, LONGEST_NAME, Note, Row, Served, TABLE, Values};
