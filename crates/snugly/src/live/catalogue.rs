//! The dictionaries that lie beside the data: reading them, publishing one, and ending the use of one.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use redis::Value;
use snugly_codec::Dictionary;
use snugly_dictionaries::{Catalogue, Entry, Keys};

use super::deployment::Deployment;
use super::node::Node;

/// Attempts to write a catalogue that others write, too.
const ATTEMPTS: usize = 16;
/// Time for a replica to take a dictionary, in milliseconds.
const REPLICA_PATIENCE: &str = "1000";

/// Keys that a server looks at for one SCAN.
const KEYS_AT_ONCE: &str = "1000";

/// Most dictionaries that are fetched.
const MOST: usize = 128;

/// Dictionaries by their IDs.
pub(crate) type Dictionaries = HashMap<u32, Dictionary>;

/// The prefix of all keys of dictionaries.
pub(crate) fn all_keys(prefix: &str) -> String {
    format!("{prefix}:dict")
}

/// The catalogue; empty if there is none.
pub(crate) fn read(deployment: &mut Deployment, keys: &Keys) -> Result<Catalogue> {
    read_from(deployment.node_of(&keys.catalogue())?, keys)
}

fn read_from(node: &mut Node, keys: &Keys) -> Result<Catalogue> {
    let key = keys.catalogue();
    let document: Option<Vec<u8>> = node.ask(&[b"GET", &key[..]])?;
    match document {
        None => Ok(Catalogue::default()),
        Some(document) => Catalogue::decode(&document)
            .with_context(|| format!("the catalogue {} cannot be read", String::from_utf8_lossy(&key))),
    }
}

/// The dictionary of this ID; nothing if it is not there or not what it says.
pub(crate) fn fetch(deployment: &mut Deployment, keys: &Keys, id: u32) -> Result<Option<Dictionary>> {
    let key = keys.dictionary(id);
    let node = deployment.node_of(&key)?;
    let bytes: Option<Option<Vec<u8>>> = node.ask_if_allowed(&[b"GET", &key[..]])?;
    let dictionary = bytes.flatten().and_then(|bytes| Dictionary::load(bytes).ok());
    Ok(dictionary.filter(|dictionary| dictionary.id() == id))
}

/// The existing ones of these dictionaries, and no more than so many: values may claim any.
pub(crate) fn fetch_all(deployment: &mut Deployment, keys: &Keys, ids: &[u32]) -> Result<Dictionaries> {
    let mut dictionaries = Dictionaries::new();
    for &id in ids.iter().take(MOST) {
        dictionaries.extend(fetch(deployment, keys, id)?.map(|dictionary| (id, dictionary)));
    }
    Ok(dictionaries)
}

/// The IDs that have a key, in their order, whatever it holds.
pub(crate) fn ids_there(deployment: &mut Deployment, prefix: &str) -> Result<Vec<u32>> {
    let start = format!("{}:", all_keys(prefix));
    let pattern = format!("{}*", literally(&start));
    let mut ids = Vec::new();
    for node in &mut deployment.nodes {
        let mut cursor = "0".to_owned();
        loop {
            let words = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", KEYS_AT_ONCE];
            let (next, keys): (String, Vec<Vec<u8>>) = node.ask(&words)?;
            let rest =
                |key: &Vec<u8>| std::str::from_utf8(key).ok()?.strip_prefix(&start)?.parse::<u32>().ok();
            ids.extend(keys.iter().filter_map(rest));
            if next == "0" {
                break;
            }
            cursor = next;
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// A glob that only this text matches.
fn literally(text: &str) -> String {
    let escaped = |letter| if "*?[\\".contains(letter) { vec!['\\', letter] } else { vec![letter] };
    text.chars().flat_map(escaped).collect()
}

/// Publishes a dictionary and makes it that of its pattern. Gives what is to be told of it.
pub(crate) fn publish(
    deployment: &mut Deployment,
    keys: &Keys,
    dictionary: &Dictionary,
    mut entry: Entry,
) -> Result<Vec<String>> {
    let key = keys.dictionary(dictionary.id());
    let node = deployment.node_of(&key)?;
    let written: Value = node.ask(&[b"SET", &key[..], dictionary.bytes(), b"NX"])?;
    if written == Value::Nil {
        let there: Option<Vec<u8>> = node.ask(&[b"GET", &key[..]])?;
        ensure!(
            there.as_deref() == Some(dictionary.bytes()),
            "{} holds something else than the dictionary of this ID: look what wrote it, and delete it",
            String::from_utf8_lossy(&key)
        );
    }
    let mut notes = Vec::new();
    notes.extend(wait_for_replica(node)?);
    entry.published_at = Some(now(node)?);
    rewrite(deployment, keys, |catalogue| catalogue.add(entry.clone()))?;
    Ok(notes)
}

/// Waits until a replica has what was written, where there is one; says so if none has.
fn wait_for_replica(node: &mut Node) -> Result<Option<String>> {
    let info = node.info("replication")?.unwrap_or_default();
    if info.get("connected_slaves").is_none_or(|count| count == "0") {
        return Ok(None);
    }
    let replicas: Option<i64> = node.ask_if_allowed(&["WAIT", "1", REPLICA_PATIENCE])?;
    Ok((replicas == Some(0)).then(|| "no replica has taken the dictionary within a second".to_owned()))
}

/// Seconds since 1970 by the server's clock, or by ours if it may not be asked.
fn now(node: &mut Node) -> Result<u64> {
    let asked: Option<(u64, u64)> = node.ask_if_allowed(&["TIME"])?;
    let ours = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(asked.map_or_else(ours, |(seconds, _)| seconds))
}

/// Ends the use of a dictionary for new values. Values that need it stay readable.
pub(crate) fn retire(deployment: &mut Deployment, keys: &Keys, id: u32) -> Result<()> {
    rewrite(deployment, keys, |catalogue| catalogue.active.retain(|row| row.id != id))
}

/// Forgets a dictionary and deletes it. Values that need it cannot be read any more.
pub(crate) fn delete(deployment: &mut Deployment, keys: &Keys, id: u32) -> Result<()> {
    rewrite(deployment, keys, |catalogue| catalogue.forget(id))?;
    let key = keys.dictionary(id);
    deployment.node_of(&key)?.ask::<i64, _>(&[b"DEL", &key[..]])?;
    Ok(())
}

/// Writes the catalogue with a change, unless others have changed it meanwhile: then it starts again.
fn rewrite(deployment: &mut Deployment, keys: &Keys, change: impl Fn(&mut Catalogue)) -> Result<()> {
    let key = keys.catalogue();
    let node = deployment.node_of(&key)?;
    for _ in 0..ATTEMPTS {
        node.ask::<Value, _>(&[b"WATCH", &key[..]])?;
        let mut catalogue = read_from(node, keys)?;
        let before = catalogue.clone();
        change(&mut catalogue);
        if catalogue == before {
            node.ask::<Value, _>(&["UNWATCH"])?;
            return Ok(());
        }
        let document = catalogue.encode()?;
        node.ask::<Value, _>(&["MULTI"])?;
        node.ask::<Value, _>(&[b"SET", &key[..], &document])?;
        if node.ask::<Value, _>(&["EXEC"])? != Value::Nil {
            return Ok(());
        }
    }
    bail!("others keep changing the catalogue {}: try again later", String::from_utf8_lossy(&key))
}
