//! Whether to compress a value: what is not worth an attempt, and what an attempt must gain.
//!
//! Short values are compressed without further thought as long as that succeeds. Once it fails for values of
//! some length (to the power of two), those are looked at first ([`probe`]), as long values always are, and
//! attempts on those that look like the failed ones back off exponentially. They never stop: a random block
//! that repeats itself looks random and is compressible, and what a cache holds changes.

mod magic;
mod probe;
#[cfg(test)]
#[path = "../../tests/values/rules.rs"]
pub(crate) mod rules;

use crate::choice::Choice;
use crate::codecs::{CodecId, Encoding, Fault};
use crate::outcome::Reason;
use probe::Spread;

/// One thread's memory of what has been worth compressing.
pub(crate) struct Policy {
    memories: Vec<Memory>,
    /// The place of the one that is in use.
    current: usize,
}

/// Memory of one codec at one level.
struct Memory {
    subject: (CodecId, i32),
    classes: [Class; CLASSES],
}

/// So many codecs and levels are remembered.
const MEMORIES: usize = 8;

/// Powers of two up to the longest value, without and with a dictionary.
const CLASSES: usize = 2 * LENGTHS;
const LENGTHS: usize = usize::BITS as usize;

/// Memory of values of similar length.
#[derive(Clone, Copy)]
struct Class {
    /// Number of successes after which values are no longer looked at before an attempt.
    suspicion: u8,
    backoff: [Backoff; Spread::COUNT],
}

/// Raises suspicion by this much with each failure, up to the most.
const SUSPICION_STEP: u8 = 4;
const MAX_SUSPICION: u8 = 32;
/// From this length on a look costs less than a hundredth of an attempt, and every value gets one.
const ALWAYS_LOOKED_AT: usize = 16 << 10;

/// Failures in a row that are taken for chance, where values do not look random.
const PATIENCE: u32 = 8;

#[derive(Clone, Copy)]
struct Backoff {
    /// Failed attempts since the last one that succeeded.
    failures: u8,
    /// Values still to be skipped before the next attempt.
    skip: u16,
}

impl Class {
    const NEW: Class = Class { suspicion: 0, backoff: [Backoff::NEW; Spread::COUNT] };
}

impl Backoff {
    const NEW: Backoff = Backoff { failures: 0, skip: 0 };

    fn failed(&mut self, spread: Spread) {
        self.failures = self.failures.saturating_add(1);
        let failures = u32::from(self.failures);
        self.skip = match spread {
            // Skips 4, 16, 64, then always 256: less than 1 % of the cost of trying each time.
            Spread::Even => 1 << (2 * failures).min(8),
            // These mostly compress, or belong to a mixture of which some do: patient, and at worst one attempt
            // in 64 (base64 and LZ4, say) or in 16.
            Spread::Mixed => (1 << failures.saturating_sub(PATIENCE).min(6)) - 1,
            Spread::Skewed => (1 << failures.saturating_sub(PATIENCE).min(4)) - 1,
        };
    }
}

/// An attempt that the policy allows, to be reported when it has been made. Small enough for a register.
struct Attempt {
    class: u8,
    /// `None` if the value was not looked at.
    spread: Option<Spread>,
    /// Whether a failure is likely, so that a fast level should go first.
    doubtful: bool,
}

impl Policy {
    pub const fn new() -> Policy {
        Policy { memories: Vec::new(), current: 0 }
    }

    /// Appends the payload of a compressed `value` to `out` if it is `worth` its length, or says why not and
    /// leaves `out` as it was.
    pub fn compress(
        &mut self,
        choice: Choice,
        encoding: Encoding<'_>,
        value: &[u8],
        out: &mut Vec<u8>,
        worth: impl Fn(&[u8]) -> bool,
    ) -> Result<(), Reason> {
        if !choice.compresses() {
            return Err(Reason::Off);
        }
        if value.len() < choice.min_bytes() {
            return Err(Reason::Small);
        }
        let attempt = self.consider(choice, encoding.dictionary.is_some(), value)?;
        // A dictionary has tables of its own for each level: a fast one to go first would cost their time and memory.
        let level = match attempt.doubtful && encoding.dictionary.is_none() {
            true => choice.codec().probe_level(choice.level()),
            false => choice.level(),
        };
        let first = compress(choice, Encoding { level, ..encoding }, value, out, &worth);
        if first != Err(Reason::Failed) {
            self.report(attempt, first.is_ok());
        }
        let start = first?;
        if level != choice.level() {
            out.truncate(start);
            compress(choice, encoding, value, out, &worth)?;
        }
        Ok(())
    }

