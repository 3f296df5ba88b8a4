//! Memory savings and cost of the slab allocator beside jemalloc, the program's global allocator. Run it with
//! `cargo bench -p snugly-store --bench slab`.
//!
//! - Memory: resident bytes for each key beyond its value's, with 100,000 keys of 16 bytes. Each figure is of
//!   a process of its own. `store` is a whole store, the others only its entries with 8 bytes for the handle.
//! - Time: nanoseconds to free one block and allocate another, the sides taking turns. `same` frees the block
//!   just allocated; `random` frees one of 100,000, whose page is rarely in the cache.

#[path = "../../src/slab/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the module is the store's own, which uses all of it")]
mod slab;

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::process::Command;
use std::ptr::NonNull;
use std::time::Instant;

use slab::SLAB;
use snugly_store::{Choice, Condition, Config, Expiry, Store};

#[global_allocator]
static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const KEYS: usize = 100_000;
const KEY_BYTES: usize = 16;
const MEAN_VALUES: [usize; 3] = [350, 900, 2600];
const SIDES: [&str; 3] = ["store", "slab", "jemalloc"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, side, mean] = &arguments[..]
        && let Ok(mean) = mean.parse()
    {
        return println!("{:.1}", overhead(side, mean));
    }
    // `cargo test --benches` runs this program too: it measures only when cargo bench asks for it.
    if arguments.iter().any(|argument| argument == "--bench") {
        memory();
        time();
    }
}

fn memory() {
    println!("{:<24} {:>10} {:>10} {:>10}", "bytes a key and no value", SIDES[0], SIDES[1], SIDES[2]);
    let program = std::env::current_exe().expect("the program knows its path");
    for mean in MEAN_VALUES {
        let measured = SIDES.map(|side| {
            let output =
                Command::new(&program).args([side, &mean.to_string()]).output().expect("it starts again");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        });
        println!("{mean:<24} {:>10} {:>10} {:>10}", measured[0], measured[1], measured[2]);
    }
}

/// Resident bytes for each key beyond its value's.
fn overhead(side: &str, mean: usize) -> f64 {
    let mut random = fastrand::Rng::with_seed(1);
    let lengths: Vec<usize> = (0..KEYS).map(|_| random.usize(mean / 2..mean * 3 / 2)).collect();
    let value = vec![1; 2 * mean];
    let store = Store::new(Config::new(Choice::new("none", None, 256).expect("it always exists")));
    let mut session = store.session();
    let before = resident();
    if side == "store" {
        for (number, len) in lengths.iter().enumerate() {
            let key = format!("key:{number:012}");
            session
                .set(0, key.as_bytes(), &value[..*len], Expiry::Never, Condition::Always)
                .expect("there is no limit");
        }
    } else {
        let mut handles = Vec::with_capacity(KEYS);
        for len in &lengths {
            let size = entry_size(*len);
            let block = if side == "slab" { SLAB.allocate(size) } else { allocate(size) };
            // SAFETY: the block has so many bytes.
            unsafe { block.write_bytes(1, size) };
            handles.push(block);
        }
    }
    (resident() - before) as f64 / KEYS as f64 - lengths.iter().sum::<usize>() as f64 / KEYS as f64
}

/// Header, expiry of the longer ones, key, and a record that keeps the value as it is.
fn entry_size(value: usize) -> usize {
    16 + if value < 4093 { 0 } else { 8 } + KEY_BYTES + 3 + value
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux tells it");
    let line = status.lines().find(|line| line.starts_with("Anonymous:")).expect("Linux tells it");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number of KiB") << 10
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a block is small")
}

fn allocate(size: usize) -> NonNull<u8> {
    // SAFETY: no block is empty.
    NonNull::new(unsafe { alloc(layout(size)) }).expect("there is memory")
}

struct Side {
    allocate: fn(usize) -> NonNull<u8>,
    free: unsafe fn(NonNull<u8>, usize),
}

/// Frees a block of the slab.
///
/// # Safety
/// As for `Slab::free`.
unsafe fn free_slab(block: NonNull<u8>, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { SLAB.free(block, size) }
}

/// Frees a block of the global allocator.
///
/// # Safety
/// The block came from `allocate` with this size, and nobody uses it any more.
unsafe fn free_global(block: NonNull<u8>, size: usize) {
    // SAFETY: the caller's promise; `allocate` used the same layout.
    unsafe { dealloc(block.as_ptr(), layout(size)) }
}

const SLAB_SIDE: Side = Side { allocate: |size| SLAB.allocate(size), free: free_slab };
const GLOBAL_SIDE: Side = Side { allocate, free: free_global };

fn time() {
    println!("\n{:<24} {:>10} {:>10}", "ns to free and allocate", SIDES[1], SIDES[2]);
    for mean in MEAN_VALUES {
        for (name, live) in [("same", 1), ("random", KEYS)] {
            let mut least = [f64::MAX; 2];
            for _ in 0..5 {
                for (side, least) in [SLAB_SIDE, GLOBAL_SIDE].iter().zip(&mut least) {
                    *least = least.min(replace(side, mean, live));
                }
            }
            println!("{:<24} {:>10.1} {:>10.1}", format!("{mean} {name}"), least[0], least[1]);
        }
    }
}

/// Nanoseconds to replace one of so many live blocks by one of another size.
fn replace(side: &Side, mean: usize, live: usize) -> f64 {
    let mut random = fastrand::Rng::with_seed(2);
    let sizes: Vec<usize> = (0..1 << 16).map(|_| entry_size(random.usize(mean / 2..mean * 3 / 2))).collect();
    let mut blocks: Vec<_> = (0..live)
        .map(|number| {
            let size = sizes[number % sizes.len()];
            let block = (side.allocate)(size);
            // SAFETY: the block has so many bytes.
            unsafe { block.write_bytes(1, size) };
            (block, size)
        })
        .collect();
    let started = Instant::now();
    const ROUNDS: usize = 1_000_000;
    for round in 0..ROUNDS {
        let size = sizes[round % sizes.len()];
        let block = &mut blocks[random.usize(..live)];
        // SAFETY: the block was allocated by the same side with this size, and is replaced. As an entry would be, the
        // old one is looked at, and the new one is written.
        unsafe {
            black_box(block.0.read());
            (side.free)(block.0, block.1);
            *block = ((side.allocate)(size), size);
            block.0.write_bytes(1, 64);
        }
    }
    let elapsed = started.elapsed().as_nanos() as f64 / ROUNDS as f64;
    for (block, size) in blocks {
        // SAFETY: as above.
        unsafe { (side.free)(block, size) };
    }
    elapsed
}
