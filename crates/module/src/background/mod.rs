//! Work in the background, on strings that are there: compression of those that were there before, of those that commands
//! have left plain, and once more of those that nobody uses; or, before the module is unloaded, their restoration.
//!
//! It walks over all keys, a few at a time, in a share of a processor. Nobody notices: a string that is stored in another
//! form is the same string, so nothing is told to clients, replicas and files, and the key keeps its expiry and its age.
//! It knows keys and values, and nothing of clients.

mod compression;
mod restoration;
mod walk;

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::dictionaries::{self, Known};
use crate::guard;
use crate::server::table::Ctx;
use crate::server::{Context, OwnedText};
use crate::settings;
use compression::{Observed, Tried};
use walk::{Step, Walk};

/// Time between two turns, in milliseconds. A turn takes the set share of it, so that no client waits for long.
const PERIOD: u32 = 1;
/// The same while there is nothing to do.
const REST: u32 = 1_000;
/// Shortest time between two rounds over all keys.
const LEAST_REST: Duration = Duration::from_secs(10);

/// Rounds that have restored nothing after which a dictionary may stay: strings that are damaged need it for ever.
const MOST_EMPTY_ROUNDS: u8 = 3;

/// Counts since the module was loaded.
pub struct Progress {
    pub rounds: AtomicU64,
    pub compressed: AtomicU64,
    pub bytes_before: AtomicU64,
    pub bytes_after: AtomicU64,
    pub restored: AtomicU64,
    pub damaged: AtomicU64,
    /// Of the last whole round that has observed what would be saved.
    pub observed_strings: AtomicU64,
    pub observed_bytes_before: AtomicU64,
    pub observed_bytes_after: AtomicU64,
}

/// Counts of this server.
pub static PROGRESS: Progress = Progress {
    rounds: AtomicU64::new(0),
    compressed: AtomicU64::new(0),
    bytes_before: AtomicU64::new(0),
    bytes_after: AtomicU64::new(0),
    restored: AtomicU64::new(0),
    damaged: AtomicU64::new(0),
    observed_strings: AtomicU64::new(0),
    observed_bytes_before: AtomicU64::new(0),
    observed_bytes_after: AtomicU64::new(0),
};

/// Aim of the work on strings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Compress,
    /// Restores them. With how many this round has restored: others may have come meanwhile, behind the walk. Then it goes on
    /// until no dictionary is needed.
    Restore {
        restored: u64,
        /// Number of whole rounds in a row before that have restored none.
        empty_rounds: u8,
    },
    /// All are plain, but for clients' own envelopes, which have one around them. There is nothing to do.
    Rest,
}

/// Questions of the background to those who know clients.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Called before each turn.
    pub before: fn(),
    /// Whether strings may come soon that were compressed some time ago.
    pub waits: fn() -> bool,
}

struct Background {
    purpose: Purpose,
    walk: Walk,
    hooks: Hooks,
    /// When the last whole round began, with the present settings and data.
    last: Option<Instant>,
    /// What this round has observed so far.
    observed: Observed,
    began: Instant,
    /// The next round does not begin before, unless a setting changes.
    rests_until: Option<Instant>,
    /// Number of changes that have been seen.
    changes: u64,
    /// The server's call for the next turn.
    next: Option<u64>,
}

thread_local! {
    static BACKGROUND: RefCell<Option<Background>> = const { RefCell::new(None) };
}

/// Number of changes of what strings are compressed with.
fn changes() -> u64 {
    settings::changes() + dictionaries::changes()
}

fn with<T>(run: impl FnOnce(&mut Background) -> T) -> Option<T> {
    BACKGROUND.with_borrow_mut(|background| background.as_mut().map(run))
}

/// Begins, once the module is loaded, in a server of so many databases.
pub fn begin(context: Context, databases: u32, hooks: Hooks) {
    BACKGROUND.set(Some(Background {
        purpose: Purpose::Compress,
        walk: Walk::new(databases),
        hooks,
        last: None,
        observed: Observed::default(),
        began: Instant::now(),
        rests_until: None,
        changes: changes(),
        next: None,
    }));
    pursue(context, Purpose::Compress);
}

/// Lets the background work towards something else, from the first key on.
pub fn pursue(context: Context, purpose: Purpose) {
    settings::compress_new(purpose == Purpose::Compress);
    // Strings that are made plain are not compressed with a dictionary again.
    dictionaries::go_on(context);
    with(|background| {
        background.purpose = purpose;
        background.walk.restart();
        background.rests_until = None;
        background.hold(context);
        background.call(context, PERIOD);
    });
}

/// What the background works towards.
pub fn purpose() -> Purpose {
    with(|background| background.purpose).unwrap_or(Purpose::Compress)
}

/// Waits with the next turn until [`go_on`]: of a module that waits for a call, the server does not even ask whether it may
/// be unloaded.
pub fn hold(context: Context) {
    with(|background| background.hold(context));
}

/// Goes on, if there is something to do; at once, if a setting has changed.
pub fn go_on(context: Context) {
    with(|background| {
        if background.changes != changes() && background.rests_until.take().is_some() {
            background.hold(context);
        }
        background.call(context, PERIOD);
    });
}

