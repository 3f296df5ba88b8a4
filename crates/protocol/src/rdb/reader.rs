//! Reading RDB files.
//!
//! ```text
//! "REDIS" and 4 digits, or "VALKEY" and 3    the version
//! opcode …                                   something about the file, a database, or the next key
//! type, key, value                           a key
//! 255, CRC-64 (8 bytes, little-endian)       the end; 0 if there is no checksum, nothing before version 5
//! ```

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::RangeInclusive;

use super::error::{Fault, FileError};
use super::input::{Input, checked};
use super::kinds::{Kind, Part, Shape, kind, skip};
use super::{
    AUX, CRC_64, Checksum, DATABASE, END, EXPIRY_MILLISECONDS, EXPIRY_SECONDS, FREQUENCY, IDLE, SIZES, Value,
    is_known, length, list, string,
};

const MAGIC_LEN: usize = 9;
const REDIS: &str = "REDIS";
const VALKEY: &str = "VALKEY";
/// The versions that files of each can have.
const VERSIONS: [(&str, RangeInclusive<u16>); 2] = [(REDIS, 1..=79), (VALKEY, 80..=u16::MAX)];
/// Files before this version have no checksum.
const CHECKSUM_SINCE: u16 = 5;
/// Numbers from this one to 243 mean something else in files of newer Redis servers, so one of Redis has none of them.
const FIRST_OF_VALKEY: u8 = 22;
const LAST_OF_VALKEY: u8 = 243;
/// Functions of the first previews of Redis 7, which no server loads.
const FUNCTION_OF_PREVIEW: u8 = 246;
const BUFFER_LEN: usize = 64 << 10;

/// Skipped items: opcode, name, and parts.
#[rustfmt::skip]
const IGNORED: &[(u8, &str, &[Part])] = &[
    (243, "slots in migration", &[Part::String, Part::Repeated(&[Part::Number, Part::Number])]),
    (244, "sizes of slots", &[Part::Number, Part::Number, Part::Number]),
    (245, "functions", &[Part::String]),
    // Module, mark of a number, when it was written.
    (247, "data of a module", &[Part::Number, Part::Number, Part::Number, Part::Module]),
];

/// The next item of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A statement of the server that has written the file, such as `valkey-ver`. Digits are digits here, too.
    Aux {
        /// The subject.
        name: Vec<u8>,
        /// The content.
        value: Vec<u8>,
    },
    /// The database of the keys that follow. Without one they are in database 0.
    Database(u64),
    /// Number of keys that follow in the database. A hint: nothing makes it true.
    Sizes {
        /// All of them.
        keys: u64,
        /// Number of keys that expire.
        expiring: u64,
    },
    /// A key.
    Entry(Entry),
    /// Something else that was passed over, such as `functions`.
    Ignored(&'static str),
}

/// A key, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub key: Vec<u8>,
    /// Expiry in Unix milliseconds, which may be in the past.
    pub expiry: Option<u64>,
    /// Use of the key, if the server counted that.
    pub usage: Option<Usage>,
    /// The value.
    pub content: Content,
}

