//! Values to envelopes and back, for Python's bytes.

use std::cell::Cell;
use std::sync::Arc;
use std::thread::LocalKey;

use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView};
use snugly_codec::envelope::{self, Decoded, ExistingEnvelopes, Fault, Options, Outcome};
use snugly_codec::{Choice, DecodeError, Dictionary, Family, Learned, SelectError};
use snugly_glob::Pattern;
use snugly_learning::Decision;

use crate::allowance::{Allowance, Budget};
use crate::dictionaries::{self, Dictionaries};
use crate::learner::{Decided, Learner};
use crate::leaving::inside;
use crate::memory::copied;
use crate::statistics::{Done, Operation, Own, Statistics};

pyo3::create_exception!(
    _native,
    EnvelopeError,
    PyException,
    "The arguments: message, kind, backend, ID of the missing dictionary."
);

/// Values from this length on, in bytes, are encoded and decoded without the interpreter's lock. What another thread
/// can do meanwhile must be worth more than getting the lock back, and that may take milliseconds.
const UNLOCKED_FROM: usize = 64 << 10;

/// Total bytes from which values are worth waking other threads for, with zstd.
pub(crate) const TOGETHER_FROM: usize = 16 << 10;

/// The buffer that a thread keeps between values, in bytes at most.
const MAX_KEPT_SCRATCH: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Encodes and decodes under one configuration, from any thread.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Codec {
    options: Options,
    /// Globs of keys whose values are sent as they are.
    excluded: Vec<Pattern>,
    dictionaries: Py<Dictionaries>,
    learner: Option<Py<Learner>>,
    statistics: Statistics,
    /// Most bytes of all restored values of one reply; 0 for no bound.
    max_reply_bytes: u64,
}

#[pymethods]
impl Codec {
    #[new]
    #[pyo3(signature = (*, backend, level, min_compression_size, max_decompressed_size, max_reply_bytes, wrap, checksum, exclude, dictionaries, learner))]
    #[allow(clippy::too_many_arguments, reason = "each is given by its name")]
    fn new(
        backend: &str,
        level: Option<i32>,
        min_compression_size: usize,
        max_decompressed_size: usize,
        max_reply_bytes: u64,
        wrap: bool,
        checksum: bool,
        exclude: Vec<Vec<u8>>,
        dictionaries: Py<Dictionaries>,
        learner: Option<Py<Learner>>,
    ) -> PyResult<Codec> {
        let choice = chosen(backend, level, min_compression_size)?;
        let existing_envelopes = if wrap { ExistingEnvelopes::Wrap } else { ExistingEnvelopes::Keep };
        let options = Options { choice, existing_envelopes, checksum, max_decompressed_size };
        let excluded = exclude.iter().map(|glob| Pattern::new(glob, false)).collect();
        let statistics = Statistics::default();
        Ok(Codec { options, excluded, dictionaries, learner, statistics, max_reply_bytes })
    }

