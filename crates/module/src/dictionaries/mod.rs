//! Dictionaries: what the strings of many keys have in common, so that each of them is stored without it.
//!
//! - [`known`]: those that there are, and those that new strings are compressed with
//! - [`training`]: how new ones are learned
//! - [`library`], [`functions`]: where the server keeps them
//!
//! A primary learns them, one for each pattern of keys, and replicas are told. No string is compressed with one that is not
//! kept yet, and none is given up before two rounds over all keys have met no string that needs it. It knows the server's
//! functions and settings, and no key and no command of clients.

mod functions;
mod known;
mod library;
mod training;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::Dictionary;

use crate::guard;
use crate::server::Context;
use crate::server::table::{self, Ctx};
use crate::settings;
use functions::Copies;
pub use known::Known;
use training::{Trained, Training};

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
    static TRAINING: RefCell<Option<Training>> = const { RefCell::new(None) };
    /// Whether the server may have other functions than were seen last.
    static IS_STALE: Cell<bool> = const { Cell::new(true) };
    /// Whether the server lacks some of the module's.
    static IS_INCOMPLETE: Cell<bool> = const { Cell::new(false) };
}

/// Number of dictionaries that were learned.
static LEARNED: AtomicU64 = AtomicU64::new(0);
/// Goes up with every change of what new strings are compressed with.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Number of dictionaries that were learned since the module was loaded.
pub fn learned() -> u64 {
    LEARNED.load(Ordering::Relaxed)
}

/// Number of changes of what new strings are compressed with.
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Looks at the dictionaries that there are.
#[inline]
pub fn with<T>(look: impl FnOnce(&Known) -> T) -> T {
    KNOWN.with_borrow(look)
}

/// Shows a client's string, to be learned from.
#[inline]
pub fn show(key: &[u8], string: &[u8]) {
    TRAINING.with_borrow(|training| {
        if let Some(training) = training {
            training.show(key, string);
        }
    });
}

/// Notes what has become of a string that was compressed with a dictionary, so that it is seen when strings change.
#[inline]
pub fn compressed(key: &[u8], len: usize, stored: usize) {
    TRAINING.with_borrow_mut(|training| {
        if let Some(training) = training {
            training.compressed(key, len, stored);
        }
    });
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

/// Uses what was learned, and what settings say: now and then.
pub fn go_on(context: Context) {
    settle(context);
    if context.is_loading() || context.is_replica() {
        return train(0);
    }
    let is_used = are_used(context);
    if !is_used && with(Known::has_chosen) {
        choose(context, Vec::new());
    }
    complete(context);
    let trained: Vec<_> = TRAINING.with_borrow(|training| training.iter().flat_map(Training::take).collect());
    for trained in trained.into_iter().filter(|_| is_used) {
        adopt_trained(context, trained);
    }
    train(if is_used && settings::compresses() { settings::background_cpu_percent() } else { 0 });
}

/// Ends a round over all keys, in which every string that needs a dictionary was asked for it. Strings that are compressed
/// already and not stored yet are in no round: while some `wait`, none is given up.
pub fn end_round(context: Context, wait: bool) {
    if wait {
        return with(|known| known.all().for_each(|dictionary| _ = known.find(dictionary.id())));
    }
    for dictionary in KNOWN.with_borrow_mut(Known::end_round) {
        // Replicas may still need it for theirs, and files do not mind one more.
        let _ = functions::delete(context, &library::name(dictionary.id()), Copies::None);
        log(c"notice", &format!("snugly: no string needs the dictionary {} any more", dictionary.id()));
    }
}

/// Forgets everything at the module's end, in the server as well.
pub fn end(context: Context) {
    TRAINING.set(None);
    for name in functions::names(context) {
        let _ = functions::delete(context, &String::from_utf8_lossy(&name), Copies::None);
    }
    KNOWN.take();
    IS_STALE.set(true);
}

/// Keeps a dictionary, and compresses new strings of a pattern with it.
///
/// # Errors
/// A text that says why the server does not keep it.
pub fn adopt(context: Context, pattern: Vec<u8>, dictionary: Arc<Dictionary>) -> Result<(), String> {
    let id = dictionary.id();
    functions::load(context, &library::dictionary_code(&dictionary))?;
    KNOWN.with_borrow_mut(|known| known.add(dictionary));
    let others = chosen().into_iter().filter(|(other, _)| *other != pattern);
    let chosen = others.chain([(pattern.clone(), id)]).collect();
    choose(context, chosen);
    Ok(())
}

/// Compresses new strings with this dictionary no more. It goes when no string needs it.
pub fn forget(context: Context, id: u32) {
    let (gone, left): (Vec<_>, _) = chosen().into_iter().partition(|(_, other)| *other == id);
    TRAINING.with_borrow(|training| {
        let patterns = training.iter().flat_map(|training| gone.iter().map(move |row| (training, &row.0)));
        patterns.for_each(|(training, pattern)| training.forget(pattern));
    });
    choose(context, left);
}

/// Whether new strings may be compressed with dictionaries on this node.
pub fn are_used(context: Context) -> bool {
    settings::uses_dictionaries() && !context.is_in_cluster()
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

fn adopt_trained(context: Context, trained: Trained) {
    let Trained { pattern, dictionary, samples } = trained;
    let (id, pattern_text) = (dictionary.id(), pattern.escape_ascii().to_string());
    let taken: usize = with(|known| known.all().map(|dictionary| dictionary.memory_taken()).sum());
    let outcome = match taken + dictionary.memory_taken() <= settings::dictionary_memory() {
        true => adopt(context, pattern, dictionary),
        false => Err("snugly.dictionary-memory has no room for it".into()),
    };
    match outcome {
        Ok(()) => {
            LEARNED.fetch_add(1, Ordering::Relaxed);
            log(
                c"notice",
                &format!("snugly has learned dictionary {id} from {samples} strings of {pattern_text}"),
            );
        }
        Err(error) => {
            log(c"warning", &format!("snugly has learned a dictionary for {pattern_text} in vain: {error}"));
        }
    }
}

/// Lets the thread learn in this share of a processor, in percent.
fn train(share: u32) {
    TRAINING.with_borrow_mut(|training| {
        if training.is_none() && share > 0 {
            match Training::begin(settings::choice()) {
                Ok(begun) => *training = Some(begun),
                Err(error) => log(c"warning", &format!("snugly learns no dictionaries: {error}")),
            }
        }
        if let Some(training) = training {
            let chosen = |known: &Known| {
                let chosen = known.chosen().iter();
                chosen
                    .map(|chosen| (chosen.pattern.text().to_vec(), chosen.dictionary.clone()))
                    .collect::<Vec<_>>()
            };
            training.follow(share, settings::choice(), with(chosen).into_iter());
        }
    });
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
fn complete(context: Context) {
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

fn log(level: &CStr, text: &str) {
    let line = CString::new(text.replace('\0', " ")).expect("zeros are replaced");
    table::log(std::ptr::null_mut(), level, &line);
}

#[cfg(test)]
fn sample(kind: &str) -> Arc<Dictionary> {
    let string = |number: u32| {
        format!(
            r#"{{"kind":"{kind}","id":{number},"name":"{kind} {}","address":{{"city":"Akureyri","country":"Iceland"}},"tags":["{kind}","b"]}}"#,
            number * 7_919 % 1_000
        )
    };
    let strings: Vec<String> = (0..1_000).map(string).collect();
    Arc::new(Dictionary::train(&strings, 4 << 10).expect("they are alike"))
}
