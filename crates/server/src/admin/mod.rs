//! The admin endpoint: HTTP for those who watch the server.
//!
//! It has a thread of its own, so that its requests never make clients wait. They are trusted no more than requests of
//! clients: connections, the size of a request and its time are bounded.
//!
//! - `pages`: what can be asked for, and by whom
//! - `dashboard`: a page that draws the metrics
//! - `health`: whether the server is well
//! - `host`: the name that it is asked under
//! - `token`: the token that pages with data take, if one is set

mod dashboard;
mod health;
mod host;
mod pages;
mod token;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::state::Server;

/// Connections to one address at once; one more ends the oldest, so that those who ask nothing keep nobody out.
const CONNECTIONS: usize = 64;
/// Time that a connection may take for its one request and the answer.
const WITHIN: Duration = Duration::from_secs(10);
/// Bytes that a request may have in front of its body. Bodies are not read.
const HEAD_BYTES: usize = 8 << 10;
/// Pause before another attempt if no connection can be accepted.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Answers on the calling thread until the other end of `served` is gone.
pub(crate) fn run(
    server: &Arc<Server>,
    runtime: Runtime,
    listeners: Vec<std::net::TcpListener>,
    served: oneshot::Receiver<Infallible>,
) {
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for listener in listeners {
            let listener = TcpListener::from_std(listener).expect("a listening socket can be watched");
            tasks.spawn(accept(server.clone(), listener));
        }
        // Nothing is ever sent: it ends when the sender is dropped, or if a task has panicked, which is
        // reported.
        let mut served = pin!(served);
        poll_fn(|context| match served.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => tasks.poll_join_next(context).map(|_| ()),
        })
        .await;
    });
}

async fn accept(server: Arc<Server>, listener: TcpListener) {
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                connections.retain(|connection| !connection.is_finished());
                if connections.len() == CONNECTIONS
                    && let Some(oldest) = connections.pop_front()
                {
                    oldest.abort();
                }
                connections.push_back(tokio::spawn(serve(server.clone(), stream, address)).abort_handle());
            }
            Err(error) => {
                warn!(%error, "the admin endpoint cannot accept a connection");
                sleep(AGAIN_AFTER).await;
            }
        }
    }
}

async fn serve(server: Arc<Server>, stream: TcpStream, address: SocketAddr) {
    let service = service_fn(|request| {
        let response = pages::respond(&server, &request, address);
        async { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // An error between here and the one who asks concerns nobody else.
    let _ = timeout(WITHIN, connection).await;
}
