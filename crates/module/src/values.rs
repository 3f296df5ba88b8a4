//! Strings of clients to what is stored, and back.
//!
//! It knows envelopes and which strings may be one; it knows no command and no key. Its contexts, buffers and counters
//! are those of the one thread that the server runs commands on.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use snugly_codec::envelope::{
    self, DEFAULT_MAX_DECOMPRESSED_SIZE, Decoded, EnvelopeError, ExistingEnvelopes, Options, Outcome,
};
use snugly_codec::{Choice, CodecId, Counters, Reason, Snapshot};

/// Length of the shortest envelope that is stored or restored, in bytes.
///
/// The server keeps shorter strings as numbers or inside their keys, where the module could not read them without
/// changing that; so strings below this are never looked at, and cost nothing.
pub const LEAST_ENVELOPE: usize = 128;

/// A string must shrink by one part in so many: what gains less costs a restoration each time that it is read.
const LEAST_GAIN: usize = 16;

/// First bytes of the strings that PFADD makes. Commands about them change them in place.
const HYPERLOGLOG: &[u8] = b"HYLL";

/// Level of zstd for strings that nobody has used for long. Restoring takes the same time at every level.
const DENSE_LEVEL: i32 = 15;

/// The largest buffer that is kept between values, in bytes.
const MAX_KEPT_BUFFER: usize = 1 << 20;

struct Values {
    options: Options,
    /// Whether new strings are compressed: otherwise only clients' own envelopes are wrapped.
    compresses: bool,
    counters: Arc<Counters>,
    buffer: Vec<u8>,
}

thread_local! {
    static VALUES: RefCell<Values> = RefCell::new(Values {
        options: Options { existing_envelopes: ExistingEnvelopes::Wrap, ..Options::default() },
        compresses: false,
        counters: Arc::default(),
        buffer: Vec::new(),
    });
}

/// An envelope that cannot be restored.
#[derive(Debug)]
pub struct Damaged(EnvelopeError);

/// The text of the error for clients.
impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SNUGLY {}", self.0)
    }
}

/// Writes new values with this choice from now on, if they are compressed at all, and wraps clients' own envelopes or leaves
/// them as they are.
pub fn configure(choice: Choice, compresses: bool, existing_envelopes: ExistingEnvelopes) {
    VALUES.with_borrow_mut(|values| {
        values.options = Options { choice, existing_envelopes, ..values.options };
        values.compresses = compresses;
    });
}

/// Everything that was counted so far.
pub fn counted() -> Snapshot {
    VALUES.with_borrow(|values| values.counters.snapshot())
}

/// Calls `store` with what is stored in the place of a client's string, unless that is the string itself.
pub fn stored<R>(value: &[u8], store: impl FnOnce(&[u8]) -> R) -> Option<R> {
    VALUES.with_borrow_mut(|values| {
        let is_left = !values.compresses && envelope::inspect(value).is_none();
        let choice = values.options.choice;
        let outcome = if is_left { Outcome::AsIs(Reason::Off) } else { values.encode(choice, value) };
        outcome.count(value.len(), &values.counters);
        let result = matches!(outcome, Outcome::Encoded { .. }).then(|| store(&values.buffer));
        values.give_back();
        result
    })
}

/// Length of what would be stored in the place of a client's string, or why it would be stored as it is.
pub fn observe(value: &[u8]) -> Result<usize, Reason> {
    VALUES.with_borrow_mut(|values| {
        let outcome = values.encode(values.options.choice, value);
        values.give_back();
        match outcome {
            Outcome::Encoded { len, .. } => Ok(len),
            Outcome::AsIs(reason) => Err(reason),
        }
    })
}

/// Calls `give` with the client's string, whatever form this string of the server's is stored in.
///
/// # Errors
/// An envelope that is damaged. One that is not even well-formed is the client's own string.
pub fn restored<R>(value: &[u8], give: impl FnOnce(&[u8]) -> R) -> Result<R, Damaged> {
    VALUES.with_borrow_mut(|values| {
        let result = values.decode(value).map(|decoded| match decoded {
            Decoded::Restored { .. } => give(&values.buffer),
            Decoded::AsIs => give(value),
        });
        values.give_back();
        result
    })
}

/// A smaller form of a string that is there: an envelope of a plain one, or of one that nobody has used for long a denser
/// one. It counts for nothing: no client has written it.
pub fn smaller(string: &[u8], is_cold: bool) -> Option<Vec<u8>> {
    VALUES.with_borrow_mut(|values| {
        let smaller = match is_envelope(string) {
            false => values.smaller(string),
            true if is_cold => values.denser(string),
            true => None,
        };
        values.give_back();
        smaller
    })
}

/// Length of the client's string, in bytes.
///
/// # Errors
/// Those of [`restored`].
pub fn restored_len(value: &[u8]) -> Result<usize, Damaged> {
    let claimed = is_envelope(value).then(|| envelope::inspect(value)?.claimed_len()).flatten();
    match claimed {
        Some(len) => Ok(len as usize),
        None => restored(value, <[u8]>::len),
    }
}

