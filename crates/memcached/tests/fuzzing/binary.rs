//! Any packets are the same requests in pieces as at once, and are answered in packets. The first byte
//! chooses the pieces. An empty packet is put in front, so that what begins as text is taken for binary as
//! well.

use crate::requests;

/// The packet that asks for nothing.
const NO_OP: &[u8; 24] = b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

pub fn run(input: &[u8]) {
    let Some((&piece, stream)) = input.split_first() else { return };
    let stream = [NO_OP, stream].concat();
    requests::check(&stream, usize::from(piece) + 1, check);
}

/// Checks that a reply is whole packets.
fn check(mut reply: &[u8]) {
    while !reply.is_empty() {
        let header = reply.first_chunk::<24>().expect("a whole header");
        let [magic, _, key_0, key_1, extras, ..] = *header;
        let key = usize::from(u16::from_be_bytes([key_0, key_1]));
        let body = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        assert_eq!(magic, 0x81);
        assert!(key + usize::from(extras) <= body);
        reply = reply.get(24 + body..).expect("a whole body");
    }
}
