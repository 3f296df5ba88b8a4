//! COMMAND: the command table, told to clients.

use snugly_protocol::resp::{Args, ReplyBuffer};

use super::documentation::{Argument, BeginSearch, Documentation, FindKeys, KeySpecification, documentation};
use super::key_specifications::{FoundKey, keys};
use super::options::is;
use super::registry::reply_help;
use super::{
    Action, Command, Context, Failure, Flags, GROUPS, Keys, NO_KEYS, Outcome, REGISTRY, Reply, command,
};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[Command {
    name: "command", arity: -1, flags: Flags::ANY_TIME, keys: NO_KEYS,
    action: Action::RunOrSubcommands(all, &[
        command("count", 2, Flags::ANY_TIME, NO_KEYS, count),
        command("docs", -2, Flags::ANY_TIME, NO_KEYS, docs),
        command("getkeys", -3, Flags::ANY_TIME, NO_KEYS, getkeys),
        command("getkeysandflags", -3, Flags::ANY_TIME, NO_KEYS, getkeysandflags),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("info", -2, Flags::ANY_TIME, NO_KEYS, info),
        command("list", -2, Flags::ANY_TIME, NO_KEYS, list),
    ]),
}];

/// The commands, without their subcommands.
fn table() -> impl Iterator<Item = &'static Command> {
    GROUPS.iter().flat_map(|group| group.commands)
}

/// A row and its full name: `get`, or `config|get`.
type Named = (&'static Command, String);

fn with_subcommands(command: &'static Command) -> impl Iterator<Item = Named> {
    let name = move |row: &Command| format!("{}|{}", command.name, row.name);
    let subcommands = command.subcommands().iter().map(move |row| (row, name(row)));
    std::iter::once((command, command.name.to_owned())).chain(subcommands)
}

/// The row of `get` or `config|get`, in any case.
fn find(name: &[u8]) -> Option<Named> {
    table().flat_map(with_subcommands).find(|(_, full_name)| full_name.as_bytes().eq_ignore_ascii_case(name))
}

fn all(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.replies.array(table().count());
    table().for_each(|command| reply_row(context.replies, command, command.name));
    Ok(Reply::Now)
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
            None => context.replies.null(),
            Some((command, full_name)) => reply_row(context.replies, command, &full_name),
        }
    }
    Ok(Reply::Now)
}

fn reply_row(replies: &mut ReplyBuffer, command: &Command, full_name: &str) {
    let documentation = documentation(full_name);
    replies.array(10);
    replies.bulk(full_name.as_bytes());
    replies.integer(command.arity.into());
    let flags: Vec<_> = Flags::NAMES.iter().filter(|(flag, _)| command.flags.has(*flag)).collect();
    replies.set(flags.len());
    flags.iter().for_each(|(_, name)| replies.simple(name));
    let Keys { first, last, step } = if command.keys.are_counted() { NO_KEYS } else { command.keys };
    [first, last, step].iter().for_each(|&number| replies.integer(number.into()));
    replies.set(documentation.acl_categories.len());
    documentation.acl_categories.iter().for_each(|name| replies.simple(format!("@{name}")));
    replies.set(documentation.tips.len());
    documentation.tips.iter().for_each(|tip| replies.bulk(tip.as_bytes()));
    replies.set(documentation.key_specifications.len());
    documentation.key_specifications.iter().for_each(|keys| reply_key_specification(replies, keys));
    replies.array(command.subcommands().len());
    for row in command.subcommands() {
        reply_row(replies, row, &format!("{full_name}|{}", row.name));
    }
}

