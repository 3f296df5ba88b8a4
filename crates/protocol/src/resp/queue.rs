//! Requests that are kept for later.

use super::args::{Args, Range};

/// Requests, one behind the other in one buffer, to be run later.
///
/// ```
/// use snugly_protocol::resp::{Limits, RequestParser, RequestQueue};
///
/// let buffer = b"GET key\r\n";
/// let mut parser = RequestParser::default();
/// parser.parse(buffer, &Limits::default()).unwrap();
/// let mut queue = RequestQueue::default();
/// queue.push(parser.args(buffer));
/// assert_eq!(&queue.get(0).unwrap()[1], b"key");
/// ```
#[derive(Debug, Default)]
pub struct RequestQueue {
    bytes: Vec<u8>,
    ranges: Vec<Range>,
    /// Behind the last range of each request.
    ends: Vec<usize>,
}

impl RequestQueue {
    /// Copies a request behind those that are there.
    pub fn push(&mut self, args: Args<'_>) {
        for arg in args {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(arg);
            self.ranges.push((start, self.bytes.len()));
        }
        self.ends.push(self.ranges.len());
    }

    /// The arguments of a request, which are numbered from 0 on.
    pub fn get(&self, index: usize) -> Option<Args<'_>> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(Args::new(&self.bytes, &self.ranges[start..end]))
    }

    /// Bytes that a request would take here.
    pub fn cost(args: Args<'_>) -> usize {
        args.iter().map(|arg| arg.len() + size_of::<Range>()).sum::<usize>() + size_of::<usize>()
    }

    /// Bytes that the requests take, room for more not counted.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.ranges.len() * size_of::<Range>() + self.ends.len() * size_of::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Limits, RequestParser, encode_command};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_come_back_as_they_were(
            requests in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..5),
                0..10,
            ),
        ) {
            let mut queue = RequestQueue::default();
            let mut memory = 0;
            for request in &requests {
                let mut buffer = Vec::new();
                let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
                encode_command(&words, &mut buffer);
                let mut parser = RequestParser::default();
                parser.parse(&buffer, &Limits::default()).expect("it is well-formed");
                memory += RequestQueue::cost(parser.args(&buffer));
                queue.push(parser.args(&buffer));
            }
            prop_assert_eq!(queue.memory(), memory);
            for (index, request) in requests.iter().enumerate() {
                let args = queue.get(index).expect("it was pushed");
                prop_assert_eq!(args.iter().collect::<Vec<_>>(), request.clone());
            }
            prop_assert!(queue.get(requests.len()).is_none());
        }
    }
}
