//! Access control lists as Valkey 9.1 has them: users, their rules, and what these allow.
//!
//! - `basis`: what users are made from
//! - `commands`: the commands that rules are about, and sets of them
//! - `patterns`: what keys, channels and databases a rule is about
//! - `selector`: one set of permissions, changed rule by rule
//! - `user`: passwords and selectors of one user
//! - `users`: all users, and the file that they are kept in
//! - `error`: why a rule is refused
//!
//! It knows rules and names. It knows no connection, no server and no command's function: who asks says which command of
//! the table it is, and which keys it touches in which way.

mod basis;
mod commands;
mod error;
mod patterns;
mod selector;
mod user;
mod users;

pub use basis::Basis;
pub use commands::{Commands, Row};
pub use error::Error;
pub use patterns::{Access, Channel};
pub use selector::{Denied, Request};
pub use user::User;
pub use users::{FileError, Users};
