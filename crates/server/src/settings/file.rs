//! The configuration file: settings by the names of their flags, in TOML.
//!
//! It knows how the file is read and rewritten. It does not know which of several values wins.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use thiserror::Error;
use toml_edit::{Document, DocumentMut, Item, TomlError, Value};

use super::{Configuration, FORMER_NAMES, SETTINGS, Setting, nearest};

/// Reason why the configuration file is not read or not rewritten.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read the configuration file {path}: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Something in it is wrong; nothing of it applies.
    #[error("{path}, line {line}: {what}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// What is wrong, and what to write instead if that is known.
        what: String,
    },
    /// It cannot be replaced; it is as it was.
    #[error("cannot write the configuration file {path}: {reason}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
}

/// A setting of the file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) setting: &'static Setting,
    pub(super) value: String,
    /// The name that it stands under, if that is a former one.
    pub(super) former_name: Option<&'static str>,
}

/// Reads all settings of the file, each at most once and each with a valid value.
///
/// # Errors
/// [`FileError::Read`] and [`FileError::Wrong`].
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, FileError> {
    let text = read_text(path)?;
    entries(&text).map_err(|(offset, what)| wrong(path, &text, offset, what))
}

/// Writes these values into the file, in place of those that it has or behind them; comments stay as they are.
///
/// # Errors
/// All of [`FileError`].
pub(super) fn rewrite<'a>(
    path: &Path,
    values: impl Iterator<Item = (&'static Setting, &'a str)>,
) -> Result<(), FileError> {
    let text = read_text(path)?;
    let mut document: DocumentMut =
        text.parse().map_err(|error| wrong(path, &text, offset_of(&error), error.message().to_owned()))?;
    for (setting, value) in values {
        for (former, _) in FORMER_NAMES.iter().filter(|(_, present)| *present == setting.name) {
            document.remove(former);
        }
        let mut new = to_toml(value);
        match document.get_mut(setting.name).and_then(Item::as_value_mut) {
            Some(old) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            None => {
                document.insert(setting.name, Item::Value(new));
            }
        }
    }
    replace(path, document.to_string().as_bytes())
        .map_err(|reason| FileError::Write { path: path.to_owned(), reason })
}

fn read_text(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(|reason| FileError::Read { path: path.to_owned(), reason })
}

fn wrong(path: &Path, text: &str, offset: usize, what: String) -> FileError {
    let before = text.as_bytes().iter().take(offset);
    let line = 1 + before.filter(|byte| **byte == b'\n').count();
    FileError::Wrong { path: path.to_owned(), line, what }
}

fn offset_of(error: &TomlError) -> usize {
    error.span().map_or(0, |span| span.start)
}

/// The settings of a text, or the place of the first thing that is wrong, and what that is.
fn entries(text: &str) -> Result<Vec<Entry>, (usize, String)> {
    let document = Document::parse(text).map_err(|error| (offset_of(&error), error.message().to_owned()))?;
    let mut entries: Vec<Entry> = Vec::new();
    for (name, item) in document.iter() {
        let key = document.get_key_value(name).and_then(|(key, _)| key.span());
        let offset = key.or_else(|| item.span()).map_or(0, |span| span.start);
        let entry = entry(name, item).map_err(|what| (offset, what))?;
        if entries.iter().any(|other| other.setting.name == entry.setting.name) {
            return Err((offset, format!("{name} is {} once more", entry.setting.name)));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn entry(name: &str, item: &Item) -> Result<Entry, String> {
    let former = FORMER_NAMES.iter().find(|(former, _)| *former == name);
    let present = former.map_or(name, |(_, present)| present);
    let setting = SETTINGS.iter().find(|setting| setting.name == present).ok_or_else(|| unknown(name))?;
    let value = item.as_value().and_then(to_text).ok_or_else(|| {
        format!(
            "{name} must be a text, a number, true or false, or a list of these: settings have no sections"
        )
    })?;
    (setting.set)(&mut Configuration::default(), &value).map_err(|why| format!("{name}: {why}"))?;
    Ok(Entry { setting, value, former_name: former.map(|(former, _)| *former) })
}

fn unknown(name: &str) -> String {
    if let Some(setting) = SETTINGS.iter().find(|setting| setting.valkey_name == Some(name)) {
        return format!("{name} is called {} here", setting.name);
    }
    let nearest = nearest(name, SETTINGS.iter().map(|setting| setting.name));
    format!("{name} is no setting: did you mean {nearest}? snugly settings lists all")
}

/// A value as a flag has it; several are separated by spaces.
fn to_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(text) => text.value().clone(),
        Value::Integer(number) => number.value().to_string(),
        Value::Float(number) => number.value().to_string(),
        Value::Boolean(is) => if *is.value() { "yes" } else { "no" }.to_owned(),
        Value::Array(array) => {
            array.iter().map(to_text).collect::<Option<Vec<_>>>().map(|texts| texts.join(" "))?
        }
        Value::Datetime(_) | Value::InlineTable(_) => return None,
    })
}

