//! DICTIONARY: what was learned for values that are alike. A command of snugly's own.

use snugly_protocol::resp::Args;
use snugly_store::{DictionaryError, DictionaryStats};

use super::options::integer;
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, command, container};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("dictionary", &[
        command("list", 2, Flags::ADMINISTRATION, NO_KEYS, list),
        command("train", -2, Flags::ADMINISTRATION, NO_KEYS, train),
        command("export", 3, Flags::ADMINISTRATION, NO_KEYS, export),
        command("import", 5, Flags::ADMINISTRATION, NO_KEYS, import),
        command("forget", 3, Flags::ADMINISTRATION, NO_KEYS, forget),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
    ]),
];

/// A field of DICTIONARY LIST.
enum Field<'a> {
    Number(u64),
    Ratio(f64),
    Text(&'a [u8]),
    Unknown,
}

fn list(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let dictionaries = context.server.store().dictionaries();
    context.replies.array(dictionaries.len());
    for dictionary in &dictionaries {
        let fields = fields(dictionary);
        context.replies.map(fields.len());
        for (name, field) in fields {
            context.replies.bulk(name.as_bytes());
            match field {
                Field::Number(number) => context.replies.integer(number as i64),
                Field::Ratio(ratio) => context.replies.double(ratio),
                Field::Text(text) => context.replies.bulk(text),
                Field::Unknown => context.replies.null(),
            }
        }
    }
    Ok(())
}

/// The names are those of INFO.
fn fields(dictionary: &DictionaryStats) -> Vec<(&'static str, Field<'_>)> {
    vec![
        ("number", Field::Number(dictionary.number.into())),
        ("id", Field::Number(dictionary.id.into())),
        ("active", Field::Number(dictionary.active.into())),
        ("pattern", Field::Text(&dictionary.pattern)),
        ("min_len", Field::Number(dictionary.min_len as u64)),
        ("max_len", Field::Number(dictionary.max_len as u64)),
        ("bytes", Field::Number(dictionary.bytes as u64)),
        ("memory", Field::Number(dictionary.memory as u64)),
        ("samples", Field::Number(dictionary.samples as u64)),
        ("ratio_before", dictionary.ratio_before.map_or(Field::Unknown, Field::Ratio)),
        ("ratio_after", dictionary.ratio_after.map_or(Field::Unknown, Field::Ratio)),
        ("ratio_now", dictionary.ratio_now.map_or(Field::Unknown, Field::Ratio)),
        ("records", Field::Number(dictionary.records)),
        ("trained_at", Field::Number(dictionary.trained_at)),
    ]
}

fn train(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let classes = context.server.store().train_dictionaries(args.get(2));
    context.integer(classes as i64)
}

fn export(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let number = number(&args[2])?;
    let content = context.server.store().dictionary_content(number);
    let content = content.ok_or(DictionaryError::Unknown { number }).map_err(refused)?;
    context.replies.bulk(&content);
    Ok(())
}

fn import(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let len = usize::try_from(integer(&args[3])?).map_err(|_| Failure::NOT_AN_INTEGER)?;
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

fn refused(error: DictionaryError) -> Failure {
    Failure::new(format!("ERR {error}"))
}
