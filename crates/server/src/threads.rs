//! The threads of a server: how they start, and what happens if one ends that must not.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Runtime};

use crate::server::{Server, StartError};

/// The exit code of a process that has lost a thread: EX_SOFTWARE of sysexits.h.
const THREAD_LOST: i32 = 70;

/// The event loop of one thread, with so many more threads for what has to wait.
///
/// # Errors
/// [`StartError::System`] if the system has no file descriptors for it.
pub(crate) fn event_loop(waiting_threads: usize) -> Result<Runtime, StartError> {
    let built = Builder::new_current_thread().enable_all().max_blocking_threads(waiting_threads).build();
    built.map_err(|reason| StartError::System {
        what: "an event loop",
        reason,
        hint: "raise the limit of open files (ulimit -n)",
    })
}

/// Starts a thread of the server. If it ends before the server stops, the process ends: without it clients would wait for
/// ever, or be told of writes that are lost.
///
/// # Errors
/// [`StartError::System`] if the system refuses a thread.
pub(crate) fn start(
    server: &Arc<Server>,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    let (server, told) = (server.clone(), name.to_owned());
    let guarded = move || {
        let ended = catch_unwind(AssertUnwindSafe(run));
        if ended.is_err() || !server.stopping.load(Ordering::SeqCst) {
            end_process(&told);
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(guarded).map_err(|reason| StartError::System {
        what: "a thread",
        reason,
        hint: "raise the limit of processes (ulimit -u)",
    })
}

fn end_process(name: &str) -> ! {
    // Nobody may be left to read it.
    let _ =
        writeln!(io::stderr(), "snugly: the thread {name} has ended, and the server cannot do without it");
    process::exit(THREAD_LOST);
}
