//! How requests follow each other, whatever they ask for; and what the tests of each protocol use.

use super::*;
use crate::MAX_KEY;
use proptest::prelude::*;

/// Limits that tests reach: values of 100 bytes.
pub(crate) const LIMITS: Limits = Limits { max_value: 100, max_line: 10_000 };

/// What a stream of requests is, in pieces of `piece` bytes: operations as text, and refusals as they are
/// answered.
pub(crate) fn told_in_pieces(stream: &[u8], piece: usize, limits: &Limits) -> Vec<String> {
    let (mut parser, mut buffer, mut told) = (RequestParser::default(), Vec::new(), Vec::new());
    for piece in stream.chunks(piece.max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            match parser.parse(&buffer, limits) {
                Parsed::Request(request, taken) => {
                    assert!((1..=buffer.len()).contains(&taken));
                    told.push(tell(&request));
                    buffer.drain(..taken);
                }
                Parsed::Skipped(taken) => {
                    assert!((1..=buffer.len()).contains(&taken));
                    buffer.drain(..taken);
                }
                Parsed::Incomplete { wanted } => {
                    assert!(wanted > 0 && wanted <= buffer.len().max(WANTED_FLOOR));
                    break;
                }
            }
        }
    }
    told
}

/// What a stream of requests is.
pub(crate) fn told(stream: &[u8]) -> Vec<String> {
    told_in_pieces(stream, stream.len(), &LIMITS)
}

/// What one request is, with nothing behind it.
pub(crate) fn told_one(stream: &[u8]) -> String {
    told(stream).join(" | ")
}