fn reply_key_specification(replies: &mut ReplyBuffer, keys: &KeySpecification) {
    replies.map(if keys.notes.is_some() { 4 } else { 3 });
    reply_text(replies, "notes", keys.notes.as_deref());
    replies.bulk(b"flags");
    replies.set(keys.flags.len());
    keys.flags.iter().for_each(|flag| replies.simple(flag));
    replies.bulk(b"begin_search");
    match &keys.begin_search {
        BeginSearch::Index { index } => reply_numbers(replies, "index", &[("index", *index)]),
        BeginSearch::Keyword { keyword, startfrom } => {
            reply_kind(replies, "keyword", 2);
            reply_text(replies, "keyword", Some(keyword));
            reply_number(replies, "startfrom", *startfrom);
        }
        BeginSearch::Unknown {} => reply_numbers(replies, "unknown", &[]),
    }
    replies.bulk(b"find_keys");
    match keys.find_keys {
        FindKeys::Range { lastkey, keystep, limit } => {
            reply_numbers(replies, "range", &[("lastkey", lastkey), ("keystep", keystep), ("limit", limit)]);
        }
        FindKeys::KeyNum { keynumidx, firstkey, keystep } => {
            reply_numbers(
                replies,
                "keynum",
                &[("keynumidx", keynumidx), ("firstkey", firstkey), ("keystep", keystep)],
            );
        }
        FindKeys::Unknown {} => reply_numbers(replies, "unknown", &[]),
    }
}

fn reply_kind(replies: &mut ReplyBuffer, kind: &str, fields: usize) {
    replies.map(2);
    reply_text(replies, "type", Some(kind));
    replies.bulk(b"spec");
    replies.map(fields);
}

fn reply_numbers(replies: &mut ReplyBuffer, kind: &str, numbers: &[(&str, i64)]) {
    reply_kind(replies, kind, numbers.len());
    numbers.iter().for_each(|(name, number)| reply_number(replies, name, *number));
}

fn reply_number(replies: &mut ReplyBuffer, name: &str, number: i64) {
    replies.bulk(name.as_bytes());
    replies.integer(number);
}

/// Answers a field, if there is something in it.
fn reply_text(replies: &mut ReplyBuffer, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        replies.bulk(name.as_bytes());
        replies.bulk(text.as_bytes());
    }
}

fn reply_flags(replies: &mut ReplyBuffer, name: &str, flags: &[String]) {
    if !flags.is_empty() {
        replies.bulk(name.as_bytes());
        replies.set(flags.len());
        flags.iter().for_each(|flag| replies.simple(flag));
    }
}

fn docs(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let found: Vec<Named> = if args.len() == 2 {
        table().map(|command| (command, command.name.to_owned())).collect()
    } else {
        args.from(2).iter().filter_map(find).collect()
    };
    context.replies.map(found.len());
    found.iter().for_each(|(command, full_name)| reply_documentation(context.replies, command, full_name));
    Ok(Reply::Now)
}

fn reply_documentation(replies: &mut ReplyBuffer, command: &Command, full_name: &str) {
    let Documentation {
        summary,
        since,
        group,
        complexity,
        doc_flags,
        deprecated_since,
        replaced_by,
        history,
        arguments,
        ..
    } = documentation(full_name);
    let subcommands = command.subcommands();
    let texts = [
        ("summary", Some(summary)),
        ("since", Some(since)),
        ("group", Some(group)),
        ("complexity", complexity.as_ref()),
    ];
    let deprecation =
        [("deprecated_since", deprecated_since.as_ref()), ("replaced_by", replaced_by.as_ref())];
    let lists = [doc_flags.is_empty(), history.is_empty(), arguments.is_empty(), subcommands.is_empty()];
    let fields = texts.iter().chain(&deprecation).filter(|(_, text)| text.is_some()).count()
        + lists.iter().filter(|empty| !**empty).count();

    replies.bulk(full_name.as_bytes());
    replies.map(fields);
    texts.iter().for_each(|(name, text)| reply_text(replies, name, text.map(String::as_str)));
    reply_flags(replies, "doc_flags", doc_flags);
    deprecation.iter().for_each(|(name, text)| reply_text(replies, name, text.map(String::as_str)));
    if !history.is_empty() {
        replies.bulk(b"history");
        replies.set(history.len());
        for (version, change) in history {
            replies.array(2);
            replies.bulk(version.as_bytes());
            replies.bulk(change.as_bytes());
        }
    }
    reply_arguments(replies, arguments);
    if !subcommands.is_empty() {
        replies.bulk(b"subcommands");
        replies.map(subcommands.len());
        for row in subcommands {
            reply_documentation(replies, row, &format!("{full_name}|{}", row.name));
        }
    }
}