    /// The value's envelope, or the value itself where it is to be sent as it is. A dictionary is chosen by the key,
    /// which is bytes.
    #[pyo3(signature = (value, key=None))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        key: Option<&Bound<'py, PyBytes>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let _inside = inside(py);
        let value = bytes(value)?;
        let method = self.method(py, value.as_bytes(), |choose| {
            if let Some(key) = key {
                choose(key.as_bytes());
            }
            Ok(())
        })?;
        let mut out = SCRATCH.take();
        out.clear();
        let is_encoded = self.encode_into(py, value.as_bytes(), method, &mut out);
        let envelope = is_encoded.then(|| copied(py, &out)).transpose();
        keep(&SCRATCH, out);
        Ok(envelope?.unwrap_or(value))
    }

    /// The value in an envelope, or the value itself if it is none. `budget` is what its reply has left, and
    /// `dictionary` one that need not be at hand.
    #[pyo3(signature = (value, budget=None, dictionary=None))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        budget: Option<Bound<'py, Budget>>,
        dictionary: Option<&dictionaries::Dictionary>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let _inside = inside(py);
        let value = bytes(value)?;
        let mut allowance = budget.map_or_else(Allowance::unbounded, Allowance::of);
        let dictionary = dictionary.map(|dictionary| &*dictionary.0);
        Ok(self.decode_slice(py, value.as_bytes(), &mut allowance, dictionary)?.unwrap_or(value))
    }

    /// Creates the budget of one more reply.
    fn budget(&self) -> Budget {
        Budget::new(self.max_reply_bytes)
    }

    /// Returns whether values of this key are sent as they are.
    fn excludes(&self, key: &[u8]) -> bool {
        self.excluded.iter().any(|glob| glob.matches(key))
    }

    /// Counts a value that was not read back for want of a dictionary, after all.
    fn count_unread(&self, py: Python<'_>) {
        self.statistics.add(py, |counters| counters.increment(Family::DecodeFailures));
    }

    /// Counts a dictionary that was fetched.
    fn count_fetched(&self, py: Python<'_>) {
        self.statistics.add_own(py, Own::Fetched);
    }

    /// Counts a dictionary that was put back.
    fn count_put_back(&self, py: Python<'_>) {
        self.statistics.add_own(py, Own::PutBack);
    }

    /// Counts a dictionary that was published.
    fn count_published(&self, py: Python<'_>) {
        self.statistics.add_own(py, Own::Published);
    }

    /// Counts a dictionary's key that had something else and was overwritten.
    fn count_mended(&self, py: Python<'_>) {
        self.statistics.add_own(py, Own::Mended);
    }

    /// Returns the number of reads for each written value; at least one, since others read, too.
    fn reads(&self) -> f64 {
        self.statistics.reads().max(1.0)
    }

    /// Returns the counters of this codec, by name.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.statistics.to_dict(py)
    }
}

impl Codec {
    /// Chooses the encoding of a value. `tell` is asked for the key if it counts, and returns it if it is
    /// known.
    ///
    /// # Errors
    /// Errors that `tell` raises.
    pub fn method(
        &self,
        py: Python<'_>,
        value: &[u8],
        tell: impl FnOnce(&mut dyn FnMut(&[u8])) -> PyResult<()>,
    ) -> PyResult<Method> {
        let mut method = Method { options: self.options, dictionary: None, watched: None };
        let dictionaries = self.dictionaries.get();
        let is_short = value.len() < self.options.choice.min_bytes();
        let is_chosen_by_key = self.learner.is_some() || dictionaries.cache().writes();
        if is_short || !is_chosen_by_key && self.excluded.is_empty() {
            return Ok(method);
        }
        if is_chosen_by_key {
            dictionaries.woken(py);
        }
        let mut is_told = false;
        tell(&mut |key| {
            is_told = true;
            if self.excludes(key) {
                method.options.choice = Choice::none();
                return;
            }
            if dictionaries.cache().excludes(key) {
                return;
            }
            let decision = self.learner.as_ref().and_then(|learner| learner.get().decide(key, value));
            let uses_dictionary = decision.as_ref().is_none_or(|decided| decided.uses_dictionary);
            method.dictionary = uses_dictionary.then(|| dictionaries.cache().for_key(key)).flatten();
            if let Some(Decided { choice, watched, .. }) = decision {
                method.options.choice = choice.with_min_bytes(self.options.choice.min_bytes());
                // Values take more than they will, until their dictionary may be used.
                method.watched = watched.filter(|_| uses_dictionary == method.dictionary.is_some());
            }
        })?;
        if !is_told {
            method.dictionary = dictionaries.cache().for_any_key();
        }
        Ok(method)
    }

    /// Appends the value's envelope, unless the value is to be sent as it is.
    pub fn encode_into(&self, py: Python<'_>, value: &[u8], method: Method, out: &mut Vec<u8>) -> bool {
        let encoding = self.encoding(py, method);
        let encoded = unlocked(py, value.len(), || encoding.run(value, out));
        self.count_encoded(py, &encoded)
    }

