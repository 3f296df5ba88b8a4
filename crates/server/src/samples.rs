//! Numbers known only by sampling: rates per second, and the peak of memory.
//!
//! The listener's thread takes a sample ten times a second, of totals that others count.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::counters::WorkerStats;
use crate::memory::Memory;

/// Over how many samples a rate is averaged, as in Valkey.
const AVERAGED: usize = 16;

/// Totals of all threads since they started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) commands: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

impl Totals {
    pub(crate) fn of(workers: &[Arc<WorkerStats>]) -> Totals {
        let mut totals = Totals::default();
        for worker in workers {
            totals.commands += worker.commands.iter().map(|command| command.calls.get()).sum::<u64>();
            totals.commands += worker.memcached.requests.get();
            totals.bytes_in += worker.bytes_in.get();
            totals.bytes_out += worker.bytes_out.get();
        }
        totals
    }
}

/// The samples so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    last: Option<(Instant, Totals)>,
    commands: Rate,
    bytes_in: Rate,
    bytes_out: Rate,
    /// Bytes in use when the server started.
    pub(crate) memory_at_start: u64,
    /// The most bytes in use at any sample, or told of between them.
    pub(crate) memory_peak: u64,
}

/// The latest samples of something, in amounts a second.
#[derive(Clone, Debug, Default)]
struct Rate {
    samples: [f64; AVERAGED],
    next: usize,
}

impl Samples {
    pub(crate) fn start(&mut self, memory: Memory) {
        self.memory_at_start = memory.used();
        self.memory_peak = memory.used();
    }

    /// Notes what was in use between two samples.
    pub(crate) fn note(&mut self, memory: Memory) {
        self.memory_peak = self.memory_peak.max(memory.used());
    }

    pub(crate) fn take(&mut self, now: Instant, totals: Totals, memory: Memory) {
        self.note(memory);
        if let Some((at, before)) = self.last {
            let seconds = now.saturating_duration_since(at).as_secs_f64();
            self.commands.add(totals.commands, before.commands, seconds);
            self.bytes_in.add(totals.bytes_in, before.bytes_in, seconds);
            self.bytes_out.add(totals.bytes_out, before.bytes_out, seconds);
        }
        self.last = Some((now, totals));
    }

    /// Starts the rates anew.
    pub(crate) fn reset(&mut self) {
        let Samples { memory_at_start, memory_peak, .. } = *self;
        *self = Samples { memory_at_start, memory_peak, ..Samples::default() };
    }

    /// Time since the last sample; `None` if there has been none since the start or the last reset.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.last.map(|(at, _)| at.elapsed())
    }

    pub(crate) fn commands_per_second(&self) -> u64 {
        self.commands.average() as u64
    }

    pub(crate) fn bytes_in_per_second(&self) -> f64 {
        self.bytes_in.average()
    }

    pub(crate) fn bytes_out_per_second(&self) -> f64 {
        self.bytes_out.average()
    }
}

impl Rate {
    fn add(&mut self, total: u64, before: u64, seconds: f64) {
        // Totals start anew when statistics are reset.
        let amount = total.saturating_sub(before) as f64;
        self.samples[self.next] = if seconds > 0.0 { amount / seconds } else { 0.0 };
        self.next = (self.next + 1) % AVERAGED;
    }

    fn average(&self) -> f64 {
        self.samples.iter().sum::<f64>() / AVERAGED as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_averages_over_the_latest_samples() {
        let (start, mut samples) = (Instant::now(), Samples::default());
        for number in 0..=AVERAGED as u64 {
            let totals = Totals { commands: number * 10, bytes_in: number * 1000, bytes_out: 0 };
            samples.take(start + Duration::from_millis(100 * number), totals, Memory::default());
        }
        assert_eq!(samples.commands_per_second(), 100);
        assert!((samples.bytes_in_per_second() - 10_000.0).abs() < 1.0);
        assert_eq!(samples.bytes_out_per_second(), 0.0);
    }

    #[test]
    fn totals_that_start_anew_are_no_rate() {
        let (start, mut samples) = (Instant::now(), Samples::default());
        samples.take(start, Totals { commands: 1000, ..Totals::default() }, Memory::default());
        samples.take(start + Duration::from_secs(1), Totals::default(), Memory::default());
        assert_eq!(samples.commands_per_second(), 0);
    }

    #[test]
    fn age_is_known_once_there_was_a_sample() {
        let mut samples = Samples::default();
        assert_eq!(samples.age(), None);
        samples.take(Instant::now(), Totals::default(), Memory::default());
        assert!(samples.age().is_some());
        samples.reset();
        assert_eq!(samples.age(), None);
    }

    #[test]
    fn the_peak_of_memory_stays() {
        let used = |allocated| Memory {
            allocator: crate::AllocatorStats { allocated, ..Default::default() },
            ..Memory::default()
        };
        let mut samples = Samples::default();
        samples.start(used(10));
        for memory in [used(30), used(20)] {
            samples.take(Instant::now(), Totals::default(), memory);
        }
        samples.reset();
        assert_eq!((samples.memory_at_start, samples.memory_peak), (10, 30));
        samples.note(used(40));
        samples.take(Instant::now(), Totals::default(), used(20));
        assert_eq!(samples.memory_peak, 40);
    }
}
