//! The bytes backwards, without the eight zeros at their end: a codec that only the tests have.
//!
//! A codec is this module, its number and its row, and nothing else of the crate knows it.

use super::tail::reserve;
use super::{Claims, Decoding, Encoding, Extent, Fault, Framing, Functions};

/// Values must end with these to be compressed.
const ZEROS: [u8; 8] = [0; 8];

pub(super) const FUNCTIONS: Functions = Functions { compress, decompress };

pub(super) fn extent(_: Framing, payload: &[u8]) -> Result<Extent, &'static str> {
    Ok(Extent { claimed: None, reach: (payload.len() + ZEROS.len()) as u64 })
}

pub(super) fn claims(_: &[u8]) -> Option<Claims> {
    Some(Claims { len: None, reach: None, dictionary: None })
}

fn compress(_: &Encoding<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let rest = value.strip_suffix(&ZEROS).ok_or(Fault::OutputFull)?;
    reserve(out, rest.len())?;
    out.extend(rest.iter().rev());
    Ok(())
}

fn decompress(decoding: &Decoding<'_>, payload: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    let len = payload.len() + ZEROS.len();
    if len > decoding.limit {
        return Err(Fault::OutputFull);
    }
    reserve(out, len)?;
    out.extend(payload.iter().rev());
    out.extend(ZEROS);
    Ok(len)
}

mod tests {
    use std::sync::Arc;

    use crate::counters::{Counters, Family};
    use crate::envelope::{self, Decoded, Outcome};
    use crate::{Choice, CodecId, Decoder, Encoder, Record};

    const VALUE: &[u8] = b"a value of more than thirty-two bytes\0\0\0\0\0\0\0\0";

    fn choice() -> Choice {
        Choice::for_nodes(CodecId::Reversed, 0)
    }

    #[test]
    fn records_and_counters_take_a_codec_by_its_row() {
        let counters = Arc::new(Counters::default());
        let mut stored = Vec::new();
        Encoder::new(counters.clone()).encode(choice(), VALUE, 0, |bytes| bytes).append_to(&mut stored);
        let record = Record::parse(&stored).expect("it was just made");
        assert_eq!((record.codec(), record.payload().len()), (CodecId::Reversed, VALUE.len() - 8));
        let mut restored = Vec::new();
        Decoder::new(counters.clone()).decode(&record, 100, &mut restored).expect("it was just made");
        assert_eq!(restored, VALUE);
        assert_eq!(counters.snapshot().of(Family::DecodedValues, CodecId::Reversed), 1);
    }

    #[test]
    fn envelopes_take_a_codec_by_its_row() {
        let options = envelope::Options { choice: choice(), ..Default::default() };
        let mut sent = Vec::new();
        let outcome = envelope::encode(&options, VALUE, &mut sent);
        assert_eq!(outcome, Outcome::Encoded { codec: CodecId::Reversed, len: VALUE.len() - 3 });
        assert_eq!(sent[4], 0x9f);
        let mut restored = Vec::new();
        let decoded = envelope::decode(&options, &sent, &mut restored).expect("it was just made");
        assert_eq!(decoded, Decoded::Restored { codec: CodecId::Reversed, len: VALUE.len() });
        assert_eq!(restored, VALUE);
    }
}
