//! Settings that can be changed while a store is in use.
//!
//! They are plain data with defaults; the modules that they are for know them, and they know none of these.

use snugly_codec::{Choice, Learned};
use snugly_learning::{Goal, ReadRate};

use crate::eviction::EvictionPolicy;
use crate::values::quicklist::{Fill, Layout};

/// Settings that can be changed while the store is in use, by
/// [`Store::change_settings`](crate::Store::change_settings).
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Compression of values. Changing it affects new writes only.
    pub compression: Choice,
    /// Goal for which codec and level are chosen by class of keys instead, once there is something to choose
    /// from; by default none, which chooses nothing.
    pub goal: Option<Goal>,
    /// Bytes that keys, values and their overhead may take in memory; 0 (the default) is no limit.
    pub max_memory: u64,
    /// Policy for a write that needs more memory than that.
    pub eviction: EvictionPolicy,
    /// Longest key, in bytes, up to [`MAX_KEY_LEN`](crate::MAX_KEY_LEN); default 64 KiB.
    pub max_key_len: usize,
    /// Longest value, in bytes before compression; default 512 MiB.
    pub max_value_len: usize,
    /// Dictionary training, while a [`StoreMaintenance`](crate::StoreMaintenance) runs.
    pub dictionaries: DictionarySettings,
    /// Recompression of idle records, while a [`StoreMaintenance`](crate::StoreMaintenance) runs.
    pub recompression: RecompressionSettings,
    /// Layout and compression of lists. Changing it affects later writes to lists.
    pub lists: ListSettings,
}

/// Default of the longest key, in bytes.
pub const DEFAULT_MAX_KEY_LEN: usize = 64 << 10;
/// Default of the longest value, in bytes.
pub const DEFAULT_MAX_VALUE_LEN: usize = 512 << 20;

impl Settings {
    /// Creates default settings with this compression.
    pub fn new(compression: Choice) -> Settings {
        Settings {
            compression,
            goal: None,
            max_memory: 0,
            eviction: EvictionPolicy::NoEviction,
            max_key_len: DEFAULT_MAX_KEY_LEN,
            max_value_len: DEFAULT_MAX_VALUE_LEN,
            dictionaries: DictionarySettings::default(),
            recompression: RecompressionSettings::default(),
            lists: ListSettings::default(),
        }
    }

    /// Returns the bytes of a list's nodes that one command may read from disk: as much as memory may hold.
    pub(crate) fn most_read(&self) -> u64 {
        /// Bytes that it may read however small the budget is.
        const LEAST: u64 = 16 << 20;
        match self.max_memory {
            0 => u64::MAX,
            max_memory => max_memory.max(LEAST),
        }
    }

    /// Returns whether new values or nodes of lists are encoded with dictionaries: that takes a codec that
    /// can.
    pub fn uses_dictionaries(&self) -> bool {
        self.values_use_dictionaries() || self.lists_use_dictionaries()
    }

    pub(crate) fn values_use_dictionaries(&self) -> bool {
        self.dictionaries.enabled
            && (self.goal.is_some() || self.compression.codec().uses_learned_dictionaries(Learned::Values))
    }

    pub(crate) fn lists_use_dictionaries(&self) -> bool {
        let takes_one = |choice: Choice| choice.codec().uses_learned_dictionaries(Learned::Nodes);
        self.dictionaries.enabled && self.lists.node_codec().is_some_and(takes_one)
    }

    /// Returns the encoding for cold records: `None` where it is switched off, speed is the goal, or this
    /// build has no zstd of that level.
    pub(crate) fn recompresses_with(&self) -> Option<Choice> {
        let is_wanted = self.recompression.after > 0 && self.goal != Some(Goal::Speed);
        Choice::new(crate::recompression::CODEC.name(), Some(self.recompression.level), 0)
            .ok()
            .filter(|_| is_wanted)
    }

    /// Returns whether values that stay are encoded anew: where a goal says what is worth it.
    pub(crate) fn settles(&self) -> bool {
        self.goal.is_some()
    }

