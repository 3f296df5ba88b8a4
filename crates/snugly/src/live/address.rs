//! Address and login of a server, as people write it. Knows URLs and files of certificates, and opens nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use percent_encoding::percent_decode_str;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use url::Url;

use crate::password;

/// Options to reach a server, or the cluster that it is a node of.
#[derive(Args, Clone, Debug)]
pub(crate) struct Reach {
    /// Address of the server: redis://[[user]:password@]host[:port][/database], or valkey://, snugly://, rediss:// and
    /// valkeys:// with TLS, or unix:///path?db=0. A password may be in REDISCLI_AUTH instead, or in the file that
    /// SNUGLY_PASSWORD_FILE names
    pub(crate) url: Address,

    /// Read the whole cluster that the server is a node of; detected without this where INFO is allowed
    #[arg(long)]
    pub(crate) cluster: bool,

    #[command(flatten)]
    pub(crate) trust: Trust,
}

/// Options to reach one server.
#[derive(Args, Clone, Debug)]
pub(crate) struct OneServer {
    /// Address of the server: snugly://[[user]:password@]host[:port], or redis://, valkey://, rediss://, valkeys:// and
    /// snuglys:// with TLS, or unix:///path. A password may be in REDISCLI_AUTH instead, or in the file that
    /// SNUGLY_PASSWORD_FILE names
    #[arg(default_value = "snugly://127.0.0.1")]
    pub(crate) url: Address,

    #[command(flatten)]
    pub(crate) trust: Trust,
}

/// Options about the certificate of a server, with TLS.
#[derive(Args, Clone, Debug)]
pub(crate) struct Trust {
    /// Certificates to trust, with TLS [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// Trust any certificate, with TLS
    #[arg(long, conflicts_with = "ca_file")]
    insecure: bool,
}

/// Address and login of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    place: Endpoint,
    user: Option<String>,
    password: Option<String>,
    database: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Endpoint {
    Host { host: String, port: u16, tls: bool },
    Socket(PathBuf),
}

/// One row for each scheme of servers that are reached by host and port: whether with TLS, and the usual port.
const SCHEMES: [(&str, bool, u16); 6] = [
    ("redis", false, 6379),
    ("valkey", false, 6379),
    ("snugly", false, 7684),
    ("rediss", true, 6379),
    ("valkeys", true, 6379),
    ("snuglys", true, 7684),
];
const EXPECTED: &str = "expected redis://, valkey://, snugly://, rediss://, valkeys:// or unix://";

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Address> {
        let url = Url::parse(text).context(EXPECTED)?;
        let decode = |text: &str| percent_decode_str(text).decode_utf8().map(String::from);
        let queried =
            |name: &str| url.query_pairs().find(|pair| pair.0 == name).map(|pair| pair.1.into_owned());
        let (place, path) = match SCHEMES.iter().find(|row| row.0 == url.scheme()) {
            Some(&(_, tls, port)) => {
                // The brackets are those of an IPv6 address.
                let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
                let host = if host.is_empty() { "127.0.0.1" } else { host }.to_owned();
                let place = Endpoint::Host { host, port: url.port().unwrap_or(port), tls };
                (place, url.path().trim_matches('/').to_owned())
            }
            None if url.scheme() == "unix" => {
                ensure!(!url.path().is_empty(), "which socket? unix:///path/of/the/socket");
                (Endpoint::Socket(decode(url.path())?.into()), String::new())
            }
            None => bail!("unknown scheme {}://, {EXPECTED}", url.scheme()),
        };
        let database = queried("db").or(Some(path)).filter(|text| !text.is_empty());
        let database = match database {
            None => 0,
            Some(number) => number.parse().with_context(|| format!("{number} is no database number"))?,
        };
        Ok(Address {
            place,
            user: Some(decode(url.username())?).filter(|user| !user.is_empty()),
            password: url.password().map(decode).transpose()?,
            database,
        })
    }
}

