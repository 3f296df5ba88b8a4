//! The dictionaries that this node has: in memory, and among the server's functions, from which it gets them when they were
//! loaded from a file or came from its primary.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use snugly_codec::Dictionary;

use super::functions::{self, State};
use super::known::Known;
use super::library;
use super::questions::Questions;
use crate::guard;
use crate::server::Context;
use crate::server::table::{self, Ctx};

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
    /// Whether the server may have other functions than were seen last.
    static IS_STALE: Cell<bool> = const { Cell::new(true) };
    /// Since when the server lacks some of the module's, or when that is to be mended next.
    static INCOMPLETE_FROM: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Dictionaries that no string needs any more but the append-only file may, with the number of times that it had been
    /// rewritten when that was found.
    static IN_FILE: RefCell<HashMap<u32, u64>> = RefCell::default();
}

/// Time until it is tried again to add what the server has refused.
const TRY_AGAIN: Duration = Duration::from_secs(10);

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

/// Whether there is a dictionary with this ID; it counts as met.
pub fn has(id: u32) -> bool {
    with(|known| known.find(id).is_some())
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

/// Notes that the primary of this replica has added functions: dictionaries that it has given up, too, perhaps.
pub fn primary_adds() {
    KNOWN.with_borrow_mut(|known| known.retain_all());
}

/// Whether [`settle`] has something to do.
#[inline]
pub fn are_stale() -> bool {
    IS_STALE.get() || INCOMPLETE_FROM.get().is_some()
}

/// Reads the server's functions, if they may have changed, and adds those of the module that it lacks. Not to be called while a
/// command runs: it may be one that changes them.
pub fn settle(context: Context) {
    let is_due = |context: Context| {
        INCOMPLETE_FROM.get().is_some_and(|from| Instant::now() >= from) && context.may_tell()
    };
    if !(IS_STALE.get() || is_due(context)) || context.is_loading() {
        return;
    }
    match functions::state(context) {
        State::Busy => return,
        State::Missing => {
            IS_STALE.set(false);
            INCOMPLETE_FROM.set(None);
            return;
        }
        State::Idle => (),
    }
    if IS_STALE.get() {
        refresh(context);
    }
    if is_due(context) {
        complete(context);
    }
}

/// Keeps a dictionary: where strings may be compressed with it, files and replicas have it then.
///
/// # Errors
/// The server's text that says why it does not keep it.
pub fn keep(context: Context, dictionary: Arc<Dictionary>) -> Result<(), String> {
    if has(dictionary.id()) {
        return Ok(());
    }
    functions::load(context, &library::dictionary_code(&dictionary))?;
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
        true => functions::delete(context, library::CHOSEN),
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

/// Asks, answers and settles questions for dictionaries that are missing.
pub fn questions<T>(run: impl FnOnce(&mut Questions) -> T) -> T {
    with(|known| run(&mut known.questions.borrow_mut()))
}

/// Ends a round over all keys, and gives up dictionaries that two of them have not met; returns their IDs.
pub fn end_round(context: Context) -> Vec<u32> {
    KNOWN.with_borrow_mut(Known::end_round);
    if !context.may_tell() {
        return Vec::new();
    }
    let mut gone = with(|known| known.unneeded(context.is_replica()));
    gone = without_those_in_file(context, gone);
    for id in &gone {
        KNOWN.with_borrow_mut(|known| known.remove(*id));
        // A replica that still needs it adds it again, for itself.
        let _ = functions::delete(context, &library::name(*id));
        log(c"notice", &format!("snugly: no string needs the dictionary {id} any more"));
    }
    gone
}

/// Those dictionaries that the append-only file does not need: it has strings as they were written, until it is rewritten.
fn without_those_in_file(context: Context, unneeded: Vec<u32>) -> Vec<u32> {
    IN_FILE.with_borrow_mut(|in_file| {
        in_file.retain(|id, _| unneeded.contains(id));
        if unneeded.is_empty() {
            return unneeded;
        }
        let told = |field| context.info("persistence", field).unwrap_or_default();
        if told("aof_enabled") == "0" {
            return unneeded;
        }
        let rewrites = told("aof_rewrites").parse().unwrap_or(0);
        let is_whole = told("aof_rewrite_in_progress") == "0" && told("aof_last_bgrewrite_status") == "ok";
        let is_rewritten = |id: &u32| {
            let before = *in_file.entry(*id).or_insert(rewrites);
            is_whole && rewrites > before
        };
        unneeded.into_iter().filter(is_rewritten).collect()
    })
}

/// Forgets everything at the module's end, in the server as well.
pub fn end(context: Context) {
    for name in functions::names(context) {
        let _ = functions::delete(context, &String::from_utf8_lossy(&name));
    }
    KNOWN.take();
    IN_FILE.take();
    INCOMPLETE_FROM.set(None);
    IS_STALE.set(true);
}

unsafe extern "C" fn complete_later(context: *mut Ctx, _: *mut c_void) {
    // SAFETY: the server keeps the context until this returns.
    guard::guarded(|| settle(unsafe { Context::from_raw(context) }));
}

/// Adds what the server lacks of the module's functions: a client has taken it away, or on a replica its primary, while this node
/// still needs it.
fn complete(context: Context) {
    INCOMPLETE_FROM.set(None);
    let names = functions::names(context);
    for dictionary in with(|known| known.all().cloned().collect::<Vec<_>>()) {
        if !names.contains(&library::name(dictionary.id()).into_bytes())
            && let Err(error) = functions::load(context, &library::dictionary_code(&dictionary))
        {
            INCOMPLETE_FROM.set(Some(Instant::now() + TRY_AGAIN));
            log(c"warning", &format!("snugly could not keep the dictionary {}: {error}", dictionary.id()));
        }
    }
    if lacks_choice(context, &names) {
        choose(context, chosen());
    }
}

/// Whether the server lacks what this primary has chosen.
fn lacks_choice(context: Context, names: &[Vec<u8>]) -> bool {
    with(Known::has_chosen)
        && !context.is_replica()
        && !names.iter().any(|name| name == library::CHOSEN.as_bytes())
}

/// Reads the server's functions.
fn refresh(context: Context) {
    IS_STALE.set(false);
    let names = functions::names(context);
    let ids: HashSet<u32> = names.iter().filter_map(|name| library::id(name)).collect();
    for id in ids.iter().copied() {
        if !has(id) {
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
    let missing: Vec<_> =
        with(|known| known.all().map(|each| each.id()).filter(|id| !ids.contains(id)).collect());
    if context.is_replica() {
        KNOWN.with_borrow_mut(|known| known.release(&missing));
    }
    let lacks_choice = lacks_choice(context, &names);
    INCOMPLETE_FROM.set((!missing.is_empty() || lacks_choice).then(Instant::now));
    // A primary alone decides, and its decision is not undone by who takes its functions away.
    if !lacks_choice {
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
