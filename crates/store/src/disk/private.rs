//! The files that a store consists of: nobody but their owner may read them, and that is whom the store belongs to, even
//! if somebody else, such as root who checks it, has made them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::files::DATA_FILE;

/// Opens a file in a store's folder for reading and writing, and makes it if it is not there.
///
/// # Errors
/// What the system says. That the file cannot be given to the store's owner is none: only root can do that.
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

/// Sees to it that a file in a store's folder is its owner's only.
///
/// # Errors
/// As [`open`].
#[cfg(unix)]
pub(super) fn restrict(folder: &Path, name: &str) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    // By its path: to open and close the engine's lock file would let go of the engine's locks (fcntl, POSIX).
    let path = folder.join(name);
    let made = fs::metadata(&path)?;
    let owner = fs::metadata(folder.join(DATA_FILE)).or_else(|_| fs::metadata(folder))?;
    if made.mode() & 0o777 != 0o600 {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    }
    if (made.uid(), made.gid()) != (owner.uid(), owner.gid()) {
        let _ = chown(&path, Some(owner.uid()), Some(owner.gid()));
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn restrict(_folder: &Path, _name: &str) -> io::Result<()> {
    Ok(())
}
