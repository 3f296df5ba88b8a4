//! Clients that hear of changed keys: those that watch them, those that keep copies, and those that wait for lists.
//!
//! The store tells of every change, under the lock of the key's shard; where nobody listens that costs two loads. This
//! module knows keys and clients. It knows no commands and no values, and must not use the store.

mod sharded;
mod tracking;
mod waiter;
mod waiting;
mod watching;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexSet;
use parking_lot::MutexGuard;
use snugly_protocol::resp::ReplyBuffer;
use snugly_store::{KeyChange, Observer};

pub(crate) use tracking::{TrackingMode, TrackingStats, act_for};
pub(crate) use waiter::{Answer, BlockedOn, Ending, Waiter};
pub(crate) use waiting::DbKey;
pub(crate) use watching::Watched;

use crate::clients::{ClientInfo, State};
use tracking::Tracking;
use waiting::Waiting;
use watching::Watching;

/// All clients' interest in keys.
#[derive(Default)]
pub(crate) struct KeyWatch {
    watching: Watching,
    /// Number of clients that watch a key; nothing is looked up for none.
    watching_clients: AtomicUsize,
    tracking: Tracking,
    waiting: Waiting,
}

impl Observer for KeyWatch {
    fn changed(&self, database: usize, key: &[u8], _change: KeyChange) {
        // A client that begins to listen to a key does so while holding its shard, or takes it afterwards to read the
        // key; the shard's lock, which is held here, makes that visible.
        if self.watching_clients() > 0 {
            self.watching.changed(database, key);
        }
        self.tracking.changed(key);
        self.waiting.changed(database, key);
    }

    fn flushed(&self, database: Option<usize>) {
        if self.watching_clients() > 0 {
            self.watching.flushed(database);
        }
        self.tracking.flushed();
        self.waiting.flushed(database);
    }
}

impl KeyWatch {
    /// Marks the client ([`State::DIRTY`]) as soon as the key changes. The caller holds the key's shard. False if the
    /// client watches the key already.
    pub(crate) fn watch(&self, client: &Arc<ClientInfo>, key: &Watched) -> bool {
        let is_new = self.watching.add(client, key);
        if is_new && client.watched.fetch_add(1, Ordering::Relaxed) == 0 {
            self.watching_clients.fetch_add(1, Ordering::Relaxed);
        }
        is_new
    }

    /// Forgets all keys that a client watches, and whether one has changed.
    pub(crate) fn unwatch(&self, client: &Arc<ClientInfo>, keys: &[Watched]) {
        keys.iter().for_each(|key| self.watching.remove(client, key));
        if client.watched.swap(0, Ordering::Relaxed) > 0 {
            self.watching_clients.fetch_sub(1, Ordering::Relaxed);
        }
        client.states.clear(State::DIRTY);
    }

    /// Makes a client wait. The caller holds the shards of the keys, which have no lists.
    pub(crate) fn wait(&self, waiter: &Arc<Waiter>) {
        self.waiting.add(waiter);
    }

    /// Returns whether keys that are waited for have changed.
    pub(crate) fn has_ready(&self) -> bool {
        self.waiting.has_ready()
    }

    /// Takes the changed keys that clients wait for, in the order in which they changed; from then on they count as
    /// unchanged.
    pub(crate) fn take_ready(&self) -> IndexSet<DbKey> {
        self.waiting.take_ready()
    }

