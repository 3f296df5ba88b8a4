//! Any bytes, in any pieces, are the same replies and the same refusal as at once, and a scanner finds where they end.
//! The first byte chooses the pieces.

use snugly_protocol::resp::{ProtocolError, ReplyLimits, ReplyParser, ReplyScanner};

pub fn run(input: &[u8]) {
    let Some((&piece, stream)) = input.split_first() else { return };
    let limits = ReplyLimits { max_bulk: 512, max_values: 256, max_depth: 8 };
    let piece = usize::from(piece) + 1;
    let parsed = parse(stream, piece, &limits);
    assert_eq!(parsed, parse(stream, stream.len().max(1), &limits));
    let scanned = scan(stream, piece, &limits);
    assert_eq!(scanned, scan(stream, stream.len().max(1), &limits));
    // A scanner knows no depth, and counts no values that are there already; else it finds what a parser finds.
    if parsed.1.is_none() {
        assert_eq!(scanned.0, parsed.0.len());
    }
}

/// Number of whole replies.
fn scan(stream: &[u8], piece: usize, limits: &ReplyLimits) -> (usize, Option<ProtocolError>) {
    let mut scanner = ReplyScanner::default();
    let (mut buffer, mut replies) = (Vec::new(), 0);
    for piece in stream.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match scanner.scan(&buffer, limits) {
                Ok(Some(taken)) => {
                    replies += 1;
                    buffer.drain(..taken);
                }
                Ok(None) => break,
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    (replies, None)
}

/// The replies as text, in which not-a-number equals itself.
fn parse(stream: &[u8], piece: usize, limits: &ReplyLimits) -> (Vec<String>, Option<ProtocolError>) {
    let mut parser = ReplyParser::default();
    let (mut buffer, mut replies) = (Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match parser.parse(&buffer, limits) {
                Ok(Some((value, taken))) => {
                    replies.push(format!("{value:?}"));
                    buffer.drain(..taken);
                }
                Ok(None) => break,
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    (replies, None)
}
