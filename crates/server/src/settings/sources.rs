//! Sources of settings: flags beat the environment, which beats the configuration file, at the start and whenever the
//! file is read again.
//!
//! It knows which value wins, and what may change while the server runs. It does not know who follows a change.

use std::fmt;
use std::path::{Path, PathBuf};

use snugly_codec::SelectError;
use thiserror::Error;

use super::file::{self, Entry, FileError};
use super::secret::{SecretError, read_secret, read_token};
use super::{Configuration, SETTINGS, Setting, advice_on};

/// A place that has values of settings; a later one beats an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The configuration file.
    File,
    /// The environment.
    Environment,
    /// The command line.
    Flag,
}

/// The value of a setting, and where it was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The setting.
    pub setting: &'static Setting,
    /// The value, as one writes it.
    pub value: String,
    /// The place.
    pub origin: Origin,
}

/// The setting of the password that clients give.
const PASSWORD: &str = "password";

/// Reason why there is no valid configuration.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The configuration file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A value is wrong.
    #[error("{setting}: {why}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The file of the password or of the token is wrong.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Two passwords from the same place.
    #[error("password and password-file are two passwords: give one of them")]
    TwoPasswords,
    /// Codec, level and threshold do not go together.
    #[error(transparent)]
    Compression(#[from] SelectError),
}

/// Reason why the configuration file was not rewritten.
#[derive(Debug, Error)]
pub(crate) enum RewriteError {
    #[error("The server is running without a config file")]
    NoFile,
    #[error("Rewriting config file: the password was changed, and a start takes it from {0}: write it there")]
    Password(String),
    #[error("Rewriting config file: {0}")]
    File(#[from] FileError),
}

/// Outcome of reading the sources again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// Settings that have changed, by name.
    pub applied: Vec<&'static str>,
    /// Settings that stay as they are until a restart, and the reason.
    pub refused: Vec<(&'static str, &'static str)>,
}

/// All places that have values of settings.
#[derive(Default)]
pub struct Sources {
    file: Option<PathBuf>,
    /// Values of flags and of the environment, which last as long as the process.
    given: Vec<Given>,
    /// Values of the file, as it was when it was last read.
    entries: Vec<Entry>,
    /// The settings by all sources, as they were last applied. It differs from those in force by what CONFIG SET changed.
    loaded: Configuration,
}

/// Sources that were read again, before they apply.
struct Next {
    in_force: Configuration,
    loaded: Configuration,
    entries: Vec<Entry>,
    outcome: Reload,
}

impl Sources {
    /// Reads the file if there is one, and the password's file.
    ///
    /// # Errors
    /// [`SettingsError`], of which nothing applies.
    pub fn new(file: Option<PathBuf>, given: Vec<Given>) -> Result<Sources, SettingsError> {
        let entries = read(file.as_deref())?;
        let loaded = merge(&entries, &given)?;
        Ok(Sources { file, given, entries, loaded })
    }

    /// These settings, from nowhere: nothing changes when they are read again.
    pub fn fixed(loaded: Configuration) -> Sources {
        Sources { loaded, ..Sources::default() }
    }

    /// The settings by all sources.
    pub fn configuration(&self) -> &Configuration {
        &self.loaded
    }

    /// The configuration file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Settings that were given, each with the source that wins, in the order of the table.
    pub fn origins(&self) -> impl Iterator<Item = (&'static Setting, Origin)> {
        SETTINGS.iter().filter_map(|setting| {
            let given = self.given.iter().filter(|given| given.setting.name == setting.name);
            let in_file = self.entries.iter().any(|entry| entry.setting.name == setting.name);
            let origin = given.map(|given| given.origin).chain(in_file.then_some(Origin::File)).max();
            origin.map(|origin| (setting, origin))
        })
    }

    /// What to tell whoever wrote the file.
    pub fn advice(&self) -> impl Iterator<Item = String> {
        self.entries.iter().filter_map(|entry| advice_on(entry.former_name?))
    }