    /// From how many bytes on several values may be better encoded by several threads.
    pub fn worth_threads(&self) -> usize {
        self.options.choice.codec().relative_speed().saturating_mul(TOGETHER_FROM)
    }

    /// Something to be encoded, on any thread.
    pub fn encoding(&self, _: Python<'_>, method: Method) -> Encoding {
        Encoding { method, operation: self.statistics.encoding() }
    }

    /// Counts an encoded value, and returns whether there is an envelope.
    pub fn count_encoded(&self, py: Python<'_>, encoded: &Encoded) -> bool {
        self.statistics.count(py, &encoded.done, |counters| encoded.outcome.count(encoded.len, counters));
        matches!(encoded.outcome, Outcome::Encoded { .. })
    }

    /// Creates the allowance of one more reply.
    pub fn allowance(&self) -> Allowance {
        Allowance::new(self.max_reply_bytes)
    }

    /// The value in an envelope, or None if it is none. `dictionary` is one that need not be at hand.
    ///
    /// # Errors
    /// EnvelopeError, and MemoryError.
    pub fn decode_slice<'py>(
        &self,
        py: Python<'py>,
        stored: &[u8],
        allowance: &mut Allowance,
        dictionary: Option<&snugly_codec::Dictionary>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let size = match envelope::inspect(stored) {
            None => 0,
            Some(envelope) => envelope.claimed_len().map_or(stored.len(), |claimed| claimed as usize),
        };
        let most = self.options.max_decompressed_size;
        let options = Options { max_decompressed_size: most.min(allowance.left()), ..self.options };
        let mut out = SCRATCH.take();
        out.clear();
        let operation = self.statistics.decoding();
        let dictionaries = self.dictionaries.get();
        let at_hand = dictionaries.cache().snapshot();
        let find = |id| dictionary.filter(|given| given.id() == id).or_else(|| at_hand.find(id));
        let result = unlocked(py, size, || envelope::decode_with(&options, &find, stored, &mut out));
        let missing = result.as_ref().err().and_then(|error| missing_dictionary(&error.fault));
        self.statistics.count(py, &operation.end(), |counters| match &result {
            Ok(decoded) => decoded.count(stored.len(), counters),
            // The dictionary may still be found.
            Err(_) if missing.is_some() => counters.increment(Family::DictionaryMisses),
            Err(error) => error.count(counters),
        });
        if matches!(result, Ok(Decoded::Restored { codec, .. }) if codec.needs_dictionary()) {
            dictionaries.woken(py);
        }
        let restored = match result {
            Ok(Decoded::Restored { .. }) => {
                allowance.take(out.len());
                copied(py, &out).map(Some)
            }
            Ok(Decoded::AsIs) => Ok(None),
            Err(error) => Err(self.error(&error, missing, options.max_decompressed_size < most)),
        };
        keep(&SCRATCH, out);
        restored
    }

    /// `is_reply` says whether the value was too long for what its reply had left, rather than for any.
    fn error(&self, error: &envelope::EnvelopeError, missing: Option<u32>, is_reply: bool) -> PyErr {
        if matches!(error.fault, Fault::Payload(DecodeError::OutOfMemory { .. })) {
            return PyMemoryError::new_err(error.fault.to_string());
        }
        let is_too_large = matches!(error.fault, Fault::Payload(DecodeError::TooLarge { .. }));
        let why = if is_reply && is_too_large {
            format!(
                "its reply would have more than max_reply_bytes, which is {}: ask for fewer values at once, or raise it",
                self.max_reply_bytes
            )
        } else {
            error.fault.to_string()
        };
        EnvelopeError::new_err((why, error.kind(), error.backend, missing))
    }
}

/// The ID of the dictionary that is not at hand, if that is what is wrong.
fn missing_dictionary(fault: &Fault) -> Option<u32> {
    match fault {
        Fault::Payload(DecodeError::DictionaryMissing { dictionary, .. }) => Some(*dictionary),
        _ => None,
    }
}

