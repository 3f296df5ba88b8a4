//! Passwords for tools, from the environment: they stand in no list of processes and no history of a shell.

use std::path::Path;

use anyhow::Result;
use snugly_server::read_secret;

/// Names the file of the server's password; its own tools on the same machine use it as well.
const FILE_VARIABLE: &str = "SNUGLY_PASSWORD_FILE";

/// The password where a URL has none: of REDISCLI_AUTH, as for redis-cli and valkey-cli, else of the file that
/// SNUGLY_PASSWORD_FILE names.
pub(crate) fn of_environment() -> Result<Option<String>> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(password) = set("REDISCLI_AUTH") {
        return Ok(password.into_string().ok());
    }
    Ok(set(FILE_VARIABLE).map(|path| read_secret(Path::new(&path))).transpose()?)
}
