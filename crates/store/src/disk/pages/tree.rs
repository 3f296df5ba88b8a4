//! Lookup and listing of a tree's rows, page by page.

use std::collections::{HashMap, HashSet};

use super::meta::{MOST_LEVELS, Meta, Tree};
use super::page::{Order, Page, Value, overflow_pages, overflow_value};
use super::{IsNew, PageDamage, Pages};

/// One state of all trees, as a transaction left it. The reader must keep its pages from being reused.
pub(crate) struct View<'a> {
    pages: &'a Pages,
    meta: Meta,
}

/// Pages that a transaction has merged with others.
#[derive(Default)]
pub(crate) struct Merged {
    pages: HashSet<u64>,
    /// Number of merges.
    count: u32,
    /// Leaves whose neighbours have been verified, and the number of merges at that time.
    looked_at: HashMap<u64, u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Path from a tree's root to a row.
#[derive(Clone)]
struct Path {
    /// Page of each level, and the index in it.
    steps: [(u64, usize); MOST_LEVELS],
    len: usize,
}

impl<'a> View<'a> {
    pub(crate) fn of(pages: &'a Pages, meta: Meta) -> View<'a> {
        View { pages, meta }
    }

    /// Returns the state that the transaction of this number left, unless others have followed.
    pub(crate) fn of_transaction(pages: &'a Pages, number: u64) -> Option<View<'a>> {
        pages.of_transaction(number).map(|meta| View { pages, meta })
    }

    /// Returns the number of pages of the file: fewer than it says where it was truncated.
    pub(super) fn end(&self) -> u64 {
        (self.meta.last_page + 1).min(self.pages.mapped())
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns a table by its name; an empty tree if there is none.
    pub(crate) fn table(&self, name: &str) -> Result<Tree, PageDamage> {
        Ok(self.existing_table(name)?.unwrap_or(Tree::empty(Order::Bytes)))
    }

    /// Returns a table by its name, if there is one.
    pub(crate) fn existing_table(&self, name: &str) -> Result<Option<Tree>, PageDamage> {
        let Some(path) = self.path(&self.meta.main, name.as_bytes())? else { return Ok(None) };
        let (number, index) = path.last();
        let page = self.pages.page(number, self.end(), Order::Bytes)?.0;
        if index >= page.len() || page.key(index)? != name.as_bytes() {
            return Ok(None);
        }
        match page.value(index)? {
            Value::Tree(bytes) => Tree::parse(bytes, Order::Bytes, number).map(Some),
            _ => Err(PageDamage { page: number, what: "a table is described by something else" }),
        }
    }

    pub(crate) fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<&'a [u8]>, PageDamage> {
        let Some(path) = self.path(tree, key)? else { return Ok(None) };
        let (number, index) = path.last();
        let page = self.pages.page(number, self.end(), tree.order)?.0;
        if index >= page.len() || page.key(index)? != key {
            return Ok(None);
        }
        self.value(&page, index).map(Some)
    }

    /// Passes rows to `show` in order, from this key on, until it returns false.
    pub(crate) fn scan(
        &self,
        tree: &Tree,
        from: &[u8],
        show: &mut dyn FnMut(&'a [u8], &'a [u8]) -> bool,
    ) -> Result<(), PageDamage> {
        let Some(mut path) = self.path(tree, from)? else { return Ok(()) };
        loop {
            let (number, first) = path.last();
            let page = self.pages.page(number, self.end(), tree.order)?.0;
            for index in first..page.len() {
                if !show(page.key(index)?, self.value(&page, index)?) {
                    return Ok(());
                }
            }
            if !self.step(tree, &mut path, Side::Right)? {
                return Ok(());
            }
        }
    }

    /// Verifies all pages that LMDB may read when it writes a row of this key: those on the path to it, and
    /// those of its existing value.
    pub(crate) fn verify_way(&self, tree: &Tree, key: &[u8]) -> Result<(), PageDamage> {
        self.get(tree, key).map(drop)
    }

    /// Like [`View::verify_way`], for a row that is removed: LMDB may merge each page on the path with a
    /// neighbour. A page's contents may have been merged before, so the neighbour is the one behind all
    /// merged pages.
    pub(crate) fn verify_removal(
        &self,
        tree: &Tree,
        key: &[u8],
        merged: &mut Merged,
    ) -> Result<(), PageDamage> {
        let Some(path) = self.path(tree, key)? else { return Ok(()) };
        self.get(tree, key)?;
        let leaf = path.last().0;
        if merged.looked_at.get(&leaf) == Some(&merged.count) {
            return Ok(());
        }
        for level in 1..path.len {
            for side in [Side::Left, Side::Right] {
                let mut at = path.clone();
                at.len = level + 1;
                while self.step(tree, &mut at, side)? && merged.pages.contains(&at.last().0) {}
            }
        }
        merged.looked_at.insert(leaf, merged.count);
        Ok(())
    }

    /// Notes that the removal of this row has merged pages on the path to it with neighbours.
    pub(crate) fn note_merger(&self, tree: &Tree, key: &[u8], merged: &mut Merged) -> Result<(), PageDamage> {
        let Some(path) = self.path(tree, key)? else { return Ok(()) };
        merged.count += 1;
        for level in 1..path.len {
            merged.pages.insert(path.steps[level].0);
            for side in [Side::Left, Side::Right] {
                let mut at = path.clone();
                at.len = level + 1;
                while self.step(tree, &mut at, side)? && !merged.pages.insert(at.last().0) {}
            }
        }
        Ok(())
    }

    /// Returns the last key of the leaf that this key belongs to; `None` in an empty tree.
    pub(crate) fn last_key(&self, tree: &Tree, key: &[u8]) -> Result<Option<&'a [u8]>, PageDamage> {
        let Some(path) = self.path(tree, key)? else { return Ok(None) };
        let leaf = self.pages.page(path.last().0, self.end(), tree.order)?.0;
        leaf.key(leaf.len() - 1).map(Some)
    }

    /// Verifies the leaf behind the one that this key belongs to, if there is one.
    pub(crate) fn verify_next(&self, tree: &Tree, key: &[u8]) -> Result<(), PageDamage> {
        match self.path(tree, key)? {
            Some(mut path) => self.step(tree, &mut path, Side::Right).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the path to the first row whose key is not below this one, or to the end of the leaf where it
    /// would be.
    fn path(&self, tree: &Tree, key: &[u8]) -> Result<Option<Path>, PageDamage> {
        let Some(root) = tree.root else { return Ok(None) };
        let mut path = Path { steps: [(0, 0); MOST_LEVELS], len: 0 };
        let mut page = self.root(root, tree)?;
        loop {
            let index = page.find(key)?;
            path.push(page.number(), index);
            if page.is_leaf() {
                return Ok(Some(path));
            }
            page = self.below(tree, &page, index, path.len)?;
        }
    }

    /// Moves to the next page on the level on which the path ends, and to its near end; returns whether there
    /// is one.
    fn step(&self, tree: &Tree, path: &mut Path, side: Side) -> Result<bool, PageDamage> {
        let level = path.len;
        path.len -= 1;
        while path.len > 0 {
            let (number, index) = path.last();
            let branch = self.pages.page(number, self.end(), tree.order)?.0;
            let next = match side {
                Side::Left => index.checked_sub(1),
                Side::Right => (index + 1 < branch.len()).then_some(index + 1),
            };
            let Some(next) = next else {
                path.len -= 1;
                continue;
            };
            path.steps[path.len - 1].1 = next;
            let mut page = self.below(tree, &branch, next, path.len)?;
            loop {
                let index = if side == Side::Left { page.len() - 1 } else { 0 };
                path.push(page.number(), index);
                if path.len == level {
                    return Ok(true);
                }
                page = self.below(tree, &page, index, path.len)?;
            }
        }
        Ok(false)
    }

    pub(super) fn root(&self, number: u64, tree: &Tree) -> Result<Page<'a>, PageDamage> {
        let (page, IsNew(is_new)) = self.pages.page(number, self.end(), tree.order)?;
        if page.is_leaf() != (tree.levels == 1) {
            return Err(PageDamage { page: number, what: "it is on the wrong level of its tree" });
        }
        if is_new {
            self.pages.note_verified(number);
        }
        Ok(page)
    }

    /// Returns a child of a branch, on this level below the root, with the keys that the branch says.
    pub(super) fn below(
        &self,
        tree: &Tree,
        branch: &Page<'_>,
        index: usize,
        level: usize,
    ) -> Result<Page<'a>, PageDamage> {
        let number = branch.child(index)?;
        let is_leaf = level + 1 == tree.levels;
        let (page, IsNew(is_new)) = self.pages.page(number, self.end(), tree.order)?;
        let damage = |what| PageDamage { page: number, what };
        if page.is_leaf() != is_leaf {
            return Err(damage("it is on the wrong level of its tree"));
        }
        if is_new {
            // The first key of a branch is not compared, and may be empty.
            let first = usize::from(!is_leaf);
            for end in [first, page.len() - 1].into_iter().filter(|end| (first..page.len()).contains(end)) {
                let key = page.key(end)?;
                let is_before = index > 0 && tree.order.is_before(key, branch.key(index)?);
                let is_behind =
                    index + 1 < branch.len() && !tree.order.is_before(key, branch.key(index + 1)?);
                if is_before || is_behind {
                    return Err(damage("it has keys that belong to another page"));
                }
            }
            self.pages.note_verified(number);
        }
        Ok(page)
    }

    pub(super) fn value(&self, page: &Page<'a>, index: usize) -> Result<&'a [u8], PageDamage> {
        match page.value(index)? {
            Value::Inline(value) => Ok(value),
            Value::Tree(_) => Err(PageDamage { page: page.number(), what: "a row of a table is a table" }),
            Value::Overflow { page: first, len } => {
                let pages = overflow_pages(len, self.pages.page_bytes);
                if first < 2 || first.checked_add(pages).is_none_or(|end| end > self.end()) {
                    return Err(PageDamage {
                        page: page.number(),
                        what: "it names a page that is not there",
                    });
                }
                overflow_value(self.pages.bytes(first, pages)?, first, pages, len)
            }
        }
    }
}

impl Path {
    fn push(&mut self, page: u64, index: usize) {
        self.steps[self.len] = (page, index);
        self.len += 1;
    }

    fn last(&self) -> (u64, usize) {
        self.steps[self.len - 1]
    }
}
