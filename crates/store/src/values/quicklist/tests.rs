//! Lists beside plain vectors, whatever is done to them.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use snugly_codec::{Choice, Counters, Decoder, Encoder, Record};
use snugly_listpack::{Element, Listpack, Needle};

use super::node::Content;
use super::reading::Source;
use super::{Closed, End, Fill, Layout, NodeError, Quicklist};
use crate::entry::{Access, Entry, EntryRef, Properties};
use crate::slab::entry_allocation_size;

/// A list, and what is needed to compress and read its nodes.
struct Subject {
    list: Quicklist,
    layout: Layout,
    choice: Choice,
    encoder: Encoder,
}

fn open(node: Closed<'_>) -> Result<Listpack, NodeError> {
    let Closed::Compressed(compressed) = node else { unreachable!("nothing is on disk") };
    decompressed(compressed)
}

fn decompressed(compressed: EntryRef<'_>) -> Result<Listpack, NodeError> {
    let record = compressed.record().expect("it was encoded");
    let mut bytes = Vec::new();
    Decoder::new(Arc::<Counters>::default()).decode(&record, usize::MAX, &mut bytes)?;
    Ok(Listpack::of_known(bytes))
}

#[derive(Clone, Debug)]
enum Step {
    Push(End, Vec<u8>),
    Join(End, Vec<Vec<u8>>),
    Pop(End, u64),
    Set(u64, Vec<u8>),
    Insert(u64, Vec<u8>),
    Remove(Vec<u8>, u64, End),
    Trim(u64, u64),
    Layout(i64, usize),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Left), Just(End::Right)]
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0i64..5).prop_map(|integer| integer.to_string().into_bytes()),
        1 => any::<i64>().prop_map(|integer| integer.to_string().into_bytes()),
        4 => (0usize..600, 0u8..3).prop_map(|(len, byte)| vec![b'a' + byte; len]),
        2 => prop::collection::vec(any::<u8>(), 0..300),
        1 => (0usize..100_000, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        1 => Just(Vec::new()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0u64..80;
    prop_oneof![
        12 => (end(), element()).prop_map(|(end, element)| Step::Push(end, element)),
        2 => (end(), prop::collection::vec(element(), 1..40))
            .prop_map(|(end, elements)| Step::Join(end, elements)),
        3 => (end(), 0u64..6).prop_map(|(end, count)| Step::Pop(end, count)),
        4 => (place(), element()).prop_map(|(place, element)| Step::Set(place, element)),
        5 => (place(), element()).prop_map(|(place, element)| Step::Insert(place, element)),
        2 => (element(), 0u64..5, end()).prop_map(|(element, limit, end)| Step::Remove(element, limit, end)),
        1 => (0u64..4, 0u64..60).prop_map(|(start, len)| Step::Trim(start, len)),
        1 => (-5i64..20, 0usize..4).prop_map(|(fill, depth)| Step::Layout(fill, depth)),
    ]
}

impl Subject {
    fn new(codec: &str, fill: i64, depth: usize) -> Subject {
        // Each build has this codec, and not every one has all others.
        let choice = Choice::new(codec, None, 0).unwrap_or(Choice::lzf(0));
        Subject::of(choice, Layout { fill: Fill::new(fill), depth })
    }

    fn of(choice: Choice, layout: Layout) -> Subject {
        let encoder = Encoder::new(Arc::<Counters>::default());
        Subject { list: Quicklist::default(), layout, choice, encoder }
    }

    fn apply(&mut self, step: &Step) {
        let (list, layout) = (&mut self.list, self.layout);
        match step {
            Step::Push(end, element) => {
                list.expect(element.len(), 1, layout.fill);
                list.push(*end, element, layout, &mut open).expect("the nodes are whole");
            }
            Step::Join(end, elements) => {
                let mut more = Subject::of(self.choice, layout);
                elements.iter().for_each(|element| more.apply(&Step::Push(End::Right, element.clone())));
                self.list.join(*end, more.list, layout);
            }
            Step::Pop(end, count) => {
                list.pop(*end, *count, layout, &mut open, |_| {}).expect("the nodes are whole");
            }
            Step::Set(place, element) => {
                list.expect(element.len(), 0, layout.fill);
                list.set(*place, element, layout, &mut open).expect("the nodes are whole");
            }
            Step::Insert(place, element) => {
                list.expect(element.len(), 1, layout.fill);
                list.insert(*place, element, layout, &mut open).expect("the nodes are whole");
            }
            Step::Remove(element, limit, from) => {
                let (needle, mut left, mut next) = (Needle::new(element), *limit, Some(0));
                while let Some(skipped) = next {
                    let removed = list.remove_matching(&needle, left, (*from, skipped), layout, &mut open);
                    let removed = removed.expect("the nodes are whole");
                    (left, next) = (left - removed.count, removed.next);
                }
            }
            Step::Trim(start, len) => {
                list.trim(*start..start + len, layout, &mut open).expect("the nodes are whole");
            }
            Step::Layout(fill, depth) => self.layout = Layout { fill: Fill::new(*fill), depth: *depth },
        }
        self.compress();
    }

    fn compress(&mut self) {
        while let Some(due) = self.list.next_due(self.layout) {
            let record = match self.layout.depth {
                0 => Record::identity(due.bytes()),
                _ => self.encoder.encode(self.choice, due.bytes(), 0, entry_allocation_size),
            };
            let entry = Entry::new(b"", &record, Properties::plain(Access::written(0)));
            let takes_less = entry.borrow().allocation_size() < due.memory();
            self.list.compress(due, takes_less.then_some(entry));
        }
    }

    fn elements(&self) -> Vec<Vec<u8>> {
        self.list.pieces(0..self.list.len()).iter().flat_map(elements_of).collect()
    }
}

fn elements_of(piece: &super::reading::Piece) -> Vec<Vec<u8>> {
    let listpack = match &piece.source {
        Source::Memory(Content::Plain(listpack)) => Listpack::clone(listpack),
        Source::Memory(Content::Compressed(entry)) => {
            decompressed(entry.borrow()).expect("the node is whole")
        }
        Source::Disk(..) => unreachable!("nothing is on disk"),
    };
    let all: Vec<_> = listpack.iter().map(|element| element.bytes().into_owned()).collect();
    all[piece.elements.clone()].to_vec()
}

fn model(step: &Step, model: &mut VecDeque<Vec<u8>>) {
    let len = model.len();
    match step {
        Step::Push(End::Left, element) => model.push_front(element.clone()),
        Step::Push(End::Right, element) => model.push_back(element.clone()),
        Step::Join(End::Left, elements) => {
            elements.iter().rev().for_each(|element| model.push_front(element.clone()));
        }
        Step::Join(End::Right, elements) => model.extend(elements.iter().cloned()),
        Step::Pop(End::Left, count) => drop(model.drain(..(*count as usize).min(len))),
        Step::Pop(End::Right, count) => model.truncate(len - (*count as usize).min(len)),
        Step::Set(place, element) => {
            if let Some(old) = model.get_mut(*place as usize) {
                old.clone_from(element);
            }
        }
        Step::Insert(place, element) => model.insert((*place as usize).min(len), element.clone()),
        Step::Remove(element, limit, from) => {
            let mut left = *limit;
            let mut stays = |other: &Vec<u8>| {
                let goes = left > 0 && other == element;
                left -= u64::from(goes);
                !goes
            };
            let mut all: Vec<_> = std::mem::take(model).into();
            if *from == End::Right {
                all.reverse();
            }
            all.retain(&mut stays);
            if *from == End::Right {
                all.reverse();
            }
            *model = all.into();
        }
        Step::Trim(start, kept) => {
            let start = (*start as usize).min(len);
            model.truncate((start + *kept as usize).min(len));
            model.drain(..start.min(model.len()));
        }
        Step::Layout(..) => {}
    }
}

fn check(subject: &Subject, model: &VecDeque<Vec<u8>>) {
    let list = &subject.list;
    assert_eq!((list.len(), list.is_empty()), (model.len() as u64, model.is_empty()));
    assert!(*model == subject.elements());
    assert_eq!(list.nodes.iter().map(|node| node.raw_len() as u64).sum::<u64>(), list.raw_bytes());
    assert_eq!(list.nodes.iter().map(|node| node.memory()).sum::<usize>(), list.contents.bytes);
    let compressed: Vec<(usize, usize)> =
        list.records().map(|record| (record.raw_len(), record.payload().len())).collect();
    assert_eq!(compressed.len() as u64, list.compressed().nodes);
    assert_eq!(compressed.iter().map(|(raw, _)| *raw as u64).sum::<u64>(), list.compressed().raw_bytes);
    assert_eq!(compressed.iter().map(|(_, bytes)| *bytes as u64).sum::<u64>(), list.compressed().bytes);
    assert!(list.nodes.iter().all(|node| node.len() > 0), "a node without elements is removed");
    assert!(list.nodes.iter().zip(list.nodes.iter().skip(1)).all(|(one, next)| one.id() < next.id()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_list_has_what_a_plain_one_has(
        steps in prop::collection::vec(step(), 1..120), fill in -5i64..20, depth in 0usize..4,
        codec in prop_oneof![Just("none"), Just("lz4"), Just("zstd")],
    ) {
        let (mut subject, mut plain) = (Subject::new(codec, fill, depth), VecDeque::new());
        for step in &steps {
            subject.apply(step);
            model(step, &mut plain);
            check(&subject, &plain);
        }
    }

    #[test]
    fn what_a_reader_has_taken_does_not_change(
        before in prop::collection::vec(step(), 1..60), after in prop::collection::vec(step(), 1..30),
    ) {
        let mut subject = Subject::new("lz4", -1, 1);
        before.iter().for_each(|step| subject.apply(step));
        let taken = subject.list.pieces(0..subject.list.len());
        let elements: Vec<_> = taken.iter().flat_map(elements_of).collect();
        after.iter().for_each(|step| subject.apply(step));
        let still: Vec<_> = taken.iter().flat_map(elements_of).collect();
        prop_assert_eq!(elements, still);
    }
}

fn filled(elements: usize, depth: usize) -> Subject {
    let mut subject = Subject::new("lz4", -1, depth);
    for number in 0..elements {
        let element = format!("event {number}, {}", "the same as ever ".repeat(10));
        subject.apply(&Step::Push(End::Right, element.into_bytes()));
    }
    subject
}

#[test]
fn the_nodes_between_the_ends_are_compressed_and_those_at_the_ends_are_not() {
    for depth in 1..4 {
        let subject = filled(2_000, depth);
        let compressed: Vec<bool> = subject.list.nodes.iter().map(|node| node.record().is_some()).collect();
        let inside = depth..compressed.len() - depth;
        assert!(compressed.len() > 50);
        assert!(
            compressed.iter().enumerate().all(|(index, compressed)| *compressed == inside.contains(&index))
        );
        assert!(subject.list.memory() < subject.list.raw_bytes() as usize / 3);
    }
    assert_eq!(filled(2_000, 0).list.compressed().nodes as usize, 0);
}

#[test]
fn nodes_that_come_to_an_end_are_made_plain() {
    let mut subject = filled(2_000, 2);
    for end in [End::Left, End::Right] {
        for _ in 0..300 {
            subject.apply(&Step::Pop(end, 1));
            let nodes = &subject.list.nodes;
            let ends = [0, 1, nodes.len() - 2, nodes.len() - 1];
            assert!(ends.iter().all(|index| nodes[*index].record().is_none()));
        }
    }
}

#[test]
fn a_node_that_is_changed_in_the_middle_waits_to_be_compressed_and_once_more_if_it_is_changed_meanwhile() {
    let mut subject = filled(2_000, 1);
    let inside = subject.list.node_count() - 2;
    subject.apply(&Step::Set(1_000, b"other".to_vec()));
    let waiting = subject.list.take_newly_edited();
    assert_eq!(waiting.len(), 1);
    subject.apply(&Step::Set(1_001, b"other".to_vec()));
    assert!(subject.list.take_newly_edited().is_empty(), "it waits already");
    assert_eq!(subject.list.compressed().nodes as usize, inside - 1);
    assert!(subject.list.release_edited(waiting[0].0, false), "it was changed again");
    assert!(!subject.list.release_edited(waiting[0].0, false));
    subject.compress();
    assert_eq!(subject.list.compressed().nodes as usize, inside);
}

#[test]
fn a_node_whose_memory_is_wanted_is_compressed_though_it_was_changed_again() {
    let mut subject = filled(2_000, 1);
    let inside = subject.list.node_count() - 2;
    subject.apply(&Step::Set(1_000, b"other".to_vec()));
    let waiting = subject.list.take_newly_edited();
    subject.apply(&Step::Set(1_001, b"other".to_vec()));
    assert!(!subject.list.release_edited(waiting[0].0, true));
    subject.compress();
    assert_eq!(subject.list.compressed().nodes as usize, inside);
}

#[test]
fn a_node_that_waits_and_comes_to_an_end_is_not_compressed() {
    let mut subject = filled(2_000, 1);
    subject.apply(&Step::Set(1_000, b"other".to_vec()));
    let waiting = subject.list.take_newly_edited();
    subject.apply(&Step::Trim(1_000, 1_000));
    subject.list.release_edited(waiting[0].0, false);
    assert!(subject.list.next_due(subject.layout).is_none());
}

#[test]
fn nodes_that_wait_do_so_in_a_copy_of_the_list_too() {
    let mut subject = filled(2_000, 1);
    let inside = subject.list.node_count() - 2;
    subject.apply(&Step::Set(1_000, b"other".to_vec()));
    subject.list = subject.list.fork(&mut |_| unreachable!("nothing is on disk")).expect("all is in memory");
    subject.list.wait_anew();
    let waiting = subject.list.take_newly_edited();
    assert_eq!(waiting.len(), 1);
    subject.list.release_edited(waiting[0].0, false);
    subject.compress();
    assert_eq!(subject.list.compressed().nodes as usize, inside);
}

#[test]
fn a_node_that_does_not_become_smaller_is_tried_once() {
    let mut subject = Subject::new("lz4", -1, 1);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..60 {
        let element: Vec<u8> = (0..500).map(|_| random.u8(..)).collect();
        subject.apply(&Step::Push(End::Right, element));
    }
    assert_eq!(subject.list.compressed().nodes as usize, 0);
    subject.list.review_around(3, subject.layout);
    assert!(subject.list.next_due(subject.layout).is_none());
}

#[test]
fn nodes_that_go_as_a_whole_are_not_read() {
    let mut subject = filled(2_000, 1);
    let mut read = 0;
    let mut counting = |node: Closed<'_>| {
        read += 1;
        open(node)
    };
    subject.list.trim(1_000..1_010, subject.layout, &mut counting).expect("the nodes are whole");
    assert_eq!(subject.list.len(), 10);
    assert!(read <= 2, "{read} nodes were read");
}

#[test]
fn elements_removed_from_everywhere_leave_no_thin_nodes() {
    let mut subject = Subject::new("lz4", -1, 1);
    for number in 0..4_000 {
        let element = if number % 20 == 0 { format!("kept {number}") } else { "gone".repeat(10) };
        subject.apply(&Step::Push(End::Right, element.into_bytes()));
    }
    let before = subject.list.node_count();
    subject.apply(&Step::Remove(b"gone".repeat(10), u64::MAX, End::Left));
    assert_eq!(subject.list.len(), 200);
    assert!(subject.list.node_count() <= 3, "{} of {before} nodes", subject.list.node_count());
}

#[test]
fn halving_one_place_again_and_again_names_nodes_anew() {
    let mut subject = Subject::new("none", 1, 0);
    subject.apply(&Step::Push(End::Right, b"first".to_vec()));
    subject.apply(&Step::Push(End::Right, b"last".to_vec()));
    for number in 0..200 {
        subject.apply(&Step::Insert(1, number.to_string().into_bytes()));
    }
    assert_eq!((subject.list.node_count(), subject.list.len()), (202, 202));
    assert!(Needle::new(b"199").is(Element::of(&subject.elements()[1])));
}
