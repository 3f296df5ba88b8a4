//! Any flags of a meta command are the same request in pieces as at once, and are answered in lines. The
//! first byte chooses the pieces, and the second one the command.

use crate::{lines, requests};

const COMMANDS: [&[u8]; 6] = [b"mg ", b"ms ", b"md ", b"ma ", b"me ", b"mn "];

pub fn run(input: &[u8]) {
    let Some((&[piece, command], flags)) = input.split_first_chunk::<2>() else { return };
    let command = COMMANDS[usize::from(command) % COMMANDS.len()];
    let stream = [command, flags, b"\r\nmn\r\n"].concat();
    requests::check(&stream, usize::from(piece) + 1, lines::check);
}