/// Use of a key, as counted by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Seconds without use.
    IdleSeconds(u64),
    /// Frequency, on a logarithmic scale.
    Frequency(u8),
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A value that can be kept.
    Value(Value<'static>),
    /// A value of this type, which was passed over.
    Skipped(&'static str),
}

/// Reads a file event by event. Keys without elements, which some servers have written by mistake, are passed over, as
/// Valkey does.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use snugly_protocol::rdb::{Content, Event, Origin, Reader, Value, Writer};
///
/// let mut writer = Writer::new(Vec::new(), &Origin::default())?;
/// writer.string(b"key", None, b"value")?;
/// let file = writer.finish()?;
///
/// for event in Reader::new(&file[..], 1 << 20)? {
///     if let Event::Entry(entry) = event? {
///         assert_eq!(entry.content, Content::Value(Value::String(b"value".into())));
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reader<R> {
    source: Source<R>,
    limit: usize,
    magic: &'static str,
    version: u16,
    /// Attributes of the next key.
    expiry: Option<u64>,
    usage: Option<Usage>,
    /// The key whose value is being read, for errors.
    key: Option<Vec<u8>>,
    is_at_end: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the start of a file in which no key, string or element is longer than `limit` bytes. It need not be
    /// buffered. A file of a newer version is read up to the first thing that is not known.
    ///
    /// # Errors
    /// [`FileError::NotRdb`] and [`FileError::Version`], if it is no RDB file or of a version that there is not;
    /// [`FileError::Io`].
    pub fn new(file: R, limit: usize) -> Result<Reader<R>, FileError> {
        let mut source = Source {
            input: BufReader::with_capacity(BUFFER_LEN, file),
            checksum: CRC_64.digest(),
            offset: 0,
        };
        let start: [u8; MAGIC_LEN] = source.array().map_err(|fault| fault.at(source.offset))?;
        let (magic, version) = version(&start).ok_or_else(|| FileError::NotRdb { start: start.to_vec() })?;
        if !VERSIONS.iter().any(|row| row.0 == magic && row.1.contains(&version)) {
            return Err(FileError::Version { magic, version });
        }
        Ok(Reader { source, limit, magic, version, expiry: None, usage: None, key: None, is_at_end: false })
    }

    /// Number of bytes of the file read.
    pub fn offset(&self) -> u64 {
        self.source.offset
    }

    /// The version of the format.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Returns whether the file may have something that is not known here, since its version is newer.
    pub fn is_newer(&self) -> bool {
        !is_known(self.version)
    }

    fn event(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            let opcode = self.source.byte()?;
            match opcode {
                EXPIRY_SECONDS => {
                    let seconds = i32::from_le_bytes(self.source.array()?);
                    self.expiry = Some(u64::try_from(seconds).unwrap_or(0) * 1_000);
                }
                EXPIRY_MILLISECONDS => {
                    let milliseconds = i64::from_le_bytes(self.source.array()?);
                    self.expiry = Some(u64::try_from(milliseconds).unwrap_or(0));
                }
                IDLE => self.usage = Some(Usage::IdleSeconds(length::read_number(&mut self.source)?)),
                FREQUENCY => self.usage = Some(Usage::Frequency(self.source.byte()?)),
                AUX => {
                    let (name, value) = (self.string()?, self.string()?);
                    return Ok(Some(Event::Aux { name, value }));
                }
                DATABASE => return Ok(Some(Event::Database(length::read_number(&mut self.source)?))),
                SIZES => {
                    let keys = length::read_number(&mut self.source)?;
                    let expiring = length::read_number(&mut self.source)?;
                    return Ok(Some(Event::Sizes { keys, expiring }));
                }
                FUNCTION_OF_PREVIEW => return Err(Fault::Unsupported("functions of a preview of Redis 7")),
                END => return self.end().map(|()| None),
                _ => {
                    if let Some((_, name, parts)) = IGNORED.iter().find(|row| row.0 == opcode)
                        && !self.is_foreign(opcode)
                    {
                        skip(parts, &mut self.source)?;
                        return Ok(Some(Event::Ignored(name)));
                    }
                    if let Some(entry) = self.entry(opcode)? {
                        return Ok(Some(Event::Entry(entry)));
                    }
                }
            }
        }
    }

    /// The key of a type; `None` if it has no elements.
    fn entry(&mut self, number: u8) -> Result<Option<Entry>, Fault> {
        let kind = match kind(number) {
            Some(kind) if !self.is_foreign(number) => kind,
            _ => return Err(self.unknown_type(number)),
        };
        let key = self.string()?;
        let content = self.content(kind).inspect_err(|_| self.key = Some(key.clone()))?;
        let (expiry, usage) = (self.expiry.take(), self.usage.take());
        Ok(content.map(|content| Entry { key, expiry, usage, content }))
    }

    /// Returns whether a number means something else in files of Redis than it does in those of Valkey.
    fn is_foreign(&self, number: u8) -> bool {
        self.magic == REDIS && (FIRST_OF_VALKEY..=LAST_OF_VALKEY).contains(&number)
    }

    /// The fault of a number that stands for no known type. What a newer server writes behind the number of a type is
    /// the key, as ever.
    fn unknown_type(&mut self, number: u8) -> Fault {
        if self.is_newer() && number < LAST_OF_VALKEY {
            self.key = self.string().ok();
        }
        match self.is_foreign(number) {
            true => Fault::Unsupported("a type or opcode that files of Redis up to 7.2 do not have"),
            false => Fault::Malformed("there is no such type or opcode"),
        }
    }

    /// A value; `None` if it has no elements.
    fn content(&mut self, kind: &Kind) -> Result<Option<Content>, Fault> {
        Ok(match kind.shape {
            Shape::String => Some(Content::Value(Value::String(self.string()?.into()))),
            Shape::List(form) => {
                let nodes = list::read(form, &mut self.source, self.limit, usize::MAX)?;
                nodes.map(|nodes| Content::Value(Value::List(nodes)))
            }
            Shape::Other(parts) => {
                skip(parts, &mut self.source)?;
                Some(Content::Skipped(kind.name))
            }
            Shape::Endless => return Err(Fault::Unsupported("a module's value of a preview of Redis 4")),
        })
    }

    /// The error of a fault here.
    fn error(&mut self, fault: Fault) -> FileError {
        match fault {
            Fault::Unsupported(reason) | Fault::Malformed(reason) if self.is_newer() => FileError::Newer {
                magic: self.magic,
                version: self.version,
                offset: self.source.offset,
                reason,
                key: self.key.take(),
            },
            fault => fault.at(self.source.offset),
        }
    }

    fn string(&mut self) -> Result<Vec<u8>, Fault> {
        string::read(&mut self.source, self.limit).map(Cow::into_owned)
    }

    fn end(&mut self) -> Result<(), Fault> {
        if self.version < CHECKSUM_SINCE {
            return Ok(());
        }
        let found = self.source.checksum.clone().finalize();
        let written = u64::from_le_bytes(self.source.array()?);
        if written == 0 || written == found { Ok(()) } else { Err(Fault::Checksum) }
    }
}

