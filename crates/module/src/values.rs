//! Strings of clients to what is stored, and back.
//!
//! It knows envelopes, which strings may be one, and the dictionaries that there are; it knows no command, and of a key its
//! name. Its contexts, buffers and counters are those of the one thread that the server runs commands on.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use snugly_codec::envelope::{
    self, DEFAULT_MAX_DECOMPRESSED_SIZE, Decoded, EnvelopeError, ExistingEnvelopes, Fault, Options, Outcome,
    Start,
};
use snugly_codec::{Choice, CodecId, Counters, DecodeError, Dictionary, Reason, Snapshot};

use crate::dictionaries;
use crate::settings;
pub use crate::settings::LEAST_ENVELOPE;

/// A string must shrink by one part in so many: what gains less costs a restoration each time that it is read.
const LEAST_GAIN: usize = 16;

/// First bytes of the strings that PFADD makes. Commands about them change them in place.
const HYPERLOGLOG: &[u8] = b"HYLL";

/// Begins the keys of dictionaries that clients share (spec/dictionaries.md), which are never compressed.
const DICTIONARY_KEYS: &[u8] = b"{snugly}:dict";

/// Level of zstd for strings that nobody has used for long. Restoring takes the same time at every level.
const DENSE_LEVEL: i32 = 15;

/// The largest buffer that is kept between values, in bytes.
const MAX_KEPT_BUFFER: usize = 1 << 20;

struct Values {
    options: Options,
    /// Whether new strings are compressed: otherwise only clients' own envelopes are wrapped.
    compresses: bool,
    /// Number of changes of settings that were followed.
    changes: u64,
    counters: Arc<Counters>,
    buffer: Vec<u8>,
}

thread_local! {
    static VALUES: RefCell<Values> = RefCell::new(Values {
        options: Options { existing_envelopes: ExistingEnvelopes::Wrap, ..Options::default() },
        compresses: false,
        changes: 0,
        counters: Arc::default(),
        buffer: Vec::new(),
    });
}

/// An envelope that cannot be restored.
#[derive(Debug)]
pub struct Damaged(EnvelopeError);

/// The text of the error for clients. One that has to be tried again begins as in a cluster whose slots move: clients of
/// clusters do so by themselves.
impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.fault {
            Fault::Payload(DecodeError::DictionaryMissing { dictionary, .. }) => {
                write!(f, "TRYAGAIN other nodes were asked for the dictionary {dictionary} of this string")
            }
            _ => write!(f, "SNUGLY {}", self.0),
        }
    }
}

/// Runs something with values as the settings have them now.
fn with<R>(run: impl FnOnce(&mut Values) -> R) -> R {
    VALUES.with_borrow_mut(|values| {
        if values.changes != settings::changes() {
            values.changes = settings::changes();
            values.configure(settings::choice(), settings::compresses_new(), settings::existing_envelopes());
        }
        let result = run(values);
        if values.buffer.capacity() > MAX_KEPT_BUFFER {
            values.buffer = Vec::new();
        }
        result
    })
}

/// Everything that was counted so far.
pub fn counted() -> Snapshot {
    VALUES.with_borrow(|values| values.counters.snapshot())
}

/// Calls `store` with what is stored in the place of a client's string at a key, unless that is the string itself.
pub fn stored<R>(key: &[u8], value: &[u8], store: impl FnOnce(&[u8]) -> R) -> Option<R> {
    with(|values| {
        let is_left = !values.compresses && envelope::inspect(value).is_none();
        if values.compresses {
            show(key, value);
        }
        let outcome = if is_left { Outcome::AsIs(Reason::Off) } else { values.encode(key, value) };
        outcome.count(value.len(), &values.counters);
        if let Outcome::Encoded { codec, len } = outcome
            && codec.needs_dictionary()
        {
            dictionaries::compressed(key, value.len(), len);
        }
        matches!(outcome, Outcome::Encoded { .. }).then(|| store(&values.buffer))
    })
}