fn reply_arguments(replies: &mut ReplyBuffer, arguments: &[Argument]) {
    if arguments.is_empty() {
        return;
    }
    replies.bulk(b"arguments");
    replies.array(arguments.len());
    for argument in arguments {
        let head = [
            ("name", Some(&argument.name)),
            ("type", Some(&argument.kind)),
            ("display_text", argument.display_text.as_ref()),
        ];
        let tail = [
            ("token", argument.token.as_ref()),
            ("summary", argument.summary.as_ref()),
            ("since", argument.since.as_ref()),
            ("deprecated_since", argument.deprecated_since.as_ref()),
        ];
        let fields = head.iter().chain(&tail).filter(|(_, text)| text.is_some()).count()
            + usize::from(argument.key_spec_index.is_some())
            + usize::from(!argument.flags.is_empty())
            + usize::from(!argument.arguments.is_empty());
        replies.map(fields);
        head.iter().for_each(|(name, text)| reply_text(replies, name, text.map(String::as_str)));
        if let Some(index) = argument.key_spec_index {
            reply_number(replies, "key_spec_index", index);
        }
        tail.iter().for_each(|(name, text)| reply_text(replies, name, text.map(String::as_str)));
        reply_flags(replies, "flags", &argument.flags);
        reply_arguments(replies, &argument.arguments);
    }
}

fn getkeys(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let keys = keys_of(args.from(2))?;
    context.replies.array(keys.len());
    keys.iter().for_each(|(key, _)| context.replies.bulk(key));
    Ok(Reply::Now)
}

fn getkeysandflags(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let keys = keys_of(args.from(2))?;
    context.replies.array(keys.len());
    for (key, flags) in keys {
        context.replies.array(2);
        context.replies.bulk(key);
        context.replies.set(flags.len());
        flags.iter().for_each(|flag| context.replies.simple(flag));
    }
    Ok(Reply::Now)
}

fn keys_of(request: Args<'_>) -> Result<Vec<FoundKey<'_>>, Failure> {
    const NO_KEY_ARGUMENTS: Failure = Failure::fixed("ERR The command has no key arguments");
    let row = match REGISTRY.find(request) {
        Some(place) => &REGISTRY.rows()[place],
        // Subcommands alone have keys.
        None if request.len() == 1 && REGISTRY.has_subcommands(&request[0]) => return Err(NO_KEY_ARGUMENTS),
        None => return Err(Failure::fixed("ERR Invalid command specified")),
    };
    let documentation = documentation(&row.full_name);
    if !documentation.key_specifications.iter().any(KeySpecification::is_about_keys) {
        return Err(NO_KEY_ARGUMENTS);
    }
    if !row.command.accepts(request.len()) {
        return Err(Failure::fixed("ERR Invalid number of arguments specified for command"));
    }
    let found = keys(&row.full_name, documentation, request);
    let may_be_none = row.command.flags.has(Flags::NO_MANDATORY_KEYS);
    found.or(may_be_none.then(Vec::new)).ok_or(Failure::fixed("ERR Invalid arguments specified for command"))
}

fn list(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let admit: Box<dyn Fn(&str) -> bool> = match args.len() {
        2 => Box::new(|_| true),
        5 if is(&args[2], "FILTERBY") && is(&args[3], "PATTERN") => {
            let pattern = snugly_glob::Pattern::new(&args[4], true);
            Box::new(move |full_name| pattern.matches(full_name.as_bytes()))
        }
        5 if is(&args[2], "FILTERBY") && is(&args[3], "ACLCAT") => {
            let category = args[4].to_ascii_lowercase();
            Box::new(move |full_name| {
                documentation(full_name).acl_categories.iter().any(|name| name.as_bytes() == category)
            })
        }
        5 if is(&args[2], "FILTERBY") && is(&args[3], "MODULE") => Box::new(|_| false),
        _ => return Err(Failure::SYNTAX),
    };
    let found: Vec<String> = table()
        .flat_map(with_subcommands)
        .map(|(_, full_name)| full_name)
        .filter(|full_name| admit(full_name))
        .collect();
    context.replies.array(found.len());
    found.iter().for_each(|full_name| context.replies.bulk(full_name.as_bytes()));
    Ok(Reply::Now)
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "command")
}
