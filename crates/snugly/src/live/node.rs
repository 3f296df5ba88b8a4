//! One server and the connection to it: requests, and errors that say what a command was needed for.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use redis::{Cmd, Connection, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind, Value};

use super::address::{Address, Trust};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that takes longer for an answer is taken for dead.
const PATIENCE: Duration = Duration::from_secs(30);

/// The purpose of commands, for people who may not call them.
const PURPOSES: &[(&str, &str)] = &[
    ("SCAN", "to find keys"),
    ("TYPE", "to tell the types of keys apart"),
    ("STRLEN", "to know how long a value is before it is read"),
    ("GET", "to read the values that are evaluated, and dictionaries"),
    ("GETRANGE", "to read the start of long values"),
    ("PTTL", "to tell which keys expire"),
    ("MEMORY", "to tell how much memory keys take"),
    ("DBSIZE", "to know of how many keys the sample is"),
    ("BACKUP", "to have the store copied"),
    ("DICTIONARY", "to see and manage dictionaries"),
    ("INFO", "to learn what the server is and which commands are used"),
    ("CLUSTER", "to find the nodes of the cluster"),
    ("SET", "to publish a dictionary"),
    ("WATCH", "to publish a dictionary while others do, too"),
    ("UNWATCH", "to publish a dictionary while others do, too"),
    ("MULTI", "to publish a dictionary while others do, too"),
    ("EXEC", "to publish a dictionary while others do, too"),
    ("DEL", "to delete a dictionary"),
    ("EXISTS", "to see whether a dictionary is there"),
];

/// A request, by the words of its command.
pub(crate) fn request<A: AsRef<[u8]>>(words: &[A]) -> Cmd {
    let mut request = Cmd::new();
    words.iter().for_each(|word| {
        request.arg(word.as_ref());
    });
    request
}

/// The fields of INFO.
pub(crate) type Info = HashMap<String, String>;

/// The fields in the text of INFO.
pub(crate) fn fields(text: &str) -> Info {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect()
}

/// A server that is connected and logged in.
pub(crate) struct Node {
    /// The address.
    pub(crate) address: Address,
    connection: Connection,
}

impl Node {
    pub(crate) fn open(trust: &Trust, address: &Address) -> Result<Node> {
        let (connection, greeted) = greet(trust, address)?;
        match greeted {
            Err(error) if !is_refusal(&error) || error.code() == Some("NOAUTH") => {
                return Err(explain_connecting(address, &error));
            }
            _ => {}
        }
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        Ok(Node { address: address.clone(), connection })
    }

    /// Sends a command and waits for its reply; an error reply is an error that says what to do.
    pub(crate) fn ask<T: FromRedisValue, A: AsRef<[u8]>>(&mut self, words: &[A]) -> Result<T> {
        let replied = self.query(words);
        replied.map_err(|error| self.explain(&String::from_utf8_lossy(words[0].as_ref()), &error))
    }

    /// Sends a command and waits for its reply, be it an error, which is for the caller to explain.
    pub(crate) fn query<T: FromRedisValue, A: AsRef<[u8]>>(&mut self, words: &[A]) -> RedisResult<T> {
        request(words).query(&mut self.connection)
    }

    /// As [`Node::ask`], of what can be done without: nothing if the server does not know it or does not allow it.
    pub(crate) fn ask_if_allowed<T: FromRedisValue, A: AsRef<[u8]>>(
        &mut self,
        words: &[A],
    ) -> Result<Option<T>> {
        let replied: RedisResult<Value> = self.query(words);
        match replied {
            Ok(value) => Ok(T::from_redis_value(value).ok()),
            Err(error) if is_refusal(&error) => Ok(None),
            Err(error) => Err(self.explain(&String::from_utf8_lossy(words[0].as_ref()), &error)),
        }
    }

    /// Sends requests together; the replies are for the caller to look at, those that are errors, too.
    pub(crate) fn ask_together(&mut self, requests: Vec<Cmd>) -> Result<Vec<RedisResult<Value>>> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        requests.into_iter().for_each(|request| {
            pipeline.add_command(request);
        });
        let replied = pipeline.query(&mut self.connection);
        replied.map_err(|error| self.explain("a pipeline", &error))
    }

    /// A section of INFO; nothing if it is not allowed.
    pub(crate) fn info(&mut self, section: &str) -> Result<Option<Info>> {
        let text: Option<String> = self.ask_if_allowed(&["INFO", section])?;
        Ok(text.as_deref().map(fields))
    }

    /// The error of a command, and advice on the remedy.
    pub(crate) fn explain(&self, command: &str, error: &RedisError) -> anyhow::Error {
        let Node { address, .. } = self;
        let purpose = PURPOSES.iter().find(|row| row.0 == command).map_or("", |row| row.1);
        if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) {
            let (user, told) = (address.user(), error.detail().unwrap_or("no permission"));
            return anyhow!(
                "{address} refuses {command}, which is needed {purpose}: {told}. Let somebody allow it: ACL SETUSER \
                 {user} +{}, and the keys that are meant",
                command.to_lowercase()
            );
        }
        if error.is_timeout() {
            return anyhow!("{address} has not answered for {} seconds", PATIENCE.as_secs());
        }
        if error.is_io_error() || error.is_connection_dropped() {
            return anyhow!("lost the connection to {address}: {error}");
        }
        anyhow!("{address} answers {command} with an error: {}", told_by(error))
    }
}

/// Connects to a server, logs in, and sends it PING, whose reply is for the caller to look at.
///
/// Encryption is agreed on with the first request, and a password that is missing is asked for then.
pub(crate) fn greet(trust: &Trust, address: &Address) -> Result<(Connection, RedisResult<Value>)> {
    let connected = trust.client(address)?.get_connection_with_timeout(CONNECT_TIMEOUT);
    let mut connection = connected.map_err(|error| explain_connecting(address, &error))?;
    connection.set_read_timeout(Some(CONNECT_TIMEOUT))?;
    connection.set_write_timeout(Some(CONNECT_TIMEOUT))?;
    let greeted = request(&["PING"]).query(&mut connection);
    Ok((connection, greeted))
}

/// The words of an error of the server.
pub(crate) fn told_by(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}

/// Whether the server is there and does not answer this command, or not to us.
pub(crate) fn is_refusal(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// The error of a first request, and advice on the remedy.
pub(crate) fn explain_connecting(address: &Address, error: &RedisError) -> anyhow::Error {
    let told = match error.is_timeout() {
        true => format!("no answer within {} seconds", CONNECT_TIMEOUT.as_secs()),
        false => told_by(error),
    };
    let advice = match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS")) => {
            "check user and password: redis://user:password@host"
        }
        (_, Some("NOAUTH")) => "it wants a password: redis://:password@host, or redis://user:password@host",
        _ if told.contains("ertificate") => {
            "--ca-file names the certificates to trust, and --insecure trusts any"
        }
        _ if error.is_io_error() => "check host and port, and whether the server wants TLS (rediss://)",
        _ => "check the URL",
    };
    anyhow!("{told}: {advice}").context(format!("cannot connect to {address}"))
}

/// The reply to a command that must be answered.
pub(crate) fn taken<T: FromRedisValue>(node: &Node, command: &str, reply: RedisResult<Value>) -> Result<T> {
    let value = reply.map_err(|error| node.explain(command, &error))?;
    T::from_redis_value(value).with_context(|| format!("{} answers {command} unexpectedly", node.address))
}
