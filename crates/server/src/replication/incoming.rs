//! The bytes of a primary: lines, the transfer of all keys, and the stream behind it, one after the other.
//!
//! It knows where each ends, and keeps what has arrived behind that. It knows no format of keys and no requests, and takes no
//! more memory than has arrived.

use std::io::{self, Read};

/// Longest line of a primary, in bytes.
const LONGEST_LINE: usize = 16 << 10;
/// Bytes that are read at once.
const READ: usize = 64 << 10;
/// Length of the mark behind a transfer whose length is not known before.
const MARK_LEN: usize = 40;

/// Bytes that have arrived and were not taken, and where others come from.
pub(super) struct Incoming<R> {
    pub(super) source: R,
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that were taken.
    taken: usize,
}

/// The end of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// After so many bytes.
    Length(u64),
    /// Before this mark.
    Mark([u8; MARK_LEN]),
}

/// A transfer, to be read to its end.
pub(super) struct Transfer<'a, R> {
    incoming: &'a mut Incoming<R>,
    extent: Extent,
    is_over: bool,
}

impl<R: Read> Incoming<R> {
    pub(super) fn new(source: R) -> Incoming<R> {
        Incoming { source, buffer: Vec::new(), taken: 0 }
    }

    /// The bytes that wait.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Takes bytes off the front.
    pub(super) fn take(&mut self, len: usize) {
        self.taken += len;
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(READ);
            self.taken = 0;
        } else if self.taken > self.buffer.len() / 2 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Waits for more bytes.
    ///
    /// # Errors
    /// Errors of the source; `UnexpectedEof` at its end.
    fn more(&mut self) -> io::Result<()> {
        self.more_by(READ, |source, buffer| source.read(buffer).map(Some)).map(drop)
    }

    /// Takes what `read` reads into room for so many bytes at least, if it does; returns how many have come.
    ///
    /// # Errors
    /// Those of `read`; `UnexpectedEof` if it is at the end.
    pub(super) fn more_by(
        &mut self,
        wanted: usize,
        read: impl FnOnce(&mut R, &mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<usize> {
        let len = self.buffer.len();
        self.buffer.resize(len + wanted.max(READ), 0);
        let read = read(&mut self.source, &mut self.buffer[len..]);
        self.buffer.truncate(len + read.as_ref().ok().copied().flatten().unwrap_or(0));
        match read? {
            Some(0) => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the primary has closed the connection"))
            }
            read => Ok(read.unwrap_or(0)),
        }
    }

    /// The next line, without its end; a line end alone gives an empty one.
    ///
    /// # Errors
    /// Those of [`Incoming::more`]; `InvalidData` for what is too long for a line.
    pub(super) fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut seen = 0;
        loop {
            let waiting = self.waiting();
            if let Some(end) = waiting[seen..].iter().position(|&byte| byte == b'\n') {
                let line = &waiting[..seen + end];
                let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
                self.take(seen + end + 1);
                return Ok(line);
            }
            seen = waiting.len();
            if seen > LONGEST_LINE {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the primary has sent a line that has no end",
                ));
            }
            self.more()?;
        }
    }

    /// The transfer that begins here.
    pub(super) fn transfer(&mut self, extent: Extent) -> Transfer<'_, R> {
        let is_over = extent == Extent::Length(0);
        Transfer { incoming: self, extent, is_over }
    }
}

impl Extent {
    /// The extent that the line before a transfer tells: `$` and a length, or `$EOF:` and a mark.
    pub(super) fn parse(line: &[u8]) -> Option<Extent> {
        let told = line.strip_prefix(b"$")?;
        match told.strip_prefix(b"EOF:") {
            Some(mark) => mark.try_into().ok().map(Extent::Mark),
            None => std::str::from_utf8(told).ok()?.parse().ok().map(Extent::Length),
        }
    }

    /// The length, if it is known.
    pub(super) fn len(&self) -> Option<u64> {
        match self {
            Extent::Length(len) => Some(*len),
            Extent::Mark(_) => None,
        }
    }
}

impl<R: Read> Transfer<'_, R> {
    /// Passes over what is left of it.
    ///
    /// # Errors
    /// Errors of the source.
    pub(super) fn finish(mut self) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink()).map(drop)
    }

    /// Bytes that wait and are part of the transfer for certain; whether it ends behind them.
    fn part(&self, mark: &[u8; MARK_LEN]) -> (usize, bool) {
        let waiting = self.incoming.waiting();
        let mut from = 0;
        while let Some(found) = waiting[from..].iter().position(|&byte| byte == mark[0]) {
            let at = from + found;
            let rest = &waiting[at..];
            if rest.starts_with(mark) {
                return (at, true);
            }
            if rest.len() < MARK_LEN && mark.starts_with(rest) {
                return (at, false);
            }
            from = at + 1;
        }
        (waiting.len(), false)
    }
}

