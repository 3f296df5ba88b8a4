//! What the filter has to know of a client, since the server tells a filter nothing but its identity.
//!
//! It knows clients and no commands. Whatever is not known for certain is asked again, or left open.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use crate::access::{Rights, rights};
use crate::server::{Context, OwnedText};

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client with a connection.
    Client,
    /// A primary, a node that slots are taken over from, or the server's own file: values are as they were stored.
    Stored,
    /// A script, or another module.
    Inside,
}

/// Identity of the commands in an append-only file.
const FILE: u64 = u64::MAX;

/// Knowledge of one client.
pub struct Client {
    pub origin: Origin,
    /// Whether it may have begun a transaction.
    pub in_transaction: bool,
    pub queued: Queued,
    database: Option<u16>,
    /// Its rights, and when they were looked up.
    rights: Option<(u64, Option<Rights>)>,
}

/// Effects of a client's transaction, when it is executed.
#[derive(Default)]
pub struct Queued {
    /// Keys whose strings its commands are to find plain, each in its database.
    pub keys: Vec<(u16, OwnedText)>,
    /// Keys whose strings they send to another node.
    pub migrated: Vec<(u16, OwnedText)>,
    /// A pause of all clients.
    pub pause: Option<Duration>,
    /// Whether rights may change.
    pub changes_rights: bool,
    /// Whether the server's functions may change.
    pub changes_functions: bool,
}

/// All clients that have been seen.
#[derive(Default)]
pub struct Clients {
    known: HashMap<u64, Client, BuildHasherDefault<Identity>>,
    /// Goes up when rights may have changed.
    era: u64,
}

impl Client {
    fn new(origin: Origin, in_transaction: bool, database: Option<u16>) -> Client {
        Client { origin, in_transaction, queued: Queued::default(), database, rights: None }
    }

    /// The database that it has selected.
    pub fn database(&mut self, identity: u64) -> Option<u16> {
        if self.database.is_none() {
            self.database = Context::database_of(identity);
        }
        self.database
    }

    /// Lets the database be asked for anew.
    pub fn forget_database(&mut self) {
        self.database = None;
    }

    /// Lets the database and the user be asked for anew. In a transaction they change when it is executed.
    pub fn forget_session(&mut self) {
        self.database = None;
        self.rights = None;
        self.queued.changes_rights |= self.in_transaction;
    }
}

impl Clients {
    /// A client that has just connected.
    pub fn connected(&mut self, identity: u64) {
        self.known.insert(identity, Client::new(Origin::Client, false, Some(0)));
    }

    /// A client that is gone.
    pub fn disconnected(&mut self, identity: u64) {
        self.known.remove(&identity);
    }

    /// Whether one of them may have begun a transaction.
    pub fn have_transactions(&self) -> bool {
        self.known.values().any(|client| client.in_transaction)
    }

    /// Whether another node sends strings that it has stored: a primary, or one that slots are taken over from.
    pub fn have_senders(&self) -> bool {
        self.known.iter().any(|(&identity, client)| client.origin == Origin::Stored && identity != FILE)
    }

    /// Rights may have changed, of anybody.
    pub fn rights_changed(&mut self) {
        self.era += 1;
    }

    /// The client with this identity.
    pub fn get(&mut self, identity: u64, context: Context) -> &mut Client {
        self.known.entry(identity).or_insert_with(|| first_seen(identity, context))
    }

    /// The client's rights, as far as they can be looked up.
    pub fn rights(&mut self, identity: u64, context: Context) -> Option<Rights> {
        let era = self.era;
        let client = self.get(identity, context);
        match client.rights {
            Some((then, rights)) if then == era => rights,
            _ => {
                let rights = rights(context.user_of(identity));
                client.rights = Some((era, rights));
                rights
            }
        }
    }
}

/// A client that has not been seen to connect.
fn first_seen(identity: u64, context: Context) -> Client {
    if identity == FILE {
        return Client::new(Origin::Stored, false, None);
    }
    let words = [&b"LIST"[..], b"ID", identity.to_string().as_bytes()].map(OwnedText::new);
    let reply = context.call(c"CLIENT", c"Ev", &words.each_ref().map(|word| word.as_text().raw()));
    let line = reply.as_ref().and_then(|reply| reply.string()).unwrap_or_default();
    match flags(line) {
        // It has no connection.
        None => Client::new(Origin::Inside, false, None),
        Some(flags) => {
            let is_stored = flags.iter().any(|flag| SENDERS.contains(flag));
            let origin = if is_stored { Origin::Stored } else { Origin::Client };
            Client::new(origin, flags.contains(&IN_TRANSACTION), None)
        }
    }
}

/// Flags of CLIENT LIST: a primary, and a node that slots are taken over from.
const SENDERS: [u8; 2] = [b'M', b'i'];
const IN_TRANSACTION: u8 = b'x';

/// The flags in a line of CLIENT LIST, if there is one.
fn flags(line: &[u8]) -> Option<&[u8]> {
    line.split(|&byte| byte == b' ').find_map(|field| field.strip_prefix(b"flags="))
}

/// Hashes identities, which the server counts up.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0.rotate_left(8) ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, identity: u64) {
        // The table takes the first bits and the last.
        self.0 = identity.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_in_a_line_of_the_client_list() {
        let line =
            b"id=7 addr=127.0.0.1:1 laddr=127.0.0.1:2 fd=8 name= age=1 idle=0 flags=M capa= db=0 sub=0\n";
        assert_eq!(flags(line), Some(&b"M"[..]));
        assert_eq!(flags(b""), None);
    }

    #[test]
    fn a_client_begins_in_the_first_database_and_outside_of_transactions() {
        let mut clients = Clients::default();
        clients.connected(3);
        let client = clients.known.get_mut(&3).expect("it has connected");
        assert_eq!(
            (client.origin, client.database(3), client.in_transaction),
            (Origin::Client, Some(0), false)
        );
        clients.disconnected(3);
        assert!(clients.known.is_empty());
    }
}