/// Takes the last envelopes away, those around clients' own, and ends all work. The server stands still meanwhile.
pub fn end(context: Context) {
    each_key(context, |_, name| restoration::unwrap(context, name));
    BACKGROUND.set(None);
}

/// Calls `see` with the database and the name of every key. The server stands still meanwhile.
pub fn each_key(context: Context, mut see: impl FnMut(u32, &OwnedText)) {
    let databases = with(|background| background.walk.databases()).unwrap_or(0);
    let mut walk = Walk::new(databases);
    walk.select(context);
    loop {
        match walk.step(context) {
            Step::Key(name) => see(walk.database(), &name),
            Step::More => (),
            Step::End => return,
        }
    }
}

/// Takes a turn, and the next one later.
unsafe extern "C" fn turn(context: *mut Ctx, _: *mut c_void) {
    // SAFETY: the server keeps the context until this returns.
    let context = unsafe { Context::from_raw(context) };
    let is_active = guard::guarded(|| {
        with(|background| background.hooks).into_iter().for_each(|hooks| (hooks.before)());
        dictionaries::settle(context);
        with(|background| background.take_turn(context)).unwrap_or(false)
    });
    guard::guarded(|| {
        with(|background| {
            background.next = None;
            background.call(context, if is_active == Some(true) { PERIOD } else { REST });
        });
    });
}

impl Background {
    /// Has the next turn called, if there is something to do and it is not called for yet.
    fn call(&mut self, context: Context, milliseconds: u32) {
        if self.purpose != Purpose::Rest && self.next.is_none() {
            self.next = Some(context.call_later(milliseconds, turn));
        }
    }

    /// Takes the call back.
    fn hold(&mut self, context: Context) {
        if let Some(next) = self.next.take() {
            context.do_not_call(next);
        }
    }

    fn is_wanted(&self, context: Context) -> bool {
        match self.purpose {
            Purpose::Compress if settings::observes() => true,
            // Its own replicas, which may be without the module, are sent what the primary sends, and not what it has stored.
            Purpose::Compress => settings::compresses() && !(settings::is_mixed() && context.is_replica()),
            Purpose::Restore { .. } => true,
            Purpose::Rest => false,
        }
    }

    /// Works for a while; returns whether there is more to do.
    fn take_turn(&mut self, context: Context) -> bool {
        let share = settings::background_cpu_percent();
        if context.is_loading() {
            // Other keys, of any age.
            self.last = None;
            return false;
        }
        // Replicas and files are told of strings that are made plain.
        if self.purpose != Purpose::Compress && !context.may_tell() {
            return false;
        }
        // A child shares the memory, and would take what is changed.
        if share == 0 || context.has_child() || !self.is_wanted(context) {
            return false;
        }
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        if self.walk.is_at_start() {
            if self.changes != changes() {
                self.changes = changes();
                self.last = None;
            }
            self.rests_until = None;
            self.began = Instant::now();
            self.observed = Observed::default();
        }
        let until = Instant::now() + Duration::from_millis(PERIOD.into()) * share / 100;
        self.walk.select(context);
        loop {
            match self.walk.step(context) {
                Step::Key(name) => self.work(context, &name),
                Step::More => (),
                Step::End => return self.end_round(context),
            }
            if Instant::now() >= until {
                return true;
            }
        }
    }

    fn work(&mut self, context: Context, name: &OwnedText) {
        match &mut self.purpose {
            Purpose::Compress if settings::observes() => self.observed.add(context, name),
            Purpose::Compress => {
                let tried = Tried { since: self.last.map(|last| last.elapsed()) };
                compression::compress(context, name, tried);
            }
            Purpose::Restore { restored, .. } => *restored += u64::from(restoration::restore(context, name)),
            Purpose::Rest => (),
        }
    }

    /// Ends a round; returns whether the next one follows at once.
    fn end_round(&mut self, context: Context) -> bool {
        PROGRESS.rounds.fetch_add(1, Ordering::Relaxed);
        if !settings::observes() || self.purpose != Purpose::Compress {
            dictionaries::end_round(context, (self.hooks.waits)());
        }
        match self.purpose {
            Purpose::Compress => {
                if settings::observes() {
                    self.publish();
                }
                self.last = Some(self.began);
                // As long as it has taken, so that a large data set takes half the share when there is nothing to do.
                self.rests_until = Some(Instant::now() + self.began.elapsed().max(LEAST_REST));
                false
            }
            Purpose::Restore { restored: 0, empty_rounds }
                if dictionaries::with(Known::is_empty) || empty_rounds >= MOST_EMPTY_ROUNDS =>
            {
                self.purpose = Purpose::Rest;
                false
            }
            Purpose::Restore { restored, empty_rounds } => {
                let empty_rounds = if restored == 0 { empty_rounds + 1 } else { 0 };
                self.purpose = Purpose::Restore { restored: 0, empty_rounds };
                true
            }
            Purpose::Rest => false,
        }
    }

    fn publish(&self) {
        let Observed { strings, bytes_before, bytes_after } = self.observed;
        PROGRESS.observed_strings.store(strings, Ordering::Relaxed);
        PROGRESS.observed_bytes_before.store(bytes_before, Ordering::Relaxed);
        PROGRESS.observed_bytes_after.store(bytes_after, Ordering::Relaxed);
    }
}
