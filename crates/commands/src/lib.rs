//! The command table of compressing clients (`spec/commands.json`) and the key positions of all commands
//! (`spec/key-positions.json`), applied to commands and replies.
//!
//! - [`Interpreter::read`] says which arguments of a command are values to encode, whether it is refused, and
//!   with which [`Shape`] its reply is to be read.
//! - [`Shape::walk`] finds the values in a reply, and the key of each.
//! - [`keys`] finds the keys of any command, for routing or counting.
//! - [`command`] returns a command's row of the table, whatever its arguments.
//!
//! It knows the table's language, which `spec/commands.md` explains, and no command: the build script turns
//! both files into static rows. It must not know how values are encoded, how arguments and replies look in
//! memory (they are [`Arguments`] and [`Reply`]), or where they come from: there is no I/O here, and nothing
//! is allocated but the positions in a [`Found`], which is there to be used again.
//!
//! ```
//! use snugly_commands::{Found, Interpreter, Meaning, ValueType};
//!
//! let interpreter = Interpreter::new([ValueType::Strings]);
//! let mut found = Found::default();
//! let args = ["SET", "user:1", "Ada", "EX", "60"];
//! assert_eq!(interpreter.read(&args[..], &mut found), Ok(Meaning::Touched { reply: None }));
//! assert_eq!(found.values().iter().map(|value| args[value.at]).collect::<Vec<_>>(), ["Ada"]);
//!
//! let refused = interpreter.read(&["STRLEN", "user:1"][..], &mut found).unwrap_err();
//! assert!(refused.to_string().starts_with("STRLEN is refused because compression is on"));
//! ```

mod interpreter;
mod pattern;
mod positions;
mod refusal;
mod reply;
mod table;
mod word;

pub use interpreter::{Interpreter, Meaning};
pub use pattern::{Arguments, Found, Value};
pub use positions::keys;
pub use refusal::{Reason, Refused};
pub use reply::{Key, Opened, Reply, Shape};
pub use table::{Command, Rule, ValueType, ValueTypes, command, commands};
