//! The command line: one row for each job. Help, man pages and shell completions are made from it.

use anyhow::Result;
use clap::{ArgMatches, Command};

use crate::live::{analyze, backup, explain, ping, train};
use crate::{bench, decode, dictionaries, generate, serve, storage, top};

/// A subcommand.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) command: fn(Command) -> Command,
    pub(crate) run: fn(&ArgMatches) -> Result<()>,
}

pub(crate) const JOBS: &[Job] = &[
    Job { name: "serve", command: serve::command, run: serve::run },
    Job { name: "settings", command: generate::settings_command, run: generate::settings },
    Job { name: "ping", command: ping::command, run: ping::run },
    Job { name: "top", command: top::command, run: top::run },
    Job { name: "decode", command: decode::command, run: decode::run },
    Job { name: "dictionaries", command: dictionaries::command, run: dictionaries::run },
    Job { name: "analyze", command: analyze::command, run: analyze::run },
    Job { name: "explain", command: explain::command, run: explain::run },
    Job { name: "train", command: train::command, run: train::run },
    Job { name: "bench", command: bench::command, run: bench::run },
    Job { name: "backup", command: backup::command, run: backup::run },
    Job { name: "restore", command: storage::restore_command, run: storage::restore },
    Job { name: "check", command: storage::check_command, run: storage::check },
    Job { name: "compact", command: storage::compact_command, run: storage::compact },
    Job { name: "repair", command: storage::repair_command, run: storage::repair },
    Job { name: "completions", command: generate::completions_command, run: generate::completions },
    Job { name: "man", command: generate::man_command, run: generate::man },
];

/// The whole command line.
pub(crate) fn command() -> Command {
    Command::new("snugly")
        .version(env!("PROGRAM_VERSION"))
        .about("Caches that keep their values compressed")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(JOBS.iter().map(|job| (job.command)(Command::new(job.name))))
}
