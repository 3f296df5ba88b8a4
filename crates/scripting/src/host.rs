//! The server as scripts see it.

use scoped_tls_hkt::scoped_thread_local;
use snugly_protocol::resp::{Args, Protocol};

/// The server behind a script that runs.
pub trait Host {
    /// Runs a command, and returns its reply, one in the given version of RESP. A refusal is a reply as well.
    fn call(&mut self, request: Args<'_>, protocol: Protocol) -> &[u8];

    /// Returns whether the script's user may run a command; `None` if there is no such command.
    fn may_run(&mut self, request: Args<'_>) -> Option<bool>;

    /// Writes a line to the server's log. Levels are those of Valkey, 0 (debug) to 3 (warning).
    fn log(&mut self, level: u8, message: &[u8]);

    /// What runs, as the command calls it that ends it: `SCRIPT` or `FUNCTION`.
    fn kind(&self) -> &'static str;

    /// Returns whether the script is to end now. It is asked again and again while the script runs.
    fn is_killed(&mut self) -> bool;
}

scoped_thread_local! {
    /// The host of the script that this thread runs.
    pub(crate) static mut HOST: for<'a> &'a mut (dyn Host + 'a)
}
