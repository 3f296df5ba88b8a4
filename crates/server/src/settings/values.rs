//! Values of settings that are neither numbers nor texts. How they are written as text is for `parsing`.

use std::fmt;

/// Protocols that a port serves beside RESP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols {
    /// Whether connections that begin with memcached's binary protocol are served.
    pub binary: bool,
}

/// Whether clients of the port with TLS need a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsClients {
    /// They do.
    Required,
    /// One that they show is verified.
    Optional,
    /// None is asked for.
    Unverified,
}

/// Versions of TLS that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsProtocols {
    /// 1.2 and 1.3.
    Both,
    /// 1.2 only.
    Tls12,
    /// 1.3 only.
    Tls13,
}

/// The form of the log's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object each.
    Json,
}

/// The address of a server that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primary {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
}

impl fmt::Display for Primary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Primary { host, port } = self;
        if host.contains(':') {
            write!(formatter, "[{host}]:{port}")
        } else {
            write!(formatter, "{host}:{port}")
        }
    }
}

/// Treatment of what a followed server has and this one has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// It is counted and passed over.
    Skip,
    /// The link ends.
    Stop,
}

/// Use of dictionaries for new values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DictionaryUse {
    /// Existing ones, and others that are learned.
    Learned,
    /// Existing ones only.
    Fixed,
    /// None.
    None,
}
