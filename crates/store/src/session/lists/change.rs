//! Changing lists.

use snugly_listpack::{Element, Needle};

use super::nodes::open;
use super::{Inserted, ListSet};
use crate::memory::entry::{Access, Entry};
use crate::quicklist::{End, Layout, List, NodeError, Open, Quicklist};
use crate::session::{Expiry, Session, StoreError};
use crate::tiers::Terms;

/// What a change needs, and whether it makes a list where there is none.
struct Need {
    /// Bytes of the elements that are added.
    bytes: usize,
    /// Whether there is a list afterwards in any case.
    makes: bool,
}

impl Need {
    const NOTHING: Need = Need { bytes: 0, makes: false };
}

impl Session {
    /// Adds elements at an end, one after the other; gives how many there are then. Where there is no list, one is made,
    /// or (if `must_exist`) nothing happens and 0 is given.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], and as [`Session::set`]; the list is as before.
    pub fn list_push<'e>(
        &mut self,
        database: usize,
        key: &[u8],
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
        let need = Need { bytes, makes: !must_exist };
        let len = self.change_list(database, key, need, |list, layout, open| {
            list.expect(bytes, count, layout.fill);
            elements.clone().try_for_each(|element| list.push(end, element, layout, open))?;
            Ok((true, list.len()))
        })?;
        Ok(len.unwrap_or_default())
    }

    /// Takes at most `count` elements from an end and shows them, the outermost first, each with how many they are in all.
    /// Says whether there is a list; with its last element it goes.
    ///
    /// # Errors
    /// [`StoreError::WrongType`], [`StoreError::Unreadable`], and as [`Session::remove`].
    pub fn list_pop(
        &mut self,
        database: usize,
        key: &[u8],
        end: End,
        count: u64,
        mut show: impl FnMut(u64, Element<'_>),
    ) -> Result<bool, StoreError> {
        let popped = self.change_list(database, key, Need::NOTHING, |list, layout, open| {
            let total = count.min(list.len());
            list.pop(end, count, layout, open, |element| show(total, element))?;
            Ok((total > 0, ()))
        })?;
        Ok(popped.is_some())
    }

    /// Takes an element from an end of one list and adds it at an end of another, which may be the same, as one step; shows
    /// it. Says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::WrongType`] of either, and as [`Session::list_push`] and [`Session::list_pop`]; both are as before.
    pub fn list_move(
        &mut self,
        database: usize,
        (from, from_end): (&[u8], End),
        (to, to_end): (&[u8], End),
        show: impl FnOnce(&[u8]),
    ) -> Result<bool, StoreError> {
        let keys = [from, to];
        self.exclusively(keys.into_iter(), |session| {
            let Some(source) = session.peek(database, from)? else { return Ok(false) };
            let target = session.peek(database, to)?;
            if !source.is_list() || target.as_ref().is_some_and(|target| !target.is_list()) {
                return Err(StoreError::WrongType);
            }
            drop((source, target));
            let mut moved = Vec::new();
            if from == to {
                session.change_list(database, from, Need::NOTHING, |list, layout, open| {
                    moved.clear();
                    list.pop(from_end, 1, layout, open, |element| {
                        element.with_bytes(|bytes| moved.extend(bytes))
                    })?;
                    list.push(to_end, &moved, layout, open)?;
                    Ok((true, ()))
                })?;
            } else {
                session.list_get(database, from, if from_end == End::Left { 0 } else { -1 }, |element| {
                    element.with_bytes(|bytes| moved.extend(bytes));
                })?;
                session.list_push(database, to, to_end, std::iter::once(&moved[..]), false)?;
                session.list_pop(database, from, from_end, 1, |_, _| {})?;
            }
            show(&moved);
            Ok(true)
        })
    }

    /// Puts an element in the place of another; negative numbers count from the end.
    ///
    /// # Errors
    /// As [`Session::list_push`].
    pub fn list_set(
        &mut self,
        database: usize,
        key: &[u8],
        index: i64,
        element: &[u8],
    ) -> Result<ListSet, StoreError> {
        self.check_element(element)?;
        let need = Need { bytes: element.len(), makes: false };
        let replaced = self.change_list(database, key, need, |list, layout, open| {
            list.expect(element.len(), 0, layout.fill);
            let Some(place) = list.place(index) else { return Ok((false, ListSet::OutOfRange)) };
            list.set(place, element, layout, open)?;
            Ok((true, ListSet::Replaced))
        })?;
        Ok(replaced.unwrap_or(ListSet::NoList))
    }

    /// Puts an element in front of the first one that is equal to `pivot`, or behind it.
    ///
    /// # Errors
    /// As [`Session::list_push`].
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
        let inserted = self.change_list(database, key, need, |list, layout, open| {
            list.expect(element.len(), 1, layout.fill);
            let Some(place) = list.find(&Needle::new(pivot), open)? else {
                return Ok((false, Inserted::NoPivot));
            };
            list.insert(place + u64::from(behind), element, layout, open)?;
            Ok((true, Inserted::Of(list.len())))
        })?;
        Ok(inserted.unwrap_or(Inserted::NoList))
    }

    /// Removes elements that are equal to one: `count` of them from the front, or if it is negative from the end, or all
    /// if it is 0. Says how many.
    ///
    /// # Errors
    /// As [`Session::list_pop`].
    pub fn list_remove(
        &mut self,
        database: usize,
        key: &[u8],
        count: i64,
        element: &[u8],
    ) -> Result<u64, StoreError> {
        let from = if count < 0 { End::Right } else { End::Left };
        let limit = if count == 0 { u64::MAX } else { count.unsigned_abs() };
        let removed = self.change_list(database, key, Need::NOTHING, |list, layout, open| {
            let removed = list.remove_matching(&Needle::new(element), limit, from, layout, open)?;
            Ok((removed > 0, removed))
        })?;
        Ok(removed.unwrap_or_default())
    }

    /// Removes all elements but those of a range, both ends included; negative numbers count from the end.
    ///
    /// # Errors
    /// As [`Session::list_pop`].
    pub fn list_trim(
        &mut self,
        database: usize,
        key: &[u8],
        start: i64,
        stop: i64,
    ) -> Result<(), StoreError> {
        self.change_list(database, key, Need::NOTHING, |list, layout, open| {
            list.trim(list.range(start, stop), layout, open)?;
            Ok((true, ()))
        })?;
        Ok(())
    }

    /// Makes a key a list of these elements, whatever it was; without any, it goes.
    ///
    /// # Errors
    /// As [`Session::set`]; the key is as before.
    pub fn list_write<'e>(
        &mut self,
        database: usize,
        key: &[u8],
        elements: impl Iterator<Item = Element<'e>>,
        expiry: Expiry,
    ) -> Result<(), StoreError> {
        self.follow_settings();
        self.wait_for_the_disk()?;
        self.check_key(key)?;
        let mut list = Quicklist::default();
        let layout = self.settings.lists.layout();
        for element in elements {
            element.with_bytes(|bytes| {
                self.check_element(bytes)?;
                list.expect(bytes.len(), 1, layout.fill);
                // Nothing is packed yet that would have to be opened.
                let _ = list.push(End::Right, bytes, layout, &mut |_| unreachable!("a new node is plain"));
                Ok::<_, StoreError>(())
            })?;
        }
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
        let list = List::new(list);
        let at = if let Expiry::At(at) = expiry { Some(at) } else { None };
        let entry = Entry::list(key, list.clone(), at, Access::written(self.now()));
        let roomy = self.make_room(&entry)?;
        let place = self.store.keyspace.place(key);
        let (mut shard, presence) = self.resolve(database, place, key)?;
        let size = presence.live().map(|index| shard.entry(database, index).allocation_size());
        self.admit(roomy, &entry, size)?;
        let before = self.put(&mut shard, database, place, presence, entry, expiry);
        drop(shard);
        drop(before);
        self.wrote();
        if let Some(due) = due {
            self.pack_nodes(database, place, key, &list, due);
        }
        Ok(())
    }

    /// Changes a list under its lock, and then packs the nodes that are to be packed. The change says whether there was one,
    /// and what came of it.
    fn change_list<R>(
        &mut self,
        database: usize,
        key: &[u8],
        need: Need,
        mut change: impl FnMut(&mut Quicklist, Layout, Open<'_>) -> Result<(bool, R), NodeError>,
    ) -> Result<Option<R>, StoreError> {
        self.follow_settings();
        self.wait_for_the_disk()?;
        self.check_key(key)?;
        // Nothing is evicted for a list that is not there.
        if need.bytes > 0 && !need.makes && self.peek(database, key)?.is_none() {
            return Ok(None);
        }
        if need.bytes > 0 && !self.has_room_for(need.bytes as u64)? {
            return Err(self.out_of_memory());
        }
        self.refuse_if_disk_does()?;
        let layout = self.settings.lists.layout();
        let unreadable = |error: NodeError| error.of(key);
        let store = self.store.clone();
        let place = store.keyspace.place(key);
        let terms = Terms { settings: self.settings, now: self.now(), holding: self.is_holding };
        let (mut shard, presence) = store.resolve(database, place, key, terms)?;
        let Some(index) = presence.live() else {
            if !need.makes {
                return Ok(None);
            }
            let mut list = Quicklist::default();
            let (_, result) = change(&mut list, layout, &mut |_| unreachable!("a new node is plain"))
                .map_err(unreadable)?;
            if list.is_empty() {
                return Ok(Some(result));
            }
            let due = list.next_due(layout);
            let list = List::new(list);
            let entry = Entry::list(key, list.clone(), None, Access::written(self.now()));
            shard.put(database, place.tag, presence, entry);
            drop(shard);
            self.wrote();
            if let Some(due) = due {
                self.pack_nodes(database, place, key, &list, due);
            }
            return Ok(Some(result));
        };
        let entry = shard.entry(database, index);
        self.note_use(entry, terms.now);
        let (decoder, known) = (&mut self.decoder, &self.known);
        let changed = shard.with_list(database, index, |list| {
            let outcome = change(list, layout, &mut |node| open(decoder, known, &store, node));
            (outcome, list.is_empty(), list.next_due(layout), list.take_newly_edited())
        });
        let Some((outcome, is_empty, due, edited)) = changed else {
            return Err(StoreError::WrongType);
        };
        let needs_handle = due.is_some() || !edited.is_empty();
        let list = if needs_handle { shard.entry(database, index).list_handle() } else { None };
        let has_changed = !matches!(outcome, Ok((false, _)));
        let mut removed = None;
        if is_empty {
            removed = Some(shard.remove(database, index));
        } else if has_changed {
            shard.list_changed(database, index);
        }
        drop(shard);
        drop(removed);
        if has_changed {
            self.wrote();
        }
        if let Some(list) = list {
            if let Some(due) = due {
                self.pack_nodes(database, place, key, &list, due);
            }
            self.let_wait(database, key, &list, edited);
        }
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
