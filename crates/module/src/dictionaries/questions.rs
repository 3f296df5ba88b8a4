//! Dictionaries that strings need and that this node lacks: other nodes of its cluster are asked for them.
//!
//! Until they have answered, such a string is taken for one that cannot be restored yet. If nobody has the dictionary, the string
//! is a client's own, and so is every other one with it.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::time::{Duration, Instant};

use crate::server::cluster::NodeId;

/// Time after which nodes that have not answered are taken to lack a dictionary.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most questions that are remembered; beyond, strings are clients' own.
const MOST: usize = 4096;

/// What was asked, and what was answered.
#[derive(Default)]
pub struct Questions {
    /// Whether there is anybody to ask.
    may_ask: bool,
    asked: HashMap<u32, Question>,
    /// Those that nobody was sent yet.
    new: Vec<u32>,
}

enum Question {
    Open {
        since: Instant,
        /// Nodes that lack it.
        lacking: HashSet<NodeId>,
    },
    /// Nobody has it.
    Settled,
}

impl Questions {
    /// Lets questions be asked from now on, or not.
    pub fn may_ask(&mut self, may_ask: bool) {
        *self = Questions { may_ask, ..Questions::default() };
    }

    /// Asks for a dictionary, if nobody has; returns whether it may still come.
    pub fn ask(&mut self, id: u32) -> bool {
        if !self.may_ask {
            return false;
        }
        match self.asked.get(&id) {
            Some(Question::Open { .. }) => true,
            Some(Question::Settled) => false,
            None if self.asked.len() >= MOST => false,
            None => {
                self.new.push(id);
                let since = Instant::now();
                self.asked.insert(id, Question::Open { since, lacking: HashSet::new() });
                true
            }
        }
    }

    /// Whether there are some that nobody was sent yet.
    #[inline]
    pub fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Those that nobody was sent yet.
    pub fn take_new(&mut self) -> Vec<u32> {
        mem::take(&mut self.new)
    }

    /// Notes that a node lacks a dictionary.
    pub fn answer(&mut self, id: u32, node: NodeId) {
        if let Some(Question::Open { lacking, .. }) = self.asked.get_mut(&id) {
            lacking.insert(node);
        }
    }

    /// Settles those that all these nodes have answered, or that have been open for long.
    pub fn settle(&mut self, nodes: &[NodeId], now: Instant) {
        for question in self.asked.values_mut() {
            if let Question::Open { since, lacking } = question
                && (nodes.iter().all(|node| lacking.contains(node))
                    || now.saturating_duration_since(*since) >= PATIENCE)
            {
                *question = Question::Settled;
            }
        }
    }

    /// Forgets a question: the dictionary is there.
    pub fn forget(&mut self, id: u32) {
        self.asked.remove(&id);
        self.new.retain(|other| *other != id);
    }

    /// Lets settled questions be asked again: other nodes have come.
    pub fn reopen(&mut self) {
        self.asked.retain(|_, question| matches!(question, Question::Open { .. }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = [b'a'; 40];
    const B: NodeId = [b'b'; 40];

    fn questions() -> Questions {
        let mut questions = Questions::default();
        questions.may_ask(true);
        questions
    }

    #[test]
    fn a_question_is_asked_once_and_settled_when_all_have_answered() {
        let mut questions = questions();
        assert!(questions.ask(7) && questions.ask(7));
        assert_eq!(questions.take_new(), [7]);
        assert!(!questions.has_new());
        questions.answer(7, A);
        questions.settle(&[A, B], Instant::now());
        assert!(questions.ask(7), "one has not answered");
        questions.answer(7, B);
        questions.settle(&[A, B], Instant::now());
        assert!(!questions.ask(7) && !questions.has_new());
        questions.reopen();
        assert!(questions.ask(7) && questions.has_new());
    }

    #[test]
    fn nobody_is_waited_for_for_ever() {
        let mut questions = questions();
        assert!(questions.ask(7));
        questions.settle(&[A], Instant::now() + PATIENCE);
        assert!(!questions.ask(7));
    }

    #[test]
    fn a_dictionary_that_has_come_is_asked_for_no_more() {
        let mut questions = questions();
        assert!(questions.ask(7));
        questions.forget(7);
        assert!(!questions.has_new());
    }

    #[test]
    fn questions_are_bounded_and_there_are_none_without_others() {
        let mut questions = questions();
        assert_eq!((0..10_000).filter(|&id| questions.ask(id)).count(), MOST);
        questions.may_ask(false);
        assert!(!questions.ask(7) && !questions.has_new());
    }
}
