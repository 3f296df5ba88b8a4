//! Values to envelopes and back, for Python's bytes.

use std::cell::Cell;
use std::thread::LocalKey;

use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView};
use snugly_client::{Encoded, Encoding, Method, Own, Read, Settings, Unread, ValueCodec, claimed_len};
use snugly_codec::envelope::{self, ExistingEnvelopes, Options};
use snugly_codec::{Choice, Family, SelectError};

use crate::allowance::{Allowance, Budget};
use crate::dictionaries::{self, Dictionaries};
use crate::learner::Learner;
use crate::leaving::inside;
use crate::memory::copied;
use crate::statistics::named;

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
    values: ValueCodec,
    dictionaries: Py<Dictionaries>,
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
        let settings = Settings { options, exclude, max_reply_bytes };
        let learner = learner.map(|learner| learner.get().0.clone());
        let values = ValueCodec::new(settings, dictionaries.get().cache().clone(), learner);
        Ok(Codec { values, dictionaries })
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
        Budget::new(self.values.max_reply_bytes())
    }

    /// Returns whether values of this key are sent as they are.
    fn excludes(&self, key: &[u8]) -> bool {
        self.values.excludes(key)
    }

    /// Counts a value that was not read back for want of a dictionary, after all.
    fn count_unread(&self) {
        self.values.statistics().increment(Family::DecodeFailures);
    }

    /// Counts a dictionary that was fetched.
    fn count_fetched(&self) {
        self.values.statistics().add_own(Own::Fetched);
    }

    /// Counts a dictionary that was put back.
    fn count_put_back(&self) {
        self.values.statistics().add_own(Own::PutBack);
    }

    /// Counts a dictionary that was published.
    fn count_published(&self) {
        self.values.statistics().add_own(Own::Published);
    }

    /// Counts a dictionary's key that had something else and was overwritten.
    fn count_mended(&self) {
        self.values.statistics().add_own(Own::Mended);
    }

    /// Returns the number of reads for each written value; at least one, since others read, too.
    fn reads(&self) -> f64 {
        self.values.statistics().reads().max(1.0)
    }

    /// Returns the counters of this codec, by name.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        named(py, self.values.statistics().named())
    }
}

/// Counters are written with the interpreter's lock, so that no fork finds them half written.
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
        let method = self.values.method(value, tell)?;
        if method.asks_dictionaries() {
            self.dictionaries.get().woken(py);
        }
        Ok(method)
    }

    /// Appends the value's envelope, unless the value is to be sent as it is.
    pub fn encode_into(&self, py: Python<'_>, value: &[u8], method: Method, out: &mut Vec<u8>) -> bool {
        let encoding = self.values.encoding(method);
        let encoded = unlocked(py, value.len(), || encoding.run(value, out));
        self.values.count_encoded(&encoded)
    }

    /// From how many bytes on several values may be better encoded by several threads.
    pub fn worth_threads(&self) -> usize {
        self.values.relative_speed().saturating_mul(TOGETHER_FROM)
    }

    /// Something to be encoded, on any thread.
    pub fn encoding(&self, _: Python<'_>, method: Method) -> Encoding {
        self.values.encoding(method)
    }

    /// Counts an encoded value, and returns whether there is an envelope.
    pub fn count_encoded(&self, _: Python<'_>, encoded: &Encoded) -> bool {
        self.values.count_encoded(encoded)
    }

    /// Creates the allowance of one more reply.
    pub fn allowance(&self) -> Allowance {
        Allowance::new(self.values.max_reply_bytes())
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
        let mut out = SCRATCH.take();
        out.clear();
        let reading = self.values.reading(allowance.left());
        let run = unlocked(py, claimed_len(stored), || reading.run(stored, dictionary, &mut out));
        let restored = match self.values.count_read(stored, run) {
            Ok(Read::Restored { by_dictionary }) => {
                if by_dictionary {
                    self.dictionaries.get().woken(py);
                }
                allowance.take(out.len());
                copied(py, &out).map(Some)
            }
            Ok(Read::AsIs) => Ok(None),
            Err(unread) => Err(error(unread)),
        };
        keep(&SCRATCH, out);
        restored
    }
}

fn error(unread: Unread) -> PyErr {
    if unread.is_out_of_memory {
        return PyMemoryError::new_err(unread.why);
    }
    EnvelopeError::new_err((unread.why, unread.kind, unread.backend, unread.missing_dictionary))
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
