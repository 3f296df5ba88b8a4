//! `snugly bench` against real servers.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Memcached, Server, ask_memcached, snugly, stderr, stdout};
use snugly_protocol::resp::Value;

/// The rows of a CSV file, by column.
fn rows(path: &Path) -> Vec<HashMap<String, String>> {
    csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
}

fn number(row: &HashMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} is {:?}", row[column]))
}

#[test]
fn writes_and_reads_are_measured_and_read_back() {
    let valkey = Server::valkey(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.csv");
    let arguments = [
        "bench",
        "server",
        "--url",
        &valkey.url(),
        "--requests",
        "4000",
        "--keys",
        "500",
        "--connections",
        "7",
        "--pipeline",
        "3",
        "--threads",
        "2",
        "--verify",
        "--csv",
        path.to_str().unwrap(),
    ];
    let output = snugly(&arguments, b"");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("all 500 values read back as written"), "{}", stdout(&output));
    assert_eq!(valkey.command(&[b"DBSIZE"]), Value::Integer(500));

    let rows = rows(&path);
    assert_eq!(rows.iter().map(|row| row["test"].as_str()).collect::<Vec<_>>(), ["set", "get"]);
    for row in &rows {
        assert_eq!(
            (number(row, "requests"), number(row, "errors"), number(row, "misses")),
            (4000.0, 0.0, 0.0)
        );
        assert!(row["server"].starts_with("valkey 9."), "{}", row["server"]);
        let rate = number(row, "requests") / number(row, "seconds");
        assert!((rate / number(row, "requests_per_second") - 1.0).abs() < 0.2, "{row:?}");
        assert!(number(row, "server_cpu_us_per_request") > 0.0);
        let latencies =
            ["p50_us", "p95_us", "p99_us", "p99_9_us", "max_us"].map(|column| number(row, column));
        assert!(latencies[0] > 0.0 && latencies.is_sorted(), "{latencies:?}");
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let valkey = Server::valkey(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.csv");
    let running = Command::new(env!("CARGO_BIN_EXE_snugly"))
        .args(["bench", "server", "--url", &valkey.url(), "--duration", "3600", "--keys", "500", "--verify"])
        .args(["--csv", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while valkey.command(&[b"DBSIZE"]) == Value::Integer(0) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("Ctrl-C: this is what was measured"), "{}", stderr(&output));
    assert!(stdout(&output).contains("requests/s"), "{}", stdout(&output));
    let rows = rows(&path);
    assert_eq!(rows.iter().map(|row| row["test"].as_str()).collect::<Vec<_>>(), ["set"]);
    assert!(number(&rows[0], "requests") > 0.0);
}

#[test]
fn a_second_run_adds_to_the_same_file() {
    let valkey = Server::valkey(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.csv");
    for test in ["set", "mixed"] {
        let arguments = [
            "bench",
            "server",
            "--url",
            &valkey.url(),
            "--tests",
            test,
            "--read-percent",
            "70",
            "--duration",
            "0.3",
            "--keys",
            "200",
            "--distribution",
            "zipf:0.9",
            "--generate",
            "session:400",
            "--csv",
            path.to_str().unwrap(),
        ];
        let output = snugly(&arguments, b"");
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let rows = rows(&path);
    assert_eq!(rows.iter().map(|row| row["test"].as_str()).collect::<Vec<_>>(), ["set", "mixed 70 % reads"]);
    for row in &rows {
        assert!(number(row, "seconds") >= 0.3, "{row:?}");
        assert_eq!((row["distribution"].as_str(), row["values"].as_str()), ("zipf:0.9", "session:400"));
    }
}

#[test]
fn values_of_a_file_are_sent_as_the_file_means_them() {
    let valkey = Server::valkey(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.jsonl");
    std::fs::write(&path, "{\"a\": 1}\n\"<p>two\\nlines</p>\"\n").unwrap();
    let data = path.to_str().unwrap();
    let arguments = [
        "bench",
        "server",
        "--url",
        &valkey.url(),
        "--tests",
        "get",
        "-n",
        "100",
        "--keys",
        "4",
        "--data",
        data,
    ];
    let output = snugly(&arguments, b"");
    assert!(output.status.success(), "{}", stderr(&output));
    let stored = |key: &[u8]| valkey.command(&[b"GET", key]);
    assert_eq!(stored(b"key:000000000000"), Value::Bulk(b"{\"a\": 1}".to_vec()));
    assert_eq!(stored(b"key:000000000001"), Value::Bulk(b"<p>two\nlines</p>".to_vec()));
    assert_eq!(stored(b"key:000000000002"), stored(b"key:000000000000"));
}

#[test]
fn a_server_that_loses_values_does_not_pass_verification() {
    let valkey = Server::valkey(&["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-random"]);
    let arguments = ["bench", "server", "--url", &valkey.url(), "-n", "100", "--keys", "5000", "--verify"];
    let output = snugly(&arguments, b"");
    assert!(!output.status.success());
    assert!(stderr(&output).contains("keys have lost their value"), "{}", stderr(&output));
}

#[test]
fn error_replies_end_the_benchmark_with_their_text() {
    let valkey = Server::valkey(&["--maxmemory", "2mb", "--maxmemory-policy", "noeviction"]);
    let arguments = ["bench", "server", "--url", &valkey.url(), "--tests", "set", "--keys", "100000"];
    let output = snugly(&arguments, b"");
    assert!(!output.status.success());
    assert!(stderr(&output).contains("OOM command not allowed"), "{}", stderr(&output));
}

#[test]
#[ignore = "slow: measures resident memory"]
fn the_memory_of_a_value_is_its_bytes_and_some_overhead() {
    let valkey = Server::valkey(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.csv");
    let arguments = [
        "bench",
        "memory",
        "--url",
        &valkey.url(),
        "--values",
        "20000",
        "--generate",
        "random:1000",
        "--csv",
        path.to_str().unwrap(),
    ];
    let output = snugly(&arguments, b"");
    assert!(output.status.success(), "{}", stderr(&output));
    let row = &rows(&path)[0];
    assert_eq!((number(row, "values"), number(row, "value_bytes")), (20000.0, 1000.0));
    assert!((20.0..400.0).contains(&number(row, "overhead_per_key")), "{row:?}");

    let again = snugly(&arguments, b"");
    assert!(!again.status.success());
    assert!(stderr(&again).contains("is not empty"), "{}", stderr(&again));
}

#[cfg(feature = "zstd")]
#[test]
#[ignore = "slow: measures resident memory"]
fn compressed_values_take_less_memory_than_their_bytes_in_snugly() {
    // Transient memory of a training is not memory of values.
    let server = Server::snugly(&["--compression", "zstd", "--dictionaries", "no"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.csv");
    let url = server.url();
    let arguments = [
        "bench",
        "memory",
        "--url",
        &url,
        "--values",
        "5000",
        "--generate",
        "json:2500",
        "--csv",
        path.to_str().unwrap(),
    ];
    let output = snugly(&arguments, b"");
    assert!(output.status.success(), "{}", stderr(&output));
    let row = &rows(&path)[0];
    assert!(row["server"].starts_with("snugly "), "{row:?}");
    assert!(number(row, "bytes_per_value") < 0.8 * number(row, "value_bytes"), "{row:?}");
}

#[test]
#[ignore = "slow: measures resident memory, and needs memcached"]
fn the_memory_of_memcached_is_measured_through_its_text_protocol() {
    let Some(memcached) = Memcached::start(&["-m", "256"]) else { return };
    let output = snugly(&["bench", "memory", "--url", &memcached.url(), "--values", "20000"], b"");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("memcached 1."), "{}", stdout(&output));
}

/// `snugly bench server` of memcached's protocol.
fn bench_memcached(port: u16, more: &[&str]) -> std::process::Output {
    let url = format!("memcached://127.0.0.1:{port}");
    snugly(&[&["bench", "server", "--protocol", "memcached", "--url", &url][..], more].concat(), b"")
}

/// Every test in memcached's protocol, with reads of five keys.
fn measure_memcached(port: u16, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.csv");
    let load = ["--tests", "set,get,mixed", "-n", "3000", "--keys", "500", "--threads", "2", "--verify"];
    let pressure = ["--connections", "7", "--pipeline", "3", "--keys-per-get", "5"];
    let csv = ["--csv", path.to_str().unwrap()];
    let output = bench_memcached(port, &[&load[..], &pressure, &csv].concat());
    assert!(output.status.success(), "{name}: {}", stderr(&output));
    assert!(stdout(&output).contains("all 500 values read back as written"), "{}", stdout(&output));
    assert!(ask_memcached(port, "stats\r\n").unwrap().contains("STAT curr_items 500\r\n"));

    let rows = rows(&path);
    let tests: Vec<_> = rows.iter().map(|row| row["test"].as_str()).collect();
    assert_eq!(tests, ["set", "get", "mixed 90 % reads"]);
    for row in &rows {
        assert!(row["server"].starts_with(name), "{row:?}");
        assert_eq!((row["protocol"].as_str(), row["keys_per_get"].as_str()), ("memcached", "5"));
        assert_eq!(
            (number(row, "requests"), number(row, "errors"), number(row, "misses")),
            (3000.0, 0.0, 0.0)
        );
        assert!(number(row, "server_cpu_us_per_request") > 0.0);
        assert!(number(row, "p50_us") > 0.0 && number(row, "p50_us") <= number(row, "p99_us"), "{row:?}");
    }
}

#[test]
fn memcached_is_measured_in_its_own_protocol_and_read_back() {
    let Some(memcached) = Memcached::start(&[]) else { return };
    measure_memcached(memcached.port, "memcached 1.");
}

#[test]
fn snugly_is_measured_in_memcacheds_protocol_and_read_back() {
    let server = Server::snugly(&["--memcached-port", "0"]);
    measure_memcached(server.memcached_port(), "snugly ");
    assert_eq!(server.command(&[b"DBSIZE"]), Value::Integer(500));
}

#[test]
fn values_of_a_file_are_sent_to_memcached_as_the_file_means_them() {
    let server = Server::snugly(&["--memcached-port", "0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.jsonl");
    std::fs::write(&path, "{\"a\": 1}\n\"<p>two\\nlines</p>\"\n").unwrap();
    let load = ["--tests", "get", "-n", "100", "--keys", "3", "--data", path.to_str().unwrap()];
    let output = bench_memcached(server.memcached_port(), &load);
    assert!(output.status.success(), "{}", stderr(&output));
    let stored = |key: &[u8]| server.command(&[b"GET", key]);
    assert_eq!(stored(b"key:000000000001"), Value::Bulk(b"<p>two\nlines</p>".to_vec()));
    assert_eq!(stored(b"key:000000000002"), Value::Bulk(b"{\"a\": 1}".to_vec()));
}

#[test]
fn a_memcached_that_loses_values_does_not_pass_verification() {
    let Some(memcached) = Memcached::start(&["-m", "8"]) else { return };
    let output = bench_memcached(memcached.port, &["-n", "100", "--keys", "20000", "--verify"]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("keys have lost their value"), "{}", stderr(&output));
}

#[test]
fn error_lines_of_memcached_end_the_benchmark_with_their_text() {
    let Some(memcached) = Memcached::start(&["-m", "8", "-M"]) else { return };
    let output = bench_memcached(memcached.port, &["--tests", "set", "--keys", "20000"]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("SERVER_ERROR out of memory"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_asked_in_memcacheds_protocol_is_said() {
    let valkey = Server::valkey(&[]);
    let long = "k".repeat(239);
    for (arguments, said) in [
        (&[][..], "does not answer as memcached: for a server that speaks RESP, write redis://127.0.0.1"),
        (&["--key-prefix", "a key"], "memcached takes no key such as \"a key000000000000\" (17 bytes)"),
        (&["--key-prefix", &long], "(251 bytes): keys are at most 250 bytes"),
        (&["--protocol", "resp"], "write redis://127.0.0.1"),
    ] {
        let url = format!("memcached://127.0.0.1:{}", valkey.port);
        let output = snugly(&[&["bench", "server", "--url", &url][..], arguments].concat(), b"");
        assert!(!output.status.success());
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn reads_of_several_keys_are_mget_in_resp() {
    let valkey = Server::valkey(&[]);
    let load = ["--tests", "get", "-n", "1000", "--keys", "300", "--keys-per-get", "20", "--verify"];
    let output = snugly(&[&["bench", "server", "--url", &valkey.url()][..], &load].concat(), b"");
    assert!(output.status.success(), "{}", stderr(&output));
    let Value::Bulk(calls) = valkey.command(&[b"INFO", b"commandstats"]) else { panic!("no INFO") };
    let calls = String::from_utf8(calls).unwrap();
    assert!(calls.contains("cmdstat_mget:calls=1000,"), "{calls}");
    assert!(calls.contains("cmdstat_get:calls=300,"), "{calls}");
}

/// `snugly bench lists` of 12 lists.
fn bench_lists(server: &Server, elements: &str, more: &[&str], input: &[u8]) -> std::process::Output {
    let url = server.url();
    let size = ["--lists", "12", "--elements", elements, "--connections", "5", "--requests", "600"];
    snugly(&[&["bench", "lists", "--url", &url][..], &size, more].concat(), input)
}

#[test]
fn lists_are_filled_and_asked_in_every_way() {
    let folder = tempfile::tempdir().unwrap();
    for (name, server) in
        [("valkey", Server::valkey(&["--list-compress-depth", "1"])), ("snugly", Server::snugly(&[]))]
    {
        let path = folder.path().join(name);
        let output = bench_lists(&server, "150", &["--csv", path.to_str().unwrap()], b"");
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        assert_eq!(server.command(&[b"DBSIZE"]), Value::Integer(12));
        assert_eq!(server.command(&[b"LLEN", b"snugly-bench:list:11"]), Value::Integer(150));

        let rows = rows(&path);
        let sent: Vec<_> = rows.iter().map(|row| (row["test"].as_str(), number(row, "requests"))).collect();
        let expected = [
            ("fill-rpush", 1800.0),
            ("lindex-fixed", 600.0),
            ("lindex-random", 600.0),
            ("lrange-fixed", 120.0),
            ("lrange-random", 120.0),
            ("lrange-all", 6.0),
            ("lset-fixed", 600.0),
            ("lset-random", 600.0),
            ("lpush", 600.0),
            ("rpush", 600.0),
            ("rpop", 600.0),
            ("fill-lpush", 1800.0),
        ];
        assert_eq!(sent, expected);
        assert!(number(&rows[0], "given_bytes") > 1800.0 * 400.0);
        assert!(number(&rows[0], "used_memory") > 0.0 && number(&rows[0], "anonymous_bytes") > 0.0);
        for row in &rows {
            assert!(row["server"].starts_with(name), "{row:?}");
            assert!(number(row, "server_cpu_us_per_request") >= 0.0, "{row:?}");
            assert!(number(row, "p50_us") <= number(row, "p99_us"), "{row:?}");
        }
    }
}

#[test]
fn lists_are_asked_step_by_step_and_what_was_measured_is_printed_at_once() {
    let valkey = Server::valkey(&[]);
    let tests = ["--step", "--tests", "lindex-random,rpop", "--generate", "repetitive:300"];
    let output = bench_lists(&valkey, "150", &tests, b"\n\n\n");
    assert!(output.status.success(), "{}", stderr(&output));
    let lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("server,test,"), "{lines:?}");
    assert!(lines[1].contains(",lindex-random,") && lines[2].contains(",rpop,"), "{lines:?}");

    let ended = bench_lists(&valkey, "150", &tests, b"\n");
    assert!(!ended.status.success());
    assert!(stderr(&ended).contains("before the last step"), "{}", stderr(&ended));
}

#[test]
fn a_server_that_loses_lists_ends_the_benchmark_with_what_was_due() {
    let valkey = Server::valkey(&["--maxmemory", "2500kb", "--maxmemory-policy", "allkeys-random"]);
    let output = bench_lists(&valkey, "1500", &[], b"");
    assert!(!output.status.success());
    assert!(stderr(&output).contains("was due"), "{}", stderr(&output));

    let valkey = Server::valkey(&["--maxmemory", "2500kb", "--maxmemory-policy", "noeviction"]);
    let output = bench_lists(&valkey, "1500", &[], b"");
    assert!(stderr(&output).contains("OOM command not allowed"), "{}", stderr(&output));
}

#[test]
fn what_the_benchmark_of_lists_cannot_do_it_says() {
    let valkey = Server::valkey(&[]);
    for (wrong, said) in [
        (&["--lists", "12"][..], "50 connections have less than one list each of 12: ask for fewer"),
        (&["--tests", "rpop", "--elements", "1"], "has no element left for rpop"),
        (&["--tests", "lmove"], "lmove"),
        (&["--lists", "0"], "0 is not in 1..=1000000"),
    ] {
        let output = snugly(&[&["bench", "lists", "--url", &valkey.url()][..], wrong].concat(), b"");
        assert!(!output.status.success());
        assert!(stderr(&output).contains(said), "{wrong:?}: {}", stderr(&output));
    }
}

#[test]
fn printed_values_are_lines_that_the_benchmark_reads_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.jsonl");
    let printed = snugly(&["bench", "values", "--kind", "csv", "--count", "3", "--size", "500"], b"");
    assert_eq!(stdout(&printed).lines().count(), 3);
    std::fs::write(&path, &printed.stdout).unwrap();

    let valkey = Server::valkey(&[]);
    let data = path.to_str().unwrap();
    let arguments = [
        "bench",
        "server",
        "--url",
        &valkey.url(),
        "--tests",
        "get",
        "-n",
        "10",
        "--keys",
        "3",
        "--data",
        data,
    ];
    assert!(snugly(&arguments, b"").status.success());
    let Value::Bulk(value) = valkey.command(&[b"GET", b"key:000000000000"]) else { panic!("no value") };
    let first: String = serde_json::from_str(stdout(&printed).lines().next().unwrap()).unwrap();
    assert_eq!(value, first.as_bytes());
}

#[test]
fn options_out_of_range_are_refused() {
    for wrong in [
        &["--connections", "0"][..],
        &["--pipeline", "0"],
        &["--keys-per-get", "0"],
        &["--protocol", "http"],
        &["--url", "memcached://localhost/1"],
        &["--read-percent", "101"],
        &["--distribution", "normal"],
        &["--distribution", "zipf:-1"],
        &["--generate", "poetry"],
        &["--generate", "json:many"],
        &["--url", "rediss://localhost"],
        &["--duration", "1", "--requests", "1"],
    ] {
        let output = snugly(&[&["bench", "server"][..], wrong].concat(), b"");
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
    }
}
