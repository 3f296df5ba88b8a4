//! Any allocating, freeing and moving of blocks: none overlaps another, and each keeps what was written to it.

#[path = "../../src/slab/mod.rs"]
#[allow(dead_code, reason = "the module is the store's own, which uses all of it")]
mod memory_slab;

use std::ptr::NonNull;

use arbitrary::{Arbitrary, Unstructured};
use memory_slab::{SLAB, Slab, Tolerance};

#[derive(Arbitrary, Debug)]
enum Step {
    Allocate { size: u32, count: u8 },
    Free { from: u16, count: u8, every: u8 },
    Defragment,
}

/// A block, every word of which says whose it is.
struct Block {
    start: NonNull<u8>,
    size: usize,
    number: u64,
}

impl Block {
    fn new(size: usize, number: u64) -> Block {
        let block = Block { start: SLAB.allocate(size), size, number };
        assert!(block.start.cast::<u64>().is_aligned());
        (0..size / 8).for_each(|word| block.word(word, |place| *place = block.mark(word)));
        block
    }

    fn mark(&self, word: usize) -> u64 {
        self.number << 32 | word as u64
    }

    fn word(&self, word: usize, act: impl FnOnce(&mut u64)) {
        // SAFETY: the block is aligned for words and has this many, and nobody else refers to them.
        act(unsafe { self.start.cast::<u64>().add(word).as_mut() });
    }

    fn check(&self) {
        (0..self.size / 8).for_each(|word| self.word(word, |place| assert_eq!(*place, self.mark(word))));
    }

    fn relocate(&mut self) {
        // SAFETY: the block is in use with this size.
        if let Some(place) = unsafe { SLAB.relocate(self.start, self.size) } {
            // SAFETY: both places have the size, and the old one is used no more.
            unsafe {
                place.copy_from_nonoverlapping(self.start, self.size);
                SLAB.free(self.start, self.size);
            }
            self.start = place;
        }
    }

    fn free(self) {
        self.check();
        // SAFETY: the block was allocated with this size, and is used no more.
        unsafe { SLAB.free(self.start, self.size) }
    }
}

/// Most bytes in use at once.
const LIMIT: usize = 64 << 20;

pub fn run(bytes: &[u8]) {
    let Ok(steps) = Vec::<Step>::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    let mut blocks: Vec<Block> = Vec::new();
    let mut number = 0;
    for step in steps {
        match step {
            Step::Allocate { size, count } => {
                let size = 24 + size as usize % 70_000;
                for _ in 0..count {
                    let used: usize = blocks.iter().map(|block| block.size).sum();
                    if used < LIMIT {
                        number += 1;
                        blocks.push(Block::new(size, number));
                    }
                }
            }
            Step::Free { from, count, every } => {
                let mut at = usize::from(from) % (blocks.len() + 1);
                for _ in 0..count {
                    if at < blocks.len() {
                        blocks.swap_remove(at).free();
                    }
                    at += usize::from(every);
                }
            }
            Step::Defragment => {
                if SLAB.mark_sparse(&Tolerance { bytes: 0, share: 64 }) {
                    blocks.iter_mut().for_each(Block::relocate);
                    blocks.iter().for_each(Block::check);
                }
            }
        }
        let slot_bytes: usize = blocks.iter().filter_map(|block| Slab::slot_size(block.size)).sum();
        assert_eq!(SLAB.stats().slot_bytes, slot_bytes as u64);
    }
    blocks.into_iter().for_each(Block::free);
    assert_eq!(SLAB.stats().slot_bytes, 0);
}