/// Length of what would be stored in the place of a client's string at a key, or why it would be stored as it is.
pub fn observe(key: &[u8], value: &[u8]) -> Result<usize, Reason> {
    with(|values| match values.encode(key, value) {
        Outcome::Encoded { len, .. } => Ok(len),
        Outcome::AsIs(reason) => Err(reason),
    })
}

/// Calls `give` with the client's string, whatever form this string of the server's is stored in.
///
/// # Errors
/// An envelope that is damaged. One that is not even well-formed is the client's own string.
pub fn restored<R>(value: &[u8], give: impl FnOnce(&[u8]) -> R) -> Result<R, Damaged> {
    with(|values| {
        values.decode(value).map(|decoded| match decoded {
            Decoded::Restored { .. } => give(&values.buffer),
            Decoded::AsIs => give(value),
        })
    })
}

/// Another form of a string that is there at a key, if it should have one: an envelope of a plain one, one with the
/// dictionary that the key has now, or of a string that nobody has used for long a denser one. It counts for nothing: no
/// client has written it.
pub fn another_form(key: &[u8], string: &[u8], is_cold: bool) -> Option<Vec<u8>> {
    with(|values| match start(string) {
        None => values.smaller(key, string),
        Some(start) => values.renewed(key, string, start, is_cold),
    })
}

/// An envelope of the same string that is read without a dictionary, if this one needs one.
pub fn without_dictionary(string: &[u8]) -> Option<Vec<u8>> {
    start(string)?.dictionary?;
    with(|values| {
        let string = values.plain(string)?;
        values.envelope(None, values.options.choice, &string)
    })
}

/// Length of the client's string, in bytes.
///
/// # Errors
/// Those of [`restored`].
pub fn restored_len(value: &[u8]) -> Result<usize, Damaged> {
    match start(value).and_then(|start| start.len) {
        Some(len) => Ok(len as usize),
        None => restored(value, <[u8]>::len),
    }
}

/// Notes that a string is about to be stored as it is: the dictionary that it may need is kept, or asked for.
pub fn meet(value: &[u8]) {
    // Whether it is one is for its readers to know.
    let _ = is_envelope(value);
}

/// Whether this string of the server's is an envelope that reads restore. One that needs a dictionary which is not there is a
/// client's, which has it.
pub fn is_envelope(value: &[u8]) -> bool {
    start(value).is_some()
}

/// Claims of the start of an envelope that reads restore.
fn start(value: &[u8]) -> Option<Start> {
    if value.len() < LEAST_ENVELOPE {
        return None;
    }
    let start = envelope::inspect(value)?.start(DEFAULT_MAX_DECOMPRESSED_SIZE)?;
    let is_ours = |id| dictionaries::with(|known| known.is_ours(id));
    start.dictionary.is_none_or(is_ours).then_some(start)
}

fn decode(options: &Options, envelope: &[u8], out: &mut Vec<u8>) -> Result<Decoded, EnvelopeError> {
    dictionaries::with(|known| {
        envelope::decode_with(options, &|id| known.find(id).map(AsRef::as_ref), envelope, out)
    })
}

fn dictionary_id(envelope: &[u8]) -> Option<u32> {
    envelope::inspect(envelope)?.dictionary_id()
}

/// Shows a client's string to be learned from, if strings like it are compressed with dictionaries.
fn show(key: &[u8], string: &[u8]) {
    if string.len() >= LEAST_ENVELOPE
        && !key.starts_with(DICTIONARY_KEYS)
        && envelope::inspect(string).is_none()
        && !string.starts_with(HYPERLOGLOG)
    {
        dictionaries::show(key, string);
    }
}

/// Whether this is an envelope of so many bytes at most.
fn is_smaller(outcome: Outcome, most: usize) -> bool {
    matches!(outcome, Outcome::Encoded { len, .. } if len <= most)
}

/// The longest that another form of so many bytes may be to be worth having.
fn worthwhile(len: usize) -> usize {
    len - len / LEAST_GAIN
}

