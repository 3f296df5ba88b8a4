//! zstd through libzstd: one frame a value, in one call, with a context that the thread reuses.
//!
//! In an envelope the frame is a standard one with its content size (and its Dictionary_ID); in a record it
//! has neither magic number nor content size nor Dictionary_ID, because the record has them.

use std::cell::RefCell;
use std::ffi::c_uint;
use std::mem;
use std::sync::OnceLock;

use zstd_safe::zstd_sys::{
    ZDICT_fastCover_params_t, ZDICT_isError, ZDICT_optimizeTrainFromBuffer_fastCover, ZDICT_params_t,
};
use zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, DParameter, FrameFormat, get_error_name};

use super::tail::Tail;
use super::{Decoding, Encoding, Fault, Framing, Functions};
use crate::dictionary::{LoadError, TrainError};

pub(super) const FUNCTIONS: Option<Functions> = Some(Functions { compress, decompress });

/// A thread keeps a context of up to this size between values. Levels up to 12 on values of up to 16 MiB stay
/// below it (level 3 needs 1.3 MiB); what is larger takes hundreds of times longer to compress than a new
/// context to make.
const MAX_KEPT_CONTEXT: usize = 12 << 20;
/// Below this length, and without a dictionary, no context comes near that size: asking is not worth the
/// time.
const LARGE_VALUE: usize = 64 << 10;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
}

/// State of a compression context from frame to frame.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Parameters {
    level: i32,
    framing: Framing,
    checksum: bool,
}

struct Compressor {
    context: CCtx<'static>,
    parameters: Option<Parameters>,
}

impl Compressor {
    fn new() -> Result<Self, Fault> {
        Ok(Compressor { context: CCtx::try_create().ok_or(Fault::OutOfMemory)?, parameters: None })
    }

    fn set(&mut self, parameters: Parameters) -> Result<(), usize> {
        if self.parameters == Some(parameters) {
            return Ok(());
        }
        let in_envelope = parameters.framing == Framing::Envelope;
        for parameter in [
            CParameter::CompressionLevel(parameters.level),
            CParameter::Format(format(parameters.framing)),
            CParameter::ContentSizeFlag(in_envelope),
            CParameter::DictIdFlag(in_envelope),
            CParameter::ChecksumFlag(parameters.checksum),
        ] {
            self.context.set_parameter(parameter)?;
        }
        self.parameters = Some(parameters);
        Ok(())
    }

    /// After an error the context must be dropped: libzstd leaves it in the middle of a frame.
    fn compress(
        &mut self,
        dictionary: Option<&CDict<'static>>,
        value: &[u8],
        target: &mut Tail<'_>,
    ) -> Result<usize, usize> {
        let Some(dictionary) = dictionary else { return self.context.compress2(target, value) };
        // SAFETY: the context forgets the dictionary before this function returns, and the caller's reference
        // outlives that. Only if there was an error may it not, and then it is dropped without being used
        // again.
        let dictionary: &'static CDict<'static> = unsafe { mem::transmute(dictionary) };
        self.context.ref_cdict(dictionary)?;
        let written = self.context.compress2(target, value)?;
        self.context.disable_dictionary()?;
        Ok(written)
    }
}

fn format(framing: Framing) -> FrameFormat {
    match framing {
        Framing::Record => FrameFormat::Magicless,
        Framing::Envelope => FrameFormat::One,
    }
}

fn bound(len: usize) -> Option<usize> {
    let bound = zstd_safe::compress_bound(len);
    (bound >= len && bound <= isize::MAX as usize).then_some(bound)
}

