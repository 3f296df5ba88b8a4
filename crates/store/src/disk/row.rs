//! Encoding of a store's rows, byte by byte (FORMAT.md), and decoding that trusts nothing.
//!
//! It knows bytes only, and must not know which rows exist or refer to each other: that is the business of
//! `lookup` and `writer`.

use snugly_codec::Record;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::entry::{Access, EntryRef, Metadata, Properties, Stage};
use crate::values::Kind;
use crate::values::collection::{Directory, Malformed};
use crate::values::kind::UnknownKind;

/// Number of a database's contents: FLUSHDB gives the database a new one.
pub(crate) type Generation = u32;

/// Generation of the nodes of collections, whatever database these are in.
pub(crate) const NODES: Generation = Generation::MAX - 1;

/// Longest row that is stored whole: longer ones would leave the B+tree's leaf pages (LMDB stores a node of
/// up to half a page in a leaf).
pub(crate) const MAX_ROW_BYTES: usize = 2000;
/// Bytes of a chunk: as many as fit one overflow page behind its header.
pub(crate) const CHUNK_BYTES: usize = 4080;
/// Longest half of a chunked record of which three fit a leaf page beside their keys (12 bytes) and what LMDB
/// adds (8 and 2, rounded up to even).
const MAX_HALF_BYTES: usize = CHUNK_BYTES / 3 - 24;
/// Length in bytes above which a key goes into the chunks.
const MAX_INLINE_KEY: usize = 512;

const CHECKSUM_LEN: usize = 8;
const EXPIRES: u8 = 1;
const HAS_METADATA: u8 = 2;
const CHUNKED: u8 = 4;
const KEY_CHUNKED: u8 = 8;
/// Flag that is used with [`CHUNKED`] alone: a record in the row says itself which dictionary it needs.
const NEEDS_DICTIONARY: u8 = 16;
/// Flags of stages, of which a row has one at most.
const COLD: u8 = 32;
const SETTLED: u8 = 64;
const KNOWN_FLAGS: u8 = EXPIRES | HAS_METADATA | CHUNKED | KEY_CHUNKED | NEEDS_DICTIONARY | COLD | SETTLED;

/// Bytes of metadata: `version u64 | client flags u32 | marks u8`.
pub(crate) const METADATA_LEN: usize = 13;
const STALE: u8 = 1;
const CLAIMED: u8 = 2;

/// Error of a row that cannot be what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl From<Malformed> for Damaged {
    fn from(_: Malformed) -> Damaged {
        Damaged
    }
}

/// Reason why the value of a row cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misread {
    Damaged,
    UnknownKind(UnknownKind),
}

impl From<Damaged> for Misread {
    fn from(_: Damaged) -> Misread {
        Misread::Damaged
    }
}

impl From<UnknownKind> for Misread {
    fn from(unknown: UnknownKind) -> Misread {
        Misread::UnknownKind(unknown)
    }
}

/// Key of a row in the table of entries: `generation u32 | hash u64 | number u8`, big-endian. The number
/// tells keys of the same hash apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RowKey(pub(crate) [u8; RowKey::LEN]);

impl RowKey {
    pub(crate) const LEN: usize = 13;
    const HASH: usize = 4;
    const NUMBER: usize = 12;

