//! Numbers as the protocol spells them.

use std::io::Write;

/// An integer as RESP and Valkey's commands accept it: decimal digits with an optional `-`, no `+`, no spaces,
/// no leading zeros, no `-0`, within `i64`. Anything else is `None`.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value = 0u64; // 19 digits always fit
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { value.try_into().ok() }
}

/// Appends a floating point number as Valkey spells it in replies: the fewest digits that read back as the same
/// number, plain (`0.1`, `100000000`) or with an exponent (`1e+20`) as its length suggests; `inf`, `-inf`, `nan`.
pub fn format_double(value: f64, out: &mut Vec<u8>) {
    /// Below this an integral double is written as the integer that it is.
    const INTEGERS: f64 = (i64::MAX / 2) as f64;
    if value.is_nan() {
        out.extend_from_slice(b"nan");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    } else if value.fract() == 0.0 && value.abs() <= INTEGERS {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    } else {
        format_shortest(value, out);
    }
}

/// The layout rules of fpconv (Grisu2), which Valkey uses: digits d1..dn and a power k of ten.
fn format_shortest(value: f64, out: &mut Vec<u8>) {
    let mut scratch = [0u8; 32]; // sign, 17 digits, point, "e-324"
    let mut unused = &mut scratch[..];
    write!(unused, "{:e}", value.abs()).expect("32 bytes hold every double");
    let unused = unused.len();
    let text = &scratch[..scratch.len() - unused];
    let marker = text.iter().position(|&byte| byte == b'e').expect("{:e} writes an exponent");
    let (mantissa, exponent) = (&text[..marker], &text[marker + 1..]);
    let mut digits = [0u8; 17];
    let mut count = 0;
    for &byte in mantissa.iter().filter(|byte| byte.is_ascii_digit()) {
        digits[count] = byte;
        count += 1;
    }
    let digits = &digits[..count];
    let point = parse_integer(exponent).expect("{:e} writes an integer exponent"); // d1.d2..dn * 10^point
    let power = point - (count as i64 - 1); // d1..dn * 10^power

    if value < 0.0 {
        out.push(b'-');
    }
    if power >= 0 && point.abs() < count as i64 + 7 {
        out.extend_from_slice(digits);
        out.resize(out.len() + power as usize, b'0');
    } else if power < 0 && (power > -7 || point.abs() < 4) {
        if point >= 0 {
            let (whole, fraction) = digits.split_at(point as usize + 1);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        } else {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-point - 1) as usize, b'0');
            out.extend_from_slice(digits);
        }
    } else {
        out.push(digits[0]);
        if let fraction @ [_, ..] = &digits[1..] {
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        out.push(b'e');
        out.push(if point < 0 { b'-' } else { b'+' });
        out.extend_from_slice(itoa::Buffer::new().format(point.abs()).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn formatted(value: f64) -> String {
        let mut out = Vec::new();
        format_double(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_look_as_valkey_9_1_shows_them() {
        for (value, text) in [
            (3.0, "3"),
            (-0.0, "0"),
            (4611686018427387904.0, "4611686018427387904"),
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (1e8, "100000000"),
            (1e17, "100000000000000000"),
            (1e20, "1e+20"),
            (12345678901234567890.0, "12345678901234567000"),
            (1e-6, "0.000001"),
            (1.5e-5, "0.000015"),
            (1e-7, "1e-7"),
            (-2.5e-9, "-2.5e-9"),
            (12345678.9, "12345678.9"),
            (1234567890123456.7, "1234567890123456.8"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(formatted(value), text);
        }
    }

    #[test]
    fn integers_are_strict_decimal_within_64_bits() {
        for (text, value) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1x", None),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), value, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_integer_is_read_back(value: i64) {
            prop_assert_eq!(parse_integer(value.to_string().as_bytes()), Some(value));
        }

        #[test]
        fn every_double_is_read_back(value in any::<f64>()) {
            prop_assert_eq!(formatted(value).parse::<f64>().unwrap(), value);
        }
    }
}
