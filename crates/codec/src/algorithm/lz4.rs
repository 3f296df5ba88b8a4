//! LZ4 through liblz4: acceleration below level 0, high compression above it.
//!
//! In an envelope the block stands after its raw length (u32, little-endian); in a record it stands alone.
//! The compression states are kept per thread and reset fast (without clearing their tables) between values.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};

use super::tail::Tail;
use super::{Backend, Decoding, Encoding, Extent, Fault, Framing};

pub(super) const BACKEND: Option<Backend> = Some(Backend { compress, extent, decompress });

/// LZ4_MAX_INPUT_SIZE.
const MAX_INPUT: usize = 0x7E00_0000;
/// A byte of a block yields at most 255 bytes of value.
const MAX_RATIO: u64 = 255;
const RAW_LEN: usize = size_of::<u32>();

// The functions on caller-held states, which lz4-sys builds and links but does not declare (lz4.h and lz4hc.h).
unsafe extern "C" {
    fn LZ4_sizeofState() -> c_int;
    fn LZ4_initStream(state: *mut c_void, size: usize) -> *mut c_void;
    fn LZ4_compress_fast_extState_fastReset(
        state: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        target_len: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_sizeofStateHC() -> c_int;
    fn LZ4_initStreamHC(state: *mut c_void, size: usize) -> *mut c_void;
    fn LZ4_compress_HC_extStateHC_fastReset(
        state: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        target_len: c_int,
        level: c_int,
    ) -> c_int;
}

/// A state of liblz4 in aligned memory of its own (16 KiB; 256 KiB for high compression).
struct State(Box<[u64]>);

impl State {
    fn fast() -> State {
        // SAFETY: takes nothing, returns a constant.
        let state = State::zeroed(unsafe { LZ4_sizeofState() });
        state.initialised_by(LZ4_initStream)
    }

    fn high_compression() -> State {
        // SAFETY: takes nothing, returns a constant.
        let state = State::zeroed(unsafe { LZ4_sizeofStateHC() });
        state.initialised_by(LZ4_initStreamHC)
    }

    fn zeroed(bytes: c_int) -> State {
        State(vec![0; (bytes as usize).div_ceil(size_of::<u64>())].into_boxed_slice())
    }

    fn initialised_by(mut self, init: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void) -> State {
        // SAFETY: the memory is writable for the size given, and aligned to 8 as both states require.
        let initialised = unsafe { init(self.as_mut_ptr(), size_of_val(&*self.0)) };
        assert!(!initialised.is_null(), "liblz4 refused memory of the size and alignment that it asks for");
        self
    }

    fn as_mut_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

thread_local! {
    static FAST: RefCell<Option<State>> = const { RefCell::new(None) };
    static HIGH_COMPRESSION: RefCell<Option<State>> = const { RefCell::new(None) };
}

fn bound(len: usize) -> Option<usize> {
    // LZ4_compressBound, and the envelope's raw length.
    (len <= MAX_INPUT).then(|| RAW_LEN + len + len / 255 + 16)
}

fn compress(encoding: &Encoding<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    let room = bound(value.len()).ok_or(Fault::Other("longer than LZ4 accepts"))?;
    super::tail::reserve(out, room)?;
    if encoding.framing == Framing::Envelope {
        out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    }
    let result = block(encoding.level, value, Tail::reserve(out, room - RAW_LEN)?);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn block(level: i32, value: &[u8], mut target: Tail<'_>) -> Result<(), Fault> {
    let written = if level > 0 {
        HIGH_COMPRESSION.with_borrow_mut(|state| {
            let state = state.get_or_insert_with(State::high_compression);
            // SAFETY: the state is initialised and only ever used by this function; source and target are valid
            // for the lengths given, which fit c_int because value.len() <= MAX_INPUT. After an error the state
            // marks itself dirty, and the next call initialises it anew.
            unsafe {
                LZ4_compress_HC_extStateHC_fastReset(
                    state.as_mut_ptr(),
                    value.as_ptr().cast(),
                    target.as_mut_ptr().cast(),
                    value.len() as c_int,
                    target.limit() as c_int,
                    level,
                )
            }
        })
    } else {
        FAST.with_borrow_mut(|state| {
            let state = state.get_or_insert_with(State::fast);
            // SAFETY: as above. The target has LZ4_compressBound bytes, so the call cannot fail and leave the
            // state's table in doubt.
            unsafe {
                LZ4_compress_fast_extState_fastReset(
                    state.as_mut_ptr(),
                    value.as_ptr().cast(),
                    target.as_mut_ptr().cast(),
                    value.len() as c_int,
                    target.limit() as c_int,
                    -level,
                )
            }
        })
    };
    if written <= 0 {
        return Err(Fault::Other("LZ4 could not compress the value"));
    }
    // SAFETY: liblz4 wrote that many bytes, within the capacity that it was given.
    unsafe { target.commit(written as usize) };
    Ok(())
}

fn extent(framing: Framing, payload: &[u8]) -> Result<Extent, &'static str> {
    let (claimed, block) = split(framing, payload)?;
    if block.is_empty() {
        return Err("the LZ4 block is missing");
    }
    Ok(Extent { claimed, reach: block.len() as u64 * MAX_RATIO })
}

fn split(framing: Framing, payload: &[u8]) -> Result<(Option<u64>, &[u8]), &'static str> {
    match framing {
        Framing::Record => Ok((None, payload)),
        Framing::Envelope => {
            let (raw_len, block) = payload.split_first_chunk().ok_or("the raw length is cut off")?;
            Ok((Some(u32::from_le_bytes(*raw_len).into()), block))
        }
    }
}

fn decompress(decoding: &Decoding<'_>, payload: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    let (_, block) = split(decoding.framing, payload).map_err(Fault::Other)?;
    let (Ok(block_len), Ok(capacity)) = (c_int::try_from(block.len()), c_int::try_from(decoding.limit))
    else {
        return Err(Fault::Other("longer than LZ4 accepts"));
    };
    let mut target = Tail::reserve(out, decoding.limit)?;
    // SAFETY: source and target are valid for the lengths given; LZ4_decompress_safe stays inside both whatever
    // the bytes are.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(block.as_ptr().cast(), target.as_mut_ptr().cast(), block_len, capacity)
    };
    let written =
        usize::try_from(written).map_err(|_| Fault::Other("the LZ4 block is corrupt, or yields more"))?;
    // SAFETY: liblz4 wrote that many bytes, within the capacity that it was given.
    unsafe { target.commit(written) };
    Ok(written)
}
