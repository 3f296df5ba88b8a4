//! One set of permissions: the commands, keys, channels and databases that it allows.

use crate::basis::Basis;
use crate::commands::{Commands, Named, Places};
use crate::error::Error;
use crate::patterns::{Access, Channel, Channels, Databases, Keys};

/// A request to run a command.
pub struct Request<'a> {
    /// Place of the command.
    pub command: usize,
    /// The argument behind its name.
    pub first_argument: Option<&'a [u8]>,
    /// The keys that it touches, and what it does with them.
    pub keys: &'a [(&'a [u8], Access)],
    /// The channels that it sends messages to, or listens to.
    pub channels: &'a [Channel<'a>],
    /// The databases that it touches.
    pub databases: &'a [usize],
}

/// Part of a request that is not allowed, from the farthest to the closest to being allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    /// The database at this place of the request's.
    Database(usize),
    /// The command.
    Command,
    /// The key at this place of the request's.
    Key(usize),
    /// The channel at this place of the request's.
    Channel(usize),
}

/// A set of permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    allowed: Places,
    /// First arguments with which a command is allowed that is not allowed with others.
    first_arguments: Vec<(usize, String)>,
    /// Whether commands are allowed that no rule names, such as those of a later version.
    others: bool,
    /// The rules about commands, as they are told: each with its sign.
    rules: Vec<String>,
    keys: Keys,
    channels: Channels,
    databases: Databases,
}

impl Selector {
    /// Allows no command and no key, in any database.
    pub(crate) fn nothing(basis: Basis<'_>) -> Selector {
        Selector {
            allowed: Places::none(basis.commands),
            first_arguments: Vec::new(),
            others: false,
            rules: Vec::new(),
            keys: Keys::default(),
            channels: if basis.all_channels { Channels::everything() } else { Channels::default() },
            databases: Databases::All,
        }
    }

    /// Allows everything.
    pub(crate) fn everything(basis: Basis<'_>) -> Selector {
        Selector {
            allowed: Places::all(basis.commands),
            others: true,
            keys: Keys::everything(),
            channels: Channels::everything(),
            ..Selector::nothing(basis)
        }
    }

    /// Returns whether no request is ever denied.
    pub(crate) fn allows_everything(&self) -> bool {
        let allows_names = self.keys.all && self.channels.all && self.databases == Databases::All;
        self.others && self.rules.is_empty() && allows_names
    }

    /// Changes it by one rule. Words of it may be in any case.
    pub(crate) fn apply(&mut self, rule: &[u8], commands: &Commands) -> Result<(), Error> {
        let word = rule.to_ascii_lowercase();
        match &word[..] {
            b"allkeys" | b"~*" => self.keys = Keys::everything(),
            b"resetkeys" => self.keys = Keys::default(),
            b"allchannels" | b"&*" => self.channels = Channels::everything(),
            b"resetchannels" => self.channels = Channels::default(),
            b"alldbs" => self.databases = Databases::All,
            b"resetdbs" => self.databases = Databases::Some(Default::default()),
            b"allcommands" | b"+@all" => self.set_all(true, commands),
            b"nocommands" | b"-@all" => self.set_all(false, commands),
            _ => return self.apply_sign(rule, commands),
        }
        Ok(())
    }

    fn apply_sign(&mut self, rule: &[u8], commands: &Commands) -> Result<(), Error> {
        let (&sign, rest) = rule.split_first().ok_or(Error::Syntax)?;
        match sign {
            b'~' | b'%' if self.keys.all => Err(Error::BehindAllKeys),
            b'~' => {
                self.keys.add(rest, Access::BOTH);
                Ok(())
            }
            b'%' => {
                let end = rest.iter().position(|&byte| byte == b'~').ok_or(Error::Syntax)?;
                let access = match rest[..end].to_ascii_uppercase().as_slice() {
                    b"R" => Access::READ,
                    b"W" => Access::WRITE,
                    b"RW" | b"WR" => Access::BOTH,
                    _ => return Err(Error::Syntax),
                };
                self.keys.add(&rest[end + 1..], access);
                Ok(())
            }
            b'&' if self.channels.all => Err(Error::BehindAllChannels),
            b'&' => {
                self.channels.add(rest);
                Ok(())
            }
            b'+' | b'-' => {
                let name = std::str::from_utf8(rest).map_err(|_| Error::UnknownCommand)?;
                self.set(name.to_ascii_lowercase(), sign == b'+', commands)
            }
            _ => self.apply_databases(rule),
        }
    }

