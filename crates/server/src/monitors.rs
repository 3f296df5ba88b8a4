//! The stream of MONITOR: every command that any connection runs, as a line of text to the clients that asked
//! for it.
//!
//! It knows lines and their receivers. Without any, a command costs one look at a number.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;
use snugly_net::Address;

use crate::clients::{ClientInfo, State};

/// Arguments are cut once a line is about this long. (In bytes; one byte may take four characters.)
const LONGEST_LINE: usize = 8 << 20;

/// The sender of a command.
#[derive(Clone, Copy)]
pub(crate) enum Sender<'a> {
    Client(&'a Address),
    Script,
}

/// The connections that watch.
#[derive(Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    watching: RwLock<Vec<Arc<ClientInfo>>>,
}

impl Monitors {
    /// Returns whether anybody watches.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Registers a connection; returns false if it was already.
    pub(crate) fn enter(&self, client: &Arc<ClientInfo>) -> bool {
        if client.states.replace(State::MONITOR, true) {
            return false;
        }
        let mut watching = self.watching.write();
        watching.push(client.clone());
        self.count.store(watching.len(), Ordering::Relaxed);
        true
    }

    /// Ends a connection's watch, if it has one.
    pub(crate) fn leave(&self, client: &Arc<ClientInfo>) {
        if !client.states.replace(State::MONITOR, false) {
            return;
        }
        let mut watching = self.watching.write();
        watching.retain(|other| !Arc::ptr_eq(other, client));
        self.count.store(watching.len(), Ordering::Relaxed);
    }

    /// Shows everybody who watches a command that has run.
    pub(crate) fn show<'a>(
        &self,
        database: usize,
        sender: Sender<'_>,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        let line = line(SystemTime::now(), database, sender, args, LONGEST_LINE);
        self.watching.read().iter().for_each(|client| client.tell(line.as_bytes()));
    }
}

/// A simple string such as `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`.
fn line<'a>(
    now: SystemTime,
    database: usize,
    sender: Sender<'_>,
    args: impl ExactSizeIterator<Item = &'a [u8]>,
    longest: usize,
) -> String {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let sender = match sender {
        Sender::Client(Address::Tcp(address)) => address.to_string(),
        Sender::Client(Address::Unix(path)) => format!("unix:{}", path.display()),
        Sender::Script => "lua".to_owned(),
    };
    let mut line = format!("+{}.{:06} [{database} {sender}]", now.as_secs(), now.subsec_micros());
    let count = args.len();
    for (number, arg) in args.enumerate() {
        let room = longest.saturating_sub(line.len());
        // Writing to a String cannot fail.
        if room == 0 {
            let _ = write!(line, " \"... ({} more arguments)\"", count - number);
            break;
        }
        line.push_str(" \"");
        escape(&arg[..arg.len().min(room)], &mut line);
        if arg.len() > room {
            let _ = write!(line, "... ({} more bytes)", arg.len() - room);
        }
        line.push('"');
    }
    line.push_str("\r\n");
    line
}

/// Bytes as Valkey prints them between quotes.
fn escape(bytes: &[u8], line: &mut String) {
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => line.extend(['\\', byte.into()]),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            b' '..=b'~' => line.push(byte.into()),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(line, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn written(args: &[&[u8]], longest: usize) -> String {
        let now = UNIX_EPOCH + Duration::from_micros(1_339_518_083_007_412);
        line(
            now,
            3,
            Sender::Client(&Address::Tcp(([127, 0, 0, 1], 60866).into())),
            args.iter().copied(),
            longest,
        )
    }

    #[test]
    fn a_command_is_one_line_with_its_arguments_quoted() {
        assert_eq!(
            written(&[b"set", b"a\"\\ \n\r\t\x07\x08\x00\xff", b""], 1000),
            "+1339518083.007412 [3 127.0.0.1:60866] \"set\" \"a\\\"\\\\ \\n\\r\\t\\a\\b\\x00\\xff\" \"\"\r\n"
        );
    }

    #[test]
    fn what_makes_a_line_too_long_is_left_out_and_counted() {
        let head = "+1339518083.007412 [3 127.0.0.1:60866]";
        let written = written(&[b"set", &b"k".repeat(100), b"x", b"y"], head.len() + 20);
        assert_eq!(
            written,
            format!(
                "{head} \"set\" \"{}... (86 more bytes)\" \"... (2 more arguments)\"\r\n",
                "k".repeat(14)
            )
        );
    }
}
