//! Forms of encoded values: records or envelopes.

use std::sync::Arc;

use snugly_codec::{Choice, Decoder, Dictionary, Encoder, Learned, Record, envelope};

use crate::samples::Sample;
use crate::study::{Footprint, Method};

/// The number of the only dictionary in records.
const NUMBER: u32 = 1;

/// One of the forms.
pub(crate) trait Form {
    /// The encoder and decoder of a method.
    fn coder<'m>(&self, method: &'m Method, footprint: Footprint) -> Box<dyn Coder + 'm>;

    /// The length of a value that is kept as it is, in bytes.
    fn plain_len(&self, value: &[u8]) -> usize;

    /// Number of the kept bytes that are the encoded value.
    fn encoded_len(&self, kept: &[u8]) -> usize;

    /// For what dictionaries are learned.
    fn learned(&self) -> Learned;

    /// Whether values that stay are encoded again where they are kept.
    fn has_stages(&self) -> bool;

    /// Bytes that a dictionary takes where the values are kept that are encoded with it so.
    fn dictionary_memory(&self, dictionary: &Dictionary, choice: Choice) -> usize;
}

/// Encodes and decodes values.
pub(crate) trait Coder {
    /// The kept bytes of a value.
    fn encode(&mut self, sample: &Sample) -> Vec<u8>;

    /// Appends the value again. An output of `encode` that cannot be read counts for nothing.
    fn decode(&mut self, kept: &[u8], value: &mut Vec<u8>);
}

/// Records, as a store keeps them.
pub(crate) struct Records;

struct RecordCoder<'m> {
    method: &'m Method,
    footprint: Footprint,
    encoder: Encoder,
    decoder: Decoder,
}

impl Form for Records {
    fn coder<'m>(&self, method: &'m Method, footprint: Footprint) -> Box<dyn Coder + 'm> {
        let (encoder, decoder) = (Encoder::new(Arc::default()), Decoder::new(Arc::default()));
        Box::new(RecordCoder { method, footprint, encoder, decoder })
    }

    fn plain_len(&self, value: &[u8]) -> usize {
        Record::identity(value).encoded_len()
    }

    fn encoded_len(&self, kept: &[u8]) -> usize {
        Record::parse(kept).map_or(0, |record| record.payload().len())
    }

    fn learned(&self) -> Learned {
        Learned::Values
    }

    fn has_stages(&self) -> bool {
        true
    }

    fn dictionary_memory(&self, dictionary: &Dictionary, choice: Choice) -> usize {
        dictionary.memory_for(choice)
    }
}

impl Coder for RecordCoder<'_> {
    fn encode(&mut self, sample: &Sample) -> Vec<u8> {
        let dictionary = self.method.choice.learned(Learned::Values, self.method.dictionary.as_deref());
        let dictionary = dictionary.map(|dictionary| (NUMBER, dictionary));
        let overhead = (self.footprint.overhead)(sample.key_len);
        let (choice, allocation) = (self.method.choice, self.footprint.allocation);
        let record = self.encoder.encode_with(choice, dictionary, &sample.value, overhead, allocation);
        let mut bytes = Vec::with_capacity(record.encoded_len());
        record.append_to(&mut bytes);
        bytes
    }

    fn decode(&mut self, kept: &[u8], value: &mut Vec<u8>) {
        if let Ok(record) = Record::parse(kept) {
            let find = |_: u32| self.method.dictionary.as_deref();
            let _ = self.decoder.decode_with(&record, &find, record.raw_len(), value);
        }
    }
}

/// Envelopes, as clients write them into other servers.
pub(crate) struct Envelopes;

struct EnvelopeCoder<'m> {
    options: envelope::Options,
    dictionary: Option<&'m Arc<Dictionary>>,
}

impl Form for Envelopes {
    fn coder<'m>(&self, method: &'m Method, _footprint: Footprint) -> Box<dyn Coder + 'm> {
        let options = envelope::Options { choice: method.choice, ..envelope::Options::default() };
        Box::new(EnvelopeCoder {
            options,
            dictionary: method.choice.learned(Learned::Envelopes, method.dictionary.as_ref()),
        })
    }

    fn plain_len(&self, value: &[u8]) -> usize {
        value.len()
    }

    fn encoded_len(&self, kept: &[u8]) -> usize {
        kept.len()
    }

    fn learned(&self) -> Learned {
        Learned::Envelopes
    }

    fn has_stages(&self) -> bool {
        false
    }

    fn dictionary_memory(&self, dictionary: &Dictionary, _choice: Choice) -> usize {
        // The tables are in the memory of clients.
        dictionary.bytes().len()
    }
}

impl Coder for EnvelopeCoder<'_> {
    fn encode(&mut self, sample: &Sample) -> Vec<u8> {
        let mut bytes = Vec::new();
        let dictionary = self.dictionary.map(Arc::as_ref);
        match envelope::encode_with(&self.options, dictionary, &sample.value, &mut bytes) {
            envelope::Outcome::Encoded { .. } => bytes,
            envelope::Outcome::AsIs(_) => sample.value.to_vec(),
        }
    }

    fn decode(&mut self, kept: &[u8], value: &mut Vec<u8>) {
        let find = |_: u32| self.dictionary.map(Arc::as_ref);
        let _ = envelope::decode_with(&self.options, &find, kept, value);
    }
}
