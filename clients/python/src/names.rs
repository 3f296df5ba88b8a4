//! Commands for this transport: those of the table, since the effects of others are not known, with some
//! exceptions.

use std::sync::LazyLock;

use snugly_commands::{Command, command, commands};

/// Whether each command, by its number, may share a connection if its name has no further words.
static SHARED: LazyLock<Vec<bool>> =
    LazyLock::new(|| commands().iter().map(|command| may_share(command.name(), command.name())).collect());

/// A command that may share a connection with others, by its name as valkey-py writes it: in capitals, perhaps with
/// further words.
pub(crate) fn shared(name: &str) -> Option<&'static Command> {
    if let Some((first, _)) = name.split_once(' ') {
        return command(first.as_bytes()).filter(|command| command.name() == first && may_share(first, name));
    }
    command(name.as_bytes()).filter(|command| command.name() == name && SHARED[command.number()])
}

fn may_share(first: &str, name: &str) -> bool {
    match first {
        // Commands that wait: others would wait with them. WAIT and WAITAOF do so, since they are about what their own
        // connection has written.
        "BLMOVE" | "BLMOVEM" | "BLMPOP" | "BLPOP" | "BRPOP" | "BRPOPLPUSH" | "BZMPOP" | "BZPOPMAX"
        | "BZPOPMIN" | "XREAD" | "XREADGROUP" => false,
        // Commands that are about a connection of their own, change how replies come, or have none or many.
        "ASKING" | "DEBUG" | "DISCARD" | "EXEC" | "HELLO" | "MONITOR" | "MULTI" | "PSUBSCRIBE" | "PSYNC"
        | "PUNSUBSCRIBE" | "QUIT" | "REPLCONF" | "RESET" | "SHUTDOWN" | "SSUBSCRIBE" | "SUBSCRIBE"
        | "SUNSUBSCRIBE" | "SYNC" | "UNSUBSCRIBE" | "UNWATCH" | "WATCH" => false,
        "CLIENT" => matches!(
            name,
            "CLIENT GETNAME"
                | "CLIENT GETREDIR"
                | "CLIENT ID"
                | "CLIENT INFO"
                | "CLIENT KILL"
                | "CLIENT LIST"
                | "CLIENT NO-EVICT"
                | "CLIENT NO-TOUCH"
                | "CLIENT PAUSE"
                | "CLIENT SETINFO"
                | "CLIENT SETNAME"
                | "CLIENT TRACKINGINFO"
                | "CLIENT UNBLOCK"
                | "CLIENT UNPAUSE"
        ),
        "SCRIPT" => name != "SCRIPT DEBUG",
        _ => true,
    }
}
