//! Classes of values, by the pattern of their keys and their size, and what is sampled of each.
//!
//! What writers see of it is [`Classes::offer`]: it says how many writes they need not offer. There are never more than
//! [`MAX_CLASSES`] beside those for everything else, whatever the keys.

use super::pattern::Patterns;
use super::samples::{Reservoir, Sample};

/// Values of similar size: of at least 32, 128, 512, 2 Ki and 8 Ki bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Band(u8);

impl Band {
    /// Values shorter than this have no class, nor those from [`Band::END`] on.
    const START: usize = 32;
    const END: usize = 32 << 10;

    /// The band of values of so many bytes; the longest gain little by a dictionary and have none.
    pub(crate) fn of(len: usize) -> Option<Band> {
        (Band::START..Band::END).contains(&len).then(|| Band(((len.ilog2() - Band::START.ilog2()) / 2) as u8))
    }

    /// The length of its shortest value, in bytes.
    pub(crate) fn start(self) -> usize {
        Band::START << (2 * self.0)
    }

    /// Behind the length of its longest value, in bytes.
    pub(crate) fn end(self) -> usize {
        Band::END.min(Band::START << (2 * self.0 + 2))
    }
}

/// How many classes are told apart; the rest is in those of the pattern `*`, one for each band.
pub(super) const MAX_CLASSES: usize = 64;
/// The pattern of everything else.
const REST: &[u8] = b"*";
/// The most samples of a class, in bytes, and the part of all that it may have.
const MAX_CLASS_BYTES: usize = 1 << 20;
const CLASS_SHARE: usize = 8;
/// What a class needs for its first training, which is to be early.
const FIRST_BYTES: usize = 64 << 10;
const FIRST_SAMPLES: usize = 128;
/// What it needs if there is no room for more, or somebody asks for a training.
const LEAST_SAMPLES: usize = 32;
/// How many writes are not offered at most while no class needs samples; half of that on average.
const MAX_SKIPPED: u32 = 128;
/// A class that was not worth a dictionary is sampled again when it has been seen so many times as often.
const RETRY_AT: u64 = 4;
/// After so many offers the classes without a dictionary that nobody has used meanwhile make room for others.
const TIDY_EVERY: u32 = 1 << 16;

/// One class.
pub(super) struct Class {
    pub(super) pattern: Box<[u8]>,
    pub(super) band: Band,
    /// How many values were seen, as far as offers tell; and up to the last tidying.
    pub(super) seen: u64,
    seen_before: u64,
    progress: Progress,
}

/// Where a class stands.
enum Progress {
    /// It is sampled, to be trained at this time.
    Sampling { samples: Reservoir, due: Due },
    /// It has been trained, with or without success; sampled again when so many values were seen.
    Settled { until: u64 },
}

/// When a class that is sampled is trained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    /// As soon as there are the least samples: somebody asks for it.
    Now,
    /// With little, to be early.
    Early,
    /// When there is no room for more samples.
    Full,
}

pub(super) struct Classes {
    patterns: Patterns,
    classes: Vec<Class>,
    /// How many bytes all samples may take.
    limit: usize,
    random: fastrand::Rng,
    /// The pattern of the key that is looked at.
    text: Vec<u8>,
    untidied: u32,
}

/// A class that has enough samples.
pub(super) struct Ready {
    pub(super) pattern: Box<[u8]>,
    pub(super) band: Band,
    pub(super) samples: Vec<Sample>,
    /// Whether there is no room for more of them.
    is_full: bool,
}

impl Classes {
    pub(super) fn new(limit: usize, seed: u64) -> Classes {
        Classes {
            patterns: Patterns::new(),
            classes: Vec::new(),
            limit,
            random: fastrand::Rng::with_seed(seed),
            text: Vec::new(),
            untidied: TIDY_EVERY,
        }
    }

    /// How many bytes all samples may take from now on.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Looks at a written value that stands for so many; says how many of the next need not be offered.
    pub(super) fn offer(&mut self, key: &[u8], value: &[u8], stands_for: u64) -> u32 {
        let Some(band) = Band::of(value.len()) else { return 0 };
        self.untidied -= 1;
        if self.untidied == 0 {
            self.tidy();
        }
        let room = self.limit.saturating_sub(self.bytes());
        let class_limit = MAX_CLASS_BYTES.min(self.limit / CLASS_SHARE);
        let place = self.class_of(key, band);
        let class = &mut self.classes[place];
        class.seen += stands_for;
        if let Progress::Settled { until } = class.progress
            && class.seen >= until
        {
            class.progress = Progress::anew(Due::Full);
        }
        if let Progress::Sampling { samples, .. } = &mut class.progress {
            let limit = class_limit.min(samples.bytes() + room);
            samples.offer(key, value, limit, &mut self.random);
            if !samples.is_full() {
                return 0;
            }
        }
        self.random.u32(..=MAX_SKIPPED)
    }

