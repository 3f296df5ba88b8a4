//! Payloads and RDB files beside real servers: what those write is read, and what is written here they load.

use std::collections::{BTreeMap, BTreeSet};

use crate::servers::Server;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use snugly_protocol::rdb::{
    Content, Entry, Event, NODE_BYTES, Node, Origin, Reader, Usage, Value, VersionCheck, Writer,
    append_footer, dump, restore,
};
use snugly_protocol::resp;

const LIMIT: usize = 1 << 20;
/// Random values, each of them sent to a server.
const CASES: u32 = 500;
/// A time that is far off, in Unix milliseconds.
const LATER: u64 = 4_000_000_000_000;

type Words = Vec<Vec<u8>>;

/// A value as commands show it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    String(Vec<u8>),
    List(Words),
    Other(String),
}

type Keys = BTreeMap<(u64, Vec<u8>), (Shown, Option<u64>)>;

fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

fn command(words: &[&[u8]]) -> Words {
    words.iter().map(|word| word.to_vec()).collect()
}

/// Random bytes, the same for the same seed.
fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn text(len: usize, seed: u64) -> Vec<u8> {
    let words = random(len.div_ceil(8), seed);
    let words = words.iter().map(|number| format!("word {:02} ", number % 20));
    words.collect::<String>().into_bytes()[..len].to_vec()
}

fn push(key: &str, elements: impl IntoIterator<Item = Vec<u8>>) -> Words {
    let mut command = command(&[b"RPUSH", key.as_bytes()]);
    command.extend(elements);
    command
}

/// Strings and lists in every encoding that servers write.
fn strings_and_lists() -> Vec<Words> {
    let set = |key: &str, value: Vec<u8>| vec![b"SET".to_vec(), key.into(), value];
    vec![
        set("empty", Vec::new()),
        set("12345", b"an integer as the key".to_vec()),
        set("8 bits", b"-128".to_vec()),
        set("16 bits", b"300".to_vec()),
        set("32 bits", b"-70000".to_vec()),
        set("64 bits", b"9223372036854775807".to_vec()),
        set("no number", b"007".to_vec()),
        set("random", random(300, 1)),
        set("text", text(5_000, 1)),
        set("one byte", vec![b'a'; 100_000]),
        set("long", random(70_000, 2)),
        words("SETRANGE raw 5 x"),
        push("small", [b"a".to_vec(), b"1".to_vec(), Vec::new(), b"-5000".to_vec()]),
        push("integers", (0..64).map(|bits| (i64::MIN >> bits).to_string().into_bytes())),
        push("many nodes", (0..1_000).map(|seed| random(100, seed))),
        push("compressed nodes", (0..1_000).map(|seed| text(100, seed))),
        push("large elements", (0..9).map(|seed| random(if seed % 3 == 0 { 20_000 } else { 10 }, seed))),
        push("large texts", (0..9).map(|seed| text(20_000, seed))),
        push("of 4 KiB", (0..9).map(|seed| random(4_095 + seed as usize, seed))),
    ]
}

/// Values of other types, in every encoding that both Redis 7.0 and Valkey write.
fn other_types() -> Vec<Words> {
    let many = |head: &str, rest: &dyn Fn(u32) -> String| {
        let rest: Vec<_> = (0..600).map(rest).collect();
        words(&format!("{head} {}", rest.join(" ")))
    };
    let mut commands = vec![
        words("SADD set:integers 1 300 70000 5000000000"),
        words("SADD set:small a b 1"),
        many("SADD set:large", &|number| format!("member{number}")),
        words("ZADD zset:small 1 a 2.5 b -inf c"),
        many("ZADD zset:large", &|number| format!("{number}.25 member{number}")),
        words("ZADD zset:large inf plus -inf minus"),
        words("HSET hash:small a 1 b two"),
        many("HSET hash:large", &|number| format!("field{number} {number}")),
        words("PFADD hyperloglog a b c"),
        words("GEOADD geo 13.361389 38.115556 Palermo"),
        words("XADD stream:small 1-1 field value"),
    ];
    commands.extend((1..300).map(|number| words(&format!("XADD stream:large {number}-0 a {number} b text"))));
    commands.extend(
        [
            "XDEL stream:large 7-0",
            "XGROUP CREATE stream:large first 0",
            "XGROUP CREATE stream:large second 100-0 ENTRIESREAD 99",
            "XGROUP CREATE stream:large third $",
            "XREADGROUP GROUP first alice COUNT 20 STREAMS stream:large >",
            "XREADGROUP GROUP first bob COUNT 5 STREAMS stream:large >",
            "XREADGROUP GROUP second carol COUNT 3 STREAMS stream:large >",
            "XGROUP CREATECONSUMER stream:large second dave",
            "XACK stream:large first 3-0",
            "XGROUP CREATE stream:empty group $ MKSTREAM",
        ]
        .map(words),
    );
    commands
}

