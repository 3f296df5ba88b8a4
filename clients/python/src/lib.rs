//! The module `snugly._native`: envelopes for Python.
//!
//! It knows Python's objects and `snugly_codec`, and nothing about commands, clients or sockets: those are for the
//! Python code around it, which documents all of this for its users.

mod codec;
mod statistics;

use pyo3::prelude::*;

#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::codec::{Codec, EnvelopeError, inspect, levels};
    #[pymodule_export]
    use crate::statistics::{counters, process_statistics};
}
