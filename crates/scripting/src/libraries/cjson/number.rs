//! Numbers as C writes and reads them: `%.14g` and `strtod`.
//!
//! It knows the texts of numbers, and nothing of JSON or Lua.

use std::io::Write;

/// The most digits that are written.
pub(super) const MAX_PRECISION: i32 = 14;

/// Appends a finite number as C's `%g` writes it with so many significant digits, which are one at least.
pub(super) fn append(out: &mut Vec<u8>, number: f64, precision: i32) {
    let whole = 10_f64.powi(precision);
    if number.trunc() == number && number.abs() < whole && (number != 0.0 || number.is_sign_positive()) {
        return append_text(out, format_args!("{}", number as i64));
    }
    // One digit, a point, the other digits, and the exponent.
    let begin = out.len();
    append_text(out, format_args!("{:.*e}", precision as usize - 1, number));
    let mut text = [0; 32];
    let len = out.len() - begin;
    text[..len].copy_from_slice(&out[begin..]);
    out.truncate(begin);
    let (sign, text) = match text[..len].strip_prefix(b"-") {
        Some(positive) => (&b"-"[..], positive),
        None => (&b""[..], &text[..len]),
    };
    let split = text.iter().position(|byte| *byte == b'e').expect("it is written with an exponent");
    let exponent = std::str::from_utf8(&text[split + 1..]).ok().and_then(|exponent| exponent.parse().ok());
    let exponent: i32 = exponent.expect("an exponent is an integer");
    let mut digits = [0; MAX_PRECISION as usize];
    let mut count = 0;
    for digit in text[..split].iter().filter(|byte| byte.is_ascii_digit()) {
        digits[count] = *digit;
        count += 1;
    }
    // Zeros at the end are not written, but for the only digit.
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    out.extend_from_slice(sign);
    append_digits(out, &digits[..count], exponent, precision);
}

/// Appends digits, of which the first one counts ten to the power of the exponent.
fn append_digits(out: &mut Vec<u8>, digits: &[u8], exponent: i32, precision: i32) {
    if exponent < -4 || exponent >= precision {
        append_point(out, digits, 1);
        let sign = if exponent < 0 { '-' } else { '+' };
        append_text(out, format_args!("e{sign}{:02}", exponent.unsigned_abs()));
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
        out.extend_from_slice(digits);
    } else {
        append_point(out, digits, exponent as usize + 1);
    }
}

/// Appends digits with a point after so many of them, with zeros for those that are missing before it.
fn append_point(out: &mut Vec<u8>, digits: &[u8], before: usize) {
    match digits.split_at_checked(before) {
        Some((whole, [])) => out.extend_from_slice(whole),
        Some((whole, fraction)) => {
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        None => {
            out.extend_from_slice(digits);
            out.extend(std::iter::repeat_n(b'0', before - digits.len()));
        }
    }
}

fn append_text(out: &mut Vec<u8>, text: std::fmt::Arguments) {
    out.write_fmt(text).expect("a vector takes all bytes");
}

/// The number that the bytes begin with, as C's `strtod` reads it, and how many bytes it is. None if there is none.
///
/// Bytes before the number are not skipped.
pub(super) fn parse(bytes: &[u8]) -> Option<(f64, usize)> {
    let (negative, signs) = match bytes.first() {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    let rest = &bytes[signs..];
    let (number, len) =
        parse_hexadecimal(rest).or_else(|| parse_decimal(rest)).or_else(|| parse_name(rest))?;
    Some((if negative { -number } else { number }, signs + len))
}

fn digits(bytes: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_digit(byte)).count()
}

/// The length of digits with a point among them, and where that is; none if there are no digits.
fn mantissa(bytes: &[u8], is_digit: fn(&u8) -> bool) -> Option<(usize, usize)> {
    let whole = digits(bytes, is_digit);
    let point = bytes.get(whole) == Some(&b'.');
    let fraction = if point { digits(&bytes[whole + 1..], is_digit) } else { 0 };
    (whole + fraction > 0).then_some((whole + usize::from(point) + fraction, whole))
}

/// The exponent after its letter, and the length of both; zero if there is none.
fn exponent(bytes: &[u8], letter: u8) -> (i32, usize) {
    if !bytes.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&letter)) {
        return (0, 0);
    }
    let sign = usize::from(matches!(bytes.get(1), Some(b'-' | b'+')));
    let digits = digits(&bytes[1 + sign..], u8::is_ascii_digit);
    if digits == 0 {
        return (0, 0);
    }
    let len = 1 + sign + digits;
    let add = |value: i32, digit: &u8| value.saturating_mul(10).saturating_add(i32::from(digit - b'0'));
    let value = bytes[1 + sign..len].iter().fold(0, add);
    (if bytes[1] == b'-' { -value } else { value }, len)
}

fn parse_decimal(bytes: &[u8]) -> Option<(f64, usize)> {
    let (mantissa, _) = mantissa(bytes, u8::is_ascii_digit)?;
    let len = mantissa + exponent(&bytes[mantissa..], b'e').1;
    let number = std::str::from_utf8(&bytes[..len]).ok()?.parse().ok()?;
    Some((number, len))
}

fn parse_hexadecimal(bytes: &[u8]) -> Option<(f64, usize)> {
    let [b'0', b'x' | b'X', rest @ ..] = bytes else { return None };
    let (len, point) = mantissa(rest, u8::is_ascii_hexdigit)?;
    let (mut value, mut scale) = (0_u64, 0_i64);
    for (at, digit) in rest[..len].iter().enumerate().filter(|(_, byte)| **byte != b'.') {
        let digit = u64::from((*digit as char).to_digit(16).expect("it is a digit"));
        let fraction = i64::from(at > point);
        if value >> 58 == 0 {
            value = value << 4 | digit;
            scale -= 4 * fraction;
        } else {
            // What does not fit is only more than nothing, which is enough to round by.
            value |= u64::from(digit != 0);
            scale += 4 * (1 - fraction);
        }
    }
    let (power, exponent_len) = exponent(&rest[len..], b'p');
    Some((scaled(value, scale + i64::from(power)), 2 + len + exponent_len))
}

/// The value times two to the power of the scale.
fn scaled(value: u64, scale: i64) -> f64 {
    // In two steps, as each power alone may be none that there is.
    let scale = scale.clamp(-2_200, 2_200) as i32;
    let mut number = value as f64;
    let mut left = scale;
    while left != 0 && number != 0.0 && number.is_finite() {
        let step = left.clamp(-1_000, 1_000);
        number *= 2_f64.powi(step);
        left -= step;
    }
    number
}

/// Infinity and what is no number, in capitals or not.
fn parse_name(bytes: &[u8]) -> Option<(f64, usize)> {
    let begins =
        |name: &str| bytes.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()));
    if begins("nan") {
        return Some((f64::NAN, 3 + payload(&bytes[3..])));
    }
    let name = ["infinity", "inf"].into_iter().find(|name| begins(name))?;
    Some((f64::INFINITY, name.len()))
}

/// The length of what may follow `nan` in parentheses.
fn payload(bytes: &[u8]) -> usize {
    let Some(rest) = bytes.strip_prefix(b"(") else { return 0 };
    let len = digits(rest, |byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if rest.get(len) == Some(&b')') { len + 2 } else { 0 }
}
