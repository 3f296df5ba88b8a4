//! A service of lines of text, over real sockets: what connections promise, whatever their protocol.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use snugly_net::{
    Address, Connection, Endpoint, Next, READ_BUFFER, Service, Slots, Socket, Step, TlsSettings, Workers,
    accept, channel, listen, run,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// The rest, for later.
enum Later {
    /// An answer that may never come: the connection ends if the client does.
    Wait(Duration),
    /// An answer before which nothing is sent; the connection ends if the client does.
    Held(Duration),
    /// An answer that is sure to come.
    Work(Duration),
}

/// Output that is sent before more requests run.
const ENOUGH: usize = 256 << 10;
/// Bytes that may arrive behind a line that waits.
const MOST_AHEAD: usize = 16 << 20;

/// Answers a line with itself, but for lines that ask for something: see [`Lines::answer`].
struct Lines {
    output: Vec<u8>,
    idle_timeout: Option<Duration>,
    seen: Arc<Seen>,
}

/// Notes of the service, for tests to look at.
#[derive(Default)]
struct Seen {
    sockets: Mutex<Vec<Weak<Socket>>>,
    recovered: AtomicUsize,
    most_output: AtomicUsize,
    ended: AtomicUsize,
    refused_handshakes: AtomicUsize,
}

struct Client {
    is_closing: bool,
    seen: Arc<Seen>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.seen.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl Lines {
    /// Answers one line, or says what has to happen before.
    fn answer(&mut self, client: &mut Client, line: &str) -> Option<Later> {
        let time = |text: &str| Duration::from_millis(text.parse().expect("a number"));
        match line.trim_start().split_once(' ').unwrap_or((line, "")) {
            ("zeros", count) => {
                let count: usize = count.parse().expect("a number");
                self.output.resize(self.output.len() + count, 0);
            }
            ("wait", milliseconds) => return Some(Later::Wait(time(milliseconds))),
            ("held", milliseconds) => return Some(Later::Held(time(milliseconds))),
            ("work", milliseconds) => return Some(Later::Work(time(milliseconds))),
            ("bye", _) => client.is_closing = true,
            ("panic", _) => {
                self.output.extend_from_slice(b"half an answer");
                panic!("as it was asked to");
            }
            _ => {}
        }
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
        None
    }
}

impl Service for Lines {
    type Client = Client;
    type Later = Later;

    fn open(&mut self, socket: &Arc<Socket>) -> io::Result<Client> {
        self.seen.sockets.lock().expect("no test panics").push(Arc::downgrade(socket));
        Ok(Client { is_closing: false, seen: self.seen.clone() })
    }

    fn refused_handshake(&mut self, _socket: &Socket, _error: &io::Error) {
        self.seen.refused_handshakes.fetch_add(1, Ordering::SeqCst);
    }

    fn run(&mut self, client: &mut Client, input: &[u8]) -> Step<Later> {
        let mut taken = 0;
        while let Some(len) = input[taken..].iter().position(|&byte| byte == b'\n') {
            let line = std::str::from_utf8(&input[taken..taken + len]).expect("tests send text").to_owned();
            taken += len + 1;
            if let Some(later) = self.answer(client, &line) {
                return Step { taken, next: Next::Later(later) };
            }
            if client.is_closing {
                break;
            }
            if self.output.len() >= ENOUGH {
                return Step { taken, next: Next::Run };
            }
        }
        Step { taken, next: Next::Read }
    }

    async fn finish(connection: &mut Connection<Lines>, later: Later) -> io::Result<()> {
        match later {
            Later::Wait(time) => connection.wait(tokio::time::sleep(time)).await?,
            Later::Held(time) => connection.hold_back(time, true).await?,
            Later::Work(time) => tokio::time::sleep(time).await,
        }
        connection.send(b"done\n").await
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    fn recover(&mut self, _client: &Client) {
        self.output.clear();
        self.seen.recovered.fetch_add(1, Ordering::SeqCst);
    }

    fn is_closing(client: &Client) -> bool {
        client.is_closing
    }

    fn idle_timeout(&self, _client: &Self::Client) -> Option<Duration> {
        self.idle_timeout
    }

    fn read_ahead(&mut self, _client: &Client, bytes: usize) -> io::Result<()> {
        if bytes > MOST_AHEAD {
            Err(io::Error::other("too much was sent while a line waited"))
        } else {
            Ok(())
        }
    }

    fn holds_output(client: &Client, bytes: usize) {
        client.seen.most_output.fetch_max(bytes, Ordering::SeqCst);
    }
}

/// A server with one worker.
struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    stop: oneshot::Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    fn start(idle_timeout: Option<Duration>, most_clients: usize) -> Server {
        Server::start_with(idle_timeout, most_clients, None)
    }

