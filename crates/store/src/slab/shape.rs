//! Sizes of slots.
//!
//! A page holds a whole number of slots of its size, so that it has no tail to waste: of the lengths that pages can
//! have, each size takes the least of which its slots leave no more than a 64th unused. Neighbouring sizes are about a
//! 64th apart (8 bytes where that is more). Both come from what can be partly empty: one page of each size in use,
//! which for a small store is more than what requests leave unused in their slots, and for a large one less.

/// Difference between the lengths that pages can have, in bytes: a page of the system's.
const PAGE_STEP: usize = 4 << 10;
/// Least length of a page, in bytes: its header takes a 512th more.
const SMALLEST_PAGE: usize = 16 << 10;
/// Greatest length of a page, in bytes.
pub(super) const LARGEST_PAGE: usize = 256 << 10;

/// Number of lengths that pages can have, whether any slots use them or not.
pub(super) const PAGE_KINDS: usize = (LARGEST_PAGE - SMALLEST_PAGE) / PAGE_STEP + 1;

/// Returns the length of pages of a kind, in bytes.
pub(super) const fn page_bytes(kind: usize) -> usize {
    SMALLEST_PAGE + kind * PAGE_STEP
}

/// Divisor of a request that gives the most that its slot may be larger,
const TAIL: usize = 64;
/// and of a size that gives the least difference to its neighbour.
const SPACING: usize = 64;

/// Alignment of every slot's size and address.
pub(super) const ALIGNMENT: usize = 8;
/// No entry is smaller: a header and a record's first byte.
const SMALLEST: usize = 24;
/// Largest request that surely gets a slot, in bytes.
const SERVED: usize = 64 << 10;

/// Slots of one size and the pages that they are in.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    slot_bytes: u32,
    slots: u32,
    page_bytes: u32,
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
    let mut shapes = [Shape { slot_bytes: 0, slots: 0, page_bytes: 0 }; ROOM];
    let (mut count, mut request) = (0, SMALLEST);
    while request <= SERVED {
        let shape = Shape::closest(request);
        if count < ROOM {
            shapes[count] = shape;
        }
        count += 1;
        let spacing = shape.slot_bytes() / SPACING / ALIGNMENT * ALIGNMENT;
        request = shape.slot_bytes() + if spacing < ALIGNMENT { ALIGNMENT } else { spacing };
    }
    (shapes, count)
}

impl Shape {
    /// Returns the slots for requests of this size in the shortest pages that they fill.
    const fn closest(request: usize) -> Shape {
        let mut kind = 0;
        loop {
            let page_bytes = page_bytes(kind);
            let slots = page_bytes / request;
            let is_filled = slots > 0 && page_bytes / slots - request < request / TAIL + ALIGNMENT;
            if is_filled || kind + 1 == PAGE_KINDS {
                let slot_bytes = (page_bytes / slots / ALIGNMENT * ALIGNMENT) as u32;
                return Shape { slot_bytes, slots: slots as u32, page_bytes: page_bytes as u32 };
            }
            kind += 1;
        }
    }

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
    pub(super) fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Returns the length of a page in bytes.
    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes as usize
    }

    /// Returns the number of the pages' kind.
    pub(super) fn kind(&self) -> usize {
        (self.page_bytes() - SMALLEST_PAGE) / PAGE_STEP
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
            let used = shape.slots() * shape.slot_bytes();
            assert!(used <= shape.page_bytes());
            assert!(shape.page_bytes() - used < shape.slots() * ALIGNMENT);
        }
    }

    #[test]
    fn an_80th_of_a_slot_is_left_unused_on_average() {
        let waste =
            |size: usize| 1.0 - size as f64 / Shape::number_for(size).expect("it fits").1.slot_bytes() as f64;
        for (from, to, bound) in [
            (128, 256, 0.02),
            (256, 512, 0.013),
            (512, 1024, 0.01),
            (1024, 4096, 0.011),
            (4096, 65_536, 0.0125),
        ] {
            let average = (from..to).map(waste).sum::<f64>() / (to - from) as f64;
            assert!(average <= bound, "{average:.4} from {from} to {to} bytes");
        }
    }
}
