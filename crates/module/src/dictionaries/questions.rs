//! Dictionaries that strings need and that this node lacks: other nodes of its cluster are asked for them.
//!
//! Until they have answered, such a string is taken for one that cannot be restored yet. If nobody has the dictionary, the string
//! is a client's own, and so is every other one with it.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::server::cluster::NodeId;

/// Time after which nodes that have not answered are taken to lack a dictionary: they may be without the module.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two times that a question is sent: a message may get lost,
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// and a node may get a dictionary later that nobody has had.
const ASK_SETTLED_AGAIN: Duration = Duration::from_secs(10);
/// The most questions that are remembered.
const MOST: usize = 4096;
/// The most that are sent at a time.
const MOST_AT_ONCE: usize = 64;

/// Questions and their answers.
#[derive(Default)]
pub struct Questions {
    /// Whether there is anybody to ask.
    may_ask: bool,
    asked: HashMap<u32, Question>,
    /// Whether there are some that nobody was sent yet.
    has_new: bool,
}

struct Question {
    since: Instant,
    sent: Option<Instant>,
    /// Nodes that lack it.
    lacking: HashSet<NodeId>,
    /// Whether nobody has it.
    is_settled: bool,
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
        if let Some(question) = self.asked.get(&id) {
            return !question.is_settled;
        }
        if self.asked.len() >= MOST {
            self.asked.retain(|_, question| !question.is_settled);
        }
        if self.asked.len() >= MOST {
            return false;
        }
        let question =
            Question { since: Instant::now(), sent: None, lacking: HashSet::new(), is_settled: false };
        self.asked.insert(id, question);
        self.has_new = true;
        true
    }

    /// Whether there are some that nobody was sent yet.
    #[inline]
    pub fn has_new(&self) -> bool {
        self.has_new
    }

    /// Those that are to be sent now.
    pub fn take_due(&mut self, now: Instant) -> Vec<u32> {
        self.has_new = false;
        let is_due = |question: &Question| {
            let rest = if question.is_settled { ASK_SETTLED_AGAIN } else { ASK_AGAIN };
            question.sent.is_none_or(|sent| now.saturating_duration_since(sent) >= rest)
        };
        let due = self.asked.iter_mut().filter(|(_, question)| is_due(question)).take(MOST_AT_ONCE);
        due.map(|(id, question)| {
            question.sent = Some(now);
            *id
        })
        .collect()
    }

    /// Notes that a node lacks a dictionary.
    pub fn answer(&mut self, id: u32, node: NodeId) {
        if let Some(question) = self.asked.get_mut(&id) {
            question.lacking.insert(node);
        }
    }

    /// Settles those that all these nodes have answered, or that have been open for long.
    pub fn settle(&mut self, nodes: &[NodeId], now: Instant) {
        for question in self.asked.values_mut() {
            let is_answered = nodes.iter().all(|node| question.lacking.contains(node));
            question.is_settled |= is_answered || now.saturating_duration_since(question.since) >= PATIENCE;
        }
    }

    /// Forgets a question: the dictionary is there.
    pub fn forget(&mut self, id: u32) {
        self.asked.remove(&id);
    }

    /// Lets settled questions be asked again: other nodes have come.
    pub fn reopen(&mut self) {
        self.asked.retain(|_, question| !question.is_settled);
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
    fn a_question_is_settled_when_all_have_answered_and_asked_again_until_then_and_later() {
        let (mut questions, now) = (questions(), Instant::now());
        assert!(questions.ask(7) && questions.ask(7) && questions.has_new());
        assert_eq!(questions.take_due(now), [7]);
        assert!(!questions.has_new() && questions.take_due(now).is_empty());
        assert_eq!(questions.take_due(now + ASK_AGAIN), [7], "the message may be lost");
        questions.answer(7, A);
        questions.settle(&[A, B], now);
        assert!(questions.ask(7), "one has not answered");
        questions.answer(7, B);
        questions.settle(&[A, B], now);
        assert!(!questions.ask(7));
        assert_eq!(questions.take_due(now + ASK_AGAIN + ASK_AGAIN), []);
        assert_eq!(questions.take_due(now + ASK_AGAIN + ASK_SETTLED_AGAIN), [7], "somebody may have got it");
        questions.reopen();
        assert!(questions.ask(7) && questions.has_new());
    }

    #[test]
    fn nobody_is_waited_for_for_ever() {
        let mut questions = questions();
        assert!(questions.ask(7));
        questions.settle(&[A], Instant::now());
        assert!(questions.ask(7));
        questions.settle(&[A], Instant::now() + PATIENCE);
        assert!(!questions.ask(7));
    }

    #[test]
    fn a_dictionary_that_has_come_is_asked_for_no_more() {
        let mut questions = questions();
        assert!(questions.ask(7));
        questions.forget(7);
        assert!(questions.take_due(Instant::now()).is_empty());
    }

    #[test]
    fn questions_are_bounded_and_there_are_none_without_others() {
        let mut questions = questions();
        assert_eq!((0..10_000).filter(|&id| questions.ask(id)).count(), MOST);
        assert_eq!(questions.take_due(Instant::now()).len(), MOST_AT_ONCE);
        questions.settle(&[], Instant::now());
        assert!(questions.ask(20_000), "settled ones make room");
        questions.may_ask(false);
        assert!(!questions.ask(7) && !questions.has_new());
    }
}
