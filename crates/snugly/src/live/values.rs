//! Kinds of a stored string: as the application gave it, in an envelope, or compressed by the application itself.

use snugly_codec::envelope::{self, Envelope};
use snugly_codec::{Choice, CodecId};

use super::catalogue::Dictionaries;
use super::sampling::Stored;

/// The kind of a stored string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As the application gave it.
    Plain,
    /// In an envelope, encoded so.
    Envelope(CodecId),
    /// In an envelope that cannot be read here: cut, damaged, newer, or its dictionary is not at hand.
    Unreadable,
    /// In a compressed format, or looks random.
    Compressed,
}

/// Findings about a stored string.
pub(crate) struct Seen {
    pub(crate) shape: Shape,
    /// The application's value, or its start; nothing if it cannot be read.
    pub(crate) value: Option<Vec<u8>>,
    /// The length of all that the application gave, if that is known.
    pub(crate) raw_len: Option<u64>,
}

/// Looks at a stored string; `dictionaries` are those that are at hand.
pub(crate) fn look_at(stored: &Stored, dictionaries: &Dictionaries) -> Seen {
    if let Some(found) = envelope::inspect(&stored.bytes) {
        return opened(stored, &found, dictionaries);
    }
    let shape = if is_compressed(&stored.bytes) { Shape::Compressed } else { Shape::Plain };
    let value = (!stored.bytes.is_empty()).then(|| stored.bytes.clone());
    Seen { shape, value, raw_len: Some(stored.len) }
}

fn opened(stored: &Stored, found: &Envelope<'_>, dictionaries: &Dictionaries) -> Seen {
    let mut value = Vec::new();
    let options = envelope::Options::default();
    let find = |id| dictionaries.get(&id);
    let is_read =
        stored.is_whole() && envelope::decode_with(&options, &find, &stored.bytes, &mut value).is_ok();
    match (found.codec(), is_read) {
        (Some(codec), true) => {
            Seen { shape: Shape::Envelope(codec), raw_len: Some(value.len() as u64), value: Some(value) }
        }
        (Some(codec), false) if !stored.is_whole() => {
            Seen { shape: Shape::Envelope(codec), value: None, raw_len: found.claimed_len() }
        }
        _ => Seen { shape: Shape::Unreadable, value: None, raw_len: found.claimed_len() },
    }
}

/// Whether the bytes are in a compressed format or look random: the codec would leave them alone for that.
fn is_compressed(bytes: &[u8]) -> bool {
    let Ok(choice) = Choice::new("zstd", Some(1), 0) else { return false };
    let options = envelope::Options { choice, ..envelope::Options::default() };
    let outcome = envelope::encode(&options, bytes, &mut Vec::new());
    outcome == envelope::Outcome::AsIs(snugly_codec::Reason::Compressed)
}

/// The IDs of the dictionaries that stored strings need.
pub(crate) fn needed_dictionaries<'a>(stored: impl Iterator<Item = &'a Stored>) -> Vec<u32> {
    let mut ids: Vec<u32> =
        stored.filter_map(|stored| envelope::inspect(&stored.bytes)?.dictionary_id()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(bytes: &[u8], len: usize) -> (Shape, Option<u64>) {
        let seen = look_at(&Stored { len: len as u64, bytes: bytes.to_vec() }, &Dictionaries::new());
        (seen.shape, seen.raw_len)
    }

    #[test]
    fn values_are_told_apart_by_what_was_done_to_them() {
        let value = br#"{"name": "value", "tags": ["cache", "cached", "caching"]}"#.repeat(10);
        let gzip =
            [&[0x1f, 0x8b, 8, 0][..], &(0..=255).map(|byte: u8| byte.wrapping_mul(167)).collect::<Vec<u8>>()]
                .concat();
        assert_eq!(shape(&value, value.len()), (Shape::Plain, Some(value.len() as u64)));
        assert_eq!(shape(&value[..100], value.len()), (Shape::Plain, Some(value.len() as u64)));
        assert_eq!(shape(&gzip, gzip.len()).0, Shape::Compressed);
        assert_eq!(shape(b"", 0), (Shape::Plain, Some(0)));
        for name in ["lz4", "zstd"] {
            let Ok(choice) = Choice::new(name, None, 0) else { continue };
            let mut envelope = Vec::new();
            envelope::encode(&envelope::Options { choice, ..Default::default() }, &value, &mut envelope);
            let codec = choice.codec().id();
            let whole = (Shape::Envelope(codec), Some(value.len() as u64));
            assert_eq!(shape(&envelope, envelope.len()), whole);
            assert_eq!(shape(&envelope[..20], envelope.len()), whole, "its start claims the length");
            envelope.truncate(envelope.len() - 1);
            assert_eq!(shape(&envelope, envelope.len()).0, Shape::Unreadable);
        }
        assert_eq!(shape(&[0, 1, 2, 0, 0x9f, 7], 6).0, Shape::Unreadable);
    }
}
