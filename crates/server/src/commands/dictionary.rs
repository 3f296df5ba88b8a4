//! DICTIONARY: what was learned for values that are alike. A command of snugly's own.

use snugly_protocol::escape::{escape, unescape};
use snugly_protocol::resp::Args;
use snugly_store::DictionaryError;

use super::options::integer;
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command, container};
use crate::info::dictionaries::{CLASS, DICTIONARY};
use crate::stat::{Stat, Value};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("dictionary", &[
        command("classes", 2, Flags::ADMINISTRATION, NO_KEYS, classes),
        command("list", 2, Flags::ADMINISTRATION, NO_KEYS, list),
        command("train", -2, Flags::ADMINISTRATION, NO_KEYS, train),
        command("export", 3, Flags::ADMINISTRATION, NO_KEYS, export),
        command("import", 5, Flags::ADMINISTRATION, NO_KEYS, import),
        command("forget", 3, Flags::ADMINISTRATION, NO_KEYS, forget),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
    ]),
];

fn classes(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let classes = context.server.store().classes();
    context.replies.array(classes.len());
    for class in &classes {
        context.replies.map(CLASS.len());
        reply_figures(context, CLASS, class);
    }
    Ok(Reply::Now)
}

fn list(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let dictionaries = context.server.store().dictionaries();
    context.replies.array(dictionaries.len());
    for dictionary in &dictionaries {
        context.replies.map(1 + DICTIONARY.len());
        context.replies.bulk(b"number");
        context.replies.integer(dictionary.number.into());
        reply_figures(context, DICTIONARY, dictionary);
    }
    Ok(Reply::Now)
}

pub(super) fn reply_figures<T>(context: &mut Context<'_>, stats: &[Stat<T>], of: &T) {
    for stat in stats {
        context.replies.bulk(stat.field.as_bytes());
        match (stat.value)(of) {
            Value::Count(number) | Value::Bytes(number) => context.replies.integer(number as i64),
            Value::Difference(number) => context.replies.integer(number),
            Value::Real(number, _) => context.replies.double(number),
            Value::Text(text) => context.replies.bulk(text.as_bytes()),
            Value::Raw(bytes) => context.replies.bulk(&bytes),
            Value::Times(times) => context.replies.integer(times.count() as i64),
            Value::Unknown => context.replies.null(),
        }
    }
}

fn train(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    refuse_while_off(context)?;
    let store = context.server.store();
    let classes = match args.get(2) {
        None => store.train_dictionaries(None),
        Some(pattern) => match store.train_dictionaries(Some(pattern)) {
            // As INFO shows it.
            0 => store.train_dictionaries(Some(&unescape(pattern))),
            classes => classes,
        },
    };
    match args.get(2) {
        Some(pattern) if classes == 0 => Err(Failure::new(format!(
            "ERR no class of values has the pattern {}: DICTIONARY CLASSES lists them all, and DICTIONARY TRAIN without a \
             pattern looks for them in all values",
            escape(pattern)
        ))),
        _ => context.integer(classes as i64),
    }
}

fn export(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let number = number(&args[2])?;
    let content = context.server.store().dictionary_content(number);
    let content = content.ok_or(DictionaryError::Unknown { number }).map_err(refused)?;
    context.replies.bulk(&content);
    Ok(Reply::Now)
}

fn import(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let len = usize::try_from(integer(&args[3])?).map_err(|_| Failure::NOT_AN_INTEGER)?;
    refuse_while_off(context)?;
    let imported = context.server.store().import_dictionary(&args[4], &args[2], len);
    let number = imported.map_err(refused)?;
    context.integer(number.into())
}

fn forget(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    context.server.store().forget_dictionary(number(&args[2])?).map_err(refused)?;
    context.ok()
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "dictionary")
}

fn number(arg: &[u8]) -> Result<u32, Failure> {
    u32::try_from(integer(arg)?).map_err(|_| Failure::NOT_AN_INTEGER)
}

/// Fails where no dictionary would be used, whatever is done, with what to change.
fn refuse_while_off(context: &Context<'_>) -> Result<(), Failure> {
    let settings = context.server.store().settings();
    if !settings.dictionaries.enabled {
        return Err(Failure::fixed("ERR dictionaries are switched off: CONFIG SET dictionaries yes"));
    }
    if !settings.dictionaries.trains {
        return Err(Failure::fixed("ERR dictionaries are fixed: CONFIG SET dictionaries yes"));
    }
    if !settings.uses_dictionaries() {
        return Err(Failure::fixed(
            "ERR dictionaries need compression, and there is none: CONFIG SET compression zstd",
        ));
    }
    Ok(())
}

fn refused(error: DictionaryError) -> Failure {
    Failure::new(format!("ERR {error}"))
}