    fn apply_databases(&mut self, rule: &[u8]) -> Result<(), Error> {
        let text = std::str::from_utf8(rule).map_err(|_| Error::Syntax)?.to_ascii_lowercase();
        let numbers = text.strip_prefix("db=").ok_or(Error::Syntax)?;
        let number = |text: &str| match text.parse::<i64>() {
            Ok(number) => u32::try_from(number).map_err(|_| Error::NoSuchDatabase),
            Err(_) => Err(Error::Syntax),
        };
        self.databases = Databases::Some(numbers.split(',').map(number).collect::<Result<_, _>>()?);
        Ok(())
    }

    fn set_all(&mut self, is_allowed: bool, commands: &Commands) {
        self.allowed = if is_allowed { Places::all(commands) } else { Places::none(commands) };
        self.others = is_allowed;
        self.first_arguments.clear();
        self.rules.clear();
    }

    /// Allows or denies what a name stands for.
    fn set(&mut self, name: String, is_allowed: bool, commands: &Commands) -> Result<(), Error> {
        let places: Vec<usize> = if let Some(category) = name.strip_prefix('@') {
            commands.in_category(category).ok_or(Error::UnknownCommand)?.collect()
        } else {
            match commands.named(&name) {
                Some(Named::Rows(places)) => places.collect(),
                Some(Named::FirstArgument(place, argument)) if is_allowed && !argument.is_empty() => {
                    if !self.first_arguments.contains(&(place, argument.clone())) {
                        self.first_arguments.push((place, argument));
                    }
                    self.add_rule(&name, is_allowed);
                    return Ok(());
                }
                _ if is_allowed && name.matches('|').count() > 1 => {
                    let subcommand = name.rsplit_once('|').map_or("", |(subcommand, _)| subcommand);
                    return Err(match commands.is_subcommand(subcommand) {
                        true => Error::FirstArgumentOfSubcommand,
                        false => Error::UnknownCommand,
                    });
                }
                _ => return Err(Error::UnknownCommand),
            }
        };
        for &place in &places {
            self.allowed.set(place, is_allowed);
        }
        self.first_arguments.retain(|(place, _)| !places.contains(place));
        self.add_rule(&name, is_allowed);
        Ok(())
    }

    /// Adds a rule to those that are told, in place of earlier ones about the same command and its subcommands.
    fn add_rule(&mut self, name: &str, is_allowed: bool) {
        let is_replaced = |rule: &String| {
            rule[1..].strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        };
        self.rules.retain(|rule| !is_replaced(rule));
        self.rules.push(format!("{}{name}", if is_allowed { '+' } else { '-' }));
    }

    /// Checks a request.
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<(), Denied> {
        let mut databases = request.databases.iter();
        if let Some(place) = databases.position(|database| !self.databases.allow(*database)) {
            return Err(Denied::Database(place));
        }
        if !self.allowed.has(request.command) {
            let is_allowed = |(place, argument): &(usize, String)| {
                let first = request.first_argument;
                *place == request.command
                    && first.is_some_and(|first| argument.as_bytes().eq_ignore_ascii_case(first))
            };
            if !self.first_arguments.iter().any(is_allowed) {
                return Err(Denied::Command);
            }
        }
        let mut keys = request.keys.iter();
        if let Some(place) = keys.position(|(key, access)| !self.keys.allow(key, *access)) {
            return Err(Denied::Key(place));
        }
        let mut channels = request.channels.iter();
        match channels.position(|channel| !self.channels.allow(*channel)) {
            Some(place) => Err(Denied::Channel(place)),
            None => Ok(()),
        }
    }

    /// Returns whether it allows a channel to some command.
    pub(crate) fn allows_channel(&self, channel: Channel<'_>) -> bool {
        self.channels.allow(channel)
    }

    /// Returns whether it allows a command to read any key.
    pub(crate) fn reads_all_keys(&self, command: usize) -> bool {
        self.allowed.has(command) && self.keys.may_all_be_read()
    }

    /// The rules about commands, which begin with all or none.
    pub(crate) fn command_rules(&self) -> String {
        let first = if self.others { "+@all" } else { "-@all" };
        [first].into_iter().chain(self.rules.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn key_rules(&self) -> Vec<u8> {
        self.keys.rules().join(&b' ')
    }

    pub(crate) fn channel_rules(&self) -> Vec<u8> {
        self.channels.rules().join(&b' ')
    }

    pub(crate) fn database_rule(&self) -> Vec<u8> {
        if self.databases.are_none() { Vec::new() } else { self.databases.rule().into_bytes() }
    }

    /// All rules that make it, in the order in which ACL LIST has them.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut rules = self.keys.rules();
        if !self.channels.all {
            rules.push(b"resetchannels".to_vec());
        }
        rules.extend(self.channels.rules());
        if self.databases != Databases::All {
            rules.push(self.databases.rule().into_bytes());
        }
        rules.push(self.command_rules().into_bytes());
        rules.join(&b' ')
    }
}
