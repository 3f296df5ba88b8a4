//! The report of LATENCY DOCTOR, in Valkey's words; advice that has no meaning here (about forks, append-only files) is
//! not given.

use std::fmt::Write as _;

use super::{Event, Series};

const OFF: &str = "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Valkey instance. You may use \"CONFIG SET latency-monitor-threshold <milliseconds>.\" in order to enable it.\n";
const NO_SPIKES: &str =
    "No latency spike was observed during the lifetime of this Valkey instance, not in the slightest bit.\n";
const SPIKES: &str = "Latency spikes are observed in this Valkey instance.\n\n";
const NO_ADVICE: &str = "\nThere are latency events logged that are not easy to fix. Please get some help from Valkey community, providing this report in your help request.\n";
const ADVICE: &str = "\nHere is some advice for you:\n\n";
const INSPECT_SLOW_LOG: &str = "- Check your Slow Log to understand what are the commands you are running which are too slow to execute. Please check https://valkey.io/commands/slowlog for more information.\n";
const SCHEDULER: &str = "- The system is slow to execute Valkey code paths not containing system calls. This usually means the system does not provide Valkey CPU time to run for long periods. You should try to:
  1) Lower the system load.
  2) Use a computer / VM just for Valkey if you are running other software in the same system.
  3) Check if you have a \"noisy neighbour\" problem.
  4) Check with 'valkey-cli --intrinsic-latency 100' what is the intrinsic latency in your system.
  5) Check if the problem is allocator-related by recompiling Valkey with MALLOC=libc, if you are using Jemalloc. However this may create fragmentation problems.\n";
const LARGE_OBJECTS: &str = "- Deleting, expiring or evicting (because of maxmemory policy) large objects is a blocking operation. If you have very large objects that are often deleted, expired, or evicted, try to fragment those objects into multiple smaller objects.\n";

/// Settings of the log of slow commands.
#[derive(Clone, Copy)]
pub(crate) struct SlowLog {
    /// From how many microseconds on; `None` if it is off.
    pub(crate) threshold: Option<u64>,
}

/// The report on some events, with a threshold in milliseconds, at this Unix time in seconds.
pub(super) fn report(events: &[(Event, Series)], threshold: u64, slow_log: SlowLog, now: u64) -> String {
    if events.is_empty() {
        return if threshold == 0 { OFF.to_owned() } else { NO_SPIKES.to_owned() };
    }
    let mut report = SPIKES.to_owned();
    for (number, (event, series)) in events.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(report, "{}. {}: {}", number + 1, event.name(), describe(series, now));
    }
    let advice = advice(events, threshold, slow_log);
    report.push_str(if advice.is_empty() { NO_ADVICE } else { ADVICE });
    report.push_str(&advice);
    report
}

fn describe(series: &Series, now: u64) -> String {
    let samples = series.samples.len() as u64;
    let times = || series.samples.iter().map(|sample| sample.milliseconds);
    let average = times().sum::<u64>() / samples;
    let deviation = times().map(|time| time.abs_diff(average)).sum::<u64>() / samples;
    let oldest = series.samples.front().map_or(now, |sample| sample.at);
    let period = now.saturating_sub(oldest).max(1);
    format!(
        "{samples} latency spikes (average {average}ms, mean deviation {deviation}ms, period {:.2} sec). Worst all \
         time event {}ms.",
        period as f64 / samples as f64,
        series.longest
    )
}

fn advice(events: &[(Event, Series)], threshold: u64, slow_log: SlowLog) -> String {
    let happened = |wanted: Event| events.iter().any(|(event, _)| *event == wanted);
    let mut advice = String::new();
    if happened(Event::Command) {
        advice.push_str(&about_slow_log(threshold, slow_log));
        advice.push_str(INSPECT_SLOW_LOG);
    }
    if happened(Event::FastCommand) {
        advice.push_str(SCHEDULER);
    }
    if happened(Event::Command) || happened(Event::ExpireCycle) {
        advice.push_str(LARGE_OBJECTS);
    }
    advice
}

/// Advice on setting the slow log so that it has the events of the latency monitor, if it does not.
fn about_slow_log(threshold: u64, slow_log: SlowLog) -> String {
    let microseconds = threshold.saturating_mul(1000);
    match slow_log.threshold {
        None => format!(
            "- There are latency issues with potentially slow commands you are using. Try to enable the Slow Log Valkey \
             feature using the command 'CONFIG SET slowlog-log-slower-than {microseconds}'. If the Slow log is disabled \
             Valkey is not able to log slow commands execution for you.\n"
        ),
        Some(logged) if logged / 1000 > threshold => format!(
            "- Your current Slow Log configuration only logs events that are slower than your configured latency \
             monitor threshold. Please use 'CONFIG SET slowlog-log-slower-than {microseconds}'.\n"
        ),
        Some(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;

    const LOGGED: SlowLog = SlowLog { threshold: Some(1000) };

    fn happened(event: Event, samples: &[(u64, u64)]) -> (Event, Series) {
        let mut series = Series::default();
        samples.iter().for_each(|&(at, milliseconds)| series.add(Sample { at, milliseconds }));
        (event, series)
    }

    #[test]
    fn without_events_it_says_whether_anybody_was_looking() {
        assert_eq!(report(&[], 0, LOGGED, 0), OFF);
        assert_eq!(report(&[], 1, LOGGED, 0), NO_SPIKES);
    }

    #[test]
    fn an_event_is_summed_up_as_valkey_does() {
        let event = happened(Event::Command, &[(100, 20), (101, 1200)]);
        let report = report(&[event], 5, LOGGED, 101);
        assert!(report.contains(
            "1. command: 2 latency spikes (average 610ms, mean deviation 590ms, period 0.50 sec). Worst all time event 1200ms.\n"
        ));
        assert!(report.ends_with(&[ADVICE, INSPECT_SLOW_LOG, LARGE_OBJECTS].concat()));
    }

    #[test]
    fn advice_about_the_slow_log_depends_on_how_it_is_set() {
        let events = [happened(Event::Command, &[(100, 20)])];
        let off = report(&events, 5, SlowLog { threshold: None }, 100);
        assert!(off.contains("Try to enable the Slow Log Valkey feature using the command 'CONFIG SET slowlog-log-slower-than 5000'"));
        let out_of_range = report(&events, u64::MAX, SlowLog { threshold: None }, 100);
        assert!(out_of_range.contains("'CONFIG SET slowlog-log-slower-than 18446744073709551615'"));
        let coarse = report(&events, 5, SlowLog { threshold: Some(10_000) }, 100);
        assert!(coarse.contains("Please use 'CONFIG SET slowlog-log-slower-than 5000'"));
    }

    #[test]
    fn events_that_nobody_can_help_with_are_said_to_be_so() {
        let report = report(&[happened(Event::ActiveDefragmentation, &[(100, 20)])], 5, LOGGED, 100);
        assert!(report.ends_with(NO_ADVICE));
    }
}
