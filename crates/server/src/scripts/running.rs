//! The script that runs for so long that others are told of it, and may end it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snugly_protocol::resp::Args;
use tracing::warn;

thread_local! {
    /// Whether this thread runs a script, or waits for the other one to end, for others to see.
    static OCCUPIED: RefCell<Arc<AtomicBool>> = RefCell::default();
}

/// Shows whether this thread runs scripts, by a flag of its own from now on.
pub(crate) fn show_occupied(flag: Arc<AtomicBool>) {
    OCCUPIED.set(flag);
}

/// Marks this thread as one that runs a script, until this is dropped.
pub(crate) struct Occupied(());

impl Occupied {
    pub(crate) fn begin() -> Occupied {
        OCCUPIED.with_borrow(|flag| flag.store(true, Ordering::Relaxed));
        Occupied(())
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        OCCUPIED.with_borrow(|flag| flag.store(false, Ordering::Relaxed));
    }
}

/// The script that runs, if it does so for long: only one at a time does.
#[derive(Default)]
pub(crate) struct Running {
    script: Mutex<Option<Arc<Long>>>,
    /// Whether it has run for longer than others are to wait without an answer.
    is_busy: AtomicBool,
}

/// Scripts that are ended by commands of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Script,
    Function,
}

/// A script that has run for a while.
struct Long {
    kind: Kind,
    started: Instant,
    /// The request that runs it.
    request: Vec<Vec<u8>>,
    has_written: AtomicBool,
    verdict: AtomicU8,
}

/// What is to become of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Verdict {
    GoesOn,
    /// It ends, unless it has written.
    IsKilled,
    /// It ends, since the server does.
    EndsWithServer,
}

/// Result of an attempt to end the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kill {
    Done,
    NothingRuns,
    HasWritten,
    /// It is of this other kind.
    IsOther(Kind),
}

/// A script of one thread, which may come to run for long.
pub(crate) struct Watch<'a> {
    running: &'a Running,
    kind: Kind,
    request: Args<'a>,
    started: Instant,
    long: Option<Arc<Long>>,
}

impl Running {
    /// Watches a script that a request runs from now on.
    pub(crate) fn watch<'a>(&'a self, kind: Kind, request: Args<'a>) -> Watch<'a> {
        Watch { running: self, kind, request, started: Instant::now(), long: None }
    }

    /// Returns whether others are to be told that a script runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// The kind of the script that others are to be told of, if there is one.
    pub(crate) fn busy_with(&self) -> Option<Kind> {
        let script = self.script.lock();
        script.as_ref().filter(|_| self.is_busy()).map(|script| script.kind)
    }

    /// The kind of the script that runs for long, the request that runs it, and since when it does.
    pub(crate) fn current(&self) -> Option<(Kind, Vec<Vec<u8>>, Duration)> {
        let script = self.script.lock();
        script.as_ref().map(|script| (script.kind, script.request.clone(), script.started.elapsed()))
    }

    /// Ends the script that runs for long, if it is of this kind.
    pub(crate) fn kill(&self, kind: Kind) -> Kill {
        let script = self.script.lock();
        match &*script {
            None => Kill::NothingRuns,
            Some(script) if script.kind != kind => Kill::IsOther(script.kind),
            Some(script) if script.has_written.load(Ordering::SeqCst) => Kill::HasWritten,
            Some(script) => {
                script.verdict.store(Verdict::IsKilled as u8, Ordering::SeqCst);
                Kill::Done
            }
        }
    }

    /// Ends the script that runs for long whatever it has done.
    pub(crate) fn end_with_server(&self) {
        if let Some(script) = &*self.script.lock() {
            script.verdict.store(Verdict::EndsWithServer as u8, Ordering::SeqCst);
        }
    }
}

impl Watch<'_> {
    /// Returns whether the script is to end. It is called again and again while the script runs, the first time after a
    /// while.
    pub(crate) fn is_over(&mut self, has_written: bool, threshold: Duration) -> bool {
        let long = self.long.get_or_insert_with(|| {
            let long = Long {
                kind: self.kind,
                started: self.started,
                request: self.request.iter().map(<[u8]>::to_vec).collect(),
                has_written: AtomicBool::new(has_written),
                verdict: AtomicU8::new(Verdict::GoesOn as u8),
            };
            let long = Arc::new(long);
            *self.running.script.lock() = Some(long.clone());
            long
        });
        let elapsed = self.started.elapsed();
        if elapsed >= threshold && !self.running.is_busy.swap(true, Ordering::SeqCst) {
            warn!(
                milliseconds = elapsed.as_millis() as u64,
                "a script runs for longer than busy-reply-threshold; other clients are answered BUSY until it ends or SCRIPT KILL ends it"
            );
        }
        let verdict = long.verdict.load(Ordering::SeqCst);
        verdict == Verdict::EndsWithServer as u8 || verdict == Verdict::IsKilled as u8 && !has_written
    }

    /// Notes that the script is about to write, after which it is not to be ended.
    pub(crate) fn note_write(&self) {
        if let Some(long) = &self.long {
            long.has_written.store(true, Ordering::SeqCst);
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if self.long.is_some() {
            *self.running.script.lock() = None;
            self.running.is_busy.store(false, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Duration = Duration::MAX;

    fn watch(running: &Running) -> Watch<'_> {
        running.watch(Kind::Script, Args::default())
    }

    #[test]
    fn a_script_that_runs_for_long_can_be_killed_until_it_writes() {
        let running = Running::default();
        assert_eq!(running.kill(Kind::Script), Kill::NothingRuns);
        let mut watch = watch(&running);
        assert_eq!(running.kill(Kind::Script), Kill::NothingRuns);
        assert!(!watch.is_over(false, NEVER) && !running.is_busy());
        assert_eq!(running.kill(Kind::Function), Kill::IsOther(Kind::Script));
        assert_eq!(running.kill(Kind::Script), Kill::Done);
        assert!(watch.is_over(false, NEVER));
        drop(watch);
        assert_eq!(running.kill(Kind::Script), Kill::NothingRuns);
    }

    #[test]
    fn a_script_that_has_written_ends_only_with_the_server() {
        let running = Running::default();
        let mut watch = watch(&running);
        assert!(!watch.is_over(false, Duration::ZERO) && running.is_busy());
        watch.note_write();
        assert_eq!(running.kill(Kind::Script), Kill::HasWritten);
        assert!(!watch.is_over(true, Duration::ZERO));
        running.end_with_server();
        assert!(watch.is_over(true, Duration::ZERO));
        drop(watch);
        assert!(!running.is_busy());
    }
}