/// A value of a flag as one would write it in the file.
fn to_toml(text: &str) -> Value {
    match (text, text.parse::<i64>()) {
        ("yes", _) => true.into(),
        ("no", _) => false.into(),
        (_, Ok(number)) if number.to_string() == text => number.into(),
        _ => text.into(),
    }
}

/// The line of the configuration file that gives a setting a value.
pub fn file_line(setting: &Setting, value: &str) -> String {
    format!("{} = {}", setting.name, to_toml(value))
}

/// Replaces a file by one with the same owner and permissions, all of it or nothing.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    // Behind a link the file is replaced, not the link.
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let before = fs::metadata(&path)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text)?;
    // Only root may give files away; without it the owner is the one who writes.
    let _ = fchown(new.as_file(), Some(before.uid()), Some(before.gid()));
    new.as_file().set_permissions(before.permissions())?;
    new.as_file().sync_all()?;
    new.persist(&path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_back(text: &str) -> Result<Vec<(&'static str, String)>, String> {
        let entries = entries(text)
            .map_err(|(offset, what)| wrong(Path::new("x.toml"), text, offset, what).to_string())?;
        Ok(entries.into_iter().map(|entry| (entry.setting.name, entry.value)).collect())
    }

    #[test]
    fn values_are_those_of_flags_in_whatever_form_the_file_has_them() {
        let text = r#"
            # A comment.
            bind = ["127.0.0.1", "::1"]
            port = 7000
            max-memory = "2gb"
            protected-mode = false
            latency-tracking-info-percentiles = [50, 99.9]
        "#;
        let expected = [
            ("bind", "127.0.0.1 ::1"),
            ("port", "7000"),
            ("max-memory", "2gb"),
            ("protected-mode", "no"),
            ("latency-tracking-info-percentiles", "50 99.9"),
        ];
        assert_eq!(read_back(text), Ok(expected.map(|(name, value)| (name, value.to_owned())).to_vec()));
    }

    #[test]
    fn mistakes_are_named_with_their_line_and_the_remedy() {
        for (text, line, words) in [
            ("port = 1\nmax-memori = 1\n", 2, "did you mean max-memory?"),
            ("\n\nmaxmemory = 1", 3, "maxmemory is called max-memory here"),
            ("max_memory = 1", 1, "did you mean max-memory?"),
            ("port = 70000", 1, "between 0 and 65535"),
            ("port = \"http\"", 1, "port: "),
            ("port = 1\nport = 2", 2, "duplicate key"),
            ("background-cpu-percent = 1\ndictionary-cpu-percent = 2", 2, "once more"),
            ("[server]\nport = 1", 1, "server is no setting"),
            ("[port]\nx = 1", 1, "no sections"),
            ("port = 2020-01-01", 1, "must be a text"),
            ("port = ", 1, ""),
        ] {
            let told = read_back(text).expect_err(text);
            assert!(told.starts_with(&format!("x.toml, line {line}: ")) && told.contains(words), "{told}");
        }
    }

    #[test]
    fn a_rewritten_file_keeps_its_comments_its_permissions_and_the_link_to_it() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.toml"), folder.path().join("link.toml"));
        let before = "# Memory.\nmax-memory = \"1gb\" # as ordered\ndictionary-cpu-percent = 5\n";
        fs::write(&path, before).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        let value = |name| SETTINGS.iter().find(|setting| setting.name == name).unwrap();
        let values = [("max-memory", "2147483648"), ("background-cpu-percent", "7"), ("password", "a b")];
        rewrite(&link, values.into_iter().map(|(name, text)| (value(name), text))).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "# Memory.\nmax-memory = 2147483648 # as ordered\nbackground-cpu-percent = 7\npassword = \"a b\"\n"
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    proptest! {
        #[test]
        fn every_value_reads_back_as_it_was_written(value in ".*") {
            let mut document = DocumentMut::new();
            document.insert("password", Item::Value(to_toml(&value)));
            prop_assert_eq!(read_back(&document.to_string()), Ok(vec![("password", value)]));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            let _ = read_back(&text);
        }
    }
}
