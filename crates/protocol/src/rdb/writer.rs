//! Writing RDB files of version 11, as Redis 7.2 and Valkey up to 8 do, with values compressed by LZF as there.

use std::io::{self, Write};

use super::{
    AUX, CRC_64, Checksum, DATABASE, END, EXPIRY_MILLISECONDS, LIST, Node, SIZES, STRING, WRITTEN_VERSION,
    length, string,
};

/// A file's statements about its origin. Servers that load it log some of it, and go by none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The version of Redis that the writer is like, as `INFO` has it.
    pub redis_version: &'a str,
    /// Time of writing, in Unix seconds.
    pub created_at: u64,
    /// Memory of the server, in bytes.
    pub used_memory: u64,
    /// Whether changes follow in append-only files.
    pub is_aof_base: bool,
}

/// Writes a file: the databases one after the other, each with its keys. Small pieces are written, so a file should be
/// buffered.
pub struct Writer<W> {
    file: W,
    checksum: Checksum,
    written: u64,
    /// Nodes that the list still needs.
    missing_nodes: u64,
    /// Bytes that are written next.
    piece: Vec<u8>,
    /// Compressed bytes of a value.
    compressed: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the start of a file.
    ///
    /// # Errors
    /// Those of the file, here and below.
    pub fn new(file: W, origin: &Origin<'_>) -> io::Result<Writer<W>> {
        let mut writer = Writer {
            file,
            checksum: CRC_64.digest(),
            written: 0,
            missing_nodes: 0,
            piece: Vec::new(),
            compressed: Vec::new(),
        };
        writer.write(format!("REDIS{WRITTEN_VERSION:04}").as_bytes())?;
        let number = |number: u64| number.to_string();
        for (name, value) in [
            ("redis-ver", origin.redis_version),
            ("redis-bits", &number(usize::BITS.into())),
            ("ctime", &number(origin.created_at)),
            ("used-mem", &number(origin.used_memory)),
            ("aof-base", &number(origin.is_aof_base.into())),
        ] {
            writer.piece.push(AUX);
            string::encode(name.as_bytes(), &mut writer.piece);
            string::encode(value.as_bytes(), &mut writer.piece);
        }
        writer.write_piece()?;
        Ok(writer)
    }

    /// Number of bytes written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Begins a database, with the number of its keys and of those among them that expire: servers make room for so
    /// many.
    ///
    /// # Errors
    /// Those of the file.
    pub fn database(&mut self, number: u64, keys: u64, expiring: u64) -> io::Result<()> {
        self.expect_whole_list();
        self.piece.push(DATABASE);
        length::encode(number, &mut self.piece);
        self.piece.push(SIZES);
        length::encode(keys, &mut self.piece);
        length::encode(expiring, &mut self.piece);
        self.write_piece()
    }

    /// Writes a string. A key expires at `expiry`, in Unix milliseconds.
    ///
    /// # Errors
    /// Those of the file.
    pub fn string(&mut self, key: &[u8], expiry: Option<u64>, value: &[u8]) -> io::Result<()> {
        self.begin(STRING, key, expiry);
        self.value(value)
    }

    /// Begins a list of so many nodes, at least one, which must follow.
    ///
    /// # Errors
    /// Those of the file.
    pub fn begin_list(&mut self, key: &[u8], expiry: Option<u64>, nodes: u64) -> io::Result<()> {
        self.begin(LIST, key, expiry);
        length::encode(nodes, &mut self.piece);
        self.missing_nodes = nodes;
        self.write_piece()
    }

    /// Writes the next node of the list that was begun.
    ///
    /// # Errors
    /// Those of the file.
    ///
    /// # Panics
    /// If the list has all its nodes.
    pub fn node(&mut self, node: &Node<'_>) -> io::Result<()> {
        self.missing_nodes =
            self.missing_nodes.checked_sub(1).expect("a list has as many nodes as it was begun with");
        let (container, bytes) = node.parts();
        length::encode(container, &mut self.piece);
        self.value(bytes)
    }

