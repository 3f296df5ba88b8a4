//! Real servers on free ports, ended with the test, and the program under test.
#![allow(dead_code, reason = "each test program uses a part")]

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use snugly_protocol::resp::{ReplyLimits, ReplyParser, Value, encode_command};

/// A memcached process.
pub struct Memcached {
    process: Child,
    pub port: u16,
}

impl Memcached {
    /// `None` if it is not installed; `arguments` are added to its command line.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let port = free_port();
            let process = Command::new("memcached")
                .args(["-u", "nobody", "-l", "127.0.0.1", "-U", "0", "-p", &port.to_string()])
                .args(arguments)
                .stderr(Stdio::null())
                .spawn();
            let Ok(process) = process else {
                eprintln!("skipped: there is no memcached here");
                return None;
            };
            let mut memcached = Self { process, port };
            // As with other servers: the port may have been taken meanwhile.
            while memcached.process.try_wait().unwrap().is_none() {
                assert!(Instant::now() < deadline, "memcached does not listen");
                if memcached.answers() {
                    return Some(memcached);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Whether it is this process that answers on the port.
    fn answers(&self) -> bool {
        let expected = format!("STAT pid {}\r\n", self.process.id());
        ask_memcached(self.port, "stats\r\n").is_ok_and(|stats| stats.contains(&expected))
    }

    pub fn url(&self) -> String {
        format!("memcached://127.0.0.1:{}", self.port)
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.process.kill(); // fails if it has ended already
        let _ = self.process.wait();
    }
}

/// The reply of a server of memcached's text protocol to one request, on a connection of its own.
pub fn ask_memcached(port: u16, request: &str) -> io::Result<String> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.write_all(format!("{request}quit\r\n").as_bytes())?;
    let mut reply = String::new();
    socket.read_to_string(&mut reply)?;
    Ok(reply)
}

/// A server process.
pub struct Server {
    process: Child,
    pub port: u16,
}

impl Server {
    /// A valkey-server without persistence; `arguments` are added to its command line.
    pub fn valkey(arguments: &[&str]) -> Self {
        let program = std::env::var("SNUGLY_VALKEY_SERVER").unwrap_or_else(|_| {
            panic!(
                "SNUGLY_VALKEY_SERVER does not name a valkey-server: run `make test-deps`, then `make test`"
            )
        });
        Self::start(
            &program,
            &[&["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], arguments].concat(),
        )
    }

    /// `snugly serve`.
    pub fn snugly(arguments: &[&str]) -> Self {
        Self::start(env!("CARGO_BIN_EXE_snugly"), &[&["serve", "--bind", "127.0.0.1"], arguments].concat())
    }

    fn start(program: &str, arguments: &[&str]) -> Self {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let port = free_port();
            let process = Command::new(program)
                .args(arguments)
                .args(["--port", &port.to_string()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut server = Self { process, port };
            // Another process may have taken the port meanwhile: then ours ends, and the next port is tried.
            while server.process.try_wait().unwrap().is_none() {
                assert!(Instant::now() < deadline, "{program} does not listen");
                if server.answers() {
                    return server;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Whether it is this process that answers on the port.
    fn answers(&self) -> bool {
        let expected = format!("process_id:{}\r\n", self.process.id());
        matches!(self.ask(&[b"INFO", b"server"]), Ok(Value::Bulk(info)) if String::from_utf8_lossy(&info).contains(&expected))
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port of memcached's protocols, of a snugly that chose a free one.
    pub fn memcached_port(&self) -> u16 {
        let Value::Bulk(info) = self.command(&[b"INFO", b"memcached"]) else { panic!("no INFO") };
        let info = String::from_utf8(info).unwrap();
        let port = info.lines().find_map(|line| line.strip_prefix("memcached_port:"));
        port.expect("INFO tells the port").parse().unwrap()
    }

    /// The reply to one command on a connection of its own.
    pub fn command(&self, args: &[&[u8]]) -> Value {
        self.ask(args).unwrap()
    }

    fn ask(&self, args: &[&[u8]]) -> io::Result<Value> {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        let mut request = Vec::new();
        encode_command(args, &mut request);
        socket.write_all(&request)?;
        let (mut parser, mut input, mut piece) = (ReplyParser::default(), Vec::new(), [0; 4096]);
        loop {
            if let Some((value, _)) =
                parser.parse(&input, &ReplyLimits::default()).map_err(io::Error::other)?
            {
                return Ok(value);
            }
            match socket.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => input.extend_from_slice(&piece[..count]),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill(); // fails if it has ended already
        let _ = self.process.wait();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Runs the program under test with `input` on its standard input.
pub fn snugly(arguments: &[&str], input: &[u8]) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_snugly"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = process.stdin.take().unwrap().write_all(input); // it need not read
    process.wait_with_output().unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
