//! Formats numbers for the little room that a terminal has. Must not know what they are of.

use crate::live::units;

pub(super) const UNKNOWN: &str = "-";

/// Shows a number, or that it is not known.
pub(super) fn known(number: Option<f64>, show: fn(f64) -> String) -> String {
    number.filter(|number| number.is_finite()).map_or_else(|| UNKNOWN.to_owned(), show)
}

/// A count or rate: exact up to a million, and with a digit behind the point where it is small.
pub(super) fn count(number: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")];
    if let Some((unit, name)) = UNITS.iter().find(|(unit, _)| number >= *unit) {
        return format!("{:.2} {name}", number / unit);
    }
    match number {
        number if number < 10.0 && number.fract() != 0.0 => format!("{number:.1}"),
        number => units::count(number.round() as u64),
    }
}

/// Bytes, which may be fewer than none.
pub(super) fn bytes(number: f64) -> String {
    units::saved(number as i64)
}

/// A part of a whole.
pub(super) fn percent(part: f64) -> String {
    units::percent(part, 1.0)
}

/// A short time, of seconds.
pub(super) fn time(seconds: f64) -> String {
    let (amount, unit) = match seconds {
        seconds if seconds >= 1.0 => (seconds, "s"),
        seconds if seconds >= 1e-3 => (seconds * 1e3, "ms"),
        seconds => (seconds * 1e6, "us"),
    };
    let digits = if amount < 10.0 { 1 } else { 0 };
    format!("{amount:.digits$} {unit}")
}

/// A long time, of seconds.
pub(super) fn span(seconds: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min")];
    let (length, unit) = UNITS.into_iter().find(|(length, _)| seconds >= 2.0 * length).unwrap_or((1.0, "s"));
    format!("{:.0} {unit}", (seconds / length).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_the_digits_that_say_something() {
        let shown = |show: fn(f64) -> String, numbers: &[f64]| {
            numbers.iter().map(|&number| show(number)).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            shown(count, &[0.0, 0.25, 7.0, 67_744.4, 1.2478e6, 3e9]),
            "0, 0.2, 7, 67,744, 1.25 M, 3.00 G"
        );
        assert_eq!(shown(bytes, &[0.0, 1536.0, -2048.0]), "0 B, 1.50 KiB, -2.00 KiB");
        assert_eq!(shown(time, &[0.3e-6, 45e-6, 1.5e-3, 2.0]), "0.3 us, 45 us, 1.5 ms, 2.0 s");
        assert_eq!(shown(span, &[0.0, 90.0, 150.0, 7300.0, 200_000.0]), "0 s, 90 s, 2 min, 2 h, 2 d");
        assert_eq!(shown(percent, &[0.0, 0.608, 1.0]), "0.0 %, 60.8 %, 100.0 %");
        assert_eq!((known(None, count), known(Some(f64::NAN), bytes)), ("-".to_owned(), "-".to_owned()));
    }
}
