//! Scripts of clients: which are known, which one runs too long, and the machines that run them.
//!
//! It knows scripts as text, and their machines. It knows no commands: what a script asks for is run by
//! `commands::scripting`.
//!
//! - `sources`: the scripts that are known by their SHA-1 digest
//! - `functions`: the libraries of functions
//! - `running`: the script that runs for so long that others are told of it
//! - `machine`: a thread's virtual machine with its compiled scripts

mod functions;
mod machine;
mod refused;
mod running;
mod sources;

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use functions::{Functions, Library, Policy};
pub(crate) use machine::{Compiled, Machine, Unusable, with_machine};
pub(crate) use refused::Refused;
pub(crate) use running::{Kill, Kind, Occupied, Running, Watch, show_occupied};
pub(crate) use sources::Sources;

/// The scripts of a server.
#[derive(Default)]
pub(crate) struct Scripts {
    pub(crate) sources: Sources,
    pub(crate) functions: Functions,
    pub(crate) running: Running,
    /// Bytes that the machines of all threads take.
    pub(crate) machine_bytes: AtomicU64,
}

/// How many scripts there are, and what they take.
pub(crate) struct ScriptTotals {
    pub(crate) machine_bytes: u64,
    pub(crate) cached: usize,
    pub(crate) cached_bytes: usize,
    pub(crate) libraries: usize,
    pub(crate) functions: usize,
    pub(crate) library_bytes: usize,
}

impl Scripts {
    pub(crate) fn totals(&self) -> ScriptTotals {
        let (cached, cached_bytes) = self.sources.totals();
        let (libraries, functions, library_bytes) = self.functions.totals();
        let machine_bytes = self.machine_bytes.load(Ordering::Relaxed);
        ScriptTotals { machine_bytes, cached, cached_bytes, libraries, functions, library_bytes }
    }
}