/// A packet of the binary protocol, with the opaque 0xdeadbeef.
pub(crate) fn packet(opcode: u8, extras: &[u8], key: &[u8], value: &[u8], cas: u64) -> Vec<u8> {
    let body = (extras.len() + key.len() + value.len()) as u32;
    let mut packet = vec![binary::MAGIC, opcode];
    packet.extend_from_slice(&(key.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
    packet.extend_from_slice(&body.to_be_bytes());
    packet.extend_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    packet.extend_from_slice(&cas.to_be_bytes());
    [&packet, extras, key, value].concat()
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// A request in a few words.
fn tell(request: &Request<'_>) -> String {
    let key = |key: Key<'_>| text(key.bytes(&mut [0; MAX_KEY]));
    match request.operation {
        Operation::Refused(refused) => {
            let mut reply = Vec::new();
            request.form.refused(refused.refusal, &mut reply);
            let superseded = refused.superseded.map(|name| format!(" deleting {}", key(name)));
            let closing = if refused.closes { " closing" } else { "" };
            format!("{}{}{closing}", text(reply.trim_ascii_end()), superseded.unwrap_or_default())
        }
        Operation::Get(get) => {
            let mut words = format!("get {}", key(get.key));
            let mut add = |name: &str, time: Option<crate::Exptime>| {
                words.extend(time.map(|time| format!(" {name} {}", time.0)));
            };
            add("touch", get.touch);
            add("vivify", get.vivify);
            add("recache", get.recache.map(|recache| recache.left));
            words += if get.recache.is_some_and(|recache| recache.of_touched) { " of touched" } else { "" };
            words.extend(get.new_cas.map(|cas| format!(" new {cas}")));
            words += if get.wants_value { "" } else { " without value" };
            words + if get.counts_as_use { "" } else { " unnoticed" }
        }
        Operation::Store(store) => {
            let mut words =
                format!("{:?} {} {} {}", store.mode, key(store.key), store.flags, store.exptime.0);
            words.extend(store.compare.map(|cas| format!(" if {cas}")));
            words.extend(store.new_cas.map(|cas| format!(" new {cas}")));
            words.extend(store.vivify.map(|time| format!(" vivify {}", time.0)));
            words += if store.invalidate { " invalidate" } else { "" };
            format!("{words} = {}", text(store.value))
        }
        Operation::Delete(delete) => {
            let mut words = format!("delete {}", key(delete.key));
            words.extend(delete.compare.map(|cas| format!(" if {cas}")));
            words.extend(delete.new_cas.map(|cas| format!(" new {cas}")));
            words.extend(delete.exptime.map(|time| format!(" expire {}", time.0)));
            words += if delete.invalidate { " invalidate" } else { "" };
            words + if delete.keeps_item { " value only" } else { "" }
        }
        Operation::Arithmetic(sum) => {
            let mut words = format!("{:?} {} {}", sum.direction, key(sum.key), sum.delta);
            words.extend(sum.initial.map(|first| format!(" from {} {}", first.value, first.exptime.0)));
            words.extend(sum.compare.map(|cas| format!(" if {cas}")));
            words.extend(sum.new_cas.map(|cas| format!(" new {cas}")));
            words.extend(sum.exptime.map(|time| format!(" expire {}", time.0)));
            words
        }
        Operation::Touch { key: name, exptime } => format!("touch {} {}", key(name), exptime.0),
        Operation::MetaDebug { key: name } => format!("debug {}", key(name)),
        Operation::FlushAll { delay } => format!("flush {}", delay.0),
        Operation::Stats { topic } => format!("stats {}", text(topic)),
        Operation::Authenticate { mechanism, response, is_step } => {
            format!("authenticate {} {} {is_step}", text(mechanism), text(response))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn the_first_byte_decides_which_protocol_a_connection_speaks() {
    let mut parser = RequestParser::default();
    assert_eq!(parser.parse(b"", &LIMITS), Parsed::Incomplete { wanted: 1 });
    assert_eq!(parser.protocol(), None);
    parser.parse(b"m", &LIMITS);
    assert_eq!(parser.protocol(), Some(Protocol::Text));
    assert_eq!(told(b"mn\r\n\x80\r\n"), ["NoOp", "ERROR"]);
    let mut parser = RequestParser::default();
    assert_eq!(parser.parse(b"\x80\r\n", &LIMITS), Parsed::Incomplete { wanted: 21 });
    assert_eq!(parser.protocol(), Some(Protocol::Binary));
}

#[test]
fn text_and_meta_may_be_mixed() {
    assert_eq!(told(b"get a\r\nmn\nversion\r\n"), ["get a", "NoOp", "Version"]);
}

#[test]
fn the_bytes_of_a_refused_value_are_passed_over() {
    let long = "flush_all\r\n".repeat(20);
    let stream = format!("set a 0 0 {}\r\n{long}\r\nmn\r\n", long.len());
    let expected = ["SERVER_ERROR object too large for cache deleting a", "NoOp"];
    for piece in [1, 7, stream.len()] {
        assert_eq!(told_in_pieces(stream.as_bytes(), piece, &LIMITS), expected);
    }
    assert_eq!(told(b"set a x 0 3\r\nmn\n\r\nmn\r\n"), ["CLIENT_ERROR bad command line format", "NoOp"]);
    assert_eq!(told(b"set a x 0 0\r\n\r\nmn\r\n"), ["CLIENT_ERROR bad command line format", "NoOp"]);
}

#[test]
fn after_a_value_that_ends_wrongly_the_rest_of_its_line_is_passed_over() {
    let refused = "CLIENT_ERROR bad data chunk";
    assert_eq!(told(b"set a 0 0 3\r\nabcdef\r\nmn\r\n"), [refused, "NoOp"]);
    assert_eq!(told(b"set a 0 0 6\r\nabc\r\nget a\r\nmn\r\n"), [refused, "NoOp"]);
    assert_eq!(told(b"set a 0 0 3\nabc\nget a\r\nmn\r\n"), [refused, "NoOp"]);
    assert_eq!(told(b"set a 0 0 3\r\nabcd\nmn\r\n"), [refused, "NoOp"]);
    assert_eq!(told(b"ms a 3\r\nabcdef\r\nmn\r\n"), [refused, "NoOp"]);
    assert_eq!(told(b"ms a 3 q\r\nabcdef\r\nmn\r\n"), [refused, "NoOp"]);
    assert_eq!(told(b"set a 0 0 3 noreply\r\nabcdef\r\nmn\r\n"), ["", "NoOp"]);
}

#[test]
fn a_length_that_no_value_can_have_closes_the_connection() {
    for length in ["2147483646", "2147483647", "99999999999999999999999"] {
        let refused = ["CLIENT_ERROR bad command line format closing"];
        assert_eq!(told(format!("set a 0 0 {length}\r\nmn\r\n").as_bytes()), refused);
        assert_eq!(told(format!("ms a {length}\r\nmn\r\n").as_bytes()), refused);
    }
}

#[test]
fn a_line_without_an_end_closes_the_connection() {
    assert_eq!(told(&[b'x'; 2048]), [""; 0]);
    assert_eq!(told(&[b'x'; 2049]), [" closing"]);
    let line = [&[b'x'; 2048][..], b"\nmn\r\n"].concat();
    assert_eq!(told(&line), ["ERROR", "NoOp"]);
    let line = [&[b'x'; 2049][..], b"\nmn\r\n"].concat();
    for piece in [1, 500, line.len()] {
        assert_eq!(told_in_pieces(&line, piece, &LIMITS), [" closing"]);
    }
}

#[test]
fn a_line_of_keys_may_be_long() {
    for name in ["get", "gets", "gat 0", "   gats 0"] {
        let line = format!("{name}{}\r\nmn\r\n", " key".repeat(2000));
        for piece in [1, 1000, line.len()] {
            let told = told_in_pieces(line.as_bytes(), piece, &LIMITS);
            assert_eq!((told.len(), told.last().map(String::as_str)), (2001, Some("NoOp")));
        }
    }
    let line = format!("get{}\r\nmn\r\n", " key".repeat(3000));
    for piece in [1, 1000, line.len()] {
        assert_eq!(told_in_pieces(line.as_bytes(), piece, &LIMITS), [" closing"]);
    }
    let line = format!("{}get{}\r\n", " ".repeat(101), " key".repeat(600));
    assert_eq!(told(line.as_bytes()), [" closing"]);
}

#[test]
fn a_parser_that_is_put_back_parses_the_same_again() {
    let stream = b"get a b c\r\nset k 0 0 1\r\nv\r\nmg x v\r\n";
    let (mut parser, mut at, mut told) = (RequestParser::default(), 0, Vec::new());
    while at < stream.len() {
        let before = parser;
        let first = parser.parse(&stream[at..], &LIMITS);
        parser = before;
        let again = parser.parse(&stream[at..], &LIMITS);
        assert_eq!(first, again);
        let Parsed::Request(request, taken) = again else { panic!("{again:?}") };
        told.push(tell(&request));
        at += taken;
    }
    assert_eq!(told, ["get a", "get b", "get c", "Set k 0 0 = v", "get x"]);
}

#[test]
fn no_more_is_wanted_than_has_arrived_or_16_kib() {
    let limits = Limits { max_value: 1 << 30, ..LIMITS };
    let mut parser = RequestParser::default();
    let wanted = parser.parse(b"set a 0 0 1000000000\r\n", &limits);
    assert_eq!(wanted, Parsed::Incomplete { wanted: WANTED_FLOOR });
    let wanted = parser.parse(b"set a 0 0 100\r\n0123456789", &limits);
    assert_eq!(wanted, Parsed::Incomplete { wanted: 92 });
}

#[test]
fn a_parser_is_small() {
    assert!(size_of::<RequestParser>() <= 64, "{}", size_of::<RequestParser>());
    assert!(size_of::<Parsed<'_>>() <= 256, "{}", size_of::<Parsed<'_>>());
}

/// Pieces of lines that come near to what is allowed.
fn fragment() -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(vec![
        &b"get "[..],
        b"gets ",
        b"gat 0 ",
        b"set ",
        b"cas ",
        b"incr ",
        b"delete ",
        b"touch ",
        b"flush_all ",
        b"mg ",
        b"ms ",
        b"md ",
        b"ma ",
        b"me ",
        b"mn",
        b"a ",
        b"key ",
        b"0 ",
        b"3 ",
        b"-1 ",
        b"99 ",
        b"200 ",
        b"2147483647 ",
        b"noreply",
        b"v ",
        b"q ",
        b"k ",
        b"b ",
        b"Zm9v ",
        b"T30 ",
        b"Oop ",
        b"MA ",
        b"C1 ",
        b"\r\n",
        b"\r\n",
        b"\r\n",
        b"\n",
        b"abc\r\n",
        b"\0",
        b"\x80",
    ])
}

proptest! {
    #[test]
    fn any_lines_mean_the_same_in_pieces_as_at_once(
        fragments in prop::collection::vec(fragment(), 0..60),
        piece in 1usize..40,
    ) {
        let stream = fragments.concat();
        let whole = told_in_pieces(&stream, stream.len(), &LIMITS);
        prop_assert_eq!(told_in_pieces(&stream, piece, &LIMITS), whole);
    }

    #[test]
    fn any_value_comes_back_from_its_set(
        value in prop::collection::vec(any::<u8>(), 0..100),
        key in "[!-~]{1,250}",
        flags: u32,
        time: i32,
    ) {
        let mut stream = format!("set {key} {flags} {time} {}\r\n", value.len()).into_bytes();
        stream.extend_from_slice(&value);
        stream.extend_from_slice(b"\r\n");
        let mut parser = RequestParser::default();
        let Parsed::Request(request, taken) = parser.parse(&stream, &LIMITS) else { panic!() };
        let Operation::Store(store) = request.operation else { panic!() };
        prop_assert_eq!((store.key.plain(), store.value), (Some(key.as_bytes()), &value[..]));
        prop_assert_eq!((store.flags, store.exptime.0, taken), (flags, time.into(), stream.len()));
    }
}
