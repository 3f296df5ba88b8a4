//! Limits on what connections hold in memory: each by its class (client-output-buffer-limit), and all together
//! (maxmemory-clients).

use super::Configuration;

/// Limits on the replies and messages of one connection, in bytes; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputLimit {
    /// Passing it ends the connection at once.
    pub(crate) hard: usize,
    /// Passing it for some time does.
    pub(crate) soft: usize,
    /// Seconds for which the soft limit may be exceeded.
    pub(crate) soft_seconds: u64,
}

/// The limits of all classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputLimits {
    normal: OutputLimit,
    /// Limit for replicas, which do not exist here.
    replica: OutputLimit,
    pubsub: OutputLimit,
}

impl OutputLimits {
    /// Changes the classes that `text` names, each with its three numbers: `normal 0 0 0 pubsub 32mb 8mb 60`.
    ///
    /// # Errors
    /// A description of what is wrong with the text.
    pub(crate) fn change(
        &mut self,
        text: &str,
        bytes: impl Fn(&str) -> Result<u64, String>,
    ) -> Result<(), String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || !words.len().is_multiple_of(4) {
            return Err(
                "it must be a class, a hard limit, a soft limit and seconds, once or several times".into()
            );
        }
        for part in words.chunks_exact(4) {
            let class = match part[0].to_ascii_lowercase().as_str() {
                "normal" => &mut self.normal,
                "slave" | "replica" => &mut self.replica,
                "pubsub" => &mut self.pubsub,
                other => return Err(format!("{other} is no class: use normal, replica or pubsub")),
            };
            let soft_seconds = part[3].parse().map_err(|_| format!("{} is no number of seconds", part[3]))?;
            *class =
                OutputLimit { hard: bytes(part[1])? as usize, soft: bytes(part[2])? as usize, soft_seconds };
        }
        Ok(())
    }

    /// All classes, as Valkey shows them.
    pub(crate) fn text(&self) -> String {
        let classes = [("normal", self.normal), ("slave", self.replica), ("pubsub", self.pubsub)];
        let words = classes
            .map(|(name, limit)| format!("{name} {} {} {}", limit.hard, limit.soft, limit.soft_seconds));
        words.join(" ")
    }

    /// The limit of a client that listens for messages, or of one that does not.
    pub(crate) fn of(&self, is_subscriber: bool) -> OutputLimit {
        if is_subscriber { self.pubsub } else { self.normal }
    }
}

/// Limit on what all connections hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientMemory {
    /// Bytes; 0 is no limit.
    Bytes(u64),
    /// Percentage of max-memory; no limit where that has none.
    Percent(u64),
}

impl ClientMemory {
    /// In bytes, if there is a limit, given that of the memory for values.
    pub(crate) fn limit(self, max_memory: u64) -> Option<usize> {
        let bytes = match self {
            ClientMemory::Bytes(bytes) => bytes,
            ClientMemory::Percent(percent) => max_memory / 100 * percent,
        };
        usize::try_from(bytes).ok().filter(|&bytes| bytes > 0)
    }
}

/// Limits of the replies to one client before they are sent, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct ReplyLimits {
    /// Limit of a single buffer: one that grows takes up to twice as much.
    pub(crate) buffer: usize,
    /// Bytes of that and of chunks. Large values and ranges of lists are decoded as they are sent.
    pub(crate) all: usize,
}

impl ReplyLimits {
    pub(crate) fn of(configuration: &Configuration) -> ReplyLimits {
        let hard = configuration.client_output_buffer_limit.normal.hard;
        let hard = if hard > 0 { hard } else { usize::MAX };
        let all = configuration.max_memory_clients.limit(configuration.max_memory).unwrap_or(usize::MAX);
        ReplyLimits { buffer: hard.min(all / 2), all: hard.min(all) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("{text} is no number"))
    }

    #[test]
    fn limits_are_shown_as_they_are_set_and_others_stay() {
        let mut limits = OutputLimits::default();
        limits.change("normal 1 2 3 pubsub 4 5 6", bytes).expect("two classes");
        limits.change("REPLICA 7 8 9", bytes).expect("one class");
        assert_eq!(limits.text(), "normal 1 2 3 slave 7 8 9 pubsub 4 5 6");
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in ["", "normal", "normal 1 2", "other 1 2 3", "normal x 2 3", "normal 1 2 -3"] {
            assert!(OutputLimits::default().change(text, bytes).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_of_the_memory_is_a_limit_where_memory_has_one() {
        assert_eq!(ClientMemory::Percent(5).limit(1000), Some(50));
        assert_eq!(ClientMemory::Percent(5).limit(0), None);
        assert_eq!(ClientMemory::Bytes(7).limit(1000), Some(7));
        assert_eq!(ClientMemory::Bytes(0).limit(1000), None);
    }
}
