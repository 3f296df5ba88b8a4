//! Functions: FCALL, and the libraries that FUNCTION administers.
//!
//! It knows requests and their answers. The libraries themselves are for `scripts`.

use snugly_glob::Pattern;
use snugly_protocol::rdb::{self, RestoreError};
use snugly_protocol::resp::{Args, ReplyBuffer};

use super::options::is;
use super::registry::reply_help;
use super::scripting::{
    KEYS, RUNNING_ANY, RUNNING_READS, call, kill_kind, may_begin, number_of_keys, on_machine,
};
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command, container};
use crate::scripts::{Kind, Library, Policy};

const BAD_NUMBER: Failure = Failure::fixed("ERR Bad number of keys provided");
const NOT_FOUND: Failure = Failure::fixed("ERR Function not found");
const ASKING: Flags = Flags::NOSCRIPT;
const CHANGING: Flags = Flags::NOSCRIPT.and(Flags::WRITE);
const GROWING: Flags = CHANGING.and(Flags::DENYOOM);

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("fcall", -3, RUNNING_ANY, KEYS, fcall),
    command("fcall_ro", -3, RUNNING_READS, KEYS, fcall_ro),
    container("function", &[
        command("delete", 3, CHANGING, NO_KEYS, delete),
        command("dump", 2, ASKING, NO_KEYS, dump),
        command("flush", -2, CHANGING, NO_KEYS, flush),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("kill", 2, Flags::NOSCRIPT.and(Flags::ALLOW_BUSY), NO_KEYS, kill),
        command("list", -2, ASKING, NO_KEYS, list),
        command("load", -3, GROWING, NO_KEYS, load),
        command("restore", -3, GROWING, NO_KEYS, restore),
        command("stats", 2, Flags::NOSCRIPT.and(Flags::ALLOW_BUSY), NO_KEYS, stats),
    ]),
];

fn fcall(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    run(context, args, false)
}

fn fcall_ro(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    run(context, args, true)
}

fn run(context: &mut Context<'_>, args: Args<'_>, only_reads: bool) -> Outcome {
    // That there is no such function is told before what is wrong with its keys.
    let functions = &context.server.scripts().functions;
    if number_of_keys(args, BAD_NUMBER).is_err() && functions.library_of(&args[1]).is_none() {
        return Err(NOT_FOUND);
    }
    call(context, args, Kind::Function, BAD_NUMBER, only_reads, |context, machine| {
        let function = machine.function(&args[1], &context.server.scripts().functions)?;
        let function = function.ok_or(NOT_FOUND)?;
        may_begin(context, &function, only_reads)?;
        Ok(function)
    })
}

fn load(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (source, options) = (&args[args.len() - 1], args.from(2).first(args.len() - 3));
    if let Some(unknown) = options.iter().find(|option| !is(option, "REPLACE")) {
        return Err(Failure::new([b"ERR Unknown option given: ", unknown].concat()));
    }
    let policy = if options.is_empty() { Policy::Append } else { Policy::Replace };
    let functions = &context.server.scripts().functions;
    let (name, _) = snugly_scripting::split_library(source).map_err(refused)?;
    if policy == Policy::Append && functions.libraries().contains_key(&name) {
        return Err(Failure::new(format!("ERR Library '{name}' already exists")));
    }
    context.session.make_room(source.len())?;
    let library = on_machine(context, |_, machine| Ok(machine.read_library(source)?))?;
    functions.add(vec![library], policy)?;
    context.replies.bulk(name.as_bytes());
    Ok(Reply::Now)
}

fn refused(reason: snugly_scripting::LibraryError) -> Failure {
    Failure::new(format!("ERR {reason}"))
}

fn delete(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if !context.server.scripts().functions.remove(&String::from_utf8_lossy(&args[2])) {
        return Err(Failure::fixed("ERR Library not found"));
    }
    context.ok()
}

