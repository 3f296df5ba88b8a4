//! COMMAND: the command table, told to clients.

use snugly_protocol::resp::Args;

use super::options::is;
use super::registry::reply_help;
use super::{Action, Command, Context, Failure, Flags, GROUPS, Group, Keys, NO_KEYS, Outcome, command};
use crate::glob;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[Command {
    name: "command", arity: -1, flags: Flags::ANY_TIME, keys: NO_KEYS, since: "2.8.13",
    summary: "Describes the commands.",
    action: Action::RunOrSubcommands(all, &[
        command("count", 2, Flags::ANY_TIME, NO_KEYS, "2.8.13", "Gives the number of commands.", count),
        command("docs", -2, Flags::ANY_TIME, NO_KEYS, "7.0.0", "Gives what commands are for.", docs),
        command("getkeys", -3, Flags::ANY_TIME, NO_KEYS, "2.8.13", "Gives the keys among a command's arguments.", getkeys),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, "5.0.0", "Lists the subcommands.", help),
        command("info", -2, Flags::ANY_TIME, NO_KEYS, "2.8.13", "Gives arity, flags and keys of commands.", info),
        command("list", -2, Flags::ANY_TIME, NO_KEYS, "7.0.0", "Gives the names of commands.", list),
    ]),
}];

type Described = (&'static Group, &'static Command);

fn table() -> impl Iterator<Item = Described> {
    GROUPS.iter().flat_map(|group| group.commands.iter().map(move |command| (group, command)))
}

/// The row of `get` or `config|get`.
fn find(name: &[u8]) -> Option<(Described, Option<&'static Command>)> {
    let (name, subcommand) = match name.iter().position(|&byte| byte == b'|') {
        Some(bar) => (&name[..bar], Some(&name[bar + 1..])),
        None => (name, None),
    };
    let named = |command: &Command, name: &[u8]| command.name.as_bytes().eq_ignore_ascii_case(name);
    let described = table().find(|(_, command)| named(command, name))?;
    match subcommand {
        None => Some((described, None)),
        Some(subcommand) => {
            let row = described.1.subcommands().iter().find(|row| named(row, subcommand))?;
            Some((described, Some(row)))
        }
    }
}

fn all(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.replies.array(table().count());
    table().for_each(|(group, command)| reply_row(context, group, command, command.name));
    Ok(())
}

fn count(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.integer(table().count() as i64)
}

fn info(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let names = args.from(2);
    if names.is_empty() {
        return all(context, args);
    }
    context.replies.array(names.len());
    for name in names {
        match find(name) {
            None => context.replies.null_array(),
            Some(((group, command), None)) => reply_row(context, group, command, command.name),
            Some(((group, command), Some(row))) => {
                reply_row(context, group, row, &format!("{}|{}", command.name, row.name));
            }
        }
    }
    Ok(())
}

fn reply_row(context: &mut Context<'_>, group: &Group, command: &Command, full_name: &str) {
    let replies = &mut context.replies;
    replies.array(10);
    replies.bulk(full_name.as_bytes());
    replies.integer(command.arity.into());
    let flags: Vec<_> = Flags::NAMES.iter().filter(|(flag, _)| command.flags.has(*flag)).collect();
    replies.set(flags.len());
    flags.iter().for_each(|(_, name)| replies.simple(name));
    let Keys { first, last, step } = if command.keys.are_counted() { NO_KEYS } else { command.keys };
    [first, last, step].iter().for_each(|&number| replies.integer(number.into()));
    let categories = categories(group, command);
    replies.set(categories.len());
    categories.iter().for_each(|name| replies.simple(name));
    replies.set(0); // tips
    reply_key_specifications(context, command);
    context.replies.array(command.subcommands().len());
    for row in command.subcommands() {
        reply_row(context, group, row, &format!("{full_name}|{}", row.name));
    }
}

/// The ACL categories, which follow from group and flags.
fn categories(group: &Group, command: &Command) -> Vec<&'static str> {
    let flags = command.flags;
    let of_group = match group.name {
        "string" => Some("@string"),
        "bitmap" => Some("@bitmap"),
        "generic" => Some("@keyspace"),
        "connection" => Some("@connection"),
        "pubsub" => Some("@pubsub"),
        "transactions" => Some("@transaction"),
        _ => None,
    };
    let by_flag = [
        (flags.has(Flags::WRITE), "@write"),
        (flags.has(Flags::READONLY), "@read"),
        (flags.has(Flags::ADMIN), "@admin"),
        (flags.has(Flags::DANGEROUS), "@dangerous"),
        (flags.has(Flags::FAST), "@fast"),
        (!flags.has(Flags::FAST), "@slow"),
    ];
    of_group.into_iter().chain(by_flag.into_iter().filter_map(|(has, name)| has.then_some(name))).collect()
}

