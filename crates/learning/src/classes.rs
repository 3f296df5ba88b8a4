//! Classes of values, by the pattern of their keys and their size, and what is sampled of each.
//!
//! What writers see of it is [`Classes::offer`]: it says how many writes they need not offer. There are never more than
//! [`MAX_CLASSES`] beside those for everything else, whatever the keys.
//!
//! A class is sampled, studied early and then with more samples, and then left alone until it has been seen much more
//! often, its values have drifted or somebody asks.
//!
//! Where values of different size are told apart, a class of any size stands apart ([`Classes::offer_apart`]): its values
//! are those of no key, and nothing is chosen for them but a dictionary. They may be large, so that there is no room for more
//! samples when there are a hundred of them: such a class is trained again whenever it has been seen some times as often.

use crate::pattern::Patterns;
use crate::samples::{Offered, Reservoir, Sample};

/// Values of similar size: of at least 32, 128, 512, 2 Ki and 8 Ki bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Band(u8);

impl Band {
    /// Values shorter than this have no class, nor those from [`Band::END`] on.
    pub const START: usize = 32;
    /// See [`Band::START`].
    pub const END: usize = 32 << 10;
    /// All values that have a class, where size makes no difference: to all of them, or to those of a class apart.
    pub const ANY: Band = Band(u8::MAX);

    /// The band of values of so many bytes; the longest gain little by a dictionary and have none.
    pub fn of(len: usize) -> Option<Band> {
        (Band::START..Band::END).contains(&len).then(|| Band(((len.ilog2() - Band::START.ilog2()) / 2) as u8))
    }

    /// The length of its shortest value, in bytes.
    pub fn start(self) -> usize {
        if self == Band::ANY { Band::START } else { Band::START << (2 * self.0) }
    }

    /// Behind the length of its longest value, in bytes.
    pub fn end(self) -> usize {
        if self == Band::ANY { Band::END } else { Band::END.min(Band::START << (2 * self.0 + 2)) }
    }

    /// Whether values of so many bytes are of this band.
    pub fn contains(self, len: usize) -> bool {
        (self.start()..self.end()).contains(&len)
    }
}

/// How many classes are told apart; the rest is in those of the pattern `*`, one for each band.
pub const MAX_CLASSES: usize = 64;
/// The pattern of everything else.
const REST: &[u8] = b"*";
/// The most samples of a class, in bytes, and the part of all that it may have.
const MAX_CLASS_BYTES: usize = 1 << 20;
const CLASS_SHARE: usize = 8;
/// What a class needs for its first training, which is to be early.
const FIRST_BYTES: usize = 64 << 10;
const FIRST_SAMPLES: usize = 128;
/// What it needs for a look at what suits it without a dictionary.
const LOOK_SAMPLES: usize = 64;
/// What it needs if there is no room for more, or somebody asks for a training.
const LEAST_SAMPLES: usize = 32;
/// A class that has fewer makes room for another when there are too many.
const FEW_SAMPLES: usize = 8;
/// After so many values that found no class of their own, obscure ones make room.
const WEED_EVERY: u32 = 1 << 10;
/// How many writes are not offered at most while no class needs samples; half of that on average.
const MAX_SKIPPED: u32 = 128;
/// A class that was not worth a dictionary is sampled again when it has been seen so many times as often,
const RETRY_AT: u64 = 4;
/// and at least so often.
const LEAST_RETRY: u64 = 10_000;
/// A class is looked at again after so long, in milliseconds.
const LOOK_AGAIN_AFTER: u64 = 10 * 60 * 1000;
/// After so many offers the classes that nobody has used meanwhile make room for others.
const TIDY_EVERY: u32 = 1 << 16;

/// One class.
pub struct Class {
    /// The pattern of its keys.
    pub pattern: Box<[u8]>,
    /// The length of its values.
    pub band: Band,
    /// How many values were seen, as far as offers tell.
    pub seen: u64,
    /// The same at the last tidying.
    seen_before: u64,
    /// It is trained again when so many were seen.
    retrain_at: u64,
    progress: Progress,
}

/// Where a class stands.
enum Progress {
    /// It is sampled, to be studied at this time.
    Sampling { samples: Reservoir, due: Due },
    /// It has been studied, at this time (Unix milliseconds).
    Settled { since: u64 },
}

