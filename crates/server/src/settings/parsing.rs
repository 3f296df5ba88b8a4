//! Values of settings, read as one writes them and written as CONFIG GET shows them.
//!
//! It knows the forms of values. It does not know the settings.

use std::ops::RangeInclusive;
use std::path::Path;

use snugly_codec::{CODECS, Choice, Codec};
use snugly_protocol::rdb::VersionCheck;
use snugly_protocol::resp::parse_integer;
use snugly_store::{Durability, EvictionPolicy, Goal};

use super::{
    AUTO, Allowed, ClientMemory, DictionaryUse, LogFormat, Primary, Protocols, TlsClients, TlsProtocols,
    Unsupported,
};

type Words = fn() -> Vec<&'static str>;

/// The settings whose values are few words, and which these are, for shells to complete.
pub(super) const CHOICES: &[(&str, Words)] = &[
    ("tls-auth-clients", || TLS_CLIENTS.map(|row| row.0).to_vec()),
    ("protocols", || PROTOCOLS.map(|row| row.0).to_vec()),
    ("max-memory-policy", || EvictionPolicy::names().collect()),
    ("durability", || DURABILITIES.map(|row| row.0).to_vec()),
    ("rdb-version-check", || VERSION_CHECKS.map(|row| row.0).to_vec()),
    ("compression", || {
        codecs().filter(|codec| codec.is_for_values()).map(Codec::name).chain([AUTO]).collect()
    }),
    ("compression-goal", || Goal::names().collect()),
    ("dictionaries", || DICTIONARY_USES.map(|row| row.0).to_vec()),
    ("list-compress-codec", || codecs().map(Codec::name).collect()),
    ("replica-read-only", || YES_OR_NO.to_vec()),
    ("replica-unsupported", || UNSUPPORTED.map(|row| row.0).to_vec()),
    ("protected-mode", || YES_OR_NO.to_vec()),
    ("enable-debug-command", || Allowed::NAMES.iter().map(|row| row.1).collect()),
    ("enable-protected-configs", || Allowed::NAMES.iter().map(|row| row.1).collect()),
    ("latency-tracking", || YES_OR_NO.to_vec()),
    ("log-level", || LOG_LEVELS.to_vec()),
    ("log-format", || LOG_FORMATS.map(|row| row.0).to_vec()),
];

const YES_OR_NO: [&str; 2] = ["yes", "no"];
const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The codecs of this build that a setting can name.
fn codecs() -> impl Iterator<Item = &'static Codec> {
    CODECS.iter().filter(|codec| codec.is_available() && !codec.id().needs_dictionary())
}

/// A host and a port, or nothing. Whether there is such a host is seen when it is listened on.
pub(super) fn host_and_port(text: &str) -> Result<String, String> {
    let port =
        text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(text.to_owned()),
        _ if text.is_empty() => Ok(String::new()),
        _ => Err("must be a host and a port, such as 127.0.0.1:7685".to_owned()),
    }
}

/// The address of a server to follow, or nothing; Valkey's form, with a space between host and port, is taken, too.
pub(super) fn primary(text: &str) -> Result<Option<Primary>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let parts = text.split_once(' ').or_else(|| text.rsplit_once(':')).and_then(|(host, port)| {
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Some((host, port.parse::<u16>().ok().filter(|port| *port > 0)?))
    });
    let is_host =
        |host: &str| !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || "[]".contains(c));
    match parts {
        // An address of IPv6 without brackets may have lost its last part to the port.
        Some((host, port)) if is_host(host) && (!host.contains(':') || text.contains(['[', ' '])) => {
            Ok(Some(Primary { host: host.to_owned(), port }))
        }
        _ => Err("must be a host and a port, such as 127.0.0.1:6379 or [::1]:6379, or empty".to_owned()),
    }
}

pub(super) fn primary_text(primary: Option<&Primary>) -> String {
    primary.map(Primary::to_string).unwrap_or_default()
}

/// The treatments of what is not supported, by their names.
const UNSUPPORTED: [(&str, Unsupported); 2] = [("skip", Unsupported::Skip), ("stop", Unsupported::Stop)];

