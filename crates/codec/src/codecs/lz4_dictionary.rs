//! LZ4 with a dictionary, through liblz4: one block a value, which may copy from the last 64 KiB of the dictionary's bytes.
//!
//! The dictionary is hashed once into a table, which is immutable from then on and shared by all threads. A thread keeps a
//! working stream, to which the table is attached for one value: no table is copied for values of up to 4 KiB.
//!
//! Decoding into a place right behind a copy of the dictionary, and copying the value from there, takes 0.6 to 1.7 times as
//! long as decoding into its own (cargo bench): values decide, and each dictionary would have its copy in each thread.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::slice;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh32::xxh32;

use super::dictionary_block::{self, HEADER_LEN, Header};
use super::lz4::{State, bound};
use super::tail::{Tail, reserve};
use super::{Decoding, Encoding, Fault, Framing, Functions};

pub(super) const FUNCTIONS: Option<Functions> = Some(Functions { compress, decompress });

/// A match reaches back so far at most, in bytes, so that nothing before the dictionary's end counts but this.
const WINDOW: usize = 64 << 10;
/// The level that tables for high compression are loaded at. Those of levels 1 and 2 have another layout, which only these
/// levels can read; they read this one, too.
const LOADED_AT: c_int = 9;
/// The reason why nothing was encoded or decoded without a dictionary, which no caller leaves out.
const NO_DICTIONARY: &str = "it needs a dictionary";