impl fmt::Display for Address {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Endpoint::Host { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Endpoint::Host { host, port, .. } => write!(f, "{host}:{port}"),
            Endpoint::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Address {
    /// Another node of the same cluster, with the same way to log in. Without a host it is this one's.
    pub(crate) fn of_node(&self, host: &str, port: u16) -> Address {
        let (own, tls) = match &self.place {
            Endpoint::Host { host, tls, .. } => (host.as_str(), *tls),
            Endpoint::Socket(_) => ("127.0.0.1", false),
        };
        let host = if host.is_empty() || host == "?" { own } else { host };
        Address { place: Endpoint::Host { host: host.to_owned(), port, tls }, ..self.clone() }
    }

    /// The user who logs in.
    pub(crate) fn user(&self) -> &str {
        self.user.as_deref().unwrap_or("default")
    }
}

impl Trust {
    /// A client of the server at this address.
    pub(crate) fn client(&self, address: &Address) -> Result<redis::Client> {
        let mut login = RedisConnectionInfo::default().set_skip_set_lib_name().set_db(address.database);
        let password = match &address.password {
            Some(password) => Some(password.clone()),
            None => password::of_environment()?,
        };
        if let Some(password) = password {
            login = login.set_password(password);
            if let Some(user) = &address.user {
                login = login.set_username(user);
            }
        }
        let place = match &address.place {
            Endpoint::Host { host, port, tls: false } => ConnectionAddr::Tcp(host.clone(), *port),
            Endpoint::Host { host, port, tls: true } => ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: self.insecure,
                tls_params: None,
            },
            Endpoint::Socket(path) => ConnectionAddr::Unix(path.clone()),
        };
        let is_encrypted = matches!(place, ConnectionAddr::TcpTls { .. });
        ensure!(
            is_encrypted || (self.ca_file.is_none() && !self.insecure),
            "--ca-file and --insecure are about TLS: write rediss:// or valkeys:// for it"
        );
        let info: ConnectionInfo = place.into_connection_info()?.set_redis_settings(login);
        if is_encrypted {
            // It fails if there is one already, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        match &self.ca_file {
            Some(file) => Ok(redis::Client::build_with_tls(info, certificates(file)?)?),
            None => Ok(redis::Client::open(info)?),
        }
    }
}

fn certificates(file: &Path) -> Result<redis::TlsCertificates> {
    let read = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(redis::TlsCertificates { client_tls: None, root_cert: Some(read) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn urls_are_read_with_their_defaults() {
        for (url, shown) in [
            ("redis://cache.example.com", "cache.example.com:6379"),
            ("valkeys://cache.example.com:7000", "cache.example.com:7000"),
            ("snugly://127.0.0.1", "127.0.0.1:7684"),
            ("valkey://[::1]:7000/2", "[::1]:7000"),
            ("unix:///run/valkey.sock?db=3", "/run/valkey.sock"),
        ] {
            assert_eq!(address(url).to_string(), shown);
        }
        let full = address("redis://me:p%40ss@host:1/3");
        assert_eq!(
            (full.user.as_deref(), full.password.as_deref(), full.database),
            (Some("me"), Some("p@ss"), 3)
        );
        assert_eq!(address("unix:///run/valkey.sock?db=3").database, 3);
        assert!(!full.to_string().contains("p@ss"));
    }

    #[test]
    fn urls_that_mean_nothing_are_refused() {
        for url in ["", "localhost:6379", "http://host", "redis://host/first", "unix://"] {
            assert!(url.parse::<Address>().is_err(), "{url}");
        }
    }

    #[test]
    fn a_node_without_a_host_is_where_the_first_one_is() {
        let first = address("rediss://me:secret@10.0.0.5:7000");
        assert_eq!(first.of_node("", 7001).to_string(), "10.0.0.5:7001");
        assert_eq!(first.of_node("10.0.0.6", 7001), address("rediss://me:secret@10.0.0.6:7001"));
    }
}
