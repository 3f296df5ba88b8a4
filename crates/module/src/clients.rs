//! What the filter has to know of a client, since the server tells a filter nothing but its identity.
//!
//! It knows clients and no commands. Whatever is not known for certain is asked again, or left open.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

/// What is known of one client.
#[derive(Debug)]
pub struct Client {
    pub origin: Origin,
    /// Whether it may have begun a transaction.
    pub in_transaction: bool,
    database: Option<u16>,
    /// Its rights, and when they were looked up.
    rights: Option<(u64, Option<Rights>)>,
}

/// All clients that have been seen.
#[derive(Default)]
pub struct Clients {
    known: HashMap<u64, Client, BuildHasherDefault<Identity>>,
    /// Goes up when rights may have changed.
    era: u64,
}

impl Client {
    fn new(origin: Origin, database: Option<u16>) -> Client {
        Client { origin, database, in_transaction: false, rights: None }
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
}

impl Clients {
    /// A client that has just connected, or a later look at one.
    pub fn connected(&mut self, identity: u64) {
        self.known.insert(identity, Client::new(Origin::Client, Some(0)));
    }

    /// A client that is gone.
    pub fn disconnected(&mut self, identity: u64) {
        self.known.remove(&identity);
    }

    /// Whether one of them may have begun a transaction.
    pub fn have_transactions(&self) -> bool {
        self.known.values().any(|client| client.in_transaction)
    }

    /// Rights may have changed, of anybody.
    pub fn rights_changed(&mut self) {
        self.era += 1;
    }

    /// The client with this identity.
    pub fn get(&mut self, identity: u64, context: Context) -> &mut Client {
        self.known.entry(identity).or_insert_with(|| Client::new(origin(identity, context), None))
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

/// Where commands of a client come from that has not been seen to connect.
fn origin(identity: u64, context: Context) -> Origin {
    if identity == FILE {
        return Origin::Stored;
    }
    let words = [&b"LIST"[..], b"ID", identity.to_string().as_bytes()].map(OwnedText::new);
    let arguments = [&words[0], &words[1], &words[2]].map(|word| word.as_text().raw());
    let reply = context.call(c"CLIENT", c"Ev", &arguments);
    let line = reply.as_ref().and_then(|reply| reply.string()).unwrap_or_default();
    match flags(line) {
        None => Origin::Inside,
        Some(flags) if flags.contains(&b'M') => Origin::Stored,
        Some(_) => Origin::Client,
    }
}

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