/// Runs commands of which none may fail.
fn run(server: &Server, commands: &[Words]) {
    for (command, reply) in commands.iter().zip(server.commands(commands)) {
        let command = command.concat();
        assert!(!matches!(reply, resp::Value::Error(_)), "{}: {reply:?}", command.escape_ascii());
    }
}

fn bytes(reply: resp::Value) -> Vec<u8> {
    match reply {
        resp::Value::Bulk(bytes) | resp::Value::Simple(bytes) => bytes,
        reply => panic!("no bytes: {reply:?}"),
    }
}

fn elements(reply: resp::Value) -> Words {
    match reply {
        resp::Value::Array(elements) => elements.into_iter().map(bytes).collect(),
        reply => panic!("no elements: {reply:?}"),
    }
}

/// All keys of a server, as its commands show them.
fn keys_of(server: &Server, databases: &[u64]) -> Keys {
    let mut keys = Keys::new();
    for &database in databases {
        let select = command(&[b"SELECT", database.to_string().as_bytes()]);
        let in_database = |words: &[&[u8]]| server.commands(&[select.clone(), command(words)]).remove(1);
        for key in elements(in_database(&[b"KEYS", b"*"])) {
            let kind = String::from_utf8(bytes(in_database(&[b"TYPE", &key]))).unwrap();
            let shown = match kind.as_str() {
                "string" => Shown::String(bytes(in_database(&[b"GET", &key]))),
                "list" => Shown::List(elements(in_database(&[b"LRANGE", &key, b"0", b"-1"]))),
                _ => Shown::Other(kind),
            };
            let expiry = match in_database(&[b"PEXPIRETIME", &key]) {
                resp::Value::Integer(-1) => None,
                resp::Value::Integer(expiry) => Some(expiry as u64),
                reply => panic!("no time: {reply:?}"),
            };
            keys.insert((database, key), (shown, expiry));
        }
    }
    keys
}

