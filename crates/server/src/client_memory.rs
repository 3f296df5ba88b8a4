//! Ends connections that hold more than their class may (client-output-buffer-limit), and those that hold the most while
//! all together hold too much (maxmemory-clients).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use snugly_store::system_time;
use tracing::warn;

use crate::clients::{ClientInfo, State};
use crate::counters::count;
use crate::settings::OutputLimit;
use crate::state::Server;

/// Bytes that these hold, values that several are being sent counted once.
fn held_by(clients: &[Arc<ClientInfo>]) -> usize {
    let shared: HashMap<usize, usize> = clients.iter().filter_map(|client| client.shared()).collect();
    clients.iter().map(|client| client.held()).sum::<usize>() + shared.values().sum::<usize>()
}

impl Server {
    /// Bytes that all connections hold.
    pub(crate) fn client_memory(&self) -> usize {
        self.clients().held() + self.decoded.bytes()
    }

    /// Ends a connection that was to get more than it may hold.
    pub(crate) fn end_over_output_limit(&self, client: &ClientInfo) {
        count(&self.connections.over_output_limit);
        self.tell_of_heavy_client(
            client,
            "it was to get more than client-output-buffer-limit or maxmemory-clients allow",
        );
        self.clients().kill(client);
    }

    /// Ends a connection that has sent more than it may while a command waited, or a reply that it did not take.
    pub(crate) fn end_over_input_limit(&self, client: &ClientInfo) {
        count(&self.connections.over_input_limit);
        self.tell_of_heavy_client(
            client,
            "it has sent more than max-request-bytes allows while a command or a reply waited",
        );
        self.clients().kill(client);
    }

    /// Ends connections that hold more than their class may, and the heaviest of all while all together hold too much.
    pub(crate) fn limit_clients(&self) {
        let limits = self.configuration().client_output_buffer_limit;
        let now = system_time();
        for client in self.clients().list() {
            let OutputLimit { hard, soft, soft_seconds } = limits.of(client.states.has(State::SUBSCRIBED));
            let output = client.output();
            let is_over_soft = soft > 0 && output > soft;
            let since = match client.over_soft_since.load(Ordering::Relaxed) {
                0 if is_over_soft => now,
                since if is_over_soft => since,
                _ => 0,
            };
            client.over_soft_since.store(since, Ordering::Relaxed);
            if hard > 0 && output > hard || since > 0 && now - since >= soft_seconds * 1000 && since != now {
                self.end_over_output_limit(&client);
            }
        }
        self.evict_clients();
    }

    /// Ends the connections that hold the most until all others together hold no more than they may. Connections that
    /// are ending are not counted any more.
    pub(crate) fn evict_clients(&self) {
        let configuration = self.configuration();
        let Some(limit) = configuration.max_memory_clients.limit(configuration.max_memory) else { return };
        loop {
            let clients = self.clients().list();
            if held_by(&clients) <= limit {
                return;
            }
            let evictable = clients.iter().filter(|client| !client.states.has(State::NO_EVICT));
            let Some(heaviest) = evictable.max_by_key(|client| client.held_and_shared()) else { return };
            count(&self.connections.evicted);
            self.tell_of_heavy_client(
                heaviest,
                "all clients together held more than maxmemory-clients allows",
            );
            self.clients().kill(heaviest);
        }
    }

    fn tell_of_heavy_client(&self, client: &ClientInfo, reason: &str) {
        if let Some(count) = self.heavy_clients_log.note(system_time()) {
            let bytes = client.held_and_shared();
            warn!(client = client.id, address = %client.address, bytes, count, reason, "a connection is closed");
        }
    }
}
