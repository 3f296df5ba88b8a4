//! Values to envelopes and back, for JavaScript's strings and Buffers.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use napi::bindgen_prelude::{
    Array, AsyncTask, Buffer, BufferSlice, Either, Error, Object, ToNapiValue, Unknown,
};
use napi::{Env, JsValue, Task, ValueType};
use napi_derive::napi;
use snugly_client::{self as client, Own, Read, Settings, Unread, claimed_len};
use snugly_codec::Family;
use snugly_codec::envelope::{self, ExistingEnvelopes, Options};

use crate::dictionaries::{Dictionaries, Dictionary, chosen};
use crate::learner::Learner;
use crate::words::{bytes, slice};

/// The buffer that a thread keeps between values, in bytes at most.
const MAX_KEPT_SCRATCH: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Configuration of a codec.
#[napi(object, object_to_js = false)]
pub struct CodecSettings {
    /// Name of the codec of new values, `none` for none.
    pub backend: String,
    /// Level; the codec's own default without one.
    pub level: Option<i32>,
    /// Shorter values are sent as they are, in bytes.
    pub min_compression_size: u32,
    /// Longer values are neither encoded nor decoded, in bytes.
    pub max_decompressed_size: f64,
    /// Most bytes of the restored values of one reply; 0 for no bound.
    pub max_reply_bytes: f64,
    /// Whether written envelopes are wrapped in another one.
    pub wraps: bool,
    /// Whether zstd frames carry a checksum.
    pub checksum: bool,
    /// Globs of keys whose values are sent as they are.
    pub exclude: Vec<Buffer>,
}

/// Reason why an envelope was not decoded.
#[napi(object, object_from_js = false)]
pub struct Failure {
    /// Text for people.
    pub why: String,
    /// Name of the reason in `spec/envelope.md`.
    pub kind: String,
    /// Number of the backend.
    pub backend: u32,
    /// ID of the dictionary that is not at hand, if that is the reason.
    pub missing_dictionary: Option<u32>,
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Failure {
        let Unread { why, kind, backend, missing_dictionary, .. } = unread;
        Failure { why, kind: kind.to_owned(), backend: backend.into(), missing_dictionary }
    }
}

/// Memory of JavaScript for results of one call: making a Buffer costs more than copying a small value there.
struct Returned {
    bytes: Buffer,
    /// 32-bit numbers: the number of envelopes, and for each the index of its argument, its beginning and its end in the
    /// bytes.
    places: Buffer,
}

/// Bytes of a number in [`Returned::places`], and numbers of an envelope there.
const NUMBER_BYTES: usize = 4;
const PLACE: usize = 3;

/// Encodes and decodes values of one client.
#[napi]
pub struct ValueCodec {
    values: Arc<client::ValueCodec>,
    returned: RefCell<Returned>,
}

#[napi]
impl ValueCodec {
    /// Throws for a backend or level that there is not. What is returned and has room there is put into `bytes`, and where
    /// it is into `places`, which nobody else writes.
    #[napi(constructor)]
    pub fn new(
        settings: CodecSettings,
        dictionaries: &Dictionaries,
        bytes: Buffer,
        places: Buffer,
        learner: Option<&Learner>,
    ) -> napi::Result<ValueCodec> {
        let choice = chosen(&settings.backend, settings.level, settings.min_compression_size)?;
        let existing_envelopes =
            if settings.wraps { ExistingEnvelopes::Wrap } else { ExistingEnvelopes::Keep };
        let max_decompressed_size = settings.max_decompressed_size as usize;
        let options =
            Options { choice, existing_envelopes, checksum: settings.checksum, max_decompressed_size };
        let exclude = settings.exclude.iter().map(|glob| glob.to_vec()).collect();
        let settings = Settings { options, exclude, max_reply_bytes: settings.max_reply_bytes as u64 };
        let learner = learner.map(|learner| learner.0.clone());
        let values = client::ValueCodec::new(settings, dictionaries.cache().clone(), learner);
        Ok(ValueCodec { values: Arc::new(values), returned: RefCell::new(Returned { bytes, places }) })
    }

