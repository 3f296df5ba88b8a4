//! Reasons why a script or a library is not taken.

use thiserror::Error;

/// Reason why a script or a library is not taken, in Valkey's words where it has some.
#[derive(Debug, Error)]
pub(crate) enum Refused {
    #[error(
        "OOM the script is refused because the loaded ones would take over {most} bytes; SCRIPT FLUSH removes them"
    )]
    TooManyScripts { most: usize },
    #[error(
        "OOM the library is refused because all of them would take over {most} bytes; FUNCTION DELETE removes one"
    )]
    TooManyLibraries { most: usize },
    #[error("ERR Library {0} already exists")]
    LibraryExists(String),
    #[error("ERR Function {0} already exists")]
    FunctionExists(String),
}
