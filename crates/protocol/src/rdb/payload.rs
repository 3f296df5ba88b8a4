//! Values as DUMP gives them and RESTORE takes them: one value in the format of RDB files, and a footer.
//!
//! ```text
//! type (1 byte)  value …  version (2 bytes, little-endian)  CRC-64 of all before (8 bytes, little-endian)
//! ```

use std::borrow::Cow;

use super::error::{Fault, RestoreError};
use super::kinds::{Shape, kind};
use super::{
    CRC_64, LIST, Node, STRING, Value, VersionCheck, WRITTEN_VERSION, is_known, length, list, string,
};

/// The number in front of the source of a library.
const FUNCTION: u8 = 245;
const VERSION_LEN: usize = size_of::<u16>();
const CHECKSUM_LEN: usize = size_of::<u64>();
const FOOTER_LEN: usize = VERSION_LEN + CHECKSUM_LEN;

/// Bytes that [`dump`] appends for a value.
pub fn dumped_len(value: &Value<'_>) -> usize {
    let value_len = match value {
        Value::String(bytes) => string::encoded_len(bytes.len()),
        Value::List(nodes) => {
            length::encoded_len(nodes.len() as u64) + nodes.iter().map(Node::encoded_len).sum::<usize>()
        }
    };
    1 + value_len + FOOTER_LEN
}

/// Appends what DUMP answers for a value.
pub fn dump(value: &Value<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.reserve(dumped_len(value));
    match value {
        Value::String(bytes) => {
            out.push(STRING);
            string::encode(bytes, out);
        }
        Value::List(nodes) => {
            out.push(LIST);
            length::encode(nodes.len() as u64, out);
            nodes.iter().for_each(|node| node.encode(out));
        }
    }
    append_footer(start, out);
}

/// Appends version and checksum to a type and a value, which start at `start`.
pub fn append_footer(start: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&WRITTEN_VERSION.to_le_bytes());
    let checksum = CRC_64.checksum(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// The value that RESTORE is given, of which a string, or each element, has `limit` bytes at most, and all elements of a
/// list together `list_limit`, compressed ones too. As with Valkey, bytes between value and footer do not matter, and
/// versions newer than what is known are read if `check` is relaxed and the value is of a known type.
///
/// # Errors
/// A [`RestoreError`]. No more memory is reserved than the payload can fill.
pub fn restore(
    payload: &[u8],
    limit: usize,
    list_limit: usize,
    check: VersionCheck,
) -> Result<Value<'_>, RestoreError> {
    let (body, version) = checked(payload, check).ok_or(RestoreError::Footer)?;
    let (&number, mut value) = body.split_first().ok_or(RestoreError::Malformed)?;
    let unknown = match is_known(version) {
        true => RestoreError::Malformed,
        false => RestoreError::UnknownType { number, version },
    };
    let kind = kind(number).ok_or(unknown)?;
    match kind.shape {
        Shape::String => Ok(Value::String(string::read(&mut value, limit)?)),
        Shape::List(form) => {
            let nodes = list::read(form, &mut value, limit, list_limit)?;
            Ok(Value::List(nodes.ok_or(Fault::Malformed("a list is empty"))?))
        }
        Shape::Other(_) | Shape::Endless => Err(RestoreError::UnsupportedType(kind.name)),
    }
}

/// Appends what FUNCTION DUMP answers for the sources of libraries: each behind the number that marks it in RDB files.
pub fn dump_libraries<'a>(sources: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let start = out.len();
    for source in sources {
        out.push(FUNCTION);
        string::encode(source, out);
    }
    append_footer(start, out);
}

