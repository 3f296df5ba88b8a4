//! Man pages, shell completions and a configuration file, made from the tables of the command line and of settings.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use snugly_server::{SETTINGS, Setting, file_line};

use crate::cli;

pub(crate) fn completions_command(command: Command) -> Command {
    command
        .about("Prints shell completions")
        .after_help("For bash: snugly completions bash > ~/.local/share/bash-completion/completions/snugly")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .help("Shell to complete for")
                .required(true)
                .value_parser(value_parser!(Shell)),
        )
}

pub(crate) fn completions(matches: &ArgMatches) -> Result<()> {
    let shell = *matches.get_one::<Shell>("shell").expect("required");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "snugly", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

pub(crate) fn man_command(command: Command) -> Command {
    command
        .about("Writes man pages, one for each subcommand")
        .after_help("To read one: snugly man /tmp/man && man /tmp/man/snugly-serve.1")
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .help("Folder for the pages; made if it does not exist")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
}

pub(crate) fn man(matches: &ArgMatches) -> Result<()> {
    let folder = matches.get_one::<PathBuf>("folder").expect("required");
    let write = || {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(cli::command(), folder)
    };
    write().with_context(|| format!("cannot write to {}", folder.display()))
}

pub(crate) fn settings_command(command: Command) -> Command {
    command
        .about("Prints a configuration file with every setting, its meaning and its default, to begin with")
        .after_help(
            "Every line of it is a comment: take away the # where something is to differ. For example:\n  \
             snugly settings > ~/.config/snugly/snugly.toml",
        )
}

pub(crate) fn settings(_matches: &ArgMatches) -> Result<()> {
    let head = "# Settings of `snugly serve`, all at their default. Flags and the environment beat this file.\n\
                # SIGHUP and CONFIG RELOAD apply changes, but for settings that say \"at the start\".\n";
    io::stdout().write_all(head.as_bytes())?;
    SETTINGS.iter().try_for_each(|setting| Ok(io::stdout().write_all(in_file(setting).as_bytes())?))
}

/// The lines about one setting.
fn in_file(setting: &Setting) -> String {
    let mut text = String::from("\n");
    let when = if setting.live { "" } else { " (at the start)" };
    for line in textwrap::wrap(&format!("{}{when}.", setting.help), 98) {
        text.push_str(&format!("# {line}\n"));
    }
    text.push_str(&format!("# {}\n", file_line(setting, setting.default)));
    text
}
