//! The latency monitor: when commands and the server's regular work took longer than a threshold, by kind of event.
//!
//! - `report`: what LATENCY DOCTOR says of the events
//! - `graph`: an event's samples as characters
//!
//! It knows events and times; what a command is, or how it is asked for, it does not. While it is off, an event costs
//! one look at a number.

mod graph;
mod report;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use snugly_store::system_time;

pub(crate) use report::SlowLog;

/// Samples that are kept of an event, as in Valkey.
const SAMPLES: usize = 160;

/// Events, by the names that Valkey gives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// Entries were moved out of sparse pages.
    ActiveDefragmentation,
    /// A command ran that is not expected to be fast.
    Command,
    /// Keys whose time had come were removed.
    ExpireCycle,
    /// A command ran that takes constant or logarithmic time.
    FastCommand,
}

impl Event {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Event::ActiveDefragmentation => "active-defrag-cycle",
            Event::Command => "command",
            Event::ExpireCycle => "expire-cycle",
            Event::FastCommand => "fast-command",
        }
    }
}

/// The times of one event.
#[derive(Clone, Default)]
pub(crate) struct Series {
    /// Oldest first; at most one for each second, the longest.
    pub(crate) samples: VecDeque<Sample>,
    /// Over all that happened since the event was reset, in milliseconds.
    pub(crate) longest: u64,
    pub(crate) sum: u64,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Unix time in seconds.
    pub(crate) at: u64,
    pub(crate) milliseconds: u64,
}

/// All events that took too long.
#[derive(Default)]
pub(crate) struct LatencyMonitor {
    /// In milliseconds; 0 is off.
    threshold: AtomicU64,
    events: Mutex<BTreeMap<Event, Series>>,
}

impl LatencyMonitor {
    /// Sets the duration from which events are noted; 0 notes none.
    pub(crate) fn set_threshold(&self, milliseconds: u64) {
        self.threshold.store(milliseconds, Ordering::Relaxed);
    }

    /// Notes an event, if it took long enough.
    pub(crate) fn note(&self, event: Event, elapsed: Duration) {
        let threshold = self.threshold.load(Ordering::Relaxed);
        if threshold != 0 && elapsed >= Duration::from_millis(threshold) {
            let sample = Sample { at: system_time() / 1000, milliseconds: elapsed.as_millis() as u64 };
            self.events.lock().entry(event).or_default().add(sample);
        }
    }

    /// The events that there are, by name.
    pub(crate) fn events(&self) -> Vec<(Event, Series)> {
        self.events.lock().iter().map(|(event, series)| (*event, series.clone())).collect()
    }

    pub(crate) fn event(&self, name: &[u8]) -> Option<(Event, Series)> {
        self.events().into_iter().find(|(event, _)| event.name().as_bytes() == name)
    }

    /// Forgets the events that are asked for; returns how many there were.
    pub(crate) fn reset(&self, asked: impl Fn(&str) -> bool) -> usize {
        let mut events = self.events.lock();
        let before = events.len();
        events.retain(|event, _| !asked(event.name()));
        before - events.len()
    }

    /// The reply of LATENCY DOCTOR.
    pub(crate) fn report(&self, slow_log: SlowLog) -> String {
        report::report(&self.events(), self.threshold.load(Ordering::Relaxed), slow_log, system_time() / 1000)
    }
}

impl Series {
    fn add(&mut self, sample: Sample) {
        self.longest = self.longest.max(sample.milliseconds);
        self.sum = self.sum.saturating_add(sample.milliseconds);
        self.count += 1;
        match self.samples.back_mut() {
            Some(last) if last.at == sample.at => {
                last.milliseconds = last.milliseconds.max(sample.milliseconds);
            }
            _ => {
                if self.samples.len() == SAMPLES {
                    self.samples.pop_front();
                }
                self.samples.push_back(sample);
            }
        }
    }

    /// The reply of LATENCY GRAPH.
    pub(crate) fn graph(&self, event: Event) -> String {
        graph::graph(event.name(), self, system_time() / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[(u64, u64)]) -> Series {
        let mut series = Series::default();
        samples.iter().for_each(|&(at, milliseconds)| series.add(Sample { at, milliseconds }));
        series
    }

    #[test]
    fn a_second_has_one_sample_which_is_its_longest() {
        let series = series(&[(10, 5), (10, 9), (10, 7), (11, 1)]);
        let kept: Vec<_> = series.samples.iter().map(|sample| (sample.at, sample.milliseconds)).collect();
        assert_eq!(kept, [(10, 9), (11, 1)]);
        assert_eq!((series.longest, series.sum, series.count), (9, 22, 4));
    }

    #[test]
    fn the_oldest_samples_are_dropped() {
        let many: Vec<_> = (0..1000).map(|second| (second, 1)).collect();
        let series = series(&many);
        assert_eq!(series.samples.len(), SAMPLES);
        assert_eq!(series.samples[0].at, 1000 - SAMPLES as u64);
        assert_eq!(series.count, 1000);
    }

    #[test]
    fn only_events_over_the_threshold_are_noted_and_none_while_it_is_zero() {
        let monitor = LatencyMonitor::default();
        monitor.note(Event::Command, Duration::from_secs(5));
        assert!(monitor.events().is_empty());
        monitor.set_threshold(10);
        monitor.note(Event::Command, Duration::from_micros(9_999));
        monitor.note(Event::FastCommand, Duration::from_millis(10));
        let names: Vec<_> = monitor.events().iter().map(|(event, _)| event.name()).collect();
        assert_eq!(names, ["fast-command"]);
        assert!(monitor.event(b"command").is_none());
        assert_eq!(monitor.reset(|name| name == "fast-command"), 1);
        assert_eq!(monitor.reset(|_| true), 0);
    }
}