/// Ends after the end of the file, and after an error.
impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, FileError>;

    fn next(&mut self) -> Option<Result<Event, FileError>> {
        if self.is_at_end {
            return None;
        }
        let event = self.event().map_err(|fault| self.error(fault)).transpose();
        self.is_at_end = !matches!(event, Some(Ok(_)));
        event
    }
}

fn version(start: &[u8]) -> Option<(&'static str, u16)> {
    let magic = [REDIS, VALKEY].into_iter().find(|magic| start.starts_with(magic.as_bytes()))?;
    let digits = &start[magic.len()..];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some((magic, std::str::from_utf8(digits).ok()?.parse().ok()?))
}

/// A file from which all that is read goes into the checksum.
struct Source<R> {
    input: BufReader<R>,
    checksum: Checksum,
    offset: u64,
}

impl<R: Read> Source<R> {
    /// Shows `len` bytes, piece by piece.
    fn pieces(&mut self, len: u64, mut show: impl FnMut(&[u8])) -> Result<(), Fault> {
        let mut left = len;
        while left > 0 {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer.map_err(Fault::Io)?,
            };
            let piece = &buffer[..buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            if piece.is_empty() {
                return Err(Fault::Ended);
            }
            self.checksum.update(piece);
            show(piece);
            let taken = piece.len();
            self.input.consume(taken);
            self.offset += taken as u64;
            left -= taken as u64;
        }
        Ok(())
    }
}

