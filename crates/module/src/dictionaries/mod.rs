//! Dictionaries: parts that the strings of many keys have in common, so that each of them is stored without these.
//!
//! - [`known`]: those that there are, and those that new strings are compressed with
//! - [`store`]: those of this node, in memory and in the server
//! - [`library`], [`functions`]: the form and the place in which the server keeps them
//! - [`learning`], [`training`]: how new ones are learned
//! - [`publication`]: keys that clients find them at
//! - [`cluster`], [`exchange`], [`questions`], [`messages`]: how nodes of a cluster get each other's
//!
//! A primary learns them, one for each pattern of keys, and replicas are told. No string is compressed with one that is not
//! kept yet, in a cluster by all primaries; and none is given up before two rounds over all keys have met no string that needs
//! it. It knows the server's functions, its cluster and settings, and no key and no command of clients.

mod cluster;
mod exchange;
mod functions;
mod known;
mod learning;
mod library;
mod messages;
mod publication;
mod questions;
mod store;
mod training;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use snugly_codec::Dictionary;

use crate::server::Context;
use crate::settings;
pub use cluster::{begin, forget, hold, push};
pub use known::Known;
pub use learning::{compressed, show};
use publication::Publication;
use store::log;
pub use store::{changes, functions_change, functions_changed, primary_adds, with};
use training::Trained;

thread_local! {
    static PUBLICATION: RefCell<Publication> = RefCell::default();
}

/// Number of dictionaries that were learned.
static LEARNED: AtomicU64 = AtomicU64::new(0);

/// Number of dictionaries that were learned since the module was loaded.
pub fn learned() -> u64 {
    LEARNED.load(Ordering::Relaxed)
}

/// Whether [`settle`] has something to do.
#[inline]
pub fn are_unsettled() -> bool {
    store::are_stale() || with(Known::has_questions)
}

/// Reads the server's functions, if they may have changed, and asks other nodes for what is missing. Not to be called while a
/// command runs: it may be one that changes them.
pub fn settle(context: Context) {
    store::settle(context);
    cluster::ask(context);
}

/// Uses what was learned, and what settings say: now and then.
pub fn go_on(context: Context) {
    settle(context);
    if context.is_loading() {
        return learning::follow(0);
    }
    cluster::go_on(context);
    if context.is_replica() {
        return learning::follow(0);
    }
    if !context.may_tell() {
        return;
    }
    let is_used = settings::uses_dictionaries();
    if !is_used && with(Known::has_chosen) {
        store::choose(context, Vec::new());
    }
    PUBLICATION.with_borrow_mut(|publication| publication.go_on(context, Instant::now()));
    for trained in learning::take().into_iter().filter(|_| is_used) {
        adopt_trained(context, trained);
    }
    learning::follow(if is_used && settings::compresses() { settings::background_cpu_percent() } else { 0 });
}

/// Ends a round over all keys, in which every string that needs a dictionary was asked for it. While strings may come that were
/// compressed before, all dictionaries stay.
pub fn end_round(context: Context, may_come: bool) {
    if may_come {
        with(Known::meet_all);
    }
    cluster::meet_proposals();
    for id in store::end_round(context) {
        // In a cluster others may still need it.
        if !context.is_replica() && !context.is_in_cluster() {
            publication::withdraw(context, id);
        }
    }
}

/// Forgets everything at the module's end, in the server as well.
pub fn end(context: Context) {
    learning::end();
    cluster::end(context);
    store::end(context);
}

/// Keeps a dictionary, and compresses new strings of a pattern with it; in a cluster as soon as all primaries have it.
///
/// # Errors
/// A text that says why the server does not keep it.
pub fn adopt(context: Context, pattern: Vec<u8>, dictionary: Arc<Dictionary>) -> Result<(), String> {
    let id = dictionary.id();
    store::keep(context, dictionary)?;
    cluster::propose(context, pattern, id);
    Ok(())
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

#[cfg(test)]
pub use store::know;

#[cfg(test)]
pub fn sample(kind: &str) -> Arc<Dictionary> {
    let string = |number: u32| {
        format!(
            r#"{{"kind":"{kind}","id":{number},"name":"{kind} {}","address":{{"city":"Akureyri","country":"Iceland"}},"tags":["{kind}","b"]}}"#,
            number * 7_919 % 1_000
        )
    };
    let strings: Vec<String> = (0..1_000).map(string).collect();
    Arc::new(Dictionary::train(&strings, 4 << 10).expect("they are alike"))
}
