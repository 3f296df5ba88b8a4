//! What a client may do that has yet to give the password, and how it gives it: by SASL PLAIN in binary, and in text by a
//! `set` whose value is the user's name and the password (protocol.txt, "Authentication").

use snugly_memcached::{Operation, Refusal, ReplyForm, StoreMode};

use super::MEMCACHED_VERSION;
use crate::commands::{self, Context, Wait};
use crate::counters::MemcachedEvent;

/// How ACL LOG shows logins in these protocols.
const WAY: &[u8] = b"memcached";
/// The only way to authenticate.
const MECHANISM: &str = "PLAIN";

/// Runs a request of a client that has yet to give the password.
pub(super) fn execute(
    context: &mut Context<'_>,
    operation: &Operation<'_>,
    form: &ReplyForm<'_>,
) -> Option<Wait> {
    let out = context.replies.as_mut_vec();
    match operation {
        Operation::Authenticate { mechanism, response, .. } => {
            return log_in(context, mechanism, response, form);
        }
        Operation::Store(store) if store.mode == StoreMode::Set && form.is_text() => {
            let space = store.value.iter().position(|&byte| byte == b' ');
            let words = space.and_then(|space| store.value.split_at_checked(space + 1));
            return match words {
                Some((user, password)) if !password.is_empty() => {
                    check(context, &user[..user.len() - 1], password, form)
                }
                _ => {
                    form.client_error("bad authentication token format", out);
                    None
                }
            };
        }
        Operation::ListMechanisms => list_mechanisms(context, form),
        Operation::Quit => {
            form.quit(out);
            context.client.closing = true;
        }
        Operation::Version if !form.is_text() => form.version(MEMCACHED_VERSION, out),
        Operation::Refused(refused) => {
            match refused.refusal {
                Refusal::BadDataChunk => form.client_error("bad command line termination", out),
                _ if form.is_text() => form.unauthenticated(out),
                refusal => form.refused(refusal, out),
            }
            context.client.closing |= refused.closes;
        }
        _ => form.unauthenticated(out),
    }
    None
}

/// Tells the ways to authenticate; without a password there is nothing to log into, as in memcached.
pub(super) fn list_mechanisms(context: &mut Context<'_>, form: &ReplyForm<'_>) {
    match has_password(context) {
        true => form.mechanisms(MECHANISM, context.replies.as_mut_vec()),
        false => form.refused(Refusal::UnknownCommand, context.replies.as_mut_vec()),
    }
}

fn has_password(context: &Context<'_>) -> bool {
    !context.server.accounts().users().default_user().needs_no_password
}

/// Authenticates by SASL.
pub(super) fn log_in(
    context: &mut Context<'_>,
    mechanism: &[u8],
    response: &[u8],
    form: &ReplyForm<'_>,
) -> Option<Wait> {
    if !has_password(context) {
        form.refused(Refusal::UnknownCommand, context.replies.as_mut_vec());
        return None;
    }
    // RFC 4616: an identity, the name and the password, with NUL between them.
    let mut parts = response.splitn(3, |&byte| byte == 0).skip(1);
    match (mechanism == MECHANISM.as_bytes(), parts.next(), parts.next()) {
        (true, Some(user), Some(password)) => check(context, user, password, form),
        _ => {
            form.authentication_failed(context.replies.as_mut_vec());
            None
        }
    }
}

fn check(context: &mut Context<'_>, user: &[u8], password: &[u8], form: &ReplyForm<'_>) -> Option<Wait> {
    context.stats.memcached.count(MemcachedEvent::Login);
    match commands::authenticate(context, WAY, user, password) {
        Ok(()) => {
            form.authenticated(context.replies.as_mut_vec());
            None
        }
        Err(failure) => {
            context.stats.memcached.count(MemcachedEvent::LoginError);
            form.authentication_failed(context.replies.as_mut_vec());
            failure.wait()
        }
    }
}
