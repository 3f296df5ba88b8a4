//! Dictionaries of a whole cluster: no string is compressed with one that not all primaries have, since strings move between them.
//!
//! A primary that has learned one sends it to the others, until each of them has said that it keeps it; then all choose it.
//! Every node offers what it uses now and then, and to nodes that have come, so that one that has missed it asks for it. One
//! that finds a string whose dictionary it lacks asks all others, and answers that the command is to be tried again. Before slots
//! are moved to a node, all dictionaries are sent to it once more.
//!
//! In a server that is no cluster there are no others, and so everything is agreed on at once.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{c_char, c_uchar, c_uint, c_void};
use std::sync::Arc;
use std::time::Instant;

use snugly_codec::Dictionary;

use super::exchange::Exchange;
use super::learning;
use super::messages::{KIND, Message};
use super::questions::Questions;
use super::store::{self, log, with};
use crate::guard;
use crate::server::Context;
use crate::server::cluster::{self, Node, NodeId};
use crate::server::table::Ctx;
use crate::settings;

thread_local! {
    static EXCHANGE: RefCell<Exchange> = RefCell::default();
    /// Messages that have come. They may come while a script runs, when nothing may be done about them.
    static MESSAGES: RefCell<VecDeque<(NodeId, Message)>> = RefCell::default();
    /// The server's call to take them.
    static CALL: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The most messages that wait; more are lost, and what matters is sent again.
const MOST_MESSAGES: usize = 256;

/// Begins to listen to other nodes.
pub fn begin(context: Context) {
    if context.is_in_cluster() {
        cluster::receive(context, KIND, Some(received));
        store::questions(|questions| questions.may_ask(true));
    }
}

/// Listens no more.
pub fn end(context: Context) {
    if context.is_in_cluster() {
        cluster::receive(context, KIND, None);
        store::questions(|questions| questions.may_ask(false));
    }
    EXCHANGE.take();
    MESSAGES.take();
}

/// Takes the call for messages back: of a module that waits for one, the server does not even ask whether it may be unloaded.
pub fn hold(context: Context) {
    if let Some(call) = CALL.take() {
        context.do_not_call(call);
    }
}

/// Lets new strings of a pattern be compressed with a dictionary that is kept here, once all primaries have it.
pub fn propose(context: Context, pattern: Vec<u8>, id: u32) {
    EXCHANGE.with_borrow_mut(|exchange| exchange.propose(pattern, id));
    agree(context, &cluster::others(context));
}

/// Lets dictionaries stay that others have not answered for yet.
pub fn meet_proposals() {
    EXCHANGE.with_borrow(|exchange| with(|known| exchange.proposed().for_each(|id| _ = known.find(id))));
}

/// Lets no node compress new strings with a dictionary.
pub fn forget(context: Context, id: u32) {
    forget_here(context, id);
    send(context, None, &Message::Forget(id));
}

/// Sends all dictionaries to a node that slots are moved to.
pub fn push(context: Context, node: &NodeId) {
    for dictionary in with(|known| known.all().cloned().collect::<Vec<_>>()) {
        send(context, Some(node), &Message::Dictionary(dictionary.bytes().to_vec()));
    }
}

/// Asks all other nodes for dictionaries that strings were found to need.
pub fn ask(context: Context) {
    for id in store::questions(|questions| questions.take_due(Instant::now())) {
        send(context, None, &Message::Want(id));
    }
}

/// Sends what is to be sent, and uses what is agreed on: now and then.
pub fn go_on(context: Context) {
    if !context.is_in_cluster() {
        return;
    }
    take_messages(context);
    let others = cluster::others(context);
    let reachable: Vec<_> = others.iter().filter(|node| node.is_reachable).map(|node| node.id).collect();
    // One that cannot be reached may have what the others lack.
    let all: Vec<_> = others.iter().map(|node| node.id).collect();
    let now = Instant::now();
    store::questions(|questions| questions.settle(&all, now));
    ask(context);
    if EXCHANGE.with_borrow_mut(|exchange| exchange.has_newcomers(&reachable)) {
        store::questions(Questions::reopen);
    }
    if EXCHANGE.with_borrow_mut(|exchange| exchange.offers(&reachable, now)) {
        send(context, None, &Message::Offer(store::chosen()));
    }
    if context.is_replica() || !context.may_tell() {
        return;
    }
    if !settings::uses_dictionaries() {
        EXCHANGE.with_borrow_mut(Exchange::withdraw);
    }
    agree(context, &others);
}

/// Sends proposals to primaries that lack them, and uses those that no primary lacks.
fn agree(context: Context, others: &[Node]) {
    let is_asked = |node: &&Node| node.is_primary && node.is_reachable;
    let primaries: Vec<_> = others.iter().filter(is_asked).map(|node| node.id).collect();
    let (due, agreed) = EXCHANGE.with_borrow_mut(|exchange| {
        let agreed = exchange.agreed(&primaries);
        (exchange.due(&primaries, Instant::now()), agreed)
    });
    for (node, id) in due {
        if let Some(dictionary) = with(|known| known.find(id).cloned()) {
            send(context, Some(&node), &Message::Propose(dictionary.bytes().to_vec()));
        }
    }
    for (pattern, id) in agreed {
        choose(context, pattern.clone(), id);
        send(context, None, &Message::Choose(id, pattern));
    }
}

fn choose(context: Context, pattern: Vec<u8>, id: u32) {
    let chosen = store::chosen();
    let row = (pattern, id);
    if !chosen.contains(&row) && store::has(id) {
        let others = chosen.into_iter().filter(|(other, _)| *other != row.0);
        store::choose(context, others.chain([row.clone()]).collect());
    }
}

fn forget_here(context: Context, id: u32) {
    EXCHANGE.with_borrow_mut(|exchange| exchange.forget(id));
    let (gone, left): (Vec<_>, _) = store::chosen().into_iter().partition(|(_, other)| *other == id);
    if !gone.is_empty() {
        gone.iter().for_each(|(pattern, _)| learning::forget(pattern));
        store::choose(context, left);
    }
}

unsafe extern "C" fn received(
    context: *mut Ctx,
    sender: *const c_char,
    _kind: c_uchar,
    bytes: *const c_uchar,
    len: c_uint,
) {
    guard::guarded(|| {
        // SAFETY: the server keeps all of them until this returns.
        let (context, (sender, bytes)) =
            unsafe { (Context::from_raw(context), cluster::message(sender, bytes, len)) };
        let Some(message) = Message::parse(bytes) else { return };
        MESSAGES.with_borrow_mut(|messages| {
            if messages.len() < MOST_MESSAGES {
                messages.push_back((sender, message));
            }
        });
        if CALL.get().is_none() {
            CALL.set(Some(context.call_later(0, called)));
        }
    });
}

/// Takes messages, when no command runs.
unsafe extern "C" fn called(context: *mut Ctx, _: *mut c_void) {
    CALL.set(None);
    // SAFETY: the server keeps the context until this returns.
    guard::guarded(|| take_messages(unsafe { Context::from_raw(context) }));
}

/// Takes all messages that can be taken now. The others wait for the next time.
fn take_messages(context: Context) {
    if context.is_loading() {
        return;
    }
    store::settle(context);
    let may_tell = context.may_tell();
    let (now, later) = MESSAGES.take().into_iter().partition(|(_, message)| may_tell || !message.tells());
    MESSAGES.set(later);
    let now: VecDeque<_> = now;
    now.into_iter().for_each(|(sender, message)| take(context, sender, message));
}

/// Does what a message of another node says.
fn take(context: Context, sender: NodeId, message: Message) {
    let decides = !context.is_replica();
    match message {
        Message::Offer(rows) => {
            for (pattern, id) in rows.into_iter().filter(|_| decides) {
                take_offer(context, sender, pattern, id);
            }
        }
        Message::Want(id) => {
            let found = with(|known| known.find(id).cloned());
            let answer = found.map_or(Message::Lack(id), |found| Message::Dictionary(found.bytes().to_vec()));
            send(context, Some(&sender), &answer);
        }
        Message::Dictionary(bytes) => {
            let id = take_dictionary(context, bytes);
            let wanted = id.and_then(|id| EXCHANGE.with_borrow_mut(|exchange| exchange.take_wanted(id)));
            if let Some((id, pattern)) = id.zip(wanted).filter(|_| decides) {
                choose_if_free(context, pattern, id);
            }
        }
        Message::Propose(bytes) => {
            // A node that uses none wants no other to do so: clients that cannot read such strings may ask it.
            if let Some(id) = take_dictionary(context, bytes).filter(|_| settings::uses_dictionaries()) {
                EXCHANGE.with_borrow_mut(|exchange| exchange.note_proposal(id));
                send(context, Some(&sender), &Message::Have(id));
            }
        }
        Message::Have(id) => EXCHANGE.with_borrow_mut(|exchange| exchange.note(sender, id)),
        Message::Lack(id) => store::questions(|questions| questions.answer(id, sender)),
        Message::Choose(id, pattern) => {
            EXCHANGE.with_borrow_mut(|exchange| exchange.note_proposal(id));
            if decides && settings::uses_dictionaries() {
                choose(context, pattern, id);
            }
        }
        Message::Forget(id) if decides => forget_here(context, id),
        Message::Forget(_) => (),
    }
}

/// Keeps a dictionary that another node uses, and uses it where there is no other: all that use one have it.
fn take_offer(context: Context, sender: NodeId, pattern: Vec<u8>, id: u32) {
    if EXCHANGE.with_borrow(|exchange| exchange.is_forgotten(id)) {
        return send(context, Some(&sender), &Message::Forget(id));
    }
    match store::has(id) {
        true => choose_if_free(context, pattern, id),
        false => {
            EXCHANGE.with_borrow_mut(|exchange| exchange.want(id, pattern));
            send(context, Some(&sender), &Message::Want(id));
        }
    }
}

fn choose_if_free(context: Context, pattern: Vec<u8>, id: u32) {
    let is_free = !store::chosen().iter().any(|(other, _)| *other == pattern);
    if is_free && settings::uses_dictionaries() {
        choose(context, pattern, id);
    }
}

/// Keeps a dictionary; returns its ID if it is one.
fn take_dictionary(context: Context, bytes: Vec<u8>) -> Option<u32> {
    let kept = Dictionary::load(bytes).map_err(|error| error.to_string()).and_then(|dictionary| {
        let id = dictionary.id();
        store::keep(context, Arc::new(dictionary)).map(|()| id)
    });
    let warn = |error: &String| {
        log(c"warning", &format!("snugly could not keep a dictionary of another node: {error}"));
    };
    kept.inspect_err(warn).ok()
}

/// Sends a message to a node, or to all; to nobody if this is no cluster.
fn send(context: Context, node: Option<&NodeId>, message: &Message) {
    cluster::send(context, node, KIND, &message.to_bytes());
}