pub(super) fn unsupported(text: &str) -> Result<Unsupported, String> {
    named(&UNSUPPORTED, text)
}

pub(super) fn unsupported_name(action: Unsupported) -> &'static str {
    name_of(&UNSUPPORTED, action)
}

/// The words for protocols.
const PROTOCOLS: [(&str, Protocols); 2] =
    [("resp", Protocols { binary: false }), ("resp,binary", Protocols { binary: true })];

pub(super) fn protocols(text: &str) -> Result<Protocols, String> {
    let found = PROTOCOLS.iter().find(|row| row.0 == text).map(|row| row.1);
    found.ok_or_else(|| "must be resp or resp,binary".to_owned())
}

pub(super) fn protocols_text(protocols: Protocols) -> &'static str {
    PROTOCOLS.iter().find(|row| row.1 == protocols).map_or("", |row| row.0)
}

/// The word for a port that is not listened on.
const OFF: &str = "off";

pub(super) fn port_or_off(text: &str) -> Result<Option<u16>, String> {
    if text == OFF { Ok(None) } else { in_range(text, 0..=65_535).map(Some) }
}

pub(super) fn port_or_off_text(port: Option<u16>) -> String {
    port.map_or(OFF.to_owned(), |port| port.to_string())
}

/// A folder that there is.
pub(super) fn folder(text: &str) -> Result<String, String> {
    match Path::new(text).is_dir() {
        true => Ok(text.to_owned()),
        false => Err("must be a folder that there is".to_owned()),
    }
}

/// The name of a file, in a folder that is named elsewhere.
pub(super) fn file_name(text: &str) -> Result<String, String> {
    match Path::new(text).file_name() {
        Some(name) if name == text => Ok(text.to_owned()),
        _ => Err("can't be a path, just a filename".to_owned()),
    }
}

/// The codec of lists; `None` for `none`.
pub(super) fn list_codec(text: &str) -> Result<Option<Choice>, String> {
    if text.eq_ignore_ascii_case("lzf") {
        return Ok(Some(Choice::lzf(0)));
    }
    let choice = Choice::new(&text.to_ascii_lowercase(), None, 0).map_err(|error| error.to_string())?;
    Ok(Some(choice).filter(Choice::compresses))
}

pub(super) fn list_codec_name(codec: Option<Choice>) -> &'static str {
    codec.map_or("none", |codec| codec.codec().name())
}

/// The value of a name in a table, whatever its case.
fn named<T: Copy>(rows: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = rows.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|row| row.1).ok_or_else(|| {
        let names: Vec<_> = rows.iter().map(|row| row.0).collect();
        format!("argument(s) must be one of the following: {}", names.join(", "))
    })
}

/// The name of a value in a table.
fn name_of<T: PartialEq>(rows: &[(&'static str, T)], value: T) -> &'static str {
    rows.iter().find(|row| row.1 == value).map_or("", |row| row.0)
}

/// The uses of dictionaries, by their names.
const DICTIONARY_USES: [(&str, DictionaryUse); 3] =
    [("yes", DictionaryUse::Learned), ("fixed", DictionaryUse::Fixed), ("no", DictionaryUse::None)];

pub(super) fn dictionary_use(text: &str) -> Result<DictionaryUse, String> {
    named(&DICTIONARY_USES, text)
}

pub(super) fn dictionary_use_name(used: DictionaryUse) -> &'static str {
    name_of(&DICTIONARY_USES, used)
}

/// The rules for certificates of clients, by their names.
const TLS_CLIENTS: [(&str, TlsClients); 3] =
    [("yes", TlsClients::Required), ("optional", TlsClients::Optional), ("no", TlsClients::Unverified)];

pub(super) fn tls_clients(text: &str) -> Result<TlsClients, String> {
    named(&TLS_CLIENTS, text)
}

pub(super) fn tls_clients_name(clients: TlsClients) -> &'static str {
    name_of(&TLS_CLIENTS, clients)
}

/// The versions of TLS, by their names in either order.
const TLS_PROTOCOLS: [(&str, TlsProtocols); 4] = [
    ("TLSv1.2 TLSv1.3", TlsProtocols::Both),
    ("TLSv1.3 TLSv1.2", TlsProtocols::Both),
    ("TLSv1.2", TlsProtocols::Tls12),
    ("TLSv1.3", TlsProtocols::Tls13),
];

pub(super) fn tls_protocols(text: &str) -> Result<TlsProtocols, String> {
    named(&TLS_PROTOCOLS, text)
        .map_err(|_| "must be TLSv1.2, TLSv1.3 or both, separated by a space".to_owned())
}

pub(super) fn tls_protocols_name(protocols: TlsProtocols) -> &'static str {
    name_of(&TLS_PROTOCOLS, protocols)
}

