//! The values that are measured: real ones where they are at hand, else generated JSON.

use std::env;
use std::fs;
use std::path::PathBuf;

/// A xorshift generator: the benchmarks need the same numbers each time, not good ones.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Values of random bytes, each of `len` bytes.
pub fn random(len: usize, count: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(1);
    (0..count).map(|_| (0..len).map(|_| (random.next() >> 32) as u8).collect()).collect()
}

/// JSON values of about `len` bytes: lines of `SNUGLY_DATA/*.jsonl` (or of the folder beside the repository)
/// whose length is within a tenth of it, cut to no more than `count`.
pub fn json(len: usize, count: usize) -> Vec<Vec<u8>> {
    let folder = env::var_os("SNUGLY_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let mut values: Vec<Vec<u8>> = ["json-profiles", "json-movies", "json-movie-pages", "json-cities"]
        .iter()
        .filter_map(|name| fs::read_to_string(folder.join(name).with_extension("jsonl")).ok())
        .flat_map(|text| text.lines().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>())
        .filter(|value| value.len().abs_diff(len) <= len / 10)
        .take(count)
        .collect();
    let mut random = Random::new(len as u64);
    while values.len() < count {
        values.push(generated(len, &mut random));
    }
    values
}

fn generated(len: usize, random: &mut Random) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "knoll",
        "lunar", "maple", "north", "ocean", "prairie",
    ];
    let mut json = String::from("[");
    while json.len() < len {
        let word = |random: &mut Random| WORDS[random.next() as usize % WORDS.len()];
        json += &format!(
            r#"{{"id":{},"name":"{} {}","price":{}.{:02},"tags":["{}","{}"],"active":{}}},"#,
            random.next() % 1_000_000,
            word(random),
            word(random),
            random.next() % 500,
            random.next() % 100,
            word(random),
            word(random),
            random.next().is_multiple_of(2),
        );
    }
    json.truncate(len);
    json.into_bytes()
}