    pub(crate) fn new(generation: Generation, hash: u64, number: u8) -> RowKey {
        let mut bytes = [0; RowKey::LEN];
        bytes[..RowKey::HASH].copy_from_slice(&generation.to_be_bytes());
        bytes[RowKey::HASH..RowKey::NUMBER].copy_from_slice(&hash.to_be_bytes());
        bytes[RowKey::NUMBER] = number;
        RowKey(bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<RowKey, Damaged> {
        bytes.try_into().map(RowKey).map_err(|_| Damaged)
    }

    /// Returns the generation and hash, which all rows of a key share.
    pub(crate) fn place(self) -> (Generation, u64) {
        (self.generation(), self.hash())
    }

    pub(crate) fn generation(self) -> Generation {
        u32::from_be_bytes(self.0[..RowKey::HASH].try_into().expect("four bytes"))
    }

    pub(crate) fn hash(self) -> u64 {
        u64::from_be_bytes(self.0[RowKey::HASH..RowKey::NUMBER].try_into().expect("eight bytes"))
    }

    pub(crate) fn number(self) -> u8 {
        self.0[RowKey::NUMBER]
    }

    /// Returns the row's key in the table of expiries: `milliseconds u64 | row key`, big-endian.
    pub(crate) fn expiry_key(self, at: u64) -> [u8; 8 + RowKey::LEN] {
        let mut bytes = [0; 8 + RowKey::LEN];
        bytes[..8].copy_from_slice(&at.to_be_bytes());
        bytes[8..].copy_from_slice(&self.0);
        bytes
    }
}

/// Parses a key of the table of expiries.
pub(crate) fn parse_expiry_key(bytes: &[u8]) -> Result<(u64, RowKey), Damaged> {
    let (at, row) = bytes.split_first_chunk::<8>().ok_or(Damaged)?;
    Ok((u64::from_be_bytes(*at), RowKey::parse(row)?))
}

/// Returns a chunk's key: `id u64 | number u32`, big-endian.
pub(crate) fn chunk_key(id: u64, number: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&id.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Returns the id in a chunk's key.
pub(crate) fn chunk_id(key: &[u8]) -> Option<u64> {
    (key.len() == 12).then(|| u64::from_be_bytes(*key.first_chunk().expect("twelve bytes hold eight")))
}

/// Location of a row's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// Record in the row.
    Inline(&'a [u8]),
    /// Record in chunks.
    Chunked(Chunks),
}

/// Chunks of one row, and what they must hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    pub(crate) id: u64,
    /// Bytes of each chunk but the last.
    pub(crate) chunk_bytes: u16,
    pub(crate) len: u64,
    pub(crate) checksum: u64,
}

impl Chunks {
    /// Returns the number of chunks.
    pub(crate) fn count(&self) -> u64 {
        self.len.div_ceil(u64::from(self.chunk_bytes.max(1)))
    }
}

/// One key's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// Bytes of the row itself.
    pub(crate) len: usize,
    /// Expiry, in Unix milliseconds.
    pub(crate) expiry: Option<u64>,
    pub(crate) metadata: Metadata,
    pub(crate) key_len: usize,
    /// Key, or `None` if it is at the start of the chunks.
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) body: Body<'a>,
    /// Number of the dictionary that the record needs.
    pub(crate) dictionary: Option<u32>,
    pub(crate) stage: Stage,
    pub(crate) kind: Result<Kind, UnknownKind>,
}

/// Layout of a key on disk: its row, and the part that is too long for that.
pub(crate) struct Layout<'a> {
    kind: Kind,
    key: &'a [u8],
    record: &'a [u8],
    metadata: Metadata,
    stage: Stage,
    key_is_chunked: bool,
    record_is_chunked: bool,
}

