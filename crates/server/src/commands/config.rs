//! CONFIG: the settings, while the server runs.

use snugly_protocol::resp::Args;
use tracing::{info, warn};

use super::registry::reply_help;
use super::replication::wait_for_requests;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, Reply, command, container};
use crate::settings::{self, Setting, WithoutEffect, without_effect};
use crate::tls::TlsError;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("config", &[
        command("get", -3, Flags::ADMINISTRATION, NO_KEYS, get),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("reload", 2, Flags::ADMINISTRATION, NO_KEYS, reload),
        command("resetstat", 2, Flags::ADMINISTRATION, NO_KEYS, resetstat),
        command("rewrite", 2, Flags::ADMINISTRATION, NO_KEYS, rewrite),
        command("set", -4, Flags::ADMINISTRATION, NO_KEYS, set),
    ]),
];

fn get(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let configuration = context.server.configuration();
    let shown = settings::config_names().map(|(name, setting)| (name, (setting.get)(&configuration)));
    let others = without_effect::shown(&configuration.without_effect);
    let others = others.map(|(name, value)| (name, value.to_owned()));
    let mut found: Vec<(&[u8], String)> = Vec::new();
    for (name, value) in shown.chain(others) {
        // A name that was asked for in full comes back as it was spelled.
        let spelled = args.from(2).iter().find(|pattern| pattern.eq_ignore_ascii_case(name.as_bytes()));
        let matched =
            || args.from(2).iter().any(|pattern| snugly_glob::matches(pattern, name.as_bytes(), true));
        if spelled.is_some() || matched() {
            found.push((spelled.unwrap_or(name.as_bytes()), value));
        }
    }
    found.sort_unstable();
    context.replies.map(found.len());
    for (name, value) in found {
        context.replies.bulk(name);
        context.replies.bulk(value.as_bytes());
    }
    Ok(Reply::Now)
}

fn set(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    if !args.len().is_multiple_of(2) {
        return Err(Failure::SYNTAX);
    }
    let changes = changes(context, args)?;
    let (mut told, mut advice) = (Vec::new(), Vec::new());
    context.server.change_configuration(|configuration| {
        for &Change { name, target, value } in &changes {
            let text = String::from_utf8_lossy(value);
            match target {
                Target::Setting(setting) if setting.is_secret() && text.as_bytes() != value => {
                    return Err(refused(name, "argument must be text"));
                }
                Target::Setting(setting) => {
                    (setting.set)(configuration, &text).map_err(|why| refused(name, &why))?;
                    advice.extend(settings::advice_on(name));
                }
                Target::WithoutEffect(row) => {
                    let value = row.read(&text).map_err(|why| refused(name, &why))?;
                    if row.keep(&mut configuration.without_effect, value) {
                        told.push(name);
                    }
                }
            }
        }
        let settings = configuration.store_settings();
        settings.map_err(|error| refused(about_compression(&changes), &error.to_string()))
    })?;
    wait_for_requests(context);
    for name in told {
        warn!(setting = name, "CONFIG SET of a setting that has no effect here was accepted");
    }
    for advice in advice {
        warn!("{advice}");
    }
    context.ok()
}

/// A setting that is to change.
struct Change<'a> {
    /// Its name as CONFIG knows it.
    name: &'static str,
    target: Target,
    /// The value that is asked for.
    value: &'a [u8],
}

#[derive(Clone, Copy)]
enum Target {
    Setting(&'static Setting),
    WithoutEffect(&'static WithoutEffect),
}

/// The changes of a CONFIG SET; that all of the settings can be changed is known before any value is looked at. A
/// setting that cannot change may be set to its present value.
fn changes<'a>(context: &Context<'_>, args: Args<'a>) -> Result<Vec<Change<'a>>, Failure> {
    let current = context.server.configuration();
    let may_change_protected = current.enable_protected_configs.to(&context.client.info.address);
    let mut changes: Vec<Change> = Vec::new();
    let mut pairs = args.from(2).iter();
    while let (Some(asked), Some(value)) = (pairs.next(), pairs.next()) {
        if let Some((name, row)) = without_effect::find(asked) {
            add(&mut changes, asked, Change { name, target: Target::WithoutEffect(row), value })?;
            continue;
        }
        let known = |(name, _): &(&str, _)| name.as_bytes().eq_ignore_ascii_case(asked);
        let (name, setting) = settings::config_names().find(known).ok_or_else(|| {
            let text = [b"ERR Unknown option or number of arguments for CONFIG SET - '", asked, b"'"];
            Failure::new(text.concat())
        })?;
        let spelled = String::from_utf8_lossy(asked);
        if !setting.live && value == (setting.get)(&current).as_bytes() {
            continue;
        }
        if !setting.live {
            return Err(refused(&spelled, "can't set immutable config"));
        }
        if setting.is_protected() && !may_change_protected {
            return Err(refused(&spelled, "can't set protected config"));
        }
        add(&mut changes, asked, Change { name, target: Target::Setting(setting), value })?;
    }
    Ok(changes)
}

fn add<'a>(changes: &mut Vec<Change<'a>>, asked: &[u8], change: Change<'a>) -> Result<(), Failure> {
    if changes.iter().any(|other| other.name == change.name) {
        return Err(refused(&String::from_utf8_lossy(asked), "duplicate parameter"));
    }
    changes.push(change);
    Ok(())
}

/// The changed setting to blame when codec, level and threshold do not go together.
fn about_compression(changes: &[Change<'_>]) -> &'static str {
    let related = |name: &&str| name.starts_with(settings::COMPRESSION);
    changes.iter().rev().map(|change| change.name).find(related).unwrap_or(settings::COMPRESSION)
}

/// Valkey's words for certificates and keys that cannot be used, with the reason.
impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Failure {
        refused("tls-cert-file", &error.to_string())
    }
}

fn refused(name: &str, why: &str) -> Failure {
    Failure::new(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
}

fn resetstat(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.server.reset_stats();
    context.ok()
}

fn rewrite(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let beaten =
        context.server.rewrite_configuration().map_err(|error| Failure::new(format!("ERR {error}")))?;
    for setting in beaten {
        warn!(setting, "a flag or the environment gives this setting, and beats the rewritten file");
    }
    context.ok()
}

/// Fails if only a restart can apply something, after all else was applied.
fn reload(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let outcome = context.server.reload();
    let outcome =
        outcome.map_err(|error| Failure::new(format!("ERR CONFIG RELOAD changed nothing - {error}")))?;
    info!("CONFIG RELOAD {outcome}");
    if outcome.refused.is_empty() {
        context.ok()
    } else {
        Err(Failure::new(format!("ERR CONFIG RELOAD {outcome}")))
    }
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "config")
}
