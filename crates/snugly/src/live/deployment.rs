//! The servers that hold the data: one, or the primaries of a cluster.

use anyhow::{Context, Result, ensure};
use redis::Value;

use super::address::Reach;
use super::node::{Info, Node};

/// The servers that hold the data.
pub(crate) struct Deployment {
    /// One, or each primary of a cluster.
    pub(crate) nodes: Vec<Node>,
    /// Of a cluster: first and last slot, and the place of the node that has them.
    slots: Vec<(u16, u16, usize)>,
    /// Name and version of the software, as INFO gives them.
    pub(crate) software: String,
    /// INFO of the first server; empty if it is not allowed.
    pub(crate) info: Info,
}

/// One row for each software: its name, and the field of INFO that has its version. The first that is there counts.
const SOFTWARE: [(&str, &str); 3] =
    [("snugly", "snugly_version"), ("Valkey", "valkey_version"), ("Redis", "redis_version")];

/// Name and version of the software, as INFO gives them.
pub(crate) fn software(info: &Info) -> String {
    let named = SOFTWARE.iter().find_map(|(name, field)| Some(format!("{name} {}", info.get(*field)?)));
    named.unwrap_or_else(|| "a server that does not say what it is".to_owned())
}

impl Deployment {
    pub(crate) fn open(reach: &Reach) -> Result<Deployment> {
        let mut first = Node::open(&reach.trust, &reach.url)?;
        let mut info = Info::new();
        for section in ["server", "cluster", "memory", "replication"] {
            info.extend(first.info(section)?.unwrap_or_default());
        }
        let enabled = info.get("cluster_enabled").map(|enabled| enabled == "1");
        ensure!(
            !reach.cluster || enabled != Some(false),
            "{} is no node of a cluster: leave --cluster out",
            reach.url
        );
        let software = software(&info);
        let mut deployment = Deployment { nodes: Vec::new(), slots: Vec::new(), software, info };
        match reach.cluster || enabled == Some(true) {
            true => deployment.find_nodes(reach, first)?,
            false => deployment.nodes.push(first),
        }
        Ok(deployment)
    }

    /// Connects to each primary of the cluster that `first` is a node of.
    fn find_nodes(&mut self, reach: &Reach, mut first: Node) -> Result<()> {
        let rows: Vec<Vec<Value>> = first.ask(&["CLUSTER", "SLOTS"])?;
        let found: Vec<_> = rows
            .iter()
            .map(|row| slot_range(row))
            .collect::<Option<_>>()
            .with_context(|| format!("{} answers CLUSTER SLOTS unexpectedly", reach.url))?;
        ensure!(!found.is_empty(), "the cluster of {} has no slots: it is not set up yet", reach.url);
        for (start, end, host, port) in found {
            let address = reach.url.of_node(&host, port);
            let place = match self.nodes.iter().position(|node| node.address == address) {
                Some(place) => place,
                None => {
                    self.nodes.push(Node::open(&reach.trust, &address)?);
                    self.nodes.len() - 1
                }
            };
            self.slots.push((start, end, place));
        }
        Ok(())
    }

    /// Whether it is a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether the servers are snugly's own.
    pub(crate) fn is_snugly(&self) -> bool {
        self.info.contains_key("snugly_version")
    }

    /// The server that has a key.
    pub(crate) fn node_of(&mut self, key: &[u8]) -> Result<&mut Node> {
        if !self.is_cluster() {
            return Ok(&mut self.nodes[0]);
        }
        let slot: u16 = self.nodes[0].ask(&[b"CLUSTER", &b"KEYSLOT"[..], key])?;
        let row = self.slots.iter().find(|(start, end, _)| (*start..=*end).contains(&slot));
        let (_, _, place) = row.with_context(|| format!("no node of the cluster has the slot {slot}"))?;
        Ok(&mut self.nodes[*place])
    }

    /// A warning if the server may evict dictionaries.
    pub(crate) fn eviction_warning(&self) -> Option<String> {
        let policy = self.info.get("maxmemory_policy").filter(|policy| policy.starts_with("allkeys-"))?;
        Some(format!(
            "maxmemory-policy is {policy}: when memory is full the server may evict dictionaries, too. Clients put \
             back those that they have; a volatile- policy leaves keys without an expiry alone"
        ))
    }
}

/// First and last slot, host and port of a row of CLUSTER SLOTS.
fn slot_range(row: &[Value]) -> Option<(u16, u16, String, u16)> {
    let [Value::Int(start), Value::Int(end), Value::Array(primary), ..] = row else { return None };
    let [host, Value::Int(port), ..] = &primary[..] else { return None };
    let host = match host {
        Value::BulkString(host) => String::from_utf8_lossy(host).into_owned(),
        Value::SimpleString(host) => host.clone(),
        _ => String::new(),
    };
    Some(((*start).try_into().ok()?, (*end).try_into().ok()?, host, (*port).try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_slots_names_the_primary_and_hosts_may_be_missing() {
        let row = |host| {
            let primary = Value::Array(vec![host, Value::Int(7000), Value::BulkString(b"id".to_vec())]);
            slot_range(&[Value::Int(0), Value::Int(5460), primary])
        };
        assert_eq!(row(Value::BulkString(b"h".to_vec())), Some((0, 5460, "h".to_owned(), 7000)));
        assert_eq!(row(Value::Nil), Some((0, 5460, String::new(), 7000)));
        assert_eq!(slot_range(&[Value::Int(0)]), None);
    }
}
