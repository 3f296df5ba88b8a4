//! The dictionaries that one client has at hand, for JavaScript.

use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{AsyncTask, Buffer, Error};
use napi::{Env, Task};
use napi_derive::napi;
use snugly_codec::Choice;
use snugly_dictionaries::{DictionaryCache, Keys};

/// The longest time that settings and clocks are taken for, in seconds.
const LONGEST: f64 = 1e12;

/// A loaded dictionary.
#[napi]
pub struct Dictionary(pub(crate) Arc<snugly_codec::Dictionary>);

#[napi]
impl Dictionary {
    /// Throws for what is no dictionary, or has another ID than its content.
    #[napi(constructor)]
    pub fn new(bytes: Buffer) -> napi::Result<Dictionary> {
        let loaded = snugly_codec::Dictionary::load(bytes.to_vec()).map_err(refused)?;
        Ok(Dictionary(Arc::new(loaded)))
    }

    /// Trains a dictionary on the worker pool. Rejects if none can be made of these samples.
    #[napi(ts_return_type = "Promise<Dictionary>")]
    pub fn train(samples: Vec<Buffer>, max_bytes: u32) -> AsyncTask<Train> {
        AsyncTask::new(Train { samples, max_bytes: max_bytes as usize })
    }

    /// Its ID.
    #[napi(getter)]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its bytes, as they are stored.
    #[napi(getter)]
    pub fn bytes(&self) -> Buffer {
        self.0.bytes().into()
    }
}

/// Training on the worker pool.
pub struct Train {
    samples: Vec<Buffer>,
    max_bytes: usize,
}

impl Task for Train {
    type Output = snugly_codec::Dictionary;
    type JsValue = Dictionary;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        snugly_codec::Dictionary::train(&self.samples, self.max_bytes).map_err(refused)
    }

    fn resolve(&mut self, _: Env, trained: Self::Output) -> napi::Result<Dictionary> {
        Ok(Dictionary(Arc::new(trained)))
    }
}

/// All dictionaries of one client.
#[napi]
pub struct Dictionaries {
    cache: Arc<DictionaryCache>,
}

#[napi]
impl Dictionaries {
    /// If it `writes`, `given` is written with whatever the key is, as soon as `is_allowed`; without it, what the
    /// catalogue says. Values whose keys match one of the globs in `excluded` are written without.
    #[napi(constructor)]
    pub fn new(
        given: Option<&Dictionary>,
        writes: bool,
        is_allowed: bool,
        excluded: Vec<Buffer>,
    ) -> Dictionaries {
        let given = given.map(|given| given.0.clone());
        let excluded = excluded.iter().map(|glob| glob.to_vec()).collect();
        Dictionaries { cache: Arc::new(DictionaryCache::new(given, writes, is_allowed, excluded)) }
    }

    /// Returns whether values are written with any of them now.
    #[napi]
    pub fn are_written_with(&self) -> bool {
        self.cache.is_written_with()
    }

    /// Returns one that is at hand.
    #[napi]
    pub fn get(&self, id: u32) -> Option<Dictionary> {
        self.cache.get(id).map(Dictionary)
    }

    /// Returns the ID of the dictionary that values of this key are written with, if their codec has
    /// dictionaries.
    #[napi]
    pub fn chosen_for(&self, key: Buffer) -> Option<u32> {
        let dictionary = if self.cache.excludes(&key) { None } else { self.cache.for_key(&key) };
        dictionary.map(|dictionary| dictionary.id())
    }

    /// Returns whether values of this key are neither sampled nor written with a dictionary.
    #[napi]
    pub fn excludes(&self, key: Buffer) -> bool {
        self.cache.excludes(&key)
    }
}

impl Dictionaries {
    pub fn cache(&self) -> &Arc<DictionaryCache> {
        &self.cache
    }
}

/// Keys of dictionaries for a prefix.
#[napi(object, object_from_js = false)]
pub struct DictionaryKeys {
    /// Key of the catalogue.
    pub catalogue: Buffer,
    /// Key that one client holds while it publishes.
    pub lock: Buffer,
}

/// Returns the keys for a prefix.
#[napi]
pub fn dictionary_keys(prefix: String) -> DictionaryKeys {
    let keys = Keys::new(&prefix);
    DictionaryKeys { catalogue: keys.catalogue().into(), lock: keys.training_lock().into() }
}

/// Returns the key of a dictionary for a prefix.
#[napi]
pub fn dictionary_key(prefix: String, id: u32) -> Buffer {
    Keys::new(&prefix).dictionary(id).into()
}

/// The codec and level of new values. Throws for one that there is not.
pub(crate) fn chosen(backend: &str, level: Option<i32>, min_bytes: u32) -> napi::Result<Choice> {
    Choice::new(backend, level, min_bytes as usize).map_err(refused)
}

/// A time that JavaScript gives in seconds.
pub(crate) fn seconds(seconds: f64) -> Duration {
    // Not-a-number is 0.
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST).max(0.0))
}

pub(crate) fn refused(error: impl std::fmt::Display) -> Error {
    Error::from_reason(error.to_string())
}