/// Permissions of a file in octal digits; 0 leaves them to the system, as in Valkey.
pub(super) fn permissions(text: &str) -> Result<Option<u32>, String> {
    match u32::from_str_radix(text, 8) {
        Ok(0) => Ok(None),
        Ok(mode) if mode <= 0o777 => Ok(Some(mode)),
        _ => Err("must be permissions in octal digits, such as 770".to_owned()),
    }
}

pub(super) fn permissions_text(mode: Option<u32>) -> String {
    format!("{:o}", mode.unwrap_or(0))
}

/// The kinds of durability, by their names.
const DURABILITIES: [(&str, Durability); 3] =
    [("fsync", Durability::Fsync), ("batched", Durability::Batched), ("none", Durability::None)];

pub(super) fn durability(text: &str) -> Result<Durability, String> {
    named(&DURABILITIES, text)
}

pub(super) fn durability_name(durability: Durability) -> &'static str {
    name_of(&DURABILITIES, durability)
}

/// The forms of the log, by their names.
const LOG_FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

pub(super) fn log_format(text: &str) -> Result<LogFormat, String> {
    named(&LOG_FORMATS, text)
}

pub(super) fn log_format_name(format: LogFormat) -> &'static str {
    name_of(&LOG_FORMATS, format)
}

/// The ways to take the version of a payload, by their names.
const VERSION_CHECKS: [(&str, VersionCheck); 2] =
    [("strict", VersionCheck::Strict), ("relaxed", VersionCheck::Relaxed)];

pub(super) fn version_check(text: &str) -> Result<VersionCheck, String> {
    named(&VERSION_CHECKS, text)
}

pub(super) fn version_check_name(check: VersionCheck) -> &'static str {
    name_of(&VERSION_CHECKS, check)
}

pub(super) fn number(text: &str) -> Result<i64, String> {
    parse_integer(text.as_bytes()).ok_or_else(|| "argument couldn't be parsed into an integer".to_owned())
}

pub(super) fn in_range<N: TryFrom<i64>>(text: &str, range: RangeInclusive<i64>) -> Result<N, String> {
    check(number(text)?, range)
}

pub(super) fn bytes_in_range(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = i64::try_from(bytes(text)?).unwrap_or(i64::MAX);
    check(number, *range.start() as i64..=*range.end() as i64)
}

pub(super) fn check<N: TryFrom<i64>>(number: i64, range: RangeInclusive<i64>) -> Result<N, String> {
    let fitting = range.contains(&number).then(|| N::try_from(number).ok()).flatten();
    fitting.ok_or_else(|| format!("argument must be between {} and {} inclusive", range.start(), range.end()))
}

/// From what on something is logged.
pub(super) fn threshold(text: &str) -> Result<i64, String> {
    in_range(text, -1..=i64::MAX)
}

pub(super) fn log_length(text: &str) -> Result<usize, String> {
    in_range(text, 0..=i64::MAX)
}

pub(super) fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        _ if text.eq_ignore_ascii_case("yes") => Ok(true),
        _ if text.eq_ignore_ascii_case("no") => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

/// Whether users may use all channels until a rule says otherwise.
pub(super) fn all_channels(text: &str) -> Result<bool, String> {
    match text {
        _ if text.eq_ignore_ascii_case("allchannels") => Ok(true),
        _ if text.eq_ignore_ascii_case("resetchannels") => Ok(false),
        _ => Err("argument(s) must be one of the following: allchannels, resetchannels".to_owned()),
    }
}