fn elements_of(nodes: &[Node<'_>]) -> Words {
    nodes.iter().flat_map(Node::elements).map(|element| element.bytes().into_owned()).collect()
}

fn shown(content: Content) -> Shown {
    match content {
        Content::Value(Value::String(bytes)) => Shown::String(bytes.into_owned()),
        Content::Value(Value::List(nodes)) => Shown::List(elements_of(&nodes)),
        Content::Skipped(kind) => Shown::Other(kind.to_owned()),
    }
}

/// The contents of a file.
struct Held {
    keys: Keys,
    usages: Vec<Option<Usage>>,
    aux: BTreeSet<String>,
    ignored: BTreeSet<&'static str>,
    sizes: Vec<(u64, u64)>,
}

fn read(file: &[u8]) -> Held {
    let mut held = Held {
        keys: Keys::new(),
        usages: Vec::new(),
        aux: BTreeSet::new(),
        ignored: BTreeSet::new(),
        sizes: Vec::new(),
    };
    let mut database = 0;
    let mut reader = Reader::new(file, LIMIT).unwrap();
    for event in reader.by_ref() {
        match event.unwrap() {
            Event::Aux { name, .. } => drop(held.aux.insert(String::from_utf8(name).unwrap())),
            Event::Database(number) => database = number,
            Event::Sizes { keys, expiring } => held.sizes.push((keys, expiring)),
            Event::Ignored(what) => drop(held.ignored.insert(what)),
            Event::Entry(Entry { key, expiry, usage, content }) => {
                let former = held.keys.insert((database, key), (shown(content), expiry));
                assert_eq!(former, None);
                held.usages.push(usage);
            }
        }
    }
    assert_eq!(reader.offset(), file.len() as u64);
    held
}

/// Fills the databases 0, 3 and 15 of a server.
fn fill(server: &Server) {
    run(server, &strings_and_lists());
    let mut commands = vec![words("SELECT 3")];
    commands.extend(other_types());
    commands.extend([
        words(&format!("SET expires value PXAT {LATER}")),
        push("list", [b"a".to_vec()]),
        words(&format!("PEXPIREAT list {}", LATER + 1)),
        words("SELECT 15"),
        words("SET alone value"),
    ]);
    run(server, &commands);
}

#[test]
fn what_valkey_saves_is_read_and_passed_over() {
    for args in [
        &["--rdbcompression", "yes", "--rdbchecksum", "yes"],
        &["--rdbcompression", "no", "--rdbchecksum", "no"],
        &["--list-compress-depth", "1", "--list-max-listpack-size", "-1"],
    ] {
        let server = Server::valkey(args);
        fill(&server);
        let library = b"#!lua name=library\nserver.register_function('f', function() return 1 end)";
        run(
            &server,
            &[
                command(&[b"FUNCTION", b"LOAD", library]),
                words("HSET hash:expiring a 1 b 2"),
                words(&format!("HPEXPIREAT hash:expiring {LATER} FIELDS 1 a")),
            ],
        );
        let file = server.saved();
        assert!(file.starts_with(b"VALKEY080"));
        let held = read(&file);
        assert_eq!(held.keys, keys_of(&server, &[0, 3, 15]));
        assert_eq!(held.keys[&(0, b"hash:expiring".to_vec())].0, Shown::Other("hash".to_owned()));
        assert_eq!(held.ignored, BTreeSet::from(["functions"]));
        assert!(held.aux.contains("valkey-ver") && held.aux.contains("ctime"), "{:?}", held.aux);
        let sizes: Vec<_> = [0, 3, 15]
            .map(|database| {
                let keys = held.keys.iter().filter(|((number, _), _)| *number == database);
                (keys.clone().count() as u64, keys.filter(|(_, (_, expiry))| expiry.is_some()).count() as u64)
            })
            .into();
        assert_eq!(held.sizes, sizes);
    }
}

#[test]
fn what_redis_saves_is_read_and_passed_over() {
    let Some(server) = Server::redis(&["--list-compress-depth", "1"]) else { return };
    fill(&server);
    let file = server.saved();
    assert!(file.starts_with(b"REDIS00"));
    let held = read(&file);
    assert_eq!(held.keys, keys_of(&server, &[0, 3, 15]));
    assert!(held.aux.contains("redis-ver"));
}

#[test]
fn how_much_keys_were_in_use_is_read() {
    let server = Server::valkey(&["--maxmemory-policy", "allkeys-lru"]);
    run(&server, &strings_and_lists());
    let usages = read(&server.saved()).usages;
    assert!(usages.iter().all(|usage| matches!(usage, Some(Usage::IdleSeconds(_)))), "{usages:?}");
    run(&server, &[words("CONFIG SET maxmemory-policy allkeys-lfu"), words("GET 12345")]);
    let usages = read(&server.saved()).usages;
    assert!(usages.iter().all(|usage| matches!(usage, Some(Usage::Frequency(_)))), "{usages:?}");
}

#[test]
fn what_a_node_of_a_cluster_saves_is_read() {
    let server = Server::valkey(&["--cluster-enabled", "yes"]);
    run(&server, &[words("CLUSTER ADDSLOTSRANGE 0 16383")]);
    // Some time passes until it takes its slots for covered.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while matches!(server.command(&[b"SET", b"key", b"value"]), resp::Value::Error(_)) {
        assert!(std::time::Instant::now() < deadline, "the cluster is down");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    run(&server, &strings_and_lists());
    let held = read(&server.saved());
    assert_eq!(held.keys, keys_of(&server, &[0]));
    assert!(held.aux.contains("slot-info"), "{:?}", held.aux);
}

fn listpack(elements: &[Vec<u8>]) -> Node<'static> {
    let mut listpack = snugly_listpack::Listpack::new();
    elements.iter().for_each(|element| listpack.push_back(element));
    Node::Packed(listpack.as_bytes().to_vec().into())
}

