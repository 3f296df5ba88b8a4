//! The command filter: sees every command before the server looks it up, on every way into the server.
//!
//! It replaces strings that a command stores, and the name of a command that has to work on restored strings. It knows
//! which commands do what, who sends them and who may send them; what runs instead is for [`commands`] to know.
//!
//! [`commands`]: crate::commands

use std::cell::RefCell;
use std::mem;
use std::time::{Duration, Instant};

use crate::background;
use crate::clients::{Clients, Origin};
use crate::commands::{
    CHECKED_PREFIX, Kind, LONGEST_NAME, Note, PREFIX, Row, TABLE, Ticket, Values, is_envelope, leave_ticket,
    make_portable,
};
use crate::dictionaries;
use crate::foreign::{Foreign, Place};
use crate::server::cluster::NodeId;
use crate::server::{Caller, Context, FilterContext, OpenKey, OwnedText};
use crate::values;

/// As many keys of one command are looked at; with more of them the module serves it in any case.
const MOST_LOOKS: usize = 8;

/// A command of the table, and the names that may stand in the place of its own.
struct Command {
    key: u128,
    row: &'static Row,
    original: OwnedText,
    unchecked: Option<OwnedText>,
    checked: Option<OwnedText>,
}

struct Filter {
    clients: Clients,
    /// Sorted by their keys.
    commands: Vec<Command>,
    /// Sees keys without being a client.
    looker: Context,
    /// The database that the looker has selected.
    database: u16,
    /// Commands that are not in the table.
    foreign: Foreign,
    /// The client that has sent a script last, or where there are foreign commands, any command: scripts run in its database.
    last_client: u64,
    /// Until then CLIENT PAUSE may keep commands waiting, so that what a look has found may change before they run.
    paused_until: Option<Instant>,
}

/// The client that has sent a command.
struct Sender {
    identity: u64,
    origin: Origin,
    in_transaction: bool,
}

/// The strings of a command that reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Plain,
    /// One of them at least is an envelope.
    Envelope,
}

thread_local! {
    static FILTER: RefCell<Option<Filter>> = const { RefCell::new(None) };
}

/// Prepares for commands. Looks at keys through this context, which lives as long as the module.
pub fn prepare(looker: Context) {
    let filter = Filter {
        clients: Clients::default(),
        commands: commands(),
        looker,
        database: 0,
        foreign: Foreign::default(),
        last_client: 0,
        paused_until: None,
    };
    FILTER.set(Some(filter));
}

/// Notes that the server may have other commands than before.
pub fn commands_changed(context: Context) {
    with(|filter| filter.foreign.refresh(context));
}

/// Makes strings envelopes again that a foreign command has found plain: it has run.
pub fn settle() {
    with(|filter| filter.settle());
}

/// Whether a client may have commands of the module in a transaction that is not executed yet.
pub fn has_transactions() -> bool {
    FILTER.with_borrow(|filter| filter.as_ref().is_some_and(|filter| filter.clients.have_transactions()))
}

/// Whether strings may come soon that were compressed some time ago: in commands that wait, or from a node that slots are taken
/// over from.
pub fn expects_strings() -> bool {
    FILTER.with_borrow_mut(|filter| {
        filter.as_mut().is_some_and(|filter| {
            let is_importing = !filter.looker.is_replica() && filter.clients.have_senders();
            is_importing || filter.clients.have_transactions() || filter.is_paused()
        })
    })
}

/// Forgets everything, at the module's end.
pub fn forget() {
    FILTER.set(None);
}

/// Filters a command, unless the module itself has called it.
pub fn filter(mut context: FilterContext<'_>) {
    if !Context::is_own_call() {
        with(|filter| filter.see(&mut context));
    }
}

/// Notes that a client has connected.
pub fn connected(identity: u64) {
    with(|filter| filter.clients.connected(identity));
}

/// Notes that a client is gone.
pub fn disconnected(identity: u64) {
    with(|filter| filter.clients.disconnected(identity));
}

/// Notes that time has passed, in which rights may have changed in ways that no command shows.
pub fn ticked() {
    with(|filter| filter.clients.rights_changed());
}

fn with(run: impl FnOnce(&mut Filter)) {
    FILTER.with(|filter| {
        // A command that the filter's own look at the server leads to is none of a client's.
        if let Ok(mut filter) = filter.try_borrow_mut() {
            filter.as_mut().map(run);
        }
    });
}

