//! RESP, the protocol of Redis and Valkey: requests that arrive together are run together, and their replies are sent
//! together.
//!
//! It knows requests and the command table. Commands themselves are for `commands`.

mod pipeline;

use snugly_protocol::resp::ReplyBuffer;
use snugly_store::StoreError;

use crate::commands::Failure;
pub(super) use pipeline::Pipeline;

/// The reply to a connection from elsewhere in protected mode.
pub(super) const DENIED: &[u8] = b"-DENIED Running in protected mode because protected mode is enabled and no password \
is set. In this mode connections are only accepted from the loopback interface. If you want to connect from external \
computers, you may adopt one of the following solutions: 1) Set a password with --password, or with 'CONFIG SET \
requirepass' from the loopback interface. 2) Disable protected mode with --protected-mode no, or with 'CONFIG SET \
protected-mode no' from the loopback interface; however MAKE SURE the server is not publicly accessible from internet \
if you do so.\r\n";

/// The reply to a connection for which there is no place.
pub(super) const TOO_MANY_CLIENTS: &[u8] = b"-ERR max number of clients reached\r\n";

/// The reply in the place of others that tell of a write that could not be kept.
pub(super) fn not_kept(error: &StoreError) -> Vec<u8> {
    let mut refusal = ReplyBuffer::default();
    refusal.error(Failure::not_on_disk(error).text());
    refusal.as_bytes().to_vec()
}
