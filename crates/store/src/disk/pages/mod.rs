//! LMDB's file, read with bounds of its own.
//!
//! LMDB trusts its pages, and crashes on a damaged one. Here nothing is trusted before it has been verified,
//! so that damage is an error that names the page. Reads are served through this module, LMDB may write only
//! to verified pages, and offline work (check, repair) needs no LMDB at all.
//!
//! - [`meta`]: the two pages that locate the trees
//! - [`page`]: one page of a tree
//! - [`tree`]: finding and listing the rows of a tree
//! - [`audit`]: the whole file, and the owner of each page
//!
//! It knows the format of LMDB's file (`MDB_meta`, `MDB_page`, `MDB_node` and `MDB_db` in LMDB's mdb.c, data
//! format 1, on little-endian machines with 64 bits), and must not know what rows mean.

pub(super) mod audit;
pub(super) mod meta;
pub(super) mod page;
pub(super) mod tree;

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::{Mmap, MmapOptions};
use thiserror::Error;

use meta::Meta;
use page::{Order, Page};

/// Damage of a page.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("page {page} of the data file is damaged: {what}")]
pub(crate) struct PageDamage {
    pub(crate) page: u64,
    pub(crate) what: &'static str,
}

/// A file's pages, and which of them have been verified.
pub(crate) struct Pages {
    map: Mmap,
    page_bytes: usize,
    /// Number of pages when the file was opened; pages behind them have been written since.
    found: u64,
    /// Bitmap with one bit for each of these.
    verified: Vec<AtomicU64>,
}

impl Pages {
    /// Maps a file with these meta pages, as far as it can ever be used.
    ///
    /// # Safety
    /// As for any memory map: nobody may truncate the file while it is mapped, nor change pages that are
    /// being read; and it must have all pages up to the last one that a meta page names, or all that are
    /// mapped.
    pub(super) unsafe fn map(file: &File, map_bytes: usize, metas: &[Meta]) -> io::Result<Pages> {
        // SAFETY: the caller's promise.
        let map = unsafe { MmapOptions::new().len(map_bytes).map(file) }?;
        #[cfg(unix)]
        map.advise(memmap2::Advice::Random)?;
        let page_bytes = metas.first().map_or(0, |meta| meta.page_bytes);
        let pages = Pages { map, page_bytes, found: 0, verified: Vec::new() };
        let found = metas.iter().map(|meta| meta.last_page + 1).max().unwrap_or_default();
        let found = found.min(pages.mapped());
        let verified = (0..found.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Pages { found, verified, ..pages })
    }

    /// Returns the meta page of a transaction, unless the next but one has begun to overwrite it.
    fn of_transaction(&self, number: u64) -> Option<Meta> {
        let read = || Meta::parse(number % 2, self.bytes(number % 2, 1)?);
        let meta = read().ok()?;
        // A page that is being written changes between two reads.
        fence(Ordering::SeqCst);
        (meta.transaction == number && read() == Ok(meta)).then_some(meta)
    }

    /// Returns the number of mapped pages.
    fn mapped(&self) -> u64 {
        (self.map.len() / self.page_bytes.max(1)) as u64
    }

    fn bytes(&self, page: u64, pages: u64) -> Result<&[u8], PageDamage> {
        let at = |page: u64| usize::try_from(page).ok()?.checked_mul(self.page_bytes);
        let range = at(page).zip(page.checked_add(pages).and_then(at));
        range
            .and_then(|(start, end)| self.map.get(start..end))
            .ok_or(PageDamage { page, what: "it is behind the end of the file" })
    }

    /// Returns a page of a tree, verified at its first use.
    fn page(&self, number: u64, pages: u64, order: Order) -> Result<(Page<'_>, IsNew), PageDamage> {
        if !(2..pages).contains(&number) {
            return Err(PageDamage { page: number, what: "there is no such page" });
        }
        let bytes = self.bytes(number, 1)?;
        let is_new = number < self.found && !self.is_verified(number);
        let page = if is_new { Page::verify(bytes, number, pages, order)? } else { Page::of(bytes, number)? };
        Ok((page, IsNew(is_new)))
    }

    fn is_verified(&self, number: u64) -> bool {
        let word = self.verified.get((number / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (number % 64)) != 0)
    }

    fn note_verified(&self, number: u64) {
        if let Some(word) = self.verified.get((number / 64) as usize) {
            word.fetch_or(1 << (number % 64), Ordering::Relaxed);
        }
    }
}

/// Whether a page is used for the first time.
struct IsNew(bool);
