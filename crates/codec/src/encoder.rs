//! Values to records: the writer's half, one a thread.

use std::sync::Arc;

use crate::choice::Choice;
use crate::codecs::{Encoding, Framing};
use crate::counters::{Counters, Family};
use crate::dictionary::Dictionary;
use crate::envelope;
use crate::outcome::Reason;
use crate::policy::Policy;
use crate::record::Record;
use crate::stopwatch::Stopwatch;

/// The scratch buffer that is kept between values, in bytes; a larger one is given back at the next small
/// value, or when its owner says so.
const MAX_KEPT_SCRATCH: usize = 1 << 20;

/// Encodes values into records with a memory of what was worth it. `Send`, for one thread at a time; the
/// compression contexts belong to the thread that it runs on.
pub struct Encoder {
    counters: Arc<Counters>,
    policy: Policy,
    scratch: Vec<u8>,
    stopwatch: Stopwatch,
}

impl Encoder {
    /// An encoder that counts into `counters`, which no other thread may write.
    pub fn new(counters: Arc<Counters>) -> Self {
        Encoder { counters, policy: Policy::new(), scratch: Vec::new(), stopwatch: Stopwatch::new() }
    }

    /// Bytes of the buffer that is kept for the next value.
    pub fn kept_bytes(&self) -> usize {
        self.scratch.capacity()
    }

    /// Gives this buffer back.
    pub fn give_back(&mut self) {
        self.scratch = Vec::new();
    }

    /// Encodes a value, or keeps it as it is where that is no larger. Never fails.
    ///
    /// `overhead` is the number of bytes that share the record's allocation, and `allocation` maps a number
    /// of bytes to the number that the allocator takes for it: a record is encoded only if its real
    /// allocation is smaller.
    pub fn encode<'a>(
        &'a mut self,
        choice: Choice,
        value: &'a [u8],
        overhead: usize,
        allocation: fn(usize) -> usize,
    ) -> Record<'a> {
        self.encode_with(choice, None, value, overhead, allocation)
    }

    /// As [`Encoder::encode`], with the dictionary of this number if the codec can take one.
    pub fn encode_with<'a>(
        &'a mut self,
        choice: Choice,
        dictionary: Option<(u32, &Dictionary)>,
        value: &'a [u8],
        overhead: usize,
        allocation: fn(usize) -> usize,
    ) -> Record<'a> {
        let started = self.stopwatch.start();
        let (codec, dictionary) = choice.with_dictionary(dictionary);
        let number = dictionary.map_or(0, |(number, _)| number);
        let encoding = Encoding {
            level: choice.level(),
            framing: Framing::Record,
            checksum: false,
            dictionary: dictionary.map(|(_, dictionary)| dictionary),
        };
        let room = |record: Record<'_>| allocation(overhead + record.encoded_len());
        let worth = |payload: &[u8]| {
            room(Record::encoded(codec, number, value.len(), payload)) < room(Record::identity(value))
        };
        self.scratch.clear();
        if self.scratch.capacity() > MAX_KEPT_SCRATCH && value.len() <= MAX_KEPT_SCRATCH / 2 {
            self.scratch = Vec::new();
        }
        let result = match envelope::inspect(value) {
            Some(envelope) if choice.compresses() && envelope.is_well_formed(usize::MAX) => {
                Err(Reason::Envelope)
            }
            _ => self.policy.compress(choice, encoding, value, &mut self.scratch, worth),
        };
        let record = match result {
            Ok(()) => Record::encoded(codec, number, value.len(), &self.scratch),
            Err(reason) => {
                self.counters.skipped(reason);
                Record::identity(value)
            }
        };
        self.counters.encoded(record.codec(), value.len(), record.payload().len());
        started.stop(&self.counters, Family::EncodeNanoseconds);
        record
    }
}
