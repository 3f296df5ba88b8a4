//! Any operations on a list have the outcome that a plain one would have, and any bytes can be taken for a listpack.

use std::collections::VecDeque;

use arbitrary::{Arbitrary, Unstructured};
use snugly_listpack::{Element, Listpack, Needle, View};
use snugly_store::{Choice, Config, End, Fill, Inserted, ListSet, Session, Store};

#[derive(Arbitrary, Debug)]
struct Input {
    codec: u8,
    fill: i8,
    depth: u8,
    operations: Vec<Operation>,
    /// Taken for a listpack.
    bytes: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Push { left: bool, count: u8, element: Kind },
    Pop { left: bool, count: u8 },
    Set { index: i16, element: Kind },
    Insert { pivot: Kind, behind: bool, element: Kind },
    Remove { count: i8, element: Kind },
    Trim { start: i16, stop: i16 },
    Turn { left: bool },
}

#[derive(Arbitrary, Clone, Debug)]
enum Kind {
    Integer(i16),
    Repeated { byte: u8, len: u16 },
    Bytes(Vec<u8>),
}

impl Kind {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Kind::Integer(integer) => integer.to_string().into_bytes(),
            Kind::Repeated { byte, len } => vec![*byte; usize::from(*len) % 5_000],
            Kind::Bytes(bytes) => bytes.clone(),
        }
    }
}

const KEY: &[u8] = b"list";

fn end(left: bool) -> End {
    if left { End::Left } else { End::Right }
}

fn place(index: i16, len: usize) -> Option<usize> {
    let place = if index < 0 { i64::from(index) + len as i64 } else { index.into() };
    usize::try_from(place).ok().filter(|place| *place < len)
}

fn pop(model: &mut VecDeque<Vec<u8>>, left: bool) -> Option<Vec<u8>> {
    if left { model.pop_front() } else { model.pop_back() }
}

fn push(model: &mut VecDeque<Vec<u8>>, left: bool, element: Vec<u8>) {
    if left { model.push_front(element) } else { model.push_back(element) }
}

fn apply(session: &mut Session, model: &mut VecDeque<Vec<u8>>, operation: &Operation) {
    match operation {
        Operation::Push { left, count, element } => {
            let element = element.bytes();
            let elements = std::iter::repeat_n(&element[..], usize::from(*count));
            if *count > 0 {
                session.list_push(0, KEY, end(*left), elements, false).expect("there is room");
            }
            (0..*count).for_each(|_| push(model, *left, element.clone()));
        }
        Operation::Pop { left, count } => {
            let mut popped = Vec::new();
            let show = |_, element: Element<'_>| popped.push(element.bytes().into_owned());
            session.list_pop(0, KEY, end(*left), u64::from(*count), show).expect("undamaged");
            let expected: Vec<_> = (0..*count).map_while(|_| pop(model, *left)).collect();
            assert_eq!(popped, expected);
        }
        Operation::Set { index, element } => {
            let (element, place) = (element.bytes(), place(*index, model.len()));
            let set = session.list_set(0, KEY, i64::from(*index), &element).expect("there is room");
            assert_eq!(set == ListSet::Replaced, place.is_some());
            if let Some(place) = place {
                model[place] = element;
            }
        }
        Operation::Insert { pivot, behind, element } => {
            let (pivot, element) = (pivot.bytes(), element.bytes());
            let inserted = session.list_insert(0, KEY, &pivot, *behind, &element).expect("there is room");
            match model.iter().position(|other| *other == pivot) {
                Some(place) => {
                    model.insert(place + usize::from(*behind), element);
                    assert_eq!(inserted, Inserted::Of(model.len() as u64));
                }
                None => assert!(matches!(inserted, Inserted::NoList | Inserted::NoPivot)),
            }
        }
        Operation::Remove { count, element } => {
            let element = element.bytes();
            let removed = session.list_remove(0, KEY, i64::from(*count), &element).expect("undamaged");
            let mut left = if *count == 0 { usize::MAX } else { usize::from(count.unsigned_abs()) };
            let before = model.len();
            let mut stays = |other: &Vec<u8>| {
                let goes = left > 0 && *other == element;
                left -= usize::from(goes);
                !goes
            };
            let mut all: Vec<_> = std::mem::take(model).into();
            if *count < 0 {
                all.reverse();
            }
            all.retain(&mut stays);
            if *count < 0 {
                all.reverse();
            }
            *model = all.into();
            assert_eq!(removed as usize, before - model.len());
        }
        Operation::Trim { start, stop } => {
            session.list_trim(0, KEY, i64::from(*start), i64::from(*stop)).expect("undamaged");
            let len = model.len() as i64;
            let from_end = |index: i16| if index < 0 { i64::from(index) + len } else { index.into() };
            let (start, stop) = (from_end(*start).max(0), from_end(*stop).min(len - 1));
            if start > stop {
                model.clear();
            } else {
                model.truncate(stop as usize + 1);
                model.drain(..start as usize);
            }
        }
        Operation::Turn { left } => {
            let (from, to) = ((KEY, end(*left)), (KEY, end(!*left)));
            session.list_move(0, from, to, |_| {}).expect("there is room");
            if let Some(element) = pop(model, *left) {
                push(model, !*left, element);
            }
        }
    }
}

fn check(session: &mut Session, model: &VecDeque<Vec<u8>>) {
    let elements = session.list_range(0, KEY, 0, -1).expect("undamaged");
    let mut expected = model.iter();
    if let Some(elements) = elements {
        let show = |element: Element<'_>| {
            let other = expected.next().expect("there are no more");
            element.with_bytes(|bytes| assert_eq!(bytes, other));
        };
        session.show(&elements, show).expect("undamaged");
    }
    assert_eq!(expected.next(), None);
}

/// Bytes that are no listpack are refused, or have fewer elements than they should: nothing else happens.
fn take_for_listpack(bytes: &[u8]) {
    let view = View::of_known(bytes);
    assert!(view.iter().count() <= bytes.len() && view.iter().rev().count() <= bytes.len());
    view.get(3);
    let Ok(mut listpack) = Listpack::parse(bytes.to_vec()) else { return };
    let len = listpack.len();
    assert_eq!(listpack.iter().count(), len);
    let tail = listpack.split_off(len / 2);
    listpack.append(tail.view());
    listpack.insert(len / 2, b"inserted");
    listpack.replace(0, b"replaced");
    assert!(listpack.remove_matching(&Needle::new(b"inserted"), 1, false) <= 1);
    assert!(View::parse(listpack.as_bytes()).is_ok());
}

pub fn run(bytes: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    take_for_listpack(&input.bytes);
    let mut config = Config::new(Choice::new("none", None, 256).expect("it is always there"));
    config.shards = Some(1);
    let store = Store::new(config);
    let codec = ["none", "lz4", "zstd"][usize::from(input.codec) % 3];
    store.change_settings(|settings| {
        settings.lists.max_listpack_size = Fill::new(input.fill.into());
        settings.lists.compress_depth = usize::from(input.depth) % 4;
        settings.lists.compress_codec = Choice::new(codec, None, 0).ok();
        settings.lists.cache_bytes = 32 << 10;
    });
    let session = &mut store.session();
    let mut model = VecDeque::new();
    for operation in input.operations.iter().take(64) {
        apply(session, &mut model, operation);
        if model.len() > 4_000 {
            break;
        }
    }
    check(session, &model);
    drop(store.flush(None));
    assert_eq!(session.list_len(0, KEY).expect("undamaged"), 0);
}
