//! Looking at lists.

use std::collections::BTreeSet;
use std::ops::Range;

use snugly_listpack::{Element, Needle, View};

use super::nodes::{MAX_NODE_LEN, record_of};
use super::{Elements, KeptElements, Order, Search};
use crate::entry::EntryRef;
use crate::key::Key;
use crate::session::{Session, StoreError, Value};
use crate::values::collection::NodeError;
use crate::values::quicklist::Quicklist;
use crate::values::quicklist::node::Content;
use crate::values::quicklist::reading::Piece;

/// Shows elements of a node.
fn show_range(node: View<'_>, range: &Range<usize>, order: Order, show: impl FnMut(Element<'_>)) {
    match order {
        Order::Forwards => node.iter_from(range.start).take(range.len()).for_each(show),
        Order::Backwards => {
            let behind = node.len().saturating_sub(range.end);
            node.iter().rev().skip(behind).take(range.len()).for_each(show);
        }
    }
}

/// Returns the pieces of a list that have a range of its elements; `None` if the value is not a list.
fn pieces_of(value: &Value, range: impl Fn(&Quicklist) -> Range<u64>) -> Option<Vec<Piece>> {
    let list = value.0.borrow().collection()?.list()?;
    Some(list.pieces(range(&list)))
}

/// Attempts to read a list whose nodes are gone from disk because it has changed.
const TRIES: u32 = 16;

impl Session {
    /// Returns the number of elements of a list; 0 if there is none.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], and errors of [`Session::touch`].
    pub fn list_len(&mut self, database: usize, key: &[u8]) -> Result<u64, StoreError> {
        Ok(self.with_list(self.key(database, key), Quicklist::len)?.unwrap_or_default())
    }

    /// Bytes that the nodes of a list have together before they are compressed; 0 if there is none.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], and as [`Session::touch`].
    pub fn list_raw_bytes(&mut self, database: usize, key: &[u8]) -> Result<u64, StoreError> {
        Ok(self.with_list(self.key(database, key), Quicklist::raw_bytes)?.unwrap_or_default())
    }

    /// Returns the elements of a range, both ends included; negative numbers count from the end. `None` if
    /// there is no list.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], [`StoreError::OutOfMemory`] if more of them would have to be read from disk
    /// than memory may hold, and errors of [`Session::touch`].
    pub fn list_range(
        &mut self,
        database: usize,
        key: &[u8],
        start: i64,
        stop: i64,
    ) -> Result<Option<Elements>, StoreError> {
        let key = self.key(database, key);
        for _ in 0..TRIES {
            let pieces = self.with_list(key, |list| list.pieces(list.range(start, stop)))?;
            let Some(pieces) = pieces else { return Ok(None) };
            let fetched = self.fetch(Some(key), pieces);
            if let Some(pieces) = fetched.map_err(|error| self.node_error(error, key.bytes))? {
                return Ok(Some(Elements { key: key.bytes.into(), pieces, order: Order::Forwards }));
            }
        }
        // A node that is missing although the list has not changed is lost.
        Err(NodeError::Damaged.of(key.bytes))
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
        self.element_at(self.key(database, key), index, show)
    }