impl<'a> Layout<'a> {
    /// Lays out a record.
    fn of(kind: Kind, key: &'a [u8], record: &'a [u8], metadata: Metadata, stage: Stage) -> Layout<'a> {
        let key_is_chunked = key.len() > MAX_INLINE_KEY;
        const FIXED: usize = CHECKSUM_LEN + 2 + 4 + 8 + METADATA_LEN;
        let record_is_chunked = key_is_chunked || FIXED + key.len() + record.len() > MAX_ROW_BYTES;
        Layout { kind, key, record, metadata, stage, key_is_chunked, record_is_chunked }
    }

    /// Lays out an entry.
    pub(crate) fn of_entry(entry: EntryRef<'a>) -> Layout<'a> {
        Layout::of(
            entry.kind(),
            entry.key(),
            entry.record_bytes().unwrap_or_default(),
            entry.metadata(),
            entry.stage(),
        )
    }

    /// Returns the parts of what goes into chunks, if anything does.
    fn chunked_parts(&self) -> Option<[&'a [u8]; 2]> {
        let key = if self.key_is_chunked { self.key } else { b"" };
        self.record_is_chunked.then_some([key, self.record])
    }

    /// Returns the number of the dictionary that the record needs.
    pub(crate) fn dictionary(&self) -> Option<u32> {
        dictionary_of(self.record)
    }

    /// Returns the bytes of each chunk but the last. A record that would leave a third of a page empty is cut
    /// in halves, which share the leaf pages of the table.
    fn chunk_bytes(&self) -> usize {
        let len: usize = self.chunked_parts().map_or(0, |parts| parts.iter().map(|part| part.len()).sum());
        let half = len.div_ceil(2);
        if len > MAX_ROW_BYTES && half <= MAX_HALF_BYTES { half } else { CHUNK_BYTES }
    }

    /// Passes the chunks in order.
    pub(crate) fn for_each_chunk<E>(
        &self,
        mut write: impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some([key, record]) = self.chunked_parts() else { return Ok(()) };
        let chunk_bytes = self.chunk_bytes();
        let mut number = 0;
        let mut rest = record;
        if !key.is_empty() {
            // The key, and as much of the record as fills its last chunk.
            let fill = key.len().next_multiple_of(chunk_bytes) - key.len();
            let (head, tail) = record.split_at(fill.min(record.len()));
            for chunk in [key, head].concat().chunks(chunk_bytes) {
                write(number, chunk)?;
                number += 1;
            }
            rest = tail;
        }
        for chunk in rest.chunks(chunk_bytes) {
            write(number, chunk)?;
            number += 1;
        }
        Ok(())
    }

    /// Appends the row; `id` is that of its chunks, if it has any.
    pub(crate) fn encode(&self, row_key: RowKey, expiry: Option<u64>, chunk_id: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; CHECKSUM_LEN]);
        let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        let flags = flag(EXPIRES, expiry.is_some())
            | flag(HAS_METADATA, !self.metadata.is_default())
            | flag(CHUNKED, self.record_is_chunked)
            | flag(KEY_CHUNKED, self.key_is_chunked)
            | flag(NEEDS_DICTIONARY, self.record_is_chunked && self.dictionary().is_some())
            | flag(COLD, self.stage == Stage::Cold)
            | flag(SETTLED, self.stage == Stage::Settled);
        out.extend_from_slice(&[self.kind.number(), flags]);
        out.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
        out.extend(expiry.into_iter().flat_map(u64::to_le_bytes));
        if !self.metadata.is_default() {
            out.extend_from_slice(&encode_metadata(self.metadata));
        }
        if !self.key_is_chunked {
            out.extend_from_slice(self.key);
        }
        match self.chunked_parts() {
            None => out.extend_from_slice(self.record),
            Some([key, record]) => {
                let mut checksum = Xxh3::new();
                checksum.update(key);
                checksum.update(record);
                out.extend_from_slice(&chunk_id.to_le_bytes());
                out.extend_from_slice(&(self.chunk_bytes() as u16).to_le_bytes());
                out.extend_from_slice(&((key.len() + record.len()) as u64).to_le_bytes());
                out.extend_from_slice(&checksum.digest().to_le_bytes());
                out.extend(self.dictionary().into_iter().flat_map(u32::to_le_bytes));
            }
        }
        let checksum = checksum(row_key, &out[start + CHECKSUM_LEN..]);
        out[start..start + CHECKSUM_LEN].copy_from_slice(&checksum.to_le_bytes());
    }
}