/// When a class that is sampled is studied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// As soon as there are the least samples: somebody asks for it.
    Now,
    /// As soon as there are a few, and without a training.
    Look,
    /// With so many bytes of samples.
    Bytes(usize),
    /// When there is no room for more samples.
    Full,
}

/// All classes.
pub struct Classes {
    patterns: Patterns,
    classes: Vec<Class>,
    /// How many bytes all samples may take.
    limit: usize,
    /// Whether classes are looked at for what suits them, and not only trained.
    looks: bool,
    /// Whether dictionaries are trained; else a look is all.
    trains: bool,
    /// Whether values of different size are told apart.
    by_size: bool,
    random: fastrand::Rng,
    /// The pattern of the key that is looked at.
    text: Vec<u8>,
    untidied: u32,
    unweeded: u32,
}

/// A class that has enough samples to be studied.
pub struct Ready {
    /// See [`Class`].
    pub pattern: Box<[u8]>,
    /// See [`Class`].
    pub band: Band,
    /// See [`Class`].
    pub seen: u64,
    /// What was sampled of it.
    pub samples: Vec<Sample>,
    /// Whether they are enough to train a dictionary.
    pub trains: bool,
    due: Due,
    /// Whether there is no room for more of them.
    is_full: bool,
}

impl Classes {
    /// No class yet; samples will take `limit` bytes at most. If it `looks`, each class is ready after a few samples
    /// already, and again every ten minutes.
    pub fn new(limit: usize, looks: bool, seed: u64) -> Classes {
        Classes {
            patterns: Patterns::new(),
            classes: Vec::new(),
            limit,
            looks,
            trains: true,
            by_size: true,
            random: fastrand::Rng::with_seed(seed),
            text: Vec::new(),
            untidied: TIDY_EVERY,
            unweeded: WEED_EVERY,
        }
    }

    /// The same, for those who do not tell values of different size apart.
    pub fn of_any_size(limit: usize, looks: bool, seed: u64) -> Classes {
        Classes { by_size: false, ..Classes::new(limit, looks, seed) }
    }

    /// From now on as in [`Classes::new`]; also says whether dictionaries are trained, as they are at first.
    pub fn follow(&mut self, limit: usize, looks: bool, trains: bool) {
        (self.limit, self.looks, self.trains) = (limit, looks, trains);
    }

    /// Looks at all classes as soon as there are a few samples.
    pub fn look_at_all(&mut self) {
        let by_size = self.by_size;
        let looked_at = self.classes.iter_mut().filter(|class| !class.is_apart(by_size));
        looked_at.for_each(|class| class.progress = Progress::anew(Due::Look));
    }

    /// Looks at a written value that stands for so many; says how many of the next need not be offered.
    pub fn offer(&mut self, key: &[u8], value: &[u8], stands_for: u64) -> u32 {
        let Some(band) = Band::of(value.len()) else { return 0 };
        let band = if self.by_size { band } else { Band::ANY };
        self.tidy_now_and_then();
        let place = self.class_of(key, band);
        self.take(place, Offered::of_key(key, value), stands_for)
    }

    /// As [`Classes::offer`], a value that no key has, for a class apart. The class has a pattern that no key can have; the
    /// name tells the value apart from others, and is not kept with it.
    pub fn offer_apart(&mut self, pattern: &[u8], name: &[u8], value: &[u8], stands_for: u64) -> u32 {
        if !Band::ANY.contains(value.len()) {
            return 0;
        }
        self.tidy_now_and_then();
        let is_it = |class: &Class| class.band == Band::ANY && *class.pattern == *pattern;
        let place = self.classes.iter().position(is_it).unwrap_or_else(|| {
            self.classes.push(Class::new(pattern, Band::ANY, Progress::anew(Due::Bytes(FIRST_BYTES))));
            self.classes.len() - 1
        });
        self.take(place, Offered::named(name, value), stands_for)
    }