#[test]
fn what_is_written_is_loaded_by_valkey() {
    let mut expected = Keys::new();
    let origin = Origin {
        redis_version: "7.2.4",
        created_at: 1_700_000_000,
        used_memory: 1 << 20,
        is_aof_base: false,
    };
    let mut writer = Writer::new(Vec::new(), &origin).unwrap();
    for database in [0, 3, 15] {
        let strings = [Vec::new(), b"12345".to_vec(), random(100, 1), text(20_000, 2), vec![b'a'; 70_000]];
        let small: Words = (0..100).map(|number: i32| (number * number).to_string().into_bytes()).collect();
        let texts: Words = (0..50).map(|seed| text(150, seed)).collect();
        let large = random(NODE_BYTES + 1, 3);
        let lists = [
            vec![listpack(&small)],
            vec![
                listpack(&texts),
                listpack(&small),
                listpack(&texts),
                Node::Plain(large.into()),
                listpack(&small),
            ],
            vec![Node::Plain(text(600_000, 4).into()), Node::Plain(random(10_000, 5).into())],
            vec![listpack(&[random(NODE_BYTES, 6)]), listpack(&[Vec::new()])],
        ];
        let keys = (2 * strings.len() + lists.len()) as u64;
        writer.database(database, keys, strings.len() as u64).unwrap();
        for (number, value) in strings.into_iter().enumerate() {
            for expiry in [None, Some(LATER + number as u64)] {
                let key = format!("string {number} {expiry:?}").into_bytes();
                writer.string(&key, expiry, &value).unwrap();
                expected.insert((database, key), (Shown::String(value.clone()), expiry));
            }
        }
        for (number, nodes) in lists.into_iter().enumerate() {
            let (key, expiry) = (format!("list {number}").into_bytes(), (number == 2).then_some(LATER));
            writer.begin_list(&key, expiry, nodes.len() as u64).unwrap();
            nodes.iter().for_each(|node| writer.node(node).unwrap());
            expected.insert((database, key), (Shown::List(elements_of(&nodes)), expiry));
        }
    }
    let file = writer.finish().unwrap();
    assert_eq!(read(&file).keys, expected);
    let server = Server::valkey_with_file(&file);
    assert_eq!(keys_of(&server, &[0, 3, 15]), expected);
    // And as a server keeps them after that.
    assert_eq!(read(&server.saved()).keys, expected);
}

fn payload(kind: u8, value: &[u8]) -> Vec<u8> {
    let mut payload = [&[kind], value].concat();
    append_footer(0, &mut payload);
    payload
}

fn length(len: usize) -> Vec<u8> {
    match len {
        0..0x40 => vec![len as u8],
        0x40..0x4000 => vec![0x40 | (len >> 8) as u8, len as u8],
        _ => [&[0x80], &(len as u32).to_be_bytes()[..]].concat(),
    }
}

/// A string as it is, or compressed if that is asked for and worth it.
fn string(bytes: &[u8], is_compressed: bool) -> Vec<u8> {
    let mut compressed = Vec::new();
    if is_compressed && snugly_lzf::compress(bytes, &mut compressed) {
        return [&[0xc3], &length(compressed.len())[..], &length(bytes.len()), &compressed].concat();
    }
    [&length(bytes.len()), bytes].concat()
}

/// A ziplist as Redis up to 6.2 wrote it.
fn ziplist(elements: &[Vec<u8>]) -> Vec<u8> {
    let (mut entries, mut last, mut previous) = (Vec::new(), 0, 0usize);
    for element in elements {
        last = entries.len();
        match previous {
            ..254 => entries.push(previous as u8),
            _ => entries.extend([&[254], &(previous as u32).to_le_bytes()[..]].concat()),
        }
        let integer = std::str::from_utf8(element).ok().and_then(|text| text.parse::<i64>().ok());
        match integer.filter(|integer| integer.to_string().as_bytes() == element) {
            Some(integer) => entries.extend(ziplist_integer(integer)),
            None => {
                match element.len() {
                    len @ 0..0x40 => entries.push(len as u8),
                    len @ 0x40..0x4000 => entries.extend([0x40 | (len >> 8) as u8, len as u8]),
                    len => entries.extend([&[0x80], &(len as u32).to_be_bytes()[..]].concat()),
                }
                entries.extend_from_slice(element);
            }
        }
        previous = entries.len() - last;
    }
    const HEADER_LEN: usize = 10;
    let count = u16::try_from(elements.len()).unwrap_or(u16::MAX);
    [
        &((HEADER_LEN + entries.len() + 1) as u32).to_le_bytes()[..],
        &((HEADER_LEN + last) as u32).to_le_bytes(),
        &count.to_le_bytes(),
        &entries,
        &[0xff],
    ]
    .concat()
}

