//! Any bytes, in any pieces, are the same replies and the same refusal as at once. The first byte chooses the pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use snugly_protocol::resp::{ProtocolError, ReplyLimits, ReplyParser};

fuzz_target!(|input: &[u8]| {
    let Some((&piece, stream)) = input.split_first() else { return };
    let limits = ReplyLimits { max_bulk: 512, max_values: 256, max_depth: 8 };
    assert_eq!(parse(stream, usize::from(piece) + 1, &limits), parse(stream, stream.len().max(1), &limits));
});

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
