//! The request parser beside a real valkey-server: the same raw bytes must be taken for the same requests, or be
//! refused in the same words.

use crate::servers::{Server, parse_replies};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use snugly_protocol::resp::{
    Limits, Protocol, ReplyBuffer, RequestParser, Value, encode_command, format_double,
};

/// Random cases of each kind, a connection each: about two seconds.
const CASES: u32 = 5000;

/// The replies of a server with the commands PING and ECHO that reads with our parser; other commands are marked `?`.
fn expected(stream: &[u8]) -> Vec<Value> {
    let mut parser = RequestParser::default();
    let mut values = Vec::new();
    let mut rest = stream;
    loop {
        match parser.parse(rest, &Limits::default()) {
            Ok(None) => return values,
            Ok(Some(taken)) => {
                let args: Vec<&[u8]> = parser.args(rest).iter().collect();
                let name = args.first().map(|name| name.to_ascii_uppercase());
                match (name.as_deref(), &args[..]) {
                    (None, _) => {}
                    (Some(b"PING"), [_]) => values.push(Value::Simple(b"PONG".to_vec())),
                    (Some(b"PING" | b"ECHO"), [_, text]) => values.push(Value::Bulk(text.to_vec())),
                    _ => values.push(Value::Error(b"?".to_vec())),
                }
                rest = &rest[taken..];
            }
            Err(error) => {
                let mut reply = ReplyBuffer::new(Protocol::Resp2);
                reply.protocol_error(&error);
                values.push(parse_replies(reply.as_bytes()).remove(0));
                return values;
            }
        }
    }
}

fn assert_same(server: &Server, stream: &[u8]) {
    let ours = expected(stream);
    let mut theirs = parse_replies(&server.exchange(stream).unwrap());
    for (their, our) in theirs.iter_mut().zip(&ours) {
        let refused = matches!(their, Value::Error(text) if !text.starts_with(b"ERR Protocol error"));
        if refused && *our == Value::Error(b"?".to_vec()) {
            *their = our.clone();
        }
    }
    assert_eq!(theirs, ours, "for {}", stream.escape_ascii());
}

#[test]
fn inline_requests_are_split_as_valkey_splits_them() {
    let server = Server::valkey(&[]);
    let word = prop::collection::vec(prop::sample::select(&b"ab\\\\\"\"''xn4 \t\x0b\x0c\r;\xfe"[..]), 0..12);
    let stream = prop::collection::vec(word, 1..4).prop_map(|words| {
        let lines = words.into_iter().map(|word| [b"ECHO ", &word[..], b"\n"].concat());
        lines.collect::<Vec<_>>().concat()
    });
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(CASES) })
        .run(&stream, |stream| {
            assert_same(&server, &stream);
            Ok(())
        })
        .unwrap();
}

#[test]
fn damaged_requests_are_read_or_refused_as_valkey_does() {
    let server = Server::valkey(&[]);
    let request = prop_oneof![
        Just(b"*1\r\n$4\r\nPING\r\n".to_vec()),
        Just(b"*0\r\n".to_vec()),
        Just(b"PING\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|text| {
            let mut out = Vec::new();
            encode_command(&[b"ECHO", &text[..]], &mut out);
            out
        }),
    ];
    // In an inline request a NUL makes Valkey wait for ever, and it takes the byte ff for an end. Nobody can rely upon
    // that: both are left out.
    let damage = prop::sample::select(&b"*$0123456789-+ \r\n\r\n'\"x\xfe"[..]);
    let edit = (any::<prop::sample::Index>(), 0..3u8, damage);
    let stream = (prop::collection::vec(request, 1..4), prop::collection::vec(edit, 0..4));
    let stream = stream.prop_map(|(requests, edits)| {
        let mut stream = requests.concat();
        stream.retain(|&byte| !matches!(byte, 0 | 0xff));
        for (index, kind, byte) in edits {
            let at = index.index(stream.len());
            match kind {
                0 => stream[at] = byte,
                1 => stream.insert(at, byte),
                _ if stream.len() > 1 => drop(stream.remove(at)),
                _ => {}
            }
        }
        stream
    });
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(CASES) })
        .run(&stream, |stream| {
            assert_same(&server, &stream);
            Ok(())
        })
        .unwrap();
}

#[test]
fn refusals_of_header_lines_are_those_of_valkey() {
    let server = Server::valkey(&[]);
    for line in [
        "",
        "0",
        "-1",
        "-0",
        "01",
        "+1",
        " 1",
        "1 ",
        "1x",
        "x",
        "\0",
        "1\0",
        "2147483648",
        "99999999999999999999",
    ] {
        assert_same(&server, format!("*{line}\r\nPING\r\n").as_bytes());
        assert_same(&server, format!("*1\r\n${line}\r\n\r\n\r\n").as_bytes());
    }
    for byte in 0..=255u8 {
        assert_same(&server, &[b"*1\r\n", &[byte][..], b"4\r\nPING\r\n"].concat());
    }
}

/// Valkey's algorithm (Grisu2) misses the shortest or nearest form of less than one number in a hundred: it reads back
/// as the same number with as many digits or more.
#[test]
fn doubles_are_written_as_valkey_writes_them_or_shorter() {
    let server = Server::valkey(&[]);
    let double = prop_oneof![
        any::<f64>(),
        any::<i64>().prop_map(|value| value as f64),
        any::<i32>().prop_map(|value| f64::from(value) / 1000.0),
        (-330i32..310).prop_map(|power| 10f64.powi(power)),
        (any::<u32>(), -40i32..40).prop_map(|(digits, power)| f64::from(digits) * 10f64.powi(power)),
    ];
    let longer = std::cell::Cell::new(0);
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(CASES) })
        .run(&double, |value| {
            let mut ours = Vec::new();
            format_double(value, &mut ours);
            let mut stream = Vec::new();
            encode_command(&["ZADD", "doubles", &format!("{value:e}"), "member"], &mut stream);
            encode_command(&["ZSCORE", "doubles", "member"], &mut stream);
            let Value::Bulk(theirs) = parse_replies(&server.exchange(&stream).unwrap()).remove(1) else {
                panic!("no score")
            };
            if theirs != ours {
                longer.set(longer.get() + 1);
                let theirs = String::from_utf8(theirs).unwrap();
                assert_eq!(theirs.parse(), Ok(value));
                assert!(significant_digits(&theirs) >= significant_digits(&format!("{value:e}")), "{theirs}");
            }
            Ok(())
        })
        .unwrap();
    assert!(longer.get() <= CASES / 100, "{} of {CASES} differ", longer.get());
}

fn significant_digits(number: &str) -> usize {
    let mantissa = number.split('e').next().unwrap().replace(['-', '.'], "");
    mantissa.trim_matches('0').len()
}
