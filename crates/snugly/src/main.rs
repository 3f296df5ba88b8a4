//! The program.

mod bench;
mod client;
mod corpus;

use std::process::ExitCode;

use clap::Command;

fn main() -> ExitCode {
    let matches = Command::new("snugly").subcommand_required(true).subcommand(bench::command()).get_matches();
    let result = match matches.subcommand() {
        Some(("bench", matches)) => bench::run(matches),
        _ => unreachable!("clap requires one of the subcommands"),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("snugly: {error:#}");
            ExitCode::FAILURE
        }
    }
}
