//! CLIENT TRACKING and its kin: a client that keeps copies of what it reads is told when they are out of date.

use snugly_protocol::resp::Args;

use super::options::{integer, is};
use super::{Client, Command, Context, Failure, Flags, Outcome, REGISTRY, Reply};
use crate::clients::{ClientInfo, State};
use crate::key_watch::TrackingMode;

/// The words for modes.
const MODES: [(&str, State); 4] = [
    ("BCAST", State::BROADCASTING),
    ("OPTIN", State::OPT_IN),
    ("OPTOUT", State::OPT_OUT),
    ("NOLOOP", State::NO_LOOP),
];

/// The most prefixes that a client may track.
const MAX_PREFIXES: usize = 1024;

pub(super) fn tracking(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let mode = parse(context, args.from(3))?;
    if is(&args[2], "ON") {
        let mode = check(context, mode)?;
        context.server.key_watch().track(&context.client.info, mode);
    } else if is(&args[2], "OFF") {
        context.server.key_watch().untrack(&context.client.info);
    } else {
        return Err(Failure::SYNTAX);
    }
    context.ok()
}

fn parse(context: &Context<'_>, args: Args<'_>) -> Result<TrackingMode, Failure> {
    let mut mode = TrackingMode::default();
    let mut rest = args.iter();
    while let Some(option) = rest.next() {
        if is(option, "REDIRECT") && rest.len() > 0 {
            if mode.redirect.is_some() {
                return Err(Failure::fixed("ERR A client can only redirect to a single other client"));
            }
            let id = integer(rest.next().unwrap_or_default())?;
            let target = u64::try_from(id).ok().and_then(|id| context.server.clients().get(id));
            let nobody = Failure::fixed("ERR The client ID you want redirect to does not exist");
            mode.redirect = Some(target.ok_or(nobody)?);
        } else if is(option, "PREFIX") && rest.len() > 0 {
            mode.prefixes.push(rest.next().unwrap_or_default().into());
        } else {
            let (_, state) = MODES.iter().find(|(word, _)| is(option, word)).ok_or(Failure::SYNTAX)?;
            mode.modes = mode.modes.and(*state);
        }
    }
    Ok(mode)
}

/// Checks that what is asked for goes together, and with what the client has.
fn check(context: &Context<'_>, mut mode: TrackingMode) -> Result<TrackingMode, Failure> {
    let (new, states) = (mode.modes, &context.client.info.states);
    let broadcasting = new.has(State::BROADCASTING);
    let problem = if !broadcasting && !mode.prefixes.is_empty() {
        Some("PREFIX option requires BCAST mode to be enabled")
    } else if states.has(State::TRACKING) && states.has(State::BROADCASTING) != broadcasting {
        Some(
            "You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
        )
    } else if broadcasting && (new.has(State::OPT_IN) || new.has(State::OPT_OUT)) {
        Some("OPTIN and OPTOUT are not compatible with BCAST")
    } else if new.has(State::OPT_IN) && new.has(State::OPT_OUT) {
        Some("You can't specify both OPTIN mode and OPTOUT mode")
    } else if new.has(State::OPT_IN) && states.has(State::OPT_OUT)
        || new.has(State::OPT_OUT) && states.has(State::OPT_IN)
    {
        Some(
            "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
        )
    } else {
        None
    };
    if let Some(problem) = problem {
        return Err(Failure::new(format!("ERR {problem}")));
    }
    check_prefixes(context, &mode.prefixes)?;
    if broadcasting && mode.prefixes.is_empty() {
        mode.prefixes.push(Box::default());
    }
    Ok(mode)
}

/// Two prefixes of a client must not say the same key; nor may there be too many, or longer ones than keys.
fn check_prefixes(context: &Context<'_>, prefixes: &[Box<[u8]>]) -> Result<(), Failure> {
    let existing = context.server.key_watch().prefixes(&context.client.info);
    let longest = context.server.configuration().max_key_bytes;
    if existing.len() + prefixes.len() > MAX_PREFIXES {
        return Err(Failure::new(format!("ERR a client can track at most {MAX_PREFIXES} prefixes")));
    }
    for (number, prefix) in prefixes.iter().enumerate() {
        if prefix.len() > longest {
            return Err(Failure::new(format!(
                "ERR the prefix has {} bytes, a key at most {longest} (max-key-bytes)",
                prefix.len()
            )));
        }
        if let Some(other) = existing.iter().find(|other| overlap(prefix, other)) {
            return Err(overlapping(prefix, "an existing", other));
        }
        if let Some(other) = prefixes[number + 1..].iter().find(|other| overlap(prefix, other)) {
            return Err(overlapping(prefix, "another provided", other));
        }
    }
    Ok(())
}

