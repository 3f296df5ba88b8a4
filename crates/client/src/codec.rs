//! Values to envelopes and back, under one configuration.

use std::sync::Arc;

use snugly_codec::envelope::{self, Decoded, EnvelopeError, Fault, HEADER_LEN, Options, Outcome};
use snugly_codec::{Choice, DecodeError, Dictionary, Family, Learned};
use snugly_dictionaries::DictionaryCache;
use snugly_glob::Pattern;
use snugly_learning::Decision;

use crate::learner::{Decided, Learner};
use crate::statistics::{Done, Operation, Statistics};

/// Configuration of a codec.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Settings of writing and reading; the choice is what values are written with while nothing else is
    /// decided.
    pub options: Options,
    /// Globs of keys whose values are sent as they are.
    pub exclude: Vec<Vec<u8>>,
    /// Most bytes of all restored values of one reply; 0 for no bound.
    pub max_reply_bytes: u64,
}

/// Encodes and decodes values of one client, on any thread.
pub struct ValueCodec {
    options: Options,
    excluded: Vec<Pattern>,
    max_reply_bytes: u64,
    dictionaries: Arc<DictionaryCache>,
    learner: Option<Arc<Learner>>,
    statistics: Statistics,
}

impl ValueCodec {
    /// Creates a codec that uses these dictionaries. Without a learner its choice never changes.
    pub fn new(
        settings: Settings,
        dictionaries: Arc<DictionaryCache>,
        learner: Option<Arc<Learner>>,
    ) -> ValueCodec {
        ValueCodec {
            options: settings.options,
            excluded: settings.exclude.iter().map(|glob| Pattern::new(glob, false)).collect(),
            max_reply_bytes: settings.max_reply_bytes,
            dictionaries,
            learner,
            statistics: Statistics::default(),
        }
    }

    /// Returns the counters.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns whether values of this key are sent as they are.
    pub fn excludes(&self, key: &[u8]) -> bool {
        self.excluded.iter().any(|glob| glob.matches(key))
    }

    /// Returns the most bytes of all restored values of one reply; 0 for no bound.
    pub fn max_reply_bytes(&self) -> u64 {
        self.max_reply_bytes
    }

    /// Returns whether the encoding of a value depends on its key.
    pub fn chooses_by_key(&self) -> bool {
        self.is_chosen_by_key() || !self.excluded.is_empty()
    }

    fn is_chosen_by_key(&self) -> bool {
        self.learner.is_some() || self.dictionaries.writes()
    }

    /// Returns how many times faster than zstd the codec is that values are written with by default.
    pub fn relative_speed(&self) -> usize {
        self.options.choice.codec().relative_speed()
    }

    /// Chooses the encoding of a value. `tell` is asked for the key if it counts, and passes it on if it is
    /// known.
    ///
    /// # Errors
    /// Errors of `tell`.
    pub fn method<E>(
        &self,
        value: &[u8],
        tell: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>,
    ) -> Result<Method, E> {
        let mut method =
            Method { options: self.options, dictionary: None, watched: None, asks_dictionaries: false };
        let is_short = value.len() < self.options.choice.min_bytes();
        if is_short || !self.chooses_by_key() {
            return Ok(method);
        }
        method.asks_dictionaries = self.is_chosen_by_key();
        let mut is_told = false;
        tell(&mut |key| {
            is_told = true;
            if self.excludes(key) {
                method.options.choice = Choice::none();
                return;
            }
            if self.dictionaries.excludes(key) {
                return;
            }
            let decision = self.learner.as_ref().and_then(|learner| learner.decide(key, value));
            let uses_dictionary = decision.as_ref().is_none_or(|decided| decided.uses_dictionary);
            method.dictionary = uses_dictionary.then(|| self.dictionaries.for_key(key)).flatten();
            if let Some(Decided { choice, watched, .. }) = decision {
                method.options.choice = choice.with_min_bytes(self.options.choice.min_bytes());
                // Values take more than they will, until their dictionary may be used.
                method.watched = watched.filter(|_| uses_dictionary == method.dictionary.is_some());
            }
        })?;
        if !is_told {
            method.dictionary = self.dictionaries.for_any_key();
        }
        Ok(method)
    }

    /// Begins the encoding of a value, to be run on any thread.
    pub fn encoding(&self, method: Method) -> Encoding {
        Encoding { method, operation: self.statistics.encoding() }
    }

