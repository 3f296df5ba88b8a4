//! The dictionaries that this node has: in memory, and among the server's functions, from which it gets them when they were
//! loaded from a file or came from its primary.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use snugly_codec::Dictionary;

use super::functions::{self, Copies};
use super::known::Known;
use super::library;
use crate::guard;
use crate::server::Context;
use crate::server::cluster::NodeId;
use crate::server::table::{self, Ctx};

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
    /// Whether the server may have other functions than were seen last.
    static IS_STALE: Cell<bool> = const { Cell::new(true) };
    /// Whether the server lacks some of the module's.
    static IS_INCOMPLETE: Cell<bool> = const { Cell::new(false) };
}

/// Goes up with every change of what new strings are compressed with.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Number of changes of what new strings are compressed with.
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Looks at the dictionaries that there are.
#[inline]
pub fn with<T>(look: impl FnOnce(&Known) -> T) -> T {
    KNOWN.with_borrow(look)
}

/// Notes that the server may have other functions now.
pub fn functions_changed() {
    IS_STALE.set(true);
}

/// Notes that a command which may change the server's functions is about to run. Whatever it takes away of the module's is
/// there again before the file is written that says so.
pub fn functions_change(context: Context) {
    functions_changed();
    context.call_later(0, complete_later);
}

/// Whether [`settle`] has something to do.
#[inline]
pub fn are_stale() -> bool {
    IS_STALE.get()
}

/// Reads the server's functions, if they may have changed. Not to be called while a command runs: it may be one that changes
/// them.
pub fn settle(context: Context) {
    if IS_STALE.get() {
        refresh(context);
    }
}

/// Keeps a dictionary: where strings may be compressed with it, files and replicas have it then.
///
/// # Errors
/// The server's text that says why it does not keep it.
pub fn keep(context: Context, dictionary: Arc<Dictionary>) -> Result<(), String> {
    let id = dictionary.id();
    // A replica gets it from its primary as well.
    if with(|known| known.find(id).is_none()) && !context.is_replica() {
        functions::load(context, &library::dictionary_code(&dictionary))?;
    }
    KNOWN.with_borrow_mut(|known| known.add(dictionary));
    Ok(())
}

/// Patterns of keys, and the IDs of the dictionaries that their new strings are compressed with.
pub fn chosen() -> Vec<(Vec<u8>, u32)> {
    let chosen = |known: &Known| {
        known.chosen().iter().map(|chosen| (chosen.pattern.text().to_vec(), chosen.dictionary.id())).collect()
    };
    with(chosen)
}

