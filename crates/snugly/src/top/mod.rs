//! `snugly top`: what a running server does, in the terminal.
//!
//! - [`source`]: asks the server, and connects anew
//! - [`readings`]: what it said at one moment, as numbers
//! - [`rates`]: what changed between two moments
//! - [`picture`]: what is shown, and what keys change of it
//! - [`numbers`], [`panels`]: numbers in words, and what is told under which title
//! - [`drawing`], [`view`]: a panel in cells, and all of them on a screen of any size
//! - [`screen`]: the terminal, from the first frame until it is as it was
//!
//! It reads only, as any client does, and knows nothing of the server of this program.

mod drawing;
mod numbers;
mod panels;
mod picture;
mod rates;
mod readings;
mod screen;
mod source;
mod view;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::live::address::OneServer;
use picture::{Picture, Update};
use source::{Pace, Source};

/// Columns of what is printed, where no terminal says how many it has.
const WIDTH: u16 = 100;

#[derive(Args, Debug)]
struct Options {
    #[command(flatten)]
    server: OneServer,

    /// Seconds between two looks, from 0.1 on
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,

    /// Print the numbers as text after two looks, and end; also where the output is no terminal
    #[arg(long)]
    once: bool,
}

fn seconds(text: &str) -> Result<Duration> {
    const LEAST: Duration = Duration::from_millis(100);
    const MOST: Duration = Duration::from_secs(3_600);
    let seconds: f64 = text.parse().map_err(|_| anyhow!("expected a number of seconds"))?;
    let interval = Duration::try_from_secs_f64(seconds)?;
    ensure!((LEAST..=MOST).contains(&interval), "expected 0.1 to 3600 seconds");
    Ok(interval)
}

pub(crate) fn command(command: Command) -> Command {
    Options::augment_args(command).about("Shows what a running server does, in the terminal").after_help(
        "Keys: q quits, p pauses, ? explains the others. NO_COLOR=1 leaves the colours out. Of a Valkey or Redis it shows \
         what these tell.\nExamples:\n  snugly top\n  snugly top valkeys://cache.example.com --ca-file ca.pem\n  snugly \
         top --once --interval 5 redis://localhost:6379",
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let Options { server: OneServer { url, trust }, interval, once } = Options::from_arg_matches(matches)?;
    let mut source = Source::open(&trust, &url)?;
    let is_coloured = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut picture = Picture::new(url.to_string(), interval, is_coloured);
    if once || !io::stdout().is_terminal() {
        picture.take(Update::Read(Box::new(source.read()?)));
        thread::sleep(interval);
        picture.take(Update::Read(Box::new(source.read()?)));
        return Ok(io::stdout().write_all(view::print(&picture, width()).as_bytes())?);
    }
    picture.take(Update::Read(Box::new(source.read()?)));
    let pace = Arc::new(Pace::new(interval));
    let updates = source::follow(source, trust, url, pace.clone());
    screen::follow(picture, &updates, &pace)
}

/// Columns of the terminal, or those that COLUMNS asks for.
fn width() -> u16 {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let of_terminal = || {
        let size = io::stdout().is_terminal().then(ratatui::crossterm::terminal::size)?;
        size.ok().map(|(columns, _)| columns)
    };
    asked.or_else(of_terminal).filter(|columns| *columns > 0).unwrap_or(WIDTH)
}
