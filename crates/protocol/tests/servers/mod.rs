//! Real servers that the tests start, each in a folder of its own.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use snugly_protocol::resp::{ReplyLimits, ReplyParser, Value, encode_command};
use tempfile::TempDir;

/// The path of a Redis server, if one is installed. Its version is whatever the system has.
const REDIS: &str = "/usr/bin/redis-server";
const FILE: &str = "dump.rdb";

/// A server on a free port, ended with the test.
pub struct Server {
    process: Process,
    folder: TempDir,
}

impl Server {
    /// A valkey-server with these arguments.
    pub fn valkey(args: &[&str]) -> Server {
        Server::start(&valkey(), args, tempfile::tempdir().unwrap())
    }

    /// A valkey-server that has loaded an RDB file.
    pub fn valkey_with_file(file: &[u8]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), file).unwrap();
        Server::start(&valkey(), &[], folder)
    }

    /// A redis-server, if there is one.
    pub fn redis(args: &[&str]) -> Option<Server> {
        let program = Path::new(REDIS);
        if !program.exists() {
            println!("{REDIS} is not there, so nothing is compared with it");
            return None;
        }
        Some(Server::start(program, args, tempfile::tempdir().unwrap()))
    }

    fn start(program: &Path, args: &[&str], folder: TempDir) -> Server {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let mut process = Process::start(program, args, folder.path());
            // Another process may have taken the port meanwhile: then ours ends, and the next port is tried.
            while process.child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < deadline, "{} does not listen", program.display());
                if process.is_ready() {
                    return Server { process, folder };
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(Instant::now() < deadline, "{} ends as soon as it starts", program.display());
        }
    }

    /// The file that SAVE writes.
    pub fn saved(&self) -> Vec<u8> {
        assert_eq!(self.command(&[b"SAVE"]), Value::Simple(b"OK".to_vec()));
        std::fs::read(self.folder.path().join(FILE)).unwrap()
    }

    /// Runs a command and gives the reply.
    pub fn command(&self, args: &[&[u8]]) -> Value {
        self.commands(&[args.iter().map(|arg| arg.to_vec()).collect()]).remove(0)
    }

    /// Runs commands on one connection and gives the replies.
    pub fn commands(&self, commands: &[Vec<Vec<u8>>]) -> Vec<Value> {
        let mut stream = Vec::new();
        commands.iter().for_each(|command| encode_command(command, &mut stream));
        let mut socket = self.process.connect().unwrap();
        socket.write_all(&stream).unwrap();
        let (mut parser, mut answer, mut replies) = (ReplyParser::default(), Vec::new(), Vec::new());
        let mut buffer = vec![0; 64 << 10];
        while replies.len() < commands.len() {
            let len = socket.read(&mut buffer).unwrap();
            assert!(len > 0, "the server has closed the connection");
            answer.extend_from_slice(&buffer[..len]);
            while let Some((reply, taken)) = parser.parse(&answer, &ReplyLimits::default()).unwrap() {
                replies.push(reply);
                answer.drain(..taken);
            }
        }
        replies
    }

    /// Sends `stream`, then nothing more; returns all that is answered until the server closes the connection.
    pub fn exchange(&self, stream: &[u8]) -> std::io::Result<Vec<u8>> {
        self.process.exchange(stream)
    }
}

fn valkey() -> PathBuf {
    let program = std::env::var_os("SNUGLY_VALKEY_SERVER").unwrap_or_else(|| {
        panic!("SNUGLY_VALKEY_SERVER does not name a valkey-server: run `make test-deps`, then `make test`")
    });
    program.into()
}

/// A process that ends when it goes out of scope.
struct Process {
    child: Child,
    port: u16,
}

impl Process {
    fn start(program: &Path, args: &[&str], folder: &Path) -> Process {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(folder)
            .args(["--dbfilename", FILE])
            .args(args)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Process { child, port }
    }

    /// Returns whether it is this process that answers on the port, and has loaded what there is.
    fn is_ready(&self) -> bool {
        let id = format!("process_id:{}\r\n", self.child.id());
        self.exchange(b"INFO\n").is_ok_and(|info| {
            let info = String::from_utf8_lossy(&info);
            info.contains(&id) && info.contains("loading:0\r\n")
        })
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
    }

    fn exchange(&self, stream: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut socket = self.connect()?;
        socket.write_all(stream)?;
        socket.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails if it has ended already
        let _ = self.child.wait();
    }
}

/// The replies in a stream of them.
pub fn parse_replies(mut bytes: &[u8]) -> Vec<Value> {
    let mut parser = ReplyParser::default();
    let mut values = Vec::new();
    while let Some((value, taken)) = parser.parse(bytes, &ReplyLimits::default()).unwrap() {
        values.push(value);
        bytes = &bytes[taken..];
    }
    assert!(bytes.is_empty(), "half a reply: {}", bytes.escape_ascii());
    values
}
