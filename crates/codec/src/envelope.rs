//! The envelope: how a compressed value looks in someone else's server.
//!
//! ```text
//! 00 01 02 | version 00 | backend | payload
//! backend 01  zstd: one standard frame (RFC 8878)
//!         02  lz4: u32 little-endian raw length, then one raw block
//!         81  zstd with a dictionary: one standard frame that carries its Dictionary_ID
//!         82  lz4 with a dictionary: u32 dictionary ID, u32 raw length, u32 xxh32 of the value,
//!             all little-endian, then one raw block
//! ```
//!
//! Backends 01 and 02 are those of Valkey GLIDE 2.3 and later. What is sent where, and what is compressed at
//! all (the commands), is for others to know. Contexts and the memory of what was worth compressing are the
//! thread's.

use std::cell::RefCell;
use std::fmt;
use std::iter;

use crate::choice::Choice;
use crate::codecs::{
    CODECS, Claims, CodecId, Encoding, EnvelopeForm, Framing, block, dictionary_block, frame,
};
use crate::counters::{Counters, Family};
use crate::decoder::{Dictionaries, Payload};
use crate::dictionary::Dictionary;
use crate::error::DecodeError;
use crate::outcome::Reason;
use crate::policy::Policy;

/// Length of the header in front of the payload, in bytes.
pub const HEADER_LEN: usize = 5;

/// The default limit on a decoded value: 512 MiB, the longest that Redis and Valkey store.
pub const DEFAULT_MAX_DECOMPRESSED_SIZE: usize = 512 << 20;

/// Treatment by a writer of a value that is a well-formed envelope already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExistingEnvelopes {
    /// Sends it as it is: nothing is compressed twice.
    #[default]
    Keep,
    /// Encodes it again, so that the application reads back what it wrote even if a stranger made it.
    Wrap,
}

/// Settings of writing and reading envelopes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Choice of the codec. Default: none.
    pub choice: Choice,
    /// Treatment of envelopes that are to be written. Default: keep.
    pub existing_envelopes: ExistingEnvelopes,
    /// Whether zstd frames carry a checksum of the content (4 bytes). Default: no.
    pub checksum: bool,
    /// No value longer than this is decoded, in bytes. Default: [`DEFAULT_MAX_DECOMPRESSED_SIZE`].
    pub max_decompressed_size: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            choice: Choice::none(),
            existing_envelopes: ExistingEnvelopes::default(),
            checksum: false,
            max_decompressed_size: DEFAULT_MAX_DECOMPRESSED_SIZE,
        }
    }
}

/// Result of [`encode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An envelope of `len` bytes was appended.
    Encoded {
        /// Encoding of its payload.
        codec: CodecId,
        /// Its length, header included, in bytes.
        len: usize,
    },
    /// Nothing was appended: the value is to be sent as it is.
    AsIs(Reason),
}

/// Result of [`decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A value of `len` bytes was restored and appended.
    Restored {
        /// Its encoding.
        codec: CodecId,
        /// Its length, in bytes.
        len: usize,
    },
    /// Nothing was appended: the bytes are no envelope but the value.
    AsIs,
}

impl Outcome {
    /// Counts the value of `len` bytes that this was made of, as an [`Encoder`](crate::Encoder) does.
    pub fn count(&self, len: usize, counters: &Counters) {
        match *self {
            Outcome::Encoded { codec, len: sent } => counters.encoded(codec, len, sent),
            Outcome::AsIs(reason) => {
                counters.skipped(reason);
                counters.encoded(CodecId::Identity, len, len);
            }
        }
    }
}

impl Decoded {
    /// Counts the `len` bytes that were read, as a [`Decoder`](crate::Decoder) does.
    pub fn count(&self, len: usize, counters: &Counters) {
        match *self {
            Decoded::Restored { codec, len: restored } => {
                counters.decoded(codec, len, restored);
                if codec.needs_dictionary() {
                    counters.increment(Family::DictionaryHits);
                }
            }
            Decoded::AsIs => counters.decoded(CodecId::Identity, len, len),
        }
    }
}

/// A borrowed value that counts as an envelope, well-formed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    backend: u8,
    payload: &'a [u8],
}