pub(super) fn allowed(text: &str) -> Result<Allowed, String> {
    let found = Allowed::NAMES.iter().find(|(_, name)| text.eq_ignore_ascii_case(name));
    found.map(|(allowed, _)| *allowed).ok_or_else(|| "argument must be one of: no, local, yes".to_owned())
}

pub(super) fn allowed_name(allowed: Allowed) -> &'static str {
    Allowed::NAMES.iter().find(|(known, _)| *known == allowed).map_or("no", |(_, name)| name)
}

pub(super) fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let percentiles = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
    let percentiles =
        percentiles.map_err(|_| "Invalid latency-tracking-info-percentiles parameters".to_owned())?;
    if percentiles.iter().all(|percentile| (0.0..=100.0).contains(percentile)) {
        return Ok(percentiles);
    }
    Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".to_owned())
}

pub(super) fn words(numbers: &[f64]) -> String {
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

pub(super) fn bytes(text: &str) -> Result<u64, String> {
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

/// A codec of this build, or `auto`.
pub(super) fn codec(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    if name != AUTO {
        Choice::new(&name, None, 0)
            .map_err(|error| format!("{error}; or auto, for what suits the values"))?;
    }
    Ok(name)
}

/// Bytes, or percent of max-memory.
pub(super) fn client_memory(text: &str) -> Result<ClientMemory, String> {
    match text.strip_suffix('%') {
        Some(percent) => in_range(percent, 1..=100).map(ClientMemory::Percent),
        None => bytes(text).map(ClientMemory::Bytes),
    }
}

pub(super) fn client_memory_text(memory: ClientMemory) -> String {
    match memory {
        ClientMemory::Bytes(bytes) => bytes.to_string(),
        ClientMemory::Percent(percent) => format!("{percent}%"),
    }
}

pub(super) fn policy(text: &str) -> Result<EvictionPolicy, String> {
    EvictionPolicy::from_name(text).ok_or_else(|| {
        let names: Vec<_> = EvictionPolicy::names().collect();
        format!("argument(s) must be one of the following: {}", names.join(", "))
    })
}

pub(super) fn level(text: &str) -> Result<Option<i32>, String> {
    if text.eq_ignore_ascii_case("default") {
        return Ok(None);
    }
    let level: i32 = text.parse().map_err(|_| "must be a number or `default`".to_owned())?;
    let levels = || codecs().filter(|codec| codec.is_for_values()).map(Codec::levels);
    let (least, most) =
        (levels().map(|levels| *levels.start()).min(), levels().map(|levels| *levels.end()).max());
    match (least, most) {
        (Some(least), Some(most)) if !(least..=most).contains(&level) => {
            Err(format!("must be from {least} to {most}, or `default`"))
        }
        _ => Ok(Some(level)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_primary_has_a_host_and_a_port_and_is_shown_as_it_is_written() {
        for (text, host, port, shown) in [
            ("10.0.0.7:6379", "10.0.0.7", 6379, "10.0.0.7:6379"),
            ("10.0.0.7 6379", "10.0.0.7", 6379, "10.0.0.7:6379"),
            ("[::1]:7000", "::1", 7000, "[::1]:7000"),
            ("::1 7000", "::1", 7000, "[::1]:7000"),
            ("cache.example:1", "cache.example", 1, "cache.example:1"),
        ] {
            let read = primary(text).unwrap();
            assert_eq!(read, Some(Primary { host: host.to_owned(), port }), "{text}");
            assert_eq!(primary_text(read.as_ref()), shown);
        }
        assert_eq!(primary(""), Ok(None));
        for wrong in ["6379", ":6379", "host:0", "host:65536", "::1:7000", "a b:1", "host ", "[]:1", "[a]b:1"]
        {
            assert!(primary(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentiles_are_numbers_up_to_a_hundred() {
        assert_eq!(percentiles("50 99.9 100"), Ok(vec![50.0, 99.9, 100.0]));
        assert_eq!(percentiles(""), Ok(Vec::new()));
        for wrong in ["50 x", "-1", "100.1", "nan"] {
            assert!(percentiles(wrong).is_err(), "{wrong}");
        }
    }
}
