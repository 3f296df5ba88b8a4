//! The save of an RDB file under way, and the result of the last one. It knows no files: these are for `rdb`.

use std::time::Instant;

use parking_lot::Mutex;
use snugly_store::system_time;

/// The saves of a server.
#[derive(Default)]
pub(crate) struct Saves(Mutex<State>);

#[derive(Default)]
struct State {
    /// Start of the background save.
    running: Option<Instant>,
    history: History,
}

/// The numbers of saves in INFO.
#[derive(Clone, Copy, Default)]
pub(crate) struct History {
    /// Time when the last file was written, in Unix seconds; 0 if none was.
    pub(crate) last_at: u64,
    /// Number of keys written.
    pub(crate) count: u64,
    /// Whether the last one in the background failed.
    pub(crate) has_failed: bool,
    /// Seconds that the last one in the background took, if there was one.
    pub(crate) last_seconds: Option<u64>,
    /// Seconds since the start of the background save.
    pub(crate) running_seconds: Option<u64>,
    /// Writes that the store had counted when the last one that was written began.
    pub(crate) writes_before: u64,
}

impl Saves {
    pub(crate) fn history(&self) -> History {
        let state = self.0.lock();
        History { running_seconds: state.running.map(|since| since.elapsed().as_secs()), ..state.history }
    }

    /// Begins one in the background, unless one is under way.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.0.lock();
        let is_first = state.running.is_none();
        state.running.get_or_insert_with(Instant::now);
        is_first
    }

    /// Notes the end of the one in the background.
    pub(crate) fn end(&self, is_written: bool) {
        let mut state = self.0.lock();
        state.history.last_seconds = state.running.take().map(|since| since.elapsed().as_secs());
        state.history.has_failed = !is_written;
    }

    /// Notes a file that was written, of keys after so many writes.
    pub(crate) fn written(&self, writes_before: u64) {
        let history = &mut self.0.lock().history;
        history.writes_before = writes_before;
        (history.last_at, history.count) = (system_time() / 1_000, history.count + 1);
    }
}