impl<'a> Row<'a> {
    /// Parses a row and verifies its checksum. Chunks are verified when they are read.
    pub(crate) fn parse(row_key: RowKey, bytes: &'a [u8]) -> Result<Row<'a>, Damaged> {
        let (stored, rest) = take(bytes)?;
        if u64::from_le_bytes(stored) != checksum(row_key, rest) {
            return Err(Damaged);
        }
        let ([kind, flags], rest) = take(rest)?;
        if flags & !KNOWN_FLAGS != 0 {
            return Err(Damaged);
        }
        let (key_len, rest) = take(rest)?;
        let key_len = u32::from_le_bytes(key_len) as usize;
        let (expiry, rest) = number_if(flags & EXPIRES != 0, rest)?;
        let (metadata, rest) = match flags & HAS_METADATA {
            0 => (Metadata::default(), rest),
            _ => take(rest).and_then(|(bytes, rest)| Ok((parse_metadata(bytes)?, rest)))?,
        };
        let (key, rest) = match flags & KEY_CHUNKED {
            0 => rest.split_at_checked(key_len).map(|(key, rest)| (Some(key), rest)).ok_or(Damaged)?,
            _ => (None, rest),
        };
        let (body, dictionary) = match flags & CHUNKED {
            0 if key.is_none() || flags & NEEDS_DICTIONARY != 0 => return Err(Damaged),
            0 => (Body::Inline(rest), dictionary_of(rest)),
            _ => {
                let (id, rest) = take(rest)?;
                let (chunk_bytes, rest) = take(rest)?;
                let (len, rest) = take(rest)?;
                let (checksum, rest) = take(rest)?;
                let (dictionary, rest) = match flags & NEEDS_DICTIONARY {
                    0 => (None, rest),
                    _ => take(rest).map(|(number, rest)| (Some(u32::from_le_bytes(number)), rest))?,
                };
                if !rest.is_empty() {
                    return Err(Damaged);
                }
                let chunks = Chunks {
                    id: u64::from_le_bytes(id),
                    chunk_bytes: u16::from_le_bytes(chunk_bytes),
                    len: u64::from_le_bytes(len),
                    checksum: u64::from_le_bytes(checksum),
                };
                (Body::Chunked(chunks), dictionary)
            }
        };
        let stage = match flags & (COLD | SETTLED) {
            0 => Stage::Written,
            SETTLED => Stage::Settled,
            COLD => Stage::Cold,
            _ => return Err(Damaged),
        };
        let kind = Kind::of_number(kind);
        Ok(Row { len: bytes.len(), expiry, metadata, key_len, key, body, dictionary, stage, kind })
    }

    /// Returns what belongs to its entry beside key and value.
    pub(crate) fn properties(&self, access: Access) -> Properties {
        Properties { expiry: self.expiry, access, metadata: self.metadata }
    }

    /// Parses the row's record by its kind: a directory, or nothing but the record.
    pub(crate) fn directory(&self, record: &[u8]) -> Result<Option<Directory>, Misread> {
        Ok(self.kind?.directory(record).map_err(Damaged::from)?)
    }
}

/// Joins what chunks hold into key and record, if it is what was written.
pub(crate) fn verify_chunked<'a>(
    row: &Row<'_>,
    chunks: &Chunks,
    joined: &'a [u8],
) -> Result<(Option<&'a [u8]>, &'a [u8]), Damaged> {
    if joined.len() as u64 != chunks.len || xxh3_64(joined) != chunks.checksum {
        return Err(Damaged);
    }
    match row.key {
        Some(_) => Ok((None, joined)),
        None => {
            let (key, record) = joined.split_at_checked(row.key_len).ok_or(Damaged)?;
            Ok((Some(key), record))
        }
    }
}

/// Encodes metadata that is not the default.
pub(crate) fn encode_metadata(metadata: Metadata) -> [u8; METADATA_LEN] {
    let Metadata { version, client_flags, is_stale, is_claimed } = metadata;
    let mut bytes = [0; METADATA_LEN];
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..12].copy_from_slice(&client_flags.to_le_bytes());
    bytes[12] = if is_stale { STALE } else { 0 } | if is_claimed { CLAIMED } else { 0 };
    bytes
}

