//! Dictionaries as keys beside the data, where clients of snugly look for them (spec/dictionaries.md): on a node without the module
//! they find envelopes.

use std::time::{Duration, Instant};

use super::known::Known;
use super::store::{log, with};
use crate::server::{Context, OpenKey, OwnedText};
use crate::settings;

/// Time between two looks for keys that somebody has removed.
const PERIOD: Duration = Duration::from_secs(1);
/// Clients look there, unless they are told otherwise.
const DATABASE: u32 = 0;

/// When it was looked last.
#[derive(Default)]
pub struct Publication(Option<Instant>);

impl Publication {
    /// Writes keys that are missing, if they are wanted: now and then.
    pub fn go_on(&mut self, context: Context, now: Instant) {
        let is_due = self.0.is_none_or(|last| now.saturating_duration_since(last) >= PERIOD);
        if settings::publishes_dictionaries() && is_due {
            self.0 = Some(now);
            in_database(context, || publish(context));
        }
    }
}

/// Removes the key of a dictionary that no value needs any more, if there is one.
pub fn withdraw(context: Context, id: u32) {
    if settings::publishes_dictionaries() {
        let name = key(id);
        in_database(context, || _ = context.call(c"DEL", c"!Ev", &[name.as_text().raw()]));
    }
}

fn publish(context: Context) {
    let missing = |known: &Known| {
        let all =
            known.all().filter(|dictionary| OpenKey::look(context, key(dictionary.id()).as_text()).is_none());
        all.cloned().collect::<Vec<_>>()
    };
    let option = OwnedText::new(b"NX");
    for dictionary in with(missing) {
        let (name, bytes) = (key(dictionary.id()), OwnedText::new(dictionary.bytes()));
        let words = [&name, &bytes, &option].map(|word| word.as_text().raw());
        let reply = context.call(c"SET", c"!Ev", &words);
        // In a cluster they are one node's.
        if reply.as_ref().is_none_or(|reply| reply.error().is_some()) {
            return;
        }
        log(c"notice", &format!("snugly has published the dictionary {}", dictionary.id()));
    }
}

fn key(id: u32) -> OwnedText {
    OwnedText::new(format!("{{snugly}}:dict:{id}").as_bytes())
}

fn in_database(context: Context, run: impl FnOnce()) {
    let selected = context.database();
    context.select(DATABASE);
    run();
    context.select(selected.into());
}