    /// Shows a value to its class; says how many of the next need not be offered.
    fn take(&mut self, place: usize, offered: Offered<'_>, stands_for: u64) -> u32 {
        let room = self.limit.saturating_sub(self.bytes());
        let class_limit = MAX_CLASS_BYTES.min(self.limit / CLASS_SHARE);
        let class = &mut self.classes[place];
        class.seen += stands_for;
        if class.seen >= class.retrain_at
            && let Progress::Settled { .. } = class.progress
        {
            class.progress = Progress::anew(Due::Full);
        }
        if let Progress::Sampling { samples, .. } = &mut class.progress {
            let limit = class_limit.min(samples.bytes() + room);
            samples.offer(offered, limit, &mut self.random);
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
            let pattern = if self.has_room_for_another() { &text } else { REST };
            find(&self.classes, pattern).or_else(|| {
                let due = if self.looks { Due::Look } else { Due::Bytes(FIRST_BYTES) };
                self.classes.push(Class::new(pattern, band, Progress::anew(due)));
                Some(self.classes.len() - 1)
            })
        });
        self.text = text;
        found.expect("a class that is missing is made")
    }

    /// Whether a class more can be told apart, after those have gone that nobody needs, if it is time for that.
    fn has_room_for_another(&mut self) -> bool {
        let is_named = |class: &&Class| &*class.pattern != REST;
        if self.classes.iter().filter(is_named).count() < MAX_CLASSES {
            return true;
        }
        self.unweeded -= 1;
        if self.unweeded == 0 {
            self.unweeded = WEED_EVERY;
            self.classes.retain(|class| !class.is_obscure());
        }
        self.classes.iter().filter(is_named).count() < MAX_CLASSES
    }

    /// Bytes that all samples take.
    pub fn bytes(&self) -> usize {
        self.classes.iter().map(Class::sampled_bytes).sum()
    }

    fn tidy_now_and_then(&mut self) {
        self.untidied -= 1;
        if self.untidied > 0 {
            return;
        }
        self.untidied = TIDY_EVERY;
        self.classes.retain(|class| class.seen > class.seen_before);
        self.classes.iter_mut().for_each(|class| class.seen_before = class.seen);
    }

    /// A class that has enough samples to be studied: looks first, which are quick, then that with the most.
    pub fn ready(&self) -> Option<Ready> {
        let ready = self.classes.iter().filter(|class| class.is_ready());
        ready.max_by_key(|class| (class.is_due(Due::Look), class.sampled_bytes())).and_then(Class::ready)
    }

    /// Notes that a class was studied at this time (Unix milliseconds), and whether it has a new dictionary. Says whether it
    /// has been seen so often meanwhile that it is to be trained again: if nothing more is written, with what there is.
    pub fn studied(&mut self, ready: &Ready, adopted: bool, now: u64) -> bool {
        let (trains, by_size) = (self.trains, self.by_size);
        let Some(class) = self.find(&ready.pattern, ready.band) else { return false };
        let Progress::Sampling { due, samples } = &mut class.progress else { return false };
        match ready.due {
            Due::Look if trains && class.retrain_at == NEVER_TRAINED => *due = Due::Bytes(FIRST_BYTES),
            Due::Look => class.progress = Progress::Settled { since: now },
            // The next training is better founded, or pays because there are more values by then.
            _ if !ready.is_full => *due = if adopted { Due::Full } else { Due::Bytes(2 * samples.bytes()) },
            _ => {
                class.retrain_at = match class.is_apart(by_size) {
                    true => ready.seen.saturating_mul(RETRY_AT),
                    false if adopted => u64::MAX,
                    false => class.later(),
                };
                class.progress = Progress::Settled { since: now };
            }
        }
        matches!(class.progress, Progress::Settled { .. }) && class.seen >= class.retrain_at
    }

    /// Has a class that has a dictionary already.
    pub fn settle(&mut self, pattern: &[u8], band: Band) {
        if self.find(pattern, band).is_none() {
            let mut class = Class::new(pattern, band, Progress::Settled { since: 0 });
            let is_apart = class.is_apart(self.by_size);
            class.retrain_at = if is_apart { LEAST_RETRY } else { u64::MAX };
            if self.looks && !is_apart {
                class.progress = Progress::anew(Due::Look);
            }
            self.classes.push(class);
        }
    }

    /// Samples a class anew: for a training, or for a look where there is none.
    pub fn resample(&mut self, pattern: &[u8], band: Band) {
        let (trains, by_size) = (self.trains, self.by_size);
        let Some(class) = self.find(pattern, band) else { return };
        match trains {
            true => class.progress = Progress::anew(Due::Full),
            // There is nothing to look for.
            false if class.is_apart(by_size) => {}
            false => class.progress = Progress::anew(Due::Look),
        }
    }

    /// Has classes looked at again that were not for long at this time (Unix milliseconds).
    pub fn look_again(&mut self, now: u64) {
        let (looks, by_size) = (self.looks, self.by_size);
        for class in self.classes.iter_mut().filter(|class| looks && !class.is_apart(by_size)) {
            if let Progress::Settled { since } = class.progress
                && now.saturating_sub(since) >= LOOK_AGAIN_AFTER
            {
                class.progress = Progress::anew(Due::Look);
            }
        }
    }

    /// Has classes trained as soon as they have enough samples; says how many. Those that are not sampled are from now on.
    pub fn train_now(&mut self, wanted: impl Fn(&[u8]) -> bool) -> usize {
        let wanted = self.classes.iter_mut().filter(|class| wanted(&class.pattern));
        wanted
            .map(|class| match &mut class.progress {
                Progress::Sampling { due, .. } => *due = Due::Now,
                progress @ Progress::Settled { .. } => *progress = Progress::anew(Due::Now),
            })
            .count()
    }

    /// Has a class that may have a dictionary again, but not soon.
    pub fn bereave(&mut self, pattern: &[u8], band: Band) {
        if let Some(class) = self.find(pattern, band) {
            class.retrain_at = class.later();
            class.progress = Progress::Settled { since: 0 };
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.patterns = Patterns::new();
        self.classes.clear();
    }

    /// Forgets all classes but some.
    pub fn retain(&mut self, is_kept: impl FnMut(&Class) -> bool) {
        self.classes.retain(is_kept);
    }

    /// The classes that there are.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn find(&mut self, pattern: &[u8], band: Band) -> Option<&mut Class> {
        self.classes.iter_mut().find(|class| class.band == band && *class.pattern == *pattern)
    }
}

