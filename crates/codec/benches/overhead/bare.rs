//! The other side: libzstd and liblz4 with as little around them as can be.

use std::ffi::{c_char, c_int, c_void};

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat};

/// A library's contexts, for one value or for many.
pub trait Bare {
    fn compress(&mut self, value: &[u8], target: &mut [u8]) -> usize;
    fn decompress(&mut self, payload: &[u8], target: &mut [u8]) -> usize;
}

/// libzstd. A context is made when it is first used, so that a value's own contexts are no more than it
/// needs.
pub struct Zstd {
    magicless: bool,
    compressor: Option<CCtx<'static>>,
    decompressor: Option<DCtx<'static>>,
}

impl Zstd {
    /// For the frames of envelopes.
    pub fn standard() -> Zstd {
        Zstd { magicless: false, compressor: None, decompressor: None }
    }

    /// For the frames of records.
    pub fn magicless() -> Zstd {
        Zstd { magicless: true, ..Zstd::standard() }
    }
}

impl Bare for Zstd {
    fn compress(&mut self, value: &[u8], target: &mut [u8]) -> usize {
        let context = self.compressor.get_or_insert_with(|| {
            let mut context = CCtx::create();
            if self.magicless {
                for parameter in
                    [CParameter::Format(FrameFormat::Magicless), CParameter::ContentSizeFlag(false)]
                {
                    context.set_parameter(parameter).expect("libzstd knows the parameter");
                }
            }
            context
        });
        context.compress2(target, value).expect("it compresses")
    }

    fn decompress(&mut self, payload: &[u8], target: &mut [u8]) -> usize {
        let context = self.decompressor.get_or_insert_with(|| {
            let mut context = DCtx::create();
            if self.magicless {
                let format = DParameter::Format(FrameFormat::Magicless);
                context.set_parameter(format).expect("libzstd knows the parameter");
            }
            context
        });
        context.decompress(target, payload).expect("it decompresses")
    }
}

/// liblz4, whose decompression has no context.
pub struct Lz4 {
    state: Option<Vec<u64>>,
}

// Built and linked by lz4-sys, not declared there.
unsafe extern "C" {
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
}

impl Lz4 {
    const STATE_BYTES: usize = 16_416;

    pub fn new() -> Lz4 {
        Lz4 { state: None }
    }
}

impl Bare for Lz4 {
    fn compress(&mut self, value: &[u8], target: &mut [u8]) -> usize {
        let state = self.state.get_or_insert_with(|| vec![0; Self::STATE_BYTES / size_of::<u64>()]);
        // The faster of the two for the length.
        let compress = match value.len() {
            ..2_048 => LZ4_compress_fast_extState_fastReset,
            _ => LZ4_compress_fast_extState,
        };
        // SAFETY: the state is as large as LZ4_sizeofState says, aligned and zeroed (as LZ4_initStream leaves
        // it), and the buffers are as long as said.
        let len = unsafe {
            compress(
                state.as_mut_ptr().cast(),
                value.as_ptr().cast(),
                target.as_mut_ptr().cast(),
                value.len() as c_int,
                target.len() as c_int,
                1,
            )
        };
        len as usize
    }

    fn decompress(&mut self, payload: &[u8], target: &mut [u8]) -> usize {
        // SAFETY: both buffers are as long as said.
        let len = unsafe {
            lz4_sys::LZ4_decompress_safe(
                payload.as_ptr().cast(),
                target.as_mut_ptr().cast(),
                payload.len() as c_int,
                target.len() as c_int,
            )
        };
        len as usize
    }
}
