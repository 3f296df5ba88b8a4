//! The settings, one row each: command-line flags, environment variables, the configuration file, CONFIG, help and the
//! start-up banner are all made from this table.
//!
//! - `table`: the rows
//! - `values`: what some of them are; `parsing`: how all are read and written
//! - `sources`: which value wins, at the start and when the file is read again; `file`, `secret`: files that have values
//! - `access`: who may use what is protected; `client_limits`: what connections may hold

mod access;
mod client_limits;
mod file;
mod parsing;
mod secret;
mod sources;
mod table;
mod values;
pub(crate) mod without_effect;

use std::sync::Arc;
use std::time::Duration;

use snugly_codec::{Choice, SelectError};
use snugly_glob::Pattern;
use snugly_protocol::rdb::VersionCheck;
use snugly_store::{
    DEFAULT_DATABASES, DEFAULT_MAX_VALUE_LEN, DictionarySettings, Durability, EvictionPolicy, Fill, Goal,
    KeyPredicate, ListSettings, RecompressionSettings, Settings as StoreSettings, Storage,
};
use tracing::level_filters::LevelFilter;

use crate::command_log::Kind;
use crate::event_classes::EventClasses;
pub(crate) use access::{Allowed, denies};
pub(crate) use client_limits::{ClientMemory, OutputLimit, OutputLimits, ReplyLimits};
pub(crate) use file::replace as replace_file;
pub use file::{FileError, file_line};
pub use secret::{SecretError, read_secret};
pub(crate) use sources::RewriteError;
pub use sources::{Given, Origin, Reload, SettingsError, Sources};
use table::ALIASES;
pub use table::{FORMER_NAMES, SETTINGS};
pub use values::{DictionaryUse, LogFormat, Primary, Protocols, TlsClients, TlsProtocols, Unsupported};
pub(crate) use without_effect::{Kept, WithoutEffect};

