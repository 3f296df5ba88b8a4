//! What the fuzzer calls: any bytes taken for what a store holds, behind checksums that are right, since a wrong one is
//! the end of every parser.

use super::dictionary::DictionaryRow;
use super::journal;
use super::row::{self, Body, Row, RowKey};
use super::state::{self, Identity, State};
use crate::quicklist::stored::Directory;

/// Takes the bytes for a row, its chunks, an identity and a state. What a parser accepts must be what it was given.
pub fn parse_anything(bytes: &[u8]) {
    let row_key = RowKey::new(1, 2, 3);
    let sealed = row::with_checksum(row_key, bytes);
    if let Ok(row) = Row::parse(row_key, &sealed) {
        assert_eq!(row.len, sealed.len());
        match &row.body {
            Body::Inline(record) => drop(row::verify_record(record)),
            Body::Chunked(chunks) => {
                chunks.count();
                let _ = row::verify_chunked(&row, chunks, bytes);
            }
        }
    }
    if let Ok((at, row_key)) = row::parse_expiry_key(bytes) {
        assert_eq!(row_key.expiry_key(at), bytes);
    }
    let _ = journal::decode(bytes);
    if let Some(directory) = Directory::parse(bytes) {
        assert_eq!(directory.encode(), bytes);
    }
    row::chunk_id(bytes);
    let sealed = state::seal(bytes.to_vec());
    if let Some(number) = sealed.first_chunk().map(|number| u32::from_le_bytes(*number))
        && let Ok(row) = DictionaryRow::parse(number, &sealed)
    {
        assert_eq!(row.encode(), sealed);
    }
    if let Ok(identity) = Identity::parse(&sealed) {
        assert_eq!(identity.encode(), sealed);
    }
    // A state of the version before is encoded as one of this version, so the bytes may differ and the state may not.
    if let Ok(state) = State::parse(&sealed) {
        assert_eq!(State::parse(&state.encode()), Ok(state));
    }
}
