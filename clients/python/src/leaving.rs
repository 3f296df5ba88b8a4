//! The end of the interpreter, seen from its other threads.
//!
//! A thread that asks for the interpreter's lock after its end is unwound by force, and frames of Rust may not be: the
//! process would abort. So nobody is in here by then: who is in is waited for, and who comes later stays.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Time that the end waits for threads inside native code, none of which waits for anything.
const LONGEST: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

static LEAVES: AtomicBool = AtomicBool::new(false);
/// Number of threads inside, counted again if they came back through Python. It changes under the
/// interpreter's lock.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// One who is in.
pub(crate) struct Inside(());

impl Drop for Inside {
    fn drop(&mut self) {
        // Whoever was in when the process was forked is counted no more.
        INSIDE.store(INSIDE.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
    }
}

/// Comes in, for as long as the lock may be lost while frames of Rust are on the stack: by work without it, or by code
/// of Python. Once the interpreter ends, a thread that does not end it does not return.
pub(crate) fn inside(py: Python<'_>) -> Inside {
    if LEAVES.load(Ordering::Relaxed) && INSIDE.load(Ordering::Relaxed) == 0 && !is_ending_thread() {
        py.detach(|| {
            loop {
                thread::park();
            }
        });
    }
    INSIDE.fetch_add(1, Ordering::Relaxed);
    Inside(())
}

thread_local! {
    static ENDS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn is_ending_thread() -> bool {
    ENDS.get()
}

/// Function called after a fork: the threads of the parent are not in the child.
#[pyfunction]
pub(crate) fn forget_threads() {
    INSIDE.store(0, Ordering::Relaxed);
}

/// Function called, last of all, before the interpreter ends.
#[pyfunction]
pub(crate) fn leave(py: Python<'_>) {
    ENDS.set(true);
    LEAVES.store(true, Ordering::Relaxed);
    let since = Instant::now();
    while INSIDE.load(Ordering::Relaxed) > 0 && since.elapsed() < LONGEST {
        py.detach(|| thread::sleep(PAUSE));
    }
}
