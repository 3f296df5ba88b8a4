//! Who among the clients is to hear of changed keys: those that watch them.
//!
//! The store tells of every change, under the lock of the key's shard; where nobody listens that costs one load. This
//! module knows keys and clients. It knows no commands and no values, and must not use the store.

mod sharded;
mod watching;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use snugly_store::Observer;

pub(crate) use watching::Watched;

use crate::clients::{ClientInfo, State};
use watching::Watching;

/// All clients' interest in keys.
#[derive(Default)]
pub(crate) struct Interest {
    /// How many clients listen; nothing is looked up for none.
    listeners: AtomicUsize,
    watching: Watching,
    watching_clients: AtomicUsize,
}

impl Observer for Interest {
    fn changed(&self, database: usize, key: &[u8]) {
        // Whoever begins to listen to a key does so while holding its shard, whose lock is held here
        // too: that makes it visible.
        if self.listeners.load(Ordering::Relaxed) > 0 {
            self.watching.changed(database, key);
        }
    }

    fn flushed(&self, database: Option<usize>) {
        if self.listeners.load(Ordering::Relaxed) > 0 {
            self.watching.flushed(database);
        }
    }
}

impl Interest {
    /// Marks the client ([`State::DIRTY`]) as soon as the key changes. The caller holds the key's shard. False if the
    /// client watches the key already.
    pub(crate) fn watch(&self, client: &Arc<ClientInfo>, key: &Watched) -> bool {
        let is_new = self.watching.add(client, key);
        if is_new && client.watched.fetch_add(1, Ordering::Relaxed) == 0 {
            self.watching_clients.fetch_add(1, Ordering::Relaxed);
            self.listeners.fetch_add(1, Ordering::Relaxed);
        }
        is_new
    }

    /// Forgets all keys that a client watches, and whether one has changed.
    pub(crate) fn unwatch(&self, client: &Arc<ClientInfo>, keys: &[Watched]) {
        keys.iter().for_each(|key| self.watching.remove(client, key));
        if client.watched.swap(0, Ordering::Relaxed) > 0 {
            self.watching_clients.fetch_sub(1, Ordering::Relaxed);
            self.listeners.fetch_sub(1, Ordering::Relaxed);
        }
        client.states.clear(State::DIRTY);
    }

    /// How many clients watch at least one key.
    pub(crate) fn watching_clients(&self) -> usize {
        self.watching_clients.load(Ordering::Relaxed)
    }

    /// How many keys are watched.
    pub(crate) fn watched_keys(&self) -> usize {
        self.watching.keys()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::{TcpListener, TcpStream};
    use tokio::runtime::Runtime;

    use super::*;
    use crate::clients::Clients;

    /// Clients with real connections, whose other ends are kept open.
    struct Fixture {
        runtime: Runtime,
        clients: Clients,
        interest: Interest,
        peers: Vec<TcpStream>,
    }

    impl Fixture {
        fn new() -> Fixture {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let (clients, interest) = (Clients::default(), Interest::default());
            Fixture { runtime, clients, interest, peers: Vec::new() }
        }

        fn client(&mut self) -> Arc<ClientInfo> {
            let (stream, peer) = self.runtime.block_on(async {
                let listener =
                    TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a port");
                let address = listener.local_addr().expect("it listens");
                let peer = TcpStream::connect(address).await.expect("it accepts");
                (listener.accept().await.expect("it was connected to").0, peer)
            });
            let address = peer.local_addr().expect("it is connected");
            self.peers.push(peer);
            self.clients.enter(Arc::new(stream), address, address)
        }
    }

    fn watched(database: usize, key: &str, existed: bool) -> Watched {
        Watched { database, key: key.as_bytes().into(), existed }
    }

    #[test]
    fn a_change_marks_those_who_watch_the_key_in_its_database() {
        let mut fixture = Fixture::new();
        let watchers: Vec<_> = (0..3).map(|_| fixture.client()).collect();
        let keys = [watched(0, "a", true), watched(0, "b", true), watched(1, "a", true)];
        for (client, key) in watchers.iter().zip(&keys) {
            assert!(fixture.interest.watch(client, key));
            assert!(!fixture.interest.watch(client, key), "it is watched already");
        }
        assert_eq!((fixture.interest.watching_clients(), fixture.interest.watched_keys()), (3, 3));
        fixture.interest.changed(0, b"a");
        let marked = || watchers.iter().map(|client| client.states.has(State::DIRTY)).collect::<Vec<_>>();
        assert_eq!(marked(), [true, false, false]);
        fixture.interest.flushed(Some(0));
        assert_eq!(marked(), [true, true, false]);
        for (client, key) in watchers.iter().zip(&keys) {
            fixture.interest.unwatch(client, std::slice::from_ref(key));
        }
        fixture.interest.changed(1, b"a");
        assert_eq!(marked(), [false, false, false]);
        assert_eq!((fixture.interest.watching_clients(), fixture.interest.watched_keys()), (0, 0));
        assert_eq!(fixture.interest.listeners.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_flush_changes_no_key_that_was_not_there() {
        let mut fixture = Fixture::new();
        let client = fixture.client();
        fixture.interest.watch(&client, &watched(0, "a", false));
        fixture.interest.flushed(None);
        assert!(!client.states.has(State::DIRTY));
    }
}
