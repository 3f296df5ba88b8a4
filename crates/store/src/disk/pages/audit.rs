//! Walks of whole trees, which find the owner of each page of a file.

use super::PageDamage;
use super::meta::Tree;
use super::page::{Page, Value, overflow_pages, u64_at};
use super::tree::View;

/// Pages walked so far, each of which can belong to one owner only.
pub(crate) struct Audit<'v, 'a> {
    view: &'v View<'a>,
    /// Bitmap with one bit for each page.
    owned: Vec<u64>,
}

/// Receiver of each row and each damage of a tree.
pub(crate) trait Visitor<'a> {
    fn row(&mut self, key: &'a [u8], value: Value<'a>);
    fn damage(&mut self, damage: PageDamage);
}

impl<'v, 'a> Audit<'v, 'a> {
    pub(crate) fn new(view: &'v View<'a>) -> Audit<'v, 'a> {
        let mut audit = Audit { view, owned: vec![0; view.end().div_ceil(64) as usize] };
        audit.own(0, 2);
        audit
    }

    /// Walks a tree, and skips what is damaged in it.
    pub(crate) fn walk(&mut self, tree: &Tree, visitor: &mut dyn Visitor<'a>) {
        let Some(root) = tree.root else { return };
        let mut counted = Tree { branch_pages: 0, leaf_pages: 0, overflow_pages: 0, rows: 0, ..*tree };
        let is_whole = match self.view.root(root, tree) {
            Ok(page) => self.page(tree, &page, 0, &mut counted, visitor),
            Err(damage) => {
                visitor.damage(damage);
                false
            }
        };
        if is_whole && counted != *tree {
            visitor.damage(PageDamage {
                page: root,
                what: "its tree has other numbers of pages and rows than it should",
            });
        }
    }

    /// Walks the free pages, none of which may belong to anything else.
    pub(crate) fn walk_free_pages(&mut self, visitor: &mut dyn Visitor<'a>) {
        let mut lists = FreeLists { lists: Vec::new(), visitor };
        let free = self.view.meta().free;
        self.walk(&free, &mut lists);
        let lists = lists.lists;
        for list in lists {
            let damage = |what| PageDamage { page: free.root.unwrap_or_default(), what };
            let count = u64_at(list, 0).and_then(|count| usize::try_from(count).ok());
            let pages = count.and_then(|count| list.get(8..)?.get(..count.checked_mul(8)?));
            let Some(pages) = pages else {
                visitor.damage(damage("a list of free pages below it is cut off"));
                continue;
            };
            let numbers: Vec<u64> = pages.chunks_exact(8).filter_map(|bytes| u64_at(bytes, 0)).collect();
            if !numbers.is_sorted_by(|first, second| first > second) {
                visitor.damage(damage("a list of free pages below it is not in order"));
                continue;
            }
            for number in numbers {
                if !self.own(number, 1) {
                    visitor
                        .damage(PageDamage { page: number, what: "it is free and in use, or is not there" });
                }
            }
        }
    }

    /// Returns the number of pages that belong to nothing.
    pub(crate) fn lost_pages(&self) -> u64 {
        self.view.end() - self.owned.iter().map(|word| u64::from(word.count_ones())).sum::<u64>()
    }

    /// Walks a page and all below it; returns whether all of that is whole.
    fn page(
        &mut self,
        tree: &Tree,
        page: &Page<'a>,
        level: usize,
        counted: &mut Tree,
        visitor: &mut dyn Visitor<'a>,
    ) -> bool {
        if !self.own(page.number(), 1) {
            visitor.damage(PageDamage { page: page.number(), what: "it is in two places" });
            return false;
        }
        let mut is_whole = true;
        if page.is_leaf() {
            counted.leaf_pages += 1;
            for index in 0..page.len() {
                match self.row(page, index, counted) {
                    Ok((key, value)) => visitor.row(key, value),
                    Err(damage) => {
                        is_whole = false;
                        visitor.damage(damage);
                    }
                }
            }
            return is_whole;
        }
        counted.branch_pages += 1;
        for index in 0..page.len() {
            is_whole &= match self.view.below(tree, page, index, level + 1) {
                Ok(below) => self.page(tree, &below, level + 1, counted, visitor),
                Err(damage) => {
                    visitor.damage(damage);
                    false
                }
            };
        }
        is_whole
    }

    fn row(
        &mut self,
        page: &Page<'a>,
        index: usize,
        counted: &mut Tree,
    ) -> Result<(&'a [u8], Value<'a>), PageDamage> {
        counted.rows += 1;
        let key = page.key(index)?;
        let value = page.value(index)?;
        let Value::Overflow { page: first, len } = value else { return Ok((key, value)) };
        let bytes = self.view.value(page, index)?;
        let pages = overflow_pages(len, self.view.meta().page_bytes);
        counted.overflow_pages += pages;
        if !self.own(first, pages) {
            return Err(PageDamage { page: first, what: "it is in two places" });
        }
        Ok((key, Value::Inline(bytes)))
    }

    /// Marks pages as owned; returns whether they exist and had no owner yet.
    fn own(&mut self, first: u64, pages: u64) -> bool {
        let mut was_free = true;
        for number in first..first.saturating_add(pages) {
            if number >= self.view.end() {
                return false;
            }
            let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
            was_free &= self.owned[word] & bit == 0;
            self.owned[word] |= bit;
        }
        was_free
    }
}

/// Collector of the lists of free pages.
struct FreeLists<'v, 'a> {
    lists: Vec<&'a [u8]>,
    visitor: &'v mut dyn Visitor<'a>,
}

impl<'a> Visitor<'a> for FreeLists<'_, 'a> {
    fn row(&mut self, _: &'a [u8], value: Value<'a>) {
        if let Value::Inline(list) = value {
            self.lists.push(list);
        }
    }

    fn damage(&mut self, damage: PageDamage) {
        self.visitor.damage(damage);
    }
}
