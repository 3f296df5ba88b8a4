//! The settings, one row each: command-line flags, environment variables, CONFIG GET and SET, help and the start-up
//! banner are all made from this table.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use snugly_codec::{Choice, SelectError};
use snugly_protocol::glob;
use snugly_protocol::resp::parse_integer;
use snugly_store::{
    DEFAULT_DATABASES, DEFAULT_MAX_VALUE_LEN, DictionarySettings, Durability, EvictionPolicy, Goal,
    KeyPredicate, ListSettings, MAX_KEY_LEN, PackingSettings, Settings as StoreSettings, Storage,
};
use tracing::level_filters::LevelFilter;

use crate::command_log::Kind;

/// The values of all settings.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Addresses to listen on, separated by spaces or commas.
    pub bind: String,
    /// TCP port; 0 lets the system choose a free one.
    pub port: u16,
    /// Host and port of the admin endpoint; empty is none.
    pub admin_address: String,
    /// Threads that serve connections; 0 is one for each processor.
    pub threads: usize,
    /// Bytes that keys, values and their overhead may take in memory; 0 is no limit.
    pub max_memory: u64,
    /// What goes when memory is full.
    pub max_memory_policy: EvictionPolicy,
    /// The folder of the disk tier; empty is none.
    pub storage: String,
    /// Bytes that the disk tier's file may take; 0 is no limit.
    pub max_disk: u64,
    /// When a write is answered.
    pub durability: Durability,
    /// Milliseconds that a change waits for its commit at most.
    pub commit_interval: u64,
    /// Bytes of changes that do not wait any longer.
    pub commit_bytes: usize,
    /// The codec of new values, by name.
    pub compression: String,
    /// What `auto` chooses for.
    pub compression_goal: Goal,
    /// The codec's level; `None` is its own default.
    pub compression_level: Option<i32>,
    /// Values shorter than this many bytes are stored as they are.
    pub compression_min_bytes: usize,
    /// Whether dictionaries are used for new values, and learned.
    pub dictionaries: DictionaryUse,
    /// Bytes that samples and dictionaries may take in memory.
    pub dictionary_memory: usize,
    /// How much of a processor learning and encoding anew may take, in percent.
    pub dictionary_cpu_percent: u32,
    /// Patterns of keys whose values have nothing to do with dictionaries, separated by spaces.
    pub dictionary_exclude: String,
    /// After how many seconds without use a value is compressed once more; 0 is never.
    pub cold_after: u32,
    /// The level of zstd for that.
    pub cold_compression_level: i32,
    /// How many numbered databases there are.
    pub databases: usize,
    /// How many clients may be connected at once.
    pub max_clients: usize,
    /// The longest key, in bytes.
    pub max_key_bytes: usize,
    /// The longest value, and the longest argument of a request, in bytes.
    pub max_value_bytes: usize,
    /// The largest request, all its arguments together, in bytes.
    pub max_request_bytes: usize,
    /// The most requests that a transaction holds, and the most keys that a client watches.
    pub max_transaction_requests: usize,
    /// The most bytes that these take.
    pub max_transaction_bytes: usize,
    /// Of how many keys it is remembered which clients have read them, for client-side caching; 0 is no limit.
    pub tracking_table_max_keys: usize,
    /// What clients must send with AUTH; empty is nothing.
    pub password: String,
    /// Seconds after which an idle client is disconnected; 0 is never.
    pub timeout: u64,
    /// Seconds between TCP keep-alive probes; 0 is none.
    pub tcp_keepalive: u64,
    /// The logs of slow commands, large requests and large replies.
    pub command_log: [LogSettings; Kind::ALL.len()],
    /// Events of so many milliseconds are noted for LATENCY; 0 is none.
    pub latency_monitor_threshold: u64,
    /// Whether the times of all commands are collected.
    pub latency_tracking: bool,
    /// Which percentiles of these times INFO shows.
    pub latency_percentiles: Vec<f64>,
    /// How much is logged.
    pub log_level: LevelFilter,
}

/// One log of remarkable commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogSettings {
    /// Commands of this and more are logged: microseconds or bytes. Negative is none.
    pub threshold: i64,
    /// How many are kept.
    pub most: usize,
}

