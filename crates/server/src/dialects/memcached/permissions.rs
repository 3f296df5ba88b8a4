//! Permissions of users, where requests are not commands: each is allowed to whoever may run the command that does the
//! same, on the same key in database 0.

use snugly_acl::Access;
use snugly_memcached::{Get, MAX_KEY, Operation, ReplyForm, StoreMode};

use crate::commands::{self, Context};

/// The command that does the same, and what it does with its key.
fn needs(operation: &Operation<'_>) -> Option<(&'static str, Access)> {
    Some(match operation {
        Operation::Get(Get { touch: None, vivify: None, recache: None, .. }) => ("get", Access::READ),
        Operation::Get(Get { vivify: None, .. }) => ("getex", Access::BOTH),
        Operation::Get(_) => ("set", Access::BOTH),
        Operation::Store(store) => match store.mode {
            StoreMode::Append | StoreMode::Prepend => ("append", Access::WRITE),
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => ("set", Access::WRITE),
        },
        Operation::Delete(_) => ("del", Access::WRITE),
        Operation::Arithmetic(_) => ("incrby", Access::BOTH),
        Operation::Touch { .. } => ("expire", Access::WRITE),
        Operation::MetaDebug { .. } => ("object|encoding", Access::READ),
        Operation::FlushAll { .. } => ("flushdb", Access::WRITE),
        Operation::Stats { .. } => ("info", Access::READ),
        Operation::CacheMemoryLimit { .. } => ("config|set", Access::WRITE),
        Operation::Version
        | Operation::Verbosity { .. }
        | Operation::NoOp
        | Operation::Quit
        | Operation::ListMechanisms
        | Operation::Authenticate { .. }
        | Operation::Refused(_) => return None,
    })
}

/// Returns whether the client's user may write a key.
pub(super) fn may_write(context: &mut Context<'_>, key: &[u8]) -> bool {
    !context.client.is_limited || commands::may(context, "set", Some((key, Access::WRITE)))
}

/// Returns whether the client's user may do this; if not, that is noted and answered.
pub(super) fn allow(context: &mut Context<'_>, operation: &Operation<'_>, form: &ReplyForm<'_>) -> bool {
    if !context.client.is_limited {
        return true;
    }
    let Some((command, access)) = needs(operation) else { return true };
    let mut buffer = [0; MAX_KEY];
    let key = operation.key().map(|key| (key.bytes(&mut buffer), access));
    if commands::may(context, command, key) {
        return true;
    }
    let out = context.replies.as_mut_vec();
    match operation {
        // An error would end the values of other keys of the same line.
        Operation::Get(_) => form.miss(out),
        _ => form.client_error("the user has no permission for this", out),
    }
    false
}
