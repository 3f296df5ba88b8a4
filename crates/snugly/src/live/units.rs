//! Formats numbers for people.

use indicatif::{HumanBytes, HumanCount};

pub(crate) fn bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

/// Bytes that may be fewer than none.
pub(crate) fn saved(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", HumanBytes(bytes.unsigned_abs()))
}

pub(crate) fn count(count: u64) -> String {
    HumanCount(count).to_string()
}

/// A part of a whole; nothing of nothing.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part / whole) }
}

pub(crate) fn microseconds(time: f64) -> String {
    format!("{time:.1} us")
}

/// Processor time, from seconds to hours.
pub(crate) fn processor_time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_units_that_fit_them() {
        assert_eq!((saved(-2048), saved(2048)), ("-2.00 KiB".to_owned(), "2.00 KiB".to_owned()));
        assert_eq!((percent(1.0, 4.0), percent(0.0, 0.0)), ("25.0 %".to_owned(), "-".to_owned()));
        let times = [0.25, 600.0, 36_000.0].map(processor_time);
        assert_eq!(times, ["0.2 s", "10 min", "10.0 h"].map(str::to_owned));
    }
}
