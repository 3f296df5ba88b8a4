//! Interpretation of commands for a client that compresses certain types of values.

use crate::pattern::{Arguments, Found};
use crate::refusal::Refused;
use crate::reply::Shape;
use crate::table::{COMPARE, Command, ValueType, ValueTypes, command, commands};

/// Length below which no writer encodes a value, so that the server may compare it.
const COMPARABLE_BYTES: usize = 32;
/// Prefix of every encoded value.
const ENCODED: &[u8] = b"\0\x01\x02";

/// Effect of compression on a command that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The values found are to be encoded, and the reply has values where its shape says, if it has one.
    Touched {
        /// Shape of the reply, if it has values.
        reply: Option<&'static Shape>,
    },
    /// The command passes as it is, and so does its reply.
    Untouched,
    /// The table does not name the command, or there is no name. It passes as it is.
    Unknown,
}

/// The table for a client that compresses values of certain types.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    types: ValueTypes,
}

impl Interpreter {
    /// Creates an interpreter for a client that compresses values of these types.
    pub fn new(types: impl IntoIterator<Item = ValueType>) -> Interpreter {
        Interpreter { types: types.into_iter().collect() }
    }

    /// Interprets a command. `found` has its keys and values if it is touched, and otherwise nothing.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the table refuses the command.
    #[inline]
    pub fn read<A: Arguments + ?Sized>(&self, args: &A, found: &mut Found) -> Result<Meaning, Refused> {
        let command = if args.is_empty() { None } else { command(&args.get(0)) };
        let Some(command) = command else {
            found.clear();
            return Ok(Meaning::Unknown);
        };
        self.read_as(command, args, found)
    }

    /// Interprets a command whose name has been looked up.
    ///
    /// # Errors
    ///
    /// Errors of [`read`](Self::read).
    #[inline]
    pub fn read_as<A: Arguments + ?Sized>(
        &self,
        command: &'static Command,
        args: &A,
        found: &mut Found,
    ) -> Result<Meaning, Refused> {
        let row = &command.row;
        if self.is_untouched(command) {
            found.clear();
            // EXEC has no type: its reply has those of the commands in it.
            return Ok(match &row.reply {
                Some(rule) if row.value_type.is_none() => Meaning::Touched { reply: Some(rule.shape) },
                _ => Meaning::Untouched,
            });
        }
        command.find(args, found);
        self.check(command, args, found)?;
        if !self.carries_values(command) {
            found.clear();
            return Ok(Meaning::Untouched);
        }
        Ok(Meaning::Touched { reply: reply(command, found) })
    }

    /// Returns whether a command has values of these types, in its arguments or its reply.
    #[inline]
    pub fn carries_values(&self, command: &Command) -> bool {
        command.row.value_type.is_some_and(|each| self.types.contains(each))
    }

    /// Returns the commands that pass as they are, whatever their arguments, as do their replies, except
    /// EXEC's.
    pub fn untouched(&self) -> impl Iterator<Item = &'static Command> {
        commands().iter().filter(|command| self.is_untouched(command))
    }

    /// Returns whether a command passes as it is, whatever its arguments, as does its reply, except EXEC's.
    #[inline]
    pub fn is_untouched(&self, command: &Command) -> bool {
        let may_be_refused = command.row.rules.iter().any(|rule| self.types.meets(rule.types));
        !self.carries_values(command) && !may_be_refused
    }

    fn check<A: Arguments + ?Sized>(
        &self,
        command: &'static Command,
        args: &A,
        found: &Found,
    ) -> Result<(), Refused> {
        let is_met = |with| with == 0 || with & found.given != 0;
        let rule = command.row.rules.iter().find(|rule| self.types.meets(rule.types) && is_met(rule.with));
        if let Some(rule) = rule {
            return Err(Refused { command: command.name, reason: rule.reason });
        }
        if self.carries_values(command) && found.compared().iter().any(|&at| !is_comparable(&args.get(at))) {
            return Err(Refused { command: command.name, reason: COMPARE });
        }
        Ok(())
    }
}

/// Returns the shape of the reply, given the keys and options found in the arguments.
fn reply(command: &Command, found: &Found) -> Option<&'static Shape> {
    let rule = command.row.reply.as_ref()?;
    let has_values = (rule.with == 0 || rule.with & found.given != 0) && rule.without & found.given == 0;
    has_values.then_some(rule.shape)
}

fn is_comparable(argument: &[u8]) -> bool {
    argument.len() < COMPARABLE_BYTES && !argument.starts_with(ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untouched_commands_are_those_that_pass_with_any_arguments() {
        let mut found = Found::new();
        for value_type in ValueType::ALL {
            let interpreter = Interpreter::new([value_type]);
            for command in commands() {
                let constant = command.is_only_read() && interpreter.carries_values(command);
                if constant {
                    let meaning = interpreter.read(&[command.name()][..], &mut found);
                    assert_eq!(
                        meaning,
                        Ok(Meaning::Touched { reply: command.reply() }),
                        "{}",
                        command.name()
                    );
                }
                let is_untouched = interpreter.untouched().any(|each| each.number() == command.number());
                let is_refused = command.rules().iter().any(|rule| rule.types().contains(value_type));
                assert_eq!(is_untouched, command.value_type() != Some(value_type) && !is_refused);
                let meaning = interpreter.read(&[command.name(), "k", "v"][..], &mut found);
                if is_untouched && command.name() != "EXEC" {
                    assert_eq!(meaning, Ok(Meaning::Untouched), "{}", command.name());
                    assert_eq!((found.keys(), found.values()), (&[][..], &[][..]));
                }
            }
        }
    }
}
