//! Ownership and permissions of a store's files: only the folder's owner may read them, even if somebody
//! else, such as root running a check, created them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::files::DATA_FILE;

/// Opens a file in a store's folder for reading and writing, and creates it if it is missing.
///
/// # Errors
/// Errors of the system, except that the file cannot be given to the store's owner: only root can do that.
pub(super) fn open(folder: &Path, name: &str) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;

        let file = options.mode(0o600).open(folder.join(name))?;
        restrict(folder, name)?;
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(folder.join(name))
}

/// Restricts a file in a store's folder to its owner.
///
/// # Errors
/// Like [`open`].
#[cfg(unix)]
pub(super) fn restrict(folder: &Path, name: &str) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    // By path: opening and closing the engine's lock file would release the engine's locks (fcntl, POSIX).
    let path = folder.join(name);
    if fs::metadata(&path)?.mode() & 0o777 != 0o600 {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    }
    let data = folder.join(DATA_FILE);
    give(&path, if data.exists() { &data } else { folder })
}

/// Returns a file or a folder to the owner of another one.
///
/// # Errors
/// Like [`open`].
#[cfg(unix)]
pub(super) fn give(path: &Path, like: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, chown};

    let (made, owner) = (fs::metadata(path)?, fs::metadata(like)?);
    if (made.uid(), made.gid()) != (owner.uid(), owner.gid()) {
        let _ = chown(path, Some(owner.uid()), Some(owner.gid()));
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn give(_path: &Path, _like: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn restrict(_folder: &Path, _name: &str) -> io::Result<()> {
    Ok(())
}
