//! The source of readings: asks a server again and again, on a thread of its own, and connects anew where it was lost.
//!
//! Knows the connection and the requests. Must not know what is in the replies, or what is done with them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use redis::Value;

use super::picture::Update;
use super::readings::{Families, Reading, Replies, families};
use crate::live::address::{Address, Trust};
use crate::live::node::{Node, fields};

/// Longest time until a change of the interval is noticed.
const NAP: Duration = Duration::from_millis(50);

/// A server that is connected.
pub(super) struct Source {
    node: Node,
    families: Families,
    /// Requests that it does not know or does not allow, and that it is not troubled with again.
    refused: HashSet<&'static [&'static str]>,
}

impl Source {
    pub(super) fn open(trust: &Trust, address: &Address) -> Result<Source> {
        let mut node = Node::open(trust, address)?;
        let commands: Option<Value> = node.ask_if_allowed(&["COMMAND"])?;
        let families = commands.map(families).unwrap_or_default();
        Ok(Source { node, families, refused: HashSet::new() })
    }

    pub(super) fn read(&mut self) -> Result<Reading> {
        let at = Instant::now();
        let info: Vec<u8> = self.node.ask(&["INFO", "all"])?;
        let info = fields(&String::from_utf8_lossy(&info));
        let is_snugly = info.contains_key("snugly_version");
        let mut of_snugly = |request| if is_snugly { self.ask(request) } else { Ok(None) };
        let replies = Replies {
            dictionaries: of_snugly(&["DICTIONARY", "LIST"])?,
            classes: of_snugly(&["DICTIONARY", "CLASSES"])?,
            decisions: of_snugly(&["COMPRESSION", "LIST"])?,
            histograms: self.ask(&["LATENCY", "HISTOGRAM"])?,
            info,
        };
        Ok(Reading::new(at, replies, &self.families))
    }

    /// Asks for what can be done without.
    fn ask(&mut self, request: &'static [&'static str]) -> Result<Option<Value>> {
        if self.refused.contains(request) {
            return Ok(None);
        }
        let reply = self.node.ask_if_allowed(request)?;
        if reply.is_none() {
            self.refused.insert(request);
        }
        Ok(reply)
    }
}

/// How often to ask, as the one who looks has chosen.
pub(super) struct Pace {
    milliseconds: AtomicU64,
    is_paused: AtomicBool,
}

impl Pace {
    pub(super) fn new(interval: Duration) -> Pace {
        Pace { milliseconds: AtomicU64::new(interval.as_millis() as u64), is_paused: AtomicBool::new(false) }
    }

    pub(super) fn set(&self, interval: Duration, is_paused: bool) {
        self.milliseconds.store(interval.as_millis() as u64, Ordering::Relaxed);
        self.is_paused.store(is_paused, Ordering::Relaxed);
    }

    /// Waits until it is time to ask again.
    fn wait(&self, asked: Instant) {
        let is_time = || asked.elapsed() >= Duration::from_millis(self.milliseconds.load(Ordering::Relaxed));
        while self.is_paused.load(Ordering::Relaxed) || !is_time() {
            thread::sleep(NAP);
        }
    }
}

/// Asks again and again, first when it is time to ask again, until nobody takes the updates.
pub(super) fn follow(source: Source, trust: Trust, address: Address, pace: Arc<Pace>) -> Receiver<Update> {
    let (sender, updates) = sync_channel(1);
    thread::spawn(move || {
        let mut source = Some(source);
        let mut asked = Instant::now();
        loop {
            pace.wait(asked);
            asked = Instant::now();
            let update = match read(&mut source, &trust, &address) {
                Ok(reading) => Update::Read(Box::new(reading)),
                Err(error) => {
                    source = None;
                    Update::Lost(format!("{error:#}"))
                }
            };
            if sender.send(update).is_err() {
                return;
            }
        }
    });
    updates
}

fn read(source: &mut Option<Source>, trust: &Trust, address: &Address) -> Result<Reading> {
    match source {
        Some(source) => source.read(),
        None => source.insert(Source::open(trust, address)?).read(),
    }
}