/// Claims of the start of a well-formed envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Encoding of the payload.
    pub codec: CodecId,
    /// The length that it claims for the value, in bytes.
    pub len: Option<u64>,
    /// The ID of the dictionary that it needs.
    pub dictionary: Option<u32>,
}

/// The envelope in these bytes, if they count as one. Else 00 01 02 is the start of somebody's own data.
pub fn inspect(value: &[u8]) -> Option<Envelope<'_>> {
    match value.split_first_chunk()? {
        (&[0x00, 0x01, 0x02, 0x00, backend @ (0x01..=0x1F | 0x80..=0x9F)], payload) => {
            Some(Envelope { backend, payload })
        }
        _ => None,
    }
}

impl<'a> Envelope<'a> {
    /// The backend's byte.
    pub fn backend(&self) -> u8 {
        self.backend
    }

    /// Encoding of the payload, if the backend is known.
    pub fn codec(&self) -> Option<CodecId> {
        self.form().map(|(codec, _)| codec)
    }

    /// Bytes behind the header.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The length that the payload claims for the value, in bytes. zstd frames need not claim one.
    pub fn claimed_len(&self) -> Option<u64> {
        self.claims()?.len
    }

    /// The ID of the dictionary that the payload needs.
    pub fn dictionary_id(&self) -> Option<u32> {
        self.claims()?.dictionary
    }

    /// Whether the backend is known and the payload starts as it must: a zstd frame's header, or an LZ4 raw
    /// length that is within `max_decompressed_size` and can be reached; with a dictionary, its ID, too. The rest is
    /// seen only by decoding it.
    pub fn is_well_formed(&self, max_decompressed_size: usize) -> bool {
        self.start(max_decompressed_size).is_some()
    }

    /// The claims of the payload's start; `None` if the envelope is not [well-formed](Self::is_well_formed).
    pub fn start(&self, max_decompressed_size: usize) -> Option<Start> {
        let (codec, form) = self.form()?;
        let Claims { len, reach, dictionary } = (form.claims)(self.payload)?;
        let most = reach.map(|reach| reach.min(max_decompressed_size as u64));
        let is_within_reach = most.is_none_or(|most| len.unwrap_or_default() <= most);
        let is_whole = is_within_reach && (dictionary.is_some() || !codec.needs_dictionary());
        let dictionary = dictionary.filter(|_| codec.needs_dictionary());
        is_whole.then_some(Start { codec, len, dictionary })
    }

    /// The codec of the backend, and how its payloads stand in envelopes.
    fn form(&self) -> Option<(CodecId, &'static EnvelopeForm)> {
        let mut forms = CODECS.iter().filter_map(|codec| Some((codec.id(), codec.envelope.as_ref()?)));
        forms.find(|(_, form)| form.backend == self.backend)
    }

    fn claims(&self) -> Option<Claims> {
        (self.form()?.1.claims)(self.payload)
    }

