//! All users, and the file that they are kept in: a line `user NAME RULE ...` each, as ACL LIST tells them.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error as ThisError;

use crate::basis::Basis;
use crate::error::Error;
use crate::user::User;

/// The user of connections that have not logged in, who cannot be removed.
const DEFAULT: &[u8] = b"default";

/// Reason why a file is no list of users.
#[derive(Debug, ThisError)]
#[error("line {line}: {what}")]
pub struct FileError {
    /// From 1 on.
    pub line: usize,
    what: String,
}

/// All users by their names; there is always one called `default`.
#[derive(Clone, Debug)]
pub struct Users(BTreeMap<Vec<u8>, Arc<User>>);

impl Users {
    /// The user `default` alone, who can everything without a password.
    pub fn new(basis: Basis<'_>) -> Users {
        let default = Arc::new(User::unlimited(DEFAULT, basis));
        Users(BTreeMap::from([(DEFAULT.to_vec(), default)]))
    }

    /// The user of connections that have not logged in.
    pub fn default_user(&self) -> &Arc<User> {
        &self.0[DEFAULT]
    }

    /// A user.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.0.get(name)
    }

    /// All users in the order of their names.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.0.values()
    }

    /// Adds a user, in place of the one of that name.
    pub fn put(&mut self, user: User) {
        self.0.insert(user.name.clone(), Arc::new(user));
    }

    /// Removes a user; returns whether there was one. `default` stays.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        name != DEFAULT && self.0.remove(name).is_some()
    }

    /// The users of a file. If it has no `default`, that is the one who can everything.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &[u8], basis: Basis<'_>) -> Result<Users, FileError> {
        let mut users = Users::new(basis);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for (place, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let user = parse_line(line, basis, &seen).map_err(|what| FileError { line: place + 1, what })?;
            if let Some(user) = user {
                seen.push(user.name.clone());
                users.put(user);
            }
        }
        Ok(users)
    }

    /// The text of the file.
    pub fn text(&self) -> Vec<u8> {
        self.all().flat_map(|user| [user.describe(), b"\n".to_vec()].concat()).collect()
    }
}

/// The user of a line; empty lines and comments have none.
fn parse_line(line: &[u8], basis: Basis<'_>, seen: &[Vec<u8>]) -> Result<Option<User>, String> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let name = match words.next() {
        None => return Ok(None),
        Some(word) if word.starts_with(b"#") => return Ok(None),
        Some(b"user") => words.next().ok_or("a user has no name")?,
        Some(_) => return Err("must begin with the word user, and a name".to_owned()),
    };
    if seen.iter().any(|known| known == name) {
        return Err(format!("user {} is there twice", String::from_utf8_lossy(name)));
    }
    let mut user = User::new(name, basis);
    let rules: Vec<&[u8]> = words.collect();
    user.apply(&rules, basis).map_err(|(rule, error)| match error {
        Error::Unmatched(_) => error.to_string(),
        error => format!("{}: {error}", String::from_utf8_lossy(&rule)),
    })?;
    Ok(Some(user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::Basis;
    use crate::commands::tests::commands;

    fn basis(commands: &crate::commands::Commands) -> Basis<'_> {
        Basis { commands, all_channels: false }
    }

    #[test]
    fn users_are_read_as_they_were_written() {
        let text = "# Ours.\n\nuser a on nopass ~a:* +get (+set ~b ~c)\n  user b off\r\n";
        let users = Users::parse(text.as_bytes(), basis(&commands())).unwrap();
        let names: Vec<_> = users.all().map(|user| user.name.clone()).collect();
        assert_eq!(names, [b"a".to_vec(), b"b".to_vec(), b"default".to_vec()]);
        assert!(users.default_user().can_everything());
        let again = Users::parse(&users.text(), basis(&commands())).unwrap();
        assert!(users.all().eq(again.all()));
    }

    #[test]
    fn wrong_lines_are_told_with_their_number() {
        for (text, words) in [
            ("user a on\nuser a off\n", "line 2: user a is there twice"),
            ("users a\n", "line 1: must begin with the word user"),
            ("\n\nuser\n", "line 3: a user has no name"),
            ("user a +nosuch\n", "line 1: +nosuch: Unknown command"),
            ("user a (+get\n", "line 1: Unmatched parenthesis"),
        ] {
            let told = Users::parse(text.as_bytes(), basis(&commands())).unwrap_err().to_string();
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn default_cannot_be_removed() {
        let mut users = Users::new(basis(&commands()));
        assert!(!users.remove(b"default"));
        assert!(!users.remove(b"nosuch"));
        users.put(User::new(b"a", basis(&commands())));
        assert!(users.remove(b"a"));
        assert_eq!(users.all().len(), 1);
    }
}
