//! MessagePack as JSON, for reading.

use std::fmt::Write;

use jiff::Timestamp;
use rmp::Marker;
use rmp::decode as read;

/// Deeper nesting is left alone: less than the 127 levels of JSON that can be laid out.
const MAX_DEPTH: usize = 100;

/// A map or array in MessagePack as compact JSON, or a number below 128 in its long form, which is how the Go client's
/// cache writes it alone; `None` if the bytes are anything else, if something follows them, if they are nested deeper than
/// 100 levels, or if a map or array is a key.
///
/// JSON has less than MessagePack. Keys that are no text become the text of their JSON; bytes, and text that is not
/// UTF-8, `"0x"` and their hexadecimal digits; times RFC 3339; numbers that JSON does not have `"NaN"`, `"inf"` and
/// `"-inf"`; other extensions `{"extension": TYPE, "data": "0x..."}`.
pub(super) fn to_json(bytes: &[u8]) -> Option<String> {
    let first = Marker::from_u8(*bytes.first()?);
    if !is_container(first) && !is_small_number(bytes) {
        return None;
    }
    let mut reader = Reader { rest: bytes, json: String::new() };
    reader.value(first, MAX_DEPTH - 1)?;
    reader.rest.is_empty().then_some(reader.json)
}

fn is_container(marker: Marker) -> bool {
    use Marker::{Array16, Array32, FixArray, FixMap, Map16, Map32};
    matches!(marker, FixArray(_) | Array16 | Array32 | FixMap(_) | Map16 | Map32)
}

/// Text in UTF-8 never has these two bytes. Other numbers look like text, or like any binary value.
fn is_small_number(bytes: &[u8]) -> bool {
    matches!(bytes, [0xcc, 0..=127])
}

struct Reader<'a> {
    rest: &'a [u8],
    json: String,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Marker> {
        self.rest.first().map(|byte| Marker::from_u8(*byte))
    }

    /// Reads the value that begins with this marker, which has not been taken yet.
    fn value(&mut self, marker: Marker, depth: usize) -> Option<()> {
        use Marker::*;
        match marker {
            Reserved => return None,
            Null => {
                read::read_nil(&mut self.rest).ok()?;
                self.json.push_str("null");
            }
            False | True => {
                let truth = read::read_bool(&mut self.rest).ok()?;
                self.json.push_str(if truth { "true" } else { "false" });
            }
            FixPos(_) | FixNeg(_) | U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64 => {
                let number: i128 = read::read_int(&mut self.rest).ok()?;
                write!(self.json, "{number}").ok()?;
            }
            F32 => {
                let number = read::read_f32(&mut self.rest).ok()?;
                self.float(number.is_finite(), &number);
            }
            F64 => {
                let number = read::read_f64(&mut self.rest).ok()?;
                self.float(number.is_finite(), &number);
            }
            FixStr(_) | Str8 | Str16 | Str32 => {
                let len = read::read_str_len(&mut self.rest).ok()?;
                let bytes = self.take(len)?;
                match std::str::from_utf8(bytes) {
                    Ok(text) => self.text(text),
                    Err(_) => self.hexadecimal(bytes),
                }
            }
            Bin8 | Bin16 | Bin32 => {
                let len = read::read_bin_len(&mut self.rest).ok()?;
                let bytes = self.take(len)?;
                self.hexadecimal(bytes);
            }
            FixExt1 | FixExt2 | FixExt4 | FixExt8 | FixExt16 | Ext8 | Ext16 | Ext32 => {
                let extension = read::read_ext_meta(&mut self.rest).ok()?;
                let data = self.take(extension.size)?;
                self.extension(extension.typeid, data);
            }
            FixArray(_) | Array16 | Array32 => {
                let len = read::read_array_len(&mut self.rest).ok()?;
                self.items(len, ['[', ']'], |reader| reader.value(reader.peek()?, depth.checked_sub(1)?))?;
            }
            FixMap(_) | Map16 | Map32 => {
                let len = read::read_map_len(&mut self.rest).ok()?;
                self.items(len, ['{', '}'], |reader| {
                    reader.key()?;
                    reader.json.push(':');
                    reader.value(reader.peek()?, depth.checked_sub(1)?)
                })?;
            }
        }
        Some(())
    }

    fn take(&mut self, len: u32) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// Reads so many items, as many as exist: nothing is reserved for a number that is only claimed.
    fn items(&mut self, len: u32, brackets: [char; 2], item: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        self.json.push(brackets[0]);
        for index in 0..len {
            if index > 0 {
                self.json.push(',');
            }
            item(self)?;
        }
        self.json.push(brackets[1]);
        Some(())
    }

    /// A key, which JSON wants to be text. In a map or an array each level would double the quotes' escapes.
    fn key(&mut self) -> Option<()> {
        let marker = self.peek()?;
        if is_container(marker) {
            return None;
        }
        let start = self.json.len();
        self.value(marker, 0)?;
        if !self.json[start..].starts_with('"') {
            let key = self.json.split_off(start);
            self.text(&key);
        }
        Some(())
    }

    fn text(&mut self, text: &str) {
        self.json.push_str(&serde_json::Value::from(text).to_string());
    }

    fn float(&mut self, finite: bool, number: &dyn std::fmt::Debug) {
        // Debug has the shortest digits that tell the number from its neighbours, and 1e300 instead of 301 digits.
        let digits = format!("{number:?}");
        if finite { self.json.push_str(&digits) } else { self.text(&digits) }
    }

    fn hexadecimal(&mut self, bytes: &[u8]) {
        self.json.push_str("\"0x");
        for byte in bytes {
            write!(self.json, "{byte:02x}").expect("a String takes everything");
        }
        self.json.push('"');
    }

    fn extension(&mut self, kind: i8, data: &[u8]) {
        if let Some(time) = timestamp(kind, data) {
            return self.text(&time.to_string());
        }
        write!(self.json, "{{\"extension\":{kind},\"data\":").expect("a String takes everything");
        self.hexadecimal(data);
        self.json.push('}');
    }
}