/// One setting.
pub struct Setting {
    /// Its name as a flag (`--max-memory`), in the environment (`SNUGLY_MAX_MEMORY`) and for CONFIG.
    pub name: &'static str,
    /// Its name in Valkey, under which CONFIG knows it instead.
    pub valkey_name: Option<&'static str>,
    /// What stands for the value in a help text.
    pub value_name: &'static str,
    /// Its default, as one would write it.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
    /// Whether CONFIG SET may change it while the server runs.
    pub live: bool,
    /// Reads a value; `Err` says what is wrong with it.
    pub set: fn(&mut Configuration, &str) -> Result<(), String>,
    /// Writes the value.
    pub get: fn(&Configuration) -> String,
}

impl Setting {
    /// The name that CONFIG GET and SET use.
    pub fn config_name(&self) -> &'static str {
        self.valkey_name.unwrap_or(self.name)
    }

    /// The environment variable.
    pub fn environment(&self) -> String {
        format!("SNUGLY_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// Whether the setting's value must not be shown.
    pub fn is_secret(&self) -> bool {
        self.name == "password"
    }
}

/// The strongest codec of this build.
const DEFAULT_CODEC: &str = if cfg!(feature = "zstd") {
    "zstd"
} else if cfg!(feature = "lz4") {
    "lz4"
} else {
    "none"
};

/// In place of a codec: what suits each kind of keys.
const AUTO: &str = "auto";

/// All settings, in the order of the help text.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    Setting { name: "bind", valkey_name: None, value_name: "ADDRESSES", default: "127.0.0.1", live: false,
        help: "Addresses to listen on, separated by commas",
        set: |c, v| { c.bind = v.to_owned(); Ok(()) }, get: |c| c.bind.clone() },
    Setting { name: "port", valkey_name: None, value_name: "PORT", default: "7684", live: false,
        help: "TCP port; 0 lets the system choose a free one",
        set: |c, v| in_range(v, 0..=65_535).map(|n| c.port = n), get: |c| c.port.to_string() },
    Setting { name: "admin-address", valkey_name: None, value_name: "ADDRESS", default: "", live: false,
        help: "Host and port where /metrics and /health are answered over HTTP, such as 127.0.0.1:7685; empty is nowhere",
        set: |c, v| host_and_port(v).map(|a| c.admin_address = a), get: |c| c.admin_address.clone() },
    Setting { name: "threads", valkey_name: None, value_name: "N", default: "0", live: false,
        help: "Threads that serve connections; 0 is one for each processor",
        set: |c, v| in_range(v, 0..=1024).map(|n| c.threads = n), get: |c| c.threads.to_string() },
    Setting { name: "max-memory", valkey_name: Some("maxmemory"), value_name: "BYTES", default: "0", live: true,
        help: "Memory for keys, compressed values and their overhead, such as 2gb; 0 is no limit",
        set: |c, v| bytes(v).map(|n| c.max_memory = n), get: |c| c.max_memory.to_string() },
    Setting { name: "max-memory-policy", valkey_name: Some("maxmemory-policy"), value_name: "POLICY", default: "noeviction", live: true,
        help: "What goes when memory is full: noeviction, allkeys-lru, allkeys-lfu, allkeys-random, volatile-lru, volatile-lfu, volatile-random or volatile-ttl",
        set: |c, v| policy(v).map(|p| c.max_memory_policy = p), get: |c| c.max_memory_policy.name().to_owned() },
    Setting { name: "storage", valkey_name: None, value_name: "FOLDER", default: "", live: false,
        help: "Keep everything on disk in this folder, and in memory what is used; empty keeps nothing on disk",
        set: |c, v| { c.storage = v.to_owned(); Ok(()) }, get: |c| c.storage.clone() },
    Setting { name: "max-disk", valkey_name: None, value_name: "BYTES", default: "0", live: false,
        help: "What the file may take, such as 20gb, at least 16mb; 0 is as much as the disk has. When it is full, the memory policy says what goes",
        set: |c, v| bytes(v).map(|n| c.max_disk = n), get: |c| c.max_disk.to_string() },
    Setting { name: "durability", valkey_name: None, value_name: "WHEN", default: "batched", live: false,
        help: "When a write is answered: fsync, once it is on the disk; batched, at once, and it is on the disk within the commit interval; none, at once, and the system decides",
        set: |c, v| durability(v).map(|d| c.durability = d), get: |c| durability_name(c.durability).to_owned() },
    Setting { name: "commit-interval", valkey_name: None, value_name: "MILLISECONDS", default: "100", live: false,
        help: "How long a change waits at most until it is on the disk",
        set: |c, v| in_range(v, 1..=60_000).map(|n| c.commit_interval = n), get: |c| c.commit_interval.to_string() },
    Setting { name: "commit-bytes", valkey_name: None, value_name: "BYTES", default: "8mb", live: false,
        help: "How many bytes of changes are written to disk without waiting any longer",
        set: |c, v| bytes_in_range(v, 64 << 10..=1 << 30).map(|n| c.commit_bytes = n), get: |c| c.commit_bytes.to_string() },
    Setting { name: "compression", valkey_name: None, value_name: "CODEC", default: DEFAULT_CODEC, live: true,
        help: "How new values are compressed: none, lz4 or zstd, or auto for what suits each kind of keys; values already stored stay as they are, and dictionaries need zstd or auto",
        set: |c, v| { c.compression = v.to_ascii_lowercase(); Ok(()) }, get: |c| c.compression.clone() },
    Setting { name: "compression-goal", valkey_name: None, value_name: "GOAL", default: "balanced", live: true,
        help: "What auto chooses for: memory, where a saved byte may cost 500 ns of processor time; balanced, 20 ns; speed, 5 ns",
        set: |c, v| v.parse().map(|goal| c.compression_goal = goal), get: |c| c.compression_goal.to_string() },
    Setting { name: "compression-level", valkey_name: None, value_name: "LEVEL", default: "default", live: true,
        help: "The codec's level: zstd -131072 to 22 (default 3), lz4 -128 to 12 (default 0); higher is smaller and slower",
        set: |c, v| level(v).map(|l| c.compression_level = l), get: |c| c.compression_level.map_or("default".into(), |l| l.to_string()) },
    Setting { name: "compression-min-bytes", valkey_name: None, value_name: "BYTES", default: "256", live: true,
        help: "Values shorter than this are stored as they are",
        set: |c, v| bytes(v).map(|n| c.compression_min_bytes = n as usize), get: |c| c.compression_min_bytes.to_string() },
    Setting { name: "dictionaries", valkey_name: None, value_name: "USE", default: "yes", live: true,
        help: "Whether zstd dictionaries are learned for values that are alike and used for new ones: yes; fixed, those that there are are used and none is learned; no. They need zstd or auto as the codec",
        set: |c, v| dictionary_use(v).map(|used| c.dictionaries = used), get: |c| dictionary_use_name(c.dictionaries).to_owned() },
    Setting { name: "dictionary-memory", valkey_name: None, value_name: "BYTES", default: "32mb", live: true,
        help: "What samples of values and dictionaries may take in memory, half of it each, beside max-memory",
        set: |c, v| bytes_in_range(v, 1 << 20..=1 << 30).map(|n| c.dictionary_memory = n), get: |c| c.dictionary_memory.to_string() },
    Setting { name: "dictionary-cpu-percent", valkey_name: None, value_name: "N", default: "10", live: true,
        help: "How much of one processor learning dictionaries and encoding older values anew may take, on average",
        set: |c, v| in_range(v, 1..=100).map(|n| c.dictionary_cpu_percent = n), get: |c| c.dictionary_cpu_percent.to_string() },
    Setting { name: "dictionary-exclude", valkey_name: None, value_name: "PATTERNS", default: "", live: true,
        help: "Keys whose values are never sampled nor encoded with a dictionary, such as session:*; patterns as in KEYS, separated by spaces",
        set: |c, v| { c.dictionary_exclude = v.to_owned(); Ok(()) }, get: |c| c.dictionary_exclude.clone() },
    Setting { name: "cold-after", valkey_name: None, value_name: "SECONDS", default: "600", live: true,
        help: "For how long nobody must have read or written a key until its value, if zstd has compressed it, is compressed once more at cold-compression-level, within dictionary-cpu-percent; 0 is never",
        set: |c, v| in_range(v, 0..=MOST_COLD_AFTER).map(|n| c.cold_after = n), get: |c| c.cold_after.to_string() },
    Setting { name: "cold-compression-level", valkey_name: None, value_name: "LEVEL", default: "15", live: true,
        help: "The level of zstd for that, 1 to 22; what was compressed with another one before stays as it is",
        set: |c, v| in_range(v, 1..=22).map(|n| c.cold_compression_level = n), get: |c| c.cold_compression_level.to_string() },
    Setting { name: "databases", valkey_name: None, value_name: "N", default: "16", live: false,
        help: "How many numbered databases there are",
        set: |c, v| in_range(v, 1..=1024).map(|n| c.databases = n), get: |c| c.databases.to_string() },
    Setting { name: "max-clients", valkey_name: Some("maxclients"), value_name: "N", default: "10000", live: true,
        help: "How many clients may be connected at once",
        set: |c, v| in_range(v, 1..=u32::MAX.into()).map(|n| c.max_clients = n), get: |c| c.max_clients.to_string() },
    Setting { name: "max-key-bytes", valkey_name: None, value_name: "BYTES", default: "64kb", live: true,
        help: "The longest key",
        set: |c, v| bytes_in_range(v, 1..=MAX_KEY_LEN).map(|n| c.max_key_bytes = n), get: |c| c.max_key_bytes.to_string() },
    Setting { name: "max-value-bytes", valkey_name: Some("proto-max-bulk-len"), value_name: "BYTES", default: "512mb", live: true,
        help: "The longest value, and the longest argument of a request",
        set: |c, v| bytes_in_range(v, 1 << 20..=MAX_VALUE_BYTES).map(|n| c.max_value_bytes = n), get: |c| c.max_value_bytes.to_string() },
    Setting { name: "max-request-bytes", valkey_name: Some("client-query-buffer-limit"), value_name: "BYTES", default: "1gb", live: true,
        help: "The largest request, all its arguments together",
        set: |c, v| bytes_in_range(v, 1 << 20..=1 << 40).map(|n| c.max_request_bytes = n), get: |c| c.max_request_bytes.to_string() },
    Setting { name: "max-transaction-requests", valkey_name: None, value_name: "N", default: "1000000", live: true,
        help: "The most requests between MULTI and EXEC, and the most keys that a client watches",
        set: |c, v| in_range(v, 1..=u32::MAX.into()).map(|n| c.max_transaction_requests = n), get: |c| c.max_transaction_requests.to_string() },
    Setting { name: "max-transaction-bytes", valkey_name: None, value_name: "BYTES", default: "256mb", live: true,
        help: "The most memory for these requests, or for these keys, of one client",
        set: |c, v| bytes_in_range(v, 1 << 10..=1 << 40).map(|n| c.max_transaction_bytes = n), get: |c| c.max_transaction_bytes.to_string() },
    Setting { name: "tracking-table-max-keys", valkey_name: None, value_name: "N", default: "1000000", live: true,
        help: "Of how many keys it is remembered which clients have read them, for client-side caching; 0 is no limit",
        set: |c, v| in_range(v, 0..=i64::MAX).map(|n| c.tracking_table_max_keys = n), get: |c| c.tracking_table_max_keys.to_string() },
    Setting { name: "password", valkey_name: Some("requirepass"), value_name: "PASSWORD", default: "", live: true,
        help: "What clients must send with AUTH; empty asks for nothing",
        set: |c, v| { c.password = v.to_owned(); Ok(()) }, get: |c| c.password.clone() },
    Setting { name: "timeout", valkey_name: None, value_name: "SECONDS", default: "0", live: true,
        help: "Seconds after which an idle client is disconnected; 0 is never",
        set: |c, v| in_range(v, 0..=MOST_SECONDS).map(|n| c.timeout = n), get: |c| c.timeout.to_string() },
    Setting { name: "tcp-keepalive", valkey_name: None, value_name: "SECONDS", default: "300", live: true,
        help: "Seconds between keep-alive probes of an idle connection; 0 is none",
        set: |c, v| in_range(v, 0..=MOST_SECONDS).map(|n| c.tcp_keepalive = n), get: |c| c.tcp_keepalive.to_string() },
    Setting { name: "commandlog-execution-slower-than", valkey_name: None, value_name: "MICROSECONDS", default: "10000", live: true,
        help: "Commands that take this long are logged for SLOWLOG; -1 is none",
        set: |c, v| threshold(v).map(|n| c.command_log[Kind::Slow as usize].threshold = n), get: |c| c.command_log[Kind::Slow as usize].threshold.to_string() },
    Setting { name: "commandlog-slow-execution-max-len", valkey_name: None, value_name: "N", default: "128", live: true,
        help: "How many slow commands the log keeps",
        set: |c, v| log_length(v).map(|n| c.command_log[Kind::Slow as usize].most = n), get: |c| c.command_log[Kind::Slow as usize].most.to_string() },
    Setting { name: "commandlog-request-larger-than", valkey_name: None, value_name: "BYTES", default: "1048576", live: true,
        help: "Requests this large are logged for COMMANDLOG; -1 is none",
        set: |c, v| threshold(v).map(|n| c.command_log[Kind::LargeRequest as usize].threshold = n), get: |c| c.command_log[Kind::LargeRequest as usize].threshold.to_string() },
    Setting { name: "commandlog-large-request-max-len", valkey_name: None, value_name: "N", default: "128", live: true,
        help: "How many large requests the log keeps",
        set: |c, v| log_length(v).map(|n| c.command_log[Kind::LargeRequest as usize].most = n), get: |c| c.command_log[Kind::LargeRequest as usize].most.to_string() },
    Setting { name: "commandlog-reply-larger-than", valkey_name: None, value_name: "BYTES", default: "1048576", live: true,
        help: "Commands with a reply this large are logged for COMMANDLOG; -1 is none",
        set: |c, v| threshold(v).map(|n| c.command_log[Kind::LargeReply as usize].threshold = n), get: |c| c.command_log[Kind::LargeReply as usize].threshold.to_string() },
    Setting { name: "commandlog-large-reply-max-len", valkey_name: None, value_name: "N", default: "128", live: true,
        help: "How many commands with large replies the log keeps",
        set: |c, v| log_length(v).map(|n| c.command_log[Kind::LargeReply as usize].most = n), get: |c| c.command_log[Kind::LargeReply as usize].most.to_string() },
    Setting { name: "latency-monitor-threshold", valkey_name: None, value_name: "MILLISECONDS", default: "0", live: true,
        help: "What takes this long is noted for LATENCY; 0 is nothing",
        set: |c, v| in_range(v, 0..=i64::MAX).map(|n| c.latency_monitor_threshold = n), get: |c| c.latency_monitor_threshold.to_string() },
    Setting { name: "latency-tracking", valkey_name: None, value_name: "YESNO", default: "yes", live: true,
        help: "Whether the times of all commands are collected for LATENCY HISTOGRAM and INFO latencystats",
        set: |c, v| yes_or_no(v).map(|on| c.latency_tracking = on), get: |c| if c.latency_tracking { "yes" } else { "no" }.to_owned() },
    Setting { name: "latency-tracking-info-percentiles", valkey_name: None, value_name: "PERCENTILES", default: "50 99 99.9", live: true,
        help: "Which percentiles of these times INFO shows, separated by spaces",
        set: |c, v| percentiles(v).map(|p| c.latency_percentiles = p), get: |c| words(&c.latency_percentiles) },
    Setting { name: "log-level", valkey_name: Some("loglevel"), value_name: "LEVEL", default: "info", live: false,
        help: "How much is logged: error, warn, info, debug or trace",
        set: |c, v| v.parse().map(|l| c.log_level = l).map_err(|_| "must be error, warn, info, debug or trace".into()), get: |c| c.log_level.to_string() },
];