/// The values of all settings.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Addresses to listen on, separated by spaces or commas.
    pub bind: String,
    /// TCP port without TLS; 0 lets the system choose a free one.
    pub port: Option<u16>,
    /// TCP port with TLS; 0 lets the system choose a free one.
    pub tls_port: Option<u16>,
    /// The file with the server's certificate, and those of the authorities between it and the client's.
    pub tls_cert_file: String,
    /// The file with its private key.
    pub tls_key_file: String,
    /// The file with certificates of authorities, by which those of clients are verified.
    pub tls_ca_cert_file: String,
    /// Whether clients need a certificate.
    pub tls_auth_clients: TlsClients,
    /// Versions of TLS that are spoken.
    pub tls_protocols: TlsProtocols,
    /// Path of a socket to listen on; empty is none.
    pub unix_socket: String,
    /// Permissions of that socket; `None` leaves them to the process's mask.
    pub unix_socket_permissions: Option<u32>,
    /// Protocols that the port serves.
    pub protocols: Protocols,
    /// TCP port for memcached's protocols; 0 lets the system choose a free one.
    pub memcached_port: Option<u16>,
    /// TCP port for memcached's protocols inside TLS; 0 lets the system choose a free one.
    pub memcached_tls_port: Option<u16>,
    /// Host and port of the admin endpoint; empty is none.
    pub admin_address: String,
    /// The token that the admin endpoint asks for; empty is none. It was taken from `admin_token_file`.
    pub admin_token: String,
    /// The file of that token; empty is none.
    pub admin_token_file: String,
    /// Threads that serve connections; 0 is one for each processor.
    pub threads: usize,
    /// Bytes that keys, values and their overhead may take in memory; 0 is no limit.
    pub max_memory: u64,
    /// The eviction policy when memory is full.
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
    /// The RDB file to load at the start; empty is none.
    pub load_rdb: String,
    /// Treatment of payloads for RESTORE whose version is newer than what is known here.
    pub rdb_version_check: VersionCheck,
    /// The server that this one follows as a replica, if it does.
    pub replica_of: Option<Primary>,
    /// The user to log in to it as; empty is its user `default`.
    pub primary_user: String,
    /// The password to log in to it with; empty logs in nobody.
    pub primary_auth: String,
    /// Whether clients' writes are refused while another server is followed.
    pub replica_read_only: bool,
    /// What becomes of its commands and keys that this server does not have.
    pub replica_unsupported: Unsupported,
    /// Seconds without a byte of it after which the link is broken.
    pub repl_timeout: u64,
    /// The folder of the RDB file that SAVE writes, and its name.
    pub dir: String,
    /// See `dir`.
    pub dbfilename: String,
    /// The codec of new values, by name.
    pub compression: String,
    /// The goal of `auto`.
    pub compression_goal: Goal,
    /// The codec's level; `None` is its own default.
    pub compression_level: Option<i32>,
    /// Values shorter than this many bytes are stored as they are.
    pub compression_min_bytes: usize,
    /// Whether dictionaries are used for new values, and learned.
    pub dictionaries: DictionaryUse,
    /// Bytes that samples and dictionaries may take in memory.
    pub dictionary_memory: usize,
    /// Share of a processor for learning and re-encoding, in percent.
    pub background_cpu_percent: u32,
    /// Patterns of keys whose values have nothing to do with dictionaries, separated by spaces.
    pub dictionary_exclude: String,
    /// After how many seconds without use a value is compressed once more; 0 is never.
    pub cold_after: u32,
    /// The level of zstd for that.
    pub cold_compression_level: i32,
    /// Limit of a list node: from -1 to -5, 4 to 64 KiB; from 1 on, so many elements.
    pub list_max_listpack_size: i64,
    /// Nodes at each end of a list that are not compressed; 0 compresses none.
    pub list_compress_depth: usize,
    /// The codec of the others; `None` does not compress them.
    pub list_compress_codec: Option<Choice>,
    /// Bytes that decoded nodes may take in memory that are kept for those who read them again.
    pub list_cache_memory: u64,
    /// Number of databases.
    pub databases: usize,
    /// Limit of clients connected at once.
    pub max_clients: usize,
    /// Limit of clients connected at once from one address; 0 is no limit.
    pub max_clients_per_address: usize,
    /// The longest key, in bytes.
    pub max_key_bytes: usize,
    /// The longest value, and the longest argument of a request, in bytes.
    pub max_value_bytes: usize,
    /// The largest request, all its arguments together, in bytes.
    pub max_request_bytes: usize,
    /// Limits of replies and messages of one client.
    pub(crate) client_output_buffer_limit: OutputLimits,
    /// Memory limit of all clients.
    pub(crate) max_memory_clients: ClientMemory,
    /// The most requests that a transaction holds, and the most keys that a client watches.
    pub max_transaction_requests: usize,
    /// The most bytes that these take.
    pub max_transaction_bytes: usize,
    /// The longest time in milliseconds that a script runs before other clients are told so.
    pub busy_reply_threshold: u64,
    /// Memory in bytes that the scripts of one thread may take.
    pub max_script_memory: usize,
    /// Of how many keys it is remembered which clients have read them, for client-side caching; 0 is no limit.
    pub tracking_table_max_keys: usize,
    /// The password that clients must send with AUTH; empty is none.
    pub password: String,
    /// The file that `password` was taken from; empty is none.
    pub password_file: String,
    /// The file of users; empty is none.
    pub acl_file: String,
    /// Whether users may use all channels until a rule says otherwise.
    pub acl_all_channels: bool,
    /// Entries of ACL LOG.
    pub acl_log_max_len: usize,
    /// Whether only clients on the same machine are served as long as there is no password.
    pub protected_mode: bool,
    /// Clients that may use DEBUG.
    pub enable_debug_command: Allowed,
    /// Clients that may change protected settings ([`Setting::is_protected`]) while the server runs.
    pub enable_protected_configs: Allowed,
    /// Seconds after which an idle client is disconnected; 0 is never.
    pub timeout: u64,
    /// Seconds that clients may take for their last replies when the server ends.
    pub shutdown_timeout: u64,
    /// Seconds between TCP keep-alive probes; 0 is none.
    pub tcp_keepalive: u64,
    /// The logs of slow commands, large requests and large replies.
    pub command_log: [LogSettings; Kind::ALL.len()],
    /// Events of so many milliseconds are noted for LATENCY; 0 is none.
    pub latency_monitor_threshold: u64,
    /// Whether the times of all commands are collected.
    pub latency_tracking: bool,
    /// The events of keys that are published.
    pub notify_keyspace_events: EventClasses,
    /// Percentiles of these times that INFO shows.
    pub latency_percentiles: Vec<f64>,
    /// The log level.
    pub log_level: LevelFilter,
    /// The form of the log's lines.
    pub log_format: LogFormat,
    /// Values of Valkey's settings that have no effect here.
    pub(crate) without_effect: Kept,
}

