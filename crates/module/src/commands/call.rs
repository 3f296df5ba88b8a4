//! A command of the module that runs in the place of one of the server's.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::slice;

use super::keys::Keys;
use super::plain::is_envelope;
use crate::guard;
use crate::server::table::{CommandFunction, Ctx, Str};
use crate::server::{CallReply, Caller, Context, OpenKey, OwnedText, Text};

/// Prefix of the module's commands.
pub const PREFIX: &str = "snugly.";
/// Prefix of those that ask for the rights to the original.
pub const CHECKED_PREFIX: &str = "snugly.checked.";

/// A command as it is registered: its name, and what the server calls.
pub struct Entry {
    pub name: &'static CStr,
    pub run: CommandFunction,
}

/// What a command of the module knows of the original.
pub struct Original {
    pub name: &'static CStr,
    pub keys: Keys,
    /// Whether it runs for everybody, and so asks for the rights to the original.
    pub checked: bool,
    pub run: fn(&Call<'_>),
}

/// A command that runs.
pub struct Call<'a> {
    pub context: Context,
    original: &'static Original,
    /// The arguments, the name first.
    arguments: &'a [*mut Str],
    /// The user that the original is called for, where the user's rights have been asked for.
    caller: Option<Caller>,
    /// Whether one of the strings has just been seen to be an envelope.
    is_seen: bool,
}

/// Whether replicas and the append-only file are told of a command that is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// They are told nothing, or something else.
    None,
    /// They are told the command.
    Told,
}

/// What the filter has found out about the command that runs next.
#[derive(Clone, Copy, Default)]
pub struct Ticket {
    /// Whether its user may do everything.
    pub is_free: bool,
    /// Whether one of the strings that it reads is an envelope, so that it need not look before it opens a key, which counts
    /// as a use.
    pub is_seen: bool,
}

thread_local! {
    static TICKET: Cell<Ticket> = const { Cell::new(Ticket { is_free: false, is_seen: false }) };
}

/// Leaves a ticket for the command that runs next. One that runs later, from a transaction or after a pause, finds none, and
/// asks and looks itself.
pub fn leave_ticket(ticket: Ticket) {
    TICKET.set(ticket);
}

/// Text that ends with a zero, as the server wants it.
pub const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text ends with its only zero"),
    }
}

/// The [`Entry`] of a command with this prefix.
macro_rules! entry {
    ($prefix:literal, $name:literal, $checked:literal, $keys:expr, $run:path) => {{
        static ORIGINAL: $crate::commands::call::Original = $crate::commands::call::Original {
            name: $crate::commands::call::c_text(concat!($name, "\0")),
            keys: $keys,
            checked: $checked,
            run: $run,
        };

        unsafe extern "C" fn run(
            context: *mut $crate::server::table::Ctx,
            arguments: *mut *mut $crate::server::table::Str,
            len: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the server calls this with a context and so many arguments.
            unsafe { $crate::commands::call::run(&ORIGINAL, context, arguments, len) }
        }

        $crate::commands::call::Entry {
            name: $crate::commands::call::c_text(concat!($prefix, $name, "\0")),
            run,
        }
    }};
}
pub(super) use entry;

/// Runs a command of the module.
///
/// # Safety
/// The server has called one of its entries with these.
pub unsafe fn run(
    original: &'static Original,
    context: *mut Ctx,
    arguments: *mut *mut Str,
    len: c_int,
) -> c_int {
    // SAFETY: the server keeps all of them until this returns.
    let (context, arguments) =
        unsafe { (Context::from_raw(context), slice::from_raw_parts(arguments, len as usize)) };
    guard::answered(context, || {
        if let Some(call) = Call::permitted(context, original, arguments) {
            (original.run)(&call);
        }
    })
}