fn reply_key_specifications(context: &mut Context<'_>, command: &Command) {
    let replies = &mut context.replies;
    if command.keys == NO_KEYS {
        return replies.set(0);
    }
    let Keys { first, last, step } = command.keys;
    let access = if command.flags.has(Flags::WRITE) { "RW" } else { "RO" };
    let (first, kind, numbers) = if command.keys.are_counted() {
        (first - 1, "keynum", [("keynumidx", 0), ("firstkey", 1), ("keystep", step)])
    } else {
        // The range counts from the first key; a negative end counts from the last argument.
        let last = if last < 0 { last } else { last - first };
        (first, "range", [("lastkey", last), ("keystep", step), ("limit", 0)])
    };
    replies.set(1);
    replies.map(3);
    replies.bulk(b"flags");
    replies.set(1);
    replies.simple(access);
    for (name, kind, numbers) in
        [("begin_search", "index", &[("index", first)][..]), ("find_keys", kind, &numbers[..])]
    {
        replies.bulk(name.as_bytes());
        replies.map(2);
        replies.bulk(b"type");
        replies.bulk(kind.as_bytes());
        replies.bulk(b"spec");
        replies.map(numbers.len());
        for (name, number) in numbers {
            replies.bulk(name.as_bytes());
            replies.integer((*number).into());
        }
    }
}

fn docs(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let found: Vec<Described> = if args.len() == 2 {
        table().collect()
    } else {
        args.from(2).iter().filter_map(find).filter_map(|(row, sub)| sub.is_none().then_some(row)).collect()
    };
    context.replies.map(found.len());
    found.iter().for_each(|(group, command)| reply_doc(context, group, command, command.name));
    Ok(())
}

fn reply_doc(context: &mut Context<'_>, group: &Group, command: &Command, full_name: &str) {
    let subcommands = command.subcommands();
    context.replies.bulk(full_name.as_bytes());
    context.replies.map(if subcommands.is_empty() { 3 } else { 4 });
    for (name, text) in [("summary", command.summary), ("since", command.since), ("group", group.name)] {
        context.replies.bulk(name.as_bytes());
        context.replies.bulk(text.as_bytes());
    }
    if !subcommands.is_empty() {
        context.replies.bulk(b"subcommands");
        context.replies.map(subcommands.len());
        for row in subcommands {
            reply_doc(context, group, row, &format!("{full_name}|{}", row.name));
        }
    }
}

fn getkeys(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let request = args.from(2);
    let Some(((_, command), _)) = find(&request[0]) else {
        return Err(Failure::fixed("ERR Invalid command specified"));
    };
    let row = match request.get(1) {
        Some(name) => {
            let named = |row: &&Command| row.name.as_bytes().eq_ignore_ascii_case(name);
            command.subcommands().iter().find(named).unwrap_or(command)
        }
        None => command,
    };
    if row.keys == NO_KEYS {
        return Err(Failure::fixed("ERR The command has no key arguments"));
    }
    if !row.accepts(request.len()) {
        return Err(Failure::fixed("ERR Invalid number of arguments specified for command"));
    }
    let keys: Vec<_> = row.keys.among(request).collect();
    if keys.is_empty() {
        return Err(Failure::fixed("ERR Invalid arguments specified for command"));
    }
    context.replies.array(keys.len());
    keys.iter().for_each(|key| context.replies.bulk(key));
    Ok(())
}

fn list(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let admit: Box<dyn Fn(&Described) -> bool> = match args.len() {
        2 => Box::new(|_| true),
        5 if is(&args[2], "FILTERBY") && is(&args[3], "PATTERN") => {
            let pattern = args[4].to_vec();
            Box::new(move |(_, command)| glob::matches(&pattern, command.name.as_bytes(), true))
        }
        5 if is(&args[2], "FILTERBY") && is(&args[3], "ACLCAT") => {
            let category = [b"@", &args[4].to_ascii_lowercase()[..]].concat();
            Box::new(move |(group, command)| {
                categories(group, command).iter().any(|name| name.as_bytes() == category)
            })
        }
        5 if is(&args[2], "FILTERBY") && is(&args[3], "MODULE") => Box::new(|_| false),
        _ => return Err(Failure::SYNTAX),
    };
    let found: Vec<Described> = table().filter(|row| admit(row)).collect();
    context.replies.array(found.len());
    found.iter().for_each(|(_, command)| context.replies.bulk(command.name.as_bytes()));
    Ok(())
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "command")
}
