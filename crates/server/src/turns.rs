//! Turns of the workers: each runs the requests of one read, after it has seen what requests may do. Whoever has changed
//! that waits here until the turns that have not seen it are over.
//!
//! It knows no requests. Its locks are each thread's own, so that a turn waits for nobody but those who wait for it.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// The turns of all threads.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Vec<Arc<Mutex<()>>>>);

/// The turns of one thread.
pub(crate) struct Turn(Arc<Mutex<()>>);

impl Turns {
    /// Enters a thread.
    pub(crate) fn enter(&self) -> Turn {
        let turn = Arc::<Mutex<()>>::default();
        self.0.lock().push(turn.clone());
        Turn(turn)
    }

    /// Waits until every turn that is under way is over. It is not for a thread that takes turns.
    pub(crate) fn wait(&self) {
        let turns = self.0.lock().clone();
        turns.iter().for_each(|turn| drop(turn.lock()));
    }
}

impl Turn {
    /// Begins a turn, which lasts until this is dropped.
    pub(crate) fn begin(&self) -> MutexGuard<'_, ()> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn whoever_waits_goes_on_when_the_turns_that_were_under_way_are_over() {
        let turns = Turns::default();
        let (first, _idle) = (turns.enter(), turns.enter());
        let (done, is_done) = mpsc::channel();
        thread::scope(|scope| {
            let under_way = first.begin();
            scope.spawn(|| {
                turns.wait();
                done.send(()).expect("the test listens");
            });
            assert!(is_done.try_recv().is_err(), "a turn is under way");
            drop(under_way);
            is_done.recv().expect("the turn is over");
        });
    }
}
