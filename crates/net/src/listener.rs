//! Listening for connections, and handing them to the threads that serve them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tracing::warn;

use crate::slots::Slot;
use crate::worker::WorkerHandle;

/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// Pause in which nothing is accepted after the system could not.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Listens on an address, and of IPv6 on nothing but that.
///
/// # Errors
/// The system's error.
pub fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts connections for ever, each for the worker that has the fewest. `admit` gives a connection from an address its
/// place, or says what it is sent before it is closed.
pub async fn accept(
    listener: TcpListener,
    workers: Arc<Vec<WorkerHandle>>,
    admit: impl Fn(SocketAddr) -> Result<Slot, &'static [u8]>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => match admit(address) {
                Ok(slot) => assign(stream, slot, &workers),
                Err(refusal) => {
                    // The refusal is a courtesy; a client that is gone already misses nothing.
                    let _ = stream.try_write(refusal);
                }
            },
            Err(error) => {
                warn!(%error, "cannot accept a connection; if files ran out, raise the limit (ulimit -n)");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }
}

fn assign(stream: TcpStream, slot: Slot, workers: &[WorkerHandle]) {
    // The socket moves from the listener's event loop to its worker's.
    let stream = stream.into_std();
    let idlest = workers.iter().min_by_key(|worker| worker.connections());
    if let (Ok(stream), Some(worker)) = (stream, idlest) {
        worker.serve(stream, slot);
    }
}