/// The sources of libraries that FUNCTION RESTORE is given, each of `limit` bytes at most.
///
/// # Errors
/// [`RestoreError`]. No more memory is reserved than the payload can fill.
pub fn restore_libraries(
    payload: &[u8],
    limit: usize,
    check: VersionCheck,
) -> Result<Vec<Cow<'_, [u8]>>, RestoreError> {
    let (mut body, _) = checked(payload, check).ok_or(RestoreError::Footer)?;
    let mut sources = Vec::new();
    while let Some((&number, rest)) = body.split_first() {
        if number != FUNCTION {
            return Err(RestoreError::UnsupportedType("something other than libraries"));
        }
        body = rest;
        sources.push(string::read(&mut body, limit)?);
    }
    Ok(sources)
}

/// A payload without its footer, and its version, if these are right.
fn checked(payload: &[u8], check: VersionCheck) -> Option<(&[u8], u16)> {
    let (content, checksum) = payload.split_last_chunk::<CHECKSUM_LEN>()?;
    let (body, version) = content.split_last_chunk::<VERSION_LEN>()?;
    let version = u16::from_le_bytes(*version);
    let is_read = check == VersionCheck::Relaxed || is_known(version);
    (is_read && CRC_64.checksum(content) == u64::from_le_bytes(*checksum)).then_some((body, version))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use snugly_listpack::Listpack;

    use super::*;

    const LIMIT: usize = 1 << 20;

    proptest! {
        #[test]
        fn libraries_are_restored_as_they_were_dumped(
            sources in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..5),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut dumped = Vec::new();
            dump_libraries(sources.iter().map(Vec::as_slice), &mut dumped);
            let restored = restore_libraries(&dumped, LIMIT, VersionCheck::Strict).expect("it is whole");
            prop_assert_eq!(restored.iter().map(|source| source.to_vec()).collect::<Vec<_>>(), sources);
            let cut = &dumped[..cut.index(dumped.len())];
            prop_assert!(restore_libraries(cut, LIMIT, VersionCheck::Strict).is_err());
        }
    }

    /// A payload around a type and a value, with a footer that fits.
    fn payload(body: &[u8]) -> Vec<u8> {
        let mut payload = body.to_vec();
        append_footer(0, &mut payload);
        payload
    }

    /// The string of a payload with this type and value.
    fn restored(body: &[u8]) -> Result<Vec<u8>, RestoreError> {
        restored_within(body, LIMIT)
    }

    fn restored_within(body: &[u8], limit: usize) -> Result<Vec<u8>, RestoreError> {
        match restore(&payload(body), limit, LIMIT, VersionCheck::Strict)? {
            Value::String(bytes) => Ok(bytes.into_owned()),
            Value::List(nodes) => panic!("a list: {nodes:?}"),
        }
    }

    /// The elements of the list of a payload with this type and value.
    fn elements_within(body: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, RestoreError> {
        match restore(&payload(body), limit, LIMIT, VersionCheck::Strict)? {
            Value::List(nodes) => Ok(elements(&nodes)),
            Value::String(bytes) => panic!("a string: {}", bytes.escape_ascii()),
        }
    }

    fn elements(nodes: &[Node<'_>]) -> Vec<Vec<u8>> {
        nodes.iter().flat_map(Node::elements).map(|element| element.bytes().into_owned()).collect()
    }

    fn string(bytes: &[u8]) -> Value<'_> {
        Value::String(bytes.into())
    }

    fn packed(elements: &[Vec<u8>]) -> Node<'static> {
        let mut listpack = Listpack::new();
        elements.iter().for_each(|element| listpack.push_back(element));
        Node::Packed(listpack.as_bytes().to_vec().into())
    }

    fn any_node() -> impl Strategy<Value = Node<'static>> {
        let element = prop_oneof![
            any::<i64>().prop_map(|integer| integer.to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..100),
        ];
        let large = (any::<u8>(), crate::rdb::NODE_BYTES + 1..20_000);
        prop_oneof![
            prop::collection::vec(element, 1..20).prop_map(|elements| packed(&elements)),
            large.prop_map(|(byte, len)| Node::Plain(vec![byte; len].into())),
        ]
    }

    fn any_type_of_value() -> impl Strategy<Value = Value<'static>> {
        let word = prop::collection::vec(any::<u8>(), 0..100);
        prop_oneof![
            (word, 0usize..1_000).prop_map(|(word, times)| Value::String(word.repeat(times).into())),
            prop::collection::vec(any_node(), 1..80).prop_map(Value::List),
        ]
    }

    proptest! {
        #[test]
        fn what_is_dumped_is_restored(value in any_type_of_value(), before: Vec<u8>) {
            let mut out = before.clone();
            dump(&value, &mut out);
            prop_assert_eq!(out.len(), before.len() + dumped_len(&value));
            prop_assert_eq!(restore(&out[before.len()..], LIMIT, LIMIT, VersionCheck::Strict).unwrap(), value);
        }

        #[test]
        fn a_payload_with_another_bit_is_refused(value: Vec<u8>, place: prop::sample::Index, bit in 0u8..8) {
            let mut out = Vec::new();
            dump(&string(&value), &mut out);
            let place = place.index(out.len());
            out[place] ^= 1u8 << bit;
            prop_assert_eq!(restore(&out, LIMIT, LIMIT, VersionCheck::Strict), Err(RestoreError::Footer));
        }

        #[test]
        fn any_value_of_any_type_is_restored_within_the_limit_or_refused(
            number in prop_oneof![any::<u8>(), prop::sample::select(&[0u8, 1, 10, 14, 18][..])],
            value: Vec<u8>,
            limit in 0usize..300,
        ) {
            let payload = payload(&[&[number], &value[..]].concat());
            match restore(&payload, limit, LIMIT, VersionCheck::Strict) {
                Ok(Value::String(bytes)) => prop_assert!(bytes.len() <= limit),
                Ok(Value::List(nodes)) => {
                    let elements = elements(&nodes);
                    prop_assert!(!elements.is_empty());
                    prop_assert!(elements.iter().all(|element| element.len() <= limit));
                }
                Err(error) => prop_assert_ne!(error, RestoreError::Footer),
            }
        }

        #[test]
        fn a_list_with_another_byte_is_restored_or_refused(
            nodes in prop::collection::vec(any_node(), 1..4), place: prop::sample::Index, byte: u8,
        ) {
            let mut out = Vec::new();
            dump(&Value::List(nodes), &mut out);
            out.truncate(out.len() - FOOTER_LEN);
            let place = place.index(out.len() - 1) + 1;
            out[place] = byte;
            if let Ok(elements) = elements_within(&out, LIMIT) {
                prop_assert!(elements.iter().map(Vec::len).sum::<usize>() <= 20 * out.len());
            }
        }
    }

    #[test]
    fn what_valkey_9_1_dumps_is_restored() {
        for (payload, value) in [
            (&b"\x00\x05helloP\x00\xacX\x16\xe7\xfbfG\xfe"[..], &b"hello"[..]),
            (b"\x00\xc0\x0cP\x00\xf3\x001\xc0\xc2V\xdb!", b"12"),
            (b"\x00\xc1,\x01P\x00Zh\xa8c\xfb\xd0;\xe4", b"300"),
            (b"\x00\xc2\x90\xee\xfe\xffP\x00\xe7_\x17\xea\x8d\xb9O\xf4", b"-70000"),
            (b"\x00\x0b12345678901P\x00\xffd\x9bF\xb9E\x02\xe4", b"12345678901"),
            (b"\x00\xc3\x06\x15\x01aa\xe0\n\x00P\x002&z\xf9\x99\x13X\x9c", &[b'a'; 21]),
            (b"\x00\xc3\t9\x01aa\xe0,\x00\x01aaP\x00\xb6\x9d\x90\xfc\x9d\n\xc0\x80", &[b'a'; 57]),
        ] {
            assert_eq!(restore(payload, LIMIT, LIMIT, VersionCheck::Strict).unwrap(), string(value));
        }
    }

    #[test]
    fn a_string_as_it_is_and_a_node_are_borrowed_from_the_payload() {
        let mut out = Vec::new();
        dump(&string(b"hello"), &mut out);
        assert!(matches!(
            restore(&out, LIMIT, LIMIT, VersionCheck::Strict),
            Ok(Value::String(Cow::Borrowed(_)))
        ));
        out.clear();
        dump(&Value::List(vec![packed(&[b"a".to_vec()])]), &mut out);
        let Ok(Value::List(nodes)) = restore(&out, LIMIT, LIMIT, VersionCheck::Strict) else {
            panic!("no list")
        };
        assert!(matches!(&nodes[..], [Node::Packed(Cow::Borrowed(_))]));
    }

    #[test]
    fn integers_are_restored_as_their_digits() {
        for (body, value) in [
            (&[0, 0xc0, 0x80][..], "-128"),
            (&[0, 0xc1, 0xff, 0x7f], "32767"),
            (&[0, 0xc2, 0, 0, 0, 0x80], "-2147483648"),
        ] {
            assert_eq!(restored(body).unwrap(), value.as_bytes());
        }
    }

    fn payload_of_version(version: u16, body: &[u8]) -> Vec<u8> {
        let mut payload = [body, &version.to_le_bytes()].concat();
        let checksum = CRC_64.checksum(&payload);
        payload.extend_from_slice(&checksum.to_le_bytes());
        payload
    }

    #[test]
    fn versions_of_other_servers_and_of_the_future_are_read_by_the_relaxed_check_alone() {
        for (version, is_known) in
            [(0u16, false), (1, true), (11, true), (12, false), (79, false), (80, true), (81, false)]
        {
            let payload = payload_of_version(version, &[STRING, 1, b'a']);
            let strict = restore(&payload, LIMIT, LIMIT, VersionCheck::Strict);
            assert_eq!(strict.is_ok(), is_known, "version {version}");
            let relaxed = restore(&payload, LIMIT, LIMIT, VersionCheck::Relaxed);
            assert_eq!(relaxed, Ok(Value::String(b"a"[..].into())), "version {version}");
        }
    }

    #[test]
    fn a_type_that_a_newer_version_has_is_named() {
        let restored = |version| {
            restore(&payload_of_version(version, &[24, 0]), LIMIT, LIMIT, VersionCheck::Relaxed).unwrap_err()
        };
        assert_eq!(restored(12).to_string(), "Bad data format: type 24 of version 12 is not known");
        assert_eq!(restored(80), RestoreError::Malformed);
    }

    #[test]
    fn what_is_too_short_for_a_footer_is_refused() {
        for len in 0..FOOTER_LEN {
            assert_eq!(restore(&vec![0; len], LIMIT, LIMIT, VersionCheck::Strict), Err(RestoreError::Footer));
        }
        assert_eq!(restored(&[]), Err(RestoreError::Malformed));
    }

    #[test]
    fn values_that_are_cut_off_or_unknown_are_malformed() {
        for body in [
            &[STRING][..],
            &[STRING, 5, b'a'],
            &[STRING, 0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[STRING, 0xc1, 0],
            &[STRING, 0xc3, 0xc0, 1, 0, b'a'],
            &[STRING, 0xc3, 3, 1, 0, b'a'],
            &[STRING, 0xc3, 2, 2, 0, b'a'],
            &[STRING, 0xc4, 0],
            &[8, 0],
            &[23, 0],
            &[255, 0],
        ] {
            assert_eq!(restored(body), Err(RestoreError::Malformed), "{body:02x?}");
        }
    }

    #[test]
    fn lists_without_elements_or_with_broken_nodes_are_malformed() {
        for body in [
            // Nothing, an empty node, an empty listpack, an unknown container, one node too few, no listpack.
            &b"\x12\x00"[..],
            b"\x12\x01\x01\x00",
            b"\x12\x01\x02\x07\x07\0\0\0\0\0\xff",
            b"\x12\x01\x03\x01a",
            b"\x12\x02\x01\x01a",
            b"\x12\x01\x02\x07\x08\0\0\0\0\0\xff",
            // Strings: none, and fewer than promised.
            b"\x01\x00",
            b"\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a",
            // Ziplists: none, an empty one, none at all.
            b"\x0e\x00",
            b"\x0e\x01\x0b\x0b\0\0\0\x0a\0\0\0\0\0\xff",
            b"\x0a\x01a",
        ] {
            assert_eq!(elements_within(body, LIMIT), Err(RestoreError::Malformed), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn lists_of_older_servers_are_restored() {
        // "2" and "5", as ziplist.c has them.
        let ziplist = b"\x0f\0\0\0\x0c\0\0\0\x02\0\x00\xf3\x02\xf6\xff";
        let strings = b"\x01\x04\x01a\xc0\x0c\x00\xc3\x06\x15\x01aa\xe0\n\x00";
        let ziplists = [b"\x0e\x02\x0f", &ziplist[..], b"\x0f", ziplist].concat();
        for (body, elements) in [
            (&strings[..], &[&b"a"[..], b"12", b"", &[b'a'; 21]][..]),
            (&[b"\x0a\x0f", &ziplist[..]].concat(), &[b"2", b"5"]),
            (&ziplists, &[b"2", b"5", b"2", b"5"]),
        ] {
            assert_eq!(elements_within(body, LIMIT).unwrap(), elements);
        }
    }

    #[test]
    fn small_elements_that_come_one_by_one_share_nodes() {
        let mut body = vec![1];
        length::encode(10_000, &mut body);
        body.extend(b"\x01a".repeat(10_000));
        let payload = payload(&body);
        let Ok(Value::List(nodes)) = restore(&payload, LIMIT, LIMIT, VersionCheck::Strict) else {
            panic!("no list")
        };
        assert_eq!(elements(&nodes), vec![b"a"; 10_000]);
        assert_eq!(nodes.len(), (10_000 * 3usize).div_ceil(crate::rdb::NODE_BYTES - 10));
    }

    #[test]
    fn other_types_are_named() {
        for (number, name) in [(3, "zset"), (6, "module"), (7, "module"), (21, "stream"), (22, "hash")] {
            assert_eq!(restored(&[number, 0]), Err(RestoreError::UnsupportedType(name)));
        }
    }

    #[test]
    fn a_string_over_the_limit_is_refused() {
        // One byte, copied 4 + 264 times.
        let body = [STRING, 0xc3, 7, 0x41, 0x0d, 0, b'a', 0x40, 0, 0xe0, 0xff, 0];
        assert_eq!(restored(&body).unwrap(), [b'a'; 269]);
        assert_eq!(restored_within(&body, 268), Err(RestoreError::TooLong { len: 269, limit: 268 }));
        let integer = [STRING, 0xc0, 0x80];
        assert_eq!(restored_within(&integer, 3), Err(RestoreError::TooLong { len: 4, limit: 3 }));
    }

    #[test]
    fn an_element_over_the_limit_is_refused_wherever_it_stands() {
        let mut listpack = vec![LIST, 1];
        packed(&[b"a".to_vec(), b"12345".to_vec(), b"abcde".to_vec()]).encode(&mut listpack);
        let ziplist = b"\x0a\x12\x12\0\0\0\x0a\0\0\0\x01\0\x00\x05abcde\xff";
        for body in [&listpack[..], b"\x12\x01\x01\x05abcde", b"\x01\x01\x05abcde", ziplist] {
            assert_eq!(elements_within(body, 5).unwrap().last().unwrap(), b"abcde");
            assert_eq!(elements_within(body, 4), Err(RestoreError::TooLong { len: 5, limit: 4 }));
        }
    }
}
