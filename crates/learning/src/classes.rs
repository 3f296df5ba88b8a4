//! Classes of values, by the pattern of their keys and their size, and what is sampled of each.
//!
//! Writers see only [`Classes::offer`]: it says how many writes they need not offer. There are never more than
//! [`MAX_CLASSES`] beside those for everything else, whatever the keys.
//!
//! A class is sampled, studied early and then with more samples, and then left alone until it has been seen much more
//! often, its values have drifted or somebody asks.
//!
//! While values of different size are told apart, a class of any size stands apart ([`Classes::offer_apart`]): its
//! values are those of no key, and nothing is chosen for them but a dictionary. They may be large, so that there is no
//! room for more samples when there are a hundred of them: such a class is trained again whenever it has been seen some
//! times as often.

use crate::band::Band;
use crate::class::{Class, Due, FIRST_BYTES, LEAST_RETRY, NEVER_TRAINED, Progress, RETRY_AT, Ready};
use crate::pattern::Patterns;
use crate::samples::Offered;

/// Number of classes that are told apart; the rest is in those of the pattern `*`, one for each band.
pub const MAX_CLASSES: usize = 64;
/// The pattern of everything else.
const REST: &[u8] = b"*";
/// The most samples of a class, in bytes, and the part of all that it may have.
const MAX_CLASS_BYTES: usize = 1 << 20;
const CLASS_SHARE: usize = 8;
/// Values without a class of their own after which obscure classes make room.
const WEED_EVERY: u32 = 1 << 10;
/// Most writes that are not offered while no class needs samples; half of that on average.
const MAX_SKIPPED: u32 = 128;
/// Time after which a class is looked at again, in milliseconds.
const LOOK_AGAIN_AFTER: u64 = 10 * 60 * 1000;
/// Offers after which unused classes make room for others.
const TIDY_EVERY: u32 = 1 << 16;

/// All classes.
pub struct Classes {
    patterns: Patterns,
    classes: Vec<Class>,
    /// Bytes that all samples may take.
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

    /// Looks at a written value that stands for `stands_for` values; returns the number of following ones
    /// that need not be offered.
    pub fn offer(&mut self, key: &[u8], value: &[u8], stands_for: u64) -> u32 {
        let Some(band) = Band::of(value.len()) else { return 0 };
        let band = if self.by_size { band } else { Band::ANY };
        self.tidy_now_and_then();
        let place = self.class_of(key, band);
        self.take(place, Offered::of_key(key, value), stands_for)
    }

    /// Like [`Classes::offer`], a value that no key has, for a class apart. The class has a pattern that no
    /// key can have; the name tells the value apart from others, and is not kept with it.
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

    /// Shows a value to its class; returns how many of the next need not be offered.
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

    /// Returns whether one more class can be told apart, after unneeded ones were removed, if it is time for
    /// that.
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

    /// Notes that a class was studied at this time (Unix milliseconds), and whether it has a new dictionary.
    /// Returns whether it has been seen so often meanwhile that it is to be trained again: if nothing more is
    /// written, with what there is.
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

    /// Adds a class that has a dictionary already, if it is not known.
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

    /// Samples classes again that have not been studied for long at this time (Unix milliseconds).
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

    /// Requests training of classes as soon as they have enough samples; returns their number. Classes that
    /// are not sampled are from now on.
    pub fn train_now(&mut self, wanted: impl Fn(&[u8]) -> bool) -> usize {
        let wanted = self.classes.iter_mut().filter(|class| wanted(&class.pattern));
        wanted
            .map(|class| match &mut class.progress {
                Progress::Sampling { due, .. } => *due = Due::Now,
                progress @ Progress::Settled { .. } => *progress = Progress::anew(Due::Now),
            })
            .count()
    }

    /// Marks that a class has lost its dictionary, and may get another one, but not soon.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::LOOK_SAMPLES;

    const LIMIT: usize = 4 << 20;

    fn offer(classes: &mut Classes, key: &str, len: usize) -> u32 {
        classes.offer(key.as_bytes(), &vec![b'x'; len], 1)
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
