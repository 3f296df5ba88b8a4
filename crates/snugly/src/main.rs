//! The program: the server and the tools around it. Each subcommand is a module; `cli` lists them.

mod allocator;
mod bench;
mod cli;
mod client;
mod corpus;
mod generate;
mod serve;

use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
    let job = cli::JOBS.iter().find(|job| job.name == name).expect("clap knows no other subcommands");
    match (job.run)(matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("snugly: {}", with_causes(&*error));
            ExitCode::FAILURE
        }
    }
}

/// What happened and why: the error and those that caused it.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
