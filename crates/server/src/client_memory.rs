//! Limits on what connections hold in memory: each by its class (client-output-buffer-limit), and all together
//! (maxmemory-clients), where those that hold the most are disconnected first.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use snugly_store::system_time;
use tracing::warn;

use crate::clients::{ClientInfo, State};
use crate::connection_counters::count;
use crate::server::Server;
use crate::settings::Configuration;

/// Limits on the replies and messages of one connection, in bytes; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputLimit {
    /// Passing it ends the connection at once.
    pub(crate) hard: usize,
    /// Passing it for some time does.
    pub(crate) soft: usize,
    /// That time, in seconds.
    pub(crate) soft_seconds: u64,
}

/// The limits of all classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputLimits {
    normal: OutputLimit,
    /// Of no use here: there are no replicas.
    replica: OutputLimit,
    pubsub: OutputLimit,
}

impl OutputLimits {
    /// Changes the classes that `text` names, each with its three numbers: `normal 0 0 0 pubsub 32mb 8mb 60`.
    ///
    /// # Errors
    /// A description of what is wrong with the text.
    pub(crate) fn change(
        &mut self,
        text: &str,
        bytes: impl Fn(&str) -> Result<u64, String>,
    ) -> Result<(), String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || !words.len().is_multiple_of(4) {
            return Err(
                "it must be a class, a hard limit, a soft limit and seconds, once or several times".into()
            );
        }
        for part in words.chunks_exact(4) {
            let class = match part[0].to_ascii_lowercase().as_str() {
                "normal" => &mut self.normal,
                "slave" | "replica" => &mut self.replica,
                "pubsub" => &mut self.pubsub,
                other => return Err(format!("{other} is no class: use normal, replica or pubsub")),
            };
            let soft_seconds = part[3].parse().map_err(|_| format!("{} is no number of seconds", part[3]))?;
            *class =
                OutputLimit { hard: bytes(part[1])? as usize, soft: bytes(part[2])? as usize, soft_seconds };
        }
        Ok(())
    }

    /// All classes, as Valkey shows them.
    pub(crate) fn text(&self) -> String {
        let classes = [("normal", self.normal), ("slave", self.replica), ("pubsub", self.pubsub)];
        let words = classes
            .map(|(name, limit)| format!("{name} {} {} {}", limit.hard, limit.soft, limit.soft_seconds));
        words.join(" ")
    }

    fn of(&self, client: &ClientInfo) -> OutputLimit {
        if client.states.has(State::SUBSCRIBED) { self.pubsub } else { self.normal }
    }
}

/// Limit on what all connections hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientMemory {
    /// Bytes; 0 is no limit.
    Bytes(u64),
    /// Of max-memory; none where that has no limit.
    Percent(u64),
}

impl ClientMemory {
    /// In bytes, if there is a limit, given that of the memory for values.
    pub(crate) fn limit(self, max_memory: u64) -> Option<usize> {
        let bytes = match self {
            ClientMemory::Bytes(bytes) => bytes,
            ClientMemory::Percent(percent) => max_memory / 100 * percent,
        };
        usize::try_from(bytes).ok().filter(|&bytes| bytes > 0)
    }
}

/// How long the replies to one client may become before they are sent, in bytes, but for large values, which are decoded
/// one by one. A buffer that grows takes up to twice as much.
pub(crate) fn longest_replies(configuration: &Configuration) -> usize {
    let hard = Some(configuration.client_output_buffer_limit.normal.hard).filter(|&hard| hard > 0);
    let all = configuration.max_memory_clients.limit(configuration.max_memory);
    hard.into_iter().chain(all.map(|all| all / 2)).min().unwrap_or(usize::MAX)
}

/// Bytes that these hold, values that several are being sent counted once.
fn held_by(clients: &[Arc<ClientInfo>]) -> usize {
    let shared: HashMap<usize, usize> = clients.iter().filter_map(|client| client.shared()).collect();
    clients.iter().map(|client| client.held()).sum::<usize>() + shared.values().sum::<usize>()
}

impl Server {
    /// What all connections hold, in bytes.
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

    /// Ends connections that hold more than their class may, and the heaviest of all while all together hold too much.
    pub(crate) fn limit_clients(&self) {
        let limits = self.configuration().client_output_buffer_limit;
        let now = system_time();
        for client in self.clients().list() {
            let OutputLimit { hard, soft, soft_seconds } = limits.of(&client);
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

    /// Ends the connections that hold the most until all others together hold no more than they may. Those that are
    /// ending are not counted any more.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("{text} is no number"))
    }

    #[test]
    fn limits_are_shown_as_they_are_set_and_others_stay() {
        let mut limits = OutputLimits::default();
        limits.change("normal 1 2 3 pubsub 4 5 6", bytes).expect("two classes");
        limits.change("REPLICA 7 8 9", bytes).expect("one class");
        assert_eq!(limits.text(), "normal 1 2 3 slave 7 8 9 pubsub 4 5 6");
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in ["", "normal", "normal 1 2", "other 1 2 3", "normal x 2 3", "normal 1 2 -3"] {
            assert!(OutputLimits::default().change(text, bytes).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_of_the_memory_is_a_limit_where_memory_has_one() {
        assert_eq!(ClientMemory::Percent(5).limit(1000), Some(50));
        assert_eq!(ClientMemory::Percent(5).limit(0), None);
        assert_eq!(ClientMemory::Bytes(7).limit(1000), Some(7));
        assert_eq!(ClientMemory::Bytes(0).limit(1000), None);
    }
}
