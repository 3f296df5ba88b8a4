//! The log of `snugly serve`: lines of text or JSON on standard error.
//!
//! It knows how lines are written, and nothing of who writes them.

use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal, Write as _};
use std::panic;
use std::thread;

use snugly_server::{Configuration, LogFormat};
use tracing::{error, info};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Lines of the log that wait for a reader; further ones are dropped.
const MOST_LINES: usize = 4096;

/// The log of the process. Dropping it writes the lines that wait, for about a second at most.
pub(crate) struct Log {
    format: LogFormat,
    lines: NonBlocking,
    _written_at_the_end: WorkerGuard,
}

impl Log {
    /// Starts the log, once for the process. A thread of its own writes: a reader that is gone or stuck holds up nobody who
    /// logs.
    pub(crate) fn start(configuration: &Configuration) -> Log {
        let builder = NonBlockingBuilder::default().thread_name("log").buffered_lines_limit(MOST_LINES);
        let (lines, written_at_the_end) = builder.lossy(true).finish(io::stderr());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(configuration.log_level)
            .with_writer(lines.clone())
            // Else it would complain of a log that cannot be written on the log, and panic.
            .log_internal_errors(false);
        match configuration.log_format {
            LogFormat::Text => {
                subscriber.with_ansi(io::stderr().is_terminal() && !asks_for_no_color()).init()
            }
            LogFormat::Json => {
                subscriber.json().with_current_span(false).with_span_list(false).init();
                panic::set_hook(Box::new(log_panic));
            }
        }
        Log { format: configuration.log_format, lines, _written_at_the_end: written_at_the_end }
    }

    /// Shows the lines of the banner.
    pub(crate) fn show(&mut self, banner: &str) {
        match self.format {
            LogFormat::Text => {
                // Nobody may be there to read it.
                let _ = self.lines.write_all(banner.as_bytes());
            }
            LogFormat::Json => banner.lines().for_each(|line| info!("{}", line.trim_start())),
        }
    }

    /// The error that the program ends with, as it is to be told on standard error.
    pub(crate) fn end(&self, error: anyhow::Error) -> anyhow::Error {
        match self.format {
            LogFormat::Text => error,
            LogFormat::Json => {
                error!("{error:#}");
                Logged.into()
            }
        }
    }
}

/// An error that is on the log already.
#[derive(Debug)]
pub(crate) struct Logged;

impl fmt::Display for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reason is on the log")
    }
}

impl Error for Logged {}

/// Whether the environment asks for a log without colours (https://no-color.org).
fn asks_for_no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn log_panic(panic: &panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = thread::current();
    let reason = panic.payload_as_str().unwrap_or("for a reason that is no text");
    error!(thread = thread.name().unwrap_or_default(), place, reason, "a thread panicked");
}