fn commands() -> Vec<Command> {
    let named = |row: &'static Row| Command {
        key: name_key(row.name.as_bytes()).expect("the table's names are short"),
        row,
        original: OwnedText::new(row.name.as_bytes()),
        unchecked: row.served.as_ref().map(|served| OwnedText::new(served.unchecked.name.to_bytes())),
        checked: row.served.as_ref().map(|served| OwnedText::new(served.checked.name.to_bytes())),
    };
    let mut commands: Vec<_> = TABLE.iter().map(named).collect();
    commands.sort_unstable_by_key(|command| command.key);
    commands
}

/// A name in any case as a number to be found by; `None` if it is longer than all in the table.
#[inline]
fn name_key(name: &[u8]) -> Option<u128> {
    let mut bytes = [0; LONGEST_NAME];
    bytes.get_mut(..name.len())?.copy_from_slice(name);
    bytes.make_ascii_lowercase();
    Some(u128::from_le_bytes(bytes))
}

/// The original's name in that of one of the module's own commands.
fn own(name: &[u8]) -> Option<&[u8]> {
    [CHECKED_PREFIX, PREFIX].iter().find_map(|prefix| {
        let (start, rest) = name.split_at_checked(prefix.len())?;
        start.eq_ignore_ascii_case(prefix.as_bytes()).then_some(rest)
    })
}

impl Filter {
    fn see(&mut self, context: &mut FilterContext<'_>) {
        leave_ticket(Ticket::default());
        self.settle();
        self.settle_dictionaries(context.client());
        if !self.foreign.is_empty() {
            self.note_client(context.client());
        }
        let name = context.get(0).bytes();
        let own = own(name);
        let Some(at) = self.find(own.unwrap_or(name)) else {
            if self.foreign.has(name) {
                self.prepare_foreign(context);
            }
            return;
        };
        if own.is_some() {
            // A client's command of the module's is the original, which the module may serve or not.
            if self.commands[at].row.served.is_none() {
                return;
            }
            context.replace(0, self.commands[at].original.held());
        }
        let row = self.commands[at].row;
        if let Kind::Note(note) = row.kind {
            return self.note(note, context);
        }
        if !row.takes(context.len()) {
            return;
        }
        let identity = context.client();
        let client = self.clients.get(identity, self.looker);
        let (origin, in_transaction) = (client.origin, client.in_transaction);
        match origin {
            Origin::Stored => meet(row.kind, context),
            Origin::Client | Origin::Inside => store(row.kind, context),
        }
        if row.served.is_some() && (!matches!(row.kind, Kind::Set) || has_own_options(context)) {
            self.serve(at, Sender { identity, origin, in_transaction }, context);
        }
    }

    #[inline]
    fn find(&self, name: &[u8]) -> Option<usize> {
        let key = name_key(name)?;
        self.commands.binary_search_by_key(&key, |command| command.key).ok()
    }

    fn settle(&mut self) {
        if !self.foreign.is_settled() {
            self.foreign.settle(self.looker);
            self.looker.select(self.database.into());
        }
    }

    /// Looks for dictionaries that came with functions, but not while the server changes these: it calls commands meanwhile.
    #[inline]
    fn settle_dictionaries(&mut self, identity: u64) {
        if dictionaries::are_unsettled() && self.clients.get(identity, self.looker).origin != Origin::Inside {
            dictionaries::settle(self.looker);
        }
    }

    fn note_client(&mut self, identity: u64) {
        if self.clients.get(identity, self.looker).origin != Origin::Inside {
            self.last_client = identity;
        }
    }

    /// Makes strings plain for a command that is not in the table, now or when its transaction is executed.
    fn prepare_foreign(&mut self, context: &FilterContext<'_>) {
        let identity = context.client();
        let sender = match self.clients.get(identity, self.looker).origin {
            Origin::Inside => self.last_client,
            Origin::Client | Origin::Stored => identity,
        };
        let database = self.clients.get(sender, self.looker).database(sender).unwrap_or(0);
        let places = Foreign::keys(self.looker, database, context);
        let client = self.clients.get(identity, self.looker);
        // Such a command may select another database for its client.
        client.forget_database();
        if client.in_transaction {
            client.queued.keys.extend(places);
        } else {
            self.foreign.prepare(self.looker, places);
            self.looker.select(self.database.into());
        }
    }

