//! Reads and writes of keys as a load, and what is wrong with the replies.

use anyhow::{Result, bail, ensure};

use super::load::Traffic;
use super::protocol::Part;
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
    /// Keys that were read and had no value.
    pub misses: u64,
    /// Values that were read and are not those that were written.
    mismatches: u64,
}

/// A reply that is awaited.
pub struct Awaited {
    operation: Operation,
    /// Keys of the operation whose values have come, or will not; and the bytes of the parts that have come.
    keys: usize,
    bytes: usize,
}

impl Traffic for KeyTraffic<'_> {
    type Request = Awaited;

    #[inline]
    fn ask(&mut self, _connection: usize, out: &mut Vec<u8>) -> Result<Option<Awaited>> {
        let operation = self.draw.next();
        self.dataset.append(&operation, out);
        Ok(Some(Awaited { operation, keys: 0, bytes: 0 }))
    }

    #[inline]
    fn hear(&mut self, awaited: &mut Awaited, input: &[u8]) -> Result<Option<usize>> {
        while let Some((part, taken)) = self.dataset.protocol.next_part(&input[awaited.bytes..])? {
            awaited.bytes += taken;
            if self.tally.judge(awaited, part, self.dataset) {
                return Ok(Some(awaited.bytes));
            }
        }
        Ok(None)
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
            "{} values, of {requests} requests, are not those that were written: do other clients write these keys?",
            self.mismatches,
        );
        Ok(())
    }

    /// Counts what is wrong with a part of a reply, if anything; tells whether it is the last part.
    #[inline]
    fn judge(&mut self, awaited: &mut Awaited, part: Part<'_>, dataset: &Dataset) -> bool {
        let operation = &awaited.operation;
        let of_values = operation.read && awaited.keys < operation.key_count();
        match part {
            Part::Stored if !operation.read => true,
            Part::Head(count) if of_values && count == operation.key_count() && count > 1 => false,
            Part::Value { key: None, value } if of_values => {
                self.compare(awaited, value, dataset);
                awaited.keys == awaited.operation.key_count()
            }
            Part::Value { key: Some(key), value } if of_values => {
                // Keys without a value are left out.
                while let Some(number) = awaited.operation.key(awaited.keys)
                    && !dataset.protocol.is(key, number)
                {
                    self.miss(awaited);
                }
                if awaited.keys < awaited.operation.key_count() {
                    self.compare(awaited, value, dataset);
                } else {
                    self.fail(|| format!("a value of {}, which was not asked for", key.escape_ascii()));
                }
                false
            }
            Part::Missing if of_values => {
                self.miss(awaited);
                awaited.keys == awaited.operation.key_count()
            }
            Part::End if operation.read => {
                while awaited.keys < awaited.operation.key_count() {
                    self.miss(awaited);
                }
                true
            }
            Part::Error(text) => {
                self.fail(|| String::from_utf8_lossy(text).into_owned());
                true
            }
            other => {
                self.fail(|| format!("unexpected reply {other}"));
                true
            }
        }
    }

    /// Compares a value with that of the next key.
    #[inline]
    fn compare(&mut self, awaited: &mut Awaited, value: &[u8], dataset: &Dataset) {
        let number = awaited.operation.key(awaited.keys);
        self.mismatches += u64::from(number.is_none_or(|number| value != dataset.value(number)));
        awaited.keys += 1;
    }

    /// Counts the next key as one without a value.
    fn miss(&mut self, awaited: &mut Awaited) {
        self.misses += 1;
        awaited.keys += 1;
    }

    fn fail(&mut self, what: impl FnOnce() -> String) {
        self.errors += 1;
        self.first_error.get_or_insert_with(what);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::super::client::Scheme::{self, Memcached, Resp};
    use super::*;
    use crate::bench::protocol::Keys;
    use crate::bench::values::Values;
    use crate::bench::workload::Plan;

    const KEYS: u64 = 3;

    fn dataset(scheme: Scheme) -> Dataset {
        let values = (0..KEYS).map(|number| format!("value {number}").into_bytes()).collect();
        Dataset::new(KEYS, Keys::new(scheme, "k:").unwrap(), &Values::Read(values))
    }

    /// The values of keys 0, 1 and 2 with some of them replaced, or left out.
    fn reply(scheme: Scheme, values: [Option<&str>; KEYS as usize]) -> Vec<u8> {
        let mut reply = if scheme == Resp { format!("*{KEYS}\r\n") } else { String::new() };
        for (number, value) in values.into_iter().enumerate() {
            match (scheme, value) {
                (Resp, Some(value)) => write!(reply, "${}\r\n{value}\r\n", value.len()),
                (Resp, None) => write!(reply, "$-1\r\n"),
                (Memcached, Some(value)) => {
                    write!(reply, "VALUE k:{number:012} 0 {}\r\n{value}\r\n", value.len())
                }
                (Memcached, None) => Ok(()),
            }
            .unwrap();
        }
        if scheme == Memcached {
            reply.push_str("END\r\n");
        }
        reply.into_bytes()
    }

    /// Errors, misses and mismatches in a reply that comes byte by byte, and the first error.
    fn wrong(scheme: Scheme, read: bool, reply: &[u8]) -> (u64, u64, u64, Option<String>) {
        let dataset = dataset(scheme);
        let draw = Draw::new(Plan::Sweep { read }, KEYS, 1, 0, 1);
        let mut traffic = KeyTraffic { dataset: &dataset, draw, tally: Tally::default() };
        let more = if read { vec![1, 2] } else { Vec::new() };
        let mut awaited = Awaited { operation: Operation { key: 0, read, more }, keys: 0, bytes: 0 };
        for end in 0..reply.len() {
            assert_eq!(traffic.hear(&mut awaited, &reply[..end]).unwrap(), None, "{}", reply.escape_ascii());
        }
        let behind = [reply, b"the next reply"].concat();
        assert_eq!(traffic.hear(&mut awaited, &behind).unwrap(), Some(reply.len()));
        let Tally { errors, misses, mismatches, first_error } = traffic.tally;
        (errors, misses, mismatches, first_error)
    }

    #[test]
    fn every_value_of_a_read_is_compared_and_what_is_missing_counted() {
        let [first, second, third] = ["value 0", "value 1", "value 2"].map(Some);
        for scheme in [Resp, Memcached] {
            for (values, misses, mismatches) in [
                ([first, second, third], 0, 0),
                ([None, second, third], 1, 0),
                ([first, None, third], 1, 0),
                ([first, second, None], 1, 0),
                ([None, None, None], 3, 0),
                ([first, third, Some("")], 0, 2),
            ] {
                let found = wrong(scheme, true, &reply(scheme, values));
                assert_eq!(found, (0, misses, mismatches, None), "{scheme}: {values:?}");
            }
        }
    }

    #[test]
    fn errors_and_replies_to_other_requests_are_counted_with_the_text_of_the_first() {
        let rows: [(Scheme, bool, &[u8], &str); 6] = [
            (Resp, true, b"-OOM no memory\r\n", "OOM no memory"),
            (Resp, true, b"*2\r\n", "unexpected reply of 2 values"),
            (Memcached, false, b"SERVER_ERROR out of memory\r\n", "SERVER_ERROR out of memory"),
            (Memcached, false, b"END\r\n", "unexpected reply that there are no values"),
            (Memcached, false, b"NOT_STORED\r\n", "unexpected reply NOT_STORED"),
            (Memcached, true, b"STORED\r\n", "unexpected reply that a value is stored"),
        ];
        for (scheme, read, reply, text) in rows {
            assert_eq!(wrong(scheme, read, reply), (1, 0, 0, Some(text.to_owned())));
        }
        let stray = wrong(Memcached, true, b"VALUE other 0 0\r\n\r\nEND\r\n");
        assert_eq!((stray.0, stray.3), (1, Some("a value of other, which was not asked for".to_owned())));
    }

    #[test]
    fn a_stored_value_is_no_error() {
        assert_eq!(wrong(Resp, false, b"+OK\r\n"), (0, 0, 0, None));
        assert_eq!(wrong(Memcached, false, b"STORED\r\n"), (0, 0, 0, None));
    }
}
