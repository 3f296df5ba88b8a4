//! The processor time that one step takes at most, but for the value that it is at: who shares the processor with it waits
//! for no longer.

use std::time::Duration;

/// Less than a request waits for others on a busy processor; enough for two or three values at a high level.
const SLICE: Duration = Duration::from_micros(100);

/// The time of one step, by a clock of the thread's processor time.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    clock: &'a dyn Fn() -> Duration,
    end: Duration,
}

impl<'a> Slice<'a> {
    /// Begins now.
    pub(super) fn begin(clock: &'a dyn Fn() -> Duration) -> Slice<'a> {
        Slice { clock, end: clock() + SLICE }
    }

    pub(super) fn is_over(&self) -> bool {
        (self.clock)() >= self.end
    }
}
