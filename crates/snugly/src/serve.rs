//! `snugly serve`: settings from their sources, a banner, and the server until a signal ends it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::{Context as _, Result};
use clap::{ArgMatches, Command};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use snugly_codec::Choice;
use snugly_server::{
    Address, Durability, Listener, LoadError, PassedSocket, Protocol, Server, Sources, StartError,
};
use tracing::{error, info, warn};

use crate::allocator::JEMALLOC;
use crate::configuration;
use crate::log::Log;
use crate::open_files;
use crate::service_manager;
use crate::start;

pub(crate) fn command(command: Command) -> Command {
    let command = command
        .about("Runs the cache server")
        .after_help(
            "Any Redis or Valkey client can connect, for example: redis-cli -p 7684\n\
             Every option can also be given in the environment and in a configuration file, which SIGHUP and CONFIG RELOAD \
             read again; a flag beats the environment, which beats the file.",
        );
    configuration::add_arguments(command)
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    // Before anything else opens files.
    let passed = service_manager::passed_sockets()?;
    let (sources, advice) = configuration::sources(matches)?;
    let configuration = sources.configuration();
    let mut log = Log::start(configuration);
    serve(sources, &advice, passed, &mut log).map_err(|error| log.end(error))
}

fn serve(sources: Sources, advice: &[String], passed: Vec<PassedSocket>, log: &mut Log) -> Result<()> {
    let configuration = sources.configuration();
    for advice in advice {
        warn!("{advice}");
    }
    start::check_environment(std::env::vars_os())?;
    start::check_storage(configuration)?;
    allow_connections(configuration.max_clients);
    let compression = configuration.compression()?;
    let origins = configuration::origins(&sources);
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, stopping.clone())?;
    }
    let mut running = match Server::start(sources, JEMALLOC, passed, &stopping) {
        Err(StartError::Load(stopped @ LoadError::Stopped { .. })) => {
            info!("{stopped}");
            return Ok(());
        }
        started => started?,
    };
    warn_if_open(running.server());
    log.show(&banner(running.server(), compression, &origins));

    let server = running.server().clone();
    let follow_signals = move || {
        let mut is_stopping = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP => service_manager::during_reload(|| reload(&server)),
                _ if is_stopping => std::process::exit(1),
                _ => {
                    is_stopping = true;
                    server.stop();
                }
            }
        }
    };
    let thread = thread::Builder::new().name("signals".into()).spawn(follow_signals);
    thread.context("the system refuses a thread that waits for signals; raise the limits of the process")?;
    service_manager::keep_watch(running.server())?;
    service_manager::ready(&format!("listens on {}", addresses(running.server().listeners().iter())));
    running.wait_for_stop();
    service_manager::stopping();
    running.wait()?;
    info!("stopped");
    Ok(())
}

/// Follows the configuration file as it is now, as far as a running server can.
fn reload(server: &Server) {
    match server.reload() {
        Ok(outcome) if outcome.refused.is_empty() => info!("SIGHUP: {outcome}"),
        Ok(outcome) => warn!("SIGHUP: {outcome}"),
        Err(error) => error!("SIGHUP changed nothing: {error}"),
    }
}

/// Files that are open beside connections, at most: listeners, the store, what waits for events.
const OTHER_FILES: u64 = 256;

/// Sees to it that so many connections can be open, or says how many can.
fn allow_connections(max_clients: usize) {
    let wanted = max_clients as u64 + OTHER_FILES;
    if let Some(limit) = open_files::raise_limit()
        && limit < wanted
    {
        warn!(
            "the system lets this process open {limit} files, so that fewer than {max_clients} clients can be \
             connected: raise its limit to {wanted} (ulimit -n), or lower --max-clients"
        );
    }
}

