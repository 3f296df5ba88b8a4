//! The logs of remarkable commands: those that were slow, large, or had large replies.
//!
//! They know what a command looked like and what it cost. Each log is bounded in entries, and an entry in bytes. A log
//! that is off costs one comparison a command.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use snugly_net::Address;
use snugly_store::system_time;

/// The log entry of a command, as in Valkey.
const MOST_ARGUMENTS: usize = 32;
const LONGEST_ARGUMENT: usize = 128;

/// The reason to log a command.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Duration, in microseconds.
    Slow,
    /// Length of the request, in bytes.
    LargeRequest,
    /// Length of the reply, in bytes.
    LargeReply,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Slow, Kind::LargeRequest, Kind::LargeReply];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Slow => "slow",
            Kind::LargeRequest => "large-request",
            Kind::LargeReply => "large-reply",
        }
    }
}

/// One log for each kind.
#[derive(Default)]
pub(crate) struct CommandLog {
    logs: [Log; Kind::ALL.len()],
}

struct Log {
    /// From what on a command is remarkable; `u64::MAX` is off.
    threshold: AtomicU64,
    most: AtomicUsize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// Newest first.
    kept: VecDeque<Entry>,
    next_id: u64,
}

/// A command that was remarkable.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    /// Unix time in seconds.
    pub(crate) at: u64,
    /// In the unit of the log's kind.
    pub(crate) value: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) address: Address,
    pub(crate) client_name: Vec<u8>,
}

impl Default for Log {
    fn default() -> Log {
        Log { threshold: AtomicU64::new(u64::MAX), most: AtomicUsize::new(0), entries: Mutex::default() }
    }
}

impl CommandLog {
    /// From now on the log takes commands of `threshold` and more (negative: none), and keeps the newest `most`.
    pub(crate) fn configure(&self, kind: Kind, threshold: i64, most: usize) {
        let log = self.log(kind);
        let off = threshold < 0 || most == 0;
        log.threshold.store(if off { u64::MAX } else { threshold as u64 }, Ordering::Relaxed);
        log.most.store(most, Ordering::Relaxed);
        if most > 0 {
            log.entries.lock().kept.truncate(most);
        }
    }

    /// From what on a command is remarkable; `None` if the log is off.
    pub(crate) fn threshold(&self, kind: Kind) -> Option<u64> {
        Some(self.log(kind).threshold.load(Ordering::Relaxed)).filter(|&threshold| threshold != u64::MAX)
    }

    /// Returns whether a command of this value is remarkable.
    pub(crate) fn takes(&self, kind: Kind, value: u64) -> bool {
        let threshold = self.log(kind).threshold.load(Ordering::Relaxed);
        value >= threshold && threshold != u64::MAX
    }

    /// Keeps a command.
    pub(crate) fn add<'a>(
        &self,
        kind: Kind,
        value: u64,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        address: Address,
        client_name: Vec<u8>,
    ) {
        let log = self.log(kind);
        let args = shortened(args);
        let mut entries = log.entries.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        entries.kept.push_front(Entry { id, at: system_time() / 1000, value, args, address, client_name });
        entries.kept.truncate(log.most.load(Ordering::Relaxed));
    }

    /// The newest entries, newest first, `most` of them at most.
    pub(crate) fn newest(&self, kind: Kind, most: usize) -> Vec<Entry> {
        self.log(kind).entries.lock().kept.iter().take(most).cloned().collect()
    }

    pub(crate) fn len(&self, kind: Kind) -> usize {
        self.log(kind).entries.lock().kept.len()
    }

    /// Forgets all entries; their numbers go on.
    pub(crate) fn reset(&self, kind: Kind) {
        self.log(kind).entries.lock().kept.clear();
    }

    fn log(&self, kind: Kind) -> &Log {
        &self.logs[kind as usize]
    }
}

/// The arguments as an entry keeps them: not too many, and none too long.
fn shortened<'a>(args: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let count = args.len();
    let most = if count > MOST_ARGUMENTS { MOST_ARGUMENTS - 1 } else { count };
    let mut kept: Vec<Vec<u8>> = args.take(most).map(shortened_argument).collect();
    if count > most {
        kept.push(format!("... ({} more arguments)", count - most).into_bytes());
    }
    kept
}

fn shortened_argument(arg: &[u8]) -> Vec<u8> {
    let mut kept = arg[..arg.len().min(LONGEST_ARGUMENT)].to_vec();
    if arg.len() > LONGEST_ARGUMENT {
        kept.extend_from_slice(format!("... ({} more bytes)", arg.len() - LONGEST_ARGUMENT).as_bytes());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(threshold: i64, most: usize) -> CommandLog {
        let log = CommandLog::default();
        log.configure(Kind::Slow, threshold, most);
        log
    }

    fn add(log: &CommandLog, value: u64, args: &[&[u8]]) {
        let address = Address::Tcp(([127, 0, 0, 1], 1).into());
        log.add(Kind::Slow, value, args.iter().copied(), address, Vec::new());
    }

    #[test]
    fn a_log_takes_what_reaches_its_threshold_and_nothing_when_it_is_off() {
        assert!(log(10, 1).takes(Kind::Slow, 10));
        assert!(!log(10, 1).takes(Kind::Slow, 9));
        assert!(log(0, 1).takes(Kind::Slow, 0));
        assert!(!log(-1, 1).takes(Kind::Slow, u64::MAX));
        assert!(!log(0, 0).takes(Kind::Slow, u64::MAX));
        assert!(!CommandLog::default().takes(Kind::LargeReply, u64::MAX));
        assert_eq!((log(7, 1).threshold(Kind::Slow), log(-1, 1).threshold(Kind::Slow)), (Some(7), None));
    }

    #[test]
    fn the_newest_commands_are_kept_and_numbers_go_on() {
        let log = log(0, 2);
        (0..3).for_each(|value| add(&log, value, &[b"get"]));
        let ids = |log: &CommandLog| log.newest(Kind::Slow, 10).iter().map(|e| e.id).collect::<Vec<_>>();
        assert_eq!(ids(&log), [2, 1]);
        log.configure(Kind::Slow, 0, 1);
        assert_eq!(ids(&log), [2]);
        log.reset(Kind::Slow);
        add(&log, 0, &[b"get"]);
        assert_eq!((ids(&log), log.len(Kind::Slow)), (vec![3], 1));
        assert_eq!(log.len(Kind::LargeRequest), 0);
    }

    #[test]
    fn long_and_many_arguments_are_cut_as_valkey_cuts_them() {
        let log = log(0, 10);
        add(&log, 0, &[b"set", &[b'x'; 128], &[b'x'; 130]]);
        add(&log, 0, &[&b"a"[..]; 33]);
        let entries = log.newest(Kind::Slow, 10);
        assert_eq!(entries[1].args[1], [b'x'; 128]);
        assert_eq!(entries[1].args[2], [&[b'x'; 128][..], b"... (2 more bytes)"].concat());
        assert_eq!(entries[0].args.len(), 32);
        assert_eq!(entries[0].args[31], b"... (2 more arguments)");
    }
}
