//! Protection of anything that harms more than data: commands and settings that are protected, and connections from
//! elsewhere to a server without a password. Follows Valkey's `enable-debug-command`, `enable-protected-configs` and
//! `protected-mode`.

use snugly_net::Address;

use super::Configuration;

/// Clients that may use something protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// No client.
    #[default]
    No,
    /// Clients on the same machine.
    Local,
    /// Everybody.
    Yes,
}

impl Allowed {
    /// The names, as settings have them.
    pub(crate) const NAMES: &'static [(Allowed, &'static str)] =
        &[(Allowed::No, "no"), (Allowed::Local, "local"), (Allowed::Yes, "yes")];

    /// Returns whether a client at this address may.
    pub(crate) fn to(self, address: &Address) -> bool {
        match self {
            Allowed::No => false,
            Allowed::Local => address.is_local(),
            Allowed::Yes => true,
        }
    }
}

/// Returns whether protected mode keeps out a client at this address, where anybody is let in without a password or not.
pub(crate) fn denies(configuration: &Configuration, is_open: bool, address: &Address) -> bool {
    configuration.protected_mode && is_open && !address.is_local()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tcp(text: &str) -> Address {
        Address::Tcp(text.parse().expect("an address"))
    }

    #[test]
    fn what_is_protected_is_for_nobody_for_the_same_machine_or_for_all() {
        let path = Address::Unix(Path::new("/run/snugly").into());
        let [here, mapped, there] = ["127.0.0.1:1", "[::ffff:127.0.0.1]:1", "192.0.2.1:1"].map(tcp);
        let may = |allowed: Allowed| [&path, &here, &mapped, &there].map(|address| allowed.to(address));
        assert_eq!(may(Allowed::No), [false; 4]);
        assert_eq!(may(Allowed::Local), [true, true, true, false]);
        assert_eq!(may(Allowed::Yes), [true; 4]);
    }

    #[test]
    fn protected_mode_keeps_others_out_where_there_is_no_password() {
        let there = tcp("192.0.2.1:1");
        let protected = Configuration::default();
        let unprotected = Configuration { protected_mode: false, ..Configuration::default() };
        assert!(denies(&protected, true, &there));
        assert!(!denies(&protected, false, &there));
        assert!(!denies(&unprotected, true, &there));
        assert!(!denies(&protected, true, &tcp("[::1]:1")));
    }
}
