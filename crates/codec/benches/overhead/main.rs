//! What the crate costs on top of a bare, reused context of libzstd or liblz4, what a context for each value
//! costs instead, what incompressible values cost, and LZ4 beside zstd with the same dictionary. Run it with `cargo bench -p snugly-codec`.
//!
//! The sides of a row take turns in short rounds on the same values, and the least time of each counts: on a
//! busy machine that is the time without the neighbours'. Times are nanoseconds a value.

mod bare;
mod dictionaries;
mod values;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bare::{Bare, Lz4, Zstd};
use snugly_codec::envelope::{self, Options};
use snugly_codec::{Choice, Counters, Decoder, Encoder, Record};

const ROUNDS: usize = 100;
const ROUND: Duration = Duration::from_millis(2);
const VALUES: usize = 64;
const LENGTHS: [usize; 4] = [300, 900, 2_500, 4_000];
const MAX_RAW: usize = 64 << 20;

fn main() {
    // `cargo test --benches` runs this program too: it measures only when cargo bench asks for it.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("{:<22} bytes  reused   snugly     over         a context per call", "ns a value");
    for len in LENGTHS {
        let values = values::json(len, VALUES);
        records("lz4", Lz4::new, &values);
        records("zstd", Zstd::magicless, &values);
        envelopes("lz4", Lz4::new, &values);
        envelopes("zstd", Zstd::standard, &values);
    }
    incompressible();
    dictionaries::compare();
}

/// Two or more ways to treat the value of a number.
type Ways<'a, const WAYS: usize> = [&'a mut dyn FnMut(usize); WAYS];

/// The least time of each way in nanoseconds, the ways taking turns.
fn least<const WAYS: usize>(values: usize, mut ways: Ways<'_, WAYS>) -> [f64; WAYS] {
    let mut least = [f64::MAX; WAYS];
    for _ in 0..ROUNDS {
        for (way, least) in ways.iter_mut().zip(&mut least) {
            let started = Instant::now();
            let mut done = 0;
            while started.elapsed() < ROUND {
                (0..values).for_each(&mut *way);
                done += values;
            }
            *least = least.min(started.elapsed().as_nanos() as f64 / done as f64);
        }
    }
    least
}

fn records<B: Bare>(name: &str, new: fn() -> B, values: &[Vec<u8>]) {
    let choice = Choice::new(name, None, 64).expect("it is built in");
    let mut encoder = Encoder::new(Arc::new(Counters::default()));
    let mut decoder = Decoder::new(Arc::new(Counters::default()));
    let stored: Vec<Vec<u8>> = values
        .iter()
        .map(|value| {
            let mut stored = Vec::new();
            encoder.encode(choice, value, 32, |bytes| bytes).append_to(&mut stored);
            stored
        })
        .collect();
    let records: Vec<Record<'_>> =
        stored.iter().map(|bytes| Record::parse(bytes).expect("a record")).collect();
    let payloads: Vec<&[u8]> = records.iter().map(Record::payload).collect();
    let mut restored = Vec::with_capacity(16 << 10);
    compare(
        &format!("{name} record"),
        new,
        values,
        &payloads,
        &mut |number| {
            black_box(encoder.encode(choice, &values[number], 32, |bytes| bytes));
        },
        &mut |number| {
            restored.clear();
            decoder.decode(&records[number], MAX_RAW, &mut restored).expect("it decodes");
        },
    );
}

fn envelopes<B: Bare>(name: &str, new: fn() -> B, values: &[Vec<u8>]) {
    let options =
        Options { choice: Choice::new(name, None, 64).expect("it is built in"), ..Options::default() };
    let envelopes: Vec<Vec<u8>> = values
        .iter()
        .map(|value| {
            let mut sent = Vec::new();
            envelope::encode(&options, value, &mut sent);
            sent
        })
        .collect();
    // The backend's header and, before an LZ4 block, its raw length.
    let header = if name == "lz4" { 5 + 4 } else { 5 };
    let payloads: Vec<&[u8]> = envelopes.iter().map(|bytes| &bytes[header..]).collect();
    let mut sent = Vec::with_capacity(16 << 10);
    let mut restored = Vec::with_capacity(16 << 10);
    compare(
        &format!("{name} envelope"),
        new,
        values,
        &payloads,
        &mut |number| {
            sent.clear();
            black_box(envelope::encode(&options, &values[number], &mut sent));
        },
        &mut |number| {
            restored.clear();
            black_box(envelope::decode(&options, &envelopes[number], &mut restored)).expect("it decodes");
        },
    );
}

/// Compares with the library's own functions, which get the same payloads.
fn compare<B: Bare>(
    name: &str,
    new: fn() -> B,
    values: &[Vec<u8>],
    payloads: &[&[u8]],
    encode: &mut dyn FnMut(usize),
    decode: &mut dyn FnMut(usize),
) {
    let mut bare = new();
    let target = &mut vec![0; 16 << 10][..];
    let own_target = &mut vec![0; 16 << 10][..];
    let times = least(
        values.len(),
        [
            &mut |number| {
                black_box(bare.compress(&values[number], target));
            },
            encode,
            &mut |number| {
                black_box(new().compress(&values[number], own_target));
            },
        ],
    );
    row(&format!("{name} encode"), values, times);
    let times = least(
        values.len(),
        [
            &mut |number| {
                black_box(bare.decompress(payloads[number], &mut target[..values[number].len()]));
            },
            decode,
            &mut |number| {
                black_box(new().decompress(payloads[number], own_target));
            },
        ],
    );
    row(&format!("{name} decode"), values, times);
}

fn row(name: &str, values: &[Vec<u8>], [reused, ours, per_call]: [f64; 3]) {
    let mean = values.iter().map(Vec::len).sum::<usize>() / values.len();
    let over = ours - reused;
    let percent = 100.0 * over / reused;
    let times = per_call / reused;
    println!(
        "{name:<22} {mean:>5} {reused:>7.0} {ours:>8.0} {over:>8.1} {percent:>6.1} % {per_call:>8.0} {times:>5.1} x"
    );
}

/// Random values must cost next to nothing: storing 256 KiB as they are, over a socket, takes about 100
/// microseconds.
fn incompressible() {
    const COUNT: usize = 4_000;
    println!("\nmicroseconds for a random value: the least time, and the mean with the rare attempts");
    for len in [1 << 10, 16 << 10, 256 << 10] {
        let values = values::random(len, 16);
        for (name, level) in [("lz4", None), ("zstd", None), ("zstd", Some(19))] {
            let choice = Choice::new(name, level, 64).expect("it is built in");
            let mut encoder = Encoder::new(Arc::new(Counters::default()));
            let mut encode = |number: usize| {
                black_box(encoder.encode(choice, &values[number], 32, |bytes| bytes));
            };
            let [copied, skipped] =
                least(values.len(), [&mut |number| drop(black_box(values[number].clone())), &mut encode]);
            let started = Instant::now();
            (0..COUNT).for_each(|number| encode(number % values.len()));
            let mean = started.elapsed().as_nanos() as f64 / COUNT as f64;
            let [copied, skipped, mean] = [copied, skipped, mean].map(|time| time / 1e3);
            let (level, kib) = (choice.level(), len >> 10);
            println!(
                "{kib:>3} KiB  {name:<4} level {level:<2}  {skipped:>6.2}  {mean:>6.2}  (a copy: {copied:.2})"
            );
        }
    }
}
