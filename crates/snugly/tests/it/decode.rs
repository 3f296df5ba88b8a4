//! `snugly decode` on real servers, files and pipes.
#![cfg(all(feature = "zstd", feature = "lz4"))]

use crate::support::{Server, snugly, stderr, stdout};
use snugly_codec::envelope::{Options, Outcome, encode, encode_with};
use snugly_codec::{Choice, Dictionary};

const DOCUMENT: &[u8] = br#"{"name":"Ada","tags":["cache","cached","caching","cached values","cached pages"],"note":"a note on values that are cached, on pages that are cached, and on caching values and pages","values":[10,100,1000,100,10]}"#;

fn in_envelope(codec: &str, value: &[u8]) -> Vec<u8> {
    let options = Options { choice: Choice::new(codec, None, 64).unwrap(), ..Options::default() };
    let mut out = Vec::new();
    assert!(matches!(encode(&options, value, &mut out), Outcome::Encoded { .. }));
    out
}

#[test]
fn a_compressed_value_is_read_from_a_server_and_restored() {
    let valkey = Server::valkey(&[]);
    for codec in ["zstd", "lz4"] {
        valkey.command(&[b"SET", b"user:1", &in_envelope(codec, DOCUMENT)]);
        let output = snugly(&["decode", "--url", &valkey.url(), "user:1"], b"");
        assert_eq!(output.stdout, DOCUMENT, "{}", stderr(&output));
        assert!(output.status.success());
        assert!(stderr(&output).contains(&format!("envelope: {codec}")), "{}", stderr(&output));
        assert!(stderr(&output).contains("bytes of the server's memory"), "{}", stderr(&output));
    }
}

#[test]
fn a_value_that_needs_a_dictionary_finds_it_in_the_servers_catalogue_or_in_a_file() {
    let samples: Vec<String> = (0..2000)
        .map(|index| {
            format!(r#"{{"id":{index},"name":"name {}","email":"{}@example.com"}}"#, index % 97, index * 7)
        })
        .collect();
    let dictionary = Dictionary::train(&samples, 8 << 10).unwrap();
    for codec in ["zstd", "lz4"] {
        finds_the_dictionary(codec, &dictionary, &samples);
    }
}

fn finds_the_dictionary(codec: &str, dictionary: &Dictionary, samples: &[String]) {
    let options = Options { choice: Choice::new(codec, None, 32).unwrap(), ..Options::default() };
    let mut stored = Vec::new();
    encode_with(&options, Some(dictionary), samples[7].as_bytes(), &mut stored);
    let valkey = Server::valkey(&[]);
    valkey.command(&[b"SET", b"user:7", &stored]);

    let missing = snugly(&["decode", "--url", &valkey.url(), "user:7"], b"");
    assert_eq!(missing.status.code(), Some(3));
    assert!(stderr(&missing).contains(&format!("dictionary {}", dictionary.id())), "{}", stderr(&missing));

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), dictionary.bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let given = snugly(&["decode", "--dictionary", path, "--url", &valkey.url(), "user:7"], b"");
    assert_eq!(stdout(&given), samples[7], "{}", stderr(&given));

    let piped = [&stored[..], b"\n"].concat();
    let missing = snugly(&["decode"], &piped);
    assert_eq!(missing.status.code(), Some(3));
    assert!(stderr(&missing).contains(&format!("dictionary {}", dictionary.id())), "{}", stderr(&missing));
    let given = snugly(&["decode", "--dictionary", path], &piped);
    assert_eq!(stdout(&given), samples[7], "{}", stderr(&given));

    let key = format!("{{snugly}}:dict:{}", dictionary.id());
    valkey.command(&[b"SET", key.as_bytes(), dictionary.bytes()]);
    let found = snugly(&["decode", "--url", &valkey.url(), "user:7"], b"");
    assert_eq!(stdout(&found), samples[7], "{}", stderr(&found));
    let description = format!("envelope: {codec} with dictionary {}", dictionary.id());
    assert!(stderr(&found).contains(&description), "{}", stderr(&found));
}

