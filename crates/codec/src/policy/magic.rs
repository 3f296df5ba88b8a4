//! The magic numbers of formats that are compressed already.

/// A format's first bytes, from `offset` on.
struct Magic {
    offset: usize,
    bytes: &'static [u8],
}

const fn magic(bytes: &'static [u8]) -> Magic {
    Magic { offset: 0, bytes }
}

const TABLE: &[Magic] = &[
    magic(b"\x1f\x8b\x08"),              // gzip (RFC 1952)
    magic(b"\x28\xb5\x2f\xfd"),          // zstd (RFC 8878)
    magic(b"\x04\x22\x4d\x18"),          // LZ4 frame
    magic(b"\xfd7zXZ\0"),                // xz
    magic(b"BZh"),                       // bzip2
    magic(b"7z\xbc\xaf\x27\x1c"),        // 7-Zip
    magic(b"PK\x03\x04"),                // ZIP, and what is made of it: docx, jar, apk
    magic(b"Rar!\x1a\x07"),              // RAR
    magic(b"\xff\x06\0\0sNaPpY"),        // framed Snappy
    magic(b"\x89PNG\r\n\x1a\n"),         // PNG
    magic(b"\xff\xd8\xff"),              // JPEG
    magic(b"GIF8"),                      // GIF
    Magic { offset: 8, bytes: b"WEBP" }, // WebP
    Magic { offset: 4, bytes: b"ftyp" }, // MP4, AVIF, HEIC
    magic(b"\xff\x0a"),                  // JPEG XL
    magic(b"\x1a\x45\xdf\xa3"),          // WebM, Matroska
    magic(b"OggS"),                      // Ogg: Vorbis, Opus
    magic(b"fLaC"),                      // FLAC
    magic(b"ID3"),                       // MP3
    magic(b"wOF2"),                      // WOFF2
    magic(b"wOFF"),                      // WOFF
];

/// Whether a value with this first byte can have a magic number: one look for the JSON and HTML of every day.
static FIRST_BYTES: [bool; 256] = first_bytes();

const fn first_bytes() -> [bool; 256] {
    let mut first = [false; 256];
    first[b'R' as usize] = true; // RIFF, before WEBP
    first[0] = true; // the box length before ftyp
    let mut row = 0;
    while row < TABLE.len() {
        if TABLE[row].offset == 0 {
            first[TABLE[row].bytes[0] as usize] = true;
        }
        row += 1;
    }
    first
}

/// Whether the value starts as a compressed format does. Text can do so too: the caller looks at more of it.
pub(super) fn matches(value: &[u8]) -> bool {
    value.first().is_some_and(|&first| FIRST_BYTES[usize::from(first)])
        && TABLE.iter().any(|row| value.get(row.offset..).is_some_and(|rest| rest.starts_with(row.bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_recognised_by_its_first_bytes() {
        for row in TABLE {
            let mut value = vec![0; row.offset];
            if row.bytes == b"WEBP" {
                value[..4].copy_from_slice(b"RIFF");
            }
            value.extend_from_slice(row.bytes);
            assert!(matches(&value), "{:?}", row.bytes.escape_ascii());
            value.pop();
            assert!(!matches(&value), "{:?} cut off", row.bytes.escape_ascii());
        }
    }

    #[test]
    fn the_table_is_that_of_the_specification() {
        let specified = crate::policy::rules::specified("data/magic.json");
        let rows = specified.as_array().expect("a list").iter();
        let rows: Vec<_> = rows.map(|row| (row["offset"].as_u64(), row["hex"].as_str())).collect();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let own: Vec<_> = TABLE.iter().map(|row| (row.offset as u64, hex(row.bytes))).collect();
        assert_eq!(own.iter().map(|(offset, hex)| (Some(*offset), Some(&hex[..]))).collect::<Vec<_>>(), rows);
    }

    #[test]
    fn text_and_numbers_have_no_magic() {
        for value in
            [&b""[..], b"{\"a\": 1}", b"[1, 2]", b"<html>", b"name,price", b"12345", b"\0\0\0\x01", b"Rust"]
        {
            assert!(!matches(value), "{:?}", value.escape_ascii());
        }
    }
}