/// Whether this string of the server's is an envelope that reads restore. One that needs a dictionary is a client's, which
/// has it.
pub fn is_envelope(value: &[u8]) -> bool {
    value.len() >= LEAST_ENVELOPE
        && envelope::inspect(value).is_some_and(|found| {
            found.is_well_formed(DEFAULT_MAX_DECOMPRESSED_SIZE)
                && found.codec().is_some_and(|codec| !codec.needs_dictionary())
        })
}

impl Values {
    fn smaller(&mut self, string: &[u8]) -> Option<Vec<u8>> {
        match self.encode(self.options.choice, string) {
            Outcome::Encoded { len, .. } if len < string.len() => Some(self.buffer.clone()),
            _ => None,
        }
    }

    fn denser(&mut self, envelope: &[u8]) -> Option<Vec<u8>> {
        if envelope::inspect(envelope)?.codec() == Some(CodecId::Zstd) {
            return None;
        }
        let mut string = Vec::new();
        envelope::decode(&self.options, envelope, &mut string).ok()?;
        let most = envelope.len() - envelope.len() / LEAST_GAIN;
        match self.encode(Choice::new("zstd", Some(DENSE_LEVEL), LEAST_ENVELOPE).ok()?, &string) {
            Outcome::Encoded { len, .. } if len <= most => Some(self.buffer.clone()),
            _ => None,
        }
    }

    /// Leaves in the buffer what is to be stored, if it is not the value itself.
    fn encode(&mut self, choice: Choice, value: &[u8]) -> Outcome {
        self.buffer.clear();
        if value.len() < LEAST_ENVELOPE {
            return Outcome::AsIs(Reason::Small);
        }
        // A client's own envelope is wrapped at any price, unless it is left: reads would take it for the module's.
        let most = match envelope::inspect(value) {
            Some(_) => usize::MAX,
            None if value.starts_with(HYPERLOGLOG) => return Outcome::AsIs(Reason::Compressed),
            None => value.len() - value.len() / LEAST_GAIN,
        };
        let options = Options { choice, ..self.options };
        let mut outcome = envelope::encode(&options, value, &mut self.buffer);
        if matches!(outcome, Outcome::Encoded { len, .. } if len < LEAST_ENVELOPE) {
            self.buffer.clear();
            outcome = envelope::encode_at_least(LEAST_ENVELOPE, value, &mut self.buffer);
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
        let decoded = envelope::decode(&self.options, value, &mut self.buffer);
        match &decoded {
            Ok(decoded) => decoded.count(value.len(), &self.counters),
            Err(error) => error.count(&self.counters),
        }
        decoded.map_err(Damaged)
    }

    fn give_back(&mut self) {
        if self.buffer.capacity() > MAX_KEPT_BUFFER {
            self.buffer = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(records: usize) -> Vec<u8> {
        (0..records)
            .flat_map(|n| format!(r#"{{"id":{n},"name":"customer {n}","tags":["a","b"]}}"#).into_bytes())
            .collect()
    }

    fn keep(value: &[u8]) -> Vec<u8> {
        stored(value, <[u8]>::to_vec).unwrap_or_else(|| value.to_vec())
    }

    fn read(value: &[u8]) -> Vec<u8> {
        restored(value, <[u8]>::to_vec).expect("it is whole")
    }

    fn with(codec: &str) {
        let choice = Choice::new(codec, None, LEAST_ENVELOPE).expect("there is such a codec");
        configure(choice, true, ExistingEnvelopes::Wrap);
    }

    #[test]
    fn what_is_read_is_what_was_written_for_every_length_and_codec() {
        for codec in ["lz4", "zstd", "none"] {
            with(codec);
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
            with(codec);
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
        configure(choice, true, ExistingEnvelopes::Keep);
        assert_eq!(keep(&own), own);
        assert_eq!(read(&own), value);
    }

    #[test]
    fn short_strings_and_hyperloglogs_are_stored_as_they_are() {
        with("lz4");
        let hyperloglog = [HYPERLOGLOG, &[0; 12_000]].concat();
        for value in [&[b'x'; LEAST_ENVELOPE - 1][..], &hyperloglog] {
            assert!(stored(value, |_| ()).is_none());
        }
    }

    #[test]
    fn a_string_that_hardly_shrinks_is_stored_as_it_is() {
        with("lz4");
        let mut state = 1u64;
        let mut value: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(4000)
        .collect();
        value.extend_from_slice(&[0; 200]);
        assert!(stored(&value, |_| ()).is_none());
    }

    #[test]
    fn a_damaged_envelope_is_an_error_and_one_that_is_none_is_a_string() {
        with("zstd");
        let mut damaged = keep(&json(100));
        let at = damaged.len() - 20;
        damaged[at] ^= 0xff;
        assert!(
            restored(&damaged, |_| ()).expect_err("damaged").to_string().starts_with("SNUGLY cannot decode")
        );
        let malformed = [&[0, 1, 2, 0, 1][..], &[b'x'; 200]].concat();
        assert_eq!(read(&malformed), malformed);
    }
}