/// The setting that is named when codec, level and threshold do not go together.
pub(crate) const COMPRESSION: &str = "compression";

/// The longest value that can be allowed: lengths in an entry have 32 bits.
const MAX_VALUE_BYTES: usize = (4 << 30) - (1 << 20);

/// Second names for CONFIG.
const ALIASES: &[(&str, &str)] = &[
    ("slowlog-log-slower-than", "commandlog-execution-slower-than"),
    ("slowlog-max-len", "commandlog-slow-execution-max-len"),
];

/// The longest time that Valkey lets a client be idle.
const MOST_SECONDS: i64 = i32::MAX as i64;
/// The last use of a key is known for half a year.
const MOST_COLD_AFTER: i64 = 180 * 24 * 60 * 60;

/// What CONFIG GET answers of settings that clients ask for and that have no choice here.
pub(crate) const FIXED: &[(&str, &str)] = &[("appendonly", "no"), ("save", "")];

impl Default for Configuration {
    fn default() -> Configuration {
        let mut configuration = Configuration {
            bind: String::new(),
            port: 0,
            admin_address: String::new(),
            threads: 0,
            max_memory: 0,
            max_memory_policy: EvictionPolicy::NoEviction,
            storage: String::new(),
            max_disk: 0,
            durability: Durability::Batched,
            commit_interval: 0,
            commit_bytes: 0,
            compression: String::new(),
            compression_goal: Goal::default(),
            compression_level: None,
            compression_min_bytes: 0,
            dictionaries: DictionaryUse::Learned,
            dictionary_memory: 0,
            dictionary_cpu_percent: 0,
            dictionary_exclude: String::new(),
            cold_after: 0,
            cold_compression_level: 0,
            databases: DEFAULT_DATABASES,
            max_clients: 0,
            max_key_bytes: 0,
            max_value_bytes: DEFAULT_MAX_VALUE_LEN,
            max_request_bytes: 0,
            max_transaction_requests: 0,
            max_transaction_bytes: 0,
            tracking_table_max_keys: 0,
            password: String::new(),
            timeout: 0,
            tcp_keepalive: 0,
            command_log: Default::default(),
            latency_monitor_threshold: 0,
            latency_tracking: false,
            latency_percentiles: Vec::new(),
            log_level: LevelFilter::INFO,
        };
        for setting in SETTINGS {
            (setting.set)(&mut configuration, setting.default).expect("a default is a valid value");
        }
        configuration
    }
}

