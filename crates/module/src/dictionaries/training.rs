//! Training of dictionaries from some of the strings, in a thread of its own: a study takes up to a second.
//!
//! The thread knows no server. It is shown strings, told which dictionaries there are, and returns new ones.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use snugly_codec::{Choice, Dictionary};
use snugly_learning::{Decisions, Learner, LearnerSettings};

use crate::guard;

/// Time between two looks for something to study.
const PERIOD: Duration = Duration::from_secs(1);
/// Bytes of strings that are kept to be studied.
const SAMPLES: usize = 8 << 20;
/// Strings for each of which one is compared with what was expected of it.
const WATCHED: u32 = 8;

/// A dictionary for new strings, and the pattern of their keys.
pub struct Trained {
    pub pattern: Vec<u8>,
    pub dictionary: Arc<Dictionary>,
    /// Number of strings that it was learned from.
    pub samples: usize,
}

/// The thread, and what it learns with.
pub struct Training {
    learner: Arc<Learner>,
    choice: Choice,
    decisions: Arc<Decisions>,
    edition: u64,
    watched: u32,
    trained: Receiver<Trained>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    task: Mutex<Task>,
    changed: Condvar,
}

/// Orders for the thread.
struct Task {
    learner: Arc<Learner>,
    /// Dictionaries for new strings by the patterns of their keys.
    chosen: Vec<(Vec<u8>, Arc<Dictionary>)>,
    /// Share of a processor, in percent; 0 for nothing to do.
    share: u32,
    ends: bool,
}

impl Training {
    /// Begins to learn what is worth having with this choice of a codec.
    ///
    /// # Errors
    /// A thread cannot be had.
    pub fn begin(choice: Choice) -> std::io::Result<Training> {
        let learner = Arc::new(learner(choice));
        let task = Task { learner: learner.clone(), chosen: Vec::new(), share: 0, ends: false };
        let shared = Arc::new(Shared { task: Mutex::new(task), changed: Condvar::new() });
        let (sender, trained) = mpsc::channel();
        let run = {
            let shared = shared.clone();
            move || shared.run(&sender)
        };
        let thread = thread::Builder::new().name("snugly-training".into()).spawn(run)?;
        Ok(Training {
            learner,
            choice,
            decisions: Arc::default(),
            edition: 0,
            watched: 0,
            trained,
            shared,
            thread: Some(thread),
        })
    }

    /// Shows a client's string. Few of them are kept.
    #[inline]
    pub fn show(&self, key: &[u8], string: &[u8]) {
        self.learner.show(key, string);
    }

    /// Notes what has become of a string that was compressed with a dictionary.
    #[inline]
    pub fn compressed(&mut self, key: &[u8], len: usize, stored: usize) {
        self.watched += 1;
        if self.watched < WATCHED {
            return;
        }
        self.watched = 0;
        if self.edition != self.learner.edition() {
            self.edition = self.learner.edition();
            self.decisions = self.learner.decisions();
        }
        if let Some(decision) = self.decisions.find(key, len) {
            decision.drift.note(len, stored);
        }
    }

    /// Learns in this share of a processor from now on, in percent, for new strings that are compressed so.
    pub fn follow(
        &mut self,
        share: u32,
        choice: Choice,
        chosen: impl Iterator<Item = (Vec<u8>, Arc<Dictionary>)>,
    ) {
        if choice != self.choice {
            self.choice = choice;
            self.learner = Arc::new(learner(choice));
            self.edition = 0;
            self.decisions = Arc::default();
        }
        let mut task = self.shared.lock();
        task.learner = self.learner.clone();
        task.chosen = chosen.collect();
        task.share = share;
    }

    /// Learns none for this pattern for a long time: its dictionary is not wanted.
    pub fn forget(&self, pattern: &[u8]) {
        self.learner.bereave(pattern);
    }

    /// Dictionaries that were learned since this was asked last.
    pub fn take(&self) -> impl Iterator<Item = Trained> {
        self.trained.try_iter()
    }
}

impl Drop for Training {
    /// Waits for the thread: its code goes with the module.
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was caught and logged where it happened.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, sender: &Sender<Trained>) {
        let mut rest = PERIOD;
        loop {
            let waits = self.changed.wait_timeout_while(self.lock(), rest, |task| !task.ends);
            let task = waits.unwrap_or_else(PoisonError::into_inner).0;
            if task.ends {
                return;
            }
            let (learner, chosen, share) = (task.learner.clone(), task.chosen.clone(), task.share);
            drop(task);
            let began = Instant::now();
            if share > 0
                && let Some(Some(trained)) = guard::guarded(|| study(&learner, &chosen))
            {
                // Whoever has begun this takes it, or has ended this.
                let _ = sender.send(trained);
            }
            rest = PERIOD.max(began.elapsed() * (100 - share.min(100)) / share.max(1));
        }
    }
}

fn learner(choice: Choice) -> Learner {
    let seed = unix_millis();
    Learner::new(LearnerSettings { choice, goal: None, trains: true, samples_limit: SAMPLES }, seed)
}

/// Studies the strings of one pattern, if there are enough.
fn study(learner: &Learner, chosen: &[(Vec<u8>, Arc<Dictionary>)]) -> Option<Trained> {
    let current = |pattern: &[u8]| {
        let found = chosen.iter().find(|(other, _)| other == pattern);
        found.map(|(_, dictionary)| dictionary.clone())
    };
    // Without a goal time does not count.
    let lesson = learner.step(unix_millis(), 1.0, current, &|| Duration::ZERO)?;
    let dictionary = lesson.study.new_dictionary?;
    Some(Trained { pattern: lesson.pattern, dictionary, samples: lesson.samples })
}

fn unix_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_that_are_alike_give_a_dictionary_while_there_is_time_for_it() {
        let choice = Choice::new("lz4", None, 128).expect("there is such a codec");
        let mut training = Training::begin(choice).expect("there are threads");
        let show = |training: &Training| {
            for number in 0..2_000 {
                let string = format!(
                    r#"{{"id":{number},"name":"customer {}","address":{{"city":"Akureyri","country":"Iceland"}},"tags":["a","b"]}}"#,
                    number * 7_919 % 1_000
                );
                training.show(format!("user:{number}").as_bytes(), string.as_bytes());
            }
        };
        show(&training);
        thread::sleep(PERIOD + PERIOD / 2);
        assert_eq!(training.take().count(), 0, "it has no share of a processor");
        training.follow(100, choice, std::iter::empty());
        let until = Instant::now() + Duration::from_secs(60);
        let found = loop {
            match training.take().next() {
                Some(trained) => break trained,
                None => assert!(Instant::now() < until, "nothing was learned"),
            }
            show(&training);
            thread::sleep(PERIOD / 10);
        };
        assert_eq!(found.pattern, b"user:*");
        assert!(found.samples > 0);
    }
}
