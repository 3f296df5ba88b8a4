//! Records to values: the reader's half, one a thread, and the checks that every payload passes.

use std::sync::Arc;

use crate::codecs::{CodecId, Decoding, Fault, Framing};
use crate::counters::{Counters, Family};
use crate::dictionary::Dictionary;
use crate::error::DecodeError;
use crate::record::Record;
use crate::stopwatch::Stopwatch;

/// Finds a dictionary by its number in a store or its ID in an envelope.
pub type Dictionaries<'a> = &'a dyn Fn(u32) -> Option<&'a Dictionary>;

/// Decodes records. `Send`, for one thread at a time; the contexts belong to the thread that it runs on.
pub struct Decoder {
    counters: Arc<Counters>,
    stopwatch: Stopwatch,
}

impl Decoder {
    /// A decoder that counts into `counters`, which no other thread may write.
    pub fn new(counters: Arc<Counters>) -> Self {
        Decoder { counters, stopwatch: Stopwatch::new() }
    }

    /// Appends the record's value, exactly [`Record::raw_len`] bytes.
    ///
    /// # Errors
    /// A value longer than `max_raw` bytes, a payload that is damaged or that this build cannot read, and
    /// every record that needs a dictionary. `out` is then as it was.
    pub fn decode(
        &mut self,
        record: &Record<'_>,
        max_raw: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        self.decode_with(record, &|_| None, max_raw, out)
    }

    /// As [`Decoder::decode`], with dictionaries.
    ///
    /// # Errors
    /// As [`Decoder::decode`], and a dictionary that is not at hand.
    pub fn decode_with(
        &mut self,
        record: &Record<'_>,
        dictionaries: Dictionaries<'_>,
        max_raw: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let started = self.stopwatch.start();
        let payload = Payload {
            codec: record.codec(),
            framing: Framing::Record,
            bytes: record.payload(),
            declared: Some(record.raw_len() as u64),
            dictionary: record.dictionary(),
        };
        let result = payload.decode(dictionaries, max_raw, out);
        match &result {
            Ok(len) => self.counters.decoded(record.codec(), record.payload().len(), *len),
            Err(_) => self.counters.increment(Family::DecodeFailures),
        }
        if record.dictionary().is_some() {
            let missing = matches!(result, Err(DecodeError::DictionaryMissing { .. }));
            self.counters.increment(if missing { Family::DictionaryMisses } else { Family::DictionaryHits });
        }
        started.stop(&self.counters, Family::DecodeNanoseconds);
        result.map(drop)
    }
}

/// An encoded value with all that is said about it.
pub(crate) struct Payload<'a> {
    pub codec: CodecId,
    pub framing: Framing,
    pub bytes: &'a [u8],
    /// The length of the value, where it stands outside the payload.
    pub declared: Option<u64>,
    pub dictionary: Option<u32>,
}

/// The first room for a value whose length nobody declares, in multiples of the payload; then four times as
/// much each time, so that no claim is ever trusted and little is decoded twice.
const FIRST_ROOM: usize = 8;
const MIN_FIRST_ROOM: usize = 4 << 10;
const NEXT_ROOM: usize = 4;

impl Payload<'_> {
    /// Checks the declared length against the limit and against what the payload can reach, then appends the
    /// value and returns its length.
    pub fn decode(
        &self,
        dictionaries: Dictionaries<'_>,
        max_raw: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecodeError> {
        let codec = self.codec.codec();
        let functions = codec.functions.as_ref().ok_or(DecodeError::NotBuiltIn { codec: self.codec })?;
        let extent = (codec.extent)(self.framing, self.bytes).map_err(|reason| self.corrupt(reason))?;
        let declared = self.declared.or(extent.claimed);
        if let Some(raw) = declared.filter(|_| self.checks_lengths_first()) {
            self.checked(raw, extent.reach, max_raw)?;
        }
        let dictionary = self.find(dictionaries)?;
        let decompress = |room: usize, out: &mut Vec<u8>| {
            let decoding = Decoding { framing: self.framing, dictionary, limit: room };
            (functions.decompress)(&decoding, self.bytes, out)
        };
        if let Some(raw) = declared {
            let room = self.checked(raw, extent.reach, max_raw)?;
            let start = out.len();
            let actual = decompress(room, out).map_err(|fault| self.error(fault, room))?;
            if actual != room {
                out.truncate(start);
                return Err(DecodeError::LengthMismatch {
                    codec: self.codec,
                    payload: self.bytes.len(),
                    raw,
                    actual: actual as u64,
                });
            }
            return Ok(actual);
        }
        let most = usize::try_from(extent.reach).unwrap_or(usize::MAX).min(max_raw);
        let mut room = self.bytes.len().saturating_mul(FIRST_ROOM).max(MIN_FIRST_ROOM).min(most);
        loop {
            match decompress(room, out) {
                Err(Fault::OutputFull) if room < most => room = room.saturating_mul(NEXT_ROOM).min(most),
                Err(Fault::OutputFull) if most == max_raw => {
                    let raw = max_raw as u64 + 1;
                    return Err(DecodeError::TooLarge { codec: self.codec, raw, limit: max_raw });
                }
                result => return result.map_err(|fault| self.error(fault, room)),
            }
        }
    }

    fn checks_lengths_first(&self) -> bool {
        self.framing == Framing::Envelope
            && self.codec.codec().envelope.as_ref().is_some_and(|form| form.lengths_first)
    }

    /// The dictionary, if the payload needs one. In an envelope its ID is that of its content.
    fn find<'d>(&self, dictionaries: Dictionaries<'d>) -> Result<Option<&'d Dictionary>, DecodeError> {
        let Some(number) = self.dictionary else { return Ok(None) };
        let is_it = |found: &&Dictionary| self.framing == Framing::Record || found.id() == number;
        match dictionaries(number).filter(is_it) {
            None => Err(DecodeError::DictionaryMissing { dictionary: number, payload: self.bytes.len() }),
            found => Ok(found),
        }
    }

    /// The room for a declared length, if it is within the limit and within reach.
    fn checked(&self, raw: u64, reach: u64, limit: usize) -> Result<usize, DecodeError> {
        let room = match usize::try_from(raw) {
            Ok(room) if room <= limit => room,
            _ => return Err(DecodeError::TooLarge { codec: self.codec, raw, limit }),
        };
        if raw > reach {
            let payload = self.bytes.len();
            return Err(DecodeError::Unreachable { codec: self.codec, raw, payload, reach });
        }
        Ok(room)
    }

    fn corrupt(&self, reason: &'static str) -> DecodeError {
        DecodeError::Corrupt { codec: self.codec, payload: self.bytes.len(), reason }
    }

    fn error(&self, fault: Fault, room: usize) -> DecodeError {
        match fault {
            Fault::OutputFull => self.corrupt("it decodes to more bytes than declared"),
            Fault::OutOfMemory => DecodeError::OutOfMemory { bytes: room },
            Fault::Checksum { declared, actual } => DecodeError::ChecksumMismatch {
                codec: self.codec,
                payload: self.bytes.len(),
                declared,
                actual,
            },
            Fault::Other(reason) => self.corrupt(reason),
        }
    }
}
