//! Finds the end of replies, for a client that reads them only when they are whole.

use super::client::{ReplyLimits, TOO_MANY, Token, next_token};
use super::error::ProtocolError;

/// Finds where a reply ends, in a connection's buffer.
///
/// The bytes of an unfinished reply must stay at the buffer's start; what has been looked at is not looked at again.
#[derive(Debug, Default)]
pub struct ReplyScanner {
    position: usize,
    /// Number of values to come; 0 between replies.
    missing: usize,
}

impl ReplyScanner {
    /// Looks on in `buffer`. `Some(n)`: the first `n` bytes are a whole reply, and the next call is about the next one.
    /// `None`: more bytes are needed.
    ///
    /// # Errors
    /// The connection cannot go on: [`ProtocolError::InvalidReply`] and [`ProtocolError::ReplyTooBig`].
    pub fn scan(&mut self, buffer: &[u8], limits: &ReplyLimits) -> Result<Option<usize>, ProtocolError> {
        if self.missing == 0 {
            self.missing = 1;
        }
        while let Some((token, taken)) = next_token(&buffer[self.position..], limits)? {
            self.position += taken;
            let parts = match token {
                Token::Array(count) | Token::Set(count) | Token::Push(count) => Some(count),
                Token::Map(count) => count.checked_mul(2),
                Token::Attribute(count) => count.checked_mul(2).and_then(|parts| parts.checked_add(1)),
                _ => Some(0),
            };
            let missing = parts.and_then(|parts| parts.checked_add(self.missing - 1));
            self.missing = missing.filter(|&missing| missing <= limits.max_values).ok_or(TOO_MANY)?;
            if self.missing == 0 {
                return Ok(Some(std::mem::take(&mut self.position)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Protocol, ReplyBuffer, ReplyParser};
    use proptest::prelude::*;

    /// The lengths of all whole replies, as they are found when the stream arrives in pieces.
    fn scan_in_pieces(stream: &[u8], piece: usize) -> Result<Vec<usize>, ProtocolError> {
        let mut scanner = ReplyScanner::default();
        let (mut buffer, mut lengths) = (Vec::new(), Vec::new());
        for piece in stream.chunks(piece) {
            buffer.extend_from_slice(piece);
            while let Some(taken) = scanner.scan(&buffer, &ReplyLimits::default())? {
                lengths.push(taken);
                buffer.drain(..taken);
            }
        }
        Ok(lengths)
    }

    #[test]
    fn a_reply_ends_where_its_last_part_ends() {
        let replies: [&[u8]; 8] = [
            b"+OK\r\n",
            b"$4\r\na\r\nb\r\n",
            b"*0\r\n",
            b"*2\r\n*1\r\n:1\r\n$-1\r\n",
            b"%1\r\n+a\r\n~2\r\n:1\r\n:2\r\n",
            b"|1\r\n+ttl\r\n:9\r\n$1\r\nx\r\n",
            b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
            b"=6\r\ntxt:hi\r\n",
        ];
        let lengths: Vec<usize> = replies.iter().map(|reply| reply.len()).collect();
        for piece in 1..20 {
            assert_eq!(scan_in_pieces(&replies.concat(), piece), Ok(lengths.clone()));
        }
    }

    #[test]
    fn claims_beyond_the_limit_are_refused() {
        let limits = ReplyLimits { max_values: usize::MAX, ..ReplyLimits::default() };
        for stream in [
            &b"*9223372036854775807\r\n*9223372036854775807\r\n*9223372036854775807\r\n"[..],
            b"%9223372036854775807\r\n%9223372036854775807\r\n",
        ] {
            assert_eq!(ReplyScanner::default().scan(stream, &limits), Err(TOO_MANY));
        }
    }

    proptest! {
        #[test]
        fn a_scanner_finds_the_replies_that_a_parser_finds(
            stream in prop::collection::vec(
                prop::sample::select(&b"+-:$*%~>|!=,#_(0123tf\r\n\r\n\r\n"[..]), 0..120),
            piece in 1usize..10,
        ) {
            let mut parser = ReplyParser::default();
            let (mut rest, mut lengths) = (&stream[..], Vec::new());
            while let Ok(Some((_, taken))) = parser.parse(rest, &ReplyLimits::default()) {
                lengths.push(taken);
                rest = &rest[taken..];
            }
            if let Ok(scanned) = scan_in_pieces(&stream, piece) {
                prop_assert_eq!(scanned, lengths);
            }
        }

        #[test]
        fn values_of_any_bytes_end_where_they_say(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..9), piece in 1usize..40) {
            let mut replies = ReplyBuffer::new(Protocol::Resp3);
            replies.array(values.len());
            values.iter().for_each(|value| replies.bulk(value));
            prop_assert_eq!(scan_in_pieces(replies.as_bytes(), piece), Ok(vec![replies.as_bytes().len()]));
        }
    }
}