fn ziplist_integer(integer: i64) -> Vec<u8> {
    let bytes = integer.to_le_bytes();
    let (encoding, len) = match integer {
        0..=12 => (0xf1 + integer as u8, 0),
        -0x80..=0x7f => (0xfe, 1),
        -0x8000..=0x7fff => (0xc0, 2),
        -0x80_0000..=0x7f_ffff => (0xf0, 3),
        -0x8000_0000..=0x7fff_ffff => (0xd0, 4),
        _ => (0xe0, 8),
    };
    [&[encoding], &bytes[..len]].concat()
}

fn any_element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => (any::<i64>(), 0u32..64).prop_map(|(number, bits)| (number >> bits).to_string().into_bytes()),
        3 => prop::collection::vec(any::<u8>(), 0..80),
        1 => (250usize..260, any::<u64>()).prop_map(|(len, seed)| random(len, seed)),
        1 => (prop_oneof![0usize..20_000, Just(16_378)], any::<u64>()).prop_map(|(len, seed)| text(len, seed)),
    ]
}

/// A payload that holds a list, and its elements.
fn any_list() -> impl Strategy<Value = (Vec<u8>, Words)> {
    let nodes = prop::collection::vec(prop::collection::vec(any_element(), 1..12), 1..5);
    let plain = prop::collection::vec(any::<bool>(), 5);
    (nodes, plain, any::<bool>(), prop::sample::select(&[1u8, 10, 14, 18][..])).prop_map(
        |(nodes, plain, is_compressed, kind)| {
            let elements = nodes.concat();
            let each = |blob: &dyn Fn(&Words) -> Vec<u8>| {
                let blobs = nodes.iter().flat_map(|node| string(&blob(node), is_compressed));
                length(nodes.len()).into_iter().chain(blobs).collect::<Vec<u8>>()
            };
            let value = match kind {
                1 => {
                    let strings = elements.iter().flat_map(|element| string(element, is_compressed));
                    length(elements.len()).into_iter().chain(strings).collect()
                }
                10 => string(&ziplist(&elements), is_compressed),
                14 => each(&|node| ziplist(node)),
                _ => {
                    let mut value = Vec::new();
                    let mut count = 0;
                    for (elements, is_plain) in nodes.iter().zip(plain) {
                        if is_plain && elements.iter().all(|element| !element.is_empty()) {
                            let plain = elements
                                .iter()
                                .flat_map(|element| [&[1][..], &string(element, is_compressed)].concat());
                            value.extend(plain);
                            count += elements.len();
                        } else if let Node::Packed(listpack) = listpack(elements) {
                            value.extend([&[2][..], &string(&listpack, is_compressed)].concat());
                            count += 1;
                        }
                    }
                    [length(count), value].concat()
                }
            };
            (payload(kind, &value), elements)
        },
    )
}

fn run_cases<S: Strategy>(strategy: S, mut test: impl FnMut(S::Value)) {
    let test = std::cell::RefCell::new(&mut test);
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(CASES) })
        .run(&strategy, |value| {
            (test.borrow_mut())(value);
            Ok(())
        })
        .unwrap();
}

/// A server's result for a payload: the list, or its words of refusal.
fn restored_by(server: &Server, payload: &[u8]) -> Result<Words, String> {
    let commands = [command(&[b"RESTORE", b"key", b"0", payload, b"REPLACE"]), words("LRANGE key 0 -1")];
    let [restored, shown] = server.commands(&commands).try_into().unwrap();
    match restored {
        resp::Value::Error(error) => Err(String::from_utf8(error).unwrap()),
        _ => Ok(elements(shown)),
    }
}

fn restored_here(payload: &[u8]) -> Result<Words, String> {
    match restore(payload, LIMIT, usize::MAX, VersionCheck::Strict) {
        Ok(Value::List(nodes)) => Ok(elements_of(&nodes)),
        Ok(Value::String(bytes)) => panic!("a string: {}", bytes.escape_ascii()),
        Err(error) => Err(format!("ERR {error}")),
    }
}

