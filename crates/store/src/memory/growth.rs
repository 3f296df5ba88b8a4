//! Growth and shrinking of the memory tier's arrays: by whole allocator size classes, so that no allocated
//! byte is left unused, and by about an eighth rather than by doubling, so that they stay dense.

use crate::slab::allocation_size;

const SMALLEST_CAPACITY: usize = 4;

/// Makes room for one more element.
pub(crate) fn reserve_one<T>(array: &mut Vec<T>) {
    if array.len() == array.capacity() {
        let target = fill_class::<T>(array.len() + array.len() / 8 + 1);
        array.reserve_exact(target - array.len());
    }
}

/// Frees memory when more than half of it is unused, and all of it when none is used.
pub(crate) fn shrink<T>(array: &mut Vec<T>) {
    if array.is_empty() {
        *array = Vec::new();
    } else if array.capacity() > 2 * SMALLEST_CAPACITY && array.len() < array.capacity() / 2 {
        array.shrink_to(fill_class::<T>(array.len() + array.len() / 4));
    }
}

fn fill_class<T>(elements: usize) -> usize {
    allocation_size(elements.max(SMALLEST_CAPACITY) * size_of::<T>()) / size_of::<T>()
}
