//! Commands of features that are not there, as far as clients use them without being asked: FUNCTION FLUSH when they
//! clean up.

use snugly_protocol::resp::Args;

use super::options::is;
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command, container};

const FUNCTIONS: Flags = Flags::NOSCRIPT;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("function", &[
        command("flush", -2, FUNCTIONS.and(Flags::WRITE), NO_KEYS, flush),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, function_help),
        command("list", -2, FUNCTIONS, NO_KEYS, list),
    ]),
];

fn flush(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    match args.get(2) {
        _ if args.len() > 3 => return Err(Failure::subcommand_syntax("function", &args[1])),
        Some(mode) if !is(mode, "SYNC") && !is(mode, "ASYNC") => {
            return Err(Failure::fixed("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
        }
        _ => {}
    }
    context.ok()
}

fn list(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (mut with_code, mut pattern) = (false, false);
    let mut options = args.from(2).iter();
    while let Some(option) = options.next() {
        if !with_code && is(option, "WITHCODE") {
            with_code = true;
        } else if !pattern && is(option, "LIBRARYNAME") {
            options.next().ok_or(Failure::fixed("ERR library name argument was not given"))?;
            pattern = true;
        } else {
            return Err(Failure::new([b"ERR Unknown argument ", option].concat()));
        }
    }
    context.replies.array(0);
    Ok(Reply::Now)
}

fn function_help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "function")
}