    /// Returns the encoding for values that stay and of whose class nothing is decided: `None` if they stay as they are.
    pub(crate) fn keeps_with(&self, rate: ReadRate) -> Option<Choice> {
        /// Level of LZ4 that makes values smaller which take as little time to read.
        const DENSE: i32 = 9;
        let (name, level) = match (self.goal?, rate) {
            (_, ReadRate::Constantly) => ("none", None),
            (Goal::Memory, _) | (Goal::Balanced, ReadRate::Unread) => ("zstd", None),
            (Goal::Balanced, ReadRate::Seldom) => ("lz4", Some(DENSE)),
            (Goal::Balanced, ReadRate::Often) | (Goal::Speed, _) => ("lz4", None),
        };
        Choice::new(name, level, 0).ok()
    }

    /// Returns whether values or nodes of lists are sampled.
    pub fn learns(&self) -> bool {
        self.learns_from_values() || self.learns_from_lists()
    }

    pub(crate) fn learns_from_values(&self) -> bool {
        self.goal.is_some() || self.values_use_dictionaries() && self.dictionaries.trains
    }

    pub(crate) fn learns_from_lists(&self) -> bool {
        self.lists_use_dictionaries() && self.dictionaries.trains
    }
}

/// Settings of dictionaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionarySettings {
    /// Whether new values are encoded with dictionaries; default true. What is encoded with one can be read in any case.
    pub enabled: bool,
    /// Whether new ones are learned; default true.
    pub trains: bool,
    /// Bytes that samples and dictionaries may take in memory, half of it each; default 32 MiB. Dictionaries that are
    /// there stay when it becomes less, and while one takes the place of another there are both.
    pub max_memory: usize,
}

impl Default for DictionarySettings {
    fn default() -> Self {
        DictionarySettings { enabled: true, trains: true, max_memory: 32 << 20 }
    }
}

impl DictionarySettings {
    /// Returns whether new ones are learned, which are used.
    pub(crate) fn learns(&self) -> bool {
        self.enabled && self.trains
    }

    pub(crate) fn samples_limit(&self) -> usize {
        self.max_memory / 2
    }

    pub(crate) fn dictionaries_limit(&self) -> usize {
        self.max_memory / 2
    }
}

/// Settings of recompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecompressionSettings {
    /// Seconds a key must be idle before its value is recompressed; default 600, 0 is never.
    pub after: u32,
    /// Level of zstd; default 15.
    pub level: i32,
}

impl Default for RecompressionSettings {
    fn default() -> Self {
        RecompressionSettings { after: 600, level: 15 }
    }
}

/// Settings of lists.
#[derive(Clone, Copy, Debug)]
pub struct ListSettings {
    /// Greatest size of a node; default 8 KiB.
    pub max_listpack_size: Fill,
    /// Number of nodes at each end that are not compressed; default 1. With 0, no node is compressed.
    pub compress_depth: usize,
    /// Compression of the other nodes; default lz4, or lzf where that is not built in. `None` does not
    /// compress them.
    pub compress_codec: Option<Choice>,
    /// Bytes of decoded nodes that are cached for readers, and as many again for changed nodes that wait to
    /// be compressed; default 4 MiB.
    pub cache_bytes: u64,
}

impl Default for ListSettings {
    fn default() -> ListSettings {
        ListSettings {
            max_listpack_size: Fill::DEFAULT,
            compress_depth: 1,
            compress_codec: Some(Choice::new("lz4", None, 0).unwrap_or(Choice::lzf(0))),
            cache_bytes: 4 << 20,
        }
    }
}

impl ListSettings {
    /// Returns the compression of nodes between the ends, if there is one.
    pub(crate) fn node_codec(&self) -> Option<Choice> {
        self.compress_codec.filter(|_| self.compress_depth > 0)
    }

    pub(crate) fn layout(&self) -> Layout {
        let depth = if self.compress_codec.is_some() { self.compress_depth } else { 0 };
        Layout { fill: self.max_listpack_size, depth }
    }
}
