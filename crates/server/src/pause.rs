//! CLIENT PAUSE: which requests wait, and until when. It knows nothing of who waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use snugly_store::system_time;
use tokio::sync::watch;
use tokio::time::timeout;

/// The server's pause, if there is one.
pub(crate) struct Pause {
    /// Whether there may be one: all that a request has to look at otherwise.
    possible: AtomicBool,
    current: watch::Sender<Option<Paused>>,
}

/// A pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paused {
    /// Unix milliseconds.
    until: u64,
    pub(crate) scope: Scope,
}

/// The requests that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Writes,
    All,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause { possible: AtomicBool::new(false), current: watch::Sender::new(None) }
    }
}

impl Paused {
    /// Time left; `None` if it is over.
    pub(crate) fn rest(self) -> Option<Duration> {
        let milliseconds = self.until.saturating_sub(system_time());
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }
}

impl Pause {
    /// The pause that is in force.
    pub(crate) fn current(&self) -> Option<Paused> {
        if !self.possible.load(Ordering::Relaxed) {
            return None;
        }
        let paused = *self.current.borrow();
        if paused.is_some_and(|paused| paused.rest().is_some()) {
            return paused;
        }
        // Unless another one has begun meanwhile, nobody need look at the clock any more.
        self.change(|current| *current = current.filter(|paused| paused.rest().is_some()));
        None
    }

    /// Begins a pause until a time in Unix milliseconds. Of a pause that is in force, the later end stays and the wider
    /// scope.
    pub(crate) fn begin(&self, until: u64, scope: Scope) {
        self.change(|current| {
            let before = current.filter(|paused| paused.rest().is_some());
            let all = before.filter(|before| before.scope == Scope::All);
            *current = Some(Paused {
                until: before.map_or(until, |before| before.until.max(until)),
                scope: all.map_or(scope, |before| before.scope),
            });
        });
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        self.change(|current| *current = None);
    }

    fn change(&self, change: impl FnOnce(&mut Option<Paused>)) {
        self.current.send_modify(|current| {
            change(current);
            self.possible.store(current.is_some(), Ordering::Relaxed);
        });
    }

    /// Waits until the pause that is in force is over, or has become another one.
    pub(crate) async fn changed(&self) {
        let mut current = self.current.subscribe();
        let rest = current.borrow_and_update().and_then(Paused::rest);
        if let Some(rest) = rest {
            // Either may come first; the waiter looks again.
            let _ = timeout(rest, current.changed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    const HOUR: u64 = 3_600_000;

    fn scope(pause: &Pause) -> Option<Scope> {
        pause.current().map(|paused| paused.scope)
    }

    #[test]
    fn a_pause_ends_by_itself_or_when_it_is_told_to() {
        let pause = Pause::default();
        assert_eq!(pause.current(), None);
        pause.begin(system_time(), Scope::All);
        assert_eq!(pause.current(), None);
        pause.begin(system_time() + HOUR, Scope::Writes);
        assert_eq!(scope(&pause), Some(Scope::Writes));
        pause.end();
        assert_eq!(pause.current(), None);
    }

    #[test]
    fn the_later_end_and_the_wider_scope_of_two_pauses_count() {
        let pause = Pause::default();
        let end = system_time() + HOUR;
        pause.begin(end, Scope::All);
        pause.begin(end - 1, Scope::Writes);
        assert_eq!(pause.current(), Some(Paused { until: end, scope: Scope::All }));
        pause.end();
        pause.begin(end, Scope::Writes);
        pause.begin(end + 1, Scope::All);
        assert_eq!(pause.current(), Some(Paused { until: end + 1, scope: Scope::All }));
    }

    #[test]
    fn what_waits_goes_on_when_the_pause_ends_and_when_it_changes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let pause = Pause::default();
        pause.begin(system_time() + HOUR, Scope::All);
        runtime.block_on(async {
            let mut waiting = pin!(pause.changed());
            poll_fn(|context| {
                assert!(waiting.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            pause.end();
            waiting.await;
            pause.begin(system_time() + 5, Scope::All);
            pause.changed().await;
            assert_eq!(pause.current(), None);
        });
    }
}
