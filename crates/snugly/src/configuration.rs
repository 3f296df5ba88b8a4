//! The sources of settings on this machine: arguments, the environment, and the configuration file where it is looked for.
//!
//! It knows the command line. Which source wins is for `snugly_server::Sources`.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{PossibleValue, TypedValueParser, UnknownArgumentValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, value_parser};
use snugly_server::{
    Configuration, FORMER_NAMES, Given, Origin, SETTINGS, Setting, Sources, advice_on, environment,
};

/// The argument that names the configuration file.
pub(crate) const FILE: &str = "config";
/// Files that are looked for if none is named: below the folder of the user's configuration, and the machine's.
const USER_FILE: &str = "snugly/snugly.toml";
const MACHINE_FILE: &str = "/etc/snugly/snugly.toml";

/// Options of valkey-server that there are none of, or that are better given in another way. Others that are called
/// something else here are in the table of settings.
const VALKEY_NAMES: &[(&str, &str)] = &[
    ("appendonly", "to keep everything on disk, use --storage FOLDER"),
    ("appendfsync", "to answer writes once they are on disk, use --durability fsync"),
    ("daemonize", "snugly stays in the foreground: let a service manager run it"),
    ("logfile", "the log goes to standard error: redirect that"),
    (
        "requirepass",
        "use --password-file FILE, or --password PASSWORD, which everybody sees in the list of processes",
    ),
    (
        "save",
        "snugly saves nothing by itself: to keep everything on disk use --storage FOLDER, or ask for SAVE",
    ),
];

/// Adds an argument for each setting, and for names that they had or have elsewhere.
pub(crate) fn add_arguments(command: Command) -> Command {
    command
        .arg(file_argument())
        .args(SETTINGS.iter().map(argument))
        .args(FORMER_NAMES.iter().map(|&(name, of)| former_argument(name, of)))
        .args(VALKEY_NAMES.iter().map(|(name, hint)| foreign_argument(name, (*hint).to_owned())))
        .args(SETTINGS.iter().filter_map(argument_in_valkey))
}

/// An argument by its name in Valkey, which tells the name here.
fn argument_in_valkey(setting: &Setting) -> Option<Arg> {
    let name = setting.valkey_name.filter(|name| !VALKEY_NAMES.iter().any(|(known, _)| known == name))?;
    Some(foreign_argument(name, format!("use --{} {}", setting.name, setting.value_name)))
}

fn file_argument() -> Arg {
    Arg::new(FILE)
        .long(FILE)
        .env(environment(FILE))
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help(
            "Configuration file with settings in TOML, such as max-memory = \"2gb\"; flags and the environment beat it. \
             Without it snugly/snugly.toml in $XDG_CONFIG_HOME (~/.config), else /etc/snugly/snugly.toml is read if there \
             is one. `snugly settings` prints one to begin with",
        )
}

fn foreign_argument(name: &'static str, hint: String) -> Arg {
    let parser = UnknownArgumentValueParser::suggest(hint);
    let argument = Arg::new(name).long(name).value_name("VALUE").hide(true);
    argument.num_args(0..=1).allow_hyphen_values(true).value_parser(parser)
}

fn argument(setting: &'static Setting) -> Arg {
    Arg::new(setting.name)
        .long(setting.name)
        .env(setting.environment())
        .hide_env_values(setting.is_secret())
        .hide_default_value(setting.default.is_empty())
        .value_name(setting.value_name)
        .default_value(setting.default)
        .help(setting.help)
        .allow_hyphen_values(true)
        .value_parser(ValueOf(setting))
        .hide_possible_values(true)
}

/// A name that a setting had before.
fn former_argument(name: &'static str, of: &str) -> Arg {
    let setting = present(of);
    Arg::new(name)
        .long(name)
        .env(environment(name))
        .value_name(setting.value_name)
        .hide(true)
        .allow_hyphen_values(true)
        .value_parser(ValueOf(setting))
}

fn present(name: &str) -> &'static Setting {
    SETTINGS.iter().find(|setting| setting.name == name).expect("a former name is one of a setting")
}

/// Reads the value of a setting, and tells the shell which ones there are.
#[derive(Clone, Copy)]
struct ValueOf(&'static Setting);

impl TypedValueParser for ValueOf {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let check = |text: &str| (self.0.set)(&mut Configuration::default(), text).map(|()| text.to_owned());
        check.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = self.0.choices();
        (!values.is_empty())
            .then(|| Box::new(values.into_iter().map(PossibleValue::new)) as Box<dyn Iterator<Item = _>>)
    }
}

/// The sources of settings, and advice for whoever uses names that will go away.
pub(crate) fn sources(matches: &ArgMatches) -> Result<(Sources, Vec<String>)> {
    let mut given: Vec<Given> =
        SETTINGS.iter().filter_map(|setting| value(matches, setting.name, setting)).collect();
    let mut advice = Vec::new();
    for (former, of) in FORMER_NAMES {
        let Some(value) = value(matches, former, present(of)) else { continue };
        advice.extend(advice_on(former));
        // Of both names in one place, the present one wins.
        if !given.iter().any(|given| given.setting.name == *of) {
            given.push(value);
        }
    }
    let sources = Sources::new(file(matches)?, given)?;
    advice.extend(sources.advice());
    Ok((sources, advice))
}

/// The value that an argument was given.
fn value(matches: &ArgMatches, argument: &str, setting: &'static Setting) -> Option<Given> {
    let origin = match matches.value_source(argument)? {
        ValueSource::CommandLine => Origin::Flag,
        ValueSource::EnvVariable => Origin::Environment,
        _ => return None,
    };
    let value = matches.get_one::<String>(argument)?.clone();
    Some(Given { setting, value, origin })
}

/// The configuration file that is named, else the first that there is. One that may not be looked at is an error, since it
/// may be what keeps others out.
fn file(matches: &ArgMatches) -> Result<Option<PathBuf>> {
    if let Some(named) = matches.get_one::<PathBuf>(FILE) {
        return Ok(Some(named.clone()));
    }
    for path in [user_file(), Some(PathBuf::from(MACHINE_FILE))].into_iter().flatten() {
        if path.try_exists()? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The user's file, by the XDG Base Directory Specification.
fn user_file() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    folder.map(|folder| folder.join(USER_FILE))
}

/// The settings that are not at their default, by the place that they come from, in words.
pub(crate) fn origins(sources: &Sources) -> String {
    let places = [
        (Origin::Flag, "flags".to_owned()),
        (Origin::Environment, "the environment".to_owned()),
        (Origin::File, sources.file().map_or(String::new(), |path| path.display().to_string())),
    ];
    let of = |place| {
        let settings = sources.origins().filter(|(_, origin)| *origin == place);
        settings.map(|(setting, _)| shown(setting, sources.configuration())).collect::<Vec<_>>()
    };
    let lines = places.into_iter().filter_map(|(place, name)| {
        let settings = of(place);
        (!settings.is_empty()).then(|| format!("  Settings from {name}: {}\n", settings.join(", ")))
    });
    lines.collect()
}

fn shown(setting: &Setting, configuration: &Configuration) -> String {
    match (setting.get)(configuration) {
        _ if setting.is_secret() => format!("{} (hidden)", setting.name),
        value if value.is_empty() || value.contains(' ') => format!("{} \"{value}\"", setting.name),
        value => format!("{} {value}", setting.name),
    }
}