    fn decode(
        &self,
        options: &Options,
        dictionaries: Dictionaries<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Decoded, Fault> {
        let codec = self.codec().ok_or(Fault::UnknownBackend)?;
        let dictionary = match codec.needs_dictionary() {
            true => Some(self.dictionary_id().ok_or(Fault::NoDictionaryId)?),
            false => None,
        };
        let payload =
            Payload { codec, framing: Framing::Envelope, bytes: self.payload, declared: None, dictionary };
        let len = payload.decode(dictionaries, options.max_decompressed_size, out)?;
        Ok(Decoded::Restored { codec, len })
    }
}

/// Appends the value's envelope, or nothing if the value is to be sent as it is. Never fails.
pub fn encode(options: &Options, value: &[u8], out: &mut Vec<u8>) -> Outcome {
    encode_with(options, None, value, out)
}

/// As [`encode`], with a dictionary if the codec can take one: for fleets whose readers all know backend 81,
/// or 82 where the codec is LZ4.
pub fn encode_with(
    options: &Options,
    dictionary: Option<&Dictionary>,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Outcome {
    let start = out.len();
    let result = match inspect(value) {
        None => encode_if_worth_it(options, dictionary, value, out),
        Some(envelope)
            if options.existing_envelopes == ExistingEnvelopes::Keep
                && envelope.is_well_formed(options.max_decompressed_size) =>
        {
            Err(Reason::Envelope)
        }
        Some(_) => encode_in_any_case(options, value, out),
    };
    match result {
        Ok(codec) => Outcome::Encoded { codec, len: out.len() - start },
        Err(reason) => {
            out.truncate(start);
            Outcome::AsIs(reason)
        }
    }
}

fn encode_if_worth_it(
    options: &Options,
    dictionary: Option<&Dictionary>,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<CodecId, Reason> {
    thread_local! {
        static POLICY: RefCell<Policy> = const { RefCell::new(Policy::new()) };
    }
    let choice = options.choice;
    if value.len() > options.max_decompressed_size {
        return Err(Reason::Large);
    }
    let (codec, dictionary) = choice.with_dictionary(dictionary);
    let backend = backend(codec).ok_or(Reason::Off)?;
    let encoding = Encoding {
        level: choice.level(),
        framing: Framing::Envelope,
        checksum: options.checksum,
        dictionary,
    };
    append_header(backend, out);
    POLICY.with_borrow_mut(|policy| {
        policy.compress(choice, encoding, value, out, |payload| HEADER_LEN + payload.len() < value.len())
    })?;
    Ok(codec)
}

/// For a value that would be taken for an envelope: encoded whatever its length and even if it grows, with
/// the chosen codec or, if that is none or fails, with any other that a foreign reader knows too.
fn encode_in_any_case(options: &Options, value: &[u8], out: &mut Vec<u8>) -> Result<CodecId, Reason> {
    let start = out.len();
    let chosen = (options.choice.codec(), options.choice.level());
    let others = CODECS.iter().rev().filter(|codec| codec.is_for_values());
    let others = others.map(|codec| (codec, codec.default_level()));
    for (codec, level) in iter::once(chosen).chain(others) {
        let (Some(functions), Some(backend)) = (&codec.functions, backend(codec.id())) else {
            continue;
        };
        let encoding =
            Encoding { level, framing: Framing::Envelope, checksum: options.checksum, dictionary: None };
        append_header(backend, out);
        if (functions.compress)(&encoding, value, out).is_ok() {
            return Ok(codec.id());
        }
        out.truncate(start);
    }
    Err(Reason::Failed)
}

/// The byte of a codec that envelopes know.
fn backend(codec: CodecId) -> Option<u8> {
    codec.codec().envelope.as_ref().map(|form| form.backend)
}

fn append_header(backend: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x00, 0x01, 0x02, 0x00, backend]);
}

/// Lengthens the envelope of a value to at least `least` bytes, if the value has as many: for a writer whose readers tell
/// envelopes by their length, too. Returns its length; what is longer already stays as it is.
///
/// # Errors
/// It is no envelope of this value.
pub fn lengthen(least: usize, value: &[u8], envelope: &mut Vec<u8>) -> Result<usize, NotItsEnvelope> {
    let codec = inspect(envelope).and_then(|found| found.codec()).ok_or(NotItsEnvelope)?;
    let lengthened = match codec {
        CodecId::Zstd | CodecId::ZstdDictionary => {
            frame::lengthen(envelope, HEADER_LEN, least.saturating_sub(HEADER_LEN))
        }
        CodecId::Lz4 | CodecId::Lz4Dictionary => {
            let own = if codec.needs_dictionary() { dictionary_block::HEADER_LEN } else { block::RAW_LEN };
            let start = HEADER_LEN + own;
            if envelope.len() < start {
                return Err(NotItsEnvelope);
            }
            block::lengthen(envelope, start, value, least.saturating_sub(start))
        }
        _ => Err("it has no such form"),
    };
    lengthened.map(|()| envelope.len()).map_err(|_| NotItsEnvelope)
}

/// An envelope is not that of the value that it was said to be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no envelope of this value")]
pub struct NotItsEnvelope;

/// Appends the value's envelope of at least `least` bytes, whatever the value's length and even if it grows, with a codec
/// whose payloads can be lengthened: zstd. For a writer whose readers tell envelopes by their length, too.
///
/// Appends nothing if there is no memory to compress it.
pub fn encode_at_least(least: usize, value: &[u8], out: &mut Vec<u8>) -> Outcome {
    let start = out.len();
    let fast = CodecId::Zstd.codec().probe_level(CodecId::Zstd.codec().default_level());
    let encoding = Encoding { level: fast, framing: Framing::Envelope, checksum: false, dictionary: None };
    let Some((functions, backend)) = CodecId::Zstd.codec().functions.as_ref().zip(backend(CodecId::Zstd))
    else {
        return Outcome::AsIs(Reason::Failed);
    };
    append_header(backend, out);
    let payload = out.len();
    let compressed = (functions.compress)(&encoding, value, out).is_ok();
    if !compressed || frame::lengthen(out, payload, least.saturating_sub(HEADER_LEN)).is_err() {
        out.truncate(start);
        return Outcome::AsIs(Reason::Failed);
    }
    Outcome::Encoded { codec: CodecId::Zstd, len: out.len() - start }
}

/// Appends the value in an envelope, or nothing if the bytes are no envelope but the value.
///
/// # Errors
/// An envelope that cannot be read, or needs a dictionary. `out` is then as it was.
pub fn decode(options: &Options, value: &[u8], out: &mut Vec<u8>) -> Result<Decoded, EnvelopeError> {
    decode_with(options, &|_| None, value, out)
}

/// As [`decode`], with dictionaries by their ID.
///
/// # Errors
/// As [`decode`], and a dictionary that is not at hand.
pub fn decode_with(
    options: &Options,
    dictionaries: Dictionaries<'_>,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<Decoded, EnvelopeError> {
    let Some(envelope) = inspect(value) else { return Ok(Decoded::AsIs) };
    envelope.decode(options, dictionaries, out).map_err(|fault| EnvelopeError {
        backend: envelope.backend,
        len: value.len(),
        key: None,
        fault,
    })
}

/// An envelope that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeError {
    /// The backend's byte.
    pub backend: u8,
    /// The envelope's length, header included, in bytes.
    pub len: usize,
    /// The key that it was read from, if the caller has said so.
    pub key: Option<Box<[u8]>>,
    /// The fault.
    pub fault: Fault,
}