    /// Like [`Session::list_get`], for a key that is hashed already.
    pub(super) fn element_at<R>(
        &mut self,
        key: Key<'_>,
        index: i64,
        show: impl FnOnce(Element<'_>) -> R,
    ) -> Result<Option<R>, StoreError> {
        let piece_at = |list: &Quicklist| list.place(index).and_then(|place| list.piece_at(place));
        let unreadable = |error: NodeError| error.of(key.bytes);
        for _ in 0..TRIES {
            let found = self.with_list(key, piece_at)?.flatten();
            let Some(Piece { source, elements }) = found else { return Ok(None) };
            if let Some(content) = self.fetch_node(Some(key), source).map_err(unreadable)? {
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
            self.with_node(content, |node| show_range(node, range, elements.order, &mut show))
                .map_err(|source| StoreError::Unreadable { key: elements.key.to_vec(), source })?;
        }
        Ok(())
    }

    /// Makes elements ready to be shown later with [`Session::next_elements`], by any session.
    pub fn keep_elements(&mut self, elements: Elements) -> KeptElements {
        let numbers: BTreeSet<u32> =
            elements.pieces.iter().filter_map(|(content, _)| content.dictionary()).collect();
        let dictionaries = numbers.into_iter().filter_map(|number| Some((number, self.dictionary(number)?)));
        KeptElements {
            key: elements.key,
            order: elements.order,
            dictionaries: dictionaries.collect(),
            pieces: elements.pieces.into(),
        }
    }

    /// Passes the elements of the next node, in their order, to `show`; returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`]; none was shown then.
    pub fn next_elements(
        &mut self,
        kept: &mut KeptElements,
        mut show: impl FnMut(Element<'_>),
    ) -> Result<bool, StoreError> {
        let Some((content, range)) = kept.pieces.pop_front() else { return Ok(false) };
        let mut show = |node: View<'_>| show_range(node, &range, kept.order, &mut show);
        let node = match &content {
            Content::Plain(listpack) => {
                show(listpack.view());
                return Ok(true);
            }
            Content::Compressed(compressed) => compressed.borrow(),
        };
        // The node is read once and in order, so it is not cached.
        let mut bytes = Vec::new();
        let record = record_of(node);
        let find = |number: u32| kept.dictionaries.get(&number).map(|dictionary| &**dictionary);
        self.decoder
            .decode_with(&record, &find, MAX_NODE_LEN, &mut bytes)
            .map_err(|source| StoreError::Unreadable { key: kept.key.to_vec(), source })?;
        show(View::of_known(&bytes));
        Ok(true)
    }

    /// All elements of a list that was looked up; `None` if it is none.
    ///
    /// # Errors
    /// [`StoreError::OutOfMemory`] if more of them would have to be read from disk than memory may hold,
    /// [`StoreError::Damaged`] and [`StoreError::Disk`] if a node cannot be read from disk.
    pub fn elements_of(&mut self, value: &Value) -> Result<Option<Elements>, StoreError> {
        self.elements_in(value, |list| 0..list.len())
    }

    /// Like [`Session::elements_of`], for a range.
    pub(super) fn elements_in(
        &mut self,
        value: &Value,
        range: impl Fn(&Quicklist) -> Range<u64>,
    ) -> Result<Option<Elements>, StoreError> {
        let key = value.key();
        for _ in 0..TRIES {
            let Some(pieces) = pieces_of(value, &range) else { return Ok(None) };
            let fetched = self.fetch(None, pieces);
            if let Some(pieces) = fetched.map_err(|error| self.node_error(error, key))? {
                return Ok(Some(Elements { key: key.into(), pieces, order: Order::Forwards }));
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

    /// Returns the positions of elements that are equal to one. `None` if there is no list.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], [`StoreError::Unreadable`], and errors of [`Session::touch`].
    pub fn list_positions(
        &mut self,
        database: usize,
        key: &[u8],
        element: &[u8],
        search: Search,
    ) -> Result<Option<Vec<u64>>, StoreError> {
        let key = self.key(database, key);
        for _ in 0..TRIES {
            let found = self.with_list(key, |list| {
                let (len, looked_at) = (list.len(), search.looked_at(list.len()));
                let range = if search.rank < 0 { len - looked_at..len } else { 0..looked_at };
                (range.clone(), list.pieces(range))
            })?;
            let Some((range, pieces)) = found else { return Ok(None) };
            let places = self.places(key, &Needle::new(element), search, range, pieces);
            if let Some(places) = places.map_err(|error| error.of(key.bytes))? {
                return Ok(Some(places));
            }
        }
        Err(NodeError::Damaged.of(key.bytes))
    }

    /// Searches for elements node by node, and in no more nodes than needed; `None` says that the list has
    /// changed meanwhile.
    fn places(
        &mut self,
        key: Key<'_>,
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
            let Some(content) = self.fetch_node(Some(key), source)? else { return Ok(None) };
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
        key: Key<'_>,
        show: impl Fn(&Quicklist) -> R,
    ) -> Result<Option<R>, StoreError> {
        self.follow_settings();
        let now = self.now();
        let found = self.look(key, |session, entry: EntryRef<'_>| {
            let list = entry.collection()?.list()?;
            session.note_use(entry, now);
            Some(show(&list))
        })?;
        self.count_lookup(key.database, key.bytes, found.is_some());
        match found {
            Some(None) => Err(StoreError::WrongType),
            found => Ok(found.flatten()),
        }
    }
}
