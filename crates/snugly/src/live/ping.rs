//! `snugly ping`: whether a server answers, for health checks of containers and load balancers.

use anyhow::Result;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::address::OneServer;
use super::node::{explain_connecting, greet};

pub(crate) fn command(command: Command) -> Command {
    OneServer::augment_args(command).about("Tells whether a server answers").after_help(
        "Exits with 0 if it does, and with 1 if it does not within five seconds. A server that wants a password where none \
         is given has answered; one that refuses the password has not.",
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let OneServer { url, trust } = OneServer::from_arg_matches(matches)?;
    match greet(&trust, &url)?.1 {
        Ok(_) => println!("{url} answers"),
        Err(error) if error.code() == Some("NOAUTH") => println!("{url} answers, and wants a password"),
        Err(error) => return Err(explain_connecting(&url, &error)),
    }
    Ok(())
}
