//! LZ4 through liblz4: acceleration below level 0, high compression above it.
//!
//! The compression states are kept per thread.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};

use super::block::{self, RAW_LEN};
use super::tail::Tail;
use super::{Decoding, Encoding, Fault, Framing, Functions};

pub(super) const FUNCTIONS: Option<Functions> = Some(Functions { compress, decompress });

/// LZ4_MAX_INPUT_SIZE.
const MAX_INPUT: usize = 0x7E00_0000;
/// Between shorter values the fast state's table is not cleared; above, stale entries cost more than clearing
/// it (measured on JSON and HTML: even at 2,000 bytes, a quarter of the time at 4,000).
const CLEARED_FROM: usize = 2_048;

// The functions on caller-held states (lz4.h, lz4hc.h), which lz4-sys builds and links but does not declare.
unsafe extern "C" {
    fn LZ4_sizeofState() -> c_int;
    fn LZ4_initStream(state: *mut c_void, size: usize) -> *mut c_void;
    fn LZ4_compress_fast_extState(
        state: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        target_len: c_int,
        acceleration: c_int,
    ) -> c_int;
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
pub(super) struct State(Box<[u64]>);

impl State {
    pub fn fast() -> State {
        // SAFETY: takes nothing, returns a constant.
        let state = State::zeroed(unsafe { LZ4_sizeofState() });
        state.initialised_by(LZ4_initStream)
    }

    pub fn high_compression() -> State {
        // SAFETY: takes nothing, returns a constant.
        let state = State::zeroed(unsafe { LZ4_sizeofStateHC() });
        state.initialised_by(LZ4_initStreamHC)
    }

    fn zeroed(bytes: c_int) -> State {
        State(vec![0; (bytes as usize).div_ceil(size_of::<u64>())].into_boxed_slice())
    }

    fn initialised_by(mut self, init: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void) -> State {
        // SAFETY: the memory is writable for the size given, and aligned to 8 as both states require.
        let initialised = unsafe { init(self.as_mut_ptr(), self.len()) };
        assert!(!initialised.is_null(), "liblz4 refused memory of the size and alignment that it asks for");
        self
    }

    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    pub fn as_ptr(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    /// Its length, in bytes.
    pub fn len(&self) -> usize {
        size_of_val(&*self.0)
    }
}

thread_local! {
    static FAST: RefCell<Option<State>> = const { RefCell::new(None) };
    static HIGH_COMPRESSION: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// LZ4_compressBound.
pub(super) fn bound(len: usize) -> Option<usize> {
    (len <= MAX_INPUT).then(|| len + len / 255 + 16)
}

fn compress(encoding: &Encoding<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let room = bound(value.len()).ok_or(Fault::Other("longer than LZ4 accepts"))?;
    let prefix_len = if encoding.framing == Framing::Envelope { RAW_LEN } else { 0 };
    let mut target = Tail::reserve(out, prefix_len + room)?;
    let raw_len = (value.len() as u32).to_le_bytes();
    // SAFETY: the target has room for the prefix and the block.
    let block = unsafe {
        target.as_mut_ptr().copy_from_nonoverlapping(raw_len.as_ptr(), prefix_len);
        target.as_mut_ptr().add(prefix_len)
    };
    // SAFETY: block points at `room` writable bytes, which is the bound of the value's length.
    let block_len = unsafe { compress_block(encoding.level, value, block, room) };
    let block_len = usize::try_from(block_len).ok().filter(|&len| len > 0);
    let block_len = block_len.ok_or(Fault::Other("LZ4 could not compress the value"))?;
    // SAFETY: the prefix has been copied, and liblz4 wrote that many bytes within the room that it was given.
    unsafe { target.commit(prefix_len + block_len) };
    Ok(())
}

/// Compresses with the thread's state and returns the length of the block, 0 or less after a failure.
///
/// # Safety
/// `target` must be valid for `room` writes, `room` at least [`bound`] of the value's length.
unsafe fn compress_block(level: i32, value: &[u8], target: *mut u8, room: usize) -> c_int {
    type Function =
        unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_char, c_int, c_int, c_int) -> c_int;
    let (states, new, function, argument): (_, fn() -> State, Function, _) = match level {
        1.. => (&HIGH_COMPRESSION, State::high_compression, LZ4_compress_HC_extStateHC_fastReset, level),
        _ if value.len() < CLEARED_FROM => (&FAST, State::fast, LZ4_compress_fast_extState_fastReset, -level),
        _ => (&FAST, State::fast, LZ4_compress_fast_extState, -level),
    };
    states.with_borrow_mut(|state| {
        let state = state.get_or_insert_with(new);
        // SAFETY: the state is initialised, and used by no other kind of function; source and target are
        // valid for the lengths given, which fit c_int because a bound exists. A target of the bound's length
        // cannot be too short, so that no call fails and leaves the state's table in doubt.
        unsafe {
            function(
                state.as_mut_ptr(),
                value.as_ptr().cast(),
                target.cast(),
                value.len() as c_int,
                room as c_int,
                argument,
            )
        }
    })
}

fn decompress(decoding: &Decoding<'_>, payload: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    let (_, block) = block::split(decoding.framing, payload).map_err(Fault::Other)?;
    let (Ok(block_len), Ok(capacity)) = (c_int::try_from(block.len()), c_int::try_from(decoding.limit))
    else {
        return Err(Fault::Other("longer than LZ4 accepts"));
    };
    let mut target = Tail::reserve(out, decoding.limit)?;
    // SAFETY: source and target are valid for the lengths given; LZ4_decompress_safe stays inside both
    // whatever the bytes are.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(block.as_ptr().cast(), target.as_mut_ptr().cast(), block_len, capacity)
    };
    let written =
        usize::try_from(written).map_err(|_| Fault::Other("the LZ4 block is corrupt, or yields more"))?;
    // SAFETY: liblz4 wrote that many bytes, within the capacity that it was given.
    unsafe { target.commit(written) };
    Ok(written)
}
