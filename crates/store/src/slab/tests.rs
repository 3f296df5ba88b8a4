//! Tests that allocations never overlap, and that freed memory comes back.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use proptest::prelude::*;

use super::*;

/// A slab of the tests' own, for one test at a time: its pages can all be accounted for.
static ALONE: Mutex<()> = Mutex::new(());
static TESTED: Slab = Slab::new();

/// A block of a test, every byte of which is written with its own pattern.
struct Block {
    start: NonNull<u8>,
    size: usize,
    seed: u64,
}

// SAFETY: a block owns its memory.
unsafe impl Send for Block {}

impl Block {
    fn new(size: usize, seed: u64) -> Block {
        let block = Block { start: TESTED.allocate(size), size, seed };
        assert!(block.start.addr().get().is_multiple_of(ALIGNMENT));
        // SAFETY: the slab gave so many bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(block.start.as_ptr(), size) };
        bytes.iter_mut().zip(block.pattern()).for_each(|(byte, pattern)| *byte = pattern);
        block
    }

    fn pattern(&self) -> impl Iterator<Item = u8> + use<> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        std::iter::repeat_with(move || random.u8(..))
    }

    fn check(&self) {
        // SAFETY: the block was filled when it was made.
        let bytes = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) };
        assert!(
            bytes.iter().copied().eq(self.pattern().take(self.size)),
            "a block of {} bytes changed",
            self.size
        );
    }

    /// Moves to a denser place, if it should.
    fn relocate(&mut self) {
        // SAFETY: the block is in use with this size.
        if let Some(place) = unsafe { TESTED.relocate(self.start, self.size) } {
            // SAFETY: both places have the size, and the old one is used no more.
            unsafe {
                place.copy_from_nonoverlapping(self.start, self.size);
                TESTED.free(self.start, self.size);
            }
            self.start = place;
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.check();
        }
        // SAFETY: the block was allocated with this size, and nobody uses it any more.
        unsafe { TESTED.free(self.start, self.size) }
    }
}

#[test]
fn pages_that_were_kept_in_vain_go_back() {
    static SLAB: Slab = Slab::new();
    const SIZE: usize = 1_000;
    let fill = || (0..1_000).map(|_| SLAB.allocate(SIZE)).collect::<Vec<_>>();
    // SAFETY: each slot came from this slab for this size, and is freed once.
    let free = |slots: Vec<_>| slots.into_iter().for_each(|slot| unsafe { SLAB.free(slot, SIZE) });
    free(fill());
    assert!(SLAB.stats().page_bytes > 0);
    SLAB.trim();
    free(fill());
    SLAB.trim();
    let used_meanwhile = SLAB.stats().page_bytes;
    SLAB.trim();
    assert_eq!(SLAB.stats(), SlabStats::default());
    assert!(used_meanwhile > 0);
    free(fill());
}

/// Nothing is in use, and no more pages have memory than are kept.
fn assert_empty() {
    let stats = TESTED.stats();
    assert_eq!(stats.slot_bytes, 0);
    assert!(stats.page_bytes <= (PAGE_KINDS * pool::KEPT_BYTES) as u64, "{stats:?}");
    for class in &TESTED.classes {
        assert_eq!(class.lock().pages(), 0);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { size: usize, count: usize },
    Free { every: usize },
    Defragment,
}

fn step() -> impl Strategy<Value = Step> {
    // Few sizes of each kind, so that their pages fill.
    let size = prop_oneof![
        (24..200usize).prop_map(|size| size / 30 * 30),
        Just(900usize),
        (1000..5000usize).prop_map(|size| size / 900 * 900),
        prop_oneof![Just(20_000usize), Just(65_536), Just(100_000)],
    ];
    prop_oneof![
        3 => (size, 1..300usize).prop_map(|(size, count)| {
            Step::Allocate { size, count: if size > 10_000 { count / 10 + 1 } else { count } }
        }),
        2 => (1..6usize).prop_map(|every| Step::Free { every }),
        1 => Just(Step::Defragment),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_never_overlap_and_keep_what_was_written(steps in prop::collection::vec(step(), 1..40)) {
        let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut blocks: Vec<Block> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Step::Allocate { size, count } => {
                    let seed = |index: usize| (number * 1000 + index) as u64;
                    blocks.extend((0..count).map(|index| Block::new(size, seed(index))));
                }
                Step::Free { every } => {
                    let mut index = 0;
                    blocks.retain(|_| {
                        index += 1;
                        index % every != 0
                    });
                }
                Step::Defragment => {
                    TESTED.classes().for_each(|(shape, class)| class.lock().mark_sparse(shape));
                    blocks.iter_mut().for_each(Block::relocate);
                    for (shape, class) in TESTED.classes() {
                        assert_eq!(class.lock().spare_pages(shape), 0, "for {} bytes", shape.slot_bytes());
                    }
                }
            }
            let places: BTreeMap<_, _> = blocks.iter().map(|block| (block.start, block.size)).collect();
            prop_assert_eq!(places.len(), blocks.len());
            let ends = places.iter().map(|(start, size)| start.addr().get() + size);
            let starts = places.keys().skip(1).map(|start| start.addr().get());
            prop_assert!(ends.zip(starts).all(|(end, start)| end <= start), "blocks overlap");
            let slot_bytes: usize = blocks.iter().filter_map(|block| Slab::slot_size(block.size)).sum();
            prop_assert_eq!(TESTED.stats().slot_bytes, slot_bytes as u64);
        }
        drop(blocks);
        assert_empty();
    }
}

#[test]
fn threads_free_what_others_allocated() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let shared: Vec<Mutex<Vec<Block>>> = (0..8).map(|_| Mutex::default()).collect();
    thread::scope(|scope| {
        for number in 0..4 {
            let shared = &shared;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(number);
                for _ in 0..60_000 {
                    let size = [40, 48, 200, 1500, 9000][random.usize(..5)];
                    let block = Block::new(size, random.u64(..));
                    let mut bag = shared[random.usize(..8)].lock().expect("no thread panicked");
                    bag.push(block);
                    if bag.len() > 100 {
                        let other = random.usize(..100);
                        bag[other].relocate();
                        drop(bag.swap_remove(random.usize(..100)));
                    }
                    drop(bag);
                    if random.u8(..) == 0 {
                        TESTED.classes().for_each(|(shape, class)| class.lock().mark_sparse(shape));
                    }
                }
            });
        }
    });
    drop(shared);
    assert_empty();
}

#[test]
fn a_full_page_is_dense_whatever_it_was_marked() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (number, shape) = Shape::number_for(1000).expect("there are such slots");
    let slots = shape.slots();
    let mut blocks: Vec<Block> = (0..2 * slots as u64).map(|seed| Block::new(1000, seed)).collect();
    // Half of each page is free: one of the two can be emptied.
    let mut index = 0;
    blocks.retain(|_| {
        index += 1;
        index % 2 == 0
    });
    TESTED.classes[number].lock().mark_sparse(shape);
    let sparse = |block: &Block| {
        // SAFETY: the block is in use with this shape.
        unsafe { Page::of(block.start, shape) }.is_sparse()
    };
    assert!((slots / 2..=slots.div_ceil(2)).contains(&blocks.iter().filter(|block| sparse(block)).count()));
    // A request takes a slot from the other page first, and then from the marked one rather than from a new
    // one.
    blocks.extend((0..slots as u64).map(|seed| Block::new(1000, seed)));
    assert_eq!(TESTED.classes[number].lock().pages(), 2);
    assert!(!blocks.iter().any(sparse));
    drop(blocks);
    assert_empty();
}
