//! Nanoseconds per request and per reply, beside the crate redis-protocol in the same run.
//!
//! `cargo bench -p snugly-protocol`

use std::hint::black_box;
use std::time::{Duration, Instant};

use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::encode::encode_borrowed;
use redis_protocol::resp2::types::BorrowedFrame;
use snugly_protocol::resp::{
    Limits, Protocol, ReplyBuffer, ReplyLimits, RequestParser, encode_command, next_token,
};

const BATCH: usize = 64;
const ROUND: Duration = Duration::from_millis(200);
const ROUNDS: usize = 5;

fn main() {
    println!("{:<34} {:>10} {:>16} {:>8}", "pipelines of 64", "snugly ns", "redis-protocol ns", "ratio");
    let value = vec![b'v'; 900];
    let get = batch(|out, key| encode_command(&[b"GET", key], out));
    let set = batch(|out, key| encode_command(&[b"SET", key, &value], out));
    let replies = batch(|out, _| {
        let mut reply = ReplyBuffer::new(Protocol::Resp2);
        reply.bulk(&value);
        out.extend_from_slice(reply.as_bytes());
    });

    compare("parse GET", || parse_requests(&get), || peer_parse(&get));
    compare("parse SET of 900 bytes", || parse_requests(&set), || peer_parse(&set));
    compare("read a reply of 900 bytes", || parse_replies(&replies), || peer_parse(&replies));

    let mut ours = ReplyBuffer::new(Protocol::Resp2);
    let mut theirs = vec![0; 1 << 20];
    compare(
        "write +OK",
        || write(&mut ours, |reply| reply.simple("OK")),
        || peer_write(&mut theirs, &BorrowedFrame::SimpleString(b"OK")),
    );
    compare(
        "write an integer",
        || write(&mut ours, |reply| reply.integer(black_box(123_456))),
        || peer_write(&mut theirs, &BorrowedFrame::Integer(black_box(123_456))),
    );
    compare(
        "write a reply of 900 bytes",
        || write(&mut ours, |reply| reply.bulk(&value)),
        || peer_write(&mut theirs, &BorrowedFrame::BulkString(&value)),
    );
    compare(
        "write the head of a reply",
        || {
            write(&mut ours, |reply| {
                reply.begin_bulk(black_box(900));
                reply.end_bulk();
            })
        },
        || peer_write(&mut theirs, &BorrowedFrame::BulkString(b"")),
    );
}

fn batch(mut write: impl FnMut(&mut Vec<u8>, &[u8])) -> Vec<u8> {
    let mut out = Vec::new();
    for index in 0..BATCH {
        write(&mut out, format!("key:{index:012}").as_bytes());
    }
    out
}

fn parse_requests(mut stream: &[u8]) {
    let limits = Limits::default();
    let mut parser = RequestParser::default();
    while let Ok(Some(taken)) = parser.parse(stream, &limits) {
        black_box(parser.args(stream).get(1));
        stream = &stream[taken..];
    }
    assert!(stream.is_empty());
}

fn parse_replies(mut stream: &[u8]) {
    let limits = ReplyLimits::default();
    while let Ok(Some((token, taken))) = next_token(stream, &limits) {
        black_box(token);
        stream = &stream[taken..];
    }
    assert!(stream.is_empty());
}

fn peer_parse(mut stream: &[u8]) {
    while let Ok(Some((frame, taken))) = decode_range(stream) {
        black_box(frame);
        stream = &stream[taken..];
    }
    assert!(stream.is_empty());
}

fn write(replies: &mut ReplyBuffer, one: impl Fn(&mut ReplyBuffer)) {
    replies.as_mut_vec().clear();
    for _ in 0..BATCH {
        one(replies);
    }
    black_box(replies.as_bytes());
}

fn peer_write(out: &mut [u8], frame: &BorrowedFrame<'_>) {
    let mut rest = &mut out[..];
    for _ in 0..BATCH {
        let written = encode_borrowed(rest, frame, false).expect("the buffer is large enough");
        rest = &mut rest[written..];
    }
    black_box(out);
}

/// Runs both in turns and prints the best round of each.
fn compare(name: &str, mut ours: impl FnMut(), mut theirs: impl FnMut()) {
    let (mut best, mut best_peer) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        best = best.min(nanoseconds(&mut ours));
        best_peer = best_peer.min(nanoseconds(&mut theirs));
    }
    println!("{name:<34} {best:>10.1} {best_peer:>16.1} {:>8.2}", best / best_peer);
}

/// Nanoseconds per request, of which `run` does a batch.
fn nanoseconds(run: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut requests = 0;
    while start.elapsed() < ROUND {
        for _ in 0..16 {
            run();
        }
        requests += 16 * BATCH;
    }
    start.elapsed().as_nanos() as f64 / requests as f64
}
