//! `snugly ping`: whether a server answers, for health checks of containers and load balancers.

use anyhow::Result;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::address::{Address, Trust};
use super::node::{explain_connecting, greet};

#[derive(Args, Debug)]
struct Options {
    /// Address of the server: snugly://[[user]:password@]host[:port], or redis://, valkey://, rediss:// and valkeys://
    /// with TLS, or unix:///path
    #[arg(default_value = "snugly://127.0.0.1")]
    url: Address,

    #[command(flatten)]
    trust: Trust,
}

pub(crate) fn command(command: Command) -> Command {
    Options::augment_args(command).about("Tells whether a server answers").after_help(
        "Exits with 0 if it does, and with 1 if it does not within five seconds. A server that wants a password where none \
         is given has answered; one that refuses the password has not. A password may be in the URL, in REDISCLI_AUTH, or \
         in the file that SNUGLY_PASSWORD_FILE names.",
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let Options { url, trust } = Options::from_arg_matches(matches)?;
    match greet(&trust, &url)?.1 {
        Ok(_) => println!("{url} answers"),
        Err(error) if error.code() == Some("NOAUTH") => println!("{url} answers, and wants a password"),
        Err(error) => return Err(explain_connecting(&url, &error)),
    }
    Ok(())
}
