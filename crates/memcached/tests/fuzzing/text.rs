//! Any bytes of the text protocol are the same requests in pieces as at once, and are answered in lines. The
//! first byte chooses the pieces. A command is put in front, so that what begins as binary is taken for text
//! as well.

use crate::{lines, requests};

pub fn run(input: &[u8]) {
    let Some((&piece, stream)) = input.split_first() else { return };
    let stream = [b"version\r\n", stream].concat();
    requests::check(&stream, usize::from(piece) + 1, lines::check);
}
