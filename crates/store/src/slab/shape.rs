//! Sizes of slots.
//!
//! A page holds a whole number of slots of its size, so that it has no tail to waste. Neighbouring sizes are
//! about a 100th apart (8 bytes where that is more, up to a 16th from 16 KiB on), and on average a request
//! leaves half of that unused. More sizes would cost more than they save: each may have a page that is partly
//! empty.

/// Pages of one length.
struct PageKind {
    page_bytes: usize,
    /// Largest request that goes into these pages, in bytes.
    up_to: usize,
    /// Divisor of a size that gives the least difference to its neighbour.
    parts: usize,
}

pub(super) const PAGE_KINDS: usize = 5;

const KINDS: [PageKind; PAGE_KINDS] = [
    PageKind { page_bytes: 64 << 10, up_to: 1 << 10, parts: 64 },
    PageKind { page_bytes: 128 << 10, up_to: 2 << 10, parts: 128 },
    PageKind { page_bytes: 256 << 10, up_to: 4 << 10, parts: 128 },
    PageKind { page_bytes: 1 << 20, up_to: 16 << 10, parts: 128 },
    PageKind { page_bytes: 1 << 20, up_to: 64 << 10, parts: 32 },
];

/// Returns the length of pages of a kind, in bytes.
pub(super) const fn page_bytes(kind: usize) -> usize {
    KINDS[kind].page_bytes
}

/// Alignment of every slot's size and address.
pub(super) const ALIGNMENT: usize = 8;
/// No entry is smaller: a header and a record's first byte.
const SMALLEST: usize = 24;

/// Slots of one size and the pages that they are in.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    slot_bytes: u32,
    slots: u32,
    page_bytes: u32,
    kind: u8,
}

/// Number of sizes.
pub(super) const CLASSES: usize = shapes::<0>().1;
const SHAPES: [Shape; CLASSES] = shapes::<CLASSES>().0;
const LARGEST: usize = SHAPES[CLASSES - 1].slot_bytes();

/// Class of every size, by the number of 8-byte words.
static CLASS_BY_WORDS: [u16; LARGEST / ALIGNMENT + 1] = {
    let mut classes = [0; LARGEST / ALIGNMENT + 1];
    let (mut words, mut class) = (0, 0);
    while words < classes.len() {
        if words * ALIGNMENT > SHAPES[class as usize].slot_bytes() {
            class += 1;
        }
        classes[words] = class;
        words += 1;
    }
    classes
};
static SHAPE_TABLE: [Shape; CLASSES] = SHAPES;

/// Returns the first `ROOM` sizes, and the number of all.
const fn shapes<const ROOM: usize>() -> ([Shape; ROOM], usize) {
    let mut shapes = [Shape { slot_bytes: 0, slots: 0, page_bytes: 0, kind: 0 }; ROOM];
    let (mut count, mut kind, mut request) = (0, 0, SMALLEST);
    while kind < PAGE_KINDS {
        let PageKind { page_bytes, up_to, parts } = KINDS[kind];
        if request > up_to {
            kind += 1;
            continue;
        }
        let slots = page_bytes / request;
        let slot_bytes = page_bytes / slots / ALIGNMENT * ALIGNMENT;
        if count < ROOM {
            shapes[count] = Shape {
                slot_bytes: slot_bytes as u32,
                slots: slots as u32,
                page_bytes: page_bytes as u32,
                kind: kind as u8,
            };
        }
        count += 1;
        let spacing = slot_bytes / parts / ALIGNMENT * ALIGNMENT;
        request = slot_bytes + if spacing < ALIGNMENT { ALIGNMENT } else { spacing };
    }
    (shapes, count)
}

impl Shape {
    pub(super) fn all() -> &'static [Shape; CLASSES] {
        &SHAPE_TABLE
    }

    /// Returns the smallest slots that hold `size` bytes, and their number in [`Shape::all`].
    pub(super) fn number_for(size: usize) -> Option<(usize, &'static Shape)> {
        let number = usize::from(*CLASS_BY_WORDS.get(size.div_ceil(ALIGNMENT))?);
        Some((number, &SHAPE_TABLE[number]))
    }

    pub(super) const fn slot_bytes(&self) -> usize {
        self.slot_bytes as usize
    }

    /// Returns the number of slots of a page.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the length of a page in bytes.
    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes as usize
    }

    /// Returns the number of the pages' kind.
    pub(super) fn kind(&self) -> usize {
        usize::from(self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_goes_to_the_smallest_slot_that_holds_it() {
        for size in 0..=LARGEST {
            let smallest = SHAPE_TABLE.iter().position(|shape| shape.slot_bytes() >= size);
            assert_eq!(Shape::number_for(size).map(|(number, _)| number), smallest, "for {size} bytes");
        }
        assert!(Shape::number_for(LARGEST + 1).is_none());
    }

    #[test]
    fn slots_fill_their_page_and_are_no_fewer_than_fit() {
        for shape in Shape::all() {
            let used = shape.slots() as usize * shape.slot_bytes();
            assert!(used <= shape.page_bytes());
            assert!(shape.page_bytes() - used < shape.slots() as usize * ALIGNMENT);
        }
    }

    #[test]
    fn a_hundredth_of_a_slot_is_left_unused_on_average_and_two_where_slots_are_large() {
        let waste =
            |size: usize| 1.0 - size as f64 / Shape::number_for(size).expect("it fits").1.slot_bytes() as f64;
        for (from, to, bound) in [
            (128, 256, 0.02),
            (256, 512, 0.01),
            (512, 1024, 0.01),
            (1024, 2048, 0.01),
            (2048, 4096, 0.01),
            (4096, 16_384, 0.01),
            (16_384, 32_768, 0.0225),
            (32_768, LARGEST, 0.025),
        ] {
            let average = (from..to).map(waste).sum::<f64>() / (to - from) as f64;
            assert!(average <= bound, "{average:.4} from {from} to {to} bytes");
        }
    }
}
