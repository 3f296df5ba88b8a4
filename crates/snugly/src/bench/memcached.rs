//! A blocking client for one connection to a server of memcached's text protocol, for what is asked beside a load.
//!
//! It knows how to log in, to store and get values, and what a server tells of itself. It must not know what is measured.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use snugly_memcached::client::{Reply, encode_get, encode_set, is_key, parse_reply};

use super::client::Target;

/// Longest value that is taken, in bytes.
pub const LONGEST_VALUE: usize = 512 << 20;
/// Without an answer for this long the server is taken for one of another protocol.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that is logged in.
pub struct Memcached {
    socket: TcpStream,
    input: Vec<u8>,
}

impl Memcached {
    pub fn connect(target: &Target) -> Result<Self> {
        let mut client = Self { socket: target.open()?, input: Vec::new() };
        client.socket.set_read_timeout(Some(PATIENCE))?;
        client.greet(target).with_context(|| {
            format!(
                "{target} does not answer as memcached: for a server that speaks RESP, write redis://{target}"
            )
        })?;
        Ok(client)
    }

    /// Asks for the version, which only a server of this protocol tells, and logs in if it asks for that.
    fn greet(&mut self, target: &Target) -> Result<()> {
        let mut answer = self.version()?;
        if answer == "CLIENT_ERROR unauthenticated" {
            let login = target.login()?;
            let (user, password) =
                login.context("it asks for a password: write memcached://user:password@host:port")?;
            let mut request = Vec::new();
            encode_set(b"login", 0, 0, format!("{user} {password}").as_bytes(), &mut request);
            self.send(&request)?;
            let logged_in = self.line()?;
            ensure!(logged_in == "STORED", "cannot log in as {user}: {logged_in}");
            answer = self.version()?;
        }
        ensure!(answer.starts_with("VERSION "), "`version` was answered with {answer:?}");
        Ok(())
    }

    fn version(&mut self) -> Result<String> {
        self.send(b"version\r\n")?;
        self.line()
    }

    /// The socket, for a caller that goes on by itself. All replies have been read.
    pub fn into_socket(self) -> TcpStream {
        self.socket
    }

    /// Stores values, all sent before a reply is read.
    pub fn set(&mut self, batch: &[(String, Vec<u8>)]) -> Result<()> {
        let mut requests = Vec::new();
        for (key, value) in batch {
            encode_set(key.as_bytes(), 0, 0, value, &mut requests);
        }
        self.send(&requests)?;
        for (key, _) in batch {
            let reply = self.line()?;
            ensure!(reply == "STORED", "set {key}: {reply}");
        }
        Ok(())
    }

    pub fn get(&mut self, key: &str) -> Result<Vec<u8>> {
        let mut request = Vec::new();
        encode_get([key], &mut request);
        self.send(&request)?;
        let value = self.reply(|reply| match reply {
            Reply::Value { value, .. } => Ok(value.to_vec()),
            other => Err(anyhow!("get {key}: {other}")),
        })??;
        let end = self.line()?;
        ensure!(end == "END", "get {key}: {end} behind the value");
        Ok(value)
    }

    /// The statistics by name.
    pub fn stats(&mut self) -> Result<HashMap<String, String>> {
        self.send(b"stats\r\n")?;
        let mut stats = HashMap::new();
        loop {
            let line = self.line()?;
            let mut words = line.splitn(3, ' ');
            match (words.next(), words.next(), words.next()) {
                (Some("STAT"), Some(name), value) => {
                    stats.insert(name.to_owned(), value.unwrap_or_default().to_owned());
                }
                (Some("END"), None, None) => return Ok(stats),
                _ => bail!("unexpected answer to stats: {line}"),
            }
        }
    }

    fn send(&mut self, requests: &[u8]) -> Result<()> {
        self.socket.write_all(requests).context("cannot send")
    }

    fn line(&mut self) -> Result<String> {
        self.reply(|reply| reply.to_string())
    }

    /// Waits for the next reply, or part of one, and gives it to `take`.
    fn reply<T>(&mut self, take: impl FnOnce(Reply<'_>) -> T) -> Result<T> {
        loop {
            if let Some((reply, taken)) = parse_reply(&self.input, LONGEST_VALUE)? {
                let taken_out = take(reply);
                self.input.drain(..taken);
                return Ok(taken_out);
            }
            let mut piece = [0; 16 * 1024];
            match self.socket.read(&mut piece) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => self.input.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    bail!("there is no answer for {} seconds", PATIENCE.as_secs())
                }
                Err(error) => return Err(error).context("cannot receive"),
            }
        }
    }
}

/// An error unless such a key can be asked for; all keys of a benchmark are of one length.
pub fn check_key(key: &str) -> Result<()> {
    ensure!(
        is_key(key.as_bytes()),
        "memcached takes no key such as {key:?} ({} bytes): keys are at most 250 bytes, without spaces and control \
         characters; choose another --key-prefix",
        key.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    /// Connects to a server that gives these answers, each to a line, and tells the lines.
    fn connect(login: &str, answers: &'static [&'static str]) -> (Result<()>, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("memcached://{login}127.0.0.1:{}", listener.local_addr().unwrap().port());
        let server = std::thread::spawn(move || {
            let mut socket = BufReader::new(listener.accept().unwrap().0);
            let mut heard = Vec::new();
            for answer in answers {
                let mut line = String::new();
                socket.read_line(&mut line).unwrap();
                heard.push(line.trim_end().to_owned());
                socket.get_mut().write_all(answer.as_bytes()).unwrap();
            }
            heard
        });
        let connected = Memcached::connect(&url.parse().unwrap()).map(drop);
        (connected, server.join().unwrap())
    }

    #[test]
    fn a_server_that_asks_for_a_password_gets_it() {
        let answers = &["CLIENT_ERROR unauthenticated\r\n", "", "STORED\r\n", "VERSION 1.6.18\r\n"];
        let (connected, heard) = connect("me:secret@", answers);
        connected.unwrap();
        assert_eq!(heard, ["version", "set login 0 0 9", "me secret", "version"]);
        let refused = &["CLIENT_ERROR unauthenticated\r\n", "", "CLIENT_ERROR authentication failure\r\n"];
        let error = format!("{:#}", connect("me:wrong@", refused).0.unwrap_err());
        assert!(error.contains("cannot log in as me: CLIENT_ERROR authentication failure"), "{error}");
    }

    #[test]
    fn a_server_of_another_protocol_is_said_to_be_one() {
        for answer in [&["-ERR unknown command 'version'\r\n"], &["HTTP/1.1 400 Bad Request\r\n"]] {
            let error = format!("{:#}", connect("", answer).0.unwrap_err());
            assert!(error.contains("does not answer as memcached"), "{error}");
            assert!(error.contains(answer[0].trim_end()), "{error}");
        }
        let error = format!("{:#}", connect("", &[""]).0.unwrap_err());
        assert!(error.contains("closed the connection"), "{error}");
    }
}
