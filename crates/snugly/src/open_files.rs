//! The system's limit of open files, of which every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's limit as far as the system lets it, and gives it; `None` is no limit.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}
