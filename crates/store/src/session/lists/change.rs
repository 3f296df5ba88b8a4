//! Changing lists.

use snugly_listpack::{Element, Needle};

use super::nodes::open;
use super::{Inserted, ListSet, Order, Popped};
use crate::entry::{Access, Entry, EntryRef};
use crate::key::Key;
use crate::session::commit::{KeySlot, Need, Precondition, Write};
use crate::session::{Expiry, Session, StoreError};
use crate::values::Kind;
use crate::values::collection::{Collection, NodeError};
use crate::values::quicklist::{End, Layout, Open, Quicklist};

/// Bytes of elements from which a push makes its nodes before it makes room for them.
const LARGE_PUSH: usize = 64 << 10;

impl Session {
    /// Adds elements at an end, one after the other; returns the new length. Where there is no list, one is
    /// created, or (if `must_exist`) nothing happens and 0 is returned.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], and errors of [`Session::set`]; the list is as before.
    pub fn list_push<'e>(
        &mut self,
        database: usize,
        key: &[u8],
        end: End,
        elements: impl Iterator<Item = &'e [u8]> + Clone,
        must_exist: bool,
    ) -> Result<u64, StoreError> {
        self.push_at(self.key(database, key), end, elements, must_exist)
    }

    /// Like [`Session::list_push`], for a key that is hashed already.
    fn push_at<'e>(
        &mut self,
        key: Key<'_>,
        end: End,
        elements: impl Iterator<Item = &'e [u8]> + Clone,
        must_exist: bool,
    ) -> Result<u64, StoreError> {
        let (mut bytes, mut count) = (0, 0);
        for element in elements.clone() {
            self.check_element(element)?;
            bytes += element.len();
            count += 1;
        }
        if bytes >= LARGE_PUSH {
            return self.join_at(key, end, elements, (bytes, count), must_exist);
        }
        let need = Need { bytes, makes: !must_exist };
        let len = self.change_list(key, need, |list, layout, open| {
            list.expect(bytes, count, layout.fill);
            elements.clone().try_for_each(|element| list.push(end, element, layout, open))?;
            Ok((true, list.len()))
        })?;
        Ok(len.unwrap_or_default())
    }

    /// Like [`Session::push_at`], for so many bytes that room is made for what they take compressed.
    fn join_at<'e>(
        &mut self,
        key: Key<'_>,
        end: End,
        elements: impl Iterator<Item = &'e [u8]>,
        (bytes, count): (usize, usize),
        must_exist: bool,
    ) -> Result<u64, StoreError> {
        let built = self.build_list(key.bytes, end, elements.map(Element::of))?;
        let need = Need { bytes: built.memory(), makes: !must_exist };
        let mut built = Some(built);
        let len = self.change_list(key, need, |list, layout, _| {
            list.expect(bytes, count, layout.fill);
            built.take().into_iter().for_each(|built| list.join(end, built, layout));
            Ok((true, list.len()))
        })?;
        Ok(len.unwrap_or_default())
    }

    /// Makes a list of elements that are added at an end, and compresses each node once it leaves that end, so that a long
    /// list takes little more meanwhile than in the end.
    fn build_list<'e>(
        &mut self,
        key: &[u8],
        end: End,
        elements: impl Iterator<Item = Element<'e>>,
    ) -> Result<Quicklist, StoreError> {
        self.follow_settings();
        let mut list = Quicklist::default();
        let layout = self.settings.lists.layout();
        for element in elements {
            element.with_bytes(|bytes| {
                self.check_element(bytes)?;
                list.expect(bytes.len(), 1, layout.fill);
                // The node at the end is never compressed.
                let _ = list.push(end, bytes, layout, &mut |_| unreachable!("the node at the end is plain"));
                Ok::<_, StoreError>(())
            })?;
            while let Some(due) = list.next_due(layout) {
                let compressed = self.compressed(key, &due);
                list.compress(due, compressed);
            }
        }
        Ok(list)
    }

    /// Takes at most `count` elements from an end and passes them to `show`, the outermost first, each with
    /// their total number. Returns whether there is a list; with its last element it is removed.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], [`StoreError::Unreadable`], and errors of [`Session::remove`].
    pub fn list_pop(
        &mut self,
        database: usize,
        key: &[u8],
        end: End,
        count: u64,
        show: impl FnMut(u64, Element<'_>),
    ) -> Result<bool, StoreError> {
        self.pop_at(self.key(database, key), end, count, show)
    }

    /// Like [`Session::list_pop`], for a key that is hashed already.
    fn pop_at(
        &mut self,
        key: Key<'_>,
        end: End,
        count: u64,
        mut show: impl FnMut(u64, Element<'_>),
    ) -> Result<bool, StoreError> {
        let popped = self.change_list(key, Need::NOTHING, |list, layout, open| {
            let total = count.min(list.len());
            list.pop(end, count, layout, open, |element| show(total, element))?;
            Ok((total > 0, ()))
        })?;
        Ok(popped.is_some())
    }

    /// Like [`Session::list_pop`], but elements whose nodes have more than `most` bytes are returned instead
    /// of shown: they are decoded when they are needed.
    ///
    /// # Errors
    /// Errors of [`Session::list_pop`], and [`StoreError::OutOfMemory`] if more of them would have to be read
    /// from disk than memory may hold; the list is as before.
    pub fn list_take(
        &mut self,
        database: usize,
        key: &[u8],
        end: End,
        count: u64,
        most: u64,
        mut show: impl FnMut(u64, Element<'_>),
    ) -> Result<Popped, StoreError> {
        let key = self.key(database, key);
        let popped = self.change_list(key, Need::NOTHING, |list, layout, open| {
            let total = count.min(list.len());
            if list.raw_bytes_at(end, total) > most {
                return Ok((false, false));
            }
            list.pop(end, total, layout, open, |element| show(total, element))?;
            Ok((total > 0, true))
        })?;
        match popped {
            None => Ok(Popped::NoList),
            Some(true) => Ok(Popped::Shown),
            Some(false) => {
                self.holding_keys(std::iter::once(key.hash), |session| session.cut_off(key, end, count))
            }
        }
    }

    /// Takes elements from an end of a list that nobody else can change meanwhile.
    fn cut_off(&mut self, key: Key<'_>, end: End, count: u64) -> Result<Popped, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let (taken, left) = match end {
            End::Left => ((0, count - 1), (count, -1)),
            End::Right => ((-count, -1), (0, -count - 1)),
        };
        let Some(value) = self.peek_at(key)? else { return Ok(Popped::NoList) };
        let elements = self.elements_in(&value, |list| list.range(taken.0, taken.1))?;
        let mut elements = elements.ok_or(StoreError::WrongType)?;
        self.trim_at(key, left.0, left.1)?;
        elements.order = Order::from(end);
        if end == End::Right {
            elements.pieces.reverse();
        }
        Ok(Popped::Given(elements))
    }

    /// Moves an element from an end of one list to an end of another, which may be the same, in one step, and
    /// shows it. Returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError::WrongType`] of either, and errors of [`Session::list_push`] and [`Session::list_pop`];
    /// both are as before.
    pub fn list_move(
        &mut self,
        database: usize,
        (from, from_end): (&[u8], End),
        (to, to_end): (&[u8], End),
        show: impl FnOnce(&[u8]),
    ) -> Result<bool, StoreError> {
        let is_same = from == to;
        let (from, to) = (self.key(database, from), self.key(database, to));
        self.holding_keys([from.hash, to.hash].into_iter(), |session| {
            let Some(source) = session.peek_at(from)? else { return Ok(false) };
            source.expect_kind(Kind::List)?;
            drop(source);
            session.peek_at(to)?.map_or(Ok(()), |target| target.expect_kind(Kind::List))?;
            let mut moved = Vec::new();
            if is_same {
                session.change_list(from, Need::NOTHING, |list, layout, open| {
                    moved.clear();
                    list.pop(from_end, 1, layout, open, |element| {
                        element.with_bytes(|bytes| moved.extend(bytes))
                    })?;
                    list.push(to_end, &moved, layout, open)?;
                    Ok((true, ()))
                })?;
            } else {
                session.element_at(from, if from_end == End::Left { 0 } else { -1 }, |element| {
                    element.with_bytes(|bytes| moved.extend(bytes));
                })?;
                session.push_at(to, to_end, std::iter::once(&moved[..]), false)?;
                session.pop_at(from, from_end, 1, |_, _| {})?;
            }
            show(&moved);
            Ok(true)
        })
    }

    /// Replaces the element at an index; negative numbers count from the end.
    ///
    /// # Errors
    /// Errors of [`Session::list_push`].
    pub fn list_set(
        &mut self,
        database: usize,
        key: &[u8],
        index: i64,
        element: &[u8],
    ) -> Result<ListSet, StoreError> {
        self.check_element(element)?;
        let need = Need { bytes: element.len(), makes: false };
        let replaced = self.change_list(self.key(database, key), need, |list, layout, open| {
            list.expect(element.len(), 0, layout.fill);
            let Some(place) = list.place(index) else { return Ok((false, ListSet::OutOfRange)) };
            list.set(place, element, layout, open)?;
            Ok((true, ListSet::Replaced))
        })?;
        Ok(replaced.unwrap_or(ListSet::NoList))
    }

    /// Inserts an element in front of the first one that is equal to `pivot`, or behind it.
    ///
    /// # Errors
    /// Errors of [`Session::list_push`].
    pub fn list_insert(
        &mut self,
        database: usize,
        key: &[u8],
        pivot: &[u8],
        behind: bool,
        element: &[u8],
    ) -> Result<Inserted, StoreError> {
        self.check_element(element)?;
        let need = Need { bytes: element.len(), makes: false };
        let inserted = self.change_list(self.key(database, key), need, |list, layout, open| {
            list.expect(element.len(), 1, layout.fill);
            let Some(place) = list.find(&Needle::new(pivot), open)? else {
                return Ok((false, Inserted::NoPivot));
            };
            list.insert(place + u64::from(behind), element, layout, open)?;
            Ok((true, Inserted::Of(list.len())))
        })?;
        Ok(inserted.unwrap_or(Inserted::NoList))
    }

    /// Removes elements that are equal to one: `count` of them from the front, or if it is negative from the
    /// end, or all if it is
    /// 0. Returns the number removed.
    ///
    /// # Errors
    /// Errors of [`Session::list_pop`].
    pub fn list_remove(
        &mut self,
        database: usize,
        key: &[u8],
        count: i64,
        element: &[u8],
    ) -> Result<u64, StoreError> {
        let from = if count < 0 { End::Right } else { End::Left };
        let limit = if count == 0 { u64::MAX } else { count.unsigned_abs() };
        let (key, needle) = (self.key(database, key), Needle::new(element));
        // Before the key is held, since nothing is waited for then.
        self.wait_for_the_disk()?;
        self.holding_keys(std::iter::once(key.hash), |session| {
            let (mut total, mut next) = (0, Some(0));
            // Nodes that have changed are compressed in between.
            while let Some(skipped) = next {
                let removed = session.change_list(key, Need::NOTHING, |list, layout, open| {
                    let left = limit - total;
                    let removed = list.remove_matching(&needle, left, (from, skipped), layout, open)?;
                    Ok((removed.count > 0, removed))
                })?;
                let Some(removed) = removed else { break };
                (total, next) = (total + removed.count, removed.next);
            }
            Ok(total)
        })
    }

    /// Removes all elements but those of a range, both ends included; negative numbers count from the end.
    ///
    /// # Errors
    /// Errors of [`Session::list_pop`].
    pub fn list_trim(
        &mut self,
        database: usize,
        key: &[u8],
        start: i64,
        stop: i64,
    ) -> Result<(), StoreError> {
        self.trim_at(self.key(database, key), start, stop)
    }

    /// Like [`Session::list_trim`], for a key that is hashed already.
    fn trim_at(&mut self, key: Key<'_>, start: i64, stop: i64) -> Result<(), StoreError> {
        self.change_list(key, Need::NOTHING, |list, layout, open| {
            list.trim(list.range(start, stop), layout, open)?;
            Ok((true, ()))
        })?;
        Ok(())
    }

    /// Replaces whatever a key has by a list of these elements; without any, the key is removed.
    ///
    /// # Errors
    /// Errors of [`Session::set`]; the key is as before.
    pub fn list_write<'e>(
        &mut self,
        database: usize,
        key: &[u8],
        elements: impl Iterator<Item = Element<'e>>,
        expiry: Expiry,
    ) -> Result<(), StoreError> {
        let list = self.build_list(key, End::Right, elements)?;
        if list.is_empty() {
            self.delete(database, key)?;
            return Ok(());
        }
        self.put_list(database, key, list, expiry)
    }

    fn put_list(
        &mut self,
        database: usize,
        key: &[u8],
        mut list: Quicklist,
        expiry: Expiry,
    ) -> Result<(), StoreError> {
        let due = list.next_due(self.settings.lists.layout());
        let list = Collection::of_list(list);
        let at = if let Expiry::At(at) = expiry { Some(at) } else { None };
        let key = self.key(database, key);
        let write = Write { precondition: Precondition::Nothing, expiry, freed: 0 };
        self.commit(key, write, |session| {
            let access = Access::written(session.now());
            Ok::<_, StoreError>(Entry::of_collection(key.bytes, list.clone(), at, access))
        })?;
        self.compress_nodes(key, &list, due);
        Ok(())
    }

    /// Changes a list under its lock, and then compresses the nodes that are due. The change returns whether
    /// there was a list, and its result.
    fn change_list<R>(
        &mut self,
        key: Key<'_>,
        need: Need,
        mut change: impl FnMut(&mut Quicklist, Layout, Open<'_>) -> Result<(bool, R), NodeError>,
    ) -> Result<Option<R>, StoreError> {
        if !self.prepare(key, need)? {
            return Ok(None);
        }
        let layout = self.settings.lists.layout();
        let unreadable = |error: NodeError| error.of(key.bytes);
        let store = self.store.clone();
        let terms = self.lookup_context();
        let mut place = KeySlot::new(&store, store.resolve(key, terms)?, key);
        let Some(entry) = place.entry() else {
            if !need.makes {
                return Ok(None);
            }
            let mut list = Quicklist::default();
            let (_, result) = change(&mut list, layout, &mut |_| unreachable!("a new node is plain"))
                .map_err(unreadable)?;
            if !list.is_empty() {
                let due = list.next_due(layout);
                let list = Collection::of_list(list);
                place.put(Entry::of_collection(key.bytes, list.clone(), None, Access::written(terms.now)));
                let left = place.leave();
                self.finish(left);
                self.compress_nodes(key, &list, due);
            }
            return Ok(Some(result));
        };
        self.note_use(entry, terms.now);
        let (decoder, known) = (&mut self.decoder, &self.dictionaries);
        let changed = place.with_collection(|collection| {
            let list = collection.list()?;
            let outcome = change(list, layout, &mut |node| open(decoder, known, &store, node));
            Some((outcome, list.is_empty(), list.next_due(layout), list.take_newly_edited()))
        });
        let Some((outcome, is_empty, due, edited)) = changed.flatten() else {
            return Err(StoreError::WrongType);
        };
        let needs_handle = due.is_some() || !edited.is_empty();
        let list = place.entry().filter(|_| needs_handle).and_then(EntryRef::collection_handle);
        if is_empty {
            place.remove();
        } else if !matches!(outcome, Ok((false, _))) {
            place.changed();
        }
        let left = place.leave();
        self.finish(left);
        if let Some(list) = list {
            self.compress_nodes(key, &list, due);
            self.let_wait(key, &list, edited);
        }
        // A node stays decoded only if there is room for it.
        self.compress_for_room(0);
        outcome.map(|(_, result)| Some(result)).map_err(unreadable)
    }

    fn check_element(&self, element: &[u8]) -> Result<(), StoreError> {
        let limit = self.settings.max_value_len;
        if element.len() > limit {
            return Err(StoreError::ValueTooLong { len: element.len(), limit });
        }
        Ok(())
    }
}