    /// Keeps other threads from serving, so that clients are served in the order in which they came. The caller holds no
    /// shards.
    pub(crate) fn serve_alone(&self) -> MutexGuard<'_, ()> {
        self.waiting.serve_alone()
    }

    /// Clients that wait for a key, in the order in which they came.
    pub(crate) fn waiters(&self, place: &DbKey) -> Vec<Arc<Waiter>> {
        self.waiting.of(place)
    }

    /// Begins to serve a client, if it still waits; whoever ends its wait meanwhile has to wait for the result.
    pub(crate) fn begin_serving<'a>(&'a self, waiter: &'a Arc<Waiter>) -> Option<Serving<'a>> {
        waiter.begin().then(|| Serving { key_watch: self, waiter, answer: None })
    }

    /// Ends a wait, if nothing else has.
    pub(crate) fn end_wait(&self, waiter: &Arc<Waiter>, ending: Ending) {
        self.waiting.end(waiter, ending);
    }

    /// Ends the wait of the client of this number; returns whether it waits.
    pub(crate) fn unblock(&self, client: u64, ending: Ending) -> bool {
        self.waiting.unblock(client, ending)
    }

    /// Ends the waits of all clients.
    pub(crate) fn end_all_waits(&self, ending: Ending) {
        self.waiting.end_all(ending);
    }

    /// Number of clients that wait for lists.
    pub(crate) fn waiting_clients(&self) -> usize {
        self.waiting.count()
    }

    /// Returns the number of keys that clients wait for.
    pub(crate) fn awaited_keys(&self) -> usize {
        self.waiting.keys()
    }

    /// Number of clients that watch at least one key.
    pub(crate) fn watching_clients(&self) -> usize {
        self.watching_clients.load(Ordering::Relaxed)
    }

    /// Number of watched keys.
    pub(crate) fn watched_keys(&self) -> usize {
        self.watching.keys()
    }

    /// Tracks changes for the client from now on, or in another mode than before.
    pub(crate) fn track(&self, client: &Arc<ClientInfo>, mode: TrackingMode) {
        self.tracking.enable(client, mode);
    }

    pub(crate) fn untrack(&self, client: &ClientInfo) {
        self.tracking.disable(client);
    }

    /// Notes that a client, which tracks what it reads, is about to read a key.
    pub(crate) fn remember(&self, client: &ClientInfo, key: &[u8]) {
        self.tracking.remember(client, key);
    }

    /// Notifies clients of changes since the last call, where that is not done at once. The thread of a
    /// change calls this before anybody gets an answer.
    pub(crate) fn broadcast(&self) {
        self.tracking.broadcast();
    }

    /// The prefixes that a client tracks, in order.
    pub(crate) fn prefixes(&self, client: &ClientInfo) -> Vec<Box<[u8]>> {
        self.tracking.prefixes(client)
    }

    /// Limits the number of keys whose readers are remembered; 0 is no limit.
    pub(crate) fn limit_tracked_keys(&self, max_keys: usize) {
        self.tracking.limit_keys(max_keys);
    }

    pub(crate) fn tracking_stats(&self) -> TrackingStats {
        self.tracking.stats()
    }
}

