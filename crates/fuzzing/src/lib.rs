//! Replays the bodies of fuzz targets in ordinary tests: over the seeds, and over mutations of them.
//!
//! It knows a folder of seeds and a function of bytes, and nothing of what the function checks. The mutations are the
//! same in each run, so that a test fails for everybody or for nobody; libFuzzer looks for new ones.

use std::fs;
use std::path::Path;

/// The fewest mutations of all seeds together, and of each.
const MUTATIONS: usize = 2_000;
const MUTATIONS_EACH: usize = 100;
/// Inputs of random bytes, for targets that have few seeds or none.
const RANDOM: usize = 200;
/// The longest input of random bytes.
const RANDOM_LEN: usize = 1024;

/// Calls `body` with each file of `seeds`, a folder that may be missing, with mutations of each, and with random bytes.
/// An input that makes it panic is printed.
pub fn replay(seeds: impl AsRef<Path>, body: impl Fn(&[u8])) {
    let mut random = fastrand::Rng::with_seed(0);
    let seeds = read(seeds.as_ref());
    for seed in &seeds {
        run(&body, seed);
        for _ in 0..MUTATIONS_EACH.max(MUTATIONS / seeds.len()) {
            run(&body, &mutated(seed, &seeds, &mut random));
        }
    }
    for _ in 0..RANDOM {
        let mut input = vec![0; random.usize(..RANDOM_LEN)];
        random.fill(&mut input);
        run(&body, &input);
    }
}

/// The files of the folder, in the order of their names.
fn read(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = files.map(|file| file.expect("the folder can be read").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("the seed can be read")).collect()
}

fn run(body: &impl Fn(&[u8]), input: &[u8]) {
    /// Prints the input while a panic unwinds.
    struct Input<'a>(&'a [u8]);

    impl Drop for Input<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("the input was b\"{}\"", self.0.escape_ascii());
            }
        }
    }

    let _input = Input(input);
    body(input);
}

/// A copy with some bytes changed, cut, repeated, or replaced by a part of another seed.
fn mutated(seed: &[u8], seeds: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            bytes.push(random.u8(..));
        }
        let at = random.usize(..bytes.len());
        match random.u8(..6) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = *random.choice(&[0x00, 0x01, 0x7f, 0x80, 0xff]).expect("there are some"),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..(at + random.usize(..16)).min(bytes.len()))),
            4 => bytes.extend_from_within(at..),
            _ => {
                let other = random.choice(seeds).expect("the seed itself is one");
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.usize(..=other.len())..]);
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_same_inputs_are_replayed_in_each_run() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let inputs = || {
            let inputs = RefCell::new(Vec::new());
            replay(folder, |input| inputs.borrow_mut().push(input.to_vec()));
            inputs.into_inner()
        };
        let first = inputs();
        assert_eq!(first.len(), 1 + MUTATIONS + RANDOM);
        assert_eq!(first[0], include_bytes!("lib.rs"));
        assert!(first[1..].iter().filter(|input| **input == first[0]).count() < MUTATIONS / 20);
        assert_eq!(inputs(), first);
    }

    #[test]
    fn a_missing_folder_leaves_random_inputs() {
        let count = RefCell::new(0);
        replay("no folder", |_| *count.borrow_mut() += 1);
        assert_eq!(count.into_inner(), RANDOM);
    }

    #[test]
    #[should_panic(expected = "found")]
    fn a_panic_of_the_body_is_the_tests() {
        replay("no folder", |input| assert!(input.len() < 100, "found"));
    }
}
