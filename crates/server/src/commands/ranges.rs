//! Parts of strings: read, and written over.

use std::ops::RangeInclusive;

use snugly_protocol::resp::Args;

use super::context::reserve;
use super::options::integer;
use super::{Command, Context, Edit, Failure, Flags, ONE_KEY, Outcome, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("getrange", 4, Flags::READONLY, ONE_KEY, getrange),
    command("substr", 4, Flags::READONLY, ONE_KEY, getrange),
    command("setrange", 4, Flags::WRITE_MEMORY, ONE_KEY, setrange),
];

/// First and last place of a stretch, as a client gives it: negative places count from the end.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Stretch {
    /// The places that there are in something of `len` places; `None` if there is none.
    pub(super) fn within(self, len: usize) -> Option<RangeInclusive<usize>> {
        let len = len as i64;
        let from_start = |place: i64| if place < 0 { (len + place).max(0) } else { place };
        let (first, last) = (from_start(self.first), from_start(self.last).min(len - 1));
        (first <= last).then_some(first as usize..=last as usize)
    }

    /// Returns whether both places count from the end, in the wrong order. Clamped to the start they would be
    /// one place.
    pub(super) fn is_reversed(self) -> bool {
        self.first < 0 && self.last < 0 && self.first > self.last
    }
}

fn getrange(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let stretch = Stretch { first: integer(&args[2])?, last: integer(&args[3])? };
    let value = context.get(&args[1])?.filter(|_| !stretch.is_reversed());
    let Some((range, value)) = value.and_then(|value| Some((stretch.within(value.len())?, value))) else {
        context.replies.bulk(b"");
        return Ok(Reply::Now);
    };
    let mut buffer = Vec::new();
    let mut value = Some(value);
    let bytes = context.bytes_in_parts(&mut value, &mut buffer)?;
    context.replies.bulk(&bytes[range]);
    Ok(Reply::Now)
}

fn setrange(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let offset = integer(&args[2])?;
    let offset = usize::try_from(offset).map_err(|_| Failure::fixed("ERR offset is out of range"))?;
    let part = &args[3];
    if part.is_empty() {
        let len = context.peek_string(&args[1])?.map_or(0, |value| value.len());
        return context.integer(len as i64);
    }
    let limit = context.server.configuration().max_value_bytes;
    let Some(end) = offset.checked_add(part.len()).filter(|&end| end <= limit) else {
        context.peek_string(&args[1])?;
        return Err(Failure::TOO_LONG);
    };
    let len = context.edit(&args[1], |current, edited| {
        reserve(edited, part.len())?;
        edited.extend_from_slice(part);
        Ok(Edit::Changed { offset, result: current.len().max(end) })
    })?;
    context.integer(len as i64)
}