    /// Returns the envelope of a string or Buffer; `undefined` if it is to be sent as it is.
    #[napi]
    pub fn encode<'env>(
        &self,
        env: &'env Env,
        value: Unknown<'_>,
        key: Option<Unknown<'_>>,
    ) -> napi::Result<Option<BufferSlice<'env>>> {
        let key = key.map(|key| bytes(&key)).transpose()?.flatten();
        with_scratch(|out| {
            let is_encoded = self.is_encoded(&value, key.as_deref(), out)?;
            is_encoded.then(|| BufferSlice::copy_from(env, out)).transpose()
        })
    }

    /// Does the same on the worker pool. The Buffer must not change meanwhile.
    #[napi(ts_return_type = "Promise<Buffer | undefined>")]
    pub fn encode_on_worker(
        &self,
        value: Either<String, Buffer>,
        key: Option<Unknown<'_>>,
    ) -> napi::Result<AsyncTask<Encode>> {
        let key = key.map(|key| bytes(&key)).transpose()?.flatten();
        Ok(AsyncTask::new(Encode { codec: self.values.clone(), value, key }))
    }

    /// Returns the value in an envelope, as text if that is asked for, or its length if there is room for it;
    /// `undefined` if it is no envelope, `null` if it claims `large_from` bytes or more, a `Failure` if it
    /// cannot be read. `left` is the most bytes that its reply may still have; `dictionary` need not be at
    /// hand.
    #[napi(ts_return_type = "Buffer | string | number | Failure | null | undefined")]
    pub fn decode<'env>(
        &self,
        env: &'env Env,
        stored: BufferSlice<'_>,
        as_text: bool,
        left: f64,
        large_from: f64,
        dictionary: Option<&Dictionary>,
    ) -> napi::Result<Unknown<'env>> {
        // Nothing is large to who does not ask.
        if large_from.is_finite() && claimed_len(&stored) >= large_from as usize {
            return js(env, napi::bindgen_prelude::Null);
        }
        let dictionary = dictionary.map(|dictionary| &*dictionary.0);
        with_scratch(|out| {
            let run = self.values.reading(limit(left)).run(&stored, dictionary, out);
            match self.values.count_read(&stored, run) {
                Ok(Read::AsIs) => js(env, ()),
                Ok(Read::Restored { .. }) if as_text => text(env, out),
                Ok(Read::Restored { .. }) => match self.returned.borrow_mut().bytes.get_mut(..out.len()) {
                    Some(room) => {
                        room.copy_from_slice(out);
                        js(env, out.len() as u32)
                    }
                    None => js(env, &BufferSlice::copy_from(env, &out)?),
                },
                Err(unread) => failure(env, unread),
            }
        })
    }

    /// Does the same on the worker pool, for a Buffer that does not change meanwhile; the value is a Buffer.
    #[napi(ts_return_type = "Promise<Buffer | Failure | undefined>")]
    pub fn decode_on_worker(
        &self,
        stored: Buffer,
        left: f64,
        dictionary: Option<&Dictionary>,
    ) -> AsyncTask<Decode> {
        let dictionary = dictionary.map(|dictionary| dictionary.0.clone());
        AsyncTask::new(Decode { codec: self.values.clone(), stored, left: limit(left), dictionary })
    }

    /// Returns whether values of this key are sent as they are.
    #[napi]
    pub fn excludes(&self, key: Buffer) -> bool {
        self.values.excludes(&key)
    }

    /// Counts values that were read and were no envelopes.
    #[napi]
    pub fn count_plain(&self, values: f64, bytes: f64) {
        self.values.statistics().count_plain(values as u64, bytes as u64);
    }

    /// Counts a value that was not read back for want of a dictionary, after all.
    #[napi]
    pub fn count_unread(&self) {
        self.values.statistics().increment(Family::DecodeFailures);
    }

    /// Counts an event of dictionaries: `fetched`, `put_back`, `published` or `mended`.
    #[napi]
    pub fn count(&self, event: String) {
        let own = match event.as_str() {
            "fetched" => Own::Fetched,
            "put_back" => Own::PutBack,
            "published" => Own::Published,
            _ => Own::Mended,
        };
        self.values.statistics().add_own(own);
    }

    /// Returns the number of reads for each written value; at least one, since others read, too.
    #[napi]
    pub fn reads(&self) -> f64 {
        self.values.statistics().reads().max(1.0)
    }

    /// Returns the counters of this codec, by name.
    #[napi(ts_return_type = "Record<string, number>")]
    pub fn statistics<'env>(&self, env: &'env Env) -> napi::Result<Object<'env>> {
        named(env, self.values.statistics().named())
    }
}

