//! ACL: users and their permissions, while the server runs.

use std::fs;

use snugly_acl::{Denied, User};
use snugly_protocol::resp::{Args, parse_integer};

use super::options::is;
use super::permissions::{COMMANDS as TABLE, basis, denial, may_listen, no_permission_to_run, read_users};
use super::registry::reply_help;
use super::{Command, Context, Failure, Flags, NO_KEYS, Outcome, REGISTRY, Reply, command, container};
use crate::clients::ClientInfo;
use crate::settings::replace_file;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("acl", &[
        command("cat", -2, Flags::CONNECTION, NO_KEYS, cat),
        command("deluser", -3, Flags::ADMINISTRATION, NO_KEYS, delete_users),
        command("dryrun", -4, Flags::ADMINISTRATION, NO_KEYS, dry_run),
        command("genpass", -2, Flags::CONNECTION, NO_KEYS, generate_password),
        command("getuser", 3, Flags::ADMINISTRATION, NO_KEYS, get_user),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
        command("list", 2, Flags::ADMINISTRATION, NO_KEYS, list),
        command("load", 2, Flags::ADMINISTRATION, NO_KEYS, load),
        command("log", -2, Flags::ADMINISTRATION, NO_KEYS, log),
        command("save", 2, Flags::ADMINISTRATION, NO_KEYS, save),
        command("setuser", -3, Flags::ADMINISTRATION, NO_KEYS, set_user),
        command("users", 2, Flags::ADMINISTRATION, NO_KEYS, users),
        command("whoami", 2, Flags::CONNECTION, NO_KEYS, whoami),
    ]),
];

/// Entries that ACL LOG shows if no number is given.
const DEFAULT_COUNT: usize = 10;
/// Bits of a generated password: 64 hexadecimal digits.
const DEFAULT_BITS: i64 = 256;
const MOST_BITS: i64 = 4096;

const NO_FILE: Failure = Failure::fixed(
    "ERR This instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a configuration file set) in order to store users in the configuration.",
);

fn set_user(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let name = &args[2];
    if name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        return Err(Failure::fixed("ERR Usernames can't contain spaces or null characters"));
    }
    let rules: Vec<&[u8]> = args.from(3).iter().collect();
    let basis = basis(&context.server.configuration());
    context.server.accounts().change(|users| {
        let mut user = users.get(name).map_or_else(|| User::new(name, basis), |user| User::clone(user));
        user.apply(&rules, basis).map_err(|(rule, error)| match error {
            snugly_acl::Error::Unmatched(_) => Failure::new(format!("ERR {error}")),
            error => {
                let error = error.to_string();
                Failure::new(
                    [b"ERR Error in ACL SETUSER modifier '", &rule[..], b"': ", error.as_bytes()].concat(),
                )
            }
        })?;
        users.put(user);
        Ok::<_, Failure>(())
    })?;
    let server = context.server.clone();
    end_clients(context, |client| client.labels.lock().user == name && !may_listen(&server, client));
    context.ok()
}

fn delete_users(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let default = context.server.accounts().users().default_user().name.clone();
    if args.from(2).iter().any(|name| name == &default[..]) {
        return Err(Failure::fixed("ERR The 'default' user cannot be removed"));
    }
    let removed = context.server.accounts().change(|users| {
        let removed: Vec<&[u8]> = args.from(2).iter().filter(|name| users.remove(name)).collect();
        Ok::<_, Failure>(removed)
    })?;
    end_clients(context, |client| removed.contains(&&client.labels.lock().user[..]));
    context.integer(removed.len() as i64)
}

/// Ends the connections of these clients.
fn end_clients(context: &mut Context<'_>, which: impl Fn(&ClientInfo) -> bool) {
    for client in context.server.clients().list() {
        if !which(&client) {
            continue;
        }
        if client.id == context.client.info.id {
            context.client.closing = true;
        } else {
            context.server.clients().kill(&client);
        }
    }
}

fn get_user(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let users = context.server.accounts().users();
    let Some(user) = users.get(&args[2]) else {
        context.replies.null();
        return Ok(Reply::Now);
    };
    let replies = &mut context.replies;
    replies.map(7);
    replies.bulk(b"flags");
    let flags =
        [if user.is_on { Some("on") } else { Some("off") }, user.needs_no_password.then_some("nopass")];
    replies.set(flags.iter().flatten().count());
    flags.iter().flatten().for_each(|flag| replies.bulk(flag.as_bytes()));
    replies.bulk(b"passwords");
    let digests: Vec<String> = user.digests().collect();
    replies.array(digests.len());
    digests.iter().for_each(|digest| replies.bulk(digest.as_bytes()));
    let mut permissions = user.permissions();
    let names: [&[u8]; 4] = [b"commands", b"keys", b"channels", b"databases"];
    for (name, rules) in names.iter().zip(permissions.next().unwrap_or_default()) {
        replies.bulk(name);
        replies.bulk(&rules);
    }
    replies.bulk(b"selectors");
    replies.array(permissions.len());
    for selector in permissions {
        replies.map(names.len());
        for (name, rules) in names.iter().zip(selector) {
            replies.bulk(name);
            replies.bulk(&rules);
        }
    }
    Ok(Reply::Now)
}

fn list(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let users = context.server.accounts().users();
    context.replies.array(users.all().len());
    users.all().for_each(|user| context.replies.bulk(&user.describe()));
    Ok(Reply::Now)
}