impl Values {
    /// Writes new values with this choice from now on, if they are compressed at all, and wraps clients' own envelopes or
    /// leaves them as they are.
    fn configure(&mut self, choice: Choice, compresses: bool, existing_envelopes: ExistingEnvelopes) {
        self.options = Options { choice, existing_envelopes, ..self.options };
        self.compresses = compresses;
    }

    fn smaller(&mut self, key: &[u8], string: &[u8]) -> Option<Vec<u8>> {
        // One that needs a dictionary may be the module's after all, and the dictionary come yet.
        if dictionary_id(string).is_some() {
            return None;
        }
        show(key, string);
        let outcome = self.encode(key, string);
        is_smaller(outcome, string.len().saturating_sub(1)).then(|| self.buffer.clone())
    }

    /// An envelope with the dictionary that there is for its key now, and a denser one of a string that is cold.
    fn renewed(&mut self, key: &[u8], envelope: &[u8], start: Start, is_cold: bool) -> Option<Vec<u8>> {
        let present = dictionaries::with(|known| known.for_key(key).cloned());
        let needed = start.dictionary;
        let is_present = needed == present.as_ref().map(|dictionary| dictionary.id());
        let is_dense = start.codec.without_dictionary() == CodecId::Zstd;
        if is_present && (is_dense || !is_cold) {
            return None;
        }
        let string = self.plain(envelope)?;
        if needed.is_none() {
            show(key, &string);
        }
        let choice = match is_cold {
            true => Choice::new("zstd", Some(DENSE_LEVEL), LEAST_ENVELOPE).ok()?,
            false => self.options.choice,
        };
        if needed.is_some() && !is_present {
            // Nothing new is compressed with its dictionary, which may go when nothing old is either.
            return self.envelope(present.as_deref(), choice, &string);
        }
        let options = Options { choice, ..self.options };
        let outcome = self.encode_with(&options, present.as_deref(), &string);
        is_smaller(outcome, worthwhile(envelope.len())).then(|| self.buffer.clone())
    }

    /// An envelope of a string, whatever it takes.
    fn envelope(
        &mut self,
        dictionary: Option<&Dictionary>,
        choice: Choice,
        string: &[u8],
    ) -> Option<Vec<u8>> {
        let options = Options { choice, existing_envelopes: ExistingEnvelopes::Wrap, ..self.options };
        let mut outcome = self.encode_with(&options, dictionary, string);
        if let Outcome::AsIs(_) = outcome {
            self.buffer.clear();
            outcome = envelope::encode_at_least(LEAST_ENVELOPE, string, &mut self.buffer);
        }
        is_smaller(outcome, usize::MAX).then(|| self.buffer.clone())
    }

    /// The client's string in an envelope.
    fn plain(&self, envelope: &[u8]) -> Option<Vec<u8>> {
        let mut string = Vec::new();
        decode(&self.options, envelope, &mut string).ok()?;
        Some(string)
    }

    /// Leaves in the buffer what is to be stored at a key, if it is not the value itself.
    fn encode(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        if key.starts_with(DICTIONARY_KEYS) {
            return Outcome::AsIs(Reason::Off);
        }
        let dictionary = dictionaries::with(|known| known.for_key(key).cloned());
        let options = self.options;
        self.encode_with(&options, dictionary.as_deref(), value)
    }

    fn encode_with(&mut self, options: &Options, dictionary: Option<&Dictionary>, value: &[u8]) -> Outcome {
        self.buffer.clear();
        if value.len() < LEAST_ENVELOPE {
            return Outcome::AsIs(Reason::Small);
        }
        // A client's own envelope is wrapped at any price, unless it is left: reads would take it for the module's.
        let most = match envelope::inspect(value) {
            Some(_) => usize::MAX,
            None if value.starts_with(HYPERLOGLOG) => return Outcome::AsIs(Reason::Compressed),
            None => worthwhile(value.len()),
        };
        let choice = match dictionary {
            // Short strings are worth it, too.
            Some(_) => options.choice.with_min_bytes(LEAST_ENVELOPE),
            None => options.choice,
        };
        let options = Options { choice, ..*options };
        let mut outcome = envelope::encode_with(&options, dictionary, value, &mut self.buffer);
        if let Outcome::Encoded { codec, len } = outcome
            && len < LEAST_ENVELOPE
        {
            let lengthened = envelope::lengthen(LEAST_ENVELOPE, value, &mut self.buffer);
            outcome = lengthened.map_or(Outcome::AsIs(Reason::Failed), |len| Outcome::Encoded { codec, len });
        }
        match outcome {
            Outcome::Encoded { len, .. } if len > most => Outcome::AsIs(Reason::NoGain),
            _ => outcome,
        }
    }

