//! Running the commands that a script asks for: as its client's, one after the other, while nobody else sees or changes
//! what they touch.
//!
//! It knows which commands a script may run. The script itself is for `snugly_scripting`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use snugly_protocol::resp::{Args, Protocol};
use snugly_scripting::Host;
use snugly_store::{Hold, Session};
use tracing::{Level, event};

use super::execution::call;
use super::registry::{Reach, Row};
use super::{Client, Context, Failure, Flags, Outcome, REGISTRY, Reply, permissions};
use crate::counters::WorkerStats;
use crate::replies::Replies;
use crate::scripts::{Compiled, Kind, Machine, Occupied, Watch};
use crate::state::Server;

/// Memory that is kept for the replies of the next script's commands, in bytes.
const KEPT_REPLIES: usize = 64 << 10;
/// Bytes that a write may take though there is no memory, where it must not fail for that.
const ANY_GROWTH: usize = usize::MAX >> 1;

/// A request that runs a script or a function.
pub(super) struct Request<'a> {
    pub(super) kind: Kind,
    pub(super) args: Args<'a>,
    pub(super) keys: Args<'a>,
    pub(super) arguments: Args<'a>,
    /// Whether it is not to write, whatever the script says.
    pub(super) only_reads: bool,
}

/// The server as one run of a script sees it.
pub(super) struct ScriptHost<'a, 'h> {
    session: &'a mut Session,
    client: &'a mut Client,
    server: &'a Arc<Server>,
    stats: &'a WorkerStats,
    hold: &'a Hold<'h>,
    replies: &'a mut Replies,
    /// A reply that was not in one piece.
    gathered: Vec<u8>,
    watch: Watch<'a>,
    threshold: Duration,
    kind: Kind,
    only_reads: bool,
    has_written: bool,
}

impl ScriptHost<'_, '_> {
    /// Runs a script with these keys and arguments, and answers what it returns.
    pub(super) fn run(
        context: &mut Context<'_>,
        machine: &mut Machine,
        script: &Compiled,
        request: Request<'_>,
    ) -> Outcome {
        let Request { kind, args, keys, arguments, only_reads } = request;
        let _occupied = Occupied::begin();
        let Context { session, client, server, replies, stats } = context;
        let Machine { engine, scratch, .. } = machine;
        let database = client.database;
        client.script_began = Some(SystemTime::now());
        // In a transaction there is one already.
        let allowance = session.allowance();
        session.set_allowance(if script.header.allow_oom { ANY_GROWTH } else { allowance });
        let outcome = session.exclusively_growing(keys.iter(), |session, hold| {
            let mut host = ScriptHost {
                session,
                client,
                server,
                stats,
                hold,
                replies: scratch,
                gathered: Vec::new(),
                watch: server.scripts().running.watch(kind, args),
                threshold: Duration::from_millis(server.configuration().busy_reply_threshold),
                kind,
                only_reads: only_reads || script.header.no_writes,
                has_written: false,
            };
            engine.run(&script.script, keys, arguments, &mut host, replies)
        });
        session.set_allowance(allowance);
        client.script_began = None;
        client.select(database);
        scratch.truncate(0);
        scratch.as_mut_vec().shrink_to(KEPT_REPLIES);
        match outcome {
            Ok(()) => Ok(Reply::Now),
            Err(failure) if failure.is_counted => Err(Failure::new(failure.text).noted()),
            Err(failure) => Err(Failure::new(failure.text)),
        }
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            session: self.session,
            client: self.client,
            server: self.server,
            replies: self.replies,
            stats: self.stats,
        }
    }

    /// Returns why a command is not run.
    fn refusal(&mut self, row: &Row, place: usize, args: Args<'_>) -> Option<Failure> {
        let flags = row.command.flags;
        let writes = flags.has(Flags::WRITE) || flags.has(Flags::PAUSED_AS_WRITE);
        if !row.command.accepts(args.len()) {
            return Some(Failure::fixed("ERR Wrong number of args calling command from script"));
        }
        if flags.has(Flags::NOSCRIPT) {
            return Some(Failure::fixed("ERR This Valkey command is not allowed from script"));
        }
        // A script that begins without memory is told so first.
        if flags.has(Flags::DENYOOM)
            && !self.has_written
            && let Err(error) = self.session.make_room(1)
        {
            return Some(error.into());
        }
        if self.only_reads && writes {
            return Some(Failure::fixed("ERR Write commands are not allowed from read-only scripts."));
        }
        if flags.has(Flags::WRITE) && self.server.replica().refuses_writes() {
            return Some(Failure::READ_ONLY);
        }
        let denied = permissions::refusal(&self.context(), place, args)?;
        let reason = denied.text().strip_prefix(b"NOPERM ").unwrap_or(denied.text());
        Some(Failure::new([b"ERR ACL failure in script: ", reason].concat()))
    }

    /// Takes what a command may touch, so that nobody else sees or changes it until the script has ended.
    fn take(&self, row: &Row, args: Args<'_>) {
        match row.reach {
            Reach::Nothing => {}
            Reach::Keys => row.command.keys.among(args).for_each(|key| self.hold.take(key)),
            Reach::Everything => self.hold.take_all(),
        }
    }

    fn refuse(&mut self, failure: &Failure) {
        self.stats.note_error(failure.text());
        self.replies.error(failure.text());
    }

    /// Notes that the script writes: it is not to be stopped half-way, for memory or by SCRIPT KILL.
    fn note_write(&mut self) {
        if !self.has_written {
            self.has_written = true;
            self.watch.note_write();
            self.session.set_allowance(ANY_GROWTH);
        }
    }
}