fn flush(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    match args.get(2) {
        _ if args.len() > 3 => return Err(Failure::subcommand_syntax("function", &args[1])),
        Some(mode) if !is(mode, "SYNC") && !is(mode, "ASYNC") => {
            return Err(Failure::fixed("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
        }
        _ => {}
    }
    context.server.scripts().functions.flush();
    context.ok()
}

fn dump(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let libraries = context.server.scripts().functions.libraries();
    let mut payload = Vec::new();
    rdb::dump_libraries(libraries.values().map(|library| &*library.source), &mut payload);
    context.replies.bulk(&payload);
    Ok(Reply::Now)
}

fn restore(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let policy = match args.get(3) {
        _ if args.len() > 4 => return Err(Failure::subcommand_syntax("function", &args[1])),
        Some(policy) if is(policy, "FLUSH") => Policy::Flush,
        Some(policy) if is(policy, "REPLACE") => Policy::Replace,
        Some(policy) if !is(policy, "APPEND") => {
            return Err(Failure::fixed(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
        _ => Policy::Append,
    };
    context.session.make_room(args[2].len())?;
    let configuration = context.server.configuration();
    let limit = configuration.max_value_bytes;
    let sources = rdb::restore_libraries(&args[2], limit, configuration.rdb_version_check).map_err(
        |error| match error {
            RestoreError::UnsupportedType(_) => Failure::fixed("ERR given type is not a function"),
            error => Failure::new(format!("ERR {error}")),
        },
    )?;
    let libraries = on_machine(context, |_, machine| {
        let read = |source| machine.read_library(source).map_err(Failure::from);
        sources.iter().map(|source| &**source).map(read).collect::<Result<Vec<Library>, Failure>>()
    })?;
    context.server.scripts().functions.add(libraries, policy)?;
    context.ok()
}

fn list(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (mut with_code, mut pattern) = (false, None);
    let mut options = args.from(2).iter();
    while let Some(option) = options.next() {
        if !with_code && is(option, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && is(option, "LIBRARYNAME") {
            let given = options.next().ok_or(Failure::fixed("ERR library name argument was not given"))?;
            pattern = Some(Pattern::new(given, true));
        } else {
            return Err(Failure::new([b"ERR Unknown argument ", option].concat()));
        }
    }
    let libraries = context.server.scripts().functions.libraries();
    let is_wanted =
        |library: &Library| pattern.as_ref().is_none_or(|pattern| pattern.matches(library.name.as_bytes()));
    let wanted: Vec<_> = libraries.values().filter(|library| is_wanted(library)).collect();
    context.replies.array(wanted.len());
    wanted.iter().for_each(|library| reply_library(context.replies, library, with_code));
    Ok(Reply::Now)
}

fn reply_library(replies: &mut ReplyBuffer, library: &Library, with_code: bool) {
    replies.map(if with_code { 4 } else { 3 });
    replies.bulk(b"library_name");
    replies.bulk(library.name.as_bytes());
    replies.bulk(b"engine");
    replies.bulk(b"LUA");
    replies.bulk(b"functions");
    replies.array(library.functions.len());
    for function in &library.functions {
        replies.map(3);
        replies.bulk(b"name");
        replies.bulk(&function.name);
        replies.bulk(b"description");
        match &function.description {
            Some(description) => replies.bulk(description),
            None => replies.null(),
        }
        replies.bulk(b"flags");
        replies.set(function.flags.len());
        function.flags.iter().for_each(|flag| replies.simple(flag));
    }
    if with_code {
        replies.bulk(b"library_code");
        replies.bulk(&library.source);
    }
}

fn stats(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let scripts = context.server.scripts();
    let (libraries, functions, _) = scripts.functions.totals();
    let replies = &mut *context.replies;
    replies.map(2);
    replies.bulk(b"running_script");
    match scripts.running.current() {
        None => replies.null(),
        Some((kind, request, elapsed)) => {
            replies.map(3);
            replies.bulk(b"name");
            replies.bulk(if kind == Kind::Function { &request[1] } else { b"" });
            replies.bulk(b"command");
            replies.array(request.len());
            request.iter().for_each(|word| replies.bulk(word));
            replies.bulk(b"duration_ms");
            replies.integer(elapsed.as_millis() as i64);
        }
    }
    replies.bulk(b"engines");
    replies.map(1);
    replies.bulk(b"LUA");
    replies.map(2);
    replies.bulk(b"libraries_count");
    replies.integer(libraries as i64);
    replies.bulk(b"functions_count");
    replies.integer(functions as i64);
    Ok(Reply::Now)
}

fn kill(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    kill_kind(context, Kind::Function)
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "function")
}
