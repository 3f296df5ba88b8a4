//! Protection of anything that harms more than data: commands and settings that are protected, and connections from
//! elsewhere to a server without a password. Follows Valkey's `enable-debug-command`, `enable-protected-configs` and
//! `protected-mode`.

use std::net::IpAddr;

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
    pub(crate) fn to(self, address: IpAddr) -> bool {
        match self {
            Allowed::No => false,
            Allowed::Local => is_local(address),
            Allowed::Yes => true,
        }
    }
}

/// Returns whether protected mode keeps out a client at this address.
pub(crate) fn denies(configuration: &Configuration, address: IpAddr) -> bool {
    configuration.protected_mode && configuration.password.is_empty() && !is_local(address)
}

fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_is_for_nobody_for_the_same_machine_or_for_all() {
        let [here, mapped, there]: [IpAddr; 3] =
            ["127.0.0.1", "::ffff:127.0.0.1", "192.0.2.1"].map(|text| text.parse().expect("an address"));
        let may = |allowed: Allowed| [here, mapped, there].map(|address| allowed.to(address));
        assert_eq!(may(Allowed::No), [false, false, false]);
        assert_eq!(may(Allowed::Local), [true, true, false]);
        assert_eq!(may(Allowed::Yes), [true, true, true]);
    }

    #[test]
    fn protected_mode_keeps_others_out_where_there_is_no_password() {
        let there: IpAddr = "192.0.2.1".parse().expect("an address");
        let denied = |change: fn(&mut Configuration)| {
            let mut configuration = Configuration::default();
            change(&mut configuration);
            denies(&configuration, there)
        };
        assert!(denied(|_| {}));
        assert!(!denied(|configuration| configuration.password = "secret".to_owned()));
        assert!(!denied(|configuration| configuration.protected_mode = false));
        assert!(!denies(&Configuration::default(), "::1".parse().expect("an address")));
    }
}