    /// Reads the sources again, and applies to the settings in force what has changed in them and may. A setting that CONFIG
    /// SET has changed stays until its source changes. `check` is what else has to succeed with the changed settings.
    ///
    /// # Errors
    /// [`SettingsError`], and those of `check`; then nothing has changed.
    pub(crate) fn reload<E: From<SettingsError>>(
        &mut self,
        in_force: &mut Configuration,
        check: impl FnOnce(&Configuration) -> Result<(), E>,
    ) -> Result<Reload, E> {
        let next = self.read_again(in_force)?;
        check(&next.in_force)?;
        *in_force = next.in_force;
        (self.loaded, self.entries) = (next.loaded, next.entries);
        Ok(next.outcome)
    }

    /// Reads the sources, and finds what becomes of the differences.
    fn read_again(&self, in_force: &Configuration) -> Result<Next, SettingsError> {
        let entries = read(self.file.as_deref())?;
        let mut loaded = merge(&entries, &self.given)?;
        let mut changed = in_force.clone();
        let mut outcome = Reload::default();
        for setting in SETTINGS {
            let (before, after) = ((setting.get)(&self.loaded), (setting.get)(&loaded));
            if before == after {
                continue;
            }
            match reason_for_a_restart(setting, &after) {
                None => {
                    assign(&mut changed, setting, &after)?;
                    outcome.applied.push(setting.name);
                }
                Some(reason) => {
                    // Then the next reload says so again.
                    assign(&mut loaded, setting, &before)?;
                    outcome.refused.push((setting.name, reason));
                }
            }
        }
        if loaded.admin_token_file == self.loaded.admin_token_file
            && loaded.admin_token != changed.admin_token
        {
            changed.admin_token.clone_from(&loaded.admin_token);
            outcome.applied.push("admin-token-file");
        }
        changed.compression()?;
        Ok(Next { in_force: changed, loaded, entries, outcome })
    }

    /// Writes into the file what CONFIG SET has changed; returns the names of settings whose value a flag or the
    /// environment will beat at the next start.
    pub(crate) fn rewrite(&mut self, in_force: &Configuration) -> Result<Vec<&'static str>, RewriteError> {
        let path = self.file.as_deref().ok_or(RewriteError::NoFile)?;
        let differs = |setting: &&Setting| (setting.get)(in_force) != (setting.get)(&self.loaded);
        let changed: Vec<_> = SETTINGS.iter().filter(differs).collect();
        if changed.iter().any(|setting| setting.name == PASSWORD) && !in_force.password_file.is_empty() {
            return Err(RewriteError::Password(in_force.password_file.clone()));
        }
        let values: Vec<_> = changed.iter().map(|setting| (*setting, (setting.get)(in_force))).collect();
        file::rewrite(path, values.iter().map(|(setting, value)| (*setting, value.as_str())))?;
        let mut beaten = Vec::new();
        for (setting, value) in &values {
            if self.given.iter().any(|given| given.setting.name == setting.name) {
                beaten.push(setting.name);
            } else {
                (setting.set)(&mut self.loaded, value).expect("it is in force");
            }
        }
        Ok(beaten)
    }
}

fn read(file: Option<&Path>) -> Result<Vec<Entry>, FileError> {
    file.map_or(Ok(Vec::new()), file::read)
}

/// The settings by the values of all sources; the others have their defaults.
fn merge(entries: &[Entry], given: &[Given]) -> Result<Configuration, SettingsError> {
    let mut configuration = Configuration::default();
    let in_file = entries.iter().map(|entry| (entry.setting, &*entry.value, Origin::File));
    let others = given.iter().map(|given| (given.setting, &*given.value, given.origin));
    let mut values: Vec<_> = in_file.chain(others).collect();
    values.sort_by_key(|(.., origin)| *origin);
    let mut password_origin = None;
    for (setting, value, origin) in values {
        if is_password(setting) && password_origin.replace(origin) != Some(origin) {
            // A password beats that of another source, wherever that has it.
            (configuration.password, configuration.password_file) = Default::default();
        }
        assign(&mut configuration, setting, value)?;
    }
    if !configuration.password_file.is_empty() {
        if !configuration.password.is_empty() {
            return Err(SettingsError::TwoPasswords);
        }
        configuration.password = read_secret(Path::new(&configuration.password_file))?;
    }
    if !configuration.admin_token_file.is_empty() {
        configuration.admin_token = read_token(Path::new(&configuration.admin_token_file))?;
    }
    configuration.compression()?;
    Ok(configuration)
}