/// One log of remarkable commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogSettings {
    /// Commands of this and more are logged: microseconds or bytes. Negative is none.
    pub threshold: i64,
    /// Number of entries kept.
    pub most: usize,
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name as a flag (`--max-memory`), in the environment (`SNUGLY_MAX_MEMORY`) and for CONFIG.
    pub name: &'static str,
    /// Its name in Valkey, under which CONFIG knows it instead.
    pub valkey_name: Option<&'static str>,
    /// The placeholder of the value in a help text.
    pub value_name: &'static str,
    /// Its default, as one would write it.
    pub default: &'static str,
    /// The help text.
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
        environment(self.name)
    }

    /// Returns whether changing it while the server runs takes `enable-protected-configs`: it says which file
    /// is written.
    pub fn is_protected(&self) -> bool {
        matches!(self.name, "dir" | "dbfilename")
    }

    /// All values, where they are few words; empty for numbers, names and the like.
    pub fn choices(&self) -> Vec<&'static str> {
        parsing::CHOICES.iter().find(|row| row.0 == self.name).map_or_else(Vec::new, |row| row.1())
    }

    /// Returns whether the setting's value must not be shown.
    pub fn is_secret(&self) -> bool {
        matches!(self.name, "password" | "primary-auth")
    }
}

/// The environment variable of a setting's name, present or former.
pub fn environment(name: &str) -> String {
    format!("SNUGLY_{}", name.replace('-', "_").to_ascii_uppercase())
}

/// The codec of this build that makes values the smallest, and the one that takes the least time.
const DENSEST_CODEC: &str = if cfg!(feature = "zstd") { "zstd" } else { QUICKEST_CODEC };
const QUICKEST_CODEC: &str = if cfg!(feature = "lz4") {
    "lz4"
} else if cfg!(feature = "zstd") {
    "zstd"
} else {
    "none"
};

/// In place of a codec: what suits each kind of keys.
const AUTO: &str = "auto";
const DEFAULT_COMPRESSION: &str = if cfg!(any(feature = "zstd", feature = "lz4")) { AUTO } else { "none" };

/// The setting that is named when codec, level and threshold do not go together.
pub(crate) const COMPRESSION: &str = "compression";

impl Default for Configuration {
    fn default() -> Configuration {
        let mut configuration = Configuration {
            bind: String::new(),
            port: None,
            tls_port: None,
            tls_cert_file: String::new(),
            tls_key_file: String::new(),
            tls_ca_cert_file: String::new(),
            tls_auth_clients: TlsClients::Required,
            tls_protocols: TlsProtocols::Both,
            unix_socket: String::new(),
            unix_socket_permissions: None,
            protocols: Protocols::default(),
            memcached_port: None,
            memcached_tls_port: None,
            admin_address: String::new(),
            admin_token: String::new(),
            admin_token_file: String::new(),
            threads: 0,
            max_memory: 0,
            max_memory_policy: EvictionPolicy::NoEviction,
            storage: String::new(),
            max_disk: 0,
            durability: Durability::Batched,
            commit_interval: 0,
            commit_bytes: 0,
            load_rdb: String::new(),
            rdb_version_check: VersionCheck::Strict,
            replica_of: None,
            primary_user: String::new(),
            primary_auth: String::new(),
            replica_read_only: true,
            replica_unsupported: Unsupported::Skip,
            repl_timeout: 0,
            dir: String::new(),
            dbfilename: String::new(),
            compression: String::new(),
            compression_goal: Goal::default(),
            compression_level: None,
            compression_min_bytes: 0,
            dictionaries: DictionaryUse::Learned,
            dictionary_memory: 0,
            background_cpu_percent: 0,
            dictionary_exclude: String::new(),
            cold_after: 0,
            cold_compression_level: 0,
            list_max_listpack_size: 0,
            list_compress_depth: 0,
            list_compress_codec: None,
            list_cache_memory: 0,
            databases: DEFAULT_DATABASES,
            max_clients: 0,
            max_clients_per_address: 0,
            max_key_bytes: 0,
            max_value_bytes: DEFAULT_MAX_VALUE_LEN,
            max_request_bytes: 0,
            client_output_buffer_limit: OutputLimits::default(),
            max_memory_clients: ClientMemory::Bytes(0),
            max_transaction_requests: 0,
            max_transaction_bytes: 0,
            busy_reply_threshold: 0,
            max_script_memory: 0,
            tracking_table_max_keys: 0,
            password: String::new(),
            password_file: String::new(),
            acl_file: String::new(),
            acl_all_channels: false,
            acl_log_max_len: 0,
            protected_mode: true,
            enable_debug_command: Allowed::No,
            enable_protected_configs: Allowed::No,
            timeout: 0,
            shutdown_timeout: 5,
            tcp_keepalive: 0,
            command_log: Default::default(),
            latency_monitor_threshold: 0,
            latency_tracking: false,
            notify_keyspace_events: EventClasses::default(),
            latency_percentiles: Vec::new(),
            without_effect: Kept::new(),
            log_level: LevelFilter::INFO,
            log_format: LogFormat::Text,
        };
        for setting in SETTINGS {
            (setting.set)(&mut configuration, setting.default).expect("a default is a valid value");
        }
        configuration
    }
}

