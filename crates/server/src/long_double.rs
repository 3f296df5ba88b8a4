//! Numbers as INCRBYFLOAT counts them: the 80-bit floating point of x86 (`long double`), read and written as Valkey
//! does on that machine, so that 0.1 + 0.2 is 0.3, on every machine.

use num_bigint::BigUint;
use rustc_apfloat::ieee::X87DoubleExtended;
use rustc_apfloat::{Float, Round};

#[derive(Clone, Copy)]
pub(crate) struct LongDouble(X87DoubleExtended);

/// Digits behind the point (`%.17Lf`).
const FRACTION_DIGITS: usize = 17;
/// Longer texts are no numbers (Valkey's `MAX_LONG_DOUBLE_CHARS`).
const LONGEST_TEXT: usize = 5 * 1024;

impl LongDouble {
    /// Reads a number as C's `strtold` does, except that nothing may stand around it and it must be in range.
    pub(crate) fn parse(text: &[u8]) -> Option<LongDouble> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() < LONGEST_TEXT)?;
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let lower = digits.to_ascii_lowercase();
        let magnitude = if lower == "inf" || lower == "infinity" {
            X87DoubleExtended::INFINITY
        } else {
            parse_magnitude(&lower)?
        };
        Some(LongDouble(if negative { -magnitude } else { magnitude }))
    }

    pub(crate) fn add(self, other: LongDouble) -> LongDouble {
        LongDouble((self.0 + other.0).value)
    }

    /// The next integer of a thousand times the number, or the last one that there is.
    pub(crate) fn thousandfold(self) -> i64 {
        let thousand = X87DoubleExtended::from_u128(1000).value;
        let product = (self.0 * thousand).value.round_to_integral(Round::TowardPositive).value;
        product.to_i128(i64::BITS as usize).value as i64
    }

    /// Writes the number exactly to 17 digits behind the point, without the zeros at its end; `None` if it is
    /// infinite or not a number.
    pub(crate) fn to_decimal(self) -> Option<String> {
        if !self.0.is_finite() {
            return None;
        }
        let scaled = scaled_magnitude(self.0);
        let mut digits = format!("{scaled:0>width$}", width = FRACTION_DIGITS + 1);
        digits.insert(digits.len() - FRACTION_DIGITS, '.');
        let trimmed = digits.trim_end_matches('0').trim_end_matches('.');
        let sign = if self.0.is_negative() && trimmed != "0" { "-" } else { "" };
        Some(format!("{sign}{trimmed}"))
    }
}

/// Reads digits with an optional point and exponent, decimal or (after `0x`) hexadecimal, in lower case.
fn parse_magnitude(lower: &str) -> Option<X87DoubleExtended> {
    let (prefix, rest, marker) = match lower.strip_prefix("0x") {
        Some(rest) => ("0x", rest, 'p'),
        None => ("", lower, 'e'),
    };
    let (mantissa, exponent) = rest.split_once(marker).unwrap_or((rest, "0"));
    let digit = |character: char| character.is_digit(if prefix.is_empty() { 10 } else { 16 });
    let digits = mantissa.replacen('.', "", 1);
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let all = |text: &str, admit: &dyn Fn(char) -> bool| !text.is_empty() && text.chars().all(admit);
    if !all(&digits, &digit) || !all(unsigned, &|character| character.is_ascii_digit()) {
        return None;
    }
    let parsed = format!("{prefix}{mantissa}{marker}{exponent}").parse::<X87DoubleExtended>().ok()?;
    // strtold says ERANGE of what is too large, and of what is too small to be told from zero.
    let vanished = parsed.is_zero() && digits.bytes().any(|byte| byte != b'0');
    (parsed.is_finite() && !vanished).then_some(parsed)
}

/// The number without its sign, times 10^17, rounded half to even.
fn scaled_magnitude(number: X87DoubleExtended) -> BigUint {
    // The 80 bits: sign and a 15-bit exponent above a 64-bit significand with an explicit leading bit.
    let bits = number.to_bits();
    let significand = BigUint::from(bits as u64);
    let exponent = ((bits >> 64) as i32 & 0x7fff).max(1) - 16383 - 63;
    let scaled = significand * BigUint::from(10u8).pow(FRACTION_DIGITS as u32);
    if exponent >= 0 {
        return scaled << exponent;
    }
    let shift = exponent.unsigned_abs();
    let floor = &scaled >> shift;
    let remainder = &scaled - (&floor << shift);
    let half = BigUint::from(1u8) << (shift - 1);
    let round_up = remainder > half || remainder == half && floor.bit(0);
    if round_up { floor + 1u8 } else { floor }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(left: &str, right: &str) -> Option<String> {
        let number = |text: &str| LongDouble::parse(text.as_bytes()).expect("a number");
        number(left).add(number(right)).to_decimal()
    }

    #[test]
    fn sums_are_those_of_valkey_on_x86() {
        // Each was answered by a Valkey 9.1 server on x86-64.
        let cases = [
            ("0.1", "0.2", "0.3"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("-1", "1", "0"),
            ("-0.0", "0", "0"),
            ("3", "-1.5", "1.5"),
            ("1e20", "1", "100000000000000000000"),
            ("1e-17", "0", "0.00000000000000001"),
            ("1e-18", "0", "0"),
            ("-1e-18", "0", "0"),
            ("1.e1", "0", "10"),
            ("0x10", "0", "16"),
            ("0x1.8p1", ".5", "3.5"),
        ];
        for (left, right, expected) in cases {
            assert_eq!(sum(left, right).as_deref(), Some(expected), "{left} + {right}");
        }
        assert_eq!(sum("inf", "1"), None);
    }

    #[test]
    fn seconds_are_so_many_milliseconds_and_no_less() {
        let cases = [
            ("0", 0),
            ("0.001", 1),
            ("0.0001", 1),
            ("1.5", 1500),
            ("-0.0001", 0),
            ("-1", -1000),
            ("9223372036854775", 9_223_372_036_854_775_000),
            ("9223372036854776", i64::MAX),
            ("inf", i64::MAX),
            ("-inf", i64::MIN),
        ];
        for (seconds, milliseconds) in cases {
            let number = LongDouble::parse(seconds.as_bytes()).expect("a number");
            assert_eq!(number.thousandfold(), milliseconds, "{seconds}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "", " 1", "1 ", "1x", "nan", "e5", "--1", "1e", "1e99999", "1e-99999", ".", "0x", "0x1p",
            "\u{661}",
        ] {
            assert!(LongDouble::parse(text.as_bytes()).is_none(), "{text:?}");
        }
    }
}