impl Configuration {
    /// What the settings say of compression, checked together.
    ///
    /// # Errors
    /// If the codec is unknown or not in this build, or the level is out of its range.
    pub fn compression(&self) -> Result<Choice, SelectError> {
        let codec = if self.goal().is_some() { DEFAULT_CODEC } else { &self.compression };
        Choice::new(codec, self.compression_level, self.compression_min_bytes)
    }

    /// What codec and level are chosen for, if they are.
    pub fn goal(&self) -> Option<Goal> {
        (self.compression == AUTO).then_some(self.compression_goal)
    }

    /// What the store is told.
    ///
    /// # Errors
    /// As [`Configuration::compression`].
    pub fn store_settings(&self) -> Result<StoreSettings, SelectError> {
        Ok(StoreSettings {
            compression: self.compression()?,
            goal: self.goal(),
            max_memory: self.max_memory,
            eviction: self.max_memory_policy,
            max_key_len: self.max_key_bytes,
            max_value_len: self.max_value_bytes,
            dictionaries: DictionarySettings {
                enabled: self.dictionaries != DictionaryUse::None,
                trains: self.dictionaries == DictionaryUse::Learned,
                max_memory: self.dictionary_memory,
            },
            packing: PackingSettings { after: self.cold_after, level: self.cold_compression_level },
            lists: ListSettings::default(),
        })
    }
}

