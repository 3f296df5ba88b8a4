//! Methods for the values of a class in the course of their life: when they are written, where a quick codec is worth more
//! than a dense one, and where they stay, by how often they are read.
//!
//! Encoding values that stay is done in the background, which has a share of a processor of its own, so it has no price here;
//! what they take and what reading them takes does.

use snugly_codec::Choice;

use crate::goal::Goal;
use crate::measured::Measured;

/// How often a value that stays is read, as a store sees it: between two visits of its pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadRate {
    /// Not at all, or once.
    Unread,
    /// Now and then.
    Seldom,
    /// So often that time counts more than memory.
    Often,
    /// So often that it may be kept as it is.
    Constantly,
}

impl ReadRate {
    /// All of them, in the order of their numbers.
    pub const ALL: [ReadRate; 4] =
        [ReadRate::Unread, ReadRate::Seldom, ReadRate::Often, ReadRate::Constantly];

    /// Its name.
    pub fn name(self) -> &'static str {
        ["unread", "seldom", "often", "constantly"][self as usize]
    }

    /// Number of reads that encoding such a value is to pay for.
    fn reads(self) -> f64 {
        [0.0, 8.0, 64.0, 1024.0][self as usize]
    }
}

/// Places of a study's measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Place for values as they are written.
    pub written: usize,
    /// Places for values that stay, by their rate.
    pub kept: [usize; ReadRate::ALL.len()],
}

/// Levels from here on are too slow for a write, unless memory is all that counts.
pub(crate) const SLOW_LEVEL: i32 = 6;
/// Another method must be better than that in use by what this part of the saved bytes is worth.
const LEAST_BETTER: f64 = 0.02;

impl Stages {
    /// One method for the whole life of a value.
    pub(crate) fn one(place: usize) -> Stages {
        Stages { written: place, kept: [place; ReadRate::ALL.len()] }
    }

    /// The best ones for a goal. What no quick codec makes smaller is written with the best of the others.
    pub(crate) fn of(measured: &[Measured], goal: Goal, population: u64, reads: f64) -> Stages {
        let best = |may_be: &dyn Fn(&Choice) -> bool| best(measured, goal, population, reads, may_be);
        let quick = best(&|choice| goal == Goal::Memory || is_quick(choice));
        let written = match measured[quick].choice.compresses() {
            true => quick,
            false => best(&|choice| choice.level() < SLOW_LEVEL),
        };
        if !measured[written].choice.compresses() {
            return Stages::one(written);
        }
        let kept = ReadRate::ALL.map(|rate| match (goal, rate) {
            // The next reader counts, whoever it is.
            (Goal::Speed, ReadRate::Unread) => kept(measured, written, goal, ReadRate::Seldom),
            _ => kept(measured, written, goal, rate),
        });
        Stages { written, kept }
    }
}

fn is_quick(choice: &Choice) -> bool {
    /// The codec that encodes as slowly as any.
    const SLOWEST: usize = 1;
    choice.codec().relative_speed() > SLOWEST && choice.level() <= choice.codec().default_level()
}

/// The place of the method that is worth the most for a value that is written and read, of those that may be; the first,
/// which is in use, unless another is clearly better.
pub(crate) fn best(
    measured: &[Measured],
    goal: Goal,
    population: u64,
    reads: f64,
    may_be: impl Fn(&Choice) -> bool,
) -> usize {
    let worth: Vec<f64> = measured.iter().map(|measured| measured.worth(goal, population, reads)).collect();
    let candidates = (0..worth.len()).filter(|&place| may_be(&measured[place].choice));
    let best = candidates.max_by(|&a, &b| worth[a].total_cmp(&worth[b])).unwrap_or_default();
    if !may_be(&measured[0].choice) {
        return best;
    }
    let saved = [0, best].map(|place| measured[place].saved_each()).into_iter().fold(0.0, f64::max);
    if worth[best] > worth[0] + LEAST_BETTER * goal.price() * saved { best } else { 0 }
}

