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
    } else if value.fract() == 0.0 && value.abs() < INTEGERS {
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