impl Configuration {
    /// Keys whose values have nothing to do with dictionaries, if there are any.
    pub fn excluded_keys(&self) -> Option<KeyPredicate> {
        let patterns: Vec<String> = self.dictionary_exclude.split_whitespace().map(str::to_owned).collect();
        (!patterns.is_empty()).then(|| {
            let is_excluded = move |key: &[u8]| {
                patterns.iter().any(|pattern| glob::matches(pattern.as_bytes(), key, false))
            };
            Arc::new(is_excluded) as KeyPredicate
        })
    }

    /// Where the store is on disk, if it is.
    pub fn disk(&self) -> Option<Storage> {
        (!self.storage.is_empty()).then(|| Storage {
            max_disk: self.max_disk,
            durability: self.durability,
            commit_interval: Duration::from_millis(self.commit_interval),
            commit_bytes: self.commit_bytes,
            ..Storage::new(&self.storage)
        })
    }
}

/// What has the form of a host and a port, or nothing. Whether there is such a host is seen when it is listened on.
fn host_and_port(text: &str) -> Result<String, String> {
    let port =
        text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(text.to_owned()),
        _ if text.is_empty() => Ok(String::new()),
        _ => Err("must be a host and a port, such as 127.0.0.1:7685".to_owned()),
    }
}