    /// Leaves the value in the buffer, if it is not what was given.
    fn decode(&mut self, value: &[u8]) -> Result<Decoded, Damaged> {
        self.buffer.clear();
        if !is_envelope(value) {
            return Ok(Decoded::AsIs);
        }
        let decoded = decode(&self.options, value, &mut self.buffer);
        match &decoded {
            Ok(decoded) => decoded.count(value.len(), &self.counters),
            Err(error) => error.count(&self.counters),
        }
        decoded.map_err(Damaged)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &[u8] = b"key";

    fn json(records: usize) -> Vec<u8> {
        (0..records)
            .flat_map(|n| format!(r#"{{"id":{n},"name":"customer {n}","tags":["a","b"]}}"#).into_bytes())
            .collect()
    }

    fn keep(value: &[u8]) -> Vec<u8> {
        stored(KEY, value, <[u8]>::to_vec).unwrap_or_else(|| value.to_vec())
    }

    fn read(value: &[u8]) -> Vec<u8> {
        restored(value, <[u8]>::to_vec).expect("it is whole")
    }

    fn compress_with(codec: &str) {
        let choice = Choice::new(codec, None, LEAST_ENVELOPE).expect("there is such a codec");
        super::with(|values| values.configure(choice, true, ExistingEnvelopes::Wrap));
    }

    #[test]
    fn what_is_read_is_what_was_written_for_every_length_and_codec() {
        for codec in ["lz4", "zstd", "none"] {
            compress_with(codec);
            for value in
                [json(40), vec![b'x'; 4000], (0..=255).cycle().map(|n: u16| n as u8).take(4000).collect()]
            {
                for len in (0..600).chain([3999]) {
                    let value = &value[..len.min(value.len())];
                    let kept = keep(value);
                    assert_eq!(read(&kept), value, "{codec}, {len} bytes");
                    assert_eq!(restored_len(&kept).expect("whole"), value.len());
                    assert!(kept.len() <= value.len());
                    assert!(kept == value || kept.len() >= LEAST_ENVELOPE);
                }
            }
        }
    }

    #[test]
    fn envelopes_of_clients_get_one_layer_more_and_lose_one() {
        for codec in ["lz4", "zstd", "none"] {
            compress_with(codec);
            for backend in [1, 2, 0x1f, 0x81, 0x82, 0x9f] {
                for len in [5, LEAST_ENVELOPE - 1, LEAST_ENVELOPE, LEAST_ENVELOPE + 1, 1000] {
                    let mut own = vec![0, 1, 2, 0, backend];
                    own.resize(len, 0);
                    assert_eq!(read(&keep(&own)), own, "{codec}, backend {backend:02x}, {len} bytes");
                    assert_eq!(read(&read(&keep(&keep(&own)))), own);
                }
            }
        }
    }

    #[test]
    fn in_a_mixed_fleet_envelopes_of_clients_are_stored_as_they_are_and_restored() {
        let value = json(40);
        let mut own = Vec::new();
        envelope::encode_at_least(0, &value, &mut own);
        let choice = Choice::new("lz4", None, LEAST_ENVELOPE).expect("there is such a codec");
        super::with(|values| values.configure(choice, true, ExistingEnvelopes::Keep));
        assert_eq!(keep(&own), own);
        assert_eq!(read(&own), value);
    }

    #[test]
    fn short_strings_and_hyperloglogs_are_stored_as_they_are() {
        compress_with("lz4");
        let hyperloglog = [HYPERLOGLOG, &[0; 12_000]].concat();
        for value in [&[b'x'; LEAST_ENVELOPE - 1][..], &hyperloglog] {
            assert!(stored(KEY, value, |_| ()).is_none());
        }
    }

    #[test]
    fn a_string_that_hardly_shrinks_is_stored_as_it_is() {
        compress_with("lz4");
        let mut state = 1u64;
        let mut value: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(4000)
        .collect();
        value.extend_from_slice(&[0; 200]);
        assert!(stored(KEY, &value, |_| ()).is_none());
    }

    #[test]
    fn a_damaged_envelope_is_an_error_and_one_that_is_none_is_a_string() {
        compress_with("zstd");
        let mut damaged = keep(&json(100));
        let at = damaged.len() - 20;
        damaged[at] ^= 0xff;
        assert!(
            restored(&damaged, |_| ()).expect_err("damaged").to_string().starts_with("SNUGLY cannot decode")
        );
        let malformed = [&[0, 1, 2, 0, 1][..], &[b'x'; 200]].concat();
        assert_eq!(read(&malformed), malformed);
    }

    // What is stored may come from anywhere: RESTORE, a file, a primary.

    /// Forms of one string with each backend, as this node or a client would store it.
    fn forms(string: &[u8]) -> Vec<Vec<u8>> {
        let dictionary = dictionaries::sample("user");
        dictionaries::know(dictionary.clone());
        let with = |codec, dictionary| {
            let options = Options {
                choice: Choice::new(codec, None, LEAST_ENVELOPE).expect("there is such a codec"),
                ..Options::default()
            };
            let mut form = Vec::new();
            envelope::encode_with(&options, dictionary, string, &mut form);
            form
        };
        vec![
            with("lz4", None),
            with("zstd", None),
            with("lz4", Some(&*dictionary)),
            with("zstd", Some(&*dictionary)),
        ]
    }

    fn check(stored: &[u8]) {
        let read = restored(stored, <[u8]>::to_vec);
        if !is_envelope(stored) {
            assert_eq!(read.as_deref().expect("it is a string"), stored);
        }
        let len = restored_len(stored);
        if let Ok(read) = &read {
            assert!(len.is_ok_and(|len| len == read.len()));
        }
        for is_cold in [false, true] {
            if let Some(other) = another_form(KEY, stored, is_cold) {
                assert!(other.len() >= LEAST_ENVELOPE);
                assert_eq!(restored(&other, <[u8]>::to_vec).ok(), read.as_ref().ok().cloned());
            }
        }
        if let Some(portable) = without_dictionary(stored) {
            assert!(is_envelope(&portable) && dictionary_id(&portable).is_none());
            assert_eq!(restored(&portable, <[u8]>::to_vec).ok(), read.ok());
        }
        assert_eq!(restored(&keep(stored), <[u8]>::to_vec).expect("just stored"), stored);
        _ = observe(KEY, stored);
    }

    proptest! {
        #[test]
        fn whatever_is_stored_is_read_or_refused_and_keeps_its_value_in_every_form(
            records in 3usize..40,
            form in 0usize..4,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in proptest::option::of(any::<prop::sample::Index>()),
            more in proptest::collection::vec(any::<u8>(), 0..3),
            codec in prop::sample::select(vec!["lz4", "zstd", "none"]),
        ) {
            let mut stored = forms(&json(records)).swap_remove(form);
            compress_with(codec);
            for (at, byte) in changes {
                let at = at.index(stored.len());
                stored[at] = byte;
            }
            if let Some(cut) = cut {
                stored.truncate(cut.index(stored.len()));
            }
            stored.extend(more);
            check(&stored);
        }

        #[test]
        fn any_bytes_behind_a_header_are_read_or_refused(
            backend in prop::sample::select(vec![0x01u8, 0x02, 0x1f, 0x81, 0x82, 0x9f, 0x20]),
            id in prop::sample::select(vec![0u32, 40_000, u32::MAX]),
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            forms(b"");
            compress_with("lz4");
            check(&[&[0, 1, 2, 0, backend], &id.to_le_bytes()[..], &bytes].concat());
        }
    }
}
