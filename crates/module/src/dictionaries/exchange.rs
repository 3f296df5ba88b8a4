//! Knowledge that this node of a cluster has of the others: those of its dictionaries that wait for them, and its offers.
//!
//! It knows nodes and IDs. It knows no server: messages are for others to send.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::server::cluster::NodeId;

/// Time after which a dictionary is sent once more to a node that has not said that it has it; twice as long each time,
const SEND_AGAIN: Duration = Duration::from_secs(1);
/// but no longer than 2 to this power of that: the node may be without the module for long.
const MOST_DOUBLINGS: u32 = 6;
/// Time between two offers of all that there is,
const OFFER_EVERY: Duration = Duration::from_secs(10);
/// and after one to a node that has just come, to which there may be no connection yet.
const OFFER_AGAIN: Duration = Duration::from_secs(1);

/// The most dictionaries that are waited for.
const MOST_WANTED: usize = 1024;

/// The knowledge.
#[derive(Default)]
pub struct Exchange {
    proposals: Vec<Proposal>,
    /// Nodes that everything was offered to, and when it is offered next.
    known: HashSet<NodeId>,
    offers_at: Option<Instant>,
    /// Dictionaries that this node has asked for since another one uses them, with their patterns.
    wanted: HashMap<u32, Vec<u8>>,
    /// Dictionaries that nothing new is compressed with, by somebody's order.
    forgotten: HashSet<u32>,
}

/// A dictionary that is used for new strings of a pattern as soon as all primaries have it.
struct Proposal {
    pattern: Vec<u8>,
    id: u32,
    /// Nodes that have said that they have it.
    held: HashSet<NodeId>,
    /// When it was sent last to each node, and how often.
    sent: HashMap<NodeId, (Instant, u32)>,
}

impl Exchange {
    /// Begins to wait until all primaries have a dictionary. What they have said before does not count.
    pub fn propose(&mut self, pattern: Vec<u8>, id: u32) {
        self.proposals.retain(|proposal| proposal.pattern != pattern);
        self.note_proposal(id);
        self.proposals.push(Proposal { pattern, id, held: HashSet::new(), sent: HashMap::new() });
    }

    /// Notes that a dictionary is wanted, whatever was said of it before.
    pub fn note_proposal(&mut self, id: u32) {
        self.forgotten.remove(&id);
    }

    /// Forgets a dictionary, and that it waits.
    pub fn forget(&mut self, id: u32) {
        self.forgotten.insert(id);
        self.proposals.retain(|proposal| proposal.id != id);
    }

    /// Dictionaries that wait.
    pub fn proposed(&self) -> impl Iterator<Item = u32> {
        self.proposals.iter().map(|proposal| proposal.id)
    }

    /// Whether a dictionary is not to be used any more.
    pub fn is_forgotten(&self, id: u32) -> bool {
        self.forgotten.contains(&id)
    }

    /// Gives up all that waits.
    pub fn withdraw(&mut self) {
        self.proposals.clear();
    }

    /// Notes that a node has a dictionary.
    pub fn note(&mut self, node: NodeId, id: u32) {
        for proposal in self.proposals.iter_mut().filter(|proposal| proposal.id == id) {
            proposal.held.insert(node);
        }
    }

    /// Dictionaries that all these primaries have, with their patterns; they wait no more.
    pub fn agreed(&mut self, primaries: &[NodeId]) -> Vec<(Vec<u8>, u32)> {
        let agreed = self
            .proposals
            .extract_if(.., |proposal| primaries.iter().all(|node| proposal.held.contains(node)));
        agreed.map(|proposal| (proposal.pattern, proposal.id)).collect()
    }

    /// Dictionaries that are to be sent now, each to a primary that has not said that it has it.
    pub fn due(&mut self, primaries: &[NodeId], now: Instant) -> Vec<(NodeId, u32)> {
        let mut due = Vec::new();
        for Proposal { id, held, sent, .. } in &mut self.proposals {
            for node in primaries.iter().filter(|node| !held.contains(*node)) {
                let (last, times) = sent.get(node).map_or((None, 0), |(last, times)| (Some(*last), *times));
                let rest = SEND_AGAIN * 2u32.pow(times.saturating_sub(1).min(MOST_DOUBLINGS));
                if last.is_none_or(|last| now.saturating_duration_since(last) >= rest) {
                    sent.insert(*node, (now, times + 1));
                    due.push((*node, *id));
                }
            }
        }
        due
    }