impl ValueCodec {
    /// Encodes values, at pairs of an index and the index of their key. Envelopes are returned as far as there is room,
    /// others replace their values. `false` if a value has `large_from` bytes or more, and then nothing is done.
    pub fn encode_in(
        &self,
        env: &Env,
        args: &mut Array<'_>,
        values: &[(u32, u32)],
        large_from: usize,
    ) -> napi::Result<bool> {
        for &(at, _) in values {
            if let Some(value) = args.get::<Unknown>(at)?
                && rough_len(&value)? >= large_from
            {
                return Ok(false);
            }
        }
        let names_keys = self.values.chooses_by_key();
        let mut returned = self.returned.borrow_mut();
        let (mut count, mut end) = (0, 0);
        for &(at, key) in values {
            let Some(value) = args.get::<Unknown>(at)? else { continue };
            let key = if names_keys { args.get::<Unknown>(key)? } else { None };
            let key = key.map(|key| bytes(&key)).transpose()?.flatten();
            with_scratch(|out| {
                if !self.is_encoded(&value, key.as_deref(), out)? {
                    return Ok(());
                }
                if returned.put(count, at, end, out) {
                    (count, end) = (count + 1, end + out.len());
                    return Ok(());
                }
                args.set(at, &BufferSlice::copy_from(env, out)?)
            })?;
        }
        returned.write(0, [count as u32]);
        Ok(true)
    }

    fn is_encoded(&self, value: &Unknown<'_>, key: Option<&[u8]>, out: &mut Vec<u8>) -> napi::Result<bool> {
        Ok(match value.get_type()? {
            ValueType::String => encode(&self.values, crate::words::text(value)?.as_bytes(), key, out),
            ValueType::Object if value.is_buffer()? => encode(&self.values, &slice(value)?, key, out),
            _ => false,
        })
    }
}

impl Returned {
    /// Puts an envelope at the place of a number, from `start` on; `false` if there is no room.
    fn put(&mut self, number: usize, at: u32, start: usize, envelope: &[u8]) -> bool {
        let end = start + envelope.len();
        let Some(room) = self.bytes.get_mut(start..end) else { return false };
        room.copy_from_slice(envelope);
        self.write(1 + PLACE * number, [at, start as u32, end as u32])
    }

    /// Writes numbers from an index on; `false` if there is no room.
    fn write<const N: usize>(&mut self, index: usize, numbers: [u32; N]) -> bool {
        let Some(room) = self.places.get_mut(index * NUMBER_BYTES..(index + N) * NUMBER_BYTES) else {
            return false;
        };
        for (bytes, number) in room.chunks_exact_mut(NUMBER_BYTES).zip(numbers) {
            bytes.copy_from_slice(&number.to_ne_bytes());
        }
        true
    }
}

/// Appends the envelope of a value, unless it is to be sent as it is, and counts it.
fn encode(codec: &client::ValueCodec, value: &[u8], key: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    let encoded = begun(codec, value, key).run(value, out);
    codec.count_encoded(&encoded)
}

fn begun(codec: &client::ValueCodec, value: &[u8], key: Option<&[u8]>) -> client::Encoding {
    let tell = |choose: &mut dyn FnMut(&[u8])| {
        key.into_iter().for_each(choose);
        Ok::<_, std::convert::Infallible>(())
    };
    let Ok(method) = codec.method(value, tell);
    codec.encoding(method)
}

/// Returns the length of a Buffer, or a length that a string does not exceed in UTF-16.
fn rough_len(value: &Unknown<'_>) -> napi::Result<usize> {
    match value.get_type()? {
        ValueType::String => value.coerce_to_string()?.utf16_len(),
        ValueType::Object if value.is_buffer()? => Ok(slice(value)?.len()),
        _ => Ok(0),
    }
}

/// Encoding on the worker pool.
pub struct Encode {
    codec: Arc<client::ValueCodec>,
    value: Either<String, Buffer>,
    key: Option<Vec<u8>>,
}

impl Task for Encode {
    type Output = (Vec<u8>, client::Encoded);
    type JsValue = Option<Buffer>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        let value = match &self.value {
            Either::A(text) => text.as_bytes(),
            Either::B(buffer) => buffer,
        };
        let mut out = Vec::new();
        let encoded = begun(&self.codec, value, self.key.as_deref()).run(value, &mut out);
        Ok((out, encoded))
    }

    fn resolve(&mut self, _: Env, (out, encoded): Self::Output) -> napi::Result<Self::JsValue> {
        Ok(self.codec.count_encoded(&encoded).then(|| out.into()))
    }
}

/// Decoding on the worker pool.
pub struct Decode {
    codec: Arc<client::ValueCodec>,
    stored: Buffer,
    left: usize,
    dictionary: Option<Arc<snugly_codec::Dictionary>>,
}

