//! Any type and value in front of a footer that fits is restored within the limit or refused, and what is restored
//! comes back when it is dumped. The first two bytes are the limit.

use snugly_protocol::rdb::{
    Node, RestoreError, Value, VersionCheck, append_footer, dump, dumped_len, restore,
};

/// Bytes that a list may have.
const LIST_LIMIT: usize = 1 << 20;

pub fn run(input: &[u8]) {
    let Some((limit, body)) = input.split_first_chunk::<2>() else { return };
    let limit = usize::from(u16::from_le_bytes(*limit));
    let mut payload = body.to_vec();
    append_footer(0, &mut payload);
    match restore(&payload, limit, LIST_LIMIT, VersionCheck::Strict) {
        Ok(value) => {
            match &value {
                Value::String(bytes) => assert!(bytes.len() <= limit),
                Value::List(nodes) => {
                    let mut elements = nodes.iter().flat_map(Node::elements).peekable();
                    assert!(elements.peek().is_some());
                    assert!(elements.all(|element| element.with_bytes(|bytes| bytes.len() <= limit)));
                }
            }
            let mut dumped = Vec::new();
            dump(&value, &mut dumped);
            assert_eq!(dumped.len(), dumped_len(&value));
            let again = restore(&dumped, limit, usize::MAX, VersionCheck::Strict);
            assert_eq!(again.expect("what is dumped can be restored"), value);
        }
        Err(error) => assert_ne!(error, RestoreError::Footer),
    }
    // The same bytes with whatever footer they have.
    let _ = restore(body, limit, LIST_LIMIT, VersionCheck::Relaxed);
}