    /// Lets the strings that a command sends to another node be read there, now or when its transaction is executed.
    fn prepare_migration(&mut self, context: &FilterContext<'_>) {
        let identity = context.client();
        let client = self.clients.get(identity, self.looker);
        // In a script it is the client's database that counts.
        let sender = if client.origin == Origin::Inside { self.last_client } else { identity };
        let database = self.clients.get(sender, self.looker).database(sender).unwrap_or(0);
        let places = Foreign::keys(self.looker, database, context);
        let client = self.clients.get(identity, self.looker);
        match client.in_transaction {
            true => client.queued.migrated.extend(places),
            false => self.make_portable(places),
        }
    }

    fn make_portable(&mut self, places: Vec<Place>) {
        for (database, name) in places {
            self.looker.select(database.into());
            make_portable(self.looker, name.as_text());
        }
        self.looker.select(self.database.into());
    }

    /// Puts one of the module's commands in the place of the server's, where it has to work on restored strings.
    fn serve(&mut self, at: usize, sender: Sender, context: &mut FilterContext<'_>) {
        let Sender { identity, origin, in_transaction } = sender;
        let row = self.commands[at].row;
        let mut ticket = Ticket::default();
        let is_checked = match origin {
            Origin::Stored if row.reads() => return,
            Origin::Stored => false,
            Origin::Inside => true,
            Origin::Client => {
                // In a transaction the strings may be others when it is executed.
                if row.reads() && !in_transaction {
                    match self.look(row, identity, context) {
                        Some(Seen::Plain) => return,
                        seen => ticket.is_seen = seen == Some(Seen::Envelope),
                    }
                }
                match self.clients.rights(identity, self.looker) {
                    // The command itself refuses a user whose rules it cannot ask for.
                    None => true,
                    // In a transaction it is the rights that count when it is executed.
                    Some(rights) if rights.are_full && !in_transaction => {
                        ticket.is_free = true;
                        false
                    }
                    // The server refuses it itself, by its own name.
                    Some(_) if !self.may_run(identity, context) => return,
                    Some(rights) => rights.are_evident,
                }
            }
        };
        leave_ticket(ticket);
        let command = &self.commands[at];
        let name = if is_checked { &command.checked } else { &command.unchecked };
        if let Some(name) = name {
            context.replace(0, name.held());
        }
    }

    /// Looks at the strings that a command reads; `None` if they may be others when it runs.
    fn look(&mut self, row: &Row, identity: u64, context: &FilterContext<'_>) -> Option<Seen> {
        if self.is_paused() {
            return None;
        }
        let database = self.clients.get(identity, self.looker).database(identity)?;
        if self.database != database {
            self.looker.select(database.into());
            self.database = database;
        }
        let mut keys = row.served.as_ref()?.keys.among(context.len());
        let is_plain = |at| OpenKey::look(self.looker, context.get(at)).is_none_or(|key| !is_envelope(&key));
        if !keys.by_ref().take(MOST_LOOKS).all(is_plain) {
            return Some(Seen::Envelope);
        }
        keys.next().is_none().then_some(Seen::Plain)
    }

    fn is_paused(&mut self) -> bool {
        let is_paused = self.paused_until.is_some_and(|until| Instant::now() < until);
        if !is_paused {
            self.paused_until = None;
        }
        is_paused
    }

    fn may_run(&mut self, identity: u64, context: &FilterContext<'_>) -> bool {
        let Some(database) = self.clients.get(identity, self.looker).database(identity) else { return false };
        let caller = self.looker.user_of(identity).and_then(|name| Caller::named(name.as_text()));
        let arguments = context.all();
        caller.is_some_and(|caller| caller.may_run(&arguments, database))
    }

