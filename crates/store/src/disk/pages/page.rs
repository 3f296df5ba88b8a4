//! One page of a tree: a sorted list of rows, or of the pages below it.

use super::PageDamage;

/// Bytes of a page's header: `number u64 | unused u16 | flags u16 | lower u16 | upper u16` (`MDB_page`).
pub(crate) const HEADER_LEN: usize = 16;
/// Bytes in front of a node's key: `low u16 | high u16 | flags u16 | length of the key u16` (`MDB_node`).
const NODE_LEN: usize = 8;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const IN_OVERFLOW: u16 = 0x01;
const IS_TREE: u16 = 0x02;
/// Longest key of LMDB, in bytes.
const MOST_KEY_LEN: usize = 511;

/// A page of a tree. All accesses stay inside it, whatever its contents.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    bytes: &'a [u8],
    number: u64,
    is_leaf: bool,
    len: usize,
    /// Offset of its first node.
    upper: usize,
}

/// Location of a row's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// Value in the leaf.
    Inline(&'a [u8]),
    /// Value in pages of its own.
    Overflow { page: u64, len: usize },
    /// Description of a tree, in the leaf.
    Tree(&'a [u8]),
}

struct Node<'a> {
    low: u32,
    flags: u16,
    key: &'a [u8],
    /// Bytes behind the key, up to the end of the page.
    rest: &'a [u8],
}

impl<'a> Page<'a> {
    /// Creates a page whose nodes have not been verified.
    pub(crate) fn of(bytes: &'a [u8], number: u64) -> Result<Page<'a>, PageDamage> {
        let damage = |what| PageDamage { page: number, what };
        if u64_at(bytes, 0) != Some(number) {
            return Err(damage("it has the number of another page"));
        }
        let is_leaf = match u16_at(bytes, 10) {
            Some(LEAF) => true,
            Some(BRANCH) => false,
            _ => return Err(damage("it is no page of a tree")),
        };
        let (lower, upper) = (u16_at(bytes, 12), u16_at(bytes, 14));
        let (lower, upper) = lower.zip(upper).ok_or(damage("it is cut off"))?;
        let is_sound = usize::from(lower) >= HEADER_LEN
            && lower % 2 == 0
            && lower <= upper
            && usize::from(upper) <= bytes.len();
        if !is_sound {
            return Err(damage("its header makes no sense"));
        }
        let len = (usize::from(lower) - HEADER_LEN) / 2;
        if len == 0 {
            return Err(damage("it is empty"));
        }
        Ok(Page { bytes, number, is_leaf, len, upper: usize::from(upper) })
    }

    /// Creates a page after verifying that all its nodes are inside it, side by side, with keys in order, and
    /// name existing pages.
    pub(crate) fn verify(
        bytes: &'a [u8],
        number: u64,
        pages: u64,
        order: Order,
    ) -> Result<Page<'a>, PageDamage> {
        let page = Page::of(bytes, number)?;
        // LMDB leaves no other tree with such a branch.
        if !page.is_leaf && page.len < 2 && order == Order::Bytes {
            return Err(page.damage("it is a branch with a single page below it"));
        }
        let mut taken = Vec::with_capacity(page.len);
        let mut before: Option<&[u8]> = None;
        for index in 0..page.len {
            let node = page.node(index)?;
            let is_first_branch = !page.is_leaf && index == 0;
            if node.key.len() > MOST_KEY_LEN || (node.key.is_empty() && !is_first_branch) {
                return Err(page.damage("a key has an impossible length"));
            }
            if before.is_some_and(|before| !order.is_before(before, node.key)) {
                return Err(page.damage("its keys are not in order"));
            }
            before = (!is_first_branch).then_some(node.key);
            let len = match page.is_leaf {
                false => {
                    let child = page.child(index)?;
                    if !(2..pages).contains(&child) {
                        return Err(page.damage("it names a page that is not there"));
                    }
                    0
                }
                true => match page.value(index)? {
                    Value::Inline(value) | Value::Tree(value) => value.len(),
                    Value::Overflow { page: first, len } => {
                        let end = first.checked_add(overflow_pages(len, bytes.len()));
                        if first < 2 || end.is_none_or(|end| end > pages) {
                            return Err(page.damage("it names a page that is not there"));
                        }
                        8
                    }
                },
            };
            let start = bytes.len() - node.rest.len() - node.key.len() - NODE_LEN;
            taken.push((start, start + NODE_LEN + node.key.len() + len));
        }
        // LMDB relies on nodes filling the page from `upper` to its end.
        taken.sort_unstable();
        let filled = taken
            .iter()
            .try_fold(page.upper, |at, &(start, end)| (at == start).then_some(end.next_multiple_of(2)));
        if filled != Some(bytes.len()) {
            return Err(page.damage("its nodes overlap, or there are gaps between them"));
        }
        Ok(page)
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.is_leaf
    }

