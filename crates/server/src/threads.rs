//! The threads of a server: how they start, and what happens if one ends that must not.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

use crate::settings::LogFormat;
use crate::state::Server;

/// The exit code of a process that has lost a thread: EX_SOFTWARE of sysexits.h.
const THREAD_LOST: i32 = 70;
/// Time that the last message may take.
const LONGEST_MESSAGE: Duration = Duration::from_secs(1);

/// A resource that the system does not give the server.
#[derive(Debug, Error)]
#[error("the system refuses {what}: {reason}; {hint}")]
pub struct SystemError {
    /// The resource asked for.
    what: &'static str,
    /// The system's error.
    reason: io::Error,
    /// Advice on the remedy.
    hint: &'static str,
}

/// Creates the event loop of one thread, with more threads for what has to wait.
///
/// # Errors
/// [`SystemError`] if the system has no file descriptors for it.
pub(crate) fn event_loop(waiting_threads: usize) -> Result<Runtime, SystemError> {
    let built = Builder::new_current_thread().enable_all().max_blocking_threads(waiting_threads).build();
    built.map_err(|reason| SystemError {
        what: "an event loop",
        reason,
        hint: "raise the limit of open files (ulimit -n)",
    })
}

/// Starts a thread of the server. If it ends before the server stops, the process ends: without it clients would wait for
/// ever, or be told of writes that are lost.
///
/// # Errors
/// [`SystemError`] if the system refuses a thread.
pub(crate) fn start(
    server: &Arc<Server>,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, SystemError> {
    let (server, told) = (server.clone(), name.to_owned());
    let guarded = move || {
        let ended = catch_unwind(AssertUnwindSafe(run));
        if ended.is_err() || !server.stopping.load(Ordering::SeqCst) {
            end_process(&told, server.configuration().log_format);
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(guarded).map_err(|reason| SystemError {
        what: "a thread",
        reason,
        hint: "raise the limit of processes (ulimit -u)",
    })
}

fn end_process(name: &str, format: LogFormat) -> ! {
    let message = last_message(name, format);
    let (done, is_written) = mpsc::channel();
    // Standard error may have no reader, or one that is stuck.
    let written = thread::Builder::new().spawn(move || {
        let _ = io::stderr().write_all(message.as_bytes());
        let _ = done.send(());
    });
    if written.is_ok() {
        let _ = is_written.recv_timeout(LONGEST_MESSAGE);
    }
    process::exit(THREAD_LOST);
}

fn last_message(name: &str, format: LogFormat) -> String {
    let told = format!("the thread {name} has ended, and the server cannot do without it");
    match format {
        LogFormat::Text => format!("snugly: {told}\n"),
        // The log's own thread may be the one that is stuck.
        LogFormat::Json => format!("{}\n", json!({"level": "ERROR", "fields": {"message": told}})),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::lifecycle::Running;
    use crate::{Allocator, AllocatorStats, Configuration, Sources};

    /// The way in which the process that [`a_process`] starts loses a thread.
    const LOSS: &str = "LOSS_OF_A_THREAD";
    const LOSSES: [(&str, fn()); 2] = [("panic", || panic!("as it must not")), ("return", || {})];

    fn running() -> Running {
        let none =
            Allocator { name: "none", stats: AllocatorStats::default, report: String::new, purge: || {} };
        let configuration = Configuration { port: Some(0), threads: 1, ..Configuration::default() };
        Server::start(Sources::fixed(configuration), none, Vec::new(), &AtomicBool::new(false))
            .expect("it starts")
    }

    /// Runs this test alone in a process of its own, where it loses a thread; its log can be written or not.
    fn a_process(loss: &str, log: Stdio) -> process::Output {
        let program = std::env::current_exe().expect("this test");
        let test = "threads::tests::a_process_that_loses_a_thread_ends_and_says_so";
        let mut command = Command::new(program);
        command.args(["--exact", test, "--nocapture"]).env(LOSS, loss).stdout(Stdio::null()).stderr(log);
        command.spawn().and_then(process::Child::wait_with_output).expect("a process")
    }

    #[test]
    fn a_process_that_loses_a_thread_ends_and_says_so() {
        if let Ok(loss) = std::env::var(LOSS) {
            let (_, lose) = LOSSES.into_iter().find(|(name, _)| *name == loss).expect("one of them");
            let running = running();
            start(running.server(), "worker-7", lose).expect("a thread");
            // The server is never stopped.
            running.wait().expect("there is no store");
            return;
        }
        for (loss, _) in LOSSES {
            let told = a_process(loss, Stdio::piped());
            assert_eq!(told.status.code(), Some(THREAD_LOST), "{loss}");
            let told = String::from_utf8_lossy(&told.stderr).into_owned();
            assert!(told.contains("the thread worker-7 has ended"), "{loss}: {told}");
            let full = std::fs::File::options().write(true).open("/dev/full");
            let untold = a_process(loss, full.map_or_else(|_| Stdio::null(), Stdio::from));
            assert_eq!(untold.status.code(), Some(THREAD_LOST), "{loss}");
        }
    }

    #[test]
    fn the_last_message_has_the_form_of_the_log() {
        assert!(
            last_message("worker-7", LogFormat::Text).starts_with("snugly: the thread worker-7 has ended")
        );
        let line = last_message("worker-7", LogFormat::Json);
        let event: serde_json::Value = serde_json::from_str(&line).expect("an object");
        let told = event["fields"]["message"].as_str().unwrap_or_default();
        assert!(told.starts_with("the thread worker-7 has ended") && line.ends_with("}\n"), "{line}");
    }

    #[test]
    fn a_thread_may_end_once_the_server_stops() {
        let running = running();
        running.server().stop();
        let server = running.server().clone();
        running.wait().expect("there is no store");
        start(&server, "late", || {}).expect("a thread").join().expect("the process goes on");
    }
}
