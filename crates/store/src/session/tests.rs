use snugly_codec::Choice;

use super::*;
use crate::hash::counted::HASHES;
use crate::{Config, End};

/// Returns the number of keys that an operation hashes.
fn hashes<R>(session: &mut Session, operation: impl FnOnce(&mut Session) -> Result<R, StoreError>) -> usize {
    let before = HASHES.get();
    operation(session).expect("there is room");
    HASHES.get() - before
}

#[test]
fn an_operation_hashes_each_of_its_keys_once() {
    let store = Store::new(Config::new(Choice::new("none", None, 256).expect("it is always there")));
    let session = &mut store.session();
    let push = |session: &mut Session, key: &[u8]| {
        session.list_push(0, key, End::Right, [&b"element"[..]; 3].into_iter(), false)
    };
    let set = |session: &mut Session, key: &[u8], condition| {
        session.set(0, key, b"value", Expiry::Never, condition)
    };
    assert_eq!(hashes(session, |session| set(session, b"key", Condition::Always)), 1);
    assert_eq!(hashes(session, |session| set(session, b"key", Condition::IfPresent)), 1);
    assert_eq!(hashes(session, |session| set(session, b"key", Condition::IfEqual(b"value"))), 1);
    assert_eq!(hashes(session, |session| session.get(0, b"key")), 1);
    assert_eq!(hashes(session, |session| session.get_many(0, [&b"key"[..], b"other"].into_iter())), 2);
    assert_eq!(hashes(session, |session| session.rename((0, b"key"), (0, b"other"))), 2);
    assert_eq!(hashes(session, |session| session.copy((0, b"other"), (0, b"key"))), 2);
    assert_eq!(hashes(session, |session| session.delete(0, b"key")), 1);
    assert_eq!(hashes(session, |session| push(session, b"from")), 1);
    assert_eq!(hashes(session, |session| session.list_take(0, b"from", End::Left, 1, 0, |_, _| {})), 1);
    let ends =
        |session: &mut Session| session.list_move(0, (b"from", End::Left), (b"to", End::Right), |_| {});
    assert_eq!(hashes(session, ends), 2);
    assert_eq!(hashes(session, |session| session.list_range(0, b"to", 0, -1)), 1);
}
