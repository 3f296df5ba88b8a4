//! Man pages and shell completions, made from the command line's own table.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

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