/// What dictionaries are used for new values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DictionaryUse {
    /// Those that there are, and others that are learned.
    Learned,
    /// Those that there are.
    Fixed,
    /// None.
    None,
}

/// The uses of dictionaries, by their names.
const DICTIONARY_USES: [(&str, DictionaryUse); 3] =
    [("yes", DictionaryUse::Learned), ("fixed", DictionaryUse::Fixed), ("no", DictionaryUse::None)];

fn dictionary_use(text: &str) -> Result<DictionaryUse, String> {
    let found = DICTIONARY_USES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found
        .map(|row| row.1)
        .ok_or_else(|| "argument(s) must be one of the following: yes, fixed, no".to_owned())
}

fn dictionary_use_name(used: DictionaryUse) -> &'static str {
    DICTIONARY_USES.iter().find(|(_, row)| *row == used).map_or("", |(name, _)| name)
}

/// The kinds of durability, by their names.
const DURABILITIES: [(&str, Durability); 3] =
    [("fsync", Durability::Fsync), ("batched", Durability::Batched), ("none", Durability::None)];

fn durability(text: &str) -> Result<Durability, String> {
    let found = DURABILITIES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found
        .map(|(_, durability)| *durability)
        .ok_or_else(|| "argument(s) must be one of the following: fsync, batched, none".to_owned())
}

