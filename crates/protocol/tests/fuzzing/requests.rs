//! Any bytes, in any pieces, are the same requests and the same refusal as at once. The first byte chooses the pieces.

use snugly_protocol::resp::{Limits, ProtocolError, RequestParser};

pub fn run(input: &[u8]) {
    let Some((&pieces, stream)) = input.split_first() else { return };
    let limits = Limits {
        max_inline: 256,
        max_bulk: 512,
        max_args: 64,
        max_request: 4096,
        authenticated: pieces & 1 == 0,
    };
    assert_eq!(
        parse(stream, usize::from(pieces >> 1) + 1, &limits),
        parse(stream, stream.len().max(1), &limits)
    );
}

type Requests = Vec<Vec<Vec<u8>>>;

fn parse(stream: &[u8], piece: usize, limits: &Limits) -> (Requests, Option<ProtocolError>) {
    let mut parser = RequestParser::default();
    let (mut buffer, mut requests) = (Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match parser.parse(&buffer, limits) {
                Ok(Some(taken)) => {
                    let args = parser.args(&buffer);
                    assert!(args.iter().map(<[u8]>::len).sum::<usize>() <= taken);
                    requests.push(args.iter().map(<[u8]>::to_vec).collect());
                    buffer.drain(..taken);
                }
                Ok(None) => {
                    assert!(buffer.is_empty() || parser.wanted() > 0);
                    break;
                }
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}