/// That a class was never trained.
const NEVER_TRAINED: u64 = u64::MAX - 1;

impl Progress {
    fn anew(due: Due) -> Progress {
        Progress::Sampling { samples: Reservoir::new(), due }
    }
}

impl Class {
    fn new(pattern: &[u8], band: Band, progress: Progress) -> Class {
        Class { pattern: pattern.into(), band, seen: 0, seen_before: 0, retrain_at: NEVER_TRAINED, progress }
    }

    /// When it is trained again after nothing came of it.
    fn later(&self) -> u64 {
        self.seen.max(LEAST_RETRY).saturating_mul(RETRY_AT)
    }

    fn reservoir(&self) -> Option<&Reservoir> {
        match &self.progress {
            Progress::Sampling { samples, .. } => Some(samples),
            Progress::Settled { .. } => None,
        }
    }

    /// Whether its values are those of no key, if values of different size are told apart.
    fn is_apart(&self, by_size: bool) -> bool {
        by_size && self.band == Band::ANY
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.reservoir().map_or(0, |samples| samples.samples().len())
    }

    /// Bytes that they take.
    pub fn sampled_bytes(&self) -> usize {
        self.reservoir().map_or(0, Reservoir::bytes)
    }

    fn is_due(&self, wanted: Due) -> bool {
        matches!(self.progress, Progress::Sampling { due, .. } if due == wanted)
    }

    /// Whether hardly anything is known of it.
    fn is_obscure(&self) -> bool {
        self.retrain_at == NEVER_TRAINED && self.reservoir().is_some() && self.samples() < FEW_SAMPLES
    }

    fn is_ready(&self) -> bool {
        let Progress::Sampling { samples, due } = &self.progress else { return false };
        let count = samples.samples().len();
        let is_enough = match *due {
            Due::Now => true,
            Due::Look => count >= LOOK_SAMPLES,
            Due::Bytes(least) => samples.bytes() >= least && count >= FIRST_SAMPLES,
            Due::Full => false,
        };
        (is_enough || samples.is_full()) && count >= LEAST_SAMPLES
    }

