//! Commands that the module does not know: of other modules, and of servers that are newer than it.
//!
//! They find plain strings at their keys, which are envelopes again before the next command. It knows what the server tells
//! of commands, and how strings are made plain; who sends a command is for the filter to know.

use std::collections::HashSet;

use crate::commands::{MadePlain, PREFIX};
use crate::server::{CallReply, Context, FilterContext, OwnedText};

/// A key in its database.
pub type Place = (u16, OwnedText);

/// Names of the commands that are not known, and strings that one of them finds plain.
#[derive(Default)]
pub struct Foreign {
    names: HashSet<Vec<u8>>,
    /// Each with its database.
    plain: Vec<(u16, MadePlain)>,
}

impl Foreign {
    /// Asks the server which commands there are.
    pub fn refresh(&mut self, context: Context) {
        let reply = context.call(c"COMMAND", c"Ev", &[]);
        let commands = reply.as_ref().and_then(|reply| reply.array()).unwrap_or(0);
        let rows = (0..commands).filter_map(|at| reply.as_ref()?.element(at));
        self.names = rows.filter_map(|row| unknown(&row)).collect();
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether the command is one of them.
    pub fn has(&self, name: &[u8]) -> bool {
        !self.names.is_empty() && self.names.contains(&name.to_ascii_lowercase())
    }

    /// The keys of a command that is sent to a database.
    pub fn keys(looker: Context, database: u16, command: &FilterContext<'_>) -> Vec<Place> {
        looker.keys_of(&command.all()).into_iter().map(|at| (database, command.get(at).to_owned())).collect()
    }

    /// Makes the strings at these keys plain, for the command that runs next.
    pub fn prepare(&mut self, looker: Context, places: Vec<Place>) {
        for (database, name) in places {
            looker.select(database.into());
            let mut plain = MadePlain::new(looker);
            // One that is damaged is for the command to find as it is.
            let _ = plain.make(name.as_text());
            self.plain.push((database, plain));
        }
    }

    /// Whether there is nothing to settle.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.plain.is_empty()
    }

    /// Makes the strings envelopes again that the command has not changed; files and replicas are told of the others.
    pub fn settle(&mut self, looker: Context) {
        for (database, plain) in self.plain.drain(..) {
            looker.select(database.into());
            plain.settle();
        }
    }
}

/// The name in a row of COMMAND, if the command is not known.
fn unknown(row: &CallReply<'_>) -> Option<Vec<u8>> {
    let name = row.element(0)?;
    let name = name.string()?;
    let is_own = name.starts_with(PREFIX.as_bytes());
    (!is_own && snugly_commands::command(name).is_none()).then(|| name.to_ascii_lowercase())
}
