//! Strings that are stored as envelopes, made plain where they are, for the server's own commands to work on.

use std::fmt;

use crate::server::{Context, OpenKey, OwnedText, Text};
use crate::values::{self, Damaged};

/// Strings that are plain for a while, each with its key and its envelope. They are envelopes again when this is dropped.
///
/// That is more than thrift: files and replicas have the envelopes. A string that is plain here and an envelope there must not
/// be left, since commands that change parts of it are sent to them as they are.
pub struct MadePlain {
    context: Context,
    envelopes: Vec<(OwnedText, Vec<u8>)>,
}

/// A string that cannot be made plain.
#[derive(Debug)]
pub enum NotPlain {
    Damaged(Damaged),
    /// It is longer than the server allows.
    TooLong,
}

/// The text of the error for clients.
impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotPlain::Damaged(damaged) => damaged.fmt(f),
            NotPlain::TooLong => f.write_str("SNUGLY the string is longer than proto-max-bulk-len allows"),
        }
    }
}

impl MadePlain {
    /// Nothing is plain yet.
    pub fn new(context: Context) -> MadePlain {
        MadePlain { context, envelopes: Vec::new() }
    }

    /// Makes the string at this key plain, if it is an envelope. Its expiry and age stay, and nobody is told: it is the
    /// same string.
    ///
    /// # Errors
    /// An envelope that cannot be restored.
    pub fn make(&mut self, name: Text<'_>) -> Result<(), NotPlain> {
        // A client's own envelope is plain, and still looks like one.
        if self.envelopes.iter().any(|(made, _)| made.as_text().bytes() == name.bytes()) {
            return Ok(());
        }
        let Some(mut key) = envelope_at(self.context, name) else { return Ok(()) };
        let envelope = key.bytes().to_vec();
        let replaced = values::restored(&envelope, |value| key.replace(value)).map_err(NotPlain::Damaged)?;
        self.envelopes.push((name.to_owned(), envelope));
        replaced.map_err(|_| NotPlain::TooLong)
    }

    /// Whether all strings were plain already.
    pub fn is_empty(&self) -> bool {
        self.envelopes.is_empty()
    }

    /// Puts the envelopes of strings back that a command has left as they were, and sends files and replicas the others: it
    /// may have told them what it has done, which they would do to envelopes.
    pub fn settle(mut self) {
        for (name, envelope) in std::mem::take(&mut self.envelopes) {
            let name = name.as_text();
            let key = OpenKey::look(self.context, name).filter(OpenKey::is_string);
            let is_same = |key: &OpenKey| {
                values::restored_len(&envelope).is_ok_and(|len| len == key.len())
                    && values::restored(&envelope, |string| string == key.bytes()).unwrap_or(false)
            };
            match key.as_ref().map(is_same) {
                Some(true) => {
                    drop(key);
                    put_back(self.context, name, &envelope);
                }
                _ => {
                    drop(key);
                    wrap(self.context, name);
                    replicate(self.context, name, Expiry::Kept);
                }
            }
        }
    }

    /// Leaves the string at this key as the command has left it.
    pub fn keep(&mut self, name: Text<'_>) {
        self.envelopes.retain(|(made, _)| made.as_text().bytes() != name.bytes());
    }
}

impl Drop for MadePlain {
    fn drop(&mut self) {
        for (name, envelope) in self.envelopes.drain(..) {
            put_back(self.context, name.as_text(), &envelope);
        }
    }
}

fn put_back(context: Context, name: Text<'_>, envelope: &[u8]) {
    if let Some(mut key) = OpenKey::rewrite(context, name).filter(OpenKey::is_string) {
        // It was as long before.
        let _ = key.replace(envelope);
    }
}

/// The string at this key, if it is stored as an envelope.
///
/// # Errors
/// An envelope that cannot be restored.
pub fn restored_at(context: Context, name: Text<'_>) -> Result<Option<Vec<u8>>, Damaged> {
    let key = OpenKey::look(context, name).filter(is_envelope);
    key.map(|key| values::restored(key.bytes(), <[u8]>::to_vec)).transpose()
}

/// Stores the string at this key as it is read without a dictionary, for a node that may not have it.
pub fn make_portable(context: Context, name: Text<'_>) {
    let Some(mut key) = envelope_at(context, name) else { return };
    if let Some(form) = values::without_dictionary(key.bytes()) {
        // It is no longer than the string that it is of, but for a header.
        let _ = key.replace(&form);
    }
}

/// Wraps the string at this key, which a command has changed while it was plain, if it looks like an envelope now: reads
/// would restore what no client has compressed. Returns whether it does. What a primary changes looks the same there.
pub fn wrap(context: Context, name: Text<'_>) -> bool {
    if context.must_obey() {
        return false;
    }
    let Some(mut key) = envelope_at(context, name) else { return false };
    let string = key.bytes().to_vec();
    // It grows by some bytes at most, which the server allows for a string of this length.
    values::stored(name.bytes(), &string, |envelope| key.replace(envelope))
        .is_some_and(|replaced| replaced.is_ok())
}

/// What becomes of a key's expiry when its string changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    Kept,
    Gone,
}

/// Tells replicas and the append-only file what is stored at this key. What they are told of a command on a string that was
/// an envelope before would be done to the envelope: files are loaded without the module's help, and replicas may be
/// without it.
pub fn replicate(context: Context, name: Text<'_>, expiry: Expiry) {
    let stored =
        OpenKey::look(context, name).filter(OpenKey::is_string).map(|key| OwnedText::new(key.bytes()));
    let option = OwnedText::new(b"KEEPTTL");
    match &stored {
        Some(stored) if expiry == Expiry::Kept => {
            context.replicate(c"SET", &[name.raw(), stored.as_text().raw(), option.as_text().raw()]);
        }
        Some(stored) => context.replicate(c"SET", &[name.raw(), stored.as_text().raw()]),
        None => context.replicate(c"DEL", &[name.raw()]),
    }
}

/// The key with this name, if an envelope is stored there; open for putting something else in its place.
fn envelope_at(context: Context, name: Text<'_>) -> Option<OpenKey> {
    let key = OpenKey::rewrite(context, name)?;
    is_envelope(&key).then_some(key)
}

/// Whether there is a key of this name.
pub fn exists(context: Context, name: Text<'_>) -> bool {
    OpenKey::look(context, name).is_some()
}

/// Whether an envelope is stored at this key.
pub fn is_envelope(key: &OpenKey) -> bool {
    // A shorter string must not be read: that would change how it is stored.
    key.is_string() && key.len() >= values::LEAST_ENVELOPE && values::is_envelope(key.bytes())
}
