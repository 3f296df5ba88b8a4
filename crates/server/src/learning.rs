//! The thread that learns dictionaries and re-encodes older values, at low priority and with a bounded share of a
//! processor. The work is the store's business; the pace is set here.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use snugly_store::system_time;

use crate::background::Work;
use crate::state::Server;

/// Pause when there is nothing to do.
const IDLE: Duration = Duration::from_millis(100);
/// Time whose share a study may work at once, if it was left unused: a dictionary that comes late helps none of the values
/// written before, so studies are not spread over time as passes are.
const SAVED_TIME: Duration = Duration::from_secs(10);
/// Busy threads on its processor beside which the thread still gets its share.
const BUSY_THREADS: f64 = 4.0;
/// Interval of looking whether the server ends, or its share has changed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does what there is to do until the server ends.
pub(crate) fn run(server: &Server) {
    let mut maintenance = server.store().maintenance(processor_time);
    let mut percent = None;
    let mut trainings = 0;
    // A server that starts has used nothing yet.
    let mut saved = Duration::MAX;
    while !is_stopping(server) {
        let configured = server.configuration().background_cpu_percent;
        if percent.replace(configured) != Some(configured) {
            yield_to_others(configured);
        }
        saved = saved.min(share_of(SAVED_TIME, configured));
        let (begun, before) = (Instant::now(), processor_time());
        let was_busy = maintenance.step(system_time());
        let trained = server.store().sample_stats().trainings;
        if std::mem::replace(&mut trainings, trained) != trained {
            // Returns the memory of the training and of its samples to the system.
            (server.allocator().purge)();
        }
        let worked = processor_time().saturating_sub(before);
        let work = if maintenance.has_studied() { Work::Learning } else { Work::Encoding };
        server.background.add(work, worked);
        let owed = if maintenance.has_studied() { worked.saturating_sub(saved) } else { worked };
        let least = if was_busy { begun.elapsed() } else { begun.elapsed() + IDLE };
        rest(server, begun, owed, least);
        saved = (saved + share_of(begun.elapsed(), configured)).saturating_sub(worked);
    }
}

/// Rests until so much work since `begun` is no more than the share that is in force meanwhile, and for the least time at
/// least. Time in which others had the processor counts as rest.
fn rest(server: &Server, begun: Instant, work: Duration, least: Duration) {
    while !is_stopping(server) {
        let time = time_for(work, server.configuration().background_cpu_percent).max(least);
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
}

/// How much work is the share of a processor in this time.
fn share_of(time: Duration, percent: u32) -> Duration {
    time * percent.clamp(1, 100) / 100
}

/// In which time so much work is no more than a share of a processor.
fn time_for(worked: Duration, percent: u32) -> Duration {
    worked * 100 / percent.clamp(1, 100)
}

fn is_stopping(server: &Server) -> bool {
    server.stopping.load(Ordering::Relaxed)
}

/// Processor time that the calling thread has used.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Lowers the thread's priority below those that serve clients, while it still runs.
fn yield_to_others(percent: u32) {
    // Elsewhere the priority would be that of the whole process. Without permission to raise it, it stays lower.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, niceness(percent));
    #[cfg(not(target_os = "linux"))]
    let _ = percent;
}

/// The lowest priority with which the thread gets this share of a processor beside others that are always busy: each step
/// gives a thread 1.25 times less (sched(7), "The nice value").
fn niceness(percent: u32) -> i32 {
    const STEP: f64 = 1.25;
    const LOWEST_PRIORITY: f64 = 19.0;
    let share = f64::from(percent.clamp(1, 99)) / 100.0;
    ((1.0 - share) / share / BUSY_THREADS).log(STEP).floor().clamp(0.0, LOWEST_PRIORITY) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_its_share_of_the_time() {
        let second = Duration::from_secs(1);
        for (percent, work) in [(100, 1000), (50, 500), (10, 100), (1, 10), (0, 10)] {
            let work = Duration::from_millis(work);
            assert_eq!(share_of(second, percent), work);
            assert_eq!(time_for(work, percent), second);
        }
        assert_eq!(time_for(Duration::ZERO, 1), Duration::ZERO);
    }

    #[test]
    fn beside_busy_threads_the_share_is_what_the_priority_gives() {
        for percent in 2..=20 {
            let weight = 1.25_f64.powi(-niceness(percent));
            let share = 100.0 * weight / (BUSY_THREADS + weight);
            let wanted = f64::from(percent);
            assert!((wanted..1.25 * wanted).contains(&share), "{percent}: {share}");
        }
        assert_eq!((niceness(1), niceness(50), niceness(100)), (14, 0, 0));
    }
}
