//! Rights of users: who may run which of the server's commands, although another one runs in its place.
//!
//! It knows how ACL LIST writes rules, and no command.

use crate::server::{Caller, OwnedText};

/// A client's rights, as far as they are known without asking about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Whether the user may do everything, the module's commands included.
    pub are_full: bool,
    /// Whether the client has certainly logged in as this user, so that it may run a command that is free to all after its
    /// rules have been asked about the original.
    ///
    /// It is not where everybody seems to be the default user before a login: if that has a password, or is off. It needs a
    /// right to the module's command, too.
    pub are_evident: bool,
}

/// The name of the user whom everybody is at first.
const DEFAULT: &[u8] = b"default";

/// Rules that take nothing away from what a command of strings needs.
const UNLIMITED: [&[u8]; 11] = [
    b"on",
    b"off",
    b"nopass",
    b"sanitize-payload",
    b"skip-sanitize-payload",
    b"~*",
    b"allkeys",
    b"+@all",
    b"allcommands",
    b"alldbs",
    b"resetchannels",
];

/// The rights of the user with this name; `None` for one that another module has made, whose rules cannot be looked up.
pub fn rights(name: Option<OwnedText>) -> Option<Rights> {
    let name = name?;
    let rules = Caller::named(name.as_text())?.rules()?;
    Some(rights_by(name.as_text().bytes(), rules.as_text().bytes()))
}

fn rights_by(name: &[u8], rules: &[u8]) -> Rights {
    let rules: Vec<_> = rules.split(|&byte| byte == b' ').filter(|rule| !rule.is_empty()).collect();
    let is_unlimited = |rule: &&[u8]| UNLIMITED.contains(rule) || matches!(rule[0], b'#' | b'&');
    let has = |one: &[u8]| rules.contains(&one);
    Rights {
        are_full: rules.iter().all(is_unlimited) && has(b"+@all") && has(b"~*"),
        are_evident: name != DEFAULT || has(b"nopass") && has(b"on"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_may_run_everything_on_all_keys_has_full_rights() {
        for rules in [
            "on nopass sanitize-payload ~* &* +@all",
            "on sanitize-payload #5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8 ~* resetchannels +@all",
            "on nopass sanitize-payload ~* &* alldbs +@all",
        ] {
            assert!(rights_by(b"default", rules.as_bytes()).are_full, "{rules}");
        }
    }

    #[test]
    fn any_other_rule_is_asked_about_each_command() {
        for rules in [
            "on nopass sanitize-payload ~* &* +@all -get",
            "on nopass sanitize-payload ~a* &* +@all",
            "on nopass sanitize-payload %R~* &* +@all",
            "on nopass sanitize-payload resetchannels -@all +get",
            "on nopass sanitize-payload ~* &* +@all (~b* -@all +get)",
            "on nopass sanitize-payload ~* &* db=0 +@all",
            "on nopass sanitize-payload ~* &* +@all something-new",
            "",
        ] {
            let rights = rights_by(b"bob", rules.as_bytes());
            assert_eq!((rights.are_full, rights.are_evident), (false, true), "{rules}");
        }
    }

    #[test]
    fn a_default_user_with_a_password_may_not_have_said_it() {
        let rules = "on sanitize-payload #5e884898da28 ~* &* +@all";
        assert_eq!(rights_by(b"default", rules.as_bytes()), Rights { are_full: true, are_evident: false });
        assert_eq!(rights_by(b"bob", rules.as_bytes()), Rights { are_full: true, are_evident: true });
        let off = "off nopass sanitize-payload ~* &* +@all";
        assert_eq!(rights_by(b"default", off.as_bytes()), Rights { are_full: true, are_evident: false });
    }
}