fn durability_name(durability: Durability) -> &'static str {
    DURABILITIES.iter().find(|(_, row)| *row == durability).map_or("", |(name, _)| name)
}

/// The settings by all the names that CONFIG knows.
pub(crate) fn config_names() -> impl Iterator<Item = (&'static str, &'static Setting)> {
    let alias = |&(name, of): &(&'static str, &str)| {
        let setting = SETTINGS.iter().find(|setting| setting.name == of);
        (name, setting.expect("an alias is one of a setting"))
    };
    SETTINGS.iter().map(|setting| (setting.config_name(), setting)).chain(ALIASES.iter().map(alias))
}

/// The setting that CONFIG knows by this name, in any case.
pub(crate) fn by_config_name(name: &str) -> Option<&'static Setting> {
    config_names().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, setting)| setting)
}

fn number(text: &str) -> Result<i64, String> {
    parse_integer(text.as_bytes()).ok_or_else(|| "argument couldn't be parsed into an integer".to_owned())
}

fn in_range<N: TryFrom<i64>>(text: &str, range: RangeInclusive<i64>) -> Result<N, String> {
    check(number(text)?, range)
}

fn bytes_in_range(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = i64::try_from(bytes(text)?).unwrap_or(i64::MAX);
    check(number, *range.start() as i64..=*range.end() as i64)
}

fn check<N: TryFrom<i64>>(number: i64, range: RangeInclusive<i64>) -> Result<N, String> {
    let fitting = range.contains(&number).then(|| N::try_from(number).ok()).flatten();
    fitting.ok_or_else(|| format!("argument must be between {} and {} inclusive", range.start(), range.end()))
}

/// From what on something is logged.
fn threshold(text: &str) -> Result<i64, String> {
    in_range(text, -1..=i64::MAX)
}

fn log_length(text: &str) -> Result<usize, String> {
    in_range(text, 0..=i64::MAX)
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        _ if text.eq_ignore_ascii_case("yes") => Ok(true),
        _ if text.eq_ignore_ascii_case("no") => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let percentiles = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
    let percentiles =
        percentiles.map_err(|_| "Invalid latency-tracking-info-percentiles parameters".to_owned())?;
    if percentiles.iter().all(|percentile| (0.0..=100.0).contains(percentile)) {
        return Ok(percentiles);
    }
    Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".to_owned())
}

fn words(numbers: &[f64]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Units of memory as Valkey reads them: `k` is a thousand, `kb` is 1024.
const UNITS: &[(&str, u64)] = &[
    ("b", 1),
    ("k", 1000),
    ("kb", 1 << 10),
    ("m", 1_000_000),
    ("mb", 1 << 20),
    ("g", 1_000_000_000),
    ("gb", 1 << 30),
];

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = text.split_at(digits);
    let factor = match unit {
        "" => Some(1),
        unit => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| *factor),
    };
    let number: Option<u64> = digits.parse().ok();
    match (number, factor) {
        (Some(number), Some(factor)) => number.checked_mul(factor),
        _ => None,
    }
    .ok_or_else(|| "argument must be a memory value".to_owned())
}