fn compress(encoding: &Encoding<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let room = bound(value.len()).ok_or(Fault::Other("longer than zstd accepts"))?;
    let mut target = Tail::reserve(out, room)?;
    let dictionary = match encoding.dictionary {
        Some(dictionary) => Some(
            dictionary.prepared().compressor(dictionary.bytes(), encoding.level).ok_or(Fault::OutOfMemory)?,
        ),
        None => None,
    };
    let parameters =
        Parameters { level: encoding.level, framing: encoding.framing, checksum: encoding.checksum };
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::new()?),
        };
        let result =
            compressor.set(parameters).and_then(|()| compressor.compress(dictionary, value, &mut target));
        let may_be_large = value.len() >= LARGE_VALUE || dictionary.is_some();
        if result.is_err() || may_be_large && compressor.context.sizeof() > MAX_KEPT_CONTEXT {
            *kept = None;
        }
        result.map(drop).map_err(fault)
    })
}

struct Decompressor {
    context: DCtx<'static>,
    framing: Framing,
}

impl Decompressor {
    fn new() -> Result<Self, Fault> {
        let context = DCtx::try_create().ok_or(Fault::OutOfMemory)?;
        Ok(Decompressor { context, framing: Framing::Envelope })
    }

    fn set(&mut self, framing: Framing) -> Result<(), usize> {
        if self.framing != framing {
            self.context.set_parameter(DParameter::Format(format(framing)))?;
            self.framing = framing;
        }
        Ok(())
    }
}

fn decompress(decoding: &Decoding<'_>, payload: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    let mut target = Tail::reserve(out, decoding.limit)?;
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new()?),
        };
        decompressor.set(decoding.framing).map_err(fault)?;
        match decoding.dictionary {
            None => decompressor.context.decompress(&mut target, payload),
            Some(dictionary) => {
                let prepared = dictionary.prepared().decompressor(dictionary.bytes());
                let dictionary = prepared.ok_or(Fault::OutOfMemory)?;
                decompressor.context.decompress_using_ddict(&mut target, payload, dictionary)
            }
        }
        .map_err(fault)
    })
}

/// The error codes are negative numbers (zstd_errors.h).
fn fault(code: usize) -> Fault {
    use zstd_safe::zstd_sys::ZSTD_ErrorCode::{ZSTD_error_dstSize_tooSmall, ZSTD_error_memory_allocation};
    match code.wrapping_neg() {
        number if number == ZSTD_error_dstSize_tooSmall as usize => Fault::OutputFull,
        number if number == ZSTD_error_memory_allocation as usize => Fault::OutOfMemory,
        _ => Fault::Other(get_error_name(code)),
    }
}

/// A dictionary's tables, each made when it is needed first, and shared by all threads.
pub(crate) struct Prepared {
    decompressor: OnceLock<DDict<'static>>,
    compressors: OnceLock<Box<AtLevel>>,
}

/// The tables of one level, and those of the next level that was asked for: a list that only grows, by as
/// many entries as levels are in use, so that reading it takes no lock.
struct AtLevel {
    level: i32,
    compressor: CDict<'static>,
    next: OnceLock<Box<AtLevel>>,
}

impl Prepared {
    /// Has made nothing yet, of a dictionary of which everything can be made.
    pub fn new(dictionary: &[u8]) -> Result<Prepared, LoadError> {
        DDict::try_create(dictionary).ok_or(LoadError::Corrupt)?;
        Ok(Prepared { decompressor: OnceLock::new(), compressors: OnceLock::new() })
    }

    /// Makes the tables for decoding and for encoding at this level, if they are missing.
    pub fn prepare(&self, dictionary: &[u8], level: i32) {
        // Without memory for them the values are not encoded.
        let _ = (self.decompressor(dictionary), self.compressor(dictionary, level));
    }

    /// Bytes of the tables that were made so far.
    pub fn memory(&self) -> usize {
        let mut bytes = self.decompressor.get().map_or(0, DDict::sizeof);
        let mut slot = &self.compressors;
        while let Some(entry) = slot.get() {
            bytes += entry.compressor.sizeof();
            slot = &entry.next;
        }
        bytes
    }