/// Encoding of one value.
pub(crate) struct Method {
    options: Options,
    dictionary: Option<Arc<Dictionary>>,
    /// Decision for its class, if the result for the value is to be noted there.
    watched: Option<Arc<Decision>>,
}

impl Method {
    /// Returns the cost of a value of this many bytes, as bytes that would cost the same with zstd.
    pub fn cost(&self, len: usize) -> usize {
        len / self.options.choice.codec().relative_speed()
    }
}

/// A value that is to be encoded.
pub(crate) struct Encoding {
    method: Method,
    operation: Operation,
}

/// Result of encoding a value.
pub(crate) struct Encoded {
    outcome: Outcome,
    len: usize,
    done: Done,
}

impl Encoding {
    /// Appends the value's envelope, unless the value is to be sent as it is.
    pub fn run(&self, value: &[u8], out: &mut Vec<u8>) -> Encoded {
        let operation = self.operation.begin();
        let Method { options, dictionary, watched } = &self.method;
        let dictionary = options.choice.learned(Learned::Envelopes, dictionary.as_deref());
        let outcome = envelope::encode_with(options, dictionary, value, out);
        if let Some(decision) = watched {
            let encoded = match outcome {
                Outcome::Encoded { len, .. } => len - envelope::HEADER_LEN,
                Outcome::AsIs(_) => value.len(),
            };
            decision.drift.note(value.len(), encoded);
        }
        Encoded { outcome, len: value.len(), done: operation.end() }
    }
}

/// The bytes of a bytes-like object. Those that could change while they are read are copied.
pub(crate) fn bytes<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        return Ok(PyMemoryView::from(value)?.call_method0("tobytes")?.cast_into()?);
    }
    Err(PyTypeError::new_err(format!(
        "a value is bytes, bytearray or memoryview, not {}",
        value.get_type().name()?
    )))
}

/// Runs `work` on `size` bytes, without the interpreter's lock if that is worth it.
fn unlocked<T: Send>(py: Python<'_>, size: usize, work: impl FnOnce() -> T + Send) -> T {
    if size < UNLOCKED_FROM { work() } else { py.detach(work) }
}

/// Keeps a thread's buffer for the next time, unless that would keep a lot of memory.
pub(crate) fn keep(place: &'static LocalKey<Cell<Vec<u8>>>, buffer: Vec<u8>) {
    if buffer.capacity() <= MAX_KEPT_SCRATCH {
        place.set(buffer);
    }
}

/// Raises ValueError for a backend or level that there is not.
pub(crate) fn chosen(backend: &str, level: Option<i32>, min_bytes: usize) -> PyResult<Choice> {
    let refused = |error: SelectError| PyValueError::new_err(error.to_string());
    Choice::new(backend, level, min_bytes).map_err(refused)
}

/// Backend, the backend's name, claimed length, dictionary ID.
type Header = (u8, Option<&'static str>, Option<u64>, Option<u32>);

/// Parses the first bytes of an envelope: its backend's number, the backend's name if it is known, the length
/// that it claims for the value, and the ID of its dictionary. None if the bytes are not an envelope.
#[pyfunction]
pub(crate) fn inspect(value: &Bound<'_, PyAny>) -> PyResult<Option<Header>> {
    let value = bytes(value)?;
    Ok(envelope::inspect(value.as_bytes()).map(|envelope| {
        let name = envelope.codec().map(|codec| codec.name());
        (envelope.backend(), name, envelope.claimed_len(), envelope.dictionary_id())
    }))
}

/// The lowest, the highest and the default level of a backend.
#[pyfunction]
pub(crate) fn levels(backend: &str) -> PyResult<(i32, i32, i32)> {
    let unknown = || PyValueError::new_err(format!("no backend is called {backend}"));
    let codec = snugly_codec::Codec::by_name(backend);
    let codec = codec.filter(|codec| codec.is_for_values()).ok_or_else(unknown)?;
    let (lowest, highest) = codec.levels().into_inner();
    Ok((lowest, highest, codec.default_level()))
}
