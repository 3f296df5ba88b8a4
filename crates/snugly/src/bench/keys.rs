//! Reads and writes of keys as a load, and what is wrong with the replies.

use anyhow::{Result, bail, ensure};
use snugly_protocol::resp::{ReplyLimits, Token, next_token};

use super::load::Traffic;
use super::workload::{Dataset, Draw, Operation};

/// The traffic of one thread.
pub struct KeyTraffic<'a> {
    pub dataset: &'a Dataset,
    pub draw: Draw,
    pub tally: Tally,
}

/// Errors in replies.
#[derive(Default)]
pub struct Tally {
    /// Error replies, and the text of the first one.
    pub errors: u64,
    first_error: Option<String>,
    /// Reads of keys that had no value.
    pub misses: u64,
    /// Reads whose value was another than the one written.
    mismatches: u64,
}

impl Traffic for KeyTraffic<'_> {
    type Request = Operation;

    #[inline]
    fn ask(&mut self, _connection: usize, out: &mut Vec<u8>) -> Result<Option<Operation>> {
        let operation = self.draw.next();
        self.dataset.append(operation, out);
        Ok(Some(operation))
    }

    #[inline]
    fn hear(&mut self, operation: &mut Operation, input: &[u8]) -> Result<Option<usize>> {
        let Some((reply, taken)) = next_token(input, &ReplyLimits::default())? else { return Ok(None) };
        self.tally.judge(*operation, reply, self.dataset);
        Ok(Some(taken))
    }
}

impl Tally {
    pub fn of(traffic: Vec<KeyTraffic<'_>>) -> Self {
        let mut total = Self::default();
        for KeyTraffic { tally, .. } in traffic {
            total.errors += tally.errors;
            total.first_error = total.first_error.or(tally.first_error);
            total.misses += tally.misses;
            total.mismatches += tally.mismatches;
        }
        total
    }

    /// Errors of the server and wrong values are an error.
    pub fn check(&self, requests: u64) -> Result<()> {
        if let Some(error) = &self.first_error {
            bail!("{} of {requests} requests were answered with an error, first: {error}", self.errors);
        }
        ensure!(
            self.mismatches == 0,
            "{} of {requests} requests were answered with another value than the one written: \
             do other clients write these keys?",
            self.mismatches,
        );
        Ok(())
    }

    /// Counts what is wrong with the reply to `operation`, if anything.
    #[inline]
    fn judge(&mut self, operation: Operation, reply: Token<'_>, dataset: &Dataset) {
        match reply {
            Token::Bulk(value) if operation.read => {
                self.mismatches += u64::from(value != dataset.value(operation.key));
            }
            Token::Null if operation.read => self.misses += 1,
            Token::Simple(_) if !operation.read => {}
            Token::Error(text) => {
                self.errors += 1;
                self.first_error.get_or_insert_with(|| String::from_utf8_lossy(text).into_owned());
            }
            other => {
                self.errors += 1;
                self.first_error.get_or_insert_with(|| format!("unexpected reply {other:?}"));
            }
        }
    }
}