impl Configuration {
    /// The compression settings, checked together.
    ///
    /// # Errors
    /// If the codec is unknown or not in this build, or the level is out of its range.
    pub fn compression(&self) -> Result<Choice, SelectError> {
        let (codec, level) = match self.goal() {
            None => (&*self.compression, self.compression_level),
            // Until there is something to choose from.
            Some(Goal::Memory) => (DENSEST_CODEC, None),
            Some(Goal::Balanced | Goal::Speed) => (QUICKEST_CODEC, None),
        };
        Choice::new(codec, level, self.compression_min_bytes)
    }

    /// The goal of codec and level, if they are chosen.
    pub fn goal(&self) -> Option<Goal> {
        (self.compression == AUTO).then_some(self.compression_goal)
    }

    /// The store's settings.
    ///
    /// # Errors
    /// Errors of [`Configuration::compression`].
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
            recompression: RecompressionSettings {
                after: self.cold_after,
                level: self.cold_compression_level,
            },
            lists: ListSettings {
                max_listpack_size: Fill::new(self.list_max_listpack_size),
                compress_depth: self.list_compress_depth,
                compress_codec: self.list_compress_codec,
                cache_bytes: self.list_cache_memory,
            },
        })
    }
}

impl Configuration {
    /// Keys whose values have nothing to do with dictionaries, if there are any.
    pub fn excluded_keys(&self) -> Option<KeyPredicate> {
        let patterns = self.dictionary_exclude.split_whitespace();
        let patterns: Vec<_> = patterns.map(|pattern| Pattern::new(pattern.as_bytes(), false)).collect();
        (!patterns.is_empty()).then(|| {
            let is_excluded = move |key: &[u8]| patterns.iter().any(|pattern| pattern.matches(key));
            Arc::new(is_excluded) as KeyPredicate
        })
    }

    /// The settings that TLS is made from.
    pub(crate) fn tls_settings(&self) -> ([&str; 3], TlsClients, TlsProtocols) {
        let files = [&*self.tls_cert_file, &*self.tls_key_file, &*self.tls_ca_cert_file];
        (files, self.tls_auth_clients, self.tls_protocols)
    }

    /// The store's folder on disk, if it has one.
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

/// The settings by all the names that CONFIG knows.
pub(crate) fn config_names() -> impl Iterator<Item = (&'static str, &'static Setting)> {
    let alias = |&(name, of): &(&'static str, &str)| {
        let setting = SETTINGS.iter().find(|setting| setting.name == of);
        (name, setting.expect("an alias is one of a setting"))
    };
    let names = SETTINGS.iter().map(|setting| (setting.config_name(), setting));
    names.chain(ALIASES.iter().chain(FORMER_NAMES).map(alias))
}

/// The name that is the most like one that does not exist.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    let likeness = |known: &&str| strsim::normalized_damerau_levenshtein(known, name);
    known.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or_default()
}

/// Returns what to tell whoever uses a name that a setting had before.
pub fn advice_on(name: &str) -> Option<String> {
    let (former, present) = FORMER_NAMES.iter().find(|(former, _)| former.eq_ignore_ascii_case(name))?;
    Some(format!("the setting {former} is now called {present}: its former name will be refused one day"))
}

/// The setting that CONFIG knows by this name, in any case.
pub(crate) fn by_config_name(name: &str) -> Option<&'static Setting> {
    config_names().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, setting)| setting)
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
    fn choices_are_values_of_their_settings_the_default_among_them() {
        for (name, choices) in parsing::CHOICES {
            let setting = SETTINGS.iter().find(|setting| setting.name == *name).expect("it is a setting");
            let mut configuration = Configuration::default();
            assert!(choices().contains(&(setting.get)(&configuration).as_str()), "{name}");
            for choice in choices() {
                assert_eq!((setting.set)(&mut configuration, choice), Ok(()), "{name}");
                assert_eq!((setting.get)(&configuration), choice, "{name}");
            }
        }
        let is_choice =
            |setting: &&Setting| matches!(setting.value_name, "YESNO" | "WHO" | "CODEC" | "POLICY");
        for setting in SETTINGS.iter().filter(is_choice) {
            assert!(!setting.choices().is_empty(), "{}", setting.name);
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