impl Task for Decode {
    type Output = (Vec<u8>, client::Run);
    type JsValue = Option<Either<Buffer, Failure>>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        let mut out = Vec::new();
        let run = self.codec.reading(self.left).run(&self.stored, self.dictionary.as_deref(), &mut out);
        Ok((out, run))
    }

    fn resolve(&mut self, _: Env, (out, run): Self::Output) -> napi::Result<Self::JsValue> {
        match self.codec.count_read(&self.stored, run) {
            Ok(Read::AsIs) => Ok(None),
            Ok(Read::Restored { .. }) => Ok(Some(Either::A(out.into()))),
            Err(unread) if unread.is_out_of_memory => Err(Error::from_reason(unread.why)),
            Err(unread) => Ok(Some(Either::B(unread.into()))),
        }
    }
}

/// Claims of the first bytes of an envelope.
#[napi(object, object_from_js = false)]
pub struct Header {
    /// Number of the backend.
    pub backend: u32,
    /// Name of the backend, if it is known.
    pub name: Option<String>,
    /// Length of the value, in bytes, if it is claimed.
    pub size: Option<f64>,
    /// ID of the dictionary that is needed.
    pub dictionary: Option<u32>,
}

/// Parses the header of an envelope; `null` if the bytes are not an envelope.
#[napi]
pub fn inspect(stored: BufferSlice<'_>) -> Option<Header> {
    envelope::inspect(&stored).map(|envelope| Header {
        backend: envelope.backend().into(),
        name: envelope.codec().map(|codec| codec.name().to_owned()),
        size: envelope.claimed_len().map(|len| len as f64),
        dictionary: envelope.dictionary_id(),
    })
}

/// Lowest, highest and default level of a backend.
#[napi(object, object_from_js = false)]
pub struct Levels {
    /// Lowest.
    pub lowest: i32,
    /// Highest.
    pub highest: i32,
    /// Default.
    pub usual: i32,
}

/// Returns the levels of a backend; `null` for one that has none.
#[napi]
pub fn levels(backend: String) -> Option<Levels> {
    let codec = snugly_codec::Codec::by_name(&backend).filter(|codec| codec.is_for_values())?;
    let (lowest, highest) = codec.levels().into_inner();
    Some(Levels { lowest, highest, usual: codec.default_level() })
}

/// Returns the counters of all codecs of this process, by name.
#[napi(ts_return_type = "Record<string, number>")]
pub fn process_statistics(env: &Env) -> napi::Result<Object<'_>> {
    named(env, client::process_statistics())
}

/// Description of a counter.
#[napi(object, object_from_js = false)]
pub struct Counter {
    /// Name in the statistics.
    pub name: String,
    /// Name without the codec.
    pub family: String,
    /// The codec, if the family has one counter a codec.
    pub codec: Option<String>,
    /// Meaning.
    pub help: String,
}

/// Returns the descriptions of all counters.
#[napi]
pub fn counters() -> Vec<Counter> {
    let counter = |row: client::Description| Counter {
        name: row.name,
        family: row.family.to_owned(),
        codec: row.codec.map(str::to_owned),
        help: row.help.to_owned(),
    };
    client::descriptions().map(counter).collect()
}

fn named(env: &Env, counters: impl Iterator<Item = (String, u64)>) -> napi::Result<Object<'_>> {
    let mut names = Object::new(env)?;
    for (name, count) in counters {
        names.set(name, count as f64)?;
    }
    Ok(names)
}

/// Throws where there is no memory, as JavaScript does for its own.
fn failure<'env>(env: &'env Env, unread: Unread) -> napi::Result<Unknown<'env>> {
    if unread.is_out_of_memory {
        return Err(Error::from_reason(unread.why));
    }
    js(env, Failure::from(unread))
}

/// Makes text of bytes as `toString("utf8")` does.
fn text<'env>(env: &'env Env, bytes: &[u8]) -> napi::Result<Unknown<'env>> {
    // An engine copies these, where it has to decode others.
    if bytes.is_ascii() {
        return Ok(env.create_string_latin1(bytes)?.to_unknown());
    }
    Ok(env.create_string(String::from_utf8_lossy(bytes))?.to_unknown())
}

fn js<'env, T: ToNapiValue>(env: &'env Env, value: T) -> napi::Result<Unknown<'env>> {
    let raw = env.raw();
    // SAFETY: the value is made in this environment, for the caller.
    unsafe { Ok(Unknown::from_raw_unchecked(raw, T::to_napi_value(raw, value)?)) }
}

/// A bound in bytes, which JavaScript gives as a number; Infinity for none.
fn limit(bytes: f64) -> usize {
    bytes as usize
}

fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut out = SCRATCH.take();
    out.clear();
    let result = work(&mut out);
    if out.capacity() <= MAX_KEPT_SCRATCH {
        SCRATCH.set(out);
    }
    result
}