/// Ends where the transfer does.
impl<R: Read> Read for Transfer<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.is_over || buffer.is_empty() {
                return Ok(0);
            }
            let (available, ends) = match &self.extent {
                Extent::Length(left) => {
                    let waiting = self.incoming.waiting().len();
                    (usize::try_from(*left).map_or(waiting, |left| left.min(waiting)), false)
                }
                Extent::Mark(mark) => self.part(mark),
            };
            let len = available.min(buffer.len());
            buffer[..len].copy_from_slice(&self.incoming.waiting()[..len]);
            self.incoming.take(len);
            if let Extent::Length(left) = &mut self.extent {
                *left -= len as u64;
                self.is_over = *left == 0;
            }
            if ends && len == available {
                self.incoming.take(MARK_LEN);
                self.is_over = true;
            }
            if len > 0 || self.is_over {
                return Ok(len);
            }
            self.incoming.more()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARK: &[u8; MARK_LEN] = b"aab3456789012345678901234567890123456789";

    /// A source that gives its bytes in pieces of these lengths, over and over.
    struct Pieces<'a> {
        rest: &'a [u8],
        lens: std::iter::Cycle<std::vec::IntoIter<usize>>,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.lens.next().unwrap_or(1);
            (&mut self.rest).take(len as u64).read(buffer)
        }
    }

    fn incoming(bytes: &[u8], lens: Vec<usize>) -> Incoming<Pieces<'_>> {
        Incoming::new(Pieces { rest: bytes, lens: lens.into_iter().cycle() })
    }

    #[test]
    fn the_line_before_a_transfer_tells_its_length_or_its_mark() {
        assert_eq!(Extent::parse(b"$17"), Some(Extent::Length(17)));
        assert_eq!(Extent::parse(&[b"$EOF:", &MARK[..]].concat()), Some(Extent::Mark(*MARK)));
        for wrong in [&b"17"[..], b"$", b"$-1", b"$EOF:short", b"$99999999999999999999", b"-ERR no", b""] {
            assert_eq!(Extent::parse(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
        let bytes = vec![b'x'; 1 << 20];
        let mut incoming = incoming(&bytes, vec![4096]);
        assert_eq!(incoming.line().map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
        assert!(incoming.waiting().len() < 2 * LONGEST_LINE + READ);
    }

    #[test]
    fn a_transfer_that_breaks_off_is_no_whole_one() {
        for extent in [Extent::Length(10), Extent::Mark(*MARK)] {
            let mut incoming = incoming(b"123456789", vec![3]);
            let mut read = Vec::new();
            let error = incoming.transfer(extent).read_to_end(&mut read).expect_err("it is not all there");
            assert_eq!((error.kind(), &read[..]), (io::ErrorKind::UnexpectedEof, &b"123456789"[..]));
        }
    }

    proptest! {
        #[test]
        fn lines_transfers_and_what_is_behind_them_are_told_apart_however_they_arrive(
            body in prop::collection::vec(prop::sample::select(&b"aab3456\n"[..]), 0..200),
            is_marked: bool,
            lens in prop::collection::vec(1usize..60, 1..8),
            reads in 1usize..50,
        ) {
            let (mark, extent) = match is_marked {
                true => (&MARK[..], Extent::Mark(*MARK)),
                false => (&b""[..], Extent::Length(body.len() as u64)),
            };
            let bytes = [b"\n+OK\r\n", &body[..], mark, b"*1\r\n"].concat();
            let mut incoming = incoming(&bytes, lens);
            prop_assert_eq!(incoming.line().unwrap(), b"");
            prop_assert_eq!(incoming.line().unwrap(), b"+OK");
            let mut transfer = incoming.transfer(extent);
            let (mut read, mut buffer) = (Vec::new(), vec![0; reads]);
            loop {
                let len = transfer.read(&mut buffer).unwrap();
                if len == 0 {
                    break;
                }
                read.extend_from_slice(&buffer[..len]);
            }
            prop_assert_eq!(read, body);
            prop_assert_eq!(incoming.line().unwrap(), b"*1");
        }
    }
}
