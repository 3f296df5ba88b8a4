//! Looking at lists.

use std::ops::Range;

use snugly_listpack::{Element, Needle};

use super::{Elements, Search};
use crate::memory::entry::EntryRef;
use crate::quicklist::reading::Piece;
use crate::quicklist::{NodeError, Quicklist};
use crate::session::{Session, StoreError, Value};

/// How often a list is looked at again whose nodes are gone from disk because it has changed.
const TRIES: u32 = 16;

impl Session {
    /// How many elements a list has; 0 if there is none.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], and as [`Session::touch`].
    pub fn list_len(&mut self, database: usize, key: &[u8]) -> Result<u64, StoreError> {
        Ok(self.with_list(database, key, Quicklist::len)?.unwrap_or_default())
    }

    /// The elements of a range, both ends included; negative numbers count from the end. `None` if there is no list.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], and as [`Session::touch`].
    pub fn list_range(
        &mut self,
        database: usize,
        key: &[u8],
        start: i64,
        stop: i64,
    ) -> Result<Option<Elements>, StoreError> {
        for _ in 0..TRIES {
            let pieces = self.with_list(database, key, |list| list.pieces(list.range(start, stop)))?;
            let Some(pieces) = pieces else { return Ok(None) };
            if let Some(pieces) = self.fetch(Some(database), key, pieces).map_err(|error| error.of(key))? {
                return Ok(Some(Elements { key: key.into(), pieces }));
            }
        }
        // What is not there although nobody has changed the list is lost.
        Err(NodeError::Damaged.of(key))
    }

    /// One element; negative numbers count from the end. `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], [`StoreError::Unreadable`], and as [`Session::touch`].
    pub fn list_get<R>(
        &mut self,
        database: usize,
        key: &[u8],
        index: i64,
        show: impl FnOnce(Element<'_>) -> R,
    ) -> Result<Option<R>, StoreError> {
        let piece_at = |list: &Quicklist| list.place(index).and_then(|place| list.piece_at(place));
        let unreadable = |error: NodeError| error.of(key);
        for _ in 0..TRIES {
            let found = self.with_list(database, key, piece_at)?.flatten();
            let Some(Piece { source, elements }) = found else { return Ok(None) };
            if let Some(content) = self.fetch_node(Some(database), key, source).map_err(unreadable)? {
                let shown = self.with_node(&content, |node| node.get(elements.start).map(show));
                return shown.map_err(|error| unreadable(error.into()));
            }
        }
        Err(unreadable(NodeError::Damaged))
    }

    /// Shows elements, in their order.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`]; some were shown then.
    pub fn show(&mut self, elements: &Elements, mut show: impl FnMut(Element<'_>)) -> Result<(), StoreError> {
        for (content, range) in &elements.pieces {
            self.with_node(content, |node| node.iter_from(range.start).take(range.len()).for_each(&mut show))
                .map_err(|source| StoreError::Unreadable { key: elements.key.to_vec(), source })?;
        }
        Ok(())
    }

    /// All elements of a list that was looked up; `None` if it is none.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] and [`StoreError::Disk`] if a node cannot be read from disk.
    pub fn elements_of(&mut self, value: &Value) -> Result<Option<Elements>, StoreError> {
        let Some(list) = value.0.borrow().list() else { return Ok(None) };
        let key = value.key();
        for _ in 0..TRIES {
            let pieces = {
                let list = list.lock();
                list.pieces(0..list.len())
            };
            if let Some(pieces) = self.fetch(None, key, pieces).map_err(|error| error.of(key))? {
                return Ok(Some(Elements { key: key.into(), pieces }));
            }
        }
        Err(NodeError::Damaged.of(key))
    }

    /// Shows the nodes that have these elements, as the bytes of listpacks: for all elements of a list, all its nodes.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`]; some were shown then.
    pub fn show_nodes(&mut self, elements: &Elements, mut show: impl FnMut(&[u8])) -> Result<(), StoreError> {
        for (content, _) in &elements.pieces {
            self.with_node(content, |node| show(node.as_bytes()))
                .map_err(|source| StoreError::Unreadable { key: elements.key.to_vec(), source })?;
        }
        Ok(())
    }

    /// The places of elements that are equal to one. `None` if there is no list.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], [`StoreError::Unreadable`], and as [`Session::touch`].
    pub fn list_positions(
        &mut self,
        database: usize,
        key: &[u8],
        element: &[u8],
        search: Search,
    ) -> Result<Option<Vec<u64>>, StoreError> {
        for _ in 0..TRIES {
            let found = self.with_list(database, key, |list| {
                let (len, looked_at) = (list.len(), search.looked_at(list.len()));
                let range = if search.rank < 0 { len - looked_at..len } else { 0..looked_at };
                (range.clone(), list.pieces(range))
            })?;
            let Some((range, pieces)) = found else { return Ok(None) };
            let places = self.places(database, key, &Needle::new(element), search, range, pieces);
            if let Some(places) = places.map_err(|error| error.of(key))? {
                return Ok(Some(places));
            }
        }
        Err(NodeError::Damaged.of(key))
    }

    /// Looks for elements node by node, and at no more nodes than it takes; `None` says that the list has changed meanwhile.
    fn places(
        &mut self,
        database: usize,
        key: &[u8],
        needle: &Needle<'_>,
        search: Search,
        range: Range<u64>,
        mut pieces: Vec<Piece>,
    ) -> Result<Option<Vec<u64>>, NodeError> {
        let is_backwards = search.rank < 0;
        if is_backwards {
            pieces.reverse();
        }
        let (mut places, mut skipped) = (Vec::new(), search.rank.unsigned_abs() - 1);
        let mut note = |place: u64| {
            if skipped > 0 {
                skipped -= 1;
                return false;
            }
            places.push(place);
            places.len() as u64 == search.count
        };
        let mut at = if is_backwards { range.end } else { range.start };
        for Piece { source, elements } in pieces {
            let Some(content) = self.fetch_node(Some(database), key, source)? else { return Ok(None) };
            let is_done = self.with_node(&content, |node| {
                let mut note_match = |(place, element)| needle.is(element) && note(place);
                if is_backwards {
                    let behind = node.len().saturating_sub(elements.end);
                    let backwards = node.iter().rev().skip(behind).take(elements.len());
                    (0..at).rev().zip(backwards).any(&mut note_match)
                } else {
                    (at..).zip(node.iter_from(elements.start).take(elements.len())).any(&mut note_match)
                }
            })?;
            if is_done {
                break;
            }
            let looked_at = elements.len() as u64;
            at = if is_backwards { at - looked_at } else { at + looked_at };
        }
        Ok(Some(places))
    }

    /// Shows a list as it is, under its lock.
    fn with_list<R>(
        &mut self,
        database: usize,
        key: &[u8],
        show: impl Fn(&Quicklist) -> R,
    ) -> Result<Option<R>, StoreError> {
        self.follow_settings();
        let now = self.now();
        let found = self.look(database, key, |session, entry: EntryRef<'_>| {
            let list = entry.list()?;
            session.note_use(entry, now);
            Some(show(&list.lock()))
        })?;
        self.count_lookup(found.is_some());
        match found {
            Some(None) => Err(StoreError::WrongType),
            found => Ok(found.flatten()),
        }
    }
}