    fn class_of(&mut self, key: &[u8], band: Band) -> usize {
        let mut text = std::mem::take(&mut self.text);
        self.patterns.learn(key, &mut text);
        let find = |classes: &[Class], text: &[u8]| {
            classes.iter().position(|class| class.band == band && *class.pattern == *text)
        };
        let found = find(&self.classes, &text).or_else(|| {
            let named = self.classes.iter().filter(|class| &*class.pattern != REST).count();
            let pattern = if named < MAX_CLASSES { &text } else { REST };
            find(&self.classes, pattern).or_else(|| {
                self.classes.push(Class::new(pattern, band));
                Some(self.classes.len() - 1)
            })
        });
        self.text = text;
        found.expect("a class that is missing is made")
    }

    /// Bytes that all samples take.
    pub(super) fn bytes(&self) -> usize {
        self.classes.iter().map(Class::sampled_bytes).sum()
    }

    fn tidy(&mut self) {
        self.untidied = TIDY_EVERY;
        self.classes.retain(|class| class.seen > class.seen_before);
        self.classes.iter_mut().for_each(|class| class.seen_before = class.seen);
    }

    /// A class that has enough samples to be trained, that with the most first.
    pub(super) fn ready(&self) -> Option<Ready> {
        let ready = self.classes.iter().filter(|class| class.is_ready());
        ready.max_by_key(|class| class.sampled_bytes()).and_then(Class::ready)
    }

    /// Notes that a class was trained, and whether it has a new dictionary.
    pub(super) fn trained(&mut self, ready: &Ready, adopted: bool) {
        let Some(class) = self.find(&ready.pattern, ready.band) else { return };
        match &mut class.progress {
            // The next training is better founded.
            Progress::Sampling { due, .. } if !ready.is_full => *due = Due::Full,
            progress if adopted => *progress = Progress::Settled { until: u64::MAX },
            progress => *progress = Progress::Settled { until: class.seen.saturating_mul(RETRY_AT) },
        }
    }

    /// Has a class that has a dictionary already.
    pub(super) fn settle(&mut self, pattern: &[u8], band: Band) {
        if self.find(pattern, band).is_none() {
            let progress = Progress::Settled { until: u64::MAX };
            self.classes.push(Class { progress, ..Class::new(pattern, band) });
        }
    }

    /// Samples a class anew, if it is not being sampled.
    pub(super) fn resample(&mut self, pattern: &[u8], band: Band) {
        if let Some(class) = self.find(pattern, band)
            && let Progress::Settled { .. } = class.progress
        {
            class.progress = Progress::anew(Due::Full);
        }
    }

    /// Has classes trained as soon as they have enough samples; says how many. Those that are not sampled are from now on.
    pub(super) fn train_now(&mut self, wanted: impl Fn(&[u8]) -> bool) -> usize {
        let wanted = self.classes.iter_mut().filter(|class| wanted(&class.pattern));
        wanted
            .map(|class| match &mut class.progress {
                Progress::Sampling { due, .. } => *due = Due::Now,
                progress @ Progress::Settled { .. } => *progress = Progress::anew(Due::Now),
            })
            .count()
    }

    /// Has a class that may have a dictionary again, but not soon.
    pub(super) fn bereave(&mut self, pattern: &[u8], band: Band) {
        if let Some(class) = self.find(pattern, band) {
            class.progress = Progress::Settled { until: class.seen.saturating_mul(RETRY_AT) };
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.patterns = Patterns::new();
        self.classes.clear();
    }

    pub(super) fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn find(&mut self, pattern: &[u8], band: Band) -> Option<&mut Class> {
        self.classes.iter_mut().find(|class| class.band == band && *class.pattern == *pattern)
    }
}

impl Progress {
    fn anew(due: Due) -> Progress {
        Progress::Sampling { samples: Reservoir::new(), due }
    }
}

impl Class {
    fn new(pattern: &[u8], band: Band) -> Class {
        Class { pattern: pattern.into(), band, seen: 0, seen_before: 0, progress: Progress::anew(Due::Early) }
    }