fn users(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let users = context.server.accounts().users();
    context.replies.array(users.all().len());
    users.all().for_each(|user| context.replies.bulk(&user.name));
    Ok(Reply::Now)
}

fn whoami(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    context.replies.bulk(&context.client.user.name);
    Ok(Reply::Now)
}

fn cat(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let names: Vec<&str> = match args.len() {
        2 => TABLE.categories().to_vec(),
        3 => {
            let category = String::from_utf8_lossy(&args[2]).to_ascii_lowercase();
            TABLE
                .names_in(&category)
                .ok_or_else(|| Failure::new([b"ERR Unknown category '", &args[2], b"'"].concat()))?
        }
        _ => return Err(Failure::subcommand_syntax("acl", &args[1])),
    };
    context.replies.array(names.len());
    names.iter().for_each(|name| context.replies.bulk(name.as_bytes()));
    Ok(Reply::Now)
}

fn dry_run(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let users = context.server.accounts().users();
    let user = users
        .get(&args[2])
        .ok_or_else(|| Failure::new([b"ERR User '", &args[2], b"' not found"].concat()))?;
    let request = args.from(3);
    let place = REGISTRY
        .find(request)
        .ok_or_else(|| Failure::new([b"ERR Command '", &args[3], b"' not found"].concat()))?;
    let row = &REGISTRY.rows()[place];
    if !row.command.accepts(request.len()) {
        return Err(Failure::wrong_arity(&row.full_name));
    }
    let Some((denied, object)) = denial(context, user, place, request) else { return context.ok() };
    let text = match denied {
        Denied::Command => no_permission_to_run(user, place),
        Denied::Key(_) => {
            [b"User ", &user.name[..], b" has no permissions to access the '", &object, b"' key"].concat()
        }
        Denied::Channel(_) => {
            [b"User ", &user.name[..], b" has no permissions to access the '", &object, b"' channel"].concat()
        }
        Denied::Database(_) => {
            [b"User ", &user.name[..], b" has no permissions to access database ", &object[..]].concat()
        }
    };
    context.replies.bulk(&text);
    Ok(Reply::Now)
}

fn generate_password(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let bits = match args.len() {
        2 => DEFAULT_BITS,
        3 => parse_integer(&args[2]).ok_or(Failure::NOT_AN_INTEGER)?,
        _ => return Err(Failure::subcommand_syntax("acl", &args[1])),
    };
    if !(1..=MOST_BITS).contains(&bits) {
        return Err(Failure::fixed(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        ));
    }
    let digits = (bits as usize).div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random)
        .map_err(|_| Failure::fixed("ERR the system has no random numbers to give"))?;
    let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    context.replies.bulk(&text.as_bytes()[..digits]);
    Ok(Reply::Now)
}

fn log(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let most = match args.len() {
        2 => DEFAULT_COUNT,
        3 if is(&args[2], "RESET") => {
            context.server.accounts().denials.reset();
            return context.ok();
        }
        3 => {
            let count = parse_integer(&args[2]).ok_or(Failure::NOT_AN_INTEGER)?;
            usize::try_from(count).unwrap_or(0)
        }
        _ => return Err(Failure::subcommand_syntax("acl", &args[1])),
    };
    let entries = context.server.accounts().denials.newest(most);
    let now = snugly_store::system_time();
    let replies = &mut context.replies;
    replies.array(entries.len());
    for entry in entries {
        let denial = &entry.denial;
        let age = now.saturating_sub(entry.updated) as f64 / 1000.0;
        replies.map(10);
        replies.bulk(b"count");
        replies.integer(entry.count as i64);
        let texts: [(&str, &[u8]); 4] = [
            ("reason", denial.reason.name().as_bytes()),
            ("context", denial.place.name().as_bytes()),
            ("object", &denial.object),
            ("username", &denial.user),
        ];
        for (name, text) in texts {
            replies.bulk(name.as_bytes());
            replies.bulk(text);
        }
        replies.bulk(b"age-seconds");
        replies.double(age);
        replies.bulk(b"client-info");
        replies.bulk(&denial.client);
        for (name, number) in [
            ("entry-id", entry.id),
            ("timestamp-created", entry.created),
            ("timestamp-last-updated", entry.updated),
        ] {
            replies.bulk(name.as_bytes());
            replies.integer(number as i64);
        }
    }
    Ok(Reply::Now)
}

fn load(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let configuration = context.server.configuration();
    if configuration.acl_file.is_empty() {
        return Err(NO_FILE);
    }
    let read = read_users(&configuration)
        .map_err(|error| Failure::new(format!("ERR ACL LOAD changed nothing: {error}")))?;
    let gone = context.server.accounts().change(|users| {
        let gone: Vec<Vec<u8>> =
            users.all().filter(|user| read.get(&user.name).is_none()).map(|user| user.name.clone()).collect();
        *users = read;
        Ok::<_, Failure>(gone)
    })?;
    let server = context.server.clone();
    end_clients(context, |client| gone.contains(&client.labels.lock().user) || !may_listen(&server, client));
    context.ok()
}

fn save(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let configuration = context.server.configuration();
    if configuration.acl_file.is_empty() {
        return Err(NO_FILE);
    }
    let path = std::path::Path::new(&configuration.acl_file);
    let text = context.server.accounts().users().text();
    // A file that was removed is made anew.
    let written = if path.exists() { replace_file(path, &text) } else { fs::write(path, &text) };
    written.map_err(|error| Failure::new(format!("ERR cannot write {}: {error}", path.display())))?;
    context.ok()
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "acl")
}
