//! The rows of the table of dictionaries, byte by byte (FORMAT.md).

use super::row::Damaged;
use super::state::{Reader, seal, unseal};

/// A dictionary as stored on disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DictionaryRow {
    pub(crate) number: u32,
    /// Length of the shortest value that it is for, in bytes.
    pub(crate) min_len: u32,
    /// Time of the training, in Unix milliseconds.
    pub(crate) trained_at: u64,
    pub(crate) samples: u32,
    /// Ratios measured at the training, if they were.
    pub(crate) ratio_before: Option<f64>,
    pub(crate) ratio_after: Option<f64>,
    pub(crate) pattern: Vec<u8>,
    pub(crate) content: Vec<u8>,
}

/// Returns the row's key: the number, big-endian.
pub(crate) fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

pub(crate) fn parse_key(bytes: &[u8]) -> Result<u32, Damaged> {
    bytes.try_into().map(u32::from_be_bytes).map_err(|_| Damaged)
}

/// Bits of a ratio that was not measured: a NaN.
const UNMEASURED: u64 = 0x7ff8_0000_0000_0000;

impl DictionaryRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.min_len.to_le_bytes());
        bytes.extend_from_slice(&self.trained_at.to_le_bytes());
        bytes.extend_from_slice(&self.samples.to_le_bytes());
        for ratio in [self.ratio_before, self.ratio_after] {
            bytes.extend_from_slice(&ratio.map_or(UNMEASURED, f64::to_bits).to_le_bytes());
        }
        bytes.extend_from_slice(&(self.pattern.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.pattern);
        bytes.extend_from_slice(&self.content);
        seal(bytes)
    }

    /// Parses a row, and verifies its checksum and that it belongs to this number.
    pub(crate) fn parse(number: u32, bytes: &[u8]) -> Result<DictionaryRow, Damaged> {
        let mut reader = Reader(unseal(bytes)?);
        let ratio = |bits| match f64::from_bits(bits) {
            _ if bits == UNMEASURED => Ok(None),
            ratio if ratio.is_nan() => Err(Damaged),
            ratio => Ok(Some(ratio)),
        };
        let mut row = DictionaryRow {
            number: reader.u32()?,
            min_len: reader.u32()?,
            trained_at: reader.u64()?,
            samples: reader.u32()?,
            ratio_before: ratio(reader.u64()?)?,
            ratio_after: ratio(reader.u64()?)?,
            pattern: Vec::new(),
            content: Vec::new(),
        };
        let pattern_len = reader.u32()? as usize;
        let (pattern, content) = reader.0.split_at_checked(pattern_len).ok_or(Damaged)?;
        row.pattern = pattern.to_vec();
        row.content = content.to_vec();
        if row.number == number { Ok(row) } else { Err(Damaged) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ratio_that_was_not_measured_is_written_in_one_way() {
        let row = DictionaryRow {
            number: 1,
            min_len: 128,
            trained_at: 0,
            samples: 0,
            ratio_before: None,
            ratio_after: None,
            pattern: Vec::new(),
            content: Vec::new(),
        };
        let mut bytes = unseal(&row.encode()).expect("it is sealed").to_vec();
        // Offset behind number, length, time and samples.
        bytes[20] ^= 1;
        assert_eq!(DictionaryRow::parse(1, &seal(bytes)), Err(Damaged));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_parsed_and_of_no_other_number(
            number: u32,
            min_len: u32,
            trained_at: u64,
            samples: u32,
            ratios in (prop::option::of(0.0..1.0), prop::option::of(0.0..1.0)),
            pattern: Vec<u8>,
            content: Vec<u8>,
        ) {
            let (ratio_before, ratio_after) = ratios;
            let row = DictionaryRow {
                number, min_len, trained_at, samples, ratio_before, ratio_after, pattern, content,
            };
            let bytes = row.encode();
            prop_assert_eq!(DictionaryRow::parse(number, &bytes), Ok(row));
            prop_assert_eq!(DictionaryRow::parse(number.wrapping_add(1), &bytes), Err(Damaged));
            prop_assert_eq!(parse_key(&key(number)), Ok(number));
        }

        #[test]
        fn any_bytes_can_be_parsed(bytes: Vec<u8>) {
            let _ = DictionaryRow::parse(0, &bytes);
            let sealed = seal(bytes.clone());
            let number = sealed.first_chunk().map_or(0, |number| u32::from_le_bytes(*number));
            if let Ok(row) = DictionaryRow::parse(number, &sealed) {
                prop_assert_eq!(row.encode(), sealed);
            }
            let _ = parse_key(&bytes);
        }
    }
}