    /// Counts an encoded value, and returns whether there is an envelope.
    pub fn count_encoded(&self, encoded: &Encoded) -> bool {
        self.statistics.count(encoded.done, |counters| encoded.outcome.count(encoded.len, counters));
        matches!(encoded.outcome, Outcome::Encoded { .. })
    }

    /// Begins the decoding of a value, to be run on any thread. `left` is the most bytes that its reply may
    /// still have.
    pub fn reading(&self, left: usize) -> Reading<'_> {
        let options =
            Options { max_decompressed_size: self.options.max_decompressed_size.min(left), ..self.options };
        Reading { options, dictionaries: &self.dictionaries, operation: self.statistics.decoding() }
    }

    /// Counts a value that was read, and says what became of it.
    ///
    /// # Errors
    /// [`Unread`] if it is an envelope that cannot be decoded.
    pub fn count_read(&self, stored: &[u8], run: Run) -> Result<Read, Unread> {
        let missing = run.result.as_ref().err().and_then(|error| missing_dictionary(&error.fault));
        self.statistics.count(run.done, |counters| match &run.result {
            Ok(decoded) => decoded.count(stored.len(), counters),
            // The dictionary may still be found.
            Err(_) if missing.is_some() => counters.increment(Family::DictionaryMisses),
            Err(error) => error.count(counters),
        });
        match run.result {
            Ok(Decoded::AsIs) => Ok(Read::AsIs),
            Ok(Decoded::Restored { codec, .. }) => {
                Ok(Read::Restored { by_dictionary: codec.needs_dictionary() })
            }
            Err(error) => Err(self.unread(&error, missing, run.max < self.options.max_decompressed_size)),
        }
    }

    /// `is_bounded` says whether the reply had less left than what a value may have.
    fn unread(&self, error: &EnvelopeError, missing: Option<u32>, is_bounded: bool) -> Unread {
        let is_too_large = matches!(error.fault, Fault::Payload(DecodeError::TooLarge { .. }));
        let why = if is_bounded && is_too_large {
            format!(
                "its reply would have more than max_reply_bytes, which is {}: ask for fewer values at once, or raise it",
                self.max_reply_bytes
            )
        } else {
            error.fault.to_string()
        };
        Unread {
            why,
            kind: error.kind(),
            backend: error.backend,
            missing_dictionary: missing,
            is_out_of_memory: matches!(error.fault, Fault::Payload(DecodeError::OutOfMemory { .. })),
        }
    }
}

/// Returns the ID of the dictionary that is not at hand, if that is what is wrong.
fn missing_dictionary(fault: &Fault) -> Option<u32> {
    match fault {
        Fault::Payload(DecodeError::DictionaryMissing { dictionary, .. }) => Some(*dictionary),
        _ => None,
    }
}

/// How one value is to be encoded.
pub struct Method {
    options: Options,
    dictionary: Option<Arc<Dictionary>>,
    /// Decision for its class, if the result for the value is to be noted there.
    watched: Option<Arc<Decision>>,
    asks_dictionaries: bool,
}

impl Method {
    /// Returns the cost of a value of this many bytes, as bytes that would cost the same with zstd.
    pub fn cost(&self, len: usize) -> usize {
        len / self.options.choice.codec().relative_speed()
    }

    /// Returns whether dictionaries count for it: their keeper is to be told that they are used.
    pub fn asks_dictionaries(&self) -> bool {
        self.asks_dictionaries
    }
}

/// A value that is to be encoded.
pub struct Encoding {
    method: Method,
    operation: Operation,
}

/// Result of encoding a value.
pub struct Encoded {
    outcome: Outcome,
    len: usize,
    done: Done,
}

impl Encoding {
    /// Appends the value's envelope, unless the value is to be sent as it is.
    pub fn run(&self, value: &[u8], out: &mut Vec<u8>) -> Encoded {
        let operation = self.operation.begin();
        let Method { options, dictionary, watched, .. } = &self.method;
        let dictionary = options.choice.learned(Learned::Envelopes, dictionary.as_deref());
        let outcome = envelope::encode_with(options, dictionary, value, out);
        if let Some(decision) = watched {
            let encoded = match outcome {
                Outcome::Encoded { len, .. } => len - HEADER_LEN,
                Outcome::AsIs(_) => value.len(),
            };
            decision.drift.note(value.len(), encoded);
        }
        Encoded { outcome, len: value.len(), done: operation.end() }
    }
}

/// A value that is to be read.
pub struct Reading<'a> {
    options: Options,
    dictionaries: &'a DictionaryCache,
    operation: Operation,
}

/// Result of reading a value, to be counted.
pub struct Run {
    result: Result<Decoded, EnvelopeError>,
    max: usize,
    done: Done,
}