#[test]
fn plain_values_are_shown_as_they_are_and_foreign_formats_are_named() {
    for (value, expected) in [
        (&b"just text"[..], "plain: no envelope"),
        (b"\x28\xb5\x2f\xfd\x00\x00", "zstd frame without an envelope"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"\x00\x01\x02\x03\x04", "plain: no envelope"),
        (b"", "plain: no envelope"),
        (b"\xc1", "does not exist"),
    ] {
        let output = snugly(&["decode"], value);
        assert_eq!(output.stdout, value);
        assert!(output.status.success());
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn a_damaged_value_names_its_key_and_raw_shows_what_is_stored() {
    let valkey = Server::valkey(&[]);
    let whole = in_envelope("zstd", &DOCUMENT.repeat(5));
    let cut = &whole[..whole.len() - 4];
    valkey.command(&[b"SET", b"user:1", cut]);

    let output = snugly(&["decode", "--url", &valkey.url(), "user:1"], b"");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"");
    for expected in ["user:1", "corrupt", "--raw"] {
        assert!(stderr(&output).contains(expected), "{expected} is not in {}", stderr(&output));
    }
    let raw = snugly(&["decode", "--raw", "--url", &valkey.url(), "user:1"], b"");
    assert_eq!(raw.stdout, cut);
    assert!(raw.status.success());
}

#[test]
fn keys_without_a_string_are_explained() {
    let valkey = Server::valkey(&[]);
    valkey.command(&[b"HSET", b"cart", b"item", b"1"]);
    let hash = snugly(&["decode", "--url", &valkey.url(), "cart"], b"");
    assert_eq!(hash.status.code(), Some(1));
    assert!(
        stderr(&hash).contains("is a hash") && stderr(&hash).contains("HGET 'cart'"),
        "{}",
        stderr(&hash)
    );

    let absent = snugly(&["decode", "--url", &valkey.url(), "nobody"], b"");
    assert_eq!(absent.status.code(), Some(1));
    assert!(stderr(&absent).contains("no key \"nobody\""), "{}", stderr(&absent));
}

#[test]
fn a_line_end_that_a_pipe_has_added_is_left_out() {
    let mut piped = in_envelope("zstd", DOCUMENT);
    piped.push(b'\n');
    let output = snugly(&["decode"], &piped);
    assert_eq!(output.stdout, DOCUMENT, "{}", stderr(&output));
    assert!(stderr(&output).contains("line end"), "{}", stderr(&output));
}

#[test]
fn a_file_is_read_json_is_laid_out_on_request_and_info_prints_no_value() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), in_envelope("lz4", DOCUMENT)).unwrap();
    let path = file.path().to_str().unwrap();

    let pretty = snugly(&["decode", "--pretty", path], b"");
    assert!(stdout(&pretty).starts_with("{\n  \"name\": \"Ada\",\n"), "{}", stdout(&pretty));

    let info = snugly(&["decode", "--info", path], b"");
    assert_eq!(info.stdout, b"");
    assert!(stderr(&info).contains("% saved"), "{}", stderr(&info));
}

#[test]
fn messagepack_in_an_envelope_is_shown_as_json() {
    let record = b"\x82\xa4name\xa3Ada\xa4tags\x91\xa3one";
    let value = [&[0xdc, 0, 40], &record.repeat(40)[..]].concat();
    let stored = in_envelope("zstd", &value);
    let shown = snugly(&["decode", "--pretty"], &stored);
    assert!(
        stdout(&shown).starts_with("[\n  {\n    \"name\": \"Ada\",\n    \"tags\": [\n"),
        "{}",
        stdout(&shown)
    );
    assert!(stderr(&shown).contains("the value is MessagePack, shown as JSON"), "{}", stderr(&shown));

    let piped = snugly(&["decode"], &stored);
    assert_eq!(piped.stdout, value, "exact where nothing else is asked for");
    let told = snugly(&["decode", "--info"], &stored);
    assert_eq!(told.stdout, b"");
    assert!(stderr(&told).contains("the value is MessagePack\n"), "{}", stderr(&told));
}

#[test]
fn a_value_longer_than_allowed_is_refused() {
    let output = snugly(&["decode", "--max-bytes", "50"], &in_envelope("zstd", DOCUMENT));
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("limit of 50"), "{}", stderr(&output));
}

#[test]
fn a_value_in_snugly_says_how_much_memory_it_takes() {
    let server = Server::snugly(&["--compression", "zstd"]);
    let value = DOCUMENT.repeat(20);
    server.command(&[b"SET", b"page", &value]);
    let output = snugly(&["decode", "--url", &server.url(), "page"], b"");
    assert_eq!(output.stdout, value);
    let said = stderr(&output);
    let before = said.split(" bytes of the server's memory").next().unwrap();
    let memory: usize = before.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{said}"));
    assert!(memory < value.len() / 2, "{said}");
}

#[test]
fn wrong_usage_and_unreachable_servers_are_told_apart() {
    assert_eq!(snugly(&["decode", "--url", "ftp://localhost", "key"], b"").status.code(), Some(2));
    assert_eq!(snugly(&["decode", "--url", "redis://localhost"], b"").status.code(), Some(1));
    let closed = format!("redis://127.0.0.1:{}", crate::support::free_port());
    let output = snugly(&["decode", "--url", &closed, "key"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot connect to 127.0.0.1"), "{}", stderr(&output));
}

#[test]
fn passwords_and_databases_of_the_url_are_used() {
    let valkey = Server::valkey(&[]);
    valkey.command(&[b"CONFIG", b"SET", b"requirepass", b"p@ss word"]);
    let url = format!("redis://:p%40ss%20word@127.0.0.1:{}/3", valkey.port);
    let absent = snugly(&["decode", "--url", &url, "key"], b"");
    assert!(stderr(&absent).contains("no key"), "{}", stderr(&absent));
    let wrong = snugly(&["decode", "--url", &format!("redis://:no@127.0.0.1:{}", valkey.port), "key"], b"");
    assert!(stderr(&wrong).contains("check user and password"), "{}", stderr(&wrong));
    assert!(!stderr(&wrong).contains(":no@"), "the password is not shown: {}", stderr(&wrong));
}
