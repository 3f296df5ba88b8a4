//! Training and decisions of one client, for JavaScript.
//!
//! The TypeScript around it publishes the results.

use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{AsyncTask, BigInt, Buffer, Error};
use napi::{Env, Task};
use napi_derive::napi;
use snugly_client as client;
use snugly_learning::{Goal, LearnerSettings};

use crate::dictionaries::{Dictionaries, Dictionary, chosen, refused, seconds};

/// Configuration of a learner.
#[napi(object, object_to_js = false)]
pub struct LearningSettings {
    /// Goal of choosing codec and level; without one they stay.
    pub goal: Option<String>,
    /// Whether dictionaries are trained.
    pub trains: bool,
    /// Codec that values are written with while nothing is decided.
    pub backend: String,
    /// Its level.
    pub level: Option<i32>,
    /// Shorter values are sent as they are, in bytes.
    pub min_compression_size: u32,
    /// Bytes that samples may take.
    pub memory: u32,
    /// Seed of what is chosen at random.
    pub seed: BigInt,
}

/// Learns for one client.
#[napi]
pub struct Learner(pub(crate) Arc<client::Learner>);

#[napi]
impl Learner {
    /// Throws for a goal, backend or level that there is not.
    #[napi(constructor)]
    pub fn new(settings: LearningSettings, dictionaries: &Dictionaries) -> napi::Result<Learner> {
        let goal = settings.goal.map(|goal| goal.parse::<Goal>()).transpose().map_err(Error::from_reason)?;
        let choice = chosen(&settings.backend, settings.level, settings.min_compression_size)?;
        let samples_limit = settings.memory as usize;
        let learned = LearnerSettings { choice, goal, trains: settings.trains, samples_limit };
        let (_, seed, _) = settings.seed.get_u64();
        Ok(Learner(Arc::new(client::Learner::new(learned, seed, dictionaries.cache().clone()))))
    }

    /// Returns the number of values written: without any since the last step, there is nothing to train from.
    #[napi]
    pub fn shown(&self) -> f64 {
        self.0.shown() as f64
    }

    /// Studies a kind of keys of which there are enough samples, on the worker pool; `null` if there is none. `now` is
    /// in seconds since 1970, `reads` how often values are read for each time that one is written.
    #[napi(ts_return_type = "Promise<Lesson | null>")]
    pub fn step(&self, now: f64, reads: f64) -> AsyncTask<Study> {
        AsyncTask::new(Study { learner: self.0.clone(), now: seconds(now), reads })
    }

    /// Forgets what was seen and decided.
    #[napi]
    pub fn forget(&self) {
        self.0.forget();
    }

    /// Sets whether dictionaries are trained.
    #[napi]
    pub fn allow_training(&self, is_allowed: bool) {
        self.0.allow_training(is_allowed);
    }

    /// Returns the decision for a key, and a value of `len` bytes if that is given; `null` for none yet.
    #[napi]
    pub fn explain(&self, key: Buffer, len: Option<u32>) -> Option<Explained> {
        self.0.explain(&key, len.map(|len| len as usize)).map(Explained::from)
    }
}

/// A study on the worker pool.
pub struct Study {
    learner: Arc<client::Learner>,
    now: Duration,
    reads: f64,
}

impl Task for Study {
    type Output = Option<client::Lesson>;
    type JsValue = Option<Lesson>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(self.learner.step(self.now, self.reads))
    }

    fn resolve(&mut self, _: Env, lesson: Self::Output) -> napi::Result<Self::JsValue> {
        Ok(lesson.map(Lesson))
    }
}

/// Explanation of the encoding of a kind of keys.
#[napi(object, object_from_js = false)]
pub struct Explained {
    /// Keys that it is for, a glob of KEYS.
    pub pattern: String,
    /// Goal.
    pub goal: String,
    /// Nanoseconds that a saved byte may cost.
    pub price: f64,
    /// Reads for each write.
    pub reads: f64,
    /// Time of the decision, in seconds since 1970.
    pub decided_at: f64,
    /// Encoded of plain bytes of the values written lately.
    pub latest_ratio: Option<f64>,
    /// Results of all methods.
    pub measured: Vec<Row>,
    /// Index in `measured` of the one that is used.
    pub best: u32,
}

/// Result of one method for the samples.
#[napi(object, object_from_js = false)]
pub struct Row {
    /// Codec.
    pub codec: String,
    /// Level.
    pub level: i32,
    /// ID of the dictionary, if one was used.
    pub dictionary: Option<u32>,
    /// Number of values that were measured.
    pub values: u32,
    /// Encoded of plain bytes.
    pub ratio: f64,
    /// Bytes that each value saves.
    pub saved: f64,
    /// Seconds to encode a value.
    pub encode: f64,
    /// Seconds to decode a value.
    pub decode: f64,
    /// Worth under the goal; the highest is best.
    pub worth: f64,
}

impl From<client::Explained> for Explained {
    fn from(explained: client::Explained) -> Explained {
        Explained {
            measured: explained.measured.into_iter().map(Row::from).collect(),
            pattern: explained.pattern,
            goal: explained.goal.to_owned(),
            price: explained.price,
            reads: explained.reads,
            decided_at: explained.decided_at,
            latest_ratio: explained.latest_ratio,
            best: explained.best as u32,
        }
    }
}

impl From<client::Row> for Row {
    fn from(row: client::Row) -> Row {
        let client::Row { codec, level, dictionary, values, ratio, saved, encode, decode, worth } = row;
        let (codec, values) = (codec.to_owned(), values as u32);
        Row { codec, level, dictionary, values, ratio, saved, encode, decode, worth }
    }
}

/// Result of a step.
#[napi]
pub struct Lesson(client::Lesson);

#[napi]
impl Lesson {
    /// The dictionary that was trained and is worth having, if there is one.
    #[napi(getter)]
    pub fn dictionary(&self) -> Option<Dictionary> {
        self.0.dictionary().cloned().map(Dictionary)
    }

    /// Keys that it is for, a glob of KEYS.
    #[napi(getter)]
    pub fn pattern(&self) -> String {
        self.0.pattern().to_owned()
    }

    /// Returns the ID of the dictionary that its pattern has in a catalogue; `null` for what is no catalogue, too.
    #[napi]
    pub fn active_in(&self, document: Option<Buffer>) -> Option<u32> {
        self.0.active_in(document.as_deref())
    }

    /// Returns whether this dictionary is in a catalogue; in an unreadable document, it may be.
    #[napi]
    pub fn is_listed_in(&self, document: Option<Buffer>) -> bool {
        self.0.is_listed_in(document.as_deref())
    }

    /// Returns the catalogue with this dictionary, and without any before if `document` is null. `null` if there is
    /// nothing to be added, since another one that is as good came first, and is not `lost`, an ID. `trained_at` is
    /// text as in RFC 3339, `published_at` in seconds since 1970. Throws for a document that is no catalogue, and
    /// for one that would exceed a limit.
    #[napi]
    pub fn added_to(
        &self,
        document: Option<Buffer>,
        trained_at: String,
        published_at: f64,
        lost: Option<u32>,
    ) -> napi::Result<Option<Buffer>> {
        let added = self.0.added_to(document.as_deref(), &trained_at, published_at as u64, lost);
        Ok(added.map_err(refused)?.map(Buffer::from))
    }
}
