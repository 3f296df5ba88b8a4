//! Secrets that stand in no list of processes and no history of a shell: in a file of their own.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

/// Reason why there is no secret in a file.
#[derive(Debug, Error)]
#[error("cannot take the {what} from {path}: {why}")]
pub struct SecretError {
    what: &'static str,
    path: PathBuf,
    why: Why,
}

#[derive(Debug, Error)]
enum Why {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("the file is empty")]
    Empty,
    #[error("it must be the only line of the file")]
    SeveralLines,
    #[error("it must be letters, digits and punctuation of ASCII, without spaces")]
    NotForAHeader,
}

/// The password of a file, which has nothing else; one line end after it does not count.
///
/// # Errors
/// A file that cannot be read, is empty, is not UTF-8 or has several lines.
pub fn read_secret(path: &Path) -> Result<String, SecretError> {
    only_line(path).map_err(|why| SecretError { what: "password", path: path.to_owned(), why })
}

/// The token of a file, as [`read_secret`].
///
/// # Errors
/// Also characters that a header of HTTP has no place for.
pub(super) fn read_token(path: &Path) -> Result<String, SecretError> {
    let is_for_a_header = |token: &String| token.bytes().all(|byte| byte.is_ascii_graphic());
    let token = only_line(path)
        .and_then(|token| if is_for_a_header(&token) { Ok(token) } else { Err(Why::NotForAHeader) });
    token.map_err(|why| SecretError { what: "token", path: path.to_owned(), why })
}

fn only_line(path: &Path) -> Result<String, Why> {
    let text = fs::read_to_string(path)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let secret = line.strip_suffix('\r').unwrap_or(line);
    match secret {
        "" => Err(Why::Empty),
        secret if secret.contains('\n') => Err(Why::SeveralLines),
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(content: &[u8]) -> Result<String, SecretError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        fs::write(&path, content).unwrap();
        read_secret(&path)
    }

    #[test]
    fn line_end_is_not_part_of_the_password() {
        for content in ["p w", "p w\n", "p w\r\n"] {
            assert_eq!(read_back(content.as_bytes()).unwrap(), "p w");
        }
        assert_eq!(read_back(b" x \n").unwrap(), " x ");
    }

    #[test]
    fn token_is_what_a_header_can_hold() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "a-Token_1/+=\n").unwrap();
        assert_eq!(read_token(&path).unwrap(), "a-Token_1/+=");
        for content in ["a token", "tökén", "a\ttoken", " token", ""] {
            fs::write(&path, content).unwrap();
            let error = read_token(&path).unwrap_err().to_string();
            assert!(error.contains("cannot take the token from"), "{error}");
        }
    }

    #[test]
    fn files_without_a_clear_password_are_refused() {
        for (content, reason) in
            [(&b""[..], "is empty"), (b"\n", "is empty"), (b"a\nb\n", "only line"), (b"\xff", "UTF-8")]
        {
            let error = read_back(content).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("cannot take the password from"), "{error}");
        }
        assert!(read_secret(Path::new("/nonexistent/password")).is_err());
    }
}
