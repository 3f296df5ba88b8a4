//! Operations that are not about the value of one key: statistics, flush_all, the memory limit, version and the like.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use snugly_memcached::{KeyBuffer, Operation, Outcome, ReplyForm};
use snugly_store::{Expiry, StoreError};

use super::expiry::{expiry, seconds_left};
use super::{DATABASE, MEMCACHED_VERSION, fail, login};
use crate::commands::Context;
use crate::counters::MemcachedEvent;
use crate::info;
use crate::settings::SettingsError;
use crate::state::{ChangeError, Server};

pub(super) fn execute(
    context: &mut Context<'_>,
    operation: &Operation<'_>,
    form: &ReplyForm<'_>,
    key: &mut KeyBuffer,
) {
    match operation {
        Operation::FlushAll { delay } => {
            let now = context.session.now();
            context.stats.memcached.count(MemcachedEvent::Flush);
            match expiry(*delay, now) {
                Expiry::At(at) if at > now => context.server.delayed_flush.at(at),
                _ => flush(context),
            }
            form.ok(context.replies.as_mut_vec());
        }
        Operation::Stats { topic } => stats(context, topic, form),
        Operation::Version => form.version(MEMCACHED_VERSION, context.replies.as_mut_vec()),
        Operation::CacheMemoryLimit { megabytes } => limit_memory(context, *megabytes, form),
        Operation::NoOp => form.no_op(context.replies.as_mut_vec()),
        Operation::MetaDebug { key: named } => debug(context, named.bytes(key), form),
        Operation::Quit => {
            form.quit(context.replies.as_mut_vec());
            context.client.closing = true;
        }
        Operation::ListMechanisms => login::list_mechanisms(context, form),
        // The server's log has its own settings.
        _ => form.ok(context.replies.as_mut_vec()),
    }
}

fn flush(context: &mut Context<'_>) {
    context.server.delayed_flush.cancel();
    let flushed = context.session.flush(Some(DATABASE));
    context.server.freeing.free(flushed);
}

fn limit_memory(context: &mut Context<'_>, megabytes: u32, form: &ReplyForm<'_>) {
    let limited = context.server.change_configuration(|configuration| {
        configuration.max_memory = u64::from(megabytes) << 20;
        configuration.store_settings().map_err(|error| ChangeError::from(SettingsError::from(error)))
    });
    let out = context.replies.as_mut_vec();
    match limited {
        Ok(()) => form.ok(out),
        Err(error) => form.server_error(&error.to_string(), out),
    }
}

/// What is known about a key, in the words of memcached's `me`.
fn debug(context: &mut Context<'_>, key: &[u8], form: &ReplyForm<'_>) {
    let now = context.session.now();
    let fresh = context.session.new_version();
    // To look is no use.
    context.session.set_touches(false);
    let versioned = context.session.alter(DATABASE, key, |_, kept| {
        if kept.metadata.version == 0 {
            kept.metadata.version = fresh;
        }
        kept.metadata.version
    });
    let out = context.replies.as_mut_vec();
    let (value, version) = match versioned {
        Ok(Some(found)) => found,
        Ok(None) | Err(StoreError::WrongType) => return form.miss(out),
        Err(error) => return fail(context, &error, form),
    };
    let ttl = seconds_left(value.expiry(), now).map_or("-1".to_owned(), |seconds| seconds.to_string());
    let fetched = if value.was_read() { "yes" } else { "no" };
    let codec = value.record().map_or("none", |record| record.codec().name());
    form.debug(
        [
            ("exp", &ttl[..]),
            ("la", &value.idle_seconds(now).to_string()),
            ("cas", &version.to_string()),
            ("fetch", fetched),
            ("cls", "0"),
            ("size", &value.memory().to_string()),
            ("codec", codec),
        ],
        out,
    );
}

