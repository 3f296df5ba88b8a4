//! CONFIG: the settings, while the server runs.

use snugly_protocol::resp::Args;

use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, command, container};
use crate::glob;
use crate::settings::{self, Configuration, FIXED, SETTINGS};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("config", "2.0.0", "Reads and changes settings.", &[
        command("get", -3, Flags::ADMINISTRATION, NO_KEYS, "2.0.0", "Gives the settings that match a pattern.", get),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, "5.0.0", "Lists the subcommands.", help),
        command("resetstat", 2, Flags::ADMINISTRATION, NO_KEYS, "2.0.0", "Sets the statistics of INFO to zero.", resetstat),
        command("rewrite", 2, Flags::ADMINISTRATION, NO_KEYS, "2.8.0", "Writes the settings to the configuration file.", rewrite),
        command("set", -4, Flags::ADMINISTRATION, NO_KEYS, "2.0.0", "Changes settings.", set),
    ]),
];

fn get(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let configuration = context.server.configuration();
    let shown = SETTINGS.iter().map(|setting| (setting.config_name(), (setting.get)(&configuration)));
    let fixed = FIXED.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let mut found: Vec<(&[u8], String)> = Vec::new();
    for (name, value) in shown.chain(fixed) {
        // A name that was asked for in full comes back as it was spelled.
        let spelled = args.from(2).iter().find(|pattern| pattern.eq_ignore_ascii_case(name.as_bytes()));
        let matched = || args.from(2).iter().any(|pattern| glob::matches(pattern, name.as_bytes(), true));
        if spelled.is_some() || matched() {
            found.push((spelled.unwrap_or(name.as_bytes()), value));
        }
    }
    context.replies.map(found.len());
    for (name, value) in found {
        context.replies.bulk(name);
        context.replies.bulk(value.as_bytes());
    }
    Ok(())
}

fn set(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if !args.len().is_multiple_of(2) {
        return Err(Failure::wrong_arity("config|set"));
    }
    let mut configuration = Configuration::clone(&context.server.configuration());
    let mut changed: Vec<&str> = Vec::new();
    let mut pairs = args.from(2).iter();
    while let (Some(name), Some(value)) = (pairs.next(), pairs.next()) {
        let setting = std::str::from_utf8(name).ok().and_then(settings::by_config_name).ok_or_else(|| {
            let text = [b"ERR Unknown option or number of arguments for CONFIG SET - '", name, b"'"];
            Failure::new(text.concat())
        })?;
        if !setting.live {
            return Err(refused(setting.config_name(), "can't set immutable config"));
        }
        if changed.contains(&setting.name) {
            return Err(refused(setting.config_name(), "duplicate parameter"));
        }
        changed.push(setting.name);
        let value = std::str::from_utf8(value)
            .map_err(|_| refused(setting.config_name(), "argument must be text"))?;
        (setting.set)(&mut configuration, value).map_err(|why| refused(setting.config_name(), &why))?;
    }
    context
        .server
        .change_configuration(configuration)
        .map_err(|error| refused(about_compression(&changed), &error.to_string()))?;
    context.ok()
}

/// Which of the changed settings is to blame when codec, level and threshold do not go together.
fn about_compression<'a>(changed: &[&'a str]) -> &'a str {
    let related = |name: &&&str| name.starts_with(settings::COMPRESSION);
    changed.iter().rev().find(related).copied().unwrap_or(settings::COMPRESSION)
}

fn refused(name: &str, why: &str) -> Failure {
    Failure::new(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
}

fn resetstat(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.server.reset_stats();
    context.ok()
}

fn rewrite(_context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    Err(Failure::fixed("ERR The server is running without a config file"))
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "config")
}
