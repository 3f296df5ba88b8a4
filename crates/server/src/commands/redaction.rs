//! Arguments of a command that are secrets, and are not shown to others.

use snugly_protocol::resp::Args;

use super::options::is;
use crate::settings;

/// The placeholder of a secret.
const REDACTED: &[u8] = b"(redacted)";

/// The arguments of a command as others may see them.
pub(super) fn shown<'a>(full_name: &'static str, args: Args<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> {
    let places = args.iter().enumerate();
    places.map(move |(place, arg)| if is_secret(full_name, args, place) { REDACTED } else { arg })
}

fn is_secret(full_name: &str, args: Args<'_>, place: usize) -> bool {
    let behind = |distance: usize, word: &str| {
        place.checked_sub(distance).and_then(|place| args.get(place)).is_some_and(|arg| is(arg, word))
    };
    match full_name {
        "auth" => place > 0,
        // Rules have passwords and their digests.
        "acl|setuser" => place > 2,
        "hello" => behind(1, "AUTH") || behind(2, "AUTH"),
        "config|set" => place > 2 && place % 2 == 1 && is_secret_setting(&args[place - 1]),
        _ => false,
    }
}

fn is_secret_setting(name: &[u8]) -> bool {
    let setting = std::str::from_utf8(name).ok().and_then(settings::by_config_name);
    setting.is_some_and(|setting| setting.is_secret())
}

#[cfg(test)]
mod tests {
    use snugly_protocol::resp::{Limits, RequestParser};

    use super::*;

    fn shown_words(full_name: &'static str, line: &str) -> String {
        let line = format!("{line}\r\n");
        let mut parser = RequestParser::default();
        parser.parse(line.as_bytes(), &Limits::default()).expect("the line is a request");
        let args: Vec<_> = shown(full_name, parser.args(line.as_bytes())).collect();
        String::from_utf8(args.join(&b' ')).expect("the test writes text")
    }

    #[test]
    fn passwords_are_hidden_and_nothing_else() {
        for (full_name, line, expected) in [
            ("auth", "AUTH secret", "AUTH (redacted)"),
            ("acl|setuser", "ACL SETUSER app on >secret", "ACL SETUSER app (redacted) (redacted)"),
            ("auth", "auth user secret", "auth (redacted) (redacted)"),
            ("hello", "HELLO 3 auth user secret SETNAME x", "HELLO 3 auth (redacted) (redacted) SETNAME x"),
            ("hello", "HELLO 3 SETNAME x", "HELLO 3 SETNAME x"),
            ("hello", "HELLO 3 AUTH user", "HELLO 3 AUTH (redacted)"),
            (
                "config|set",
                "CONFIG SET maxmemory 1 RequirePass secret",
                "CONFIG SET maxmemory 1 RequirePass (redacted)",
            ),
            ("config|set", "CONFIG SET requirepass", "CONFIG SET requirepass"),
            ("set", "SET auth secret", "SET auth secret"),
        ] {
            assert_eq!(shown_words(full_name, line), expected);
        }
    }
}