/// A client that is being served until this is dropped. Without an answer it waits on.
pub(crate) struct Serving<'a> {
    key_watch: &'a KeyWatch,
    waiter: &'a Arc<Waiter>,
    pub(crate) answer: Option<Answer>,
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // It is not known whether an element was taken, so that the client must not wait for another one.
            let mut reply = ReplyBuffer::new(self.waiter.client.protocol());
            reply.error("ERR the command failed for a reason that the server's log tells");
            self.answer = Some(Answer { reply: reply.as_bytes().to_vec(), ..Answer::default() });
        }
        self.key_watch.waiting.finish(self.waiter, self.answer.take());
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;
    use snugly_net::Socket;
    use snugly_protocol::resp::RequestQueue;
    use snugly_store::End;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::runtime::Runtime;

    use super::*;
    use crate::clients::Clients;

    /// Clients with real connections, whose other ends are kept open.
    struct Fixture {
        runtime: Runtime,
        clients: Clients,
        key_watch: KeyWatch,
        peers: Vec<TcpStream>,
    }

    impl Fixture {
        fn new() -> Fixture {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let (clients, key_watch) = (Clients::default(), KeyWatch::default());
            Fixture { runtime, clients, key_watch, peers: Vec::new() }
        }

        fn client(&mut self) -> Arc<ClientInfo> {
            let (stream, peer) = self.runtime.block_on(async {
                let listener =
                    TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a port");
                let address = listener.local_addr().expect("it listens");
                let peer = TcpStream::connect(address).await.expect("it accepts");
                (listener.accept().await.expect("it was connected to").0, peer)
            });
            self.peers.push(peer);
            let client = self.clients.enter(Arc::new(Socket::new(stream).expect("it is connected")));
            client.resp3.store(true, Ordering::Relaxed);
            client
        }

        fn tracker(&mut self, modes: State, prefixes: &[&str]) -> Arc<ClientInfo> {
            let client = self.client();
            let prefixes = prefixes.iter().map(|prefix| prefix.as_bytes().into()).collect();
            self.key_watch.track(&client, TrackingMode { modes, redirect: None, prefixes });
            client
        }
    }

    fn watched(database: usize, key: &str, existed: bool) -> Watched {
        Watched { database, key: key.as_bytes().into(), existed }
    }

    fn waiter(fixture: &mut Fixture, keys: &[&str]) -> Arc<Waiter> {
        let keys = keys.iter().map(|key| key.as_bytes().into()).collect();
        let wanted = BlockedOn::Elements { keys, end: End::Left, count: None };
        let waiter = Arc::new(Waiter::new(fixture.client(), 0, wanted, RequestQueue::default()));
        fixture.key_watch.wait(&waiter);
        waiter
    }

    fn answer(fixture: &Fixture, waiter: &Waiter) -> String {
        let answer = fixture.runtime.block_on(waiter.answered());
        String::from_utf8(answer.reply).expect("it is text")
    }

    fn told(client: &ClientInfo) -> String {
        let mut bytes = Vec::new();
        client.socket.outbox.drain_into(&mut bytes);
        String::from_utf8(bytes).expect("the keys are text").replace("\r\n", " ")
    }

    #[test]
    fn a_change_marks_those_who_watch_the_key_in_its_database() {
        let mut fixture = Fixture::new();
        let watchers: Vec<_> = (0..3).map(|_| fixture.client()).collect();
        let keys = [watched(0, "a", true), watched(0, "b", true), watched(1, "a", true)];
        for (client, key) in watchers.iter().zip(&keys) {
            assert!(fixture.key_watch.watch(client, key));
            assert!(!fixture.key_watch.watch(client, key), "it is watched already");
        }
        assert_eq!((fixture.key_watch.watching_clients(), fixture.key_watch.watched_keys()), (3, 3));
        fixture.key_watch.changed(0, b"a", KeyChange::Written);
        let marked = || watchers.iter().map(|client| client.states.has(State::DIRTY)).collect::<Vec<_>>();
        assert_eq!(marked(), [true, false, false]);
        fixture.key_watch.flushed(Some(0));
        assert_eq!(marked(), [true, true, false]);
        for (client, key) in watchers.iter().zip(&keys) {
            fixture.key_watch.unwatch(client, std::slice::from_ref(key));
        }
        fixture.key_watch.changed(1, b"a", KeyChange::Written);
        assert_eq!(marked(), [false, false, false]);
        assert_eq!((fixture.key_watch.watching_clients(), fixture.key_watch.watched_keys()), (0, 0));
    }

    #[test]
    fn a_flush_changes_no_key_that_was_not_there() {
        let mut fixture = Fixture::new();
        let client = fixture.client();
        fixture.key_watch.watch(&client, &watched(0, "a", false));
        fixture.key_watch.flushed(None);
        assert!(!client.states.has(State::DIRTY));
    }

    #[test]
    fn a_reader_is_told_once_and_after_a_flush_to_forget_all() {
        let mut fixture = Fixture::new();
        let (reader, other) =
            (fixture.tracker(State::default(), &[]), fixture.tracker(State::default(), &[]));
        fixture.key_watch.remember(&reader, b"a");
        fixture.key_watch.changed(5, b"a", KeyChange::Written);
        fixture.key_watch.changed(5, b"a", KeyChange::Written);
        assert_eq!(told(&reader), ">2 $10 invalidate *1 $1 a ");
        assert_eq!(told(&other), "");
        fixture.key_watch.flushed(Some(3));
        assert_eq!((told(&reader), told(&other)), (told_all(), told_all()));
    }

    fn told_all() -> String {
        ">2 $10 invalidate _ ".to_owned()
    }

    #[test]
    fn changes_of_prefixes_are_told_together_but_not_to_who_made_them() {
        let mut fixture = Fixture::new();
        let listener = fixture.tracker(State::BROADCASTING, &["u:", "v:"]);
        let author = fixture.tracker(State::BROADCASTING.and(State::NO_LOOP), &["u:"]);
        act_for(&author);
        for key in ["u:2", "w:1", "u:1", "u:2", "v:1"] {
            fixture.key_watch.changed(0, key.as_bytes(), KeyChange::Written);
        }
        act_for(&listener);
        fixture.key_watch.changed(0, b"u:3", KeyChange::Written);
        assert_eq!(told(&listener), "");
        fixture.key_watch.broadcast();
        fixture.key_watch.broadcast();
        let invalidate = ">2 $10 invalidate";
        assert_eq!(told(&listener), format!("{invalidate} *3 $3 u:1 $3 u:2 $3 u:3 {invalidate} *1 $3 v:1 "));
        assert_eq!(told(&author), format!("{invalidate} *1 $3 u:3 "));
    }

    #[test]
    fn changed_keys_are_ready_once_if_somebody_waits_for_them() {
        let mut fixture = Fixture::new();
        let (first, second) = (waiter(&mut fixture, &["a", "b", "a"]), waiter(&mut fixture, &["b"]));
        let key_watch = &fixture.key_watch;
        for (database, key) in [(0, "b"), (0, "a"), (0, "b"), (1, "a"), (0, "c")] {
            key_watch.changed(database, key.as_bytes(), KeyChange::Written);
        }
        assert!(key_watch.has_ready());
        let ready: Vec<DbKey> = key_watch.take_ready().into_iter().collect();
        assert_eq!(ready, [(0, b"b"[..].into()), (0, b"a"[..].into())]);
        assert!(!key_watch.has_ready());
        let waiting =
            |place| key_watch.waiters(place).iter().map(|waiter| waiter.client.id).collect::<Vec<_>>();
        assert_eq!(waiting(&ready[0]), [first.client.id, second.client.id]);
        assert_eq!(waiting(&ready[1]), [first.client.id]);
        key_watch.end_wait(&first, Ending::Gone);
        key_watch.end_wait(&second, Ending::Gone);
        assert_eq!((key_watch.waiting_clients(), key_watch.awaited_keys()), (0, 0));
        key_watch.changed(0, b"a", KeyChange::Written);
        assert!(!key_watch.has_ready());
    }

    fn some(reply: &[u8]) -> Option<Answer> {
        Some(Answer { reply: reply.to_vec(), ..Answer::default() })
    }

    #[test]
    fn a_wait_that_ends_while_it_is_served_ends_with_what_it_gets_or_else_as_it_was_told() {
        let mut fixture = Fixture::new();
        for (answered, expected) in [(some(b":1\r\n"), ":1\r\n"), (None, "_\r\n")] {
            let waiter = waiter(&mut fixture, &["a"]);
            let mut serving = fixture.key_watch.begin_serving(&waiter).expect("it waits");
            assert!(fixture.key_watch.unblock(waiter.client.id, Ending::TimedOut));
            assert!(fixture.key_watch.begin_serving(&waiter).is_none());
            serving.answer = answered;
            drop(serving);
            assert_eq!(answer(&fixture, &waiter), expected);
            assert!(!fixture.key_watch.unblock(waiter.client.id, Ending::Unblocked));
        }
    }

    #[test]
    fn who_goes_after_it_was_served_still_gets_its_answer() {
        let mut fixture = Fixture::new();
        let waiter = waiter(&mut fixture, &["a"]);
        fixture.key_watch.begin_serving(&waiter).expect("it waits").answer = some(b":1\r\n");
        fixture.key_watch.end_wait(&waiter, Ending::Gone);
        let answer = fixture.runtime.block_on(waiter.answered());
        assert_eq!((&answer.reply[..], answer.ending), (&b":1\r\n"[..], None));
    }

    #[test]
    fn who_is_served_and_gets_nothing_waits_on() {
        let mut fixture = Fixture::new();
        let waiter = waiter(&mut fixture, &["a"]);
        drop(fixture.key_watch.begin_serving(&waiter).expect("it waits"));
        assert!(waiter.client.states.has(State::BLOCKED));
        fixture.key_watch.begin_serving(&waiter).expect("it waits on").answer = some(b":1\r\n");
        assert!(!waiter.client.states.has(State::BLOCKED));
        assert!(fixture.key_watch.begin_serving(&waiter).is_none());
        fixture.key_watch.end_wait(&waiter, Ending::Unblocked);
        assert_eq!(answer(&fixture, &waiter), ":1\r\n");
    }

    #[test]
    fn a_panic_of_whoever_serves_a_client_ends_its_wait_with_an_error() {
        let mut fixture = Fixture::new();
        let waiter = waiter(&mut fixture, &["a"]);
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _serving = fixture.key_watch.begin_serving(&waiter).expect("it waits");
            panic!("as a bug would");
        }));
        assert!(served.is_err());
        assert!(answer(&fixture, &waiter).starts_with("-ERR the command failed"));
        assert_eq!((fixture.key_watch.waiting_clients(), fixture.key_watch.awaited_keys()), (0, 0));
    }

    #[test]
    fn clients_that_have_gone_do_not_pile_up_behind_a_key() {
        let mut fixture = Fixture::new();
        for _ in 0..50 {
            let passing = fixture.tracker(State::default(), &[]);
            fixture.key_watch.remember(&passing, b"a");
            let staying = fixture.tracker(State::default(), &[]);
            fixture.key_watch.untrack(&passing);
            fixture.key_watch.remember(&staying, b"b");
            assert!(fixture.key_watch.tracking_stats().items <= 2 * 4 + 50);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        #[test]
        fn what_is_remembered_is_bounded_and_whoever_is_forgotten_is_told(
            keys in prop::collection::vec("[a-z]{1,3}", 1..200),
            max_keys in 1_usize..20,
        ) {
            let mut fixture = Fixture::new();
            let reader = fixture.tracker(State::default(), &[]);
            fixture.key_watch.limit_tracked_keys(max_keys);
            let mut kept = std::collections::BTreeSet::new();
            for key in &keys {
                fixture.key_watch.remember(&reader, key.as_bytes());
                kept.insert(key.clone());
                for line in told(&reader).split(">2 $10 invalidate *1 $").filter(|line| !line.is_empty()) {
                    prop_assert!(kept.remove(line[2..].trim()));
                }
                let stats = fixture.key_watch.tracking_stats();
                prop_assert_eq!((stats.keys, stats.items), (kept.len(), kept.len()));
                prop_assert!(stats.keys <= max_keys);
            }
            fixture.key_watch.untrack(&reader);
            let stats = fixture.key_watch.tracking_stats();
            prop_assert_eq!((stats.clients, stats.keys, stats.items), (0, 0, 0));
        }
    }
}
