//! Connections of the load generator: a bare socket, which costs little beside what is measured, and is not encrypted. The other
//! tools have `live::node`.

use std::collections::HashMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::ValueEnum;
use percent_encoding::percent_decode_str;
use snugly_protocol::resp::{ReplyLimits, ReplyParser, Value, encode_command};
use url::Url;

use crate::password;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Address and login of a server: `snugly://[[user]:password@]host[:port][/database]`, or with another scheme.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    scheme: Scheme,
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    database: u32,
}

/// The protocol that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scheme {
    /// redis://, valkey:// or snugly://
    Resp,
    /// memcached://, its text protocol
    Memcached,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resp => "resp",
            Self::Memcached => "memcached",
        })
    }
}

impl Target {
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// User and password: those of the URL, else of the environment; without a user it is `default`.
    pub fn login(&self) -> Result<Option<(&str, String)>> {
        let password = match &self.password {
            Some(password) => Some(password.clone()),
            None => password::of_environment()?,
        };
        Ok(password.map(|password| (self.user.as_deref().unwrap_or("default"), password)))
    }

    /// Opens a connection; small messages leave at once.
    pub fn open(&self) -> Result<TcpStream> {
        let mut failure = anyhow!("{} has no address", self.host);
        for address in (self.host.as_str(), self.port).to_socket_addrs().with_context(|| format!("{self}"))? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    return Ok(socket);
                }
                Err(error) => failure = error.into(),
            }
        }
        Err(failure.context(format!("cannot connect to {self}")))
    }

    /// Whether the server runs on this machine, so that its process can be looked at.
    pub fn is_local(&self) -> bool {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        addresses.is_ok_and(|mut addresses| addresses.any(|address| address.ip().is_loopback()))
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let url = Url::parse(text).context(
            "expected a URL such as snugly://[[user]:password@]host[:port][/database], redis://... or valkey://...",
        )?;
        let (scheme, default_port) = match url.scheme() {
            "redis" | "valkey" => (Scheme::Resp, 6379),
            "snugly" => (Scheme::Resp, 7684),
            "memcached" => (Scheme::Memcached, 11211),
            "rediss" | "valkeys" => {
                bail!("a benchmark measures the server and not TLS: use its port without")
            }
            other => {
                bail!("unknown scheme {other}://, expected redis://, valkey://, snugly:// or memcached://")
            }
        };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']); // those of an IPv6 address
        let decode = |text: &str| percent_decode_str(text).decode_utf8().map(String::from);
        let database = match url.path().trim_matches('/') {
            "" => 0,
            number => number.parse().with_context(|| format!("{number} is no database number"))?,
        };
        ensure!(
            scheme == Scheme::Resp || database == 0,
            "memcached has no databases: write memcached://host:port without /{database}"
        );
        Ok(Self {
            scheme,
            host: if host.is_empty() { "127.0.0.1" } else { host }.to_owned(),
            port: url.port().unwrap_or(default_port),
            user: Some(decode(url.username())?).filter(|user| !user.is_empty()),
            password: url.password().map(decode).transpose()?,
            database,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f) // without the password
    }
}

/// A connection that is logged in and has selected its database.
pub struct Client {
    socket: TcpStream,
    parser: ReplyParser,
    input: Vec<u8>,
}

impl Client {
    pub fn connect(target: &Target) -> Result<Self> {
        ensure!(
            target.scheme == Scheme::Resp,
            "{target} is a memcached server: only `bench server` and `bench memory` can use one"
        );
        let mut client = Self { socket: target.open()?, parser: ReplyParser::default(), input: Vec::new() };
        if let Some((user, password)) = target.login()? {
            client
                .command(&["AUTH", user, &password])
                .with_context(|| format!("cannot log in to {target}"))?;
        }
        if target.database != 0 {
            client.command(&["SELECT", &target.database.to_string()])?;
        }
        Ok(client)
    }

    /// The socket, for a caller that goes on by itself. All replies have been read.
    pub fn into_socket(self) -> TcpStream {
        self.socket
    }

    /// Sends a command and waits for its reply; an error reply is an error.
    pub fn command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Result<Value> {
        let mut request = Vec::new();
        encode_command(args, &mut request);
        self.socket.write_all(&request)?;
        match self.reply()? {
            Value::Error(text) => Err(anyhow!("{}", String::from_utf8_lossy(&text))),
            value => Ok(value),
        }
    }

    /// Sends requests that are encoded already, without waiting.
    pub fn send(&mut self, requests: &[u8]) -> Result<()> {
        Ok(self.socket.write_all(requests)?)
    }

    /// Waits for the next reply.
    pub fn reply(&mut self) -> Result<Value> {
        loop {
            if let Some((value, taken)) = self.parser.parse(&self.input, &ReplyLimits::default())? {
                self.input.drain(..taken);
                return Ok(value);
            }
            let mut piece = [0; 16 * 1024];
            let count = self.socket.read(&mut piece)?;
            ensure!(count > 0, "the server closed the connection");
            self.input.extend_from_slice(&piece[..count]);
        }
    }

    /// The fields of INFO.
    pub fn info(&mut self) -> Result<HashMap<String, String>> {
        let text = match self.command(&["INFO"])? {
            Value::Bulk(text) | Value::Verbatim { text, .. } => text,
            other => bail!("unexpected answer to INFO: {other:?}"),
        };
        let lines = String::from_utf8_lossy(&text).into_owned();
        let fields = lines.lines().filter_map(|line| line.split_once(':'));
        Ok(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Name and version of the server, as INFO gives them.
    pub fn server_name(&mut self) -> Result<String> {
        const VERSIONS: [(&str, &str); 3] =
            [("snugly", "snugly_version"), ("valkey", "valkey_version"), ("redis", "redis_version")];
        let info = self.info()?;
        let named = VERSIONS.iter().find_map(|(name, field)| Some(format!("{name} {}", info.get(*field)?)));
        Ok(named.unwrap_or_else(|| "unknown server".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_with_their_defaults() {
        let target = |text: &str| text.parse::<Target>().unwrap();
        for (url, address) in [
            ("redis://cache.example.com", "cache.example.com:6379"),
            ("snugly://127.0.0.1", "127.0.0.1:7684"),
            ("valkey://[::1]:7000/2", "::1:7000"),
            ("memcached://localhost", "localhost:11211"),
        ] {
            assert_eq!(target(url).to_string(), address);
        }
        let full = target("redis://me:p%40ss@host:1/3");
        assert_eq!(
            (full.user.as_deref(), full.password.as_deref(), full.database),
            (Some("me"), Some("p@ss"), 3)
        );
        assert_eq!(target("redis://:secret@host").user, None);
        assert!(target("redis://[::1]").is_local() && !target("redis://192.0.2.1").is_local());
    }

    #[test]
    fn urls_that_mean_nothing_are_refused() {
        for url in
            ["", "localhost:6379", "http://host", "rediss://host", "redis://host/first", "memcached://host/1"]
        {
            assert!(url.parse::<Target>().is_err(), "{url}");
        }
    }
}
