//! The module `snugly._native`: envelopes for Python, and the hot half of its clients.
//!
//! It knows Python's objects, envelopes, the command table and RESP. How connections are made and what goes wrong with
//! them is for the Python code around it, which documents all of this for its users.

mod allowance;
mod codec;
mod commands;
mod dictionaries;
mod exchange;
mod learner;
mod leaving;
mod link;
mod manager;
mod memory;
mod names;
mod replies;
mod statistics;
mod together;
mod wire;

use pyo3::prelude::*;

#[pymodule(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::allowance::Budget;
    #[pymodule_export]
    use crate::codec::{Codec, EnvelopeError, inspect, levels};
    #[pymodule_export]
    use crate::commands::{Interpreter, command_name};
    #[pymodule_export]
    use crate::dictionaries::{Dictionaries, Dictionary, catalogue_key, dictionary_key, lock_key};
    #[pymodule_export]
    use crate::exchange::{Receiver, Request};
    #[pymodule_export]
    use crate::learner::{Explained, Learner, Lesson, Row};
    #[pymodule_export]
    use crate::leaving::{forget_threads, leave};
    #[pymodule_export]
    use crate::link::Link;
    #[pymodule_export]
    use crate::manager::{Failed, Manager, Task};
    #[pymodule_export]
    use crate::replies::ProtocolFault;
    #[pymodule_export]
    use crate::statistics::{counters, process_statistics};
    #[pymodule_export]
    use crate::wire::Wire;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
