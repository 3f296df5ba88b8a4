//! Entry points of the fuzzer: any bytes are parsed as stored data, with correct checksums, since a wrong one
//! stops every parser.

use super::dictionary::DictionaryRow;
use super::journal;
use super::row::{self, Body, Row, RowKey};
use super::state::{self, Identity, State};
use crate::values::quicklist::stored::Directory;

/// Parses the bytes as a row, its chunks, an identity and a state. Accepted input must encode to the same
/// bytes.
pub fn parse_anything(bytes: &[u8]) {
    let row_key = RowKey::new(1, 2, 3);
    let sealed = row::with_checksum(row_key, bytes);
    if let Ok(row) = Row::parse(row_key, &sealed) {
        assert_eq!(row.len, sealed.len());
        match &row.body {
            Body::Inline(record) => drop(row.directory(record)),
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
    // A state of the previous version is encoded as one of this version: the bytes may differ, the state may
    // not.
    if let Ok(state) = State::parse(&sealed) {
        assert_eq!(State::parse(&state.encode()), Ok(state));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn parsers_accept_only_what_they_would_write() {
        snugly_fuzzing::replay(
            concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/disk_rows"),
            super::parse_anything,
        );
    }
}