/// Fault of an envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nobody has defined the backend, or only a newer version.
    #[error("its backend is unknown: a newer client may have written it")]
    UnknownBackend,
    /// Backend 81 or 82 without the ID of a dictionary.
    #[error("it does not say which dictionary it needs: it is corrupt")]
    NoDictionaryId,
    /// The payload cannot be decoded.
    #[error(transparent)]
    Payload(#[from] DecodeError),
}

impl EnvelopeError {
    /// The same error, naming the key.
    #[must_use]
    pub fn for_key(self, key: &[u8]) -> EnvelopeError {
        EnvelopeError { key: Some(key.into()), ..self }
    }

    /// Counts the envelope that could not be read, as a [`Decoder`](crate::Decoder) does.
    pub fn count(&self, counters: &Counters) {
        counters.increment(Family::DecodeFailures);
        if matches!(self.fault, Fault::Payload(DecodeError::DictionaryMissing { .. })) {
            counters.increment(Family::DictionaryMisses);
        }
    }

    /// A short name that never changes, for statistics and for bindings in other languages.
    pub fn name(&self) -> &'static str {
        match &self.fault {
            Fault::UnknownBackend => "unknown_backend",
            Fault::NoDictionaryId => "corrupt",
            Fault::Payload(error) => error.name(),
        }
    }

    /// The kind of error that the specification knows it by: [`name`](Self::name), but claims that cannot be true are
    /// all one kind.
    pub fn kind(&self) -> &'static str {
        match self.name() {
            "unreachable" | "length_mismatch" | "checksum_mismatch" => "corrupt",
            name => name,
        }
    }
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot decode an envelope of {} bytes, backend {:02x}", self.len, self.backend)?;
        if let Some(key) = &self.key {
            write!(f, ", at key \"{}\"", key.escape_ascii())?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for EnvelopeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}