/// Compresses new strings with these from now on, each for a pattern of keys. The others stay for what they are needed for.
pub fn choose(context: Context, chosen: Vec<(Vec<u8>, u32)>) {
    let written = match chosen.is_empty() {
        true => functions::delete(context, library::CHOSEN, Copies::Told),
        false => {
            let rows = chosen.iter().map(|(pattern, id)| (&pattern[..], *id));
            functions::load(context, &library::chosen_code(rows))
        }
    };
    if let Err(error) = written {
        log(
            c"warning",
            &format!("snugly could not tell replicas and files which dictionaries it uses: {error}"),
        );
    }
    KNOWN.with_borrow_mut(|known| known.choose(chosen));
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// Lets other nodes be asked for dictionaries that are missing, or not.
pub fn may_ask(may_ask: bool) {
    with(|known| known.questions.borrow_mut().may_ask(may_ask));
}

/// Dictionaries that strings were found to need, and that nobody was asked for yet.
pub fn take_questions() -> Vec<u32> {
    with(|known| known.questions.borrow_mut().take_new())
}

/// Notes that a node lacks a dictionary.
pub fn answer(id: u32, node: NodeId) {
    with(|known| known.questions.borrow_mut().answer(id, node));
}

/// Notes that these are all the other nodes that may answer.
pub fn settle_questions(nodes: &[NodeId]) {
    with(|known| known.questions.borrow_mut().settle(nodes, Instant::now()));
}

/// Lets other nodes be asked again: some have come.
pub fn reopen_questions() {
    with(|known| known.questions.borrow_mut().reopen());
}

/// Ends a round over all keys, and gives up dictionaries that two of them have not met; returns their IDs.
pub fn end_round(context: Context) -> Vec<u32> {
    let gone: Vec<_> =
        KNOWN.with_borrow_mut(Known::end_round).iter().map(|dictionary| dictionary.id()).collect();
    for id in &gone {
        // Replicas may still need it for theirs, and files do not mind one more.
        let _ = functions::delete(context, &library::name(*id), Copies::None);
        log(c"notice", &format!("snugly: no string needs the dictionary {id} any more"));
    }
    gone
}

/// Forgets everything at the module's end, in the server as well.
pub fn end(context: Context) {
    for name in functions::names(context) {
        let _ = functions::delete(context, &String::from_utf8_lossy(&name), Copies::None);
    }
    KNOWN.take();
    IS_STALE.set(true);
}

unsafe extern "C" fn complete_later(context: *mut Ctx, _: *mut c_void) {
    guard::guarded(|| {
        // SAFETY: the server keeps the context until this returns.
        let context = unsafe { Context::from_raw(context) };
        settle(context);
        if !context.is_loading() && !context.is_replica() {
            complete(context);
        }
    });
}

/// Adds what the server lacks of the module's functions, which a client has taken away.
pub fn complete(context: Context) {
    if !IS_INCOMPLETE.take() {
        return;
    }
    let names = functions::names(context);
    for dictionary in with(|known| known.all().cloned().collect::<Vec<_>>()) {
        if !names.contains(&library::name(dictionary.id()).into_bytes())
            && let Err(error) = functions::load(context, &library::dictionary_code(&dictionary))
        {
            IS_INCOMPLETE.set(true);
            log(c"warning", &format!("snugly could not keep the dictionary {}: {error}", dictionary.id()));
        }
    }
    if with(Known::has_chosen) {
        choose(context, chosen());
    }
}

/// Reads the server's functions.
fn refresh(context: Context) {
    if context.is_loading() {
        return;
    }
    IS_STALE.set(false);
    let names = functions::names(context);
    let ids: HashSet<u32> = names.iter().filter_map(|name| library::id(name)).collect();
    for id in ids.iter().copied() {
        if with(|known| known.find(id).is_none()) {
            let code = functions::code(context, &library::name(id)).unwrap_or_default();
            match library::dictionary(id, &code) {
                Ok(dictionary) => KNOWN.with_borrow_mut(|known| known.add(Arc::new(dictionary))),
                Err(reason) => {
                    log(
                        c"warning",
                        &format!("snugly cannot use the library {}: {reason}", library::name(id)),
                    );
                }
            }
        }
    }
    let is_told = names.iter().any(|name| name == library::CHOSEN.as_bytes());
    let lacks_some = with(|known| known.all().any(|dictionary| !ids.contains(&dictionary.id())));
    let lacks_choice = !is_told && with(Known::has_chosen);
    IS_INCOMPLETE.set(lacks_some || lacks_choice);
    // A primary alone decides, and what it has decided is not undone by who takes its functions away.
    if is_told || context.is_replica() {
        let code = functions::code(context, library::CHOSEN).unwrap_or_default();
        let before = chosen();
        KNOWN.with_borrow_mut(|known| known.choose(library::chosen(&code)));
        CHANGES.fetch_add((chosen() != before).into(), Ordering::Relaxed);
    }
}

/// Writes a line to the server's log.
pub fn log(level: &CStr, text: &str) {
    let line = CString::new(text.replace('\0', " ")).expect("zeros are replaced");
    table::log(ptr::null_mut(), level, &line);
}

/// A node that has this dictionary for all keys.
#[cfg(test)]
pub fn know(dictionary: Arc<Dictionary>) {
    KNOWN.with_borrow_mut(|known| {
        let id = dictionary.id();
        known.add(dictionary);
        known.choose([(b"*".to_vec(), id)]);
    });
}