    /// Returns the number of rows or children, at least one.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn key(&self, index: usize) -> Result<&'a [u8], PageDamage> {
        Ok(self.node(index)?.key)
    }

    /// Returns the number of the page below.
    pub(crate) fn child(&self, index: usize) -> Result<u64, PageDamage> {
        let node = self.node(index)?;
        Ok(u64::from(node.low) | u64::from(node.flags) << 32)
    }

    pub(crate) fn value(&self, index: usize) -> Result<Value<'a>, PageDamage> {
        let node = self.node(index)?;
        let len = node.low as usize;
        let short = || self.damage("a value reaches beyond it");
        match node.flags {
            0 => node.rest.get(..len).map(Value::Inline).ok_or_else(short),
            IS_TREE => node.rest.get(..len).map(Value::Tree).ok_or_else(short),
            IN_OVERFLOW => {
                let page = u64_at(node.rest, 0).ok_or_else(short)?;
                Ok(Value::Overflow { page, len })
            }
            _ => Err(self.damage("a row is of a kind that there is not")),
        }
    }

    /// Returns the first index whose key is not below this one; for a branch, the child that has it. For keys
    /// in byte order.
    pub(crate) fn find(&self, key: &[u8]) -> Result<usize, PageDamage> {
        // The first key of a branch stands for everything below the second.
        let (mut low, mut high) = (usize::from(!self.is_leaf), self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_below = match self.is_leaf {
                true => self.key(middle)? < key,
                false => self.key(middle)? <= key,
            };
            match is_below {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(if self.is_leaf { low } else { low - 1 })
    }

    fn node(&self, index: usize) -> Result<Node<'a>, PageDamage> {
        let outside = || self.damage("a node is outside");
        let inside = (index < self.len).then_some(HEADER_LEN + 2 * index);
        let start = inside.and_then(|at| u16_at(self.bytes, at)).ok_or_else(outside)?;
        if usize::from(start) < HEADER_LEN + 2 * self.len || start % 2 != 0 {
            return Err(outside());
        }
        let node = self.bytes.get(usize::from(start)..).ok_or_else(outside)?;
        let field = |at| u16_at(node, at).ok_or_else(outside);
        let low = u32::from(field(0)?) | u32::from(field(2)?) << 16;
        let (flags, key_len) = (field(4)?, usize::from(field(6)?));
        let (key, rest) = node[NODE_LEN..].split_at_checked(key_len).ok_or_else(outside)?;
        Ok(Node { low, flags, key, rest })
    }

    fn damage(&self, what: &'static str) -> PageDamage {
        PageDamage { page: self.number, what }
    }
}

/// Order of a tree's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Bytes,
    /// Numbers of transactions in eight bytes, in the tree of free pages.
    Numbers,
}

impl Order {
    pub(crate) fn is_before(self, first: &[u8], second: &[u8]) -> bool {
        match self {
            Order::Bytes => first < second,
            Order::Numbers => u64_at(first, 0) < u64_at(second, 0),
        }
    }
}

/// Returns the number of pages of a value that has some of its own.
pub(crate) fn overflow_pages(len: usize, page_bytes: usize) -> u64 {
    ((HEADER_LEN + len).div_ceil(page_bytes)) as u64
}

/// Returns the bytes of a value in pages of its own.
pub(crate) fn overflow_value(bytes: &[u8], number: u64, pages: u64, len: usize) -> Result<&[u8], PageDamage> {
    let is_sound = u64_at(bytes, 0) == Some(number)
        && u16_at(bytes, 10) == Some(OVERFLOW)
        && u32_at(bytes, 12).map(u64::from) == Some(pages);
    let value = bytes.get(HEADER_LEN..).and_then(|rest| rest.get(..len));
    value
        .filter(|_| is_sound)
        .ok_or(PageDamage { page: number, what: "it does not hold the value that it should" })
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
