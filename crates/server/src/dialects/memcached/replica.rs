//! Requests that a server refuses while it follows another one: changes, and everything about keys until those of its
//! primary are there.

use snugly_memcached::{Operation, ReplyForm};

use crate::commands::Context;

const READ_ONLY: &str = "this server is a read-only replica: write to its primary";
const LOADING: &str = "the server is loading the keys of its primary: try again later";

/// Returns why an operation is refused, if it is.
pub(super) fn refusal(context: &Context<'_>, operation: &Operation<'_>) -> Option<&'static str> {
    let replica = context.server.replica();
    if replica.refuses_writes() && operation.writes() {
        return Some(READ_ONLY);
    }
    let is_about_keys = operation.key().is_some() || operation.writes();
    (replica.is_loading() && is_about_keys).then_some(LOADING)
}

/// Returns whether clients may change keys.
pub(super) fn may_write(context: &Context<'_>) -> bool {
    !context.server.replica().refuses_writes() && !context.server.replica().is_loading()
}

/// Writes why an operation is refused.
pub(super) fn refuse(operation: &Operation<'_>, reason: &str, form: &ReplyForm<'_>, out: &mut Vec<u8>) {
    match operation {
        // An error would end the values of other keys of the same line.
        Operation::Get(_) if !form.is_meta() => form.miss(out),
        _ => form.server_error(reason, out),
    }
}
