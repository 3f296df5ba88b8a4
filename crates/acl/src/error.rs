//! Reasons why rules are refused.

use thiserror::Error;

/// Reason why a rule is refused, in Valkey's words.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// It is no rule.
    #[error("Syntax error")]
    Syntax,
    /// It names a command or category that does not exist.
    #[error("Unknown command or category name in ACL")]
    UnknownCommand,
    /// It is about an argument of a subcommand.
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgumentOfSubcommand,
    /// All keys are allowed already.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try \
         'resetkeys' to start with an empty list of patterns"
    )]
    BehindAllKeys,
    /// All channels are allowed already.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try \
         'resetchannels' to start with an empty list of channels"
    )]
    BehindAllChannels,
    /// It has a digest that is none of SHA-256.
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
    )]
    BadDigest,
    /// It removes a password that there is not.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// It names a database that there cannot be.
    #[error("The provided database ID is out of range")]
    NoSuchDatabase,
    /// A selector has no end.
    #[error("Unmatched parenthesis in acl selector starting at '{0}'.")]
    Unmatched(String),
}