    fn note(&mut self, note: Note, context: &FilterContext<'_>) {
        let (identity, looker) = (context.client(), self.looker);
        let client = self.clients.get(identity, looker);
        let word = |at| if context.len() > at { context.get(at).bytes() } else { &[] };
        match note {
            Note::Multi => client.in_transaction = true,
            Note::Exec => {
                // If the server refuses it, the transaction has failed, and nothing in it will run.
                client.in_transaction = false;
                client.forget_database();
                // Scripts may be in it.
                self.last_client = identity;
                let queued = mem::take(&mut client.queued);
                if context.get(0).bytes().eq_ignore_ascii_case(b"exec") {
                    self.foreign.prepare(looker, queued.keys);
                    looker.select(self.database.into());
                    self.make_portable(queued.migrated);
                }
                if queued.changes_functions {
                    dictionaries::functions_change(looker);
                }
                if queued.changes_rights {
                    self.clients.rights_changed();
                }
                if let Some(length) = queued.pause {
                    self.pause(length);
                }
            }
            Note::Session => client.forget_session(),
            Note::Functions => {
                if client.origin == Origin::Stored && !word(1).eq_ignore_ascii_case(b"delete") {
                    dictionaries::primary_adds();
                }
                match client.in_transaction {
                    true => client.queued.changes_functions = true,
                    false => dictionaries::functions_change(looker),
                }
            }
            Note::Script => self.last_client = identity,
            Note::Migration => self.prepare_migration(context),
            Note::Rights if client.in_transaction => client.queued.changes_rights = true,
            Note::Rights => self.clients.rights_changed(),
            Note::Client if word(1).eq_ignore_ascii_case(b"pause") => {
                let length = std::str::from_utf8(word(2)).ok().and_then(|text| text.parse().ok());
                match length.map(Duration::from_millis) {
                    Some(length) if client.in_transaction => {
                        client.queued.pause = client.queued.pause.max(Some(length));
                    }
                    Some(length) => self.pause(length),
                    None => (),
                }
            }
            Note::Module => {
                client.forget_session();
                self.clients.rights_changed();
                if word(1).eq_ignore_ascii_case(b"unload") {
                    background::hold(looker);
                    dictionaries::hold(looker);
                }
            }
            Note::Cluster if word(1).eq_ignore_ascii_case(b"migrateslots") => {
                let words = (2..context.len()).map(|at| context.get(at).bytes());
                let nodes = words.filter_map(|word| NodeId::try_from(word).ok());
                nodes.for_each(|node| dictionaries::push(looker, &node));
            }
            // The server decides whether slots are taken over from it, and tells when it is asked next.
            Note::Cluster if word(1).eq_ignore_ascii_case(b"syncslots") => {
                self.clients.disconnected(identity)
            }
            Note::Client | Note::Cluster => (),
        }
    }

    fn pause(&mut self, length: Duration) {
        // Commands that waited run a little later.
        let until = Instant::now().checked_add(length.saturating_add(AFTER_PAUSE));
        self.paused_until = self.paused_until.max(until);
    }
}

/// Time that commands get which a pause has kept waiting.
const AFTER_PAUSE: Duration = Duration::from_secs(1);

/// Replaces the strings that a command stores.
fn store(kind: Kind, context: &mut FilterContext<'_>) {
    for at in positions(kind, context) {
        let key = if let Some(Values::At(_)) = kind.values() { 1 } else { at - 1 };
        if let Some(stored) =
            values::stored(context.get(key).bytes(), context.get(at).bytes(), OwnedText::new)
        {
            context.replace(at, stored);
        }
    }
}

/// Looks at strings that a command stores as they are, so that their dictionaries are kept, or asked for.
fn meet(kind: Kind, context: &FilterContext<'_>) {
    positions(kind, context).for_each(|at| values::meet(context.get(at).bytes()));
}

fn positions(kind: Kind, context: &FilterContext<'_>) -> impl Iterator<Item = usize> + use<> {
    let len = context.len();
    let (first, end, step) = match kind.values() {
        None => (0, 0, 1),
        Some(Values::At(at)) => (at, at + 1, 1),
        Some(Values::Pairs(first)) => (first, len, 2),
        Some(Values::Counted) => {
            let count =
                std::str::from_utf8(context.get(1).bytes()).ok().and_then(|text| text.parse::<usize>().ok());
            (3, count.unwrap_or(0).saturating_mul(2).saturating_add(2), 2)
        }
    };
    (first..end.min(len)).step_by(step)
}

/// Whether SET has to know the string that is there.
fn has_own_options(context: &FilterContext<'_>) -> bool {
    (3..context.len()).any(|at| {
        let option = context.get(at).bytes();
        option.eq_ignore_ascii_case(b"get") || option.eq_ignore_ascii_case(b"ifeq")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_key_in_any_case() {
        assert_eq!(name_key(b"GeT"), name_key(b"get"));
        assert_ne!(name_key(b"get"), name_key(b"set"));
        assert_eq!(name_key(&[b'x'; LONGEST_NAME + 1]), None);
        assert_ne!(name_key(b"bitfield_ro"), name_key(b"bitfield\x7fro"));
    }

    #[test]
    fn the_modules_own_names_lead_to_the_originals() {
        assert_eq!(own(b"SNUGLY.GET"), Some(&b"GET"[..]));
        assert_eq!(own(b"snugly.Checked.bitfield_ro"), Some(&b"bitfield_ro"[..]));
        assert_eq!(own(b"get"), None);
        assert_eq!(own(b"snugly"), None);
    }
}