impl Reading<'_> {
    /// Appends the value in an envelope. `given` is a dictionary that need not be at hand.
    pub fn run(&self, stored: &[u8], given: Option<&Dictionary>, out: &mut Vec<u8>) -> Run {
        let operation = self.operation.begin();
        let at_hand = self.dictionaries.snapshot();
        let find = |id| given.filter(|given| given.id() == id).or_else(|| at_hand.find(id));
        let result = envelope::decode_with(&self.options, &find, stored, out);
        Run { result, max: self.options.max_decompressed_size, done: operation.end() }
    }
}

/// Kind of a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// No envelope: it is the value.
    AsIs,
    /// An envelope, whose value was appended.
    Restored {
        /// Whether a dictionary was used: its keeper is to be told.
        by_dictionary: bool,
    },
}

/// An envelope that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Reason, as text.
    pub why: String,
    /// Name of the reason in `spec/envelope.md`.
    pub kind: &'static str,
    /// Number of the backend.
    pub backend: u8,
    /// ID of the dictionary that is not at hand, if that is the reason.
    pub missing_dictionary: Option<u32>,
    /// Whether there was no memory for the value.
    pub is_out_of_memory: bool,
}

/// Returns the bytes that a stored value may be restored to, by its own account; 0 for what is no envelope.
/// A zstd frame need not tell, which counts as its own length.
pub fn claimed_len(stored: &[u8]) -> usize {
    match envelope::inspect(stored) {
        None => 0,
        Some(envelope) => envelope.claimed_len().map_or(stored.len(), |claimed| claimed as usize),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const VALUE: &[u8] =
        b"a value that repeats itself, a value that repeats itself, a value that repeats itself";

    fn codec(exclude: &[&str], max_reply_bytes: u64) -> ValueCodec {
        let choice = Choice::new("zstd", None, 64).expect("zstd is there");
        let settings = Settings {
            options: Options { choice, ..Options::default() },
            exclude: exclude.iter().map(|glob| glob.as_bytes().to_vec()).collect(),
            max_reply_bytes,
        };
        ValueCodec::new(settings, Arc::new(DictionaryCache::new(None, false, true, Vec::new())), None)
    }

    fn encoded(codec: &ValueCodec, key: &[u8]) -> Option<Vec<u8>> {
        let told = |choose: &mut dyn FnMut(&[u8])| {
            choose(key);
            Ok::<_, Infallible>(())
        };
        let Ok(method) = codec.method(VALUE, told);
        let mut out = Vec::new();
        let result = codec.encoding(method).run(VALUE, &mut out);
        codec.count_encoded(&result).then_some(out)
    }

    fn read(codec: &ValueCodec, stored: &[u8], left: usize) -> Result<(Read, Vec<u8>), Unread> {
        let mut out = Vec::new();
        let run = codec.reading(left).run(stored, None, &mut out);
        codec.count_read(stored, run).map(|read| (read, out))
    }

    #[test]
    fn a_value_comes_back_and_is_counted() {
        let codec = codec(&[], 0);
        let stored = encoded(&codec, b"key").expect("it shrinks");
        assert_eq!(claimed_len(&stored), VALUE.len());
        let restored = Read::Restored { by_dictionary: false };
        assert_eq!(read(&codec, &stored, usize::MAX), Ok((restored, VALUE.to_vec())));
        assert_eq!(read(&codec, VALUE, usize::MAX), Ok((Read::AsIs, Vec::new())));
        let counted: Vec<_> = codec.statistics().named().filter(|(_, count)| *count > 0).collect();
        for name in ["encoded_values_zstd", "decoded_values_zstd", "decoded_values_none"] {
            assert!(counted.contains(&(name.to_owned(), 1)), "{name} of {counted:?}");
        }
    }

    #[test]
    fn values_of_excluded_keys_are_sent_as_they_are() {
        let codec = codec(&["lock:*"], 0);
        assert!(encoded(&codec, b"lock:1").is_none());
        assert!(encoded(&codec, b"key").is_some());
    }

    #[test]
    fn a_value_beyond_what_its_reply_may_have_is_not_restored() {
        let codec = codec(&[], 100);
        let stored = encoded(&codec, b"key").expect("it shrinks");
        let unread = read(&codec, &stored, VALUE.len() - 1).expect_err("it is too long");
        assert_eq!(unread.kind, "too_large");
        assert!(unread.why.contains("max_reply_bytes, which is 100"), "{}", unread.why);
    }
}
