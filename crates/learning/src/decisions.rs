//! Encodings of new values of each class, chosen for a goal, with the reason.

use std::cmp::Reverse;
use std::sync::Arc;

use snugly_codec::Choice;

use crate::band::Band;
use crate::class::{Class, Ready};
use crate::drift::Drift;
use crate::goal::Goal;
use crate::measured::Measured;
use crate::pattern::Pattern;
use crate::stages::{ReadRate, Stages};
use crate::study::{Study, StudyParameters};

/// The decision for a class.
#[derive(Debug)]
pub struct Decision {
    /// The pattern of its keys.
    pub pattern: Pattern,
    /// The length of its values.
    pub band: Band,
    /// Codec and level.
    pub choice: Choice,
    /// Whether values are encoded with the dictionary that there is for them.
    pub uses_dictionary: bool,
    /// The goal.
    pub goal: Goal,
    /// About how many values there were, and how often each was read.
    pub population: u64,
    /// See `population`.
    pub reads: f64,
    /// The measured encodings.
    pub measured: Vec<Measured>,
    /// The places of the chosen ones, for the stages of a value's life.
    pub stages: Stages,
    /// Time of the decision, in Unix milliseconds.
    pub decided_at: u64,
    /// Drift of values since then.
    pub drift: Drift,
}

impl Decision {
    /// The decision that follows from a study of a class that had an earlier one.
    pub fn new(
        ready: &Ready,
        terms: &StudyParameters,
        goal: Goal,
        study: &Study,
        before: Option<&Arc<Decision>>,
        now: u64,
    ) -> Decision {
        let best = study.best();
        let is_same = |before: &&Arc<Decision>| {
            before.choice == best.choice && before.uses_dictionary == best.dictionary.is_some()
        };
        // Values of which the samples know nothing are no reason to decide the same again and again.
        let seen = before.filter(is_same).and_then(|before| before.drift.latest());
        Decision {
            pattern: Pattern::parse(&ready.pattern),
            band: ready.band,
            choice: best.choice,
            uses_dictionary: best.dictionary.is_some(),
            goal,
            population: terms.population,
            reads: terms.reads,
            measured: study.measured.clone(),
            stages: study.stages,
            decided_at: now,
            drift: Drift::new(Some(seen.unwrap_or_default().max(best.ratio()))),
        }
    }

    /// The measurement of the encoding of new values.
    pub fn chosen(&self) -> &Measured {
        &self.measured[self.stages.written]
    }

    /// The measurement of the encoding for values that stay and are read so often.
    pub fn kept(&self, rate: ReadRate) -> &Measured {
        &self.measured[self.stages.kept[rate as usize]]
    }

    fn is_for(&self, pattern: &[u8], band: Band) -> bool {
        self.band == band && self.pattern.text() == pattern
    }
}

/// The decisions of one moment.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// The most precise pattern first.
    decisions: Vec<Arc<Decision>>,
}

impl Decisions {
    /// The decision for a new value.
    pub fn find(&self, key: &[u8], len: usize) -> Option<&Arc<Decision>> {
        self.decisions.iter().find(|decision| decision.band.contains(len) && decision.pattern.matches(key))
    }

    /// With a decision more, in the place of the one that its class has had, and without those of classes that are gone.
    pub fn with(&self, decision: Decision, classes: &[Class]) -> Decisions {
        let is_left = |other: &&Arc<Decision>| {
            !other.is_for(decision.pattern.text(), decision.band)
                && classes.iter().any(|class| other.is_for(&class.pattern, class.band))
        };
        let mut decisions: Vec<_> = self.decisions.iter().filter(is_left).cloned().collect();
        decisions.push(Arc::new(decision));
        decisions.sort_by_key(|decision| Reverse(decision.pattern.precision()));
        Decisions { decisions }
    }

    /// Returns the decision for a class.
    pub fn of(&self, pattern: &[u8], band: Band) -> Option<&Arc<Decision>> {
        self.decisions.iter().find(|decision| decision.is_for(pattern, band))
    }

    /// All of them, the most precise pattern first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Decision>> {
        self.decisions.iter()
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::classes::Classes;
    use crate::study::{Footprint, Method, study};

    /// Decides as soon as there is enough to look at.
    fn decide(classes: &mut Classes, decisions: &Decisions, kind: &str) -> Decisions {
        let ready = (0..).find_map(|number| {
            let value = format!("{{\"number\":{number},\"text\":\"{}\"}}", "text of a value ".repeat(12));
            classes.offer(format!("{kind}:{number}").as_bytes(), value.as_bytes(), 1);
            classes.ready()
        });
        let ready = ready.expect("it comes after some values");
        let terms = StudyParameters {
            current: Method { choice: Choice::none(), dictionary: None },
            dictionary: None,
            goal: Some(Goal::Memory),
            trains: false,
            population: 1_000,
            foreseen: 1_000,
            reads: 1.0,
            room: 0,
            footprint: Footprint { overhead: |key_len| key_len, allocation: |bytes| bytes },
        };
        let study = study(&ready.samples, &terms, &|| Duration::ZERO);
        classes.studied(&ready, false, 0);
        decisions.with(Decision::new(&ready, &terms, Goal::Memory, &study, None, 0), classes.classes())
    }

    #[test]
    fn a_key_finds_what_is_decided_for_its_kind_and_size() {
        let mut classes = Classes::new(1 << 20, true, 7);
        let decisions = ["user", "page"]
            .iter()
            .fold(Decisions::default(), |decisions, kind| decide(&mut classes, &decisions, kind));
        let pattern = |key: &[u8], len| Some(decisions.find(key, len)?.pattern.text().to_vec());
        assert_eq!(pattern(b"user:7", 200), Some(b"user:*".to_vec()));
        assert_eq!(pattern(b"page:7", 200), Some(b"page:*".to_vec()));
        assert_eq!(
            (pattern(b"user:7", 600), pattern(b"other:7", 200), pattern(b"user:7", 7)),
            (None, None, None)
        );
        assert!(decisions.iter().all(|decision| decision.choice.compresses()));
    }

    #[test]
    fn decisions_go_with_their_classes() {
        let mut classes = Classes::new(1 << 20, true, 7);
        let decisions = decide(&mut classes, &Decisions::default(), "user");
        classes.clear();
        let decisions = decide(&mut classes, &decisions, "page");
        assert_eq!(decisions.iter().count(), 1);
    }
}