fn overlap(one: &[u8], other: &[u8]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn overlapping(prefix: &[u8], which: &str, other: &[u8]) -> Failure {
    let text: [&[u8]; 7] = [
        b"ERR Prefix '",
        prefix,
        b"' overlaps with ",
        which.as_bytes(),
        b" prefix '",
        other,
        b"'. Prefixes for a single client must not overlap.",
    ];
    Failure::new(text.concat())
}

pub(super) fn caching(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let states = &context.client.info.states;
    if !states.has(State::TRACKING) {
        return Err(Failure::fixed(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    }
    match &args[2] {
        yes if is(yes, "YES") && !states.has(State::OPT_IN) => {
            return Err(Failure::fixed(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
        no if is(no, "NO") && !states.has(State::OPT_OUT) => {
            return Err(Failure::fixed(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
        choice if is(choice, "YES") || is(choice, "NO") => states.set(State::CACHING),
        _ => return Err(Failure::SYNTAX),
    }
    context.ok()
}

/// CLIENT CACHING counts for one request or transaction, even with other CLIENT commands in between.
pub(super) fn forget_caching(client: &Client, command: Option<usize>) {
    let is_of_client = |place: usize| REGISTRY.rows()[place].full_name.starts_with("client|");
    if client.info.states.has(State::CACHING)
        && client.transaction.is_none()
        && !command.is_some_and(is_of_client)
    {
        client.info.states.clear(State::CACHING);
    }
}

/// Notes what a client that tracks is about to read. What a script reads is noted by the commands that it runs.
pub(super) fn remember_keys(context: &Context<'_>, command: &Command, args: Args<'_>) {
    let client = &context.client.info;
    let reads = command.flags.has(Flags::READONLY) && !command.flags.has(Flags::NO_MANDATORY_KEYS);
    if reads && keeps_what_it_reads(client) {
        command.keys.among(args).for_each(|key| context.server.key_watch().remember(client, key));
    }
}

fn keeps_what_it_reads(client: &ClientInfo) -> bool {
    let states = &client.states;
    if states.has(State::OPT_IN) {
        states.has(State::CACHING)
    } else if states.has(State::OPT_OUT) {
        !states.has(State::CACHING)
    } else {
        !states.has(State::BROADCASTING)
    }
}

pub(super) fn getredir(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.integer(context.client.info.redirect())
}

pub(super) fn trackinginfo(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let client = &context.client.info;
    let states = &client.states;
    let caching = states.has(State::CACHING);
    let flags: Vec<&str> = [
        (states.has(State::TRACKING), "on"),
        (!states.has(State::TRACKING), "off"),
        (states.has(State::BROADCASTING), "bcast"),
        (states.has(State::OPT_IN), "optin"),
        (states.has(State::OPT_IN) && caching, "caching-yes"),
        (states.has(State::OPT_OUT), "optout"),
        (states.has(State::OPT_OUT) && caching, "caching-no"),
        (states.has(State::NO_LOOP), "noloop"),
        (states.has(State::BROKEN_REDIRECT), "broken_redirect"),
    ]
    .into_iter()
    .filter_map(|(is_so, name)| is_so.then_some(name))
    .collect();
    let prefixes = context.server.key_watch().prefixes(client);
    let replies = &mut *context.replies;
    replies.map(3);
    replies.bulk(b"flags");
    replies.set(flags.len());
    flags.iter().for_each(|flag| replies.bulk(flag.as_bytes()));
    replies.bulk(b"redirect");
    replies.integer(client.redirect());
    replies.bulk(b"prefixes");
    replies.array(prefixes.len());
    prefixes.iter().for_each(|prefix| replies.bulk(prefix));
    Ok(Reply::Now)
}
