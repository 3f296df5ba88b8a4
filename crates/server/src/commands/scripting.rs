//! Scripts: EVAL and its kin, and SCRIPT.
//!
//! It knows requests and their answers. Scripts themselves are for `scripts`, what they ask for is for `script_host`.

use std::rc::Rc;

use snugly_protocol::resp::{Args, parse_integer};
use snugly_scripting::{Digest, Header};

use super::options::is;
use super::record::show;
use super::registry::{Row, reply_help};
use super::script_host::{Request, ScriptHost};
use super::{
    COUNTED_KEYS_BEHIND_ARGUMENT, Command, Context, Failure, Flags, NO_KEYS, Outcome, REGISTRY, Reply,
    command, container,
};
use crate::scripts::{Compiled, Kill, Kind, Machine, Refused, Unusable, with_machine};
use crate::state::Server;

const RUNNING: Flags = Flags::NOSCRIPT
    .and(Flags::STALE)
    .and(Flags::SKIP_MONITOR)
    .and(Flags::NO_MANDATORY_KEYS)
    .and(Flags::MOVABLE_KEYS);
pub(super) const RUNNING_ANY: Flags = RUNNING.and(Flags::PAUSED_AS_WRITE);
pub(super) const RUNNING_READS: Flags = RUNNING.and(Flags::READONLY);
const STALE: Flags = Flags::NOSCRIPT.and(Flags::STALE);
pub(super) const KEYS: super::Keys = COUNTED_KEYS_BEHIND_ARGUMENT;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("eval", -3, RUNNING_ANY, KEYS, eval),
    command("eval_ro", -3, RUNNING_READS, KEYS, eval_ro),
    command("evalsha", -3, RUNNING_ANY, KEYS, evalsha),
    command("evalsha_ro", -3, RUNNING_READS, KEYS, evalsha_ro),
    container("script", &[
        command("debug", -3, Flags::NOSCRIPT, NO_KEYS, debug),
        command("exists", -3, STALE, NO_KEYS, exists),
        command("flush", -2, STALE, NO_KEYS, flush),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("kill", 2, Flags::NOSCRIPT.and(Flags::ALLOW_BUSY), NO_KEYS, kill),
        command("load", 3, STALE, NO_KEYS, load),
        command("show", 3, STALE, NO_KEYS, show_source),
    ]),
];

impl From<Unusable> for Failure {
    fn from(reason: Unusable) -> Failure {
        Failure::new(format!("ERR {reason}"))
    }
}

impl From<Refused> for Failure {
    fn from(reason: Refused) -> Failure {
        Failure::new(reason.to_string())
    }
}

fn eval(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    run(context, args, By::Text, false)
}

fn eval_ro(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    run(context, args, By::Text, true)
}

fn evalsha(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    run(context, args, By::Digest, false)
}

fn evalsha_ro(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    run(context, args, By::Digest, true)
}

/// What names a script in a request.
#[derive(Clone, Copy)]
enum By {
    Text,
    Digest,
}

fn run(context: &mut Context<'_>, args: Args<'_>, by: By, only_reads: bool) -> Outcome {
    if matches!(by, By::Digest) && parse_digest(&args[1]).is_none() {
        show_request(context, args);
        return Err(Failure::NO_SCRIPT);
    }
    let not_an_integer = Failure::NOT_AN_INTEGER;
    call(context, args, Kind::Script, not_an_integer, only_reads, |context, machine| {
        let compiled = find(context, machine, &args[1], by)?;
        may_begin(context, &compiled, only_reads)?;
        Ok(compiled)
    })
}

