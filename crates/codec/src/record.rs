//! A stored value: `codec u8 | dictionary varint (codecs that need one) | raw length varint | payload`.
//!
//! Nothing is in-band: the codec is a field, so every byte string is storable. The dictionary is a number
//! local to the store. Varints are LEB128, in the shortest form.

use std::mem::MaybeUninit;

use crate::codecs::CodecId;

/// A borrowed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    codec: CodecId,
    dictionary: u32,
    raw_len: usize,
    payload: &'a [u8],
}

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end inside the header.
    #[error("the record is cut off inside its header")]
    Truncated,
    /// No codec has this number; a newer program may have written it.
    #[error("the record is encoded with the unknown codec {0}")]
    UnknownCodec(u8),
    /// A number of the header is too large or not in its shortest form.
    #[error("the record's header holds a malformed number")]
    MalformedNumber,
    /// An unencoded value has another length than the header says.
    #[error("the record declares {declared} bytes and holds {actual}")]
    LengthMismatch {
        /// The header's length, in bytes.
        declared: usize,
        /// The value's length, in bytes.
        actual: usize,
    },
}

/// The longest header, in bytes: a codec, a dictionary's number, a raw length.
pub const MAX_HEADER: usize = 1 + 5 + 10;

impl<'a> Record<'a> {
    /// The record of a value that is kept as it is.
    pub fn identity(value: &'a [u8]) -> Self {
        Record { codec: CodecId::Identity, dictionary: 0, raw_len: value.len(), payload: value }
    }

    pub(crate) fn encoded(codec: CodecId, dictionary: u32, raw_len: usize, payload: &'a [u8]) -> Self {
        Record { codec, dictionary, raw_len, payload }
    }

    /// Reads the header. The payload is not looked at: [`crate::Decoder`] does that.
    ///
    /// # Errors
    /// A header that no writer makes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let (&number, rest) = bytes.split_first().ok_or(RecordError::Truncated)?;
        let codec = CodecId::from_number(number).ok_or(RecordError::UnknownCodec(number))?;
        let (dictionary, rest) = if codec.needs_dictionary() { read_varint(rest)? } else { (0, rest) };
        let dictionary = u32::try_from(dictionary).map_err(|_| RecordError::MalformedNumber)?;
        let (raw_len, payload) = read_varint(rest)?;
        let raw_len = usize::try_from(raw_len).map_err(|_| RecordError::MalformedNumber)?;
        if codec == CodecId::Identity && raw_len != payload.len() {
            return Err(RecordError::LengthMismatch { declared: raw_len, actual: payload.len() });
        }
        Ok(Record { codec, dictionary, raw_len, payload })
    }

    /// Encoding of the payload.
    pub fn codec(&self) -> CodecId {
        self.codec
    }

    /// The number of the dictionary that the payload needs, local to the store.
    pub fn dictionary(&self) -> Option<u32> {
        self.codec.needs_dictionary().then_some(self.dictionary)
    }

    /// The length of the value, in bytes, as the record declares it.
    pub fn raw_len(&self) -> usize {
        self.raw_len
    }

    /// The encoded value.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The value, if it is kept as it is.
    pub fn as_identity(&self) -> Option<&'a [u8]> {
        (self.codec == CodecId::Identity).then_some(self.payload)
    }

    /// The length of the whole record, in bytes.
    pub fn encoded_len(&self) -> usize {
        let dictionary_len = self.dictionary().map_or(0, |number| varint_len(number.into()));
        1 + dictionary_len + varint_len(self.raw_len as u64) + self.payload.len()
    }

    /// Writes the record into memory that need not be initialised, and initialises all of it.
    ///
    /// # Panics
    /// If `target` is not exactly [`Record::encoded_len`] bytes long.
    pub fn write_to(&self, target: &mut [MaybeUninit<u8>]) {
        assert_eq!(target.len(), self.encoded_len(), "a record is written into exactly its length");
        let mut header = [0; MAX_HEADER];
        let header = self.header(&mut header);
        let (head, tail) = target.split_at_mut(header.len());
        for (target, bytes) in [(head, header), (tail, self.payload)] {
            for (target, &byte) in target.iter_mut().zip(bytes) {
                target.write(byte);
            }
        }
    }

    /// Appends the record.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let mut header = [0; MAX_HEADER];
        let header = self.header(&mut header);
        out.reserve(header.len() + self.payload.len());
        out.extend_from_slice(header);
        out.extend_from_slice(self.payload);
    }

    /// The header of the record of a value of `len` bytes that is kept as it is, written into `buffer`. The value follows it.
    pub fn identity_header(len: usize, buffer: &mut [u8; MAX_HEADER]) -> &[u8] {
        Record { codec: CodecId::Identity, dictionary: 0, raw_len: len, payload: &[] }.header(buffer)
    }

    fn header<'b>(&self, buffer: &'b mut [u8; MAX_HEADER]) -> &'b [u8] {
        buffer[0] = self.codec as u8;
        let mut len = 1;
        if let Some(number) = self.dictionary() {
            len += write_varint(number.into(), &mut buffer[len..]);
        }
        len += write_varint(self.raw_len as u64, &mut buffer[len..]);
        &buffer[..len]
    }
}