fn policy(text: &str) -> Result<EvictionPolicy, String> {
    EvictionPolicy::from_name(text).ok_or_else(|| {
        let names: Vec<_> = EvictionPolicy::names().collect();
        format!("argument(s) must be one of the following: {}", names.join(", "))
    })
}

fn level(text: &str) -> Result<Option<i32>, String> {
    if text.eq_ignore_ascii_case("default") {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| "must be a number or `default`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_reads_back_what_it_shows() {
        let shown: Vec<String> =
            SETTINGS.iter().map(|setting| (setting.get)(&Configuration::default())).collect();
        let mut configuration = Configuration::default();
        for (setting, value) in SETTINGS.iter().zip(&shown) {
            (setting.set)(&mut configuration, value)
                .unwrap_or_else(|error| panic!("{}: {error}", setting.name));
            assert_eq!(&(setting.get)(&configuration), value, "{}", setting.name);
        }
    }

    #[test]
    fn memory_is_read_with_valkeys_units() {
        assert_eq!(bytes("100"), Ok(100));
        assert_eq!(bytes("1k"), Ok(1000));
        assert_eq!(bytes("1Kb"), Ok(1024));
        assert_eq!(bytes("2gb"), Ok(2 << 30));
        for wrong in ["", "mb", "-1", "1 gb", "1tb", "99999999999999999999", "18446744073709551615gb"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for right in ["", "127.0.0.1:7685", "[::1]:0", "localhost:65535"] {
            assert_eq!(host_and_port(right), Ok(right.to_owned()));
        }
        for wrong in ["7685", ":7685", "127.0.0.1", "localhost:", "localhost:http", "localhost:65536"] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_are_excluded_by_any_of_the_patterns() {
        let mut configuration = Configuration::default();
        assert!(configuration.excluded_keys().is_none());
        configuration.dictionary_exclude = " session:*  user:[0-9]:secret ".to_owned();
        let excluded = configuration.excluded_keys().expect("there are patterns");
        for (key, is_excluded) in
            [("session:7", true), ("user:7:secret", true), ("user:7", false), ("", false)]
        {
            assert_eq!(excluded(key.as_bytes()), is_excluded, "{key}");
        }
    }

    #[test]
    fn names_are_unique_for_flags_and_for_config() {
        for (index, setting) in SETTINGS.iter().enumerate() {
            for other in &SETTINGS[index + 1..] {
                assert_ne!(setting.name, other.name);
                assert_ne!(setting.config_name(), other.config_name());
            }
        }
        let mut names: Vec<_> = config_names().map(|(name, _)| name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn percentiles_are_numbers_up_to_a_hundred() {
        assert_eq!(percentiles("50 99.9 100"), Ok(vec![50.0, 99.9, 100.0]));
        assert_eq!(percentiles(""), Ok(Vec::new()));
        for wrong in ["50 x", "-1", "100.1", "nan"] {
            assert!(percentiles(wrong).is_err(), "{wrong}");
        }
    }

    #[cfg(not(feature = "zstd"))]
    #[test]
    fn a_codec_that_this_build_lacks_is_refused_with_what_to_do() {
        assert_eq!(
            Configuration::default().compression().map(|choice| choice.compresses()).ok(),
            Some(cfg!(feature = "lz4"))
        );
        let configuration = Configuration { compression: "zstd".into(), ..Configuration::default() };
        let error = configuration.compression().map(|_| ()).expect_err("there is no zstd").to_string();
        assert!(error.contains("rebuild with the feature `zstd`"), "{error}");
    }

    #[cfg(feature = "lz4")]
    #[test]
    fn a_level_of_another_codec_is_refused_with_the_range() {
        let configuration = Configuration {
            compression: "lz4".into(),
            compression_level: Some(13),
            ..Configuration::default()
        };
        let error = configuration.compression().map(|_| ()).expect_err("lz4 ends at 12").to_string();
        assert!(error.contains("12"), "{error}");
    }
}
