//! Compression of a string that is there.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::PROGRESS;
use crate::server::{Context, OpenKey, OwnedText};
use crate::settings;
use crate::values::{self, LEAST_ENVELOPE};

/// A string that was used a shorter time ago stays plain: commands that change its parts work on plain ones.
const SETTLED: Duration = Duration::from_secs(10);

/// Longer strings are left alone: clients would wait for one of them, and the server keeps a reserve of as much for it.
const LONGEST: usize = 1 << 20;

/// The round before, whose attempts are not made again.
#[derive(Clone, Copy)]
pub struct Tried {
    /// Time since the beginning of the last round, in which everything was tried that was due then; `None` if there was none
    /// with these settings and these data.
    pub since: Option<Duration>,
}

impl Tried {
    /// Whether a string that has not been used for so long is due since then, of those that are due after a time.
    fn is_due(self, idle: Option<Duration>, after: Duration) -> bool {
        // Each round tries it if the server does not tell its age.
        let Some(idle) = idle else { return true };
        idle >= after && self.since.is_none_or(|since| idle < after + since)
    }
}

/// Stores the string of a key in another form, if it should have one.
pub fn compress(context: Context, name: &OwnedText, tried: Tried) {
    let Some(mut key) = OpenKey::rewrite(context, name.as_text()) else { return };
    // A shorter string must not be read: that would change how it is stored.
    if !key.is_string() || key.len() < LEAST_ENVELOPE {
        return;
    }
    let idle = key.idle();
    let is_settled = tried.is_due(idle, SETTLED);
    // Nothing counts as cold if the server does not tell what is used.
    let is_cold = idle.is_some() && settings::cold_after().is_some_and(|after| tried.is_due(idle, after));
    let string = key.bytes();
    let is_short = values::restored_len(string).is_ok_and(|len| len <= LONGEST);
    if !is_short || !(is_settled || is_cold) {
        return;
    }
    let before = string.len();
    let Some(form) = values::another_form(name.as_text().bytes(), string, is_cold) else { return };
    if key.replace_for_long(&form).is_ok() {
        PROGRESS.compressed.fetch_add(1, Ordering::Relaxed);
        PROGRESS.bytes_before.fetch_add(before as u64, Ordering::Relaxed);
        PROGRESS.bytes_after.fetch_add(form.len() as u64, Ordering::Relaxed);
    }
}

/// Strings, their bytes, and the bytes that they would be stored in.
#[derive(Clone, Copy, Default)]
pub struct Observed {
    pub strings: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

impl Observed {
    /// Adds the string of a key.
    pub fn add(&mut self, context: Context, name: &OwnedText) {
        let Some(key) = OpenKey::look(context, name.as_text()).filter(OpenKey::is_string) else { return };
        let len = key.len();
        // A shorter string must not be read, and would not be compressed.
        let stored = match len < LEAST_ENVELOPE {
            true => None,
            false => values::restored(key.bytes(), <[u8]>::to_vec).ok().map(|string| {
                (string.len(), values::observe(name.as_text().bytes(), &string).unwrap_or(string.len()))
            }),
        };
        let (before, after) = stored.unwrap_or((len, len));
        self.strings += 1;
        self.bytes_before += before as u64;
        self.bytes_after += after as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_string_is_due_once_and_then_no_more() {
        let never = Tried { since: None };
        assert!(!never.is_due(Some(seconds(9)), SETTLED));
        assert!(never.is_due(Some(seconds(10)), SETTLED));
        assert!(never.is_due(Some(seconds(10_000)), SETTLED));
        let before = Tried { since: Some(seconds(30)) };
        assert!(!before.is_due(Some(seconds(9)), SETTLED));
        assert!(before.is_due(Some(seconds(39)), SETTLED));
        assert!(!before.is_due(Some(seconds(40)), SETTLED));
    }

    #[test]
    fn a_string_is_due_each_time_where_its_age_is_not_known() {
        assert!(Tried { since: Some(seconds(30)) }.is_due(None, SETTLED));
    }
}