/// The place of the method that costs the least for a value that stays, in bytes and in time of its readers. It has a
/// dictionary if that of written values has one: the pass that re-encodes for dictionaries would undo anything else. The
/// dictionary is there in any case then, and its tables for encoding only while the pass needs them, so it does not count.
/// Values that are read constantly may be left as they are: they are few, since most reads are theirs.
fn kept(measured: &[Measured], written: usize, goal: Goal, rate: ReadRate) -> usize {
    let cost = |measured: &Measured| {
        measured.decode_each().as_nanos() as f64 * rate.reads() - measured.saved_each() * goal.price()
    };
    let may_be = |other: &Measured| match other.choice.compresses() {
        true => {
            other.saved_each() > 0.0 && other.dictionary.is_some() == measured[written].dictionary.is_some()
        }
        false => rate == ReadRate::Constantly,
    };
    let candidates = (0..measured.len()).filter(|&place| may_be(&measured[place]));
    candidates.min_by(|&a, &b| cost(&measured[a]).total_cmp(&cost(&measured[b]))).unwrap_or(written)
}

#[cfg(all(test, feature = "zstd", feature = "lz4"))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A measurement of one value of 1,000 bytes.
    fn measured(
        name: &str,
        level: i32,
        dictionary: bool,
        saved: usize,
        encode: u64,
        decode: u64,
    ) -> Measured {
        Measured {
            choice: Choice::new(name, Some(level), 0).expect("it is built in"),
            dictionary: dictionary.then_some(1),
            values: 1,
            raw: 1_000,
            encoded: 1_000 - saved,
            plain: 1_000,
            stored: 1_000 - saved,
            encode: Duration::from_nanos(encode),
            decode: Duration::from_nanos(decode),
            memory: 0,
        }
    }

    /// The codecs and levels, for values as they are written and for those that stay by their rate.
    fn chosen(measured: &[Measured], goal: Goal) -> Vec<(&'static str, i32)> {
        let stages = Stages::of(measured, goal, 1_000, 1.0);
        let places = [stages.written].into_iter().chain(stages.kept);
        places.map(|place| (measured[place].choice.codec().name(), measured[place].choice.level())).collect()
    }

    fn json() -> Vec<Measured> {
        vec![
            measured("none", 0, false, 0, 0, 0),
            measured("lz4", 0, true, 572, 2_500, 290),
            measured("lz4", 9, true, 698, 17_000, 390),
            measured("zstd", 3, true, 709, 5_500, 1_400),
            measured("zstd", 9, true, 730, 20_000, 1_400),
            measured("zstd", 9, false, 740, 20_000, 2_000),
        ]
    }

    #[test]
    fn writes_are_quick_and_what_stays_gets_what_suits_its_readers() {
        let balanced = [("lz4", 0), ("zstd", 9), ("lz4", 9), ("lz4", 0), ("none", 0)];
        assert_eq!(chosen(&json(), Goal::Balanced), balanced);
        let speed = [("lz4", 0), ("lz4", 0), ("lz4", 0), ("lz4", 0), ("none", 0)];
        assert_eq!(chosen(&json(), Goal::Speed), speed);
    }

    #[test]
    fn where_memory_is_all_that_counts_writes_are_dense_as_well() {
        let memory = [("zstd", 9), ("zstd", 9), ("zstd", 9), ("zstd", 9), ("none", 0)];
        assert_eq!(chosen(&json(), Goal::Memory), memory);
    }

    #[test]
    fn what_stays_keeps_the_dictionary() {
        let measured = json();
        let stages = Stages::of(&measured, Goal::Balanced, 1_000, 1.0);
        let compressed = stages.kept.iter().filter(|place| measured[**place].choice.compresses());
        assert!(compressed.count() == 3);
        assert!(stages.kept[..3].iter().all(|place| measured[*place].dictionary.is_some()));
    }

    #[test]
    fn what_no_quick_codec_makes_smaller_is_written_with_another() {
        let hexadecimal = [
            measured("none", 0, false, 0, 0, 0),
            measured("zstd", 3, false, 440, 3_000, 2_000),
            measured("lz4", 0, false, 0, 100, 10),
        ];
        assert_eq!(chosen(&hexadecimal, Goal::Balanced)[..4], [("zstd", 3); 4]);
        assert_eq!(chosen(&hexadecimal[..1], Goal::Balanced), [("none", 0); 5]);
    }
}
