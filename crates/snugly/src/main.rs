//! The program: the server and the tools around it. Each subcommand is a module; `cli` lists them.

mod allocator;
mod bench;
mod cli;
mod configuration;
mod corpus;
mod decode;
mod dictionaries;
mod generate;
mod interrupt;
mod live;
mod log;
mod open_files;
mod password;
mod serve;
mod service_manager;
mod start;
mod storage;
mod table;
mod top;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
    let job = cli::JOBS.iter().find(|job| job.name == name).expect("clap knows no other subcommands");
    match (job.run)(matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.chain().any(is_broken_pipe) => ExitCode::SUCCESS,
        Err(error) if error.is::<log::Logged>() => ExitCode::FAILURE,
        Err(error) => {
            // Nobody may be there to read it.
            let _ = writeln!(io::stderr(), "snugly: {error:#}");
            ExitCode::from(if error.is::<decode::Undecodable>() { decode::EXIT_UNDECODABLE } else { 1 })
        }
    }
}

/// Whether the reader of our output, such as `head`, has seen enough.
fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
