//! One user: passwords and permissions, changed rule by rule.

use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq as _;

use crate::basis::Basis;
use crate::error::Error;
use crate::patterns::Channel;
use crate::selector::{Denied, Request, Selector};

/// SHA-256 of a password.
type Digest = [u8; 32];

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: Vec<u8>,
    /// Whether the user can log in.
    pub is_on: bool,
    /// Whether any password is right.
    pub needs_no_password: bool,
    passwords: Vec<Digest>,
    /// The permissions that rules outside parentheses change, and then those of each pair of them.
    selectors: Vec<Selector>,
}

impl User {
    /// A user that is off and may run nothing.
    pub fn new(name: &[u8], basis: Basis<'_>) -> User {
        User {
            name: name.to_vec(),
            is_on: false,
            needs_no_password: false,
            passwords: Vec::new(),
            selectors: vec![Selector::nothing(basis)],
        }
    }

    /// A user that can everything, without a password.
    pub fn unlimited(name: &[u8], basis: Basis<'_>) -> User {
        User {
            is_on: true,
            needs_no_password: true,
            selectors: vec![Selector::everything(basis)],
            ..User::new(name, basis)
        }
    }

    /// Replaces all passwords by this one, or by none at all if it is empty: then any is right.
    pub fn set_password(&mut self, password: &[u8]) {
        self.needs_no_password = password.is_empty();
        self.passwords = if password.is_empty() { Vec::new() } else { vec![sha256(password)] };
    }

    /// Returns whether the user may log in with this password. Takes the same time whichever digest differs where.
    pub fn admits(&self, password: &[u8]) -> bool {
        let given = sha256(password);
        let is_known =
            self.passwords.iter().fold(subtle::Choice::from(0), |known, digest| known | digest.ct_eq(&given));
        self.is_on && (self.needs_no_password | bool::from(is_known))
    }

    /// Returns whether no request is ever denied.
    pub fn can_everything(&self) -> bool {
        self.selectors.iter().any(Selector::allows_everything)
    }

    /// Returns whether the user may run a command that reads keys which no argument names.
    pub fn reads_all_keys(&self, command: usize) -> bool {
        self.selectors.iter().any(|selector| selector.reads_all_keys(command))
    }