#[test]
fn lists_in_every_form_are_restored_as_valkey_restores_them() {
    let server = Server::valkey(&[]);
    run_cases(any_list(), |(payload, elements)| {
        assert_eq!(restored_by(&server, &payload).as_ref(), Ok(&elements));
        assert_eq!(restored_here(&payload), Ok(elements));
    });
}

#[test]
fn damaged_lists_are_refused_as_valkey_refuses_them() {
    let server = Server::valkey(&["--sanitize-dump-payload", "yes"]);
    let damage = (any::<prop::sample::Index>(), any::<u8>(), 0..3u8);
    let damaged = (any_list(), prop::collection::vec(damage, 1..4));
    run_cases(damaged, |((mut payload, _), damages)| {
        payload.truncate(payload.len() - 10);
        for (place, byte, kind) in damages {
            let at = 1 + place.index(payload.len() - 1);
            match kind {
                0 => payload[at] = byte,
                1 => payload.insert(at, byte),
                _ if payload.len() > 2 => drop(payload.remove(at)),
                _ => {}
            }
        }
        append_footer(0, &mut payload);
        let (mut ours, theirs) = (restored_here(&payload), restored_by(&server, &payload));
        if ours.is_err() && theirs.is_ok() {
            // A value that goes on in the footer: only Valkey reads it.
            append_footer(0, &mut payload);
            ours = restored_here(&payload);
        }
        assert_eq!(ours, theirs, "{}", payload.escape_ascii());
    });
}

#[test]
fn what_is_dumped_is_restored_by_valkey() {
    let server = Server::valkey(&[]);
    let nodes = prop::collection::vec(prop::collection::vec(any_element(), 1..12), 1..5);
    run_cases(nodes, |nodes| {
        let elements = nodes.concat();
        let nodes: Vec<_> = nodes.iter().map(|elements| listpack(elements)).collect();
        let mut payload = Vec::new();
        dump(&Value::List(nodes), &mut payload);
        assert_eq!(restored_by(&server, &payload), Ok(elements));
    });
}

#[test]
fn elements_on_whose_back_lengths_servers_do_not_agree_are_read() {
    let args = ["--list-max-listpack-size", "-5"];
    for server in [Some(Server::valkey(&args)), Server::redis(&args)].into_iter().flatten() {
        let elements = [10, 16_377, 16_378, 16_379, 10].map(|len| vec![b'x'; len]);
        run(&server, &[push("list", elements.clone())]);
        let held = read(&server.saved());
        assert_eq!(held.keys[&(0, b"list".to_vec())].0, Shown::List(elements.into()));
    }
}

#[test]
fn a_list_has_no_element_in_a_listpack_that_servers_do_not_agree_on() {
    let elements: Words = [10, 16_377, 16_378, 16_379, 10].map(|len| vec![b'x'; len]).into();
    let mut large = snugly_listpack::Listpack::new();
    elements.iter().for_each(|element| large.push_back(element));
    let mut payload = Vec::new();
    dump(&Value::List(Node::of_listpack(large.as_bytes())), &mut payload);
    assert_eq!(restored_by(&Server::valkey(&[]), &payload), Ok(elements));
}

#[test]
fn what_is_compressed_is_restored_by_valkey_and_hardly_longer_than_what_it_compresses() {
    let server = Server::valkey(&[]);
    let mut lens = [0, 0];
    for seed in 0..200 {
        let len = 100 + 400 * seed as usize;
        let value =
            if seed % 2 == 0 { text(len, seed) } else { [random(50, seed), text(len, seed)].concat() };
        let ours = payload(0, &string(&value, true));
        let commands =
            [command(&[b"RESTORE", b"key", b"0", &ours, b"REPLACE"]), words("GET key"), words("DUMP key")];
        let replies = server.commands(&commands);
        assert_eq!(replies[1], resp::Value::Bulk(value.clone()));
        let resp::Value::Bulk(theirs) = &replies[2] else { panic!("no payload") };
        assert_eq!(
            restore(theirs, LIMIT, usize::MAX, VersionCheck::Strict).unwrap(),
            Value::String(value[..].into())
        );
        lens = [lens[0] + ours.len(), lens[1] + theirs.len()];
    }
    let [ours, theirs] = lens;
    assert!(ours <= theirs + theirs / 50, "{ours} bytes, where Valkey needs {theirs}");
}
