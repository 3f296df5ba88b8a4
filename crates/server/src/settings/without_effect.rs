//! Settings of Valkey's that scripts and frameworks set everywhere, and that have nothing to do here: accepted, kept and
//! shown, so that whoever sets them goes on. What would promise something that is not kept is refused, with the reason.
//!
//! It knows names, values and Valkey's bounds. It has no effect on anything.

use std::collections::BTreeMap;

use super::parsing::{bytes, check, in_range, yes_or_no};

/// The values that were set, by name; what is not here has Valkey's default.
pub(crate) type Kept = BTreeMap<&'static str, String>;

/// A setting of Valkey's 9.1 without effect here.
pub(crate) struct WithoutEffect {
    pub(crate) name: &'static str,
    default: &'static str,
    form: Form,
}

/// The values that Valkey takes.
enum Form {
    YesOrNo,
    Number(i64, i64),
    /// A number, of which Valkey keeps what is sensible.
    Hertz,
    /// Bytes, from this number on.
    Bytes(i64),
    OneOf(&'static [&'static str]),
    /// Pairs of seconds and changes.
    SavePoints,
    /// The default alone, for this reason.
    DefaultOnly(&'static str),
}

const INT_MAX: i64 = i32::MAX as i64;
const NO_APPEND_ONLY_FILE: &str =
    "what is kept on disk is chosen at the start, by --storage and --durability";
const NO_REPLICAS: &str = "there are no replicas, so no write could be acknowledged by one";

#[rustfmt::skip]
const ROWS: &[WithoutEffect] = &[
    row("active-defrag-cycle-max", "25", Form::Number(1, 99)),
    row("active-defrag-cycle-min", "1", Form::Number(1, 99)),
    row("active-defrag-ignore-bytes", "104857600", Form::Bytes(1)),
    row("active-defrag-max-scan-fields", "1000", Form::Number(1, i64::MAX)),
    row("active-defrag-threshold-lower", "10", Form::Number(0, 1000)),
    row("active-defrag-threshold-upper", "100", Form::Number(0, 1000)),
    row("active-expire-effort", "1", Form::Number(1, 10)),
    row("activedefrag", "no", Form::YesOrNo),
    row("activerehashing", "yes", Form::YesOrNo),
    row("aof-rewrite-incremental-fsync", "yes", Form::YesOrNo),
    row("appendfsync", "everysec", Form::OneOf(&["everysec", "always", "no"])),
    row("appendonly", "no", Form::DefaultOnly(NO_APPEND_ONLY_FILE)),
    row("auto-aof-rewrite-min-size", "67108864", Form::Bytes(0)),
    row("auto-aof-rewrite-percentage", "100", Form::Number(0, INT_MAX)),
    row("hash-max-listpack-entries", "512", Form::Number(0, i64::MAX)),
    row("hash-max-listpack-value", "64", Form::Bytes(0)),
    row("hll-sparse-max-bytes", "3000", Form::Bytes(0)),
    row("hz", "10", Form::Hertz),
    row("jemalloc-bg-thread", "yes", Form::YesOrNo),
    row("lazyfree-lazy-eviction", "yes", Form::YesOrNo),
    row("lazyfree-lazy-expire", "yes", Form::YesOrNo),
    row("lazyfree-lazy-server-del", "yes", Form::YesOrNo),
    row("lazyfree-lazy-user-del", "yes", Form::YesOrNo),
    row("lazyfree-lazy-user-flush", "yes", Form::YesOrNo),
    row("lfu-decay-time", "1", Form::Number(0, INT_MAX)),
    row("lfu-log-factor", "10", Form::Number(0, INT_MAX)),
    row("maxmemory-eviction-tenacity", "10", Form::Number(0, 100)),
    row("maxmemory-samples", "5", Form::Number(1, 64)),
    row("min-replicas-max-lag", "10", Form::Number(0, INT_MAX)),
    row("min-replicas-to-write", "0", Form::DefaultOnly(NO_REPLICAS)),
    row("no-appendfsync-on-rewrite", "no", Form::YesOrNo),
    row("rdb-save-incremental-fsync", "yes", Form::YesOrNo),
    row("rdbcompression", "yes", Form::YesOrNo),
    row("repl-backlog-ttl", "3600", Form::Number(0, i64::MAX)),
    row("repl-disable-tcp-nodelay", "no", Form::YesOrNo),
    row("save", "", Form::SavePoints),
    row("set-max-intset-entries", "512", Form::Number(0, i64::MAX)),
    row("set-max-listpack-entries", "128", Form::Number(0, i64::MAX)),
    row("set-max-listpack-value", "64", Form::Number(0, i64::MAX)),
    row("stop-writes-on-bgsave-error", "yes", Form::YesOrNo),
    row("stream-node-max-bytes", "4096", Form::Bytes(0)),
    row("stream-node-max-entries", "100", Form::Number(0, i64::MAX)),
    row("zset-max-listpack-entries", "128", Form::Number(0, i64::MAX)),
    row("zset-max-listpack-value", "64", Form::Bytes(0)),
];