    fn start_with(
        idle_timeout: Option<Duration>,
        most_clients: usize,
        tls: Option<Arc<TlsSettings>>,
    ) -> Server {
        let listening = listen("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let Ok(Address::Tcp(address)) = listening.address() else { panic!("it listens") };
        let seen = Arc::<Seen>::default();
        let (handle, assignments) = channel();
        let service = Lines { output: Vec::new(), idle_timeout, seen: seen.clone() };
        let worker = thread::spawn(move || run(service, &event_loop(), assignments));
        let (stop, stopped) = oneshot::channel();
        let accepting = thread::spawn(move || {
            let slots = Slots::default();
            event_loop().block_on(async {
                let endpoint = Endpoint { number: 0, listening, tls };
                let admit = |_: &Address| slots.take(most_clients).ok_or(&b"full\n"[..]);
                tokio::select! {
                    () = accept(endpoint, Arc::new(Workers::new(vec![handle], channel().0, |_| false)), admit) => {}
                    _ = stopped => {}
                }
            });
        });
        Server { address, seen, stop, threads: vec![worker, accepting] }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        // Only a server that does not do what it must lets a test wait so long.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream
    }

    fn stop(self) -> Arc<Seen> {
        self.stop.send(()).expect("the server runs");
        self.threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        self.seen
    }
}

fn event_loop() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("an event loop")
}

fn ask(stream: &mut (impl Read + Write), line: &str) -> String {
    stream.write_all(line.as_bytes()).expect("the connection is open");
    expect_line(stream)
}

fn expect_line(stream: &mut impl Read) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("text")
}