/// Says what protected mode means for a server that listens for others without a password, and whom the admin endpoint
/// serves without a token.
fn warn_if_open(server: &Server) {
    let configuration = server.configuration();
    let is_local = |host: &str| host == "localhost" || host.starts_with("127.") || host == "::1";
    let admin = configuration.admin_address.rsplit_once(':').map(|(host, _)| host.trim_matches(['[', ']']));
    if configuration.admin_token.is_empty() && admin.is_some_and(|host| !is_local(host)) {
        warn!("whoever reaches {} can read the metrics: set --admin-token-file", configuration.admin_address);
    }
    let mut hosts = configuration.bind.split([' ', ',']).filter(|host| !host.is_empty());
    if server.is_open() && hosts.any(|host| !is_local(host)) {
        match configuration.protected_mode {
            true => {
                warn!("there is no password, so only clients on this machine are served: set --password-file")
            }
            false => {
                warn!(
                    "whoever reaches {} can read and change everything: set --password-file",
                    configuration.bind
                )
            }
        }
    }
}

fn addresses<'a>(listeners: impl Iterator<Item = &'a Listener>) -> String {
    let address = |listener: &Listener| match &listener.address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => path.display().to_string(),
    };
    listeners.map(address).collect::<Vec<_>>().join(", ")
}

/// Arguments with which redis-cli connects to the first of the listeners.
fn arguments_to_try(server: &Server) -> String {
    match server.listeners() {
        [Listener { address: Address::Tcp(address), is_tls: false, .. }, ..] => {
            format!("-p {}", address.port())
        }
        [Listener { address: Address::Tcp(address), .. }, ..] => format!("--tls -p {}", address.port()),
        [Listener { address: Address::Unix(path), .. }, ..] => format!("-s {}", path.display()),
        [] => String::new(),
    }
}

/// The treatment of values, in words.
fn banner(server: &Server, compression: Choice, origins: &str) -> String {
    let configuration = server.configuration();
    let values = match (compression.codec().name(), configuration.goal()) {
        ("none", _) => "Values are stored as they are (--compression none).".to_owned(),
        (codec, Some(_)) => format!(
            "Values are written with {codec} or what suits their kind, and encoded anew where they stay (--compression \
             auto); those that would not become smaller are stored as they are."
        ),
        (codec, None) => format!(
            "Values of {} bytes and more are compressed with {codec} level {}; shorter ones, and those that would \
             not become smaller, are stored as they are.",
            compression.min_bytes(),
            compression.level()
        ),
    };
    let memory = match configuration.max_memory {
        0 => "Memory is not limited (--max-memory).".to_owned(),
        bytes => format!(
            "Memory for keys and values is limited to {bytes} bytes; when it is full: {}.",
            configuration.max_memory_policy.name()
        ),
    };
    let disk = match (configuration.disk(), configuration.durability) {
        (None, _) => {
            "Nothing is written to disk: values last as long as the server (--storage FOLDER keeps them)."
                .to_owned()
        }
        (Some(storage), durability) => format!(
            "Everything is kept in {}{}; {}.",
            storage.path.display(),
            match storage.max_disk {
                0 => String::new(),
                bytes => format!(", in at most {bytes} bytes"),
            },
            match durability {
                Durability::Fsync => "a write is answered when it is on the disk".to_owned(),
                Durability::Batched => {
                    format!("a kill loses the writes of {} ms at most", configuration.commit_interval)
                }
                Durability::None => "when writes are on the disk is up to the system".to_owned(),
            }
        ),
    };
    let admin: String = server
        .admin_addresses()
        .iter()
        .map(|address| format!("  Metrics for Prometheus: http://{address}/metrics\n"))
        .collect();
    let of = |protocol, is_tls| {
        let listeners = server.listeners().iter();
        listeners.filter(move |listener| (listener.protocol, listener.is_tls) == (protocol, is_tls))
    };
    let line = |name: &str, protocol, is_tls| match &*addresses(of(protocol, is_tls)) {
        "" => String::new(),
        addresses => format!("  {name}: {addresses}\n"),
    };
    let tls = line("With TLS", Protocol::Resp, true);
    let memcached = line("memcached's protocols", Protocol::Memcached, false)
        + &line("memcached's protocols with TLS", Protocol::Memcached, true);
    format!(
        "snugly {} listens on {} (process {})\n  {values}\n  {memory}\n  {disk}\n{tls}{memcached}{admin}{origins}  To try it: redis-cli {}\n",
        env!("CARGO_PKG_VERSION"),
        addresses(of(Protocol::Resp, false).chain(of(Protocol::Resp, true))),
        std::process::id(),
        arguments_to_try(server),
    )
}