    fn consider(&mut self, choice: Choice, with_dictionary: bool, value: &[u8]) -> Result<Attempt, Reason> {
        let memory = self.recall((choice.codec().id(), choice.level()));
        let family = if with_dictionary { LENGTHS } else { 0 };
        let class = family as u8 + value.len().checked_ilog2().unwrap_or(0) as u8;
        let has_magic = magic::matches(value);
        let memory = &mut memory.classes[usize::from(class)];
        if memory.suspicion == 0 && !has_magic && value.len() < ALWAYS_LOOKED_AT {
            return Ok(Attempt { class, spread: None, doubtful: false });
        }
        let spread = Spread::of(value);
        if has_magic && spread != Spread::Skewed {
            return Err(Reason::Compressed);
        }
        let backoff = &mut memory.backoff[spread as usize];
        if backoff.skip > 0 {
            backoff.skip -= 1;
            return Err(if spread == Spread::Even { Reason::Compressed } else { Reason::NoGain });
        }
        Ok(Attempt { class, spread: Some(spread), doubtful: spread == Spread::Even && backoff.failures > 0 })
    }

    /// The memory of a codec at a level, in use from now on.
    fn recall(&mut self, subject: (CodecId, i32)) -> &mut Memory {
        if self.memories.get(self.current).is_none_or(|memory| memory.subject != subject) {
            let known = self.memories.iter().position(|memory| memory.subject == subject);
            self.current = known.unwrap_or_else(|| {
                self.memories.truncate(MEMORIES - 1);
                self.memories.push(Memory { subject, classes: [Class::NEW; CLASSES] });
                self.memories.len() - 1
            });
        }
        &mut self.memories[self.current]
    }

    /// Notes what came of an attempt, the last one that was considered.
    fn report(&mut self, attempt: Attempt, gained: bool) {
        let Some(memory) = self.memories.get_mut(self.current) else { return };
        let class = &mut memory.classes[usize::from(attempt.class)];
        if gained {
            class.suspicion = class.suspicion.saturating_sub(1);
        } else {
            class.suspicion = (class.suspicion + SUSPICION_STEP).min(MAX_SUSPICION);
        }
        if let Some(spread) = attempt.spread {
            let backoff = &mut class.backoff[spread as usize];
            if gained {
                *backoff = Backoff::NEW;
            } else {
                backoff.failed(spread);
            }
        }
    }
}

/// Appends the payload and returns where it starts, or says why not.
fn compress(
    choice: Choice,
    encoding: Encoding<'_>,
    value: &[u8],
    out: &mut Vec<u8>,
    worth: impl Fn(&[u8]) -> bool,
) -> Result<usize, Reason> {
    let start = out.len();
    let (codec, _) = choice.with_dictionary(encoding.dictionary);
    let functions = codec.codec().functions.as_ref().ok_or(Reason::Failed)?;
    (functions.compress)(&encoding, value, out).map_err(|fault| match fault {
        Fault::OutputFull => Reason::NoGain,
        Fault::OutOfMemory | Fault::Checksum { .. } | Fault::Other(_) => Reason::Failed,
    })?;
    if worth(&out[start..]) {
        Ok(start)
    } else {
        out.truncate(start);
        Err(Reason::NoGain)
    }
}

#[cfg(test)]
mod tests {
    use super::rules::{cases, expand, number, text, vectors};
    use super::*;
    use crate::Choice;

    /// The verdict's name in the vectors.
    fn verdict(considered: &Result<Attempt, Reason>) -> &'static str {
        match considered {
            Ok(Attempt { doubtful: true, .. }) => "doubtful",
            Ok(_) => "try",
            Err(Reason::Compressed) => "compressed",
            Err(_) => "no_gain",
        }
    }

    #[test]
    fn transcripts_of_the_specification_come_out_as_written() {
        let vectors = vectors("policy.json");
        for transcript in cases(&vectors, "transcripts") {
            let name = text(&transcript, "name");
            let mut policy = Policy::new();
            for step in cases(&transcript, "steps") {
                let value = expand(&vectors["values"][text(&step, "value")]);
                for _ in 0..number(&step, "times") {
                    let with_dictionary = transcript["dictionary"] == true;
                    let considered = policy.consider(Choice::none(), with_dictionary, &value);
                    assert_eq!(verdict(&considered), text(&step, "verdict"), "{name}: {step}");
                    if let Ok(attempt) = considered {
                        policy.report(attempt, step["gained"] == true);
                    }
                }
            }
        }
    }

    #[test]
    fn values_look_as_the_specification_says() {
        let vectors = vectors("policy.json");
        for (name, spread) in vectors["spreads"].as_object().expect("there are some") {
            let seen = Spread::of(&expand(&vectors["values"][name]));
            assert_eq!(format!("{seen:?}").to_lowercase(), spread.as_str().expect("a name"), "{name}");
        }
    }
}