    fn ready(&self) -> Option<Ready> {
        let Progress::Sampling { samples, due } = &self.progress else { return None };
        Some(Ready {
            pattern: self.pattern.clone(),
            band: self.band,
            seen: self.seen,
            samples: samples.samples().to_vec(),
            trains: *due != Due::Look,
            due: *due,
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
            assert!(band.contains(len), "{len}");
        }
        assert_eq!((Band::of(31), Band::of(32_768)), (None, None));
        assert!(Band::ANY.contains(32) && Band::ANY.contains(32_767) && !Band::ANY.contains(31));
    }

    #[test]
    fn who_does_not_tell_sizes_apart_has_one_class_for_each_pattern() {
        let mut classes = Classes::of_any_size(LIMIT, false, 7);
        for len in [40, 300, 5_000] {
            offer(&mut classes, "user:7", len);
        }
        assert_eq!(classes.classes().len(), 1);
    }

    const APART: &[u8] = b"*apart*";

    /// Offers large values of no key until their class is ready.
    fn next_apart(classes: &mut Classes, from: &mut u32) -> Ready {
        loop {
            if let Some(ready) = classes.ready() {
                return ready;
            }
            *from += 1;
            classes.offer_apart(APART, &from.to_le_bytes(), &vec![b'x'; 8_190], 1);
        }
    }

    #[test]
    fn values_of_no_key_have_a_class_that_nothing_is_chosen_for_and_that_is_trained_ever_more_seldom() {
        for looks in [false, true] {
            let (mut classes, mut from) = (Classes::new(8 * LIMIT, looks, 7), 0);
            offer(&mut classes, "*apart*", 8_000);
            let mut seen = Vec::new();
            while seen.len() < 4 {
                let ready = next_apart(&mut classes, &mut from);
                assert_eq!((&*ready.pattern, ready.band, ready.trains), (APART, Band::ANY, true));
                assert!(ready.samples.iter().all(|sample| sample.key_len == 0));
                seen.push(ready.seen);
                classes.studied(&ready, true, 0);
                classes.look_at_all();
                classes.look_again(LOOK_AGAIN_AFTER);
            }
            assert!(seen[0] < 200 && seen.windows(2).all(|pair| pair[1] > pair[0] * RETRY_AT), "{seen:?}");
            assert_eq!(classes.classes().len(), 2, "a key of that name has another class");
            let ready = next_apart(&mut classes, &mut from);
            assert!(!classes.studied(&ready, false, 0));
            let ready = next_apart(&mut classes, &mut from);
            classes.offer_apart(APART, b"late", &[b'x'; 8_190], ready.seen * RETRY_AT);
            assert!(classes.studied(&ready, false, 0), "it was written to while it was studied");
            assert_eq!(classes.offer_apart(APART, b"short", &[b'x'; 31], 1), 0);
        }
    }

    #[test]
    fn ten_thousand_patterns_of_keys_make_a_bounded_number_of_classes_in_bounded_memory() {
        let mut classes = Classes::new(LIMIT, false, 7);
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
        let mut classes = Classes::new(LIMIT, false, 7);
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
        classes.studied(&early, true, 0);
        let full = fill(&mut classes).expect("no more fit");
        assert!(full.samples.len() > 3 * early.samples.len() && full.is_full);
        classes.studied(&full, false, 0);
        assert_eq!(classes.bytes(), 0, "what was trained is not kept");
        assert!(classes.ready().is_none());
        let seen = classes.classes()[0].seen.max(LEAST_RETRY);
        let done = classes.classes()[0].seen;
        let before = (0..).take_while(|number| {
            offer(&mut classes, &format!("user:{number}"), 300);
            classes.bytes() == 0
        });
        assert_eq!(before.count() as u64, RETRY_AT * seen - done - 1, "it is tried again later");
    }

    #[test]
    fn a_class_with_a_dictionary_is_sampled_again_only_when_that_is_asked_for() {
        let mut classes = Classes::new(LIMIT, false, 7);
        let offer_many = |classes: &mut Classes, count: u32| {
            (0..count).map(|number| offer(classes, &format!("user:{number}"), 300)).fold(0, u32::max)
        };
        assert!(offer_many(&mut classes, 10_000) > 0);
        let ready = classes.ready().expect("there are enough");
        classes.studied(&ready, true, 0);
        offer_many(&mut classes, 100_000);
        assert_eq!(classes.bytes(), 0);
        classes.resample(b"user:*", ready.band);
        offer(&mut classes, "user:1", 300);
        assert!(classes.bytes() > 0);
    }

    /// Offers values of one kind until their class is ready.
    fn next(classes: &mut Classes, from: &mut u32) -> Ready {
        loop {
            if let Some(ready) = classes.ready() {
                return ready;
            }
            *from += 1;
            offer(classes, &format!("user:{from}"), 300);
        }
    }

    #[test]
    fn after_an_early_training_that_came_to_nothing_the_next_has_twice_the_samples() {
        let (mut classes, mut from) = (Classes::new(LIMIT, false, 7), 0);
        let mut counts = Vec::new();
        while counts.len() < 3 {
            let ready = next(&mut classes, &mut from);
            counts.push(ready.samples.len());
            classes.studied(&ready, false, 0);
        }
        assert!(
            counts.windows(2).all(|pair| (pair[0] * 2..pair[0] * 2 + 3).contains(&pair[1])),
            "{counts:?}"
        );
    }

    #[test]
    fn who_looks_looks_at_each_class_soon_and_again_after_ten_minutes() {
        let (mut classes, mut from) = (Classes::new(LIMIT, true, 7), 0);
        let first = next(&mut classes, &mut from);
        assert_eq!((first.trains, first.samples.len()), (false, LOOK_SAMPLES));
        classes.studied(&first, false, 0);
        while let Progress::Sampling { .. } = classes.classes()[0].progress {
            let ready = next(&mut classes, &mut from);
            assert!(ready.trains);
            classes.studied(&ready, true, 1_000);
        }
        classes.look_again(1_000 + LOOK_AGAIN_AFTER - 1);
        assert!(matches!(classes.classes()[0].progress, Progress::Settled { .. }));
        classes.look_again(1_000 + LOOK_AGAIN_AFTER);
        let again = next(&mut classes, &mut from);
        assert!(!again.trains);
        classes.studied(&again, false, 2_000_000);
        assert!(matches!(classes.classes()[0].progress, Progress::Settled { since: 2_000_000 }));
    }

    #[test]
    fn who_looks_at_all_looks_at_those_that_were_settled_too() {
        let (mut classes, mut from) = (Classes::new(LIMIT, false, 7), 0);
        let ready = next(&mut classes, &mut from);
        classes.studied(&ready, true, 0);
        classes.follow(LIMIT, true, true);
        classes.look_at_all();
        assert!(!next(&mut classes, &mut from).trains);
    }

    #[test]
    fn a_class_whose_keys_repeat_is_not_sampled_for_ever() {
        let mut classes = Classes::new(LIMIT, false, 7);
        let skipped: u64 = (0..100_000)
            .map(|number| u64::from(offer(&mut classes, &format!("user:{}", number % 200), 300)))
            .sum();
        assert!(skipped > 1_000_000);
        assert!(classes.ready().is_some());
    }

    #[test]
    fn classes_of_which_hardly_anything_is_known_make_room_for_others() {
        let mut classes = Classes::new(LIMIT, false, 7);
        let word = |number: u32| -> String {
            number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
        };
        for number in 0..MAX_CLASSES as u32 {
            offer(&mut classes, &format!("{}:x", word(number)), 300);
        }
        for number in 0..2 * WEED_EVERY {
            offer(&mut classes, &format!("page:{number}"), 300);
        }
        assert!(
            classes.classes().iter().any(|class| class.pattern.ends_with(b":*") && class.samples() > 500)
        );
    }

    #[test]
    fn who_trains_nothing_settles_after_a_look() {
        let (mut classes, mut from) = (Classes::new(LIMIT, true, 7), 0);
        classes.follow(LIMIT, true, false);
        let ready = next(&mut classes, &mut from);
        classes.studied(&ready, false, 5);
        assert!(matches!(classes.classes()[0].progress, Progress::Settled { since: 5 }));
    }
}