// The functions on streams (lz4.h, lz4hc.h), which lz4-sys builds and links but does not declare. A stream is a state: its
// size, its alignment and its initialisation are those of `State`.
unsafe extern "C" {
    fn LZ4_loadDictSlow(stream: *mut c_void, dictionary: *const c_char, len: c_int) -> c_int;
    fn LZ4_resetStream_fast(stream: *mut c_void);
    fn LZ4_attach_dictionary(stream: *mut c_void, dictionary_stream: *const c_void);
    fn LZ4_compress_fast_continue(
        stream: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        target_len: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_loadDictHC(stream: *mut c_void, dictionary: *const c_char, len: c_int) -> c_int;
    fn LZ4_resetStreamHC_fast(stream: *mut c_void, level: c_int);
    fn LZ4_attach_HC_dictionary(stream: *mut c_void, dictionary_stream: *const c_void);
    fn LZ4_compress_HC_continue(
        stream: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        target_len: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        target_len: c_int,
        dictionary: *const c_char,
        dictionary_len: c_int,
    ) -> c_int;
}

/// A dictionary's tables: one for the levels up to 0, one for high compression, each made when it is needed first and kept
/// as long as the dictionary. Whoever needs the second for a while only takes a dictionary of its own.
pub(crate) struct Tables {
    fast: OnceLock<Table>,
    high_compression: OnceLock<Table>,
}

/// A stream that a dictionary was loaded into. It points at the dictionary's bytes, and owns a share of them for that.
struct Table {
    stream: State,
    _dictionary: Arc<[u8]>,
}

impl Tables {
    pub fn new() -> Tables {
        Tables { fast: OnceLock::new(), high_compression: OnceLock::new() }
    }

    /// Makes the table for encoding at this level, if it is missing.
    pub fn prepare(&self, dictionary: &Arc<[u8]>, level: i32) {
        self.at(dictionary, level);
    }

    /// Bytes of the tables that were made so far: 16 KiB, and 256 KiB for high compression.
    pub fn memory(&self) -> usize {
        let made = [&self.fast, &self.high_compression].into_iter().filter_map(OnceLock::get);
        made.map(|table| table.stream.len()).sum()
    }

    fn at(&self, dictionary: &Arc<[u8]>, level: i32) -> &Table {
        match level {
            1.. => self.high_compression.get_or_init(|| Table::high_compression(dictionary)),
            _ => self.fast.get_or_init(|| Table::fast(dictionary)),
        }
    }
}

impl Table {
    fn fast(dictionary: &Arc<[u8]>) -> Table {
        let (mut stream, window) = (State::fast(), window(dictionary));
        // SAFETY: the stream is initialised, and the bytes are valid for their length, which fits c_int. The stream keeps
        // a pointer to them: they neither move nor change nor go while the table has a share of them.
        unsafe {
            LZ4_loadDictSlow(stream.as_mut_ptr(), window.as_ptr().cast(), window.len() as c_int);
        }
        Table { stream, _dictionary: dictionary.clone() }
    }

    fn high_compression(dictionary: &Arc<[u8]>) -> Table {
        let (mut stream, window) = (State::high_compression(), window(dictionary));
        // SAFETY: as above.
        unsafe {
            LZ4_resetStreamHC_fast(stream.as_mut_ptr(), LOADED_AT);
            LZ4_loadDictHC(stream.as_mut_ptr(), window.as_ptr().cast(), window.len() as c_int);
        }
        Table { stream, _dictionary: dictionary.clone() }
    }
}

/// Part of a dictionary that LZ4 is given: all of a short one, its header included.
fn window(dictionary: &[u8]) -> &[u8] {
    &dictionary[dictionary.len().saturating_sub(WINDOW)..]
}

thread_local! {
    static FAST: RefCell<Option<State>> = const { RefCell::new(None) };
    static HIGH_COMPRESSION: RefCell<Option<State>> = const { RefCell::new(None) };
}

fn compress(encoding: &Encoding<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let dictionary = encoding.dictionary.ok_or(Fault::Other(NO_DICTIONARY))?;
    let room = bound(value.len()).ok_or(Fault::Other("longer than LZ4 accepts"))?;
    let start = out.len();
    if encoding.framing == Framing::Envelope {
        let header =
            Header { dictionary_id: dictionary.id(), raw_len: value.len() as u32, checksum: xxh32(value, 0) };
        reserve(out, HEADER_LEN + room)?;
        out.extend_from_slice(&header.to_bytes());
    }
    let (tables, bytes) = dictionary.lz4();
    let result = compress_block(tables.at(bytes, encoding.level), encoding.level, value, room, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Appends the block of a value; `room` is [`bound`] of its length.
fn compress_block(
    table: &Table,
    level: i32,
    value: &[u8],
    room: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut target = Tail::reserve(out, room)?;
    let (streams, new): (_, fn() -> State) = match level {
        1.. => (&HIGH_COMPRESSION, State::high_compression),
        _ => (&FAST, State::fast),
    };
    let (source, source_len) = (value.as_ptr().cast(), value.len() as c_int);
    let block_len = streams.with_borrow_mut(|kept| {
        let stream = kept.get_or_insert_with(new).as_mut_ptr();
        // SAFETY: the stream is initialised, only ever used by this function, and reset before the table is attached to
        // it; the table was loaded by the functions of the same kind of streams, is not changed by this use, and outlives
        // the call, as do the dictionary's bytes. Source and target are valid for the lengths given, which fit c_int
        // because a bound exists. What the stream remembers of them afterwards, the next reset makes it forget.
        let block_len = unsafe {
            match level {
                1.. => {
                    LZ4_resetStreamHC_fast(stream, level);
                    LZ4_attach_HC_dictionary(stream, table.stream.as_ptr());
                    LZ4_compress_HC_continue(
                        stream,
                        source,
                        target.as_mut_ptr().cast(),
                        source_len,
                        room as c_int,
                    )
                }
                _ => {
                    LZ4_resetStream_fast(stream);
                    LZ4_attach_dictionary(stream, table.stream.as_ptr());
                    LZ4_compress_fast_continue(
                        stream,
                        source,
                        target.as_mut_ptr().cast(),
                        source_len,
                        room as c_int,
                        -level,
                    )
                }
            }
        };
        let block_len = usize::try_from(block_len).ok().filter(|&len| len > 0);
        if block_len.is_none() {
            // A failure leaves a stream in doubt.
            *kept = None;
        }
        block_len
    });
    let block_len = block_len.ok_or(Fault::Other("LZ4 could not compress the value"))?;
    // SAFETY: liblz4 wrote that many bytes within the room that it was given.
    unsafe { target.commit(block_len) };
    Ok(())
}

fn decompress(decoding: &Decoding<'_>, payload: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    let dictionary = decoding.dictionary.ok_or(Fault::Other(NO_DICTIONARY))?;
    let (header, block) = dictionary_block::split(decoding.framing, payload).map_err(Fault::Other)?;
    let (Ok(block_len), Ok(capacity)) = (c_int::try_from(block.len()), c_int::try_from(decoding.limit))
    else {
        return Err(Fault::Other("longer than LZ4 accepts"));
    };
    let window = window(dictionary.bytes());
    let mut target = Tail::reserve(out, decoding.limit)?;
    // SAFETY: source, target and dictionary are valid for the lengths given, of which the last is at most 64 KiB;
    // LZ4_decompress_safe_usingDict stays inside all three whatever the bytes are.
    let written = unsafe {
        LZ4_decompress_safe_usingDict(
            block.as_ptr().cast(),
            target.as_mut_ptr().cast(),
            block_len,
            capacity,
            window.as_ptr().cast(),
            window.len() as c_int,
        )
    };
    let written =
        usize::try_from(written).map_err(|_| Fault::Other("the LZ4 block is corrupt, or yields more"))?;
    // A value of another length is the caller's to refuse, before its checksum counts.
    if let Some(Header { checksum, .. }) = header.filter(|_| written == decoding.limit) {
        // SAFETY: liblz4 wrote that many bytes from there on.
        let actual = xxh32(unsafe { slice::from_raw_parts(target.as_mut_ptr(), written) }, 0);
        if actual != checksum {
            return Err(Fault::Checksum { declared: checksum, actual });
        }
    }
    // SAFETY: liblz4 wrote that many bytes, within the capacity that it was given.
    unsafe { target.commit(written) };
    Ok(written)
}