/// Names and values.
type Stats = Vec<(&'static str, String)>;
type Tell = fn(&Arc<Server>) -> Stats;

/// The topics of `stats` that memcached has as well. Those without a counterpart here are empty.
const TOPICS: &[(&str, Tell)] = &[
    ("", general),
    ("settings", settings),
    ("items", |_| Vec::new()),
    ("slabs", |_| Vec::new()),
    ("sizes", |_| vec![("sizes_status", "disabled".to_owned())]),
    ("conns", |_| Vec::new()),
];

fn stats(context: &mut Context<'_>, topic: &[u8], form: &ReplyForm<'_>) {
    let server = context.server;
    let out = context.replies.as_mut_vec();
    if topic == b"reset" {
        server.reset_stats();
        return form.reset(out);
    }
    if let Some((_, tell)) = TOPICS.iter().find(|(name, _)| name.as_bytes() == topic) {
        tell(server).iter().for_each(|(name, value)| form.stat(name, value, out));
        return form.end_stats(out);
    }
    // Sections of INFO have more: what compression saves, the disk, dictionaries.
    let text = info::section(server, topic);
    if text.is_empty() {
        return form.outcome(Outcome::UnknownTopic, out);
    }
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .for_each(|(name, value)| form.stat(name, value, out));
    form.end_stats(out);
}

fn general(server: &Arc<Server>) -> Stats {
    let stats = server.stats();
    let keys = server.store().database_stats(DATABASE).map_or(0, |stats| stats.keys);
    let workers = server.worker_stats();
    let connections = server.connections.totals();
    let configuration = server.configuration();
    let [user, system] = info::process_seconds();
    let mut all: Stats = vec![
        ("pid", std::process::id().to_string()),
        ("uptime", server.started.elapsed().as_secs().to_string()),
        ("time", SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string()),
        ("version", MEMCACHED_VERSION.to_owned()),
        ("snugly_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("pointer_size", usize::BITS.to_string()),
        ("rusage_user", format!("{user:.6}")),
        ("rusage_system", format!("{system:.6}")),
        ("max_connections", configuration.max_clients.to_string()),
        ("curr_connections", server.clients().len().to_string()),
        ("total_connections", connections.accepted.to_string()),
        ("rejected_connections", connections.refused.to_string()),
    ];
    all.extend(server.memcached_events().map(|(name, count)| (name, count.to_string())));
    all.extend([
        ("bytes_read", workers.iter().map(|worker| worker.bytes_in.get()).sum::<u64>().to_string()),
        ("bytes_written", workers.iter().map(|worker| worker.bytes_out.get()).sum::<u64>().to_string()),
        ("limit_maxbytes", configuration.max_memory.to_string()),
        ("accepting_conns", "1".to_owned()),
        ("threads", workers.len().to_string()),
        ("bytes", server.store().used_memory().to_string()),
        ("curr_items", keys.to_string()),
        ("total_items", stats.writes.to_string()),
        ("evictions", stats.evicted.to_string()),
        ("reclaimed", stats.expired.to_string()),
    ]);
    all
}

fn settings(server: &Arc<Server>) -> Stats {
    let configuration = server.configuration();
    let yes_or_no = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let has_password = !configuration.password.is_empty();
    vec![
        ("maxbytes", configuration.max_memory.to_string()),
        ("maxconns", configuration.max_clients.to_string()),
        ("tcpport", server.memcached_ports().first().copied().unwrap_or_default().to_string()),
        ("udpport", "0".to_owned()),
        ("inter", configuration.bind.clone()),
        (
            "evictions",
            if configuration.max_memory_policy.name() == "noeviction" { "off" } else { "on" }.to_owned(),
        ),
        ("num_threads", server.worker_stats().len().to_string()),
        ("cas_enabled", yes_or_no(true)),
        ("auth_enabled_sasl", yes_or_no(has_password)),
        ("auth_enabled_ascii", yes_or_no(has_password)),
        ("binding_protocol", "auto-negotiate".to_owned()),
        ("item_size_max", configuration.max_value_bytes.to_string()),
        ("flush_enabled", yes_or_no(true)),
    ]
}
