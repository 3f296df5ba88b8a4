//! LMDB's two meta pages, which commits write in turn.

use super::PageDamage;
use super::page::{HEADER_LEN, Order, u16_at, u32_at, u64_at};

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const META_PAGE: u16 = 0x08;
/// Offsets of the fields behind the page's header, and the length of all of them in bytes.
const FREE_TREE: usize = HEADER_LEN + 24;
const MAIN_TREE: usize = FREE_TREE + Tree::LEN;
const LAST_PAGE: usize = MAIN_TREE + Tree::LEN;
const TRANSACTION: usize = LAST_PAGE + 8;
/// Bytes of a meta page that are used.
pub(crate) const META_LEN: usize = TRANSACTION + 8;
/// Greatest number of levels of a tree: more would need more pages than there are.
pub(crate) const MOST_LEVELS: usize = 16;
const NO_PAGE: u64 = u64::MAX;

/// Location and size of a tree (`MDB_db`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) order: Order,
    /// Root page, `None` where the tree is empty.
    pub(crate) root: Option<u64>,
    pub(crate) levels: usize,
    pub(crate) branch_pages: u64,
    pub(crate) leaf_pages: u64,
    pub(crate) overflow_pages: u64,
    pub(crate) rows: u64,
}

impl Tree {
    pub(crate) const LEN: usize = 48;

    pub(crate) fn empty(order: Order) -> Tree {
        Tree { order, root: None, levels: 0, branch_pages: 0, leaf_pages: 0, overflow_pages: 0, rows: 0 }
    }

    /// Parses the description of a tree in this page.
    pub(crate) fn parse(bytes: &[u8], order: Order, page: u64) -> Result<Tree, PageDamage> {
        let damage = |what| PageDamage { page, what };
        let field = |at| u64_at(bytes, at).ok_or(damage("the description of a tree is cut off"));
        let root = field(40)?;
        let tree = Tree {
            order,
            root: (root != NO_PAGE).then_some(root),
            levels: usize::from(u16_at(bytes, 6).unwrap_or_default()),
            branch_pages: field(8)?,
            leaf_pages: field(16)?,
            overflow_pages: field(24)?,
            rows: field(32)?,
        };
        if tree.levels > MOST_LEVELS || tree.root.is_some() != (tree.levels > 0) {
            return Err(damage("a tree has an impossible number of levels"));
        }
        Ok(tree)
    }

    pub(crate) fn pages(&self) -> u64 {
        self.branch_pages.saturating_add(self.leaf_pages).saturating_add(self.overflow_pages)
    }
}

/// A meta page (`MDB_meta`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) page_bytes: usize,
    /// Trees of free pages, and of the tables.
    pub(crate) free: Tree,
    pub(crate) main: Tree,
    pub(crate) last_page: u64,
    /// Number of the transaction that wrote it.
    pub(crate) transaction: u64,
}

impl Meta {
    pub(crate) fn parse(number: u64, bytes: &[u8]) -> Result<Meta, PageDamage> {
        let damage = |what| PageDamage { page: number, what };
        if bytes.len() < META_LEN {
            return Err(damage("it is cut off"));
        }
        if u64_at(bytes, 0) != Some(number) || u16_at(bytes, 10) != Some(META_PAGE) {
            return Err(damage("it is no meta page"));
        }
        if u32_at(bytes, HEADER_LEN) != Some(MAGIC) || u32_at(bytes, HEADER_LEN + 4) != Some(VERSION) {
            return Err(damage("it is no meta page that LMDB has written"));
        }
        let page_bytes = u32_at(bytes, FREE_TREE).unwrap_or_default();
        if !(512..=65536).contains(&page_bytes) || !page_bytes.is_power_of_two() {
            return Err(damage("its page size makes no sense"));
        }
        let meta = Meta {
            page_bytes: page_bytes as usize,
            free: Tree::parse(&bytes[FREE_TREE..MAIN_TREE], Order::Numbers, number)?,
            main: Tree::parse(&bytes[MAIN_TREE..LAST_PAGE], Order::Bytes, number)?,
            last_page: u64_at(bytes, LAST_PAGE).unwrap_or_default(),
            transaction: u64_at(bytes, TRANSACTION).unwrap_or_default(),
        };
        // The page after the last one must have a number, and an address.
        if meta.last_page < 1 || meta.last_page >= u64::MAX / (2 * u64::from(page_bytes)) {
            return Err(damage("its last page makes no sense"));
        }
        // A new file has two meta pages of transaction 0.
        if meta.transaction > 0 && meta.transaction % 2 != number {
            return Err(damage("it belongs to another transaction"));
        }
        let is_there = |tree: &Tree| tree.root.is_none_or(|root| (2..=meta.last_page).contains(&root));
        if !is_there(&meta.free) || !is_there(&meta.main) {
            return Err(damage("it names a page that is not there"));
        }
        Ok(meta)
    }

    /// Returns the least length of the file, in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        (self.last_page + 1) * self.page_bytes as u64
    }
}

/// Returns the reason why a file that begins with `start` is not LMDB's, or not one in this format.
pub(crate) fn foreign(start: &[u8]) -> Option<&'static str> {
    if u32_at(start, HEADER_LEN) != Some(MAGIC) {
        return Some("it does not begin as an LMDB file does");
    }
    (u32_at(start, HEADER_LEN + 4) != Some(VERSION))
        .then_some("it is LMDB's in another version of its format")
}

/// Returns the meta pages that are whole, the newest first.
pub(crate) fn whole(first: &[u8], second: &[u8]) -> Vec<Meta> {
    let mut metas: Vec<Meta> = [(0, first), (1, second)]
        .into_iter()
        .filter_map(|(number, bytes)| Meta::parse(number, bytes).ok())
        .collect();
    metas.sort_unstable_by_key(|meta| std::cmp::Reverse(meta.transaction));
    metas
}

/// Returns the meta page in force, of two that LMDB would accept: both must be whole, since it reads both.
pub(crate) fn newest(first: &[u8], second: &[u8]) -> Result<Meta, PageDamage> {
    let (first, second) = (Meta::parse(0, first)?, Meta::parse(1, second)?);
    if first.page_bytes != second.page_bytes {
        return Err(PageDamage { page: 1, what: "the meta pages name different page sizes" });
    }
    if first.transaction.abs_diff(second.transaction) > 1 {
        return Err(PageDamage { page: 0, what: "the meta pages are not of two commits in a row" });
    }
    Ok(if first.transaction >= second.transaction { first } else { second })
}