    /// Whether one of these nodes was not there before.
    pub fn has_newcomers(&self, nodes: &[NodeId]) -> bool {
        nodes.iter().any(|node| !self.known.contains(node))
    }

    /// Whether it is time to offer everything to these nodes: now and then, and when one has come.
    pub fn offers(&mut self, nodes: &[NodeId], now: Instant) -> bool {
        let has_newcomers = self.has_newcomers(nodes);
        // A node that goes and comes back has missed what was offered meanwhile.
        self.known = nodes.iter().copied().collect();
        let is_due = has_newcomers || self.offers_at.is_none_or(|at| now >= at);
        if is_due {
            self.offers_at = Some(now + if has_newcomers { OFFER_AGAIN } else { OFFER_EVERY });
        }
        is_due
    }

    /// Notes that a dictionary is asked for, which another node uses for a pattern.
    pub fn want(&mut self, id: u32, pattern: Vec<u8>) {
        if self.wanted.len() < MOST_WANTED {
            self.wanted.insert(id, pattern);
        }
    }

    /// The pattern of a dictionary that was asked for, and has come.
    pub fn take_wanted(&mut self, id: u32) -> Option<Vec<u8>> {
        self.wanted.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = [b'a'; 40];
    const B: NodeId = [b'b'; 40];

    #[test]
    fn a_dictionary_is_agreed_on_when_all_primaries_have_it() {
        let mut exchange = Exchange::default();
        let now = Instant::now();
        exchange.propose(b"user:*".to_vec(), 7);
        assert_eq!(exchange.due(&[A, B], now), [(A, 7), (B, 7)]);
        assert_eq!(exchange.due(&[A, B], now), [], "they may still answer");
        exchange.note(A, 7);
        assert_eq!(exchange.agreed(&[A, B]), []);
        assert_eq!(exchange.due(&[A, B], now + SEND_AGAIN), [(B, 7)]);
        exchange.note(B, 7);
        assert_eq!(exchange.agreed(&[A, B]), [(b"user:*".to_vec(), 7)]);
        assert_eq!(exchange.agreed(&[A, B]), [], "once");
    }

    #[test]
    fn a_node_that_is_alone_or_whose_others_are_gone_agrees_with_itself() {
        let mut exchange = Exchange::default();
        exchange.propose(b"*".to_vec(), 7);
        assert_eq!(exchange.agreed(&[A]), []);
        assert_eq!(exchange.agreed(&[]).len(), 1);
    }

    #[test]
    fn what_was_said_before_or_what_was_forgotten_does_not_count() {
        let mut exchange = Exchange::default();
        exchange.note(A, 7);
        exchange.propose(b"*".to_vec(), 7);
        assert_eq!(exchange.agreed(&[A]), [], "it may have given it up since");
        exchange.forget(7);
        exchange.note(A, 7);
        assert!(exchange.is_forgotten(7) && exchange.agreed(&[A]).is_empty());
        exchange.propose(b"*".to_vec(), 7);
        exchange.note(A, 7);
        assert!(!exchange.is_forgotten(7) && exchange.agreed(&[A]).len() == 1);
    }

    #[test]
    fn a_newer_dictionary_takes_the_place_of_one_that_waits() {
        let mut exchange = Exchange::default();
        for id in [7, 8] {
            exchange.propose(b"*".to_vec(), id);
        }
        assert_eq!(exchange.due(&[A], Instant::now()), [(A, 8)]);
    }

    #[test]
    fn everything_is_offered_now_and_then_and_to_whoever_comes() {
        let mut exchange = Exchange::default();
        let now = Instant::now();
        assert!(exchange.offers(&[A], now));
        assert!(!exchange.offers(&[A], now));
        assert!(exchange.offers(&[A, B], now));
        assert!(!exchange.offers(&[B], now));
        assert!(exchange.offers(&[B], now + OFFER_AGAIN));
        assert!(!exchange.offers(&[B], now + OFFER_EVERY));
        assert!(exchange.offers(&[B], now + OFFER_AGAIN + OFFER_EVERY));
        assert!(exchange.offers(&[A, B], now + OFFER_AGAIN + OFFER_EVERY), "it was away");
    }

    #[test]
    fn a_dictionary_that_was_wanted_comes_with_its_pattern_once() {
        let mut exchange = Exchange::default();
        exchange.want(7, b"*".to_vec());
        assert_eq!(exchange.take_wanted(7), Some(b"*".to_vec()));
        assert_eq!(exchange.take_wanted(7), None);
    }
}
