//! DEBUG: what testers ask for.

use std::time::Duration;

use snugly_protocol::resp::Args;
use snugly_store::ListStats;

use super::introspection::encoding_name;
use super::options::is;
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("debug", -2, Flags::ADMINISTRATION.and(Flags::PROTECTED), NO_KEYS, debug),
];

/// The bits of a time in seconds that Valkey keeps with a key.
const LRU_CLOCK: u64 = 0xff_ffff;

fn debug(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    match &args[1] {
        word if is(word, "HELP") && args.len() == 2 => reply_help(context, "debug"),
        // As in Valkey, where it ends the server; here it shows that a bug in a command ends its connection only.
        word if is(word, "PANIC") && args.len() == 2 => panic!("DEBUG PANIC was called"),
        word if is(word, "SLEEP") && args.len() == 3 => sleep(context, &args[2]),
        word if is(word, "OBJECT") && matches!(args.len(), 3 | 4) => object(context, args),
        word => Err(Failure::subcommand_syntax("debug", word)),
    }
}

/// Holds the connection up, and no other.
fn sleep(context: &mut Context<'_>, seconds: &[u8]) -> Outcome {
    let seconds: f64 = std::str::from_utf8(seconds).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let length = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    context.replies.simple("OK");
    Ok(Reply::after(length))
}

fn object(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let value = context.session.peek(context.client.database, &args[2])?;
    let value = value.ok_or(Failure::NO_SUCH_KEY)?;
    let list = value.list();
    let payload = value.record().map(|record| record.payload()).unwrap_or_default();
    let len = list.map_or(payload.len() as u64, |list| list.stored_bytes);
    let idle = u64::from(value.idle_seconds(context.session.now()));
    let length = match args.get(3) {
        Some(word) if is(word, "fast") => String::new(),
        _ => format!(" serializedlength:{len}"),
    };
    let nodes = list.filter(|list| list.is_large).map(|list| nodes(context, &list)).unwrap_or_default();
    context.replies.simple(format!(
        "Value at:{:p} refcount:1 encoding:{}{length} lru:{} lru_seconds_idle:{idle}{nodes}",
        payload.as_ptr(),
        encoding_name(args[2].len(), &value),
        (context.session.now() / 1000).saturating_sub(idle) & LRU_CLOCK,
    ));
    Ok(Reply::Now)
}

/// Valkey's description of a list that does not fit one listpack, and the dictionary that its nodes need.
fn nodes(context: &Context<'_>, list: &ListStats) -> String {
    let lists = context.server.store().settings().lists;
    let dictionary = list.dictionary.map(|number| format!(" ql_dictionary:{number}")).unwrap_or_default();
    format!(
        " ql_nodes:{} ql_avg_node:{:.2} ql_listpack_max:{} ql_compressed:{} ql_uncompressed_size:{}{dictionary}",
        list.nodes,
        list.elements as f64 / list.nodes as f64,
        lists.max_listpack_size.setting(),
        u8::from(lists.compress_depth > 0 && lists.compress_codec.is_some()),
        list.raw_bytes,
    )
}
