//! A connection to a server of any protocol, for what is asked beside a load: what it tells of itself, and single values.
//!
//! It knows what each protocol calls these. It must not know what they are asked for.

use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use snugly_protocol::resp::{Value, encode_command};

use super::client::{Client, Scheme, Target};
use super::memcached::Memcached;
use super::process;

/// A connection that is logged in.
pub enum Control {
    Resp(Client),
    Memcached(Memcached),
}

impl Control {
    pub fn connect(target: &Target) -> Result<Self> {
        match target.scheme() {
            Scheme::Resp => Client::connect(target).map(Self::Resp),
            Scheme::Memcached => Memcached::connect(target).map(Self::Memcached),
        }
    }

    /// The socket, for a caller that goes on by itself.
    pub fn into_socket(self) -> TcpStream {
        match self {
            Self::Resp(client) => client.into_socket(),
            Self::Memcached(client) => client.into_socket(),
        }
    }

    pub fn process_id(&mut self) -> Result<u32> {
        let (fields, name) = match self {
            Self::Resp(client) => (client.info()?, "process_id"),
            Self::Memcached(client) => (client.stats()?, "pid"),
        };
        let pid = fields.get(name).and_then(|pid| pid.parse().ok());
        pid.context("the server does not tell its process ID, give it with --pid")
    }

    /// CPU time that the server has used so far, user and system, by its own account; `None` if it does not say.
    pub fn cpu_time(&mut self) -> Result<Option<Duration>> {
        match self {
            Self::Resp(client) => process::cpu_time(client),
            Self::Memcached(client) => {
                Ok(process::cpu_time_told(&client.stats()?, ["rusage_user", "rusage_system"]))
            }
        }
    }

    /// Name and version of the server.
    pub fn name(&mut self) -> Result<String> {
        match self {
            Self::Resp(client) => client.server_name(),
            Self::Memcached(client) => {
                let mut stats = client.stats()?;
                Ok(match stats.remove("snugly_version") {
                    Some(version) => format!("snugly {version}"),
                    None => format!("memcached {}", stats.remove("version").unwrap_or_default()),
                })
            }
        }
    }

    /// Number of values it holds.
    pub fn count(&mut self) -> Result<u64> {
        match self {
            Self::Resp(client) => match client.command(&["DBSIZE"])? {
                Value::Integer(count) => Ok(count.try_into()?),
                other => bail!("unexpected answer to DBSIZE: {other:?}"),
            },
            Self::Memcached(client) => {
                let count = client.stats()?.remove("curr_items").context("no curr_items in stats")?;
                Ok(count.parse()?)
            }
        }
    }

    /// Stores values, all sent before a reply is read.
    pub fn set(&mut self, batch: &[(String, Vec<u8>)]) -> Result<()> {
        match self {
            Self::Resp(client) => {
                let mut requests = Vec::new();
                for (key, value) in batch {
                    encode_command(&[b"SET", key.as_bytes(), value], &mut requests);
                }
                client.send(&requests)?;
                for _ in batch {
                    if let Value::Error(text) = client.reply()? {
                        bail!("SET: {}", String::from_utf8_lossy(&text));
                    }
                }
                Ok(())
            }
            Self::Memcached(client) => client.set(batch),
        }
    }

    pub fn get(&mut self, key: &str) -> Result<Vec<u8>> {
        match self {
            Self::Resp(client) => match client.command(&["GET", key])? {
                Value::Bulk(value) => Ok(value),
                other => bail!("unexpected answer to GET {key}: {other:?}"),
            },
            Self::Memcached(client) => client.get(key),
        }
    }
}
