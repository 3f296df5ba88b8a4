//! The folder for files that clients ask the server to write: `dir`.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::state::Server;

/// Reason why nothing is written to the folder.
#[derive(Debug, Error)]
#[error(
    "{folder} is the folder of the store, where only the store writes: start the server with another --dir",
    folder = folder.display()
)]
pub(crate) struct InStore {
    folder: PathBuf,
}

/// Returns the folder.
///
/// # Errors
/// If that is the store's own folder, where a file could take the place of the store's.
pub(crate) fn dump_folder(server: &Server) -> Result<PathBuf, InStore> {
    let configuration = server.configuration();
    let folder = Path::new(&configuration.dir).to_owned();
    match configuration.disk() {
        Some(storage) if is_within(&folder, &storage.path) => Err(InStore { folder }),
        _ => Ok(folder),
    }
}

/// Returns whether a folder is another one or lies in it, whatever they are called.
fn is_within(folder: &Path, other: &Path) -> bool {
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => folder.starts_with(other),
        _ => false,
    }
}