/// Runs what `find` finds, with the keys and arguments of a request.
pub(super) fn call(
    context: &mut Context<'_>,
    args: Args<'_>,
    kind: Kind,
    not_an_integer: Failure,
    only_reads: bool,
    find: impl FnOnce(&mut Context<'_>, &mut Machine) -> Result<Rc<Compiled>, Failure>,
) -> Outcome {
    show_request(context, args);
    let number = number_of_keys(args, not_an_integer)?;
    let values = args.from(3);
    let (keys, arguments) = (values.first(number), values.from(number));
    on_machine(context, |context, machine| {
        let compiled = find(context, machine)?;
        let request = Request { kind, args, keys, arguments, only_reads };
        ScriptHost::run(context, machine, &compiled, request)
    })
}

/// The number of keys that a request names.
pub(super) fn number_of_keys(args: Args<'_>, not_an_integer: Failure) -> Result<usize, Failure> {
    let number = parse_integer(&args[2]).ok_or(not_an_integer)?;
    if number > args.len() as i64 - 3 {
        return Err(Failure::fixed("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(number).map_err(|_| Failure::fixed("ERR Number of keys can't be negative"))
}

/// Shows a request to those who watch all commands, before those that it runs.
fn show_request(context: &Context<'_>, args: Args<'_>) {
    if let Some(place) = REGISTRY.find(args) {
        show(context, &REGISTRY.rows()[place], args);
    }
}

/// Does something with this thread's machine.
pub(super) fn on_machine<R>(
    context: &mut Context<'_>,
    work: impl FnOnce(&mut Context<'_>, &mut Machine) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let (memory, server) = (context.server.configuration().max_script_memory, context.server);
    let outcome = with_machine(memory, &server.scripts().machine_bytes, |machine| work(context, machine));
    outcome.map_err(Unusable::from)?
}

/// The script that a request names.
fn find(context: &Context<'_>, machine: &mut Machine, name: &[u8], by: By) -> Result<Rc<Compiled>, Failure> {
    let sources = &context.server.scripts().sources;
    machine.follow(sources);
    match by {
        By::Text => Ok(machine.evaluated(name, sources)?),
        By::Digest => {
            let digest = parse_digest(name).ok_or(Failure::NO_SCRIPT)?;
            machine.known(&digest, sources)?.ok_or(Failure::NO_SCRIPT)
        }
    }
}

fn parse_digest(digits: &[u8]) -> Option<Digest> {
    let mut digest = Digest::try_from(digits).ok()?;
    digest.make_ascii_lowercase();
    Some(digest)
}

/// Returns whether a request is one for a script or a function that says of itself that it writes nothing.
pub(super) fn says_that_it_only_reads(server: &Server, row: &Row, args: Args<'_>) -> bool {
    let scripts = server.scripts();
    let of_text = |text: &[u8]| Header::split(text).is_ok_and(|(header, _)| header.no_writes);
    match &*row.full_name {
        "eval" => of_text(&args[1]),
        "evalsha" => {
            let source = parse_digest(&args[1]).and_then(|digest| scripts.sources.get(&digest));
            source.is_some_and(|source| of_text(&source.text))
        }
        "fcall" => scripts.functions.only_reads(&args[1]),
        _ => false,
    }
}

/// Refuses a script that says by its header what it needs, if that is not to be had.
pub(super) fn may_begin(
    context: &mut Context<'_>,
    script: &Compiled,
    only_reads: bool,
) -> Result<(), Failure> {
    let header = script.header;
    if !header.is_present || header.no_writes {
        return Ok(());
    }
    if context.server.replica().refuses_writes() {
        return Err(Failure::fixed("READONLY You can not run script with write flag on readonly replica."));
    }
    if !header.allow_oom {
        context.session.make_room(1)?;
    }
    if only_reads {
        return Err(Failure::fixed("ERR Can not execute a script with write flag using *_ro command."));
    }
    Ok(())
}

fn load(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let sources = &context.server.scripts().sources;
    let source = on_machine(context, |_, machine| {
        machine.follow(sources);
        Ok(machine.compile(&args[2])?.0)
    })?;
    let digest = source.digest;
    sources.load(source)?;
    context.replies.bulk(&digest);
    Ok(Reply::Now)
}

fn exists(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let sources = &context.server.scripts().sources;
    let digests = args.from(2);
    context.replies.array(digests.len());
    for digits in digests {
        let is_known = parse_digest(digits).is_some_and(|digest| sources.get(&digest).is_some());
        context.replies.integer(is_known.into());
    }
    Ok(Reply::Now)
}

fn show_source(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let digest = parse_digest(&args[2]).ok_or(Failure::NO_SCRIPT)?;
    let source = context.server.scripts().sources.get(&digest).ok_or(Failure::NO_SCRIPT)?;
    context.replies.bulk(&source.text);
    Ok(Reply::Now)
}

fn flush(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let is_mode = |arg: &[u8]| is(arg, "SYNC") || is(arg, "ASYNC");
    if args.len() > 3 || args.get(2).is_some_and(|arg| !is_mode(arg)) {
        return Err(Failure::fixed("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    context.server.scripts().sources.flush();
    context.ok()
}

fn kill(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    kill_kind(context, Kind::Script)
}

/// Ends the script of this kind that runs for long.
pub(super) fn kill_kind(context: &mut Context<'_>, kind: Kind) -> Outcome {
    match context.server.scripts().running.kill(kind) {
        Kill::Done => context.ok(),
        Kill::NothingRuns => Err(Failure::fixed("NOTBUSY No scripts in execution right now.")),
        Kill::IsOther(other) => Err(Failure::busy(other)),
        Kill::HasWritten => Err(Failure::fixed(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
        )),
    }
}

fn debug(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if is(&args[2], "NO") {
        return context.ok();
    }
    if !is(&args[2], "YES") && !is(&args[2], "SYNC") {
        return Err(Failure::fixed("ERR Use SCRIPT DEBUG YES/SYNC/NO"));
    }
    Err(Failure::fixed("ERR there is no debugger of scripts here; try them on a server that has one"))
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "script")
}
