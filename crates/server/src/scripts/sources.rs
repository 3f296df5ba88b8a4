//! The scripts that are known by their SHA-1 digest.
//!
//! Those of EVAL make way for newer ones; those of SCRIPT LOAD stay until SCRIPT FLUSH, as in Valkey.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use snugly_scripting::Digest;

use super::refused::Refused;

/// Number of scripts of EVAL that are kept.
const MOST_EVALUATED: usize = 500;
/// Bytes of the scripts of SCRIPT LOAD that are kept.
const MOST_LOADED_BYTES: usize = 64 << 20;

/// A script, before it is compiled.
pub(crate) struct Source {
    pub(crate) text: Box<[u8]>,
    pub(crate) digest: Digest,
}

/// All scripts that are known.
#[derive(Default)]
pub(crate) struct Sources {
    known: Mutex<Known>,
    /// Number of times that scripts were forgotten: what was compiled before is not to be run any more.
    edition: AtomicU64,
}

#[derive(Default)]
struct Known {
    scripts: HashMap<Digest, Entry>,
    /// Those of EVAL, the oldest first.
    evaluated: VecDeque<Digest>,
    /// Bytes of all, and of those that stay.
    bytes: usize,
    loaded_bytes: usize,
}

struct Entry {
    source: Arc<Source>,
    stays: bool,
}

impl Sources {
    /// The script of a digest.
    pub(crate) fn get(&self, digest: &Digest) -> Option<Arc<Source>> {
        self.known.lock().scripts.get(digest).map(|entry| entry.source.clone())
    }

    /// Adds a script of EVAL, for which an older one may have to go.
    pub(crate) fn evaluate(&self, source: Arc<Source>) {
        let mut known = self.known.lock();
        if known.scripts.contains_key(&source.digest) {
            return;
        }
        if known.evaluated.len() >= MOST_EVALUATED
            && let Some(oldest) = known.evaluated.pop_front()
        {
            known.remove(&oldest);
            self.edition.fetch_add(1, Ordering::Release);
        }
        known.evaluated.push_back(source.digest);
        known.insert(source, false);
    }

    /// Adds a script of SCRIPT LOAD.
    ///
    /// # Errors
    /// If there are too many already.
    pub(crate) fn load(&self, source: Arc<Source>) -> Result<(), Refused> {
        let mut known = self.known.lock();
        match known.scripts.get(&source.digest) {
            Some(entry) if entry.stays => return Ok(()),
            _ if known.loaded_bytes + source.text.len() > MOST_LOADED_BYTES => {
                return Err(Refused::TooManyScripts { most: MOST_LOADED_BYTES });
            }
            Some(_) => {
                known.evaluated.retain(|digest| *digest != source.digest);
                known.remove(&source.digest);
            }
            None => {}
        }
        known.insert(source, true);
        Ok(())
    }

    /// Forgets all scripts.
    pub(crate) fn flush(&self) {
        let mut known = self.known.lock();
        *known = Known::default();
        self.edition.fetch_add(1, Ordering::Release);
    }

    /// Number of times that scripts were forgotten.
    pub(crate) fn edition(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    /// Number of scripts, and their bytes.
    pub(crate) fn totals(&self) -> (usize, usize) {
        let known = self.known.lock();
        (known.scripts.len(), known.bytes)
    }
}

impl Known {
    fn insert(&mut self, source: Arc<Source>, stays: bool) {
        self.bytes += source.text.len();
        self.loaded_bytes += if stays { source.text.len() } else { 0 };
        self.scripts.insert(source.digest, Entry { source, stays });
    }

    fn remove(&mut self, digest: &Digest) {
        if let Some(entry) = self.scripts.remove(digest) {
            self.bytes -= entry.source.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use snugly_scripting::digest;

    use super::*;

    fn source(text: &str) -> Arc<Source> {
        let text = text.as_bytes();
        Arc::new(Source { text: text.into(), digest: digest(text) })
    }

    #[test]
    fn scripts_of_eval_make_way_for_newer_ones_and_loaded_ones_stay() {
        let sources = Sources::default();
        let loaded = source("loaded");
        sources.evaluate(loaded.clone());
        sources.load(loaded.clone()).expect("there is room");
        let first = source("first");
        sources.evaluate(first.clone());
        let before = sources.edition();
        (1..MOST_EVALUATED).for_each(|number| sources.evaluate(source(&number.to_string())));
        assert!(sources.get(&first.digest).is_some() && sources.edition() == before);
        sources.evaluate(source("one more"));
        assert!(sources.get(&first.digest).is_none() && sources.edition() != before);
        assert!(sources.get(&loaded.digest).is_some());
        assert_eq!(sources.totals().0, MOST_EVALUATED + 1);
        sources.flush();
        assert_eq!(sources.totals(), (0, 0));
    }

    #[test]
    fn too_many_loaded_bytes_are_refused() {
        let sources = Sources::default();
        let half = |name: char| source(&name.to_string().repeat(MOST_LOADED_BYTES / 2));
        assert!(sources.load(half('a')).is_ok() && sources.load(half('b')).is_ok());
        assert!(sources.load(source("c")).is_err());
        assert!(sources.load(half('a')).is_ok(), "it is loaded already");
    }
}