fn varint_len(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

fn write_varint(mut number: u64, buffer: &mut [u8]) -> usize {
    let mut len = 0;
    while number >= 0x80 {
        buffer[len] = number as u8 | 0x80;
        number >>= 7;
        len += 1;
    }
    buffer[len] = number as u8;
    len + 1
}

fn read_varint(bytes: &[u8]) -> Result<(u64, &[u8]), RecordError> {
    let mut number = 0u64;
    for (index, &byte) in bytes.iter().enumerate() {
        let bits = u64::from(byte & 0x7F);
        let shift = 7 * index as u32;
        if shift >= u64::BITS || (bits << shift) >> shift != bits {
            return Err(RecordError::MalformedNumber);
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            let shortest = index == 0 || byte != 0;
            return if shortest {
                Ok((number, &bytes[index + 1..]))
            } else {
                Err(RecordError::MalformedNumber)
            };
        }
    }
    Err(RecordError::Truncated)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(record: &Record<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.append_to(&mut bytes);
        bytes
    }

    #[test]
    fn the_layout_is_the_formats() {
        assert_eq!(bytes(&Record::identity(b"abc")), b"\x00\x03abc");
        assert_eq!(bytes(&Record::encoded(CodecId::Lz4, 0, 300, b"xy")), b"\x01\xac\x02xy");
        assert_eq!(bytes(&Record::encoded(CodecId::Zstd, 0, 127, b"")), b"\x02\x7f");
        assert_eq!(bytes(&Record::encoded(CodecId::ZstdDictionary, 128, 1, b"z")), b"\x03\x80\x01\x01z");
        assert_eq!(bytes(&Record::encoded(CodecId::Lzf, 0, 4, b"\0a")), b"\x04\x04\0a");
        assert_eq!(bytes(&Record::encoded(CodecId::Lz4Dictionary, 7, 2, b"z")), b"\x05\x07\x02z");
    }

    #[test]
    fn headers_that_no_writer_makes_are_refused() {
        use RecordError::*;
        let cases: [(&[u8], RecordError); 9] = [
            (b"", Truncated),
            (b"\x02", Truncated),
            (b"\x02\x80", Truncated),
            (b"\x03\x01", Truncated),
            (b"\x1f\x01a", UnknownCodec(31)),
            (b"\x02\x80\x00a", MalformedNumber),
            (b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", MalformedNumber),
            (b"\x03\xff\xff\xff\xff\x1f\x01", MalformedNumber),
            (b"\x00\x02a", LengthMismatch { declared: 2, actual: 1 }),
        ];
        for (bytes, error) in cases {
            assert_eq!(Record::parse(bytes), Err(error), "{:?}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_parsed(
            number in 1u8..6,
            dictionary: u32,
            raw_len: usize,
            payload in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let codec = CodecId::from_number(number).unwrap();
            let dictionary = if codec.needs_dictionary() { dictionary } else { 0 };
            let record = Record::encoded(codec, dictionary, raw_len, &payload);
            let appended = bytes(&record);
            prop_assert_eq!(Record::parse(&appended), Ok(record));
            prop_assert_eq!(record.encoded_len(), appended.len());
            let mut written = vec![MaybeUninit::uninit(); appended.len()];
            record.write_to(&mut written);
            // SAFETY: write_to initialises all of it.
            let written: Vec<u8> = written.iter().map(|byte| unsafe { byte.assume_init() }).collect();
            prop_assert_eq!(written, appended);
        }

        #[test]
        fn what_is_parsed_is_written_back_the_same(written in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(record) = Record::parse(&written) {
                prop_assert_eq!(bytes(&record), written);
            }
        }
    }
}