impl<R: Read> Input<'static> for Source<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (mut array, mut filled) = ([0; N], 0);
        self.pieces(N as u64, |piece| {
            array[filled..filled + piece.len()].copy_from_slice(piece);
            filled += piece.len();
        })?;
        Ok(array)
    }

    fn bytes(&mut self, len: u64, limit: usize) -> Result<Cow<'static, [u8]>, Fault> {
        let len = checked(len, limit)?;
        let mut bytes = Vec::with_capacity(len.min(BUFFER_LEN));
        self.pieces(len as u64, |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes.into())
    }

    fn skip(&mut self, len: u64) -> Result<(), Fault> {
        self.pieces(len, |_| ())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rdb::Node;

    const LIMIT: usize = 1 << 20;

    /// A file of Valkey 9 with these contents, and a checksum.
    fn file(contents: &[u8]) -> Vec<u8> {
        let mut file = [b"VALKEY080", contents, &[END]].concat();
        let checksum = CRC_64.checksum(&file);
        file.extend_from_slice(&checksum.to_le_bytes());
        file
    }

    fn events(file: &[u8]) -> Result<Vec<Event>, FileError> {
        Reader::new(file, LIMIT)?.collect()
    }

    fn entry(key: &[u8], content: Content) -> Event {
        Event::Entry(Entry { key: key.to_vec(), expiry: None, usage: None, content })
    }

    fn string(bytes: &'static [u8]) -> Content {
        Content::Value(Value::String(bytes.into()))
    }

    /// A reader of one byte at a time, with an interruption in front of each.
    struct Dripping<'a> {
        rest: &'a [u8],
        is_interrupted: bool,
    }

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.is_interrupted = !self.is_interrupted;
            if self.is_interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            (&mut self.rest).take(1).read(buffer)
        }
    }

    #[test]
    fn everything_that_can_stand_in_a_file_is_read_or_passed_over() {
        let contents = [
            // From here on in pairs: what is written, and as below what is read.
            &b"\xfa\x0avalkey-ver\x059.1.2\xfa\x05ctime\xc2\x00\xca\x9a\x3b"[..],
            b"\xf7\x81\0\0\0\0\0\0\0\x01\x02\x02\x05\x02ab\0",
            b"\xf5\x08#!lua...",
            b"\xf3\x03job\x02\x00\x0a\x14\x1e",
            b"\xfe\x03\xfb\x05\x02",
            b"\xf4\x0a\x01\x00",
            b"\x00\x01a\x01b",
            b"\xfc\x15\xcd\x5b\x07\0\0\0\0\x00\xc0\x0c\xc1\xe8\x03",
            b"\xfd\x01\0\0\0\xf8\x0a\x00\x01a\x01b",
            b"\xf9\xff\x00\x01a\x01b",
            b"\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x00\x01a\x01b",
            b"\x12\x04list\x01\x01\x01a",
            // A list without elements, whose expiry is not that of the next key.
            b"\xfc\x01\0\0\0\0\0\0\0\x12\x05empty\x00",
            b"\x02\x03set\x02\x01a\xc0\x00",
            b"\x16\x04hash\x01\x01f\x01v\xff\xff\xff\xff\xff\xff\xff\xff",
        ]
        .concat();
        let used =
            |expiry, usage| Event::Entry(Entry { key: b"a".to_vec(), expiry, usage, content: string(b"b") });
        let aux = |name: &str, value: &str| Event::Aux { name: name.into(), value: value.into() };
        let listpack = Node::Packed(b"\x0a\0\0\0\x01\0\x81a\x02\xff"[..].into());
        let expected = [
            aux("valkey-ver", "9.1.2"),
            aux("ctime", "1000000000"),
            Event::Ignored("data of a module"),
            Event::Ignored("functions"),
            Event::Ignored("slots in migration"),
            Event::Database(3),
            Event::Sizes { keys: 5, expiring: 2 },
            Event::Ignored("sizes of slots"),
            entry(b"a", string(b"b")),
            Event::Entry(Entry {
                key: b"12".to_vec(),
                expiry: Some(123_456_789),
                usage: None,
                content: string(b"1000"),
            }),
            used(Some(1_000), Some(Usage::IdleSeconds(10))),
            used(None, Some(Usage::Frequency(255))),
            used(Some(0), None),
            entry(b"list", Content::Value(Value::List(vec![listpack]))),
            entry(b"set", Content::Skipped("set")),
            entry(b"hash", Content::Skipped("hash")),
        ];
        let file = file(&contents);
        assert_eq!(events(&file).unwrap(), expected);
        let dripping = Reader::new(Dripping { rest: &file, is_interrupted: false }, LIMIT).unwrap();
        assert_eq!(dripping.collect::<Result<Vec<_>, _>>().unwrap(), expected);
        for len in MAGIC_LEN..file.len() {
            let error = events(&file[..len]).unwrap_err();
            assert!(matches!(error, FileError::Ended { offset } if offset == len as u64), "{len}: {error}");
        }
    }

    #[test]
    fn progress_is_told_in_bytes() {
        let file = file(b"\x00\x01a\x01b\x00\x01a\x01b");
        let mut reader = Reader::new(&file[..], LIMIT).unwrap();
        let mut offsets = vec![reader.offset()];
        while let Some(event) = reader.next() {
            event.unwrap();
            offsets.push(reader.offset());
        }
        offsets.push(reader.offset());
        assert_eq!(offsets, [9, 14, 19, 28]);
    }

    #[test]
    fn versions_that_redis_and_valkey_can_have_are_read() {
        for (magic, is_read) in [
            (&b"REDIS0001"[..], true),
            (b"REDIS0011", true),
            (b"REDIS0014", true),
            (b"VALKEY080", true),
            (b"VALKEY081", true),
            (b"REDIS0000", false),
            (b"REDIS0080", false),
            (b"VALKEY011", false),
        ] {
            let file = [magic, b"\xff\0\0\0\0\0\0\0\0"].concat();
            let magic = magic.escape_ascii();
            match events(&file) {
                Ok(events) => assert!(is_read && events.is_empty(), "{magic}"),
                Err(FileError::Version { .. }) => assert!(!is_read, "{magic}"),
                Err(error) => panic!("{magic}: {error}"),
            }
        }
        for start in [&b"REDIS00+1"[..], b"REDIS    ", b"VALKEY08\xff", b"valkey080", b"*3\r\n$3\r\nSET"] {
            assert!(matches!(events(start), Err(FileError::NotRdb { .. })));
        }
        assert!(matches!(events(b"REDIS"), Err(FileError::Ended { offset: 5 })));
    }

    #[test]
    fn the_checksum_is_that_of_all_bytes_before_or_none() {
        let good = file(b"\x00\x01a\x01b");
        assert!(events(&good).is_ok());
        let mut other = good.clone();
        other[13] = b'c';
        assert!(matches!(events(&other), Err(FileError::Checksum)));
        let checksum_at = good.len() - 8;
        other[checksum_at..].fill(0);
        assert_eq!(events(&other).unwrap(), [entry(b"a", string(b"c"))]);
        assert_eq!(events(b"REDIS0004\x00\x01a\x01b\xff").unwrap(), [entry(b"a", string(b"b"))]);
    }

    #[test]
    fn a_file_of_redis_has_none_of_the_types_of_valkey() {
        for number in [22, 243] {
            let file = [&b"REDIS0011"[..], &[number], b"\x01a\x00"].concat();
            assert!(matches!(events(&file), Err(FileError::Unsupported { offset: 10, .. })));
        }
    }

    #[test]
    fn a_newer_file_is_read_up_to_what_is_not_known_and_that_is_named() {
        for (magic, type_number) in [("REDIS0012", 24), ("REDIS0014", 22), ("VALKEY081", 23)] {
            let known = b"\x00\x01a\x01b\xfc\0\0\0\0\0\0\0\0\x02\x03set\x01\x01a";
            let file = [magic.as_bytes(), known, &[type_number], b"\x05b\xc3d\"e\x01\x02\x03\xff"].concat();
            let mut reader = Reader::new(&file[..], LIMIT).unwrap();
            assert!(reader.is_newer());
            assert_eq!(reader.by_ref().take(2).filter(Result::is_ok).count(), 2, "{magic}");
            let error = reader.next().unwrap().unwrap_err().to_string();
            assert!(error.contains("newer than what is known here"), "{error}");
            assert!(error.contains("in the key \"b\\xc3d\\\"e\""), "{error}");
            assert!(reader.next().is_none());
        }
        for contents in [&b"\x12\x04list\x01\x07\x01a"[..], b"\xf3\x01\x02"] {
            let file = [b"REDIS0013", contents].concat();
            let error = events(&file).unwrap_err();
            let FileError::Newer { magic, version, key, .. } = error else { panic!("{error}") };
            assert_eq!((magic, version), (REDIS, 13));
            assert_eq!(key, (contents[0] == 0x12).then(|| b"list".to_vec()));
        }
        let cut = events(b"REDIS0012\x18\x09cut").unwrap_err();
        assert!(matches!(cut, FileError::Newer { key: None, .. }), "{cut}");
    }

    #[test]
    fn errors_say_where_and_what_to_do() {
        let told = |contents: &[u8]| events(&file(contents)).unwrap_err().to_string();
        assert_eq!(
            told(b"\x00\x01a\x01b\x08"),
            "the RDB file is damaged at byte 15: there is no such type or opcode; take another copy"
        );
        assert_eq!(
            told(b"\x06\x01a"),
            "the RDB file has a module's value of a preview of Redis 4 at byte 12, which cannot be read: remove that \
             where the file was written"
        );
        assert_eq!(
            told(b"\x00\x01a\x80\x00\x10\x00\x01"),
            "the RDB file holds a string of 1048577 bytes at byte 17, at most 1048576 are allowed: raise the limit"
        );
        assert_eq!(
            events(b"REDIS0080").unwrap_err().to_string(),
            "this is an RDB file REDIS 80, and there are only REDIS 1 to 79 and VALKEY from 80 on: take another copy"
        );
        assert_eq!(
            events(b"REDIS0012\x18\x01a").unwrap_err().to_string(),
            "the RDB file is REDIS 12, newer than what is known here, and cannot be read at byte 12, in the key \"a\": a \
             type or opcode that files of Redis up to 7.2 do not have; remove that where the file was written, or have \
             it written by Redis up to 7.2 or Valkey up to 9.1"
        );
    }

    #[test]
    fn what_is_claimed_reserves_no_more_than_there_is() {
        let endless = b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff";
        for contents in [
            // A string, a compressed one, strings of a list, nodes, members of a set, and a string that is passed over.
            [b"\x00\x01a", &endless[..]].concat(),
            [b"\x00\x01a\xc3", &endless[..], endless].concat(),
            [b"\x01\x01a", &endless[..], b"\x01a"].concat(),
            [b"\x12\x01a", &endless[..], b"\x01\x01a"].concat(),
            [b"\x02\x01a", &endless[..], b"\x01a"].concat(),
            [b"\x0b\x01a", &endless[..]].concat(),
        ] {
            let file = [b"VALKEY080", &contents[..]].concat();
            let error = Reader::new(&file[..], usize::MAX).unwrap().find_map(Result::err);
            assert!(matches!(error, Some(FileError::Ended { .. })), "{}", contents.escape_ascii());
        }
        let compressed = [b"VALKEY080\x00\x01a\xc3\x02", &endless[..], b"\x00a"].concat();
        let error = Reader::new(&compressed[..], usize::MAX).unwrap().find_map(Result::err);
        assert!(matches!(error, Some(FileError::Malformed { .. })));
    }

    #[test]
    fn a_reader_that_met_an_error_has_ended() {
        let mut reader = Reader::new(&b"REDIS0011\x08"[..], LIMIT).unwrap();
        assert!(matches!(reader.next(), Some(Err(_))));
        assert!(reader.next().is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(contents: Vec<u8>, limit in 0usize..300) {
            let file = file(&contents);
            for event in Reader::new(&file[..], limit).unwrap().flatten() {
                if let Event::Entry(Entry { key, content: Content::Value(Value::String(value)), .. }) = event {
                    prop_assert!(key.len() <= limit && value.len() <= limit);
                }
            }
        }
    }
}
