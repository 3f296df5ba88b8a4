//! A published message as clients get it: framed once for each version of the protocol that a listener speaks.

use std::cell::OnceCell;

use snugly_protocol::resp::{Protocol, ReplyBuffer};

/// A message, which is a push in RESP3 and an array in RESP2.
pub(super) struct Message<'a> {
    parts: &'a [&'a [u8]],
    resp2: OnceCell<Vec<u8>>,
    resp3: OnceCell<Vec<u8>>,
}

impl<'a> Message<'a> {
    /// A message of its kind's name, the pattern that a channel matches, the channel and the text.
    pub(super) fn new(parts: &'a [&'a [u8]]) -> Message<'a> {
        Message { parts, resp2: OnceCell::new(), resp3: OnceCell::new() }
    }

    /// The bytes for a client that speaks this version.
    pub(super) fn framed(&self, protocol: Protocol) -> &[u8] {
        let framed = match protocol {
            Protocol::Resp2 => &self.resp2,
            Protocol::Resp3 => &self.resp3,
        };
        framed.get_or_init(|| {
            let mut message = ReplyBuffer::new(protocol);
            message.push(self.parts.len());
            self.parts.iter().for_each(|part| message.bulk(part));
            std::mem::take(message.as_mut_vec())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_an_array_in_resp2_and_a_push_in_resp3() {
        let message = Message::new(&[b"message", b"news", b"a\r\nb"]);
        let body = "$7\r\nmessage\r\n$4\r\nnews\r\n$4\r\na\r\nb\r\n";
        assert_eq!(message.framed(Protocol::Resp2), format!("*3\r\n{body}").as_bytes());
        assert_eq!(message.framed(Protocol::Resp3), format!(">3\r\n{body}").as_bytes());
    }
}
