//! Passwords that stand in no list of processes and no history of a shell: in a file, or in the environment.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Names the file of the server's password; its own tools on the same machine use it as well.
const FILE_VARIABLE: &str = "SNUGLY_PASSWORD_FILE";

/// The password of a file, which has nothing else; one line end after it does not count.
///
/// Errors are a file that cannot be read, is empty, is not UTF-8 or has several lines.
pub(crate) fn read(path: &Path) -> Result<String> {
    let cannot = || format!("cannot take the password from {}", path.display());
    let text = fs::read_to_string(path).with_context(cannot)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let password = line.strip_suffix('\r').unwrap_or(line);
    ensure!(!password.is_empty(), "{}: the file is empty", cannot());
    ensure!(!password.contains('\n'), "{}: it must be the only line of the file", cannot());
    Ok(password.to_owned())
}

/// The password where a URL has none: of REDISCLI_AUTH, as for redis-cli and valkey-cli, else of the file that
/// SNUGLY_PASSWORD_FILE names.
pub(crate) fn of_environment() -> Result<Option<String>> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(password) = set("REDISCLI_AUTH") {
        return Ok(password.into_string().ok());
    }
    set(FILE_VARIABLE).map(|path| read(Path::new(&path))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(content: &[u8]) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        fs::write(&path, content).unwrap();
        read(&path)
    }

    #[test]
    fn line_end_is_not_part_of_the_password() {
        for content in ["p w", "p w\n", "p w\r\n"] {
            assert_eq!(read_back(content.as_bytes()).unwrap(), "p w");
        }
        assert_eq!(read_back(b" x \n").unwrap(), " x ");
    }

    #[test]
    fn files_without_a_clear_password_are_refused() {
        for (content, reason) in
            [(&b""[..], "is empty"), (b"\n", "is empty"), (b"a\nb\n", "only line"), (b"\xff", "UTF-8")]
        {
            let error = format!("{:#}", read_back(content).unwrap_err());
            assert!(error.contains(reason) && error.contains("cannot take the password from"), "{error}");
        }
        assert!(read(Path::new("/nonexistent/password")).is_err());
    }
}