impl Host for ScriptHost<'_, '_> {
    fn call(&mut self, request: Args<'_>, protocol: Protocol) -> &[u8] {
        self.replies.truncate(0);
        self.replies.set_protocol(protocol);
        match REGISTRY.find(request) {
            None if REGISTRY.has_subcommands(&request[0]) && request.len() > 1 => {
                self.refuse(&REGISTRY.explain(request));
            }
            None if REGISTRY.has_subcommands(&request[0]) => {
                self.refuse(&Failure::fixed("ERR Wrong number of args calling command from script"));
            }
            None => self.refuse(&Failure::fixed("ERR Unknown command called from script")),
            Some(place) => {
                let row = &REGISTRY.rows()[place];
                if let Some(failure) = self.refusal(row, place, request) {
                    self.stats.commands[place].rejected.add(1);
                    self.refuse(&failure);
                } else {
                    self.take(row, request);
                    if row.command.flags.has(Flags::WRITE) {
                        self.note_write();
                    }
                    // Nothing waits in a script, so there is a reply.
                    let _ = call(&mut self.context(), place, request);
                }
            }
        }
        if !self.replies.has_late() {
            return self.replies.as_bytes();
        }
        let mut replies = self.replies.take();
        match replies.gather(self.session, &self.server.decoded) {
            Ok(bytes) => self.gathered = bytes,
            Err(error) => {
                self.refuse(&Failure::from(error));
                return self.replies.as_bytes();
            }
        }
        &self.gathered
    }

    fn may_run(&mut self, request: Args<'_>) -> Option<bool> {
        let place = REGISTRY.find(request)?;
        let user = self.client.user.clone();
        Some(permissions::denial(&self.context(), &user, place, request).is_none())
    }

    fn log(&mut self, level: u8, message: &[u8]) {
        let message = message.escape_ascii();
        match level {
            0 => event!(Level::DEBUG, %message, "a script says"),
            1 | 2 => event!(Level::INFO, %message, "a script says"),
            _ => event!(Level::WARN, %message, "a script says"),
        }
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Script => "SCRIPT",
            Kind::Function => "FUNCTION",
        }
    }

    fn is_killed(&mut self) -> bool {
        self.watch.is_over(self.has_written, self.threshold)
    }
}
