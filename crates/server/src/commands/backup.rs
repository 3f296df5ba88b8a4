//! BACKUP: copies of the store, while it is in use. A command of snugly's own.

use std::path::Path;

use snugly_protocol::resp::Args;

use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command, container};
use crate::backups::{BackupFailure, Current, History, Last};
use crate::dump_folder::dump_folder;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("backup", &[
        command("cancel", 2, Flags::ADMINISTRATION, NO_KEYS, cancel),
        command("create", 3, Flags::ADMINISTRATION.and(Flags::NO_MULTI), NO_KEYS, create),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("status", 2, Flags::ADMINISTRATION, NO_KEYS, status),
    ]),
];

/// Longest name of a backup, in bytes: file systems have 255, and one that is being made has a longer one.
const LONGEST_NAME: usize = 200;

fn create(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let name = str::from_utf8(&args[2]).ok().filter(|name| is_name(name)).ok_or(Failure::fixed(
        "ERR the name of a backup has letters, digits, '-', '_' and '.', and begins with a letter or a digit: it is a folder \
         in dir",
    ))?;
    let server = context.server;
    let folder = dump_folder(server).map_err(|error| Failure::new(format!("ERR {error}")))?.join(name);
    server.backups().begin(server.store(), &folder).map_err(refused)?;
    context.replies.simple("Backup started");
    Ok(Reply::Now)
}

/// Returns whether a name is one path component that surprises nobody: clients name no folder but one inside `dir`.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= LONGEST_NAME
        && name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && name.bytes().all(is_plain)
}

fn cancel(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    match context.server.backups().cancel() {
        true => context.ok(),
        false => Err(Failure::fixed("ERR no backup is being made")),
    }
}

/// Replies with a map about the backup under way, or else about the last one.
fn status(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let History { current, last, .. } = context.server.backups().history();
    let fields = match (current, last) {
        (Some(current), _) => of_current(&current),
        (None, Some(last)) => of_last(last),
        (None, None) => vec![("state", Shown::text("none"))],
    };
    context.replies.map(fields.len());
    for (name, shown) in fields {
        context.replies.bulk(name.as_bytes());
        match shown {
            Shown::Text(text) => context.replies.bulk(text.as_bytes()),
            Shown::Number(number) => context.replies.integer(number as i64),
        }
    }
    Ok(Reply::Now)
}

/// The value of a field of BACKUP STATUS.
enum Shown {
    Text(String),
    Number(u64),
}

impl Shown {
    fn text(text: &str) -> Shown {
        Shown::Text(text.to_owned())
    }

    fn path(path: &Path) -> Shown {
        Shown::Text(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string())
    }
}

fn of_current(current: &Current) -> Vec<(&'static str, Shown)> {
    vec![
        ("state", Shown::text("running")),
        ("folder", Shown::path(&current.folder)),
        ("seconds", Shown::Number(current.duration.as_secs())),
        ("written-bytes", Shown::Number(current.written_bytes)),
        ("expected-bytes", Shown::Number(current.expected_bytes)),
        ("verified-rows", Shown::Number(current.verified_rows)),
    ]
}

fn of_last(last: Last) -> Vec<(&'static str, Shown)> {
    let (state, end) = match last.outcome {
        Ok(keys) => ("made", ("keys", Shown::Number(keys))),
        Err(reason) => ("failed", ("reason", Shown::Text(reason))),
    };
    vec![
        ("state", Shown::text(state)),
        ("folder", Shown::path(&last.folder)),
        ("seconds", Shown::Number(last.duration.as_secs())),
        ("written-bytes", Shown::Number(last.written_bytes)),
        end,
    ]
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "backup")
}

fn refused(error: BackupFailure) -> Failure {
    Failure::new(format!("ERR {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_inside_its_folder() {
        for name in ["backup", "2026-11-28_07.46", "a", &"x".repeat(LONGEST_NAME)] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["", ".", "..", ".hidden", "-flag", "a/b", "../up", "/etc", "a b", "a\0b", "ä", &"x".repeat(201)]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