impl<'a> Call<'a> {
    /// The command, unless its user may not run the original: then this has replied.
    fn permitted(
        context: Context,
        original: &'static Original,
        arguments: &'a [*mut Str],
    ) -> Option<Call<'a>> {
        let ticket = TICKET.take();
        let mut call = Call { context, original, arguments, caller: None, is_seen: ticket.is_seen };
        if original.keys.are_several() && context.is_in_cluster() && !call.is_in_one_slot() {
            // The server would refuse the original in other words, and calls after it as well.
            context.reply_error("CROSSSLOT Keys in request don't hash to the same slot");
            return None;
        }
        if ticket.is_free && !original.checked {
            return Some(call);
        }
        let Some(name) = context.user() else { return Some(call) };
        let Some(caller) = Caller::named(name.as_text()) else {
            context.reply_error("NOPERM this user's rules are unknown to the server's access list");
            return None;
        };
        let name = OwnedText::new(original.name.to_bytes());
        let asked: Vec<_> =
            [name.as_text().raw()].into_iter().chain(arguments[1..].iter().copied()).collect();
        let may_run = caller.may_run(&asked, context.database());
        context.act_for(&caller);
        call.caller = Some(caller);
        if may_run {
            return Some(call);
        }
        call.refuse();
        None
    }

    /// Whether all keys are in one slot of a cluster.
    fn is_in_one_slot(&self) -> bool {
        let is_word =
            |&at: &usize| self.original.keys.behind.is_some_and(|word| self.is(at, word.to_bytes()));
        let behind = (1..self.len().saturating_sub(1)).filter(is_word).map(|at| self.get(at + 1));
        let mut slots = self.keys().chain(behind).map(Text::slot);
        let first = slots.next();
        slots.all(|slot| Some(slot) == first)
    }

    /// Replies as the server does to a user without the right. It writes its log of refusals, too.
    fn refuse(&self) {
        let reply = self.forward(Copies::None);
        let text = reply.as_ref().and_then(|reply| reply.error()).unwrap_or(b"NOPERM no permission");
        let text = String::from_utf8_lossy(text);
        let reason = text.strip_prefix("NOPERM ").unwrap_or(&text);
        if self.context.is_in_script() {
            self.context.reply_error(&format!("ERR ACL failure in script: {reason}"));
        } else if self.context.is_in_transaction() {
            let reason = match reason.contains(" to run the ") {
                true => "no permission to execute the command or subcommand",
                false => "no permission to touch the specified keys",
            };
            self.context.reply_error(&format!(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
                 command is no longer allowed for the following reason: {reason}"
            ));
        } else {
            self.context.reply_error(&text);
        }
    }

    /// The arguments, the name first.
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// An argument.
    pub fn get(&self, at: usize) -> Text<'a> {
        // SAFETY: the server keeps the arguments until the command ends.
        unsafe { Text::from_raw(self.arguments[at]) }
    }

    /// Whether an argument is this word, in any case.
    pub fn is(&self, at: usize, word: &[u8]) -> bool {
        self.get(at).bytes().eq_ignore_ascii_case(word)
    }

    /// Opens a key for reading, if its string is an envelope. A key that is not opened is not used.
    pub fn open_envelope(&self, name: Text<'_>) -> Option<OpenKey> {
        if self.is_seen || OpenKey::look(self.context, name).is_some_and(|key| is_envelope(&key)) {
            return OpenKey::read(self.context, name).filter(is_envelope);
        }
        None
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = Text<'a>> {
        self.original.keys.among(self.len()).map(|at| self.get(at))
    }

    /// Calls the original with the same arguments.
    pub fn forward(&self, copies: Copies) -> Option<CallReply<'a>> {
        self.forward_with(copies, &self.arguments[1..])
    }

    /// Calls the original with other arguments, the name left out.
    pub fn forward_with(&self, copies: Copies, arguments: &[*mut Str]) -> Option<CallReply<'a>> {
        let format = match (copies, &self.caller) {
            (Copies::None, None) => c"0Ev",
            (Copies::None, Some(_)) => c"0ECv",
            (Copies::Told, None) => c"!0Ev",
            (Copies::Told, Some(_)) => c"!0ECv",
        };
        self.context.call(self.original.name, format, arguments)
    }

    /// Calls the original and replies as it does.
    pub fn answer(&self, copies: Copies) {
        match self.forward(copies) {
            Some(reply) => self.context.reply_as(&reply),
            None => self.no_reply(),
        }
    }

    /// The arguments, the name left out.
    pub fn arguments(&self) -> &'a [*mut Str] {
        &self.arguments[1..]
    }

    /// Replies that the server has not: it calls no command without a reply but for lack of memory.
    pub fn no_reply(&self) {
        self.context.reply_error("SNUGLY the server did not run the command");
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.caller.is_some() {
            self.context.act_for_nobody();
        }
    }
}