    fn reservoir(&self) -> Option<&Reservoir> {
        match &self.progress {
            Progress::Sampling { samples, .. } => Some(samples),
            Progress::Settled { .. } => None,
        }
    }

    /// How many samples there are.
    pub(super) fn samples(&self) -> usize {
        self.reservoir().map_or(0, |samples| samples.samples().len())
    }

    /// Bytes that they take.
    pub(super) fn sampled_bytes(&self) -> usize {
        self.reservoir().map_or(0, Reservoir::bytes)
    }

    fn is_ready(&self) -> bool {
        let Progress::Sampling { samples, due } = &self.progress else { return false };
        let count = samples.samples().len();
        let is_enough = match due {
            Due::Now => true,
            Due::Early => samples.bytes() >= FIRST_BYTES && count >= FIRST_SAMPLES,
            Due::Full => false,
        };
        (is_enough || samples.is_full()) && count >= LEAST_SAMPLES
    }

    fn ready(&self) -> Option<Ready> {
        self.reservoir().map(|samples| Ready {
            pattern: self.pattern.clone(),
            band: self.band,
            samples: samples.samples().to_vec(),
            is_full: samples.is_full(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 4 << 20;

    fn offer(classes: &mut Classes, key: &str, len: usize) -> u32 {
        classes.offer(key.as_bytes(), &vec![b'x'; len], 1)
    }

    #[test]
    fn bands_follow_each_other_and_cover_what_has_one() {
        for len in [32, 127, 128, 511, 512, 2_047, 2_048, 8_191, 8_192, 32_767] {
            let band = Band::of(len).expect("it has a band");
            assert!((band.start()..band.end()).contains(&len), "{len}");
        }
        assert_eq!((Band::of(31), Band::of(32_768)), (None, None));
    }

    #[test]
    fn ten_thousand_patterns_of_keys_make_a_bounded_number_of_classes_in_bounded_memory() {
        let mut classes = Classes::new(LIMIT, 7);
        let letters = |number: u32| -> String {
            number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
        };
        for round in 0..4 {
            for number in 0..10_000 {
                let key = format!("{}:{round}:{}", letters(number), letters(number % 97));
                offer(&mut classes, &key, 40 << (number % 9));
                assert!(classes.classes().len() <= MAX_CLASSES + 5);
                assert!(classes.bytes() <= LIMIT);
            }
        }
        assert!(classes.classes().iter().any(|class| &*class.pattern == REST && class.samples() > 0));
    }

    #[test]
    fn a_class_is_sampled_until_it_has_been_trained_with_all_that_it_may_keep() {
        let mut classes = Classes::new(LIMIT, 7);
        let mut key = 0;
        let mut fill = |classes: &mut Classes| loop {
            key += 1;
            if offer(classes, &format!("user:{key}"), 300) > 0 || classes.ready().is_some() {
                return classes.ready();
            }
        };
        let early = fill(&mut classes).expect("there are enough for a first training");
        assert!((FIRST_BYTES..FIRST_BYTES + 500).contains(&classes.bytes()) && !early.is_full);
        assert_eq!(&*early.pattern, b"user:*");
        classes.trained(&early, false);
        let full = fill(&mut classes).expect("no more fit");
        assert!(full.samples.len() > 3 * early.samples.len() && full.is_full);
        classes.trained(&full, false);
        assert_eq!(classes.bytes(), 0, "what was trained is not kept");
        assert!(classes.ready().is_none());
        let seen = classes.classes()[0].seen;
        let before = (0..).take_while(|number| {
            offer(&mut classes, &format!("user:{number}"), 300);
            classes.bytes() == 0
        });
        assert_eq!(before.count() as u64, (RETRY_AT - 1) * seen - 1, "it is tried again later");
    }

    #[test]
    fn a_class_with_a_dictionary_is_sampled_again_only_when_that_is_asked_for() {
        let mut classes = Classes::new(LIMIT, 7);
        let offer_many = |classes: &mut Classes, count: u32| {
            (0..count).map(|number| offer(classes, &format!("user:{number}"), 300)).fold(0, u32::max)
        };
        assert!(offer_many(&mut classes, 10_000) > 0);
        let ready = classes.ready().expect("there are enough");
        classes.trained(&ready, true);
        offer_many(&mut classes, 100_000);
        assert_eq!(classes.bytes(), 0);
        classes.resample(b"user:*", ready.band);
        offer(&mut classes, "user:1", 300);
        assert!(classes.bytes() > 0);
    }
}