    /// Writes the end of the file, and gives it back, flushed.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.expect_whole_list();
        self.write(&[END])?;
        let checksum = self.checksum.clone().finalize();
        self.write(&checksum.to_le_bytes())?;
        self.file.flush()?;
        Ok(self.file)
    }

    fn begin(&mut self, kind: u8, key: &[u8], expiry: Option<u64>) {
        self.expect_whole_list();
        if let Some(expiry) = expiry {
            self.piece.push(EXPIRY_MILLISECONDS);
            self.piece.extend_from_slice(&i64::try_from(expiry).unwrap_or(i64::MAX).to_le_bytes());
        }
        self.piece.push(kind);
        string::encode(key, &mut self.piece);
    }

    /// Writes what is to be written, and a value behind it.
    fn value(&mut self, bytes: &[u8]) -> io::Result<()> {
        if string::encode_compressed(bytes, &mut self.compressed, &mut self.piece) {
            return self.write_piece();
        }
        length::encode(bytes.len() as u64, &mut self.piece);
        self.write_piece()?;
        self.write(bytes)
    }

    fn expect_whole_list(&self) {
        assert_eq!(self.missing_nodes, 0, "a list has as many nodes as it was begun with");
    }

    fn write_piece(&mut self) -> io::Result<()> {
        let mut piece = std::mem::take(&mut self.piece);
        let result = self.write(&piece);
        piece.clear();
        self.piece = piece;
        result
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.written += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use snugly_listpack::Listpack;

    use super::*;
    use crate::rdb::{Content, Entry, Event, FileError, Reader, Value};

    fn any_node() -> impl Strategy<Value = Node<'static>> {
        let elements = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..20);
        let packed = elements.prop_map(|elements| {
            let mut listpack = Listpack::new();
            elements.iter().for_each(|element| listpack.push_back(element));
            Node::Packed(listpack.as_bytes().to_vec().into())
        });
        let plain = (any::<u8>(), crate::rdb::NODE_BYTES + 1..70_000);
        prop_oneof![4 => packed, 1 => plain.prop_map(|(byte, len)| Node::Plain(vec![byte; len].into()))]
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        let string = (prop::collection::vec(any::<u8>(), 0..100), 0usize..1_000)
            .prop_map(|(word, times)| Value::String(word.repeat(times).into()));
        let value = prop_oneof![string, prop::collection::vec(any_node(), 1..10).prop_map(Value::List)];
        let expiry = proptest::option::of(0..=i64::MAX as u64);
        (prop::collection::vec(any::<u8>(), 0..80), expiry, value).prop_map(|(key, expiry, value)| Entry {
            key,
            expiry,
            usage: None,
            content: Content::Value(value),
        })
    }

    fn write_entry(entry: &Entry, writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
        match &entry.content {
            Content::Value(Value::String(value)) => writer.string(&entry.key, entry.expiry, value),
            Content::Value(Value::List(nodes)) => {
                writer.begin_list(&entry.key, entry.expiry, nodes.len() as u64)?;
                nodes.iter().try_for_each(|node| writer.node(node))
            }
            Content::Skipped(_) => unreachable!("it was made above"),
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            databases in prop::collection::vec((any::<u64>(), prop::collection::vec(any_entry(), 0..6)), 0..4),
        ) {
            let mut writer = Writer::new(Vec::new(), &Origin::default()).unwrap();
            let mut expected = Vec::new();
            for (number, entries) in databases {
                let (keys, expiring) = (entries.len() as u64, 1);
                writer.database(number, keys, expiring).unwrap();
                expected.extend([Event::Database(number), Event::Sizes { keys, expiring }]);
                entries.iter().for_each(|entry| write_entry(entry, &mut writer).unwrap());
                expected.extend(entries.into_iter().map(Event::Entry));
            }
            let written = writer.written();
            let file = writer.finish().unwrap();
            prop_assert_eq!(written + 1 + 8, file.len() as u64);
            let reader = Reader::new(&file[..], 1 << 20).unwrap();
            let events: Result<Vec<_>, FileError> = reader.collect();
            let mut events = events.unwrap();
            events.retain(|event| !matches!(event, Event::Aux { .. }));
            prop_assert_eq!(events, expected);
        }
    }

    #[test]
    fn a_file_says_where_it_comes_from() {
        let origin = Origin {
            redis_version: "7.2.4",
            created_at: 1_700_000_000,
            used_memory: 1 << 20,
            is_aof_base: true,
        };
        let file = Writer::new(Vec::new(), &origin).unwrap().finish().unwrap();
        assert!(file.starts_with(b"REDIS0011"));
        let told = Reader::new(&file[..], 100).unwrap().map(|event| match event.unwrap() {
            Event::Aux { name, value } => {
                (String::from_utf8(name).unwrap(), String::from_utf8(value).unwrap())
            }
            event => panic!("{event:?}"),
        });
        let expected = [
            ("redis-ver", "7.2.4"),
            ("redis-bits", "64"),
            ("ctime", "1700000000"),
            ("used-mem", "1048576"),
            ("aof-base", "1"),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected.map(|(name, value)| (name.into(), value.into())));
    }

    #[test]
    #[should_panic(expected = "a list has as many nodes as it was begun with")]
    fn a_list_that_lacks_a_node_is_noticed() {
        let mut writer = Writer::new(Vec::new(), &Origin::default()).unwrap();
        writer.begin_list(b"list", None, 1).unwrap();
        let _ = writer.string(b"string", None, b"");
    }

    #[test]
    fn what_the_file_refuses_is_told() {
        let mut room = [0; 200];
        let mut writer = Writer::new(&mut room[..], &Origin::default()).unwrap();
        let value: Vec<u8> = (0..=u8::MAX).collect();
        let error = writer.string(b"key", None, &value).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}
