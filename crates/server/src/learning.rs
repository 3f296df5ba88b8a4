//! The thread that learns dictionaries and encodes older values anew, at low priority and with a bounded share of a
//! processor. What there is to do is the store's business; the pace is set here.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use snugly_store::system_time;

use crate::server::Server;

/// How long it rests when there is nothing to do.
const IDLE: Duration = Duration::from_millis(200);
/// How often it looks whether the server ends, or its share has changed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does what there is to do until the server ends.
pub(crate) fn run(server: &Server) {
    let mut tender = server.store().tend_dictionaries(processor_time);
    yield_to_others();
    while !is_stopping(server) {
        let before = processor_time();
        let was_busy = tender.step(system_time());
        let worked = processor_time().saturating_sub(before);
        rest(server, worked, if was_busy { Duration::ZERO } else { IDLE });
    }
}

/// Rests after having worked so long, for the least time at least, and by the share that is in force meanwhile.
fn rest(server: &Server, worked: Duration, least: Duration) {
    let begun = Instant::now();
    while !is_stopping(server) {
        let time = rest_after(worked, server.configuration().dictionary_cpu_percent).max(least);
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
}

/// How long to rest after having worked so long, to take no more than a share of a processor.
fn rest_after(worked: Duration, percent: u32) -> Duration {
    worked * (100 - percent.min(100)) / percent.max(1)
}

fn is_stopping(server: &Server) -> bool {
    server.stopping.load(Ordering::Relaxed)
}

/// Processor time that the calling thread has used.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Lets the threads that serve clients go first.
fn yield_to_others() {
    // Elsewhere the priority would be that of the whole process. Without permission nothing is lost but the priority.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 19);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_rest_are_in_proportion() {
        let second = Duration::from_secs(1);
        assert_eq!(rest_after(second, 100), Duration::ZERO);
        assert_eq!(rest_after(second, 50), second);
        assert_eq!(rest_after(second, 10), 9 * second);
        assert_eq!(rest_after(Duration::ZERO, 1), Duration::ZERO);
    }
}