    /// Returns whether the user may listen to all of these channels and patterns: one selector that allows all is enough.
    pub fn may_listen_to(&self, channels: &[Channel<'_>]) -> bool {
        let allows_all =
            |selector: &Selector| channels.iter().all(|channel| selector.allows_channel(*channel));
        self.selectors.iter().any(allows_all)
    }

    /// Checks a request: one selector that allows all of it is enough.
    ///
    /// # Errors
    /// The denial of the selector that comes the closest.
    pub fn check(&self, request: &Request<'_>) -> Result<(), Denied> {
        let mut closest = None;
        for selector in &self.selectors {
            match selector.check(request) {
                Ok(()) => return Ok(()),
                Err(denied) => closest = closest.max(Some(denied)),
            }
        }
        closest.map_or(Ok(()), Err)
    }

    /// Changes the user by rules, such as `on`, `>password`, `~key:*`, `+@read` and `(+set ~other:*)`; all or none apply.
    ///
    /// # Errors
    /// The rule that is refused, and why.
    pub fn apply(&mut self, rules: &[impl AsRef<[u8]>], basis: Basis<'_>) -> Result<(), (Vec<u8>, Error)> {
        let mut changed = self.clone();
        for rule in merged(rules)? {
            changed.apply_rule(&rule, basis).map_err(|error| (rule.clone(), error))?;
        }
        *self = changed;
        Ok(())
    }

    fn apply_rule(&mut self, rule: &[u8], basis: Basis<'_>) -> Result<(), Error> {
        match &rule.to_ascii_lowercase()[..] {
            b"" => {}
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"nopass" => {
                self.needs_no_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.needs_no_password = false;
                self.passwords.clear();
            }
            b"reset" => *self = User::new(&self.name, basis),
            b"clearselectors" => self.selectors.truncate(1),
            // Payloads are checked whoever sends them.
            b"sanitize-payload" | b"skip-sanitize-payload" => {}
            _ => return self.apply_sign(rule, basis),
        }
        Ok(())
    }

    fn apply_sign(&mut self, rule: &[u8], basis: Basis<'_>) -> Result<(), Error> {
        match rule {
            [b'>', password @ ..] => self.add(sha256(password)),
            [b'#', text @ ..] => self.add(parse_digest(text)?),
            [b'<', password @ ..] => self.remove(&sha256(password))?,
            [b'!', text @ ..] => self.remove(&parse_digest(text)?)?,
            [b'(', inner @ .., b')'] => {
                let mut selector = Selector::nothing(basis);
                for rule in inner.split(|byte| *byte == b' ').filter(|rule| !rule.is_empty()) {
                    selector.apply(rule, basis.commands)?;
                }
                self.selectors.push(selector);
            }
            _ => self.selectors[0].apply(rule, basis.commands)?,
        }
        Ok(())
    }

    fn add(&mut self, digest: Digest) {
        self.needs_no_password = false;
        if !self.passwords.contains(&digest) {
            self.passwords.push(digest);
        }
    }

    fn remove(&mut self, digest: &Digest) -> Result<(), Error> {
        let place = self.passwords.iter().position(|known| known == digest).ok_or(Error::NoSuchPassword)?;
        self.passwords.remove(place);
        Ok(())
    }

    /// The digests of the passwords, in hexadecimal digits.
    pub fn digests(&self) -> impl Iterator<Item = String> {
        self.passwords.iter().map(hexadecimal)
    }

    /// Each selector's rules about commands, keys, channels and databases, the first one's outside parentheses.
    pub fn permissions(&self) -> impl ExactSizeIterator<Item = [Vec<u8>; 4]> {
        self.selectors.iter().map(|selector| {
            [
                selector.command_rules().into_bytes(),
                selector.key_rules(),
                selector.channel_rules(),
                selector.database_rule(),
            ]
        })
    }

    /// The rules that make the user, as ACL LIST and the file have them.
    pub fn describe(&self) -> Vec<u8> {
        let mut rules = vec![if self.is_on { b"on".to_vec() } else { b"off".to_vec() }];
        if self.needs_no_password {
            rules.push(b"nopass".to_vec());
        }
        rules.extend(self.digests().map(|digest| format!("#{digest}").into_bytes()));
        for (place, selector) in self.selectors.iter().enumerate() {
            let described = selector.describe();
            rules.push(if place == 0 { described } else { [b"(", &described[..], b")"].concat() });
        }
        [b"user ".to_vec(), self.name.clone(), b" ".to_vec(), rules.join(&b' ')].concat()
    }
}

/// Joins the arguments of selectors that were given with spaces in them.
fn merged(rules: &[impl AsRef<[u8]>]) -> Result<Vec<Vec<u8>>, (Vec<u8>, Error)> {
    let mut merged: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    for rule in rules {
        let rule = rule.as_ref();
        let whole = match open.take() {
            None => rule.to_vec(),
            Some(begun) => [&begun[..], rule].join(&b' '),
        };
        if whole.first() == Some(&b'(') && whole.last() != Some(&b')') {
            open = Some(whole);
        } else {
            merged.push(whole);
        }
    }
    match open {
        None => Ok(merged),
        Some(begun) => {
            let first = rules.iter().rev().find(|rule| rule.as_ref().first() == Some(&b'('));
            let first = first.map_or_else(Vec::new, |rule| rule.as_ref().to_vec());
            Err((begun, Error::Unmatched(String::from_utf8_lossy(&first).into_owned())))
        }
    }
}

fn sha256(password: &[u8]) -> Digest {
    digest(&SHA256, password).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn hexadecimal(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_digest(text: &[u8]) -> Result<Digest, Error> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut digest = [0; 32];
    if text.len() != 2 * digest.len() {
        return Err(Error::BadDigest);
    }
    for (byte, digits) in digest.iter_mut().zip(text.chunks_exact(2)) {
        let (high, low) = value(digits[0]).zip(value(digits[1])).ok_or(Error::BadDigest)?;
        *byte = high << 4 | low;
    }
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::basis::Basis;
    use crate::commands::tests::commands;
    use crate::patterns::Access;

    fn basis(commands: &crate::commands::Commands) -> Basis<'_> {
        Basis { commands, all_channels: false }
    }

    fn user(rules: &str) -> User {
        let mut user = User::new(b"u", basis(&commands()));
        let rules: Vec<&str> = rules.split(' ').filter(|rule| !rule.is_empty()).collect();
        user.apply(&rules, basis(&commands())).unwrap_or_else(|error| panic!("{rules:?}: {error:?}"));
        user
    }

    fn described(user: &User) -> String {
        String::from_utf8(user.describe()).expect("text")
    }

    #[test]
    fn rules_are_told_as_valkey_tells_them() {
        let p = "#148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940";
        for (rules, expected) in [
            ("", "off resetchannels -@all".to_owned()),
            (
                "on >p ~x:* %R~y %W~z &ch +get +config|get -set +@read -memory (+set ~k)",
                format!(
                    "on {p} ~x:* %R~y %W~z resetchannels &ch -@all +get +config|get -set +@read -memory (~k \
                     resetchannels -@all +set)"
                ),
            ),
            ("+select|0 +Get +SELECT|1", "off resetchannels -@all +select|0 +get +select|1".to_owned()),
            ("%RW~a %R~b %W~b", "off ~a ~b resetchannels -@all".to_owned()),
            ("db=1,1,0", "off resetchannels db=0,1 -@all".to_owned()),
            ("db=2 resetdbs", "off resetchannels resetdbs -@all".to_owned()),
            ("nopass >p >p", format!("off {p} resetchannels -@all")),
            ("on nopass allkeys allchannels allcommands", "on nopass ~* &* +@all".to_owned()),
            ("+@all -config -config|set +config|set +config", "off resetchannels +@all +config".to_owned()),
            (
                "( +get   ~x ) ()",
                "off resetchannels -@all (~x resetchannels -@all +get) (resetchannels -@all)".to_owned(),
            ),
            ("+hget +@hash", "off resetchannels -@all +hget +@hash".to_owned()),
            (" on  off", "off resetchannels -@all".to_owned()),
            ("~a +get reset", "off resetchannels -@all".to_owned()),
        ] {
            assert_eq!(described(&user(rules)), format!("user u {expected}"), "{rules}");
        }
    }

    #[test]
    fn what_no_rule_says_of_channels_is_what_the_basis_says() {
        let commands = commands();
        let basis = Basis { commands: &commands, all_channels: true };
        let mut user = User::new(b"u", basis);
        assert_eq!(described(&user), "user u off &* -@all");
        user.apply(&["resetchannels", "&a", "(+get)"], basis).unwrap();
        assert_eq!(described(&user), "user u off resetchannels &a -@all (&* -@all +get)");
        user.apply(&["reset"], basis).unwrap();
        assert_eq!(user, User::new(b"u", basis));
    }

    #[test]
    fn what_is_no_rule_is_refused_in_valkeys_words_and_changes_nothing() {
        for (rules, error) in [
            (&["on", "foo"][..], Error::Syntax),
            (&["+nosuch"], Error::UnknownCommand),
            (&["+@nosuch"], Error::UnknownCommand),
            (&["-select|0"], Error::UnknownCommand),
            (&["+config|get|x"], Error::FirstArgumentOfSubcommand),
            (&["~*", "~a"], Error::BehindAllKeys),
            (&["&*", "&a"], Error::BehindAllChannels),
            (&["#12"], Error::BadDigest),
            (&["<x"], Error::NoSuchPassword),
            (&["%RZ~a"], Error::Syntax),
            (&["%~a"], Error::Syntax),
            (&["%"], Error::Syntax),
            (&["db=x"], Error::Syntax),
            (&["db="], Error::Syntax),
            (&["db=-1"], Error::NoSuchDatabase),
            (&["(+get on)"], Error::Syntax),
            (&["(~a", "+get"], Error::Unmatched("(~a".into())),
            (&["~*", "%~x"], Error::BehindAllKeys),
        ] {
            let mut user = User::new(b"u", basis(&commands()));
            let (_, refused) = user.apply(rules, basis(&commands())).expect_err("no rule");
            assert_eq!(refused, error, "{rules:?}");
            assert_eq!(user, User::new(b"u", basis(&commands())));
        }
    }

    /// Checks whether a user may run `command` on `key` in database 0.
    fn check(user: &User, command: usize, first: &str, key: Option<(&str, Access)>) -> Result<(), Denied> {
        let keys: Vec<_> = key.into_iter().map(|(key, access)| (key.as_bytes(), access)).collect();
        let first_argument = Some(first.as_bytes());
        user.check(&Request { command, first_argument, keys: &keys, channels: &[], databases: &[0] })
    }

    #[test]
    fn one_selector_that_allows_all_of_a_request_is_enough() {
        const GET: usize = 0;
        const SET: usize = 1;
        const SELECT: usize = 6;
        let limited = user("%R~r:* +get +select|1 (+set ~w:*)");
        assert_eq!(check(&limited, GET, "r:1", Some(("r:1", Access::READ))), Ok(()));
        assert_eq!(check(&limited, GET, "w:1", Some(("w:1", Access::READ))), Err(Denied::Key(0)));
        assert_eq!(check(&limited, SET, "w:1", Some(("w:1", Access::WRITE))), Ok(()));
        assert_eq!(check(&limited, SET, "r:1", Some(("r:1", Access::WRITE))), Err(Denied::Key(0)));
        assert_eq!(check(&limited, SELECT, "1", None), Ok(()));
        assert_eq!(check(&limited, SELECT, "2", None), Err(Denied::Command));
        assert_eq!(check(&user("+@all allkeys db=1"), GET, "a", None), Err(Denied::Database(0)));
        assert!(user("+@all allkeys allchannels").can_everything());
        assert!(!user("+@all allkeys").can_everything());
        assert!(!user("+@all allkeys allchannels -set").can_everything());
    }

    #[test]
    fn one_selector_must_allow_all_channels_of_a_request() {
        let user = user("+get &a:* (+get &b:*)");
        let [a, b, any] = [b"a:1", b"b:1", b"a:*"].map(|name| Channel::Named(name));
        let check = |channels: &[Channel<'_>]| {
            user.check(&Request { command: 0, first_argument: None, keys: &[], channels, databases: &[0] })
        };
        assert_eq!(check(&[a, any]), Ok(()));
        assert_eq!(check(&[b]), Ok(()));
        assert_eq!(check(&[a, b]), Err(Denied::Channel(1)));
        assert_eq!(check(&[Channel::Matching(b"a:*")]), Ok(()));
        assert_eq!(check(&[Channel::Matching(b"a:1")]), Err(Denied::Channel(0)));
        assert!(user.may_listen_to(&[a, Channel::Matching(b"a:*")]));
        assert!(!user.may_listen_to(&[a, b]));
    }

    #[test]
    fn passwords_are_added_removed_and_asked_for() {
        let mut user = user("on >a >b <a");
        assert_eq!(["a", "b", ""].map(|password| user.admits(password.as_bytes())), [false, true, false]);
        user.apply(&["off"], basis(&commands())).unwrap();
        assert!(!user.admits(b"b"));
        user.apply(&["on", "nopass"], basis(&commands())).unwrap();
        assert!(user.admits(b"anything"));
        user.set_password(b"c");
        assert_eq!(["b", "c"].map(|password| user.admits(password.as_bytes())), [false, true]);
    }

    const RULES: &[&str] = &[
        "on",
        "off",
        "nopass",
        "resetpass",
        ">p",
        "<p",
        "~*",
        "~a:*",
        "%R~b",
        "%W~b",
        "resetkeys",
        "&*",
        "&c",
        "resetchannels",
        "+@all",
        "-@all",
        "+get",
        "-get",
        "+config",
        "-config|set",
        "+config|get",
        "+@read",
        "-@fast",
        "+select|0",
        "-select",
        "db=1,2",
        "alldbs",
        "resetdbs",
        "(+set ~c)",
        "(+@all -get)",
        "clearselectors",
        "+memory",
        "-memory|usage",
    ];

    fn rule() -> impl Strategy<Value = String> {
        prop::sample::select(RULES).prop_map(str::to_owned)
    }

    proptest! {
        #[test]
        fn the_rules_that_are_told_make_the_same_user(rules in prop::collection::vec(rule(), 0..20)) {
            let commands = commands();
            let mut user = User::new(b"u", basis(&commands));
            for rule in &rules {
                // A rule that is refused changes nothing.
                let _ = user.apply(&[rule], basis(&commands));
            }
            let told = described(&user);
            let told: Vec<&str> = told.split(' ').skip(2).collect();
            let mut again = User::new(b"u", basis(&commands));
            prop_assert_eq!(again.apply(&told, basis(&commands)), Ok(()));
            prop_assert_eq!(again, user);
        }

        #[test]
        fn any_bytes_are_a_rule_or_refused(rule in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = User::new(b"u", basis(&commands())).apply(&[rule], basis(&commands()));
        }
    }
}
