//! The longest common subsequence of two strings: LCS.

use snugly_protocol::resp::Args;
use snugly_store::{Kind, StoreError};

use super::context::reserve;
use super::options::{integer, is};
use super::{Command, Context, Failure, Flags, Outcome, Reply, TWO_KEYS, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("lcs", -3, Flags::READONLY, TWO_KEYS, lcs),
];

#[derive(Default)]
struct Options {
    len: bool,
    matches: bool,
    shortest_match: i64,
    with_match_len: bool,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if is(arg, "IDX") {
                options.matches = true;
            } else if is(arg, "LEN") {
                options.len = true;
            } else if is(arg, "WITHMATCHLEN") {
                options.with_match_len = true;
            } else if is(arg, "MINMATCHLEN") && rest.len() >= 1 {
                options.shortest_match = integer(rest.next().unwrap_or_default())?;
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        if options.len && options.matches {
            return Err(Failure::fixed("ERR If you want both the length and indexes, please just use IDX."));
        }
        Ok(options)
    }
}

fn lcs(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let values = context.session.get_many(context.client.database, args.from(1).iter().take(2))?;
    if values.iter().flatten().any(|value| value.kind() != Kind::String) {
        return Err(Failure::fixed("ERR The specified keys must contain string values"));
    }
    let options = Options::parse(args.from(3))?;
    let lens: Vec<_> = values.iter().map(|value| value.as_ref().map_or(0, |value| value.len())).collect();
    check_size(lens[0], lens[1], context.server.configuration().max_value_bytes)?;
    context.session.check_transient(lens[0] + lens[1] + table_bytes(lens[0], lens[1], options.len))?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let first = context.bytes(values[0].as_ref(), &mut first)?;
    let second = context.bytes(values[1].as_ref(), &mut second)?;
    if options.len {
        return context.integer(common_len(first, second, |_, _| {})?.into());
    }
    let (len, matches) = common_stretches(first, second)?;
    if options.matches {
        reply_matches(context, &options, len, &matches);
    } else {
        let parts: Vec<&[u8]> = matches.iter().rev().map(|part| &first[part.first..][..part.len]).collect();
        context.replies.bulk(&parts.concat());
    }
    Ok(Reply::Now)
}

/// Valkey keeps a number of 32 bits for every pair of bytes, and lets these take as much as a value; here they take less,
/// but the time is the same.
fn check_size(first: usize, second: usize, limit: usize) -> Result<(), Failure> {
    let cells = (first + 1).checked_mul(second + 1);
    match cells.and_then(|cells| cells.checked_mul(size_of::<u32>())) {
        Some(bytes) if bytes <= limit => Ok(()),
        _ => Err(Failure::fixed(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        )),
    }
}

/// Bytes of the tables that are made for strings of these lengths.
fn table_bytes(first: usize, second: usize, only_len: bool) -> usize {
    let directions = if only_len { 0 } else { (first * second).div_ceil(u8::BITS as usize) };
    (second + 1) * size_of::<u32>() + directions
}

/// A table of zeros.
fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>, StoreError> {
    let mut table = Vec::new();
    reserve(&mut table, len)?;
    table.resize(len, T::default());
    Ok(table)
}

/// A stretch that both strings have.
struct Match {
    /// Start in the first string.
    first: usize,
    /// Start in the second string.
    second: usize,
    len: usize,
}

/// The length of the longest common subsequence. `up` is told each pair of places (numbered from 1) with different bytes
/// for which leaving out the first string's byte leaves more in common than leaving out the second's.
fn common_len(first: &[u8], second: &[u8], mut up: impl FnMut(usize, usize)) -> Result<u32, StoreError> {
    // A row of the usual table: what the bytes so far of the first string have in common with each start of the second.
    let mut row = zeros::<u32>(second.len() + 1)?;
    for (place, byte) in first.iter().enumerate() {
        let (mut left, mut diagonal) = (0, 0);
        for (column, other) in second.iter().enumerate() {
            let above = row[column + 1];
            let cell = if byte == other {
                diagonal + 1
            } else {
                if above > left {
                    up(place + 1, column + 1);
                }
                above.max(left)
            };
            row[column + 1] = cell;
            (left, diagonal) = (cell, above);
        }
    }
    Ok(row[second.len()])
}

/// The longest common subsequence as stretches, the last one first, and its length.
fn common_stretches(first: &[u8], second: &[u8]) -> Result<(u32, Vec<Match>), StoreError> {
    // One bit for each pair of places is enough to find the way back.
    let mut directions = zeros::<u64>((first.len() * second.len()).div_ceil(u64::BITS as usize))?;
    let cell = |row: usize, column: usize| {
        let number = (row - 1) * second.len() + column - 1;
        (number / u64::BITS as usize, 1 << (number % u64::BITS as usize))
    };
    let len = common_len(first, second, |row, column| {
        let (word, mask) = cell(row, column);
        directions[word] |= mask;
    })?;
    let mut matches: Vec<Match> = Vec::new();
    let (mut row, mut column) = (first.len(), second.len());
    while row > 0 && column > 0 {
        if first[row - 1] == second[column - 1] {
            (row, column) = (row - 1, column - 1);
            match matches.last_mut() {
                Some(part) if part.first == row + 1 && part.second == column + 1 => {
                    *part = Match { first: row, second: column, len: part.len + 1 };
                }
                _ => matches.push(Match { first: row, second: column, len: 1 }),
            }
            continue;
        }
        let (word, mask) = cell(row, column);
        if directions[word] & mask != 0 {
            row -= 1;
        } else {
            column -= 1;
        }
    }
    Ok((len, matches))
}

fn reply_matches(context: &mut Context<'_>, options: &Options, len: u32, matches: &[Match]) {
    let shown: Vec<_> = matches.iter().filter(|part| part.len as i64 >= options.shortest_match).collect();
    let replies = &mut context.replies;
    replies.map(2);
    replies.bulk(b"matches");
    replies.array(shown.len());
    for part in shown {
        replies.array(if options.with_match_len { 3 } else { 2 });
        for start in [part.first, part.second] {
            replies.array(2);
            replies.integer(start as i64);
            replies.integer((start + part.len - 1) as i64);
        }
        if options.with_match_len {
            replies.integer(part.len as i64);
        }
    }
    replies.bulk(b"len");
    replies.integer(len.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
        let mut rest = whole.iter();
        part.iter().all(|byte| rest.any(|other| other == byte))
    }

    /// By trying every subsequence of the first string.
    fn longest_by_force(first: &[u8], second: &[u8]) -> usize {
        let chosen = |choice: u32| -> Vec<u8> {
            (0..first.len()).filter(|place| choice >> place & 1 == 1).map(|place| first[place]).collect()
        };
        let subsequences = (0..1u32 << first.len()).map(chosen);
        subsequences.filter(|part| is_subsequence(part, second)).map(|part| part.len()).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_stretches_make_a_longest_common_subsequence(
            first in prop::collection::vec(0u8..4, 0..10),
            second in prop::collection::vec(0u8..4, 0..20),
        ) {
            let (len, matches) = common_stretches(&first, &second).expect("there is memory");
            let parts: Vec<&[u8]> = matches.iter().rev().map(|part| &first[part.first..][..part.len]).collect();
            let common = parts.concat();
            prop_assert!(is_subsequence(&common, &first) && is_subsequence(&common, &second));
            prop_assert_eq!(common.len(), len as usize);
            prop_assert_eq!(common.len(), longest_by_force(&first, &second));
            for part in &matches {
                prop_assert_eq!(&first[part.first..][..part.len], &second[part.second..][..part.len]);
            }
        }
    }
}