/// Parses metadata; the default is not written, so that each value has one form.
pub(crate) fn parse_metadata(bytes: [u8; METADATA_LEN]) -> Result<Metadata, Damaged> {
    let (version, rest) = take(&bytes)?;
    let (client_flags, rest) = take(rest)?;
    let ([marks], _) = take(rest)?;
    let metadata = Metadata {
        version: u64::from_le_bytes(version),
        client_flags: u32::from_le_bytes(client_flags),
        is_stale: marks & STALE != 0,
        is_claimed: marks & CLAIMED != 0,
    };
    let is_known = marks & !(STALE | CLAIMED) == 0 && !metadata.is_default();
    if is_known { Ok(metadata) } else { Err(Damaged) }
}

/// The number of the dictionary that a record needs.
fn dictionary_of(record: &[u8]) -> Option<u32> {
    Record::parse(record).ok()?.dictionary()
}

/// A row of anything, behind the checksum that belongs there.
#[cfg(any(test, fuzzing))]
pub(super) fn with_checksum(row_key: RowKey, rest: &[u8]) -> Vec<u8> {
    [&checksum(row_key, rest).to_le_bytes(), rest].concat()
}

fn checksum(row_key: RowKey, rest: &[u8]) -> u64 {
    let mut checksum = Xxh3::new();
    checksum.update(&row_key.0);
    checksum.update(rest);
    checksum.digest()
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), Damaged> {
    bytes.split_first_chunk().map(|(first, rest)| (*first, rest)).ok_or(Damaged)
}

