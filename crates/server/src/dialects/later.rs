//! Waits before replies are sent, or before more requests run.

use std::io;
use std::sync::atomic::Ordering;

use snugly_net::{Connection, Service};
use snugly_store::{Ticket, system_time};
use tokio::time::timeout;
use tracing::error;

use super::service::Dialects;
use crate::clients::{ClientInfo, State};
use crate::commands::{self, Delay, ListWait, Wait};
use crate::key_watch::Ending;
use crate::replies::{Outgoing, Piece};

/// The step before more requests of a connection run.
pub(crate) enum Later {
    /// Replies are sent, when they may be.
    Send(Unsent),
    /// These keys of the client's database are fetched from disk, by a thread that can wait.
    Fetch(Vec<Vec<u8>>),
    /// The disk catches up with the changes that wait for it.
    CatchUp,
    /// A pause ends.
    EndPause,
}

/// Replies for which something has to happen first, or that are decoded only as the client takes them.
pub(crate) struct Unsent {
    pub(super) replies: Outgoing,
    /// The write that they tell of, which has to be on disk.
    pub(super) ticket: Option<Ticket>,
    /// The event that the last request waits for.
    pub(super) wait: Option<Wait>,
}

impl Later {
    pub(super) async fn finish(self, connection: &mut Connection<Dialects>) -> io::Result<()> {
        match self {
            Later::Send(unsent) => send_unsent(connection, unsent).await?,
            Later::EndPause => wait_for_end_of_pause(connection).await?,
            Later::CatchUp => {
                let server = connection.client.server.clone();
                server.store().ready_to_write().await;
            }
            Later::Fetch(keys) => {
                let (store, database) =
                    (connection.client.server.store().clone(), connection.client.client.database);
                let fetch = move || keys.iter().for_each(|key| store.fetch(database, key, system_time()));
                // The task can fail only by a panic of the store, which shows again when the requests are run.
                let _ = tokio::task::spawn_blocking(fetch).await;
                connection.client.fetched = true;
            }
        }
        Ok(())
    }
}

/// Waits until a pause is over or another one.
async fn wait_for_end_of_pause(connection: &mut Connection<Dialects>) -> io::Result<()> {
    let (server, info) = (connection.client.server.clone(), connection.client.info().clone());
    info.states.set(State::POSTPONED);
    connection.wait(server.pause().changed()).await?;
    info.states.clear(State::POSTPONED);
    Ok(())
}

async fn send_unsent(connection: &mut Connection<Dialects>, unsent: Unsent) -> io::Result<()> {
    let Unsent { replies, ticket, wait } = unsent;
    match wait {
        None => send_once_durable(connection, ticket, replies).await,
        Some(Wait::Delay(delay)) => {
            hold_back(connection, delay).await?;
            send_once_durable(connection, ticket, replies).await
        }
        Some(Wait::List(wait)) => {
            let answered = async {
                send_once_durable(connection, ticket, replies).await?;
                send_answer(connection, &wait).await
            };
            let answered = answered.await;
            connection.client.server.key_watch().end_wait(&wait.waiter, Ending::Gone);
            answered
        }
    }
}

/// Waits as long as a command has asked for, or until the connection ends.
async fn hold_back(connection: &mut Connection<Dialects>, delay: Delay) -> io::Result<()> {
    if delay.busy {
        return connection.hold_back(delay.length, false).await;
    }
    let server = connection.client.server.clone();
    server.blocked_clients.fetch_add(1, Ordering::Relaxed);
    let outcome = connection.hold_back(delay.length, true).await;
    server.blocked_clients.fetch_sub(1, Ordering::Relaxed);
    outcome
}

/// Sends the reply of a command that waits for a list, once it has one or its time is over.
async fn send_answer(connection: &mut Connection<Dialects>, wait: &ListWait) -> io::Result<()> {
    let (waiter, server) = (&wait.waiter, connection.client.server.clone());
    let answer = connection.wait(async {
        match timeout(wait.timeout, waiter.answered()).await {
            Ok(answer) => answer,
            Err(_) => {
                server.key_watch().end_wait(waiter, Ending::TimedOut);
                waiter.answered().await
            }
        }
    });
    let answer = match answer.await {
        Ok(answer) => answer,
        // Whoever sends no more may still read, and an element that it was given is nowhere else.
        Err(error) => {
            server.key_watch().end_wait(waiter, Ending::Gone);
            let answer = waiter.answered().await;
            if answer.ending.is_some() {
                return Err(error);
            }
            answer
        }
    };
    if answer.ending.is_some() {
        commands::note_ended(&server, &connection.service().stats, waiter, &answer.reply);
    }
    let reply = if wait.silent { Outgoing::default() } else { answer.reply.into() };
    send_once_durable(connection, answer.ticket.filter(|_| server.answers_durably()), reply).await
}

/// Sends replies once the write that they tell of is on disk. If it could not be kept, the client gets an error instead, and
/// the connection ends: it is not known which of the replies tell of it.
async fn send_once_durable(
    connection: &mut Connection<Dialects>,
    ticket: Option<Ticket>,
    replies: Outgoing,
) -> io::Result<()> {
    let server = connection.client.server.clone();
    let kept = match ticket {
        Some(ticket) => server.store().durable(ticket).await,
        None => Ok(()),
    };
    match kept {
        Ok(()) => send(connection, replies).await,
        Err(error) => {
            connection.client.client.closing = true;
            let refusal = connection.client.dialect.not_kept(&error);
            send(connection, refusal.into()).await
        }
    }
}

/// Sends replies as the socket takes them. Values that are decoded only then are counted, and there must be room for
/// them.
async fn send(connection: &mut Connection<Dialects>, mut replies: Outgoing) -> io::Result<()> {
    let (server, info) = (connection.client.server.clone(), connection.client.info().clone());
    loop {
        let piece = replies.next(&mut connection.service().session, &server.decoded);
        match piece.map_err(|error| unreadable(&info, &error.to_string()))? {
            None => break,
            Some(Piece::Bytes(bytes)) => {
                Dialects::holds_output(&connection.client, bytes.len() + replies.memory());
                connection.send(&bytes).await?;
                replies.take_back(bytes);
            }
            Some(Piece::Shared(value)) => {
                info.shared_value.store(value.identity(), Ordering::Relaxed);
                info.shared_output.store(value.len(), Ordering::Relaxed);
                if !value.is_there() {
                    server.evict_clients();
                }
                let bytes = value.bytes(&mut connection.service().session);
                let bytes = bytes.map_err(|reason| unreadable(&info, reason))?;
                Dialects::holds_output(&connection.client, replies.memory());
                connection.send(bytes).await?;
                info.shared_output.store(0, Ordering::Relaxed);
            }
        }
    }
    Dialects::holds_output(&connection.client, 0);
    connection.service().reuse(replies);
    Ok(())
}

/// A value that was promised and cannot be sent: the connection ends with a reply that is not whole.
fn unreadable(client: &ClientInfo, reason: &str) -> io::Error {
    error!(client = client.id, reason, "a value cannot be read: the connection that was to get it is closed");
    io::Error::other("a value cannot be read")
}
