//! The first line of a script, `#!lua flags=no-writes,allow-oom`, which says how it is to be run.

use std::borrow::Cow;

use thiserror::Error;

/// The rules by which a script is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether the script has one: without it a script may begin when there is no memory, and its single writes are
    /// refused then.
    pub is_present: bool,
    /// Whether the script must not write (`no-writes`).
    pub no_writes: bool,
    /// Whether it may write although there is no memory (`allow-oom`).
    pub allow_oom: bool,
}

/// Reason why a header is refused, in Valkey's words.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HeaderError {
    /// No line behind it.
    #[error("Invalid script shebang")]
    NoLine,
    /// A word that is no option of a script.
    #[error("Unknown lua shebang option: {0}")]
    UnknownOption(String),
    /// A word that is no flag.
    #[error("Unexpected flag in script shebang: {0}")]
    UnknownFlag(String),
    /// A language other than Lua.
    #[error("Could not find scripting engine '{0}'")]
    UnknownEngine(String),
}

/// Flags that change nothing here, where there is one node and the data are never stale.
const WITHOUT_EFFECT: [&str; 3] = ["allow-stale", "no-cluster", "allow-cross-slot-keys"];

/// The first line of a source, and the rest, which begins with the end of that line; `None` if it has no end.
pub(crate) fn split_line(source: &[u8]) -> Option<(Cow<'_, str>, &[u8])> {
    let (line, rest) = source.split_at(source.iter().position(|&byte| byte == b'\n')?);
    Some((String::from_utf8_lossy(line), rest))
}

impl Header {
    /// Splits a script into its header and its code, whose first line is then empty, so that lines count alike.
    ///
    /// # Errors
    /// [`HeaderError`].
    pub fn split(source: &[u8]) -> Result<(Header, &[u8]), HeaderError> {
        if !source.starts_with(b"#!") {
            return Ok((Header::default(), source));
        }
        let (line, code) = split_line(source).ok_or(HeaderError::NoLine)?;
        let mut words = line.split_ascii_whitespace();
        let engine = words.next().unwrap_or_default().trim_start_matches("#!");
        let mut header = Header { is_present: true, ..Header::default() };
        for word in words {
            let flags = word.strip_prefix("flags=").ok_or_else(|| HeaderError::UnknownOption(word.into()))?;
            flags.split(',').filter(|_| !flags.is_empty()).try_for_each(|flag| header.raise(flag))?;
        }
        if !engine.eq_ignore_ascii_case("lua") {
            return Err(HeaderError::UnknownEngine(engine.into()));
        }
        Ok((header, code))
    }

    /// Raises a flag, by its name.
    ///
    /// # Errors
    /// [`HeaderError::UnknownFlag`].
    pub fn raise(&mut self, flag: &str) -> Result<(), HeaderError> {
        match flag {
            "no-writes" => self.no_writes = true,
            "allow-oom" => self.allow_oom = true,
            _ if WITHOUT_EFFECT.contains(&flag) => {}
            _ => return Err(HeaderError::UnknownFlag(flag.into())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_without_header_is_code_from_its_first_byte() {
        assert_eq!(Header::split(b"return 1"), Ok((Header::default(), &b"return 1"[..])));
    }

    #[test]
    fn flags_are_raised_and_the_code_keeps_its_lines() {
        let source = b"#!lua flags=no-writes,allow-stale flags=allow-oom\nreturn 1";
        let header = Header { is_present: true, no_writes: true, allow_oom: true };
        assert_eq!(Header::split(source), Ok((header, &b"\nreturn 1"[..])));
        let plain = Header { is_present: true, ..Header::default() };
        assert_eq!(Header::split(b"#!LUA flags=\n"), Ok((plain, &b"\n"[..])));
        assert_eq!(Header::split(b"#!lua\t flags= \r\n"), Ok((plain, &b"\n"[..])));
    }

    #[test]
    fn wrong_headers_are_refused_with_what_is_wrong() {
        let refused = |source: &str| Header::split(source.as_bytes()).expect_err(source).to_string();
        for (source, reason) in [
            ("#!lua", "Invalid script shebang"),
            ("#!lua name=x\n", "Unknown lua shebang option: name=x"),
            ("#! lua\n", "Unknown lua shebang option: lua"),
            ("#!\n", "Could not find scripting engine ''"),
            ("#!js\n", "Could not find scripting engine 'js'"),
            ("#!lua flags=x\n", "Unexpected flag in script shebang: x"),
            ("#!lua flags=no-writes, allow-oom\n", "Unexpected flag in script shebang: "),
        ] {
            assert_eq!(refused(source), reason);
        }
    }
}