fn expect_end(mut stream: TcpStream) {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => assert_eq!(String::from_utf8_lossy(&rest), ""),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn requests_are_answered_in_whatever_pieces_they_arrive() {
    let server = Server::start(None, 10);
    let mut stream = server.connect();
    stream.set_nodelay(true).expect("a socket");
    for byte in b"one byte at a time\n" {
        stream.write_all(&[*byte]).expect("the connection is open");
    }
    assert_eq!(expect_line(&mut stream), "one byte at a time\n");
    let long = "long ".repeat(READ_BUFFER) + "\n";
    stream.write_all(long.as_bytes()).expect("the connection is open");
    let mut answer = vec![0; long.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(answer == long.as_bytes());
    assert_eq!(ask(&mut stream, "two\nat once\n"), "two\n");
    assert_eq!(expect_line(&mut stream), "at once\n");
    drop(stream);
    server.stop();
}

/// Requests of 4,000 bytes, written before any of their answers of 24,000 is read: neither fits what the system holds.
const UNREAD: usize = 1_000;
const ANSWER: usize = 20_000;

fn write_before_reading(server: &Server) -> (TcpStream, String) {
    let mut greedy = server.connect();
    greedy.set_write_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let request = format!("{:>4000}\n", format!("zeros {ANSWER}"));
    greedy.write_all(request.repeat(UNREAD).as_bytes()).expect("the server goes on reading");
    (greedy, request)
}

fn read_answers(greedy: &mut TcpStream, request: &str) {
    let mut answer = vec![0; ANSWER + request.len()];
    for _ in 0..UNREAD {
        greedy.read_exact(&mut answer).expect("an answer");
        assert!(answer.ends_with(request.as_bytes()));
    }
}

#[test]
fn a_client_that_writes_everything_before_it_reads_is_answered_and_holds_up_nobody_else() {
    let server = Server::start(None, 10);
    let mut other = server.connect();
    let (mut greedy, request) = write_before_reading(&server);
    assert_eq!(ask(&mut other, "hello\n"), "hello\n");
    assert!(
        server.seen.most_output.load(Ordering::SeqCst) < ENOUGH + 2 * ANSWER,
        "requests wait, not answers"
    );
    read_answers(&mut greedy, &request);
    assert_eq!(ask(&mut greedy, "goodbye\n"), "goodbye\n");
    drop((greedy, other));
    server.stop();
}

#[test]
fn what_was_sent_is_answered_although_the_client_sends_no_more() {
    let server = Server::start(None, 10);
    let (mut greedy, request) = write_before_reading(&server);
    greedy.shutdown(Shutdown::Write).expect("the connection is open");
    read_answers(&mut greedy, &request);
    expect_end(greedy);
    server.stop();
}

#[test]
fn a_client_that_goes_is_noticed_whatever_waits_behind_its_request() {
    let server = Server::start(None, 10);
    for (waits, ahead) in
        [("wait 600000\n", 0), ("wait 600000\n", 20 * READ_BUFFER), ("held 600000\n", 20 * READ_BUFFER)]
    {
        let mut stream = server.connect();
        stream.write_all(waits.as_bytes()).expect("the connection is open");
        stream.write_all(&vec![b'x'; ahead]).expect("the server goes on reading");
        drop(stream);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.seen.ended.load(Ordering::SeqCst) < 3 {
        assert!(Instant::now() < deadline, "a connection has stayed");
        thread::sleep(Duration::from_millis(5));
    }
    server.stop();
}

#[test]
fn the_last_answer_arrives_although_the_client_has_sent_more() {
    let server = Server::start(None, 20);
    for _ in 0..20 {
        let mut stream = server.connect();
        let sent = [&b"bye\n"[..], &vec![b'x'; 20 * READ_BUFFER]].concat();
        stream.write_all(&sent).expect("the server takes what it drops");
        assert_eq!(expect_line(&mut stream), "bye\n");
        expect_end(stream);
    }
    server.stop();
}

#[test]
fn a_panic_ends_its_connection_and_no_other() {
    let server = Server::start(None, 10);
    let (mut other, mut broken) = (server.connect(), server.connect());
    assert_eq!(ask(&mut other, "before\n"), "before\n");
    broken.write_all(b"panic\n").expect("the connection is open");
    expect_end(broken);
    assert_eq!(ask(&mut other, "after\n"), "after\n");
    drop(other);
    let seen = server.stop();
    assert_eq!(seen.recovered.load(Ordering::SeqCst), 1);
    assert_eq!(seen.ended.load(Ordering::SeqCst), 2);
}

#[test]
fn what_has_arrived_is_answered_before_the_server_stops() {
    let server = Server::start(None, 10);
    let (mut busy, mut idle, mut waiting) = (server.connect(), server.connect(), server.connect());
    assert_eq!(ask(&mut idle, "idle\n"), "idle\n");
    assert_eq!(ask(&mut waiting, "begun\nwait 60000\n"), "begun\n");
    assert_eq!(ask(&mut busy, "begun\nwork 50\nlast\n"), "begun\n");
    let seen = server.stop();
    assert_eq!(expect_line(&mut busy), "done\n");
    assert_eq!(expect_line(&mut busy), "last\n");
    [busy, idle, waiting].into_iter().for_each(expect_end);
    assert_eq!(seen.ended.load(Ordering::SeqCst), 3);
}

#[test]
fn a_request_that_waits_holds_up_its_own_connection_only() {
    let server = Server::start(None, 10);
    let (mut waiting, mut other) = (server.connect(), server.connect());
    waiting.write_all(b"wait 200\nafter\n").expect("the connection is open");
    assert_eq!(ask(&mut other, "meanwhile\n"), "meanwhile\n");
    assert_eq!(expect_line(&mut waiting), "done\n");
    assert_eq!(expect_line(&mut waiting), "after\n");
    let mut impatient = server.connect();
    impatient.write_all(b"wait 60000\n").expect("the connection is open");
    let _ = impatient.write_all(&vec![b'x'; 2 * MOST_AHEAD]);
    expect_end(impatient);
    drop((waiting, other));
    server.stop();
}

#[test]
fn messages_come_between_answers_from_any_thread() {
    let server = Server::start(None, 10);
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, "first\n"), "first\n");
    let socket = server.seen.sockets.lock().expect("no test panics")[0].upgrade().expect("it is open");
    socket.outbox.push(b"news\n").expect("there is room");
    assert_eq!(expect_line(&mut stream), "news\n");
    assert_eq!(ask(&mut stream, "second\n"), "second\n");
    socket.kill();
    drop(socket);
    expect_end(stream);
    server.stop();
}

#[test]
fn connections_end_when_they_say_so_are_too_many_or_do_nothing() {
    let server = Server::start(None, 1);
    let mut only = server.connect();
    assert_eq!(ask(&mut only, "hello\n"), "hello\n");
    let mut refused = server.connect();
    assert_eq!(expect_line(&mut refused), "full\n");
    expect_end(refused);
    assert_eq!(ask(&mut only, "bye\nnever run\n"), "bye\n");
    expect_end(only);
    server.stop();

    let server = Server::start(Some(Duration::from_millis(50)), 1);
    expect_end(server.connect());
    server.stop();
}

/// A server's certificate, and a client that trusts it.
struct Certified {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Certified {
    fn new() -> Certified {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let server = ServerConfig::builder().with_no_client_auth();
        let server = server.with_single_cert(vec![cert.der().clone()], key).expect("they belong together");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("a certificate");
        let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Certified { server: Arc::new(server), client: Arc::new(client) }
    }

    fn serve(&self) -> (Server, Arc<TlsSettings>) {
        let tls = Arc::new(TlsSettings::new(self.server.clone()));
        (Server::start_with(None, 10, Some(tls.clone())), tls)
    }

    fn connect(&self, server: &Server) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(self.client.clone(), name).expect("a session");
        StreamOwned::new(session, server.connect())
    }
}

#[test]
fn what_is_said_inside_tls_arrives_whole_in_both_directions() {
    let certified = Certified::new();
    let (server, _tls) = certified.serve();
    let mut stream = certified.connect(&server);
    for len in [1, 100, 16 << 10, READ_BUFFER - 1, READ_BUFFER, 300_000] {
        let line = format!("{}\n", "x".repeat(len));
        assert!(ask(&mut stream, &line) == line, "{len}");
    }
    assert_eq!(ask(&mut stream, "wait 1\n"), "done\n");
    server.stop();
}

#[test]
fn lines_that_arrive_together_inside_tls_are_answered_without_more_input() {
    let certified = Certified::new();
    let (server, _tls) = certified.serve();
    let mut stream = certified.connect(&server);
    let lines: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    stream.write_all(lines.as_bytes()).expect("the connection is open");
    let mut answers = vec![0; lines.len()];
    stream.read_exact(&mut answers).expect("all answers");
    assert!(answers == lines.as_bytes());
    server.stop();
}

#[test]
fn a_client_that_reads_late_gets_everything_and_is_told_the_end_inside_tls() {
    let certified = Certified::new();
    let (server, _tls) = certified.serve();
    let mut stream = certified.connect(&server);
    stream.write_all(b"zeros 30000000\nbye\n").expect("the connection is open");
    // Enough for the server to find that the socket takes no more.
    thread::sleep(Duration::from_millis(100));
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).expect("an end that TLS has told");
    assert_eq!(answers.len(), 30_000_000 + "zeros 30000000\nbye\n".len());
    server.stop();
}

#[test]
fn a_client_that_does_not_speak_tls_is_refused_and_counted() {
    let certified = Certified::new();
    let (server, _tls) = certified.serve();
    let mut stranger = server.connect();
    stranger.write_all(b"hello\n").expect("it listens");
    let mut alert = Vec::new();
    stranger.read_to_end(&mut alert).expect("an end");
    assert_eq!(alert.first(), Some(&21), "an alert of TLS: {alert:?}");
    assert_eq!(ask(&mut certified.connect(&server), "a\n"), "a\n");
    let seen = server.stop();
    assert_eq!(seen.refused_handshakes.load(Ordering::SeqCst), 1);
}

#[test]
fn certificates_that_are_replaced_are_those_of_new_connections() {
    let (before, after) = (Certified::new(), Certified::new());
    let (server, tls) = before.serve();
    let mut old = before.connect(&server);
    assert_eq!(ask(&mut old, "a\n"), "a\n");
    tls.replace(after.server.clone());
    assert_eq!(ask(&mut after.connect(&server), "b\n"), "b\n");
    assert_eq!(ask(&mut old, "c\n"), "c\n");
    assert!(before.connect(&server).write_all(b"d\n").is_err(), "the old certificate is gone");
    server.stop();
}