fn is_password(setting: &Setting) -> bool {
    matches!(setting.name, PASSWORD | "password-file")
}

fn assign(configuration: &mut Configuration, setting: &Setting, value: &str) -> Result<(), SettingsError> {
    (setting.set)(configuration, value).map_err(|why| SettingsError::Value { setting: setting.name, why })
}

/// Returns why a setting cannot take a value while the server runs.
fn reason_for_a_restart(setting: &Setting, value: &str) -> Option<&'static str> {
    match setting {
        _ if setting.name == PASSWORD && value.is_empty() => {
            Some("a running server does not drop its password; restart it to do so")
        }
        _ if !setting.live => Some("it takes a restart"),
        _ => None,
    }
}

impl fmt::Display for Reload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.applied.as_slice() {
            [] => write!(formatter, "nothing to apply has changed")?,
            applied => write!(formatter, "applied: {}", applied.join(", "))?,
        }
        for (name, reason) in &self.refused {
            write!(formatter, "; refused: {name} ({reason})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn setting(name: &str) -> &'static Setting {
        SETTINGS.iter().find(|setting| setting.name == name).expect("a setting")
    }

    fn given(name: &str, value: &str, origin: Origin) -> Given {
        Given { setting: setting(name), value: value.to_owned(), origin }
    }

    /// A configuration file with something in it, and the sources that it makes with others.
    struct Case {
        folder: tempfile::TempDir,
        sources: Sources,
    }

    impl Case {
        fn new(text: &str, given: Vec<Given>) -> Case {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("snugly.toml");
            fs::write(&path, text).unwrap();
            Case { sources: Sources::new(Some(path), given).unwrap(), folder }
        }

        fn write(&self, text: &str) {
            fs::write(self.folder.path().join("snugly.toml"), text).unwrap();
        }

        fn text(&self) -> String {
            fs::read_to_string(self.folder.path().join("snugly.toml")).unwrap()
        }
    }

    #[test]
    fn flags_beat_the_environment_which_beats_the_file() {
        let case = Case::new(
            "port = 1\nmax-memory = 1\ntimeout = 1\n",
            vec![
                given("port", "3", Origin::Flag),
                given("port", "2", Origin::Environment),
                given("max-memory", "2", Origin::Environment),
            ],
        );
        let configuration = case.sources.configuration();
        assert_eq!((configuration.port, configuration.max_memory, configuration.timeout), (Some(3), 2, 1));
        let origins: Vec<_> =
            case.sources.origins().map(|(setting, origin)| (setting.name, origin)).collect();
        let expected =
            [("port", Origin::Flag), ("max-memory", Origin::Environment), ("timeout", Origin::File)];
        assert_eq!(origins, expected);
    }

    #[test]
    fn a_reload_applies_what_has_changed_and_may_and_refuses_the_rest_by_name() {
        let mut case = Case::new("port = 1\nmax-memory = 1\n", vec![given("timeout", "9", Origin::Flag)]);
        let mut in_force = case.sources.configuration().clone();
        in_force.max_clients = 7;
        case.write("port = 2\nmax-memory = 2\ntimeout = 5\n");
        for applied in [vec!["max-memory"], vec![]] {
            let outcome = case.sources.reload(&mut in_force, |_| Ok::<_, SettingsError>(())).unwrap();
            assert_eq!(outcome, Reload { applied, refused: vec![("port", "it takes a restart")] });
            assert_eq!((in_force.port, in_force.max_memory, in_force.timeout), (Some(1), 2, 9));
            assert_eq!(in_force.max_clients, 7, "CONFIG SET holds");
        }
        case.write("port = 1\n");
        assert_eq!(
            case.sources.reload(&mut in_force, |_| Ok::<_, SettingsError>(())).unwrap().to_string(),
            "applied: max-memory"
        );
        assert_eq!(in_force.max_memory, 0);
    }

    #[test]
    fn a_reload_of_a_wrong_file_changes_nothing() {
        let mut case = Case::new("max-memory = 1\n", Vec::new());
        let mut in_force = case.sources.configuration().clone();
        for wrong in ["max-memory = 2\ntimeout = -1\n", "max-memory = 2\ncompression-level = 99\n", "x"] {
            case.write(wrong);
            assert!(case.sources.reload(&mut in_force, |_| Ok::<_, SettingsError>(())).is_err(), "{wrong}");
            assert_eq!((in_force.max_memory, case.sources.configuration().max_memory), (1, 1));
        }
    }

    #[test]
    fn a_reload_changes_the_password_and_never_drops_it() {
        let mut case = Case::new("", Vec::new());
        let file = case.folder.path().join("password");
        fs::write(&file, "one").unwrap();
        case.write(&format!("password-file = {file:?}\n"));
        case.sources = Sources::new(case.sources.file.clone(), Vec::new()).unwrap();
        let mut in_force = case.sources.configuration().clone();
        assert_eq!(in_force.password, "one");
        fs::write(&file, "two\n").unwrap();
        assert_eq!(
            case.sources.reload(&mut in_force, |_| Ok::<_, SettingsError>(())).unwrap().applied,
            ["password"]
        );
        assert_eq!(in_force.password, "two");
        fs::write(&file, "").unwrap();
        assert!(matches!(
            case.sources.reload(&mut in_force, |_| Ok::<_, SettingsError>(())),
            Err(SettingsError::Secret(_))
        ));
        case.write("");
        let refused: Vec<_> =
            case.sources.reload(&mut in_force, |_| Ok::<_, SettingsError>(())).unwrap().refused;
        assert_eq!(refused.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["password", "password-file"]);
        assert_eq!(in_force.password, "two");
    }

    #[test]
    fn a_password_beats_that_of_a_weaker_source_and_two_of_one_are_refused() {
        let case = Case::new(
            "password-file = \"/nonexistent\"\n",
            Vec::new().into_iter().chain([given("password", "x", Origin::Flag)]).collect(),
        );
        let configuration = case.sources.configuration();
        assert_eq!((&*configuration.password, &*configuration.password_file), ("x", ""));
        let both = vec![
            given("password", "x", Origin::Environment),
            given("password-file", "/nonexistent", Origin::Environment),
        ];
        assert!(matches!(Sources::new(None, both), Err(SettingsError::TwoPasswords)));
    }

    #[test]
    fn what_was_changed_is_rewritten_and_read_again_without_a_change() {
        let mut case = Case::new("port = 1 # here\n", vec![given("timeout", "9", Origin::Environment)]);
        let mut in_force = case.sources.configuration().clone();
        (in_force.max_memory, in_force.timeout) = (5, 3);
        assert_eq!(case.sources.rewrite(&in_force).unwrap(), ["timeout"]);
        assert_eq!(case.text(), "port = 1 # here\nmax-memory = 5\ntimeout = 3\n");
        assert_eq!(
            case.sources.reload(&mut in_force, |_| Ok::<_, SettingsError>(())).unwrap(),
            Reload::default()
        );
        assert_eq!((in_force.max_memory, in_force.timeout), (5, 3));
    }

    #[test]
    fn a_password_of_a_file_of_its_own_is_not_written_elsewhere() {
        let mut case = Case::new("", Vec::new());
        let in_force = Configuration {
            password: "new".into(),
            password_file: "/etc/password".into(),
            ..Configuration::default()
        };
        let told = case.sources.rewrite(&in_force).unwrap_err().to_string();
        assert!(told.contains("/etc/password") && case.text().is_empty(), "{told}");
        let told = Sources::default().rewrite(&in_force).unwrap_err().to_string();
        assert_eq!(told, "The server is running without a config file");
    }
}