/// The time that an extension holds: one of MessagePack's three timestamps
/// (https://github.com/msgpack/msgpack/blob/master/spec.md#timestamp-extension-type), or the type 5 of the Go library
/// tinylib/msgp, which has seconds first.
fn timestamp(kind: i8, data: &[u8]) -> Option<Timestamp> {
    let (seconds, nanoseconds) = match (kind, data.len()) {
        (-1, 4) => (i64::from(u32::from_be_bytes(data.try_into().ok()?)), 0),
        (-1, 8) => {
            let packed = u64::from_be_bytes(data.try_into().ok()?);
            (i64::try_from(packed & ((1 << 34) - 1)).ok()?, u32::try_from(packed >> 34).ok()?)
        }
        (-1, 12) => {
            let (nanoseconds, seconds) = data.split_first_chunk()?;
            (i64::from_be_bytes(seconds.try_into().ok()?), u32::from_be_bytes(*nanoseconds))
        }
        (5, 12) => {
            let (seconds, nanoseconds) = data.split_first_chunk()?;
            (i64::from_be_bytes(*seconds), u32::from_be_bytes(nanoseconds.try_into().ok()?))
        }
        _ => return None,
    };
    Timestamp::new(seconds, i32::try_from(nanoseconds).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmp::encode as write;

    use super::super::json;
    use super::*;

    /// An array of one element, these bytes.
    fn alone(bytes: &[u8]) -> Vec<u8> {
        [&[0x91], bytes].concat()
    }

    #[test]
    fn a_document_is_shown_in_its_order_with_its_duplicate_keys() {
        let mut bytes = Vec::new();
        write::write_map_len(&mut bytes, 4).unwrap();
        for key in ["name", "tags", "name"] {
            write::write_str(&mut bytes, key).unwrap();
            match key {
                "name" => write::write_str(&mut bytes, "Ada \"Countess\"\n").unwrap(),
                _ => drop(write::write_array_len(&mut bytes, 0).unwrap()),
            }
        }
        write::write_str(&mut bytes, "id").unwrap();
        write::write_sint(&mut bytes, -7).unwrap();
        let expected = r#"{"name":"Ada \"Countess\"\n","tags":[],"name":"Ada \"Countess\"\n","id":-7}"#;
        assert_eq!(to_json(&bytes).as_deref(), Some(expected));
    }

    #[test]
    fn each_kind_of_value_has_a_form_in_json() {
        for (bytes, expected) in [
            (&[0xc0][..], "null"),
            (&[0xc2], "false"),
            (&[0xc3], "true"),
            (&[0x7f], "127"),
            (&[0xe0], "-32"),
            (&[0xcc, 0xff], "255"),
            (&[0xcf, 255, 255, 255, 255, 255, 255, 255, 255], "18446744073709551615"),
            (&[0xd3, 128, 0, 0, 0, 0, 0, 0, 0], "-9223372036854775808"),
            (&[0xca, 0x3d, 0xcc, 0xcc, 0xcd], "0.1"),
            (&[0xcb, 0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a], "0.1"),
            (&[0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], "\"NaN\""),
            (&[0xcb, 0xff, 0xf0, 0, 0, 0, 0, 0, 0], "\"-inf\""),
            (&[0xcb, 0x7f, 0xef, 255, 255, 255, 255, 255, 255], "1.7976931348623157e308"),
            (&[0xc4, 2, 0xab, 0x01], "\"0xab01\""),
            (&[0xa1, 0xff], "\"0xff\""),
            (&[0xd9, 2, 0xc3, 0xa9], "\"é\""),
            (&[0xd4, 9, 1], r#"{"extension":9,"data":"0x01"}"#),
            (&[0xd6, 0xff, 0, 0, 0, 0], "\"1970-01-01T00:00:00Z\""),
            (
                &[0xd7, 0xff, 0xee, 0x6b, 0x27, 0xfc, 0x65, 0x53, 0xf1, 0x00],
                "\"2023-11-14T22:13:20.999999999Z\"",
            ),
            (
                &[0xc7, 12, 0xff, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255],
                "\"1969-12-31T23:59:59.000000001Z\"",
            ),
            (
                &[0xc7, 12, 5, 255, 255, 255, 0xf1, 0x88, 0x6e, 0x09, 0, 0, 0, 0, 0],
                "\"0001-01-01T00:00:00Z\"",
            ),
            (&[0x82, 0x01, 0xc0, 0xc3, 0xc0], r#"{"1":null,"true":null}"#),
        ] {
            assert_eq!(to_json(&alone(bytes)), Some(format!("[{expected}]")), "{bytes:02x?}");
        }
    }

    #[test]
    fn a_small_number_in_its_long_form_is_shown() {
        for (bytes, expected) in [([0xcc, 0x05], "5"), ([0xcc, 0x00], "0"), ([0xcc, 0x7f], "127")] {
            assert_eq!(to_json(&bytes).as_deref(), Some(expected), "{bytes:02x?}");
        }
    }

    #[test]
    fn what_is_no_map_or_array_or_not_all_of_it_is_left_alone() {
        for other in [
            &b""[..],
            b"{\"a\": 1}",
            b"text",
            "é".as_bytes(),
            &[0xc0],
            &[0xcc],
            &[0xcc, 0x81],               // U+0301 in UTF-8
            &[0xcc, 0x05, 0x05],         // something follows
            &[0x90, 0xc0],               // something follows
            &[0x91, 0xc1],               // never used
            &[0x92, 0x01],               // cut
            &[0x81, 0xa1, b'a'],         // no value
            &[0x81, 0x81, 1, 1, 1],      // a map as a key
            &[0xdd, 255, 255, 255, 255], // a claim
            &[0x91, 0xc6, 255, 255, 255, 255, 1],
            &[0x91, 0xc9, 255, 255, 255, 255, 1],
        ] {
            assert_eq!(to_json(other), None, "{other:02x?}");
        }
    }

    proptest! {
        #[test]
        fn what_json_can_say_is_shown_as_that_json(value in json_values()) {
            let mut bytes = Vec::new();
            write_value(&value, &mut bytes);
            prop_assert_eq!(to_json(&alone(&bytes)), Some(format!("[{value}]")));
        }

        #[test]
        fn any_bytes_give_json_of_bounded_length_or_nothing(tail in proptest::collection::vec(any::<u8>(), 0..300)) {
            for first in [0x80, 0x8f, 0x9f, 0xdc, 0xdf] {
                let bytes = [&[first], &tail[..]].concat();
                if let Some(json) = to_json(&bytes) {
                    prop_assert!(json.len() <= 32 * bytes.len());
                    prop_assert!(json::pretty(json.as_bytes()).is_some(), "{}", json);
                }
            }
        }
    }

    fn json_values() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            any::<u64>().prop_map(serde_json::Value::from),
            any::<String>().prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(5, 64, 8, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn write_value(value: &serde_json::Value, out: &mut Vec<u8>) {
        let len = |len: usize| u32::try_from(len).unwrap();
        match value {
            serde_json::Value::Null => write::write_nil(out).unwrap(),
            serde_json::Value::Bool(truth) => write::write_bool(out, *truth).unwrap(),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(number) => drop(write::write_sint(out, number).unwrap()),
                None => drop(write::write_uint(out, number.as_u64().unwrap()).unwrap()),
            },
            serde_json::Value::String(text) => write::write_str(out, text).unwrap(),
            serde_json::Value::Array(items) => {
                write::write_array_len(out, len(items.len())).unwrap();
                items.iter().for_each(|item| write_value(item, out));
            }
            serde_json::Value::Object(map) => {
                write::write_map_len(out, len(map.len())).unwrap();
                for (key, value) in map {
                    write::write_str(out, key).unwrap();
                    write_value(value, out);
                }
            }
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_left_alone() {
        for (depth, shown) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false), (1 << 20, false)] {
            let mut bytes = vec![0x91; depth];
            bytes[depth - 1] = 0x90;
            let json = to_json(&bytes);
            assert_eq!(json.is_some(), shown, "{depth}");
            if let Some(json) = json {
                assert!(json::pretty(json.as_bytes()).is_some(), "it can be laid out");
            }
        }
    }
}
