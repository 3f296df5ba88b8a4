//! memcached's protocols: what their requests have done.

use super::Fields;
use crate::stat::{Group, counter, only_metric};
use crate::state::Server;

pub(super) static EVENTS: Group<u64> = Group {
    labels: &["event"],
    stats: &[only_metric(
        |count| (*count).into(),
        counter("memcached_events", "Events in memcached's protocols, by memcached's own names"),
    )],
    each: |server, show| server.memcached_events().for_each(|(name, count)| show(&[name], &count)),
};

pub(super) fn memcached(server: &Server, fields: &mut Fields) {
    let ports: Vec<String> = server.memcached_ports().iter().map(u16::to_string).collect();
    fields.add("memcached_port", if ports.is_empty() { "off".to_owned() } else { ports.join(",") });
    fields.add_all(server.memcached_events());
}