    fn decompressor(&self, dictionary: &[u8]) -> Option<&DDict<'static>> {
        if self.decompressor.get().is_none() {
            let _ = self.decompressor.set(DDict::try_create(dictionary)?);
        }
        self.decompressor.get()
    }

    fn compressor(&self, dictionary: &[u8], level: i32) -> Option<&CDict<'static>> {
        let mut slot = &self.compressors;
        loop {
            let entry = match slot.get() {
                Some(entry) => entry,
                None => {
                    let compressor = CDict::try_create(dictionary, level)?;
                    slot.get_or_init(|| Box::new(AtLevel { level, compressor, next: OnceLock::new() }))
                }
            };
            if entry.level == level {
                return Some(&entry.compressor);
            }
            slot = &entry.next;
        }
    }
}

/// The length of what stands before a dictionary's content: magic number, ID and entropy tables.
pub(crate) fn dictionary_header_len(dictionary: &[u8]) -> Option<usize> {
    // SAFETY: the pointer and the length are those of one slice, which the function only reads.
    let len =
        unsafe { zstd_safe::zstd_sys::ZDICT_getDictHeaderSize(dictionary.as_ptr().cast(), dictionary.len()) };
    (len <= dictionary.len()).then_some(len)
}

/// Frequencies that a training counts, as a power of two. It takes 10 bytes for each at its peak: 2.6 MB, where the 2^20 of
/// ZDICT_trainFromBuffer take 10. On seven kinds of values the dictionaries were as good.
const LOG_OF_FREQUENCIES: c_uint = 18;
/// As ZDICT_trainFromBuffer has it; zeros are defaults.
const TRAINING: ZDICT_fastCover_params_t = ZDICT_fastCover_params_t {
    k: 0,
    d: 8,
    f: LOG_OF_FREQUENCIES,
    steps: 4,
    nbThreads: 0,
    splitPoint: 0.0,
    accel: 1,
    shrinkDict: 0,
    shrinkDictMaxRegression: 0,
    zParams: ZDICT_params_t { compressionLevel: 0, notificationLevel: 0, dictID: 0 },
};

/// The fewest bytes that libzstd can train on. It looks at the size of all samples, and then trains on the first three
/// quarters of them: with fewer bytes there it reads beyond them, or divides by zero.
const LEAST_TRAINED: usize = 8;

/// Trains a dictionary of at most `max_bytes` from samples that lie one after the other. Its ID is libzstd's.
pub(crate) fn train(samples: &[u8], lengths: &[usize], max_bytes: usize) -> Result<Vec<u8>, TrainError> {
    let mut dictionary: Vec<u8> = Vec::new();
    dictionary.try_reserve_exact(max_bytes).map_err(|_| TrainError::Refused("out of memory"))?;
    let count = c_uint::try_from(lengths.len()).map_err(|_| TrainError::Refused("too many samples"))?;
    let total = lengths.iter().try_fold(0usize, |total, len| total.checked_add(*len));
    assert_eq!(total, Some(samples.len()), "the samples are as long as their lengths say");
    if lengths[..lengths.len() * 3 / 4].iter().sum::<usize>() < LEAST_TRAINED {
        return Err(TrainError::Refused("the samples are too small"));
    }
    let mut parameters = TRAINING;
    // SAFETY: the dictionary has room for so many bytes, the samples are as long as the lengths together, of which there
    // are so many, and the parameters live for the call.
    let len = unsafe {
        ZDICT_optimizeTrainFromBuffer_fastCover(
            dictionary.as_mut_ptr().cast(),
            max_bytes,
            samples.as_ptr().cast(),
            lengths.as_ptr(),
            count,
            &mut parameters,
        )
    };
    // SAFETY: the function only looks at the number.
    if unsafe { ZDICT_isError(len) } != 0 {
        return Err(TrainError::Refused(get_error_name(len)));
    }
    // SAFETY: so many bytes were written, which are no more than there is room for.
    unsafe { dictionary.set_len(len) };
    Ok(dictionary)
}
