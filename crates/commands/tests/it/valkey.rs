//! Keys beside a real valkey-server: COMMAND GETKEYS finds the same for any arguments.

use crate::servers::Server;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value as Json;
use snugly_commands::{Found, keys};
use snugly_protocol::resp::Value;

/// Command lines of each command.
const LINES: usize = 60;

type Line = Vec<Vec<u8>>;

/// Random arguments of one command or subcommand.
fn lines(name: &'static str) -> impl Strategy<Value = Line> {
    let word =
        prop::sample::select(&["a", "b", "c", "1", "2", "3", "0", "-1", "", "km", "COUNT", "GROUP"][..]);
    let words = prop::collection::vec(word, 0..12);
    let marker =
        prop::sample::select(&["STREAMS", "streams", "STORE", "StoreDist", "KEYS", "LIMIT", "GET"][..]);
    (words, marker, any::<prop::sample::Index>()).prop_map(move |(mut words, marker, at)| {
        words.insert(at.index(words.len() + 1), marker);
        // What the server does with these words where no option may be is in no description of it.
        let before: &[&str] = match name {
            "MIGRATE" => &["host", "6379", "", "0", "9"],
            "GEORADIUS" | "GEORADIUSBYMEMBER" => &["k", "1", "1", "1", "km"],
            _ => &[],
        };
        let words = before.iter().copied().chain(words);
        name.split('|').chain(words).map(|word| word.as_bytes().to_vec()).collect()
    })
}

fn ours(line: &[Vec<u8>]) -> Option<Vec<&[u8]>> {
    let mut found = Found::default();
    let keys = keys(line, &mut found)?;
    Some(keys.iter().map(|&at| &line[at][..]).collect())
}

fn theirs(reply: &Value) -> Result<Vec<&[u8]>, &[u8]> {
    match reply {
        Value::Error(text) => Err(text),
        Value::Array(keys) => Ok(keys
            .iter()
            .map(|key| match key {
                Value::Bulk(key) => &key[..],
                other => panic!("no key: {other:?}"),
            })
            .collect()),
        other => panic!("no keys: {other:?}"),
    }
}

#[test]
fn keys_are_those_that_valkey_finds() {
    let server = Server::valkey(&[]);
    let file: Json = serde_json::from_str(include_str!("../../key-positions.json")).unwrap();
    let file: &'static Json = Box::leak(Box::new(file));
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut all: Vec<Line> = Vec::new();
    for name in file["commands"].as_object().unwrap().keys() {
        let lines = lines(name);
        all.extend((0..LINES).map(|_| lines.new_tree(&mut runner).unwrap().current()));
    }
    let asked: Vec<Line> = all
        .iter()
        .map(|line| {
            [b"COMMAND".to_vec(), b"GETKEYS".to_vec()].into_iter().chain(line.iter().cloned()).collect()
        })
        .collect();

    let (mut with_keys, mut refused) = (0, 0);
    for (line, reply) in all.iter().zip(server.commands(&asked)) {
        let shown = line.join(&b' ').escape_ascii().to_string();
        match theirs(&reply) {
            Ok(keys) => {
                assert_eq!(ours(line).unwrap_or_default(), keys, "{shown}");
                with_keys += usize::from(!keys.is_empty());
            }
            Err(b"ERR The command has no key arguments") => {
                assert_eq!(ours(line), Some(Vec::new()), "{shown}")
            }
            // Arguments that the command refuses: what keys they have is for nobody to say.
            Err(_) => refused += 1,
        }
    }
    println!("{with_keys} of {} command lines have keys, {refused} are refused", all.len());
    assert!(with_keys > all.len() / 6, "{with_keys} of {}", all.len());
}
