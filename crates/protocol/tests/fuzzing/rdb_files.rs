//! Any bytes as an RDB file are read within the limit or refused, and the keys that are read come back when they are
//! written. The first two bytes are the limit, and an odd third one makes the rest the contents of a file of Valkey 9.

use snugly_protocol::rdb::{Content, Entry, Event, Origin, Reader, Value, Writer};

pub fn run(input: &[u8]) {
    let Some((&[low, high, kind], rest)) = input.split_first_chunk::<3>() else { return };
    let limit = usize::from(u16::from_le_bytes([low, high]));
    let start: &[u8] = if kind & 1 == 1 { b"VALKEY080" } else { b"" };
    let file = [start, rest].concat();
    let Ok(mut reader) = Reader::new(&file[..], limit) else { return };
    let mut entries = Vec::new();
    for event in reader.by_ref() {
        match event {
            Ok(Event::Entry(Entry { key, expiry, content: Content::Value(value), .. })) => {
                assert!(key.len() <= limit);
                entries.push((key, expiry, value));
            }
            Ok(_) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(reader.offset() <= file.len() as u64);
    assert_eq!(written_and_read(&entries, limit), entries);
}

type Keys = Vec<(Vec<u8>, Option<u64>, Value<'static>)>;

fn written_and_read(entries: &Keys, limit: usize) -> Keys {
    let mut writer = Writer::new(Vec::new(), &Origin::default()).expect("memory takes everything");
    for (key, expiry, value) in entries {
        match value {
            Value::String(value) => writer.string(key, *expiry, value),
            Value::List(nodes) => writer
                .begin_list(key, *expiry, nodes.len() as u64)
                .and_then(|()| nodes.iter().try_for_each(|node| writer.node(node))),
        }
        .expect("memory takes everything");
    }
    let file = writer.finish().expect("memory takes everything");
    let events = Reader::new(&file[..], limit.max(100)).expect("it was just written");
    events
        .filter_map(|event| match event.expect("it was just written") {
            Event::Entry(Entry { key, expiry, content: Content::Value(value), .. }) => {
                Some((key, expiry, value))
            }
            _ => None,
        })
        .collect()
}
