//! The walk over all keys of all databases, a few at a time.

use std::mem;

use crate::server::{Context, OwnedText, Scan};

/// The place of a walk. Keys that are there all the time are met once at least, as with SCAN.
pub struct Walk {
    scan: Scan,
    database: u32,
    databases: u32,
    /// Names of keys that are next.
    names: Vec<OwnedText>,
    /// Whether the scan of this database has come to its end.
    is_scanned: bool,
    /// Whether no step has been taken.
    is_new: bool,
}

/// What a step has led to.
pub enum Step {
    Key(OwnedText),
    /// No key, and there may be more.
    More,
    /// The end; the next step is the first one again.
    End,
}

impl Walk {
    /// A walk over so many databases.
    pub fn new(databases: u32) -> Walk {
        Walk { scan: Scan::new(), database: 0, databases, names: Vec::new(), is_scanned: false, is_new: true }
    }

    /// Begins anew.
    pub fn restart(&mut self) {
        self.names.clear();
        self.begin(0);
        self.is_new = true;
    }

    /// Whether the next step is the first one.
    pub fn is_at_start(&self) -> bool {
        self.is_new
    }

    /// The database that keys are met in.
    pub fn database(&self) -> u32 {
        self.database
    }

    /// Number of databases.
    pub fn databases(&self) -> u32 {
        self.databases
    }

    /// Selects the database that keys are met in.
    pub fn select(&self, context: Context) {
        context.select(self.database);
    }

    fn begin(&mut self, database: u32) {
        self.database = database;
        self.is_scanned = false;
        self.scan.restart();
    }

    /// Takes the next step. The context has the walk's database selected, also when a step has led to another one.
    pub fn step(&mut self, context: Context) -> Step {
        self.is_new = false;
        if let Some(name) = self.names.pop() {
            return Step::Key(name);
        }
        if !mem::replace(&mut self.is_scanned, true) {
            self.is_scanned = !self.scan.next(context, &mut self.names);
            return Step::More;
        }
        let next = self.database + 1;
        let is_last = next >= self.databases;
        self.begin(if is_last { 0 } else { next });
        self.select(context);
        self.is_new = is_last;
        if is_last { Step::End } else { Step::More }
    }
}
