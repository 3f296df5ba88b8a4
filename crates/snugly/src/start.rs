//! Checks before `snugly serve` starts: refuses options that would not do what was meant.

use std::ffi::OsString;

use anyhow::{Result, bail, ensure};
use snugly_server::{Configuration, Durability, FORMER_NAMES, SETTINGS, Setting, environment, nearest};

use crate::configuration;

/// Variables with the prefix that are none of the server's: those of this project's tests and benchmarks, which start
/// servers.
const OF_TESTS: &[&str] = &[
    "SNUGLY_BIN",
    "SNUGLY_COMPARE_SEQUENCES",
    "SNUGLY_DAMAGES",
    "SNUGLY_DATA",
    "SNUGLY_KILLS",
    "SNUGLY_PROPERTY_EXAMPLES",
    "SNUGLY_PYTHON",
    "SNUGLY_SEED",
    "SNUGLY_SKIP_TESTS",
    "SNUGLY_TEST_TARGET",
    "SNUGLY_VALKEY_SERVER",
];
/// Prefixes of what Kubernetes sets in every container where there is a service called snugly.
const OF_SERVICES: &[&str] = &["SNUGLY_SERVICE_", "SNUGLY_PORT_"];

/// Refuses settings that have no effect without a folder, since whoever gives them expects that values are kept.
pub(crate) fn check_storage(configuration: &Configuration) -> Result<()> {
    let is_kept = configuration.disk().is_some();
    let without = "keeps nothing without --storage FOLDER";
    ensure!(is_kept || configuration.durability != Durability::Fsync, "--durability fsync {without}");
    ensure!(is_kept || configuration.max_disk == 0, "--max-disk {without}");
    Ok(())
}

/// Refuses variables that look like settings and are none: a misspelled limit is no limit.
pub(crate) fn check_environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<()> {
    let former = FORMER_NAMES.iter().map(|(name, _)| environment(name));
    let file = environment(configuration::FILE);
    let known: Vec<String> = SETTINGS.iter().map(Setting::environment).chain(former).chain([file]).collect();
    for (name, _) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with("SNUGLY_")) else { continue };
        let is_foreign =
            OF_TESTS.contains(&name) || OF_SERVICES.iter().any(|prefix| name.starts_with(prefix));
        if is_foreign || known.iter().any(|known| known == name) {
            continue;
        }
        let nearest = nearest(name, known.iter().map(String::as_str));
        bail!(
            "{name} in the environment is no setting: did you mean {nearest}? snugly serve --help lists all"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str) -> Result<(), String> {
        check_environment([(name.into(), "1".into())].into_iter()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_misspelled_variable_is_refused_and_the_nearest_one_named() {
        let told = checked("SNUGLY_MAXMEMORY").expect_err("there is no such setting");
        assert!(told.contains("did you mean SNUGLY_MAX_MEMORY?"), "{told}");
        for name in [
            "SNUGLY_MAX_MEMORY",
            "SNUGLY_DICTIONARY_CPU_PERCENT",
            "SNUGLY_CONFIG",
            "SNUGLY_BIN",
            "SNUGLY_SERVICE_HOST",
            "HOME",
        ] {
            assert_eq!(checked(name), Ok(()));
        }
    }

    #[test]
    fn what_is_to_be_kept_needs_a_folder() {
        let told = |change: fn(&mut Configuration)| {
            let mut configuration = Configuration::default();
            change(&mut configuration);
            check_storage(&configuration).map_err(|error| error.to_string())
        };
        let fsync = told(|configuration| configuration.durability = Durability::Fsync);
        assert!(fsync.is_err_and(|told| told.contains("--storage")));
        assert!(told(|configuration| configuration.max_disk = 1 << 30).is_err());
        assert_eq!(told(|_| {}), Ok(()));
    }
}