fn number_if(is_there: bool, bytes: &[u8]) -> Result<(Option<u64>, &[u8]), Damaged> {
    if !is_there {
        return Ok((None, bytes));
    }
    let (number, rest) = take(bytes)?;
    Ok((Some(u64::from_le_bytes(number)), rest))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROW_KEY: RowKey = RowKey([0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 0]);

    /// A record of bytes as they are.
    fn record(content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Record::identity(content).append_to(&mut bytes);
        bytes
    }

    struct Written {
        row: Vec<u8>,
        chunks: Vec<Vec<u8>>,
    }

    fn write(key: &[u8], record: &[u8], expiry: Option<u64>) -> Written {
        write_as(key, record, expiry, Metadata::default(), Stage::Written)
    }

    fn write_as(key: &[u8], record: &[u8], expiry: Option<u64>, metadata: Metadata, stage: Stage) -> Written {
        let layout = Layout::of(Kind::String, key, record, metadata, stage);
        let mut written = Written { row: Vec::new(), chunks: Vec::new() };
        layout.encode(ROW_KEY, expiry, 7, &mut written.row);
        let collect = |number: u32, chunk: &[u8]| {
            assert_eq!(number as usize, written.chunks.len());
            written.chunks.push(chunk.to_vec());
            Ok::<_, Damaged>(())
        };
        layout.for_each_chunk(collect).expect("nothing fails");
        written
    }

    pub(in crate::disk) fn any_metadata() -> impl Strategy<Value = Metadata> {
        let numbers = (prop_oneof![Just(0), any::<u64>()], prop_oneof![Just(0), any::<u32>()]);
        (numbers, any::<bool>(), any::<bool>()).prop_map(|((version, client_flags), is_stale, is_claimed)| {
            Metadata { version, client_flags, is_stale, is_claimed }
        })
    }

    fn lengths() -> impl Strategy<Value = usize> {
        prop_oneof![0..100usize, 1_900..2_800usize, 4_000..4_200usize, 8_000..13_000usize]
    }

    #[test]
    fn the_layout_is_the_documents() {
        let written = write(b"key", b"\x00\x03abc", Some(0x0102));
        let mut expected = vec![0, 1, 3, 0, 0, 0, 0x02, 0x01, 0, 0, 0, 0, 0, 0];
        expected.extend_from_slice(b"key\x00\x03abc");
        assert_eq!(&written.row[CHECKSUM_LEN..], expected);
        assert_eq!(RowKey::new(1, 0x0203, 4).0, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3, 4]);
        assert_eq!(chunk_key(1, 2), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    }

    #[test]
    fn a_row_of_two_stages_is_damaged() {
        let mut row = write(b"key", &record(b"value"), None).row[CHECKSUM_LEN..].to_vec();
        for (stages, is_whole) in [(COLD, true), (SETTLED, true), (COLD | SETTLED, false)] {
            row[1] = stages;
            assert_eq!(Row::parse(ROW_KEY, &with_checksum(ROW_KEY, &row)).is_ok(), is_whole);
        }
    }

    #[test]
    fn what_fills_two_thirds_of_a_page_is_cut_in_halves_and_the_rest_into_pages() {
        let chunk_lens = |content_len: usize| {
            let chunks = write(b"key", &record(&vec![b'v'; content_len]), None).chunks;
            chunks.iter().map(Vec::len).collect::<Vec<_>>()
        };
        // A record has three bytes in front of contents of this length.
        assert_eq!(chunk_lens(2_301), [1_152, 1_152]);
        assert_eq!(chunk_lens(2_669), [1_336, 1_336]);
        assert_eq!(chunk_lens(2_670), [2_673]);
        assert_eq!(chunk_lens(4_078), [4_080, 1]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            key_len in prop_oneof![0..20usize, 500..530usize, 4_000..9_000usize],
            content_len in lengths(),
            expiry: Option<u64>,
            metadata in any_metadata(),
            stage in prop::sample::select(&Stage::ALL[..]),
        ) {
            let (key, record) = (vec![b'k'; key_len], record(&vec![b'v'; content_len]));
            let written = write_as(&key, &record, expiry, metadata, stage);
            prop_assert!(written.row.len() <= MAX_ROW_BYTES);
            let row = Row::parse(ROW_KEY, &written.row).expect("it is whole");
            prop_assert_eq!((row.expiry, row.metadata, row.key_len), (expiry, metadata, key_len));
            prop_assert_eq!(row.stage, stage);
            match row.body {
                Body::Inline(inline) => {
                    prop_assert_eq!((row.key, inline), (Some(&key[..]), &record[..]));
                    prop_assert!(written.chunks.is_empty());
                }
                Body::Chunked(chunks) => {
                    prop_assert_eq!((chunks.id, chunks.count()), (7, written.chunks.len() as u64));
                    let chunk_bytes = usize::from(chunks.chunk_bytes);
                    prop_assert!(written.chunks.iter().rev().skip(1).all(|chunk| chunk.len() == chunk_bytes));
                    let joined = written.chunks.concat();
                    let (long_key, read) = verify_chunked(&row, &chunks, &joined).expect("it is whole");
                    prop_assert_eq!((row.key.or(long_key), read), (Some(&key[..]), &record[..]));
                }
            }
        }

        #[test]
        fn any_flipped_bit_of_a_row_is_noticed(content_len in 0..3_000usize, place: prop::sample::Index, bit in 0..8u32) {
            let mut row = write(b"key", &record(&vec![b'v'; content_len]), Some(5)).row;
            let place = place.index(row.len());
            row[place] ^= 1 << bit;
            prop_assert_eq!(Row::parse(ROW_KEY, &row), Err(Damaged));
        }

        #[test]
        fn a_row_in_the_place_of_another_is_noticed(hash: u64) {
            let row = write(b"key", &record(b"value"), None).row;
            prop_assert_eq!(Row::parse(RowKey::new(2, hash, 0), &row), Err(Damaged));
        }

        #[test]
        fn any_bytes_can_be_parsed(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Row::parse(ROW_KEY, &bytes);
            let _ = Row::parse(ROW_KEY, &with_checksum(ROW_KEY, &bytes));
        }

        #[test]
        fn expiry_keys_are_in_the_order_of_time(first: u64, second: u64) {
            let key = |at| ROW_KEY.expiry_key(at);
            prop_assert_eq!(first.cmp(&second), key(first).cmp(&key(second)));
            prop_assert_eq!(parse_expiry_key(&key(first)), Ok((first, ROW_KEY)));
        }
    }
}