/// Other names of these, as Valkey has them.
const ALIASES: &[(&str, &str)] = &[
    ("hash-max-ziplist-entries", "hash-max-listpack-entries"),
    ("hash-max-ziplist-value", "hash-max-listpack-value"),
    ("min-slaves-max-lag", "min-replicas-max-lag"),
    ("min-slaves-to-write", "min-replicas-to-write"),
    ("zset-max-ziplist-entries", "zset-max-listpack-entries"),
    ("zset-max-ziplist-value", "zset-max-listpack-value"),
];

const fn row(name: &'static str, default: &'static str, form: Form) -> WithoutEffect {
    WithoutEffect { name, default, form }
}

/// All names, with what CONFIG GET shows for them.
pub(crate) fn shown(kept: &Kept) -> impl Iterator<Item = (&'static str, &str)> {
    let aliases = ALIASES.iter().filter_map(|(alias, _)| find(alias.as_bytes()));
    let names = ROWS.iter().map(|row| (row.name, row)).chain(aliases);
    names.map(|(name, row)| (name, kept.get(row.name).map_or(row.default, String::as_str)))
}

/// The setting of this name or alias, in any case, and that name.
pub(crate) fn find(asked: &[u8]) -> Option<(&'static str, &'static WithoutEffect)> {
    let is_asked = |name: &str| name.as_bytes().eq_ignore_ascii_case(asked);
    let alias = ALIASES.iter().find(|(alias, _)| is_asked(alias));
    let row =
        ROWS.iter().find(|row| alias.map_or_else(|| is_asked(row.name), |(_, name)| row.name == *name))?;
    Some((alias.map_or(row.name, |(alias, _)| alias), row))
}

impl WithoutEffect {
    /// The value as CONFIG GET is to show it.
    ///
    /// # Errors
    /// Why it is refused, in Valkey's words where Valkey refuses it.
    pub(crate) fn read(&self, value: &str) -> Result<String, String> {
        match self.form {
            Form::YesOrNo => yes_or_no(value).map(|is| if is { "yes" } else { "no" }.to_owned()),
            Form::Number(least, most) => {
                in_range::<i64>(value, least..=most).map(|number| number.to_string())
            }
            Form::Hertz => in_range::<i64>(value, 0..=INT_MAX).map(|number| number.clamp(1, 500).to_string()),
            Form::Bytes(least) => {
                let value = if value.is_empty() { "0" } else { value };
                let number = i64::try_from(bytes(value)?).unwrap_or(i64::MAX);
                check::<i64>(number, least..=i64::MAX).map(|number| number.to_string())
            }
            Form::OneOf(words) => {
                let found = words.iter().find(|word| word.eq_ignore_ascii_case(value));
                let refusal = || format!("argument(s) must be one of the following: {}", words.join(", "));
                found.map(|word| (*word).to_owned()).ok_or_else(refusal)
            }
            Form::SavePoints => save_points(value),
            Form::DefaultOnly(_) if value == self.default => Ok(value.to_owned()),
            Form::DefaultOnly(reason) => Err(reason.to_owned()),
        }
    }

    /// Keeps a value that was read; returns whether it is the first that is not the default.
    pub(crate) fn keep(&self, kept: &mut Kept, value: String) -> bool {
        if value == self.default {
            kept.remove(self.name);
            return false;
        }
        kept.insert(self.name, value).is_none()
    }
}

/// Pairs of seconds and of changes after which Valkey would save.
fn save_points(value: &str) -> Result<String, String> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let numbers = words.iter().map(|word| word.parse::<i64>()).collect::<Result<Vec<_>, _>>();
    let is_one = |pair: &[i64]| pair[0] >= 1 && pair[1] >= 0;
    match numbers {
        Ok(numbers) if numbers.len().is_multiple_of(2) && numbers.chunks(2).all(is_one) => {
            Ok(words.join(" "))
        }
        _ => Err("Invalid save parameters".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_setting_and_shown_as_it_is() {
        for row in ROWS {
            assert_eq!(row.read(row.default).as_deref(), Ok(row.default), "{}", row.name);
        }
        assert!(ROWS.is_sorted_by_key(|row| row.name) && ALIASES.is_sorted());
        assert_eq!(shown(&Kept::new()).count(), ROWS.len() + ALIASES.len(), "each alias is one of a row");
    }

    #[test]
    fn what_was_set_is_shown_under_both_names() {
        let (name, row) = find(b"MIN-slaves-max-lag").expect("an alias");
        assert_eq!(name, "min-slaves-max-lag");
        let kept = Kept::from([(row.name, row.read("7").expect("a number"))]);
        let seven: Vec<_> = shown(&kept).filter(|(_, value)| *value == "7").map(|(name, _)| name).collect();
        assert_eq!(seven, ["min-replicas-max-lag", "min-slaves-max-lag"]);
    }
}
