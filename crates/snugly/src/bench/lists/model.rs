//! Expected contents of every list: requests change it as they change the server, so that each reply is known before it
//! comes. Knows no connection.

use std::collections::VecDeque;
use std::ops::Range;

use snugly_protocol::resp::{encode_array, encode_bulk};

use crate::bench::workload::Bulks;

/// Lists by number, of elements that are values by number.
pub struct Lists {
    elements: Bulks,
    key_prefix: String,
    /// Elements that a list has when it is filled.
    filled: usize,
    lists: Vec<VecDeque<u32>>,
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Head,
    Tail,
}

/// A reply that is known: a line, if any, and elements behind it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub line: String,
    pub elements: Vec<u32>,
}

impl Lists {
    /// A model of so many empty lists.
    pub fn new(count: usize, filled: usize, key_prefix: &str, elements: Bulks) -> Self {
        Self { elements, key_prefix: key_prefix.to_owned(), filled, lists: vec![VecDeque::new(); count] }
    }

    pub fn count(&self) -> usize {
        self.lists.len()
    }

    /// Elements that a list has when it is filled.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Elements that a list has now.
    pub fn len(&self, list: usize) -> usize {
        self.lists[list].len()
    }

    pub fn key(&self, list: usize) -> String {
        format!("{}{list}", self.key_prefix)
    }

    /// An element as a bulk string.
    pub fn bulk(&self, element: u32) -> &[u8] {
        self.elements.get(u64::from(element))
    }

    /// Different elements.
    pub fn distinct(&self) -> u32 {
        self.elements.count() as u32
    }

    pub fn clear(&mut self) {
        self.lists.iter_mut().for_each(VecDeque::clear);
    }

    /// Average bytes of an element.
    pub fn element_bytes(&self) -> f64 {
        self.elements.value_bytes()
    }

    /// Bytes of all elements that are in lists.
    pub fn given_bytes(&self) -> u64 {
        let elements = self.lists.iter().flatten();
        elements.map(|&element| self.elements.value(u64::from(element)).len() as u64).sum()
    }

    /// Pushes the next element of a list that is being filled, from either end: a full one holds the same.
    pub fn fill(&mut self, list: usize, end: End, out: &mut Vec<u8>) -> Option<Reply> {
        let pushed = self.lists[list].len();
        let index = match end {
            End::Head => self.filled.checked_sub(pushed + 1)?,
            End::Tail => Some(pushed).filter(|&index| index < self.filled)?,
        };
        let element = (list * self.filled + index) as u64 % self.elements.count();
        Some(self.push(list, end, element as u32, out))
    }

    pub fn push(&mut self, list: usize, end: End, element: u32, out: &mut Vec<u8>) -> Reply {
        let held = &mut self.lists[list];
        let name = match end {
            End::Head => {
                held.push_front(element);
                "LPUSH"
            }
            End::Tail => {
                held.push_back(element);
                "RPUSH"
            }
        };
        let line = format!(":{}\r\n", held.len());
        self.command(name, list, &[], Some(element), out);
        Reply { line, elements: Vec::new() }
    }

    /// Pops from the tail; `None` where there is nothing.
    pub fn pop(&mut self, list: usize, out: &mut Vec<u8>) -> Option<Reply> {
        let element = self.lists[list].pop_back()?;
        self.command("RPOP", list, &[], None, out);
        Some(Reply { line: String::new(), elements: vec![element] })
    }

    /// Reads the element at an index that there is.
    pub fn index(&self, list: usize, index: usize, out: &mut Vec<u8>) -> Reply {
        self.command("LINDEX", list, &[index as i64], None, out);
        Reply { line: String::new(), elements: vec![self.lists[list][index]] }
    }

    /// Reads a range of what is there.
    pub fn range(&self, list: usize, range: Range<usize>, out: &mut Vec<u8>) -> Reply {
        let bounds = [range.start as i64, range.end as i64 - 1];
        self.command("LRANGE", list, &bounds, None, out);
        let elements: Vec<u32> = self.lists[list].range(range).copied().collect();
        Reply { line: format!("*{}\r\n", elements.len()), elements }
    }

    /// Reads a list from 0 to -1.
    pub fn whole(&self, list: usize, out: &mut Vec<u8>) -> Reply {
        self.command("LRANGE", list, &[0, -1], None, out);
        let elements: Vec<u32> = self.lists[list].iter().copied().collect();
        Reply { line: format!("*{}\r\n", elements.len()), elements }
    }

    /// Replaces the element at an index that there is.
    pub fn set(&mut self, list: usize, index: usize, element: u32, out: &mut Vec<u8>) -> Reply {
        self.lists[list][index] = element;
        self.command("LSET", list, &[index as i64], Some(element), out);
        Reply { line: "+OK\r\n".to_owned(), elements: Vec::new() }
    }

    fn command(&self, name: &str, list: usize, numbers: &[i64], element: Option<u32>, out: &mut Vec<u8>) {
        encode_array(2 + numbers.len() + usize::from(element.is_some()), out);
        encode_bulk(name.as_bytes(), out);
        encode_bulk(self.key(list).as_bytes(), out);
        for number in numbers {
            encode_bulk(number.to_string().as_bytes(), out);
        }
        if let Some(element) = element {
            out.extend_from_slice(self.bulk(element));
        }
    }
}

#[cfg(test)]
mod tests {
    use snugly_protocol::resp::{Limits, RequestParser};

    use super::*;
    use crate::bench::values::Values;
    use crate::corpus::{Corpus, Kind};

    const FILLED: usize = 5;

    fn lists() -> Lists {
        let values = Values::Generated(Corpus::new(Kind::Events, 500, 1));
        Lists::new(2, FILLED, "l:", Bulks::new(&values, 2 * FILLED as u64))
    }

    fn filled(end: End) -> Lists {
        let mut lists = lists();
        for list in 0..2 {
            while lists.fill(list, end, &mut Vec::new()).is_some() {}
        }
        lists
    }

    /// The words of the only request in `out`.
    fn words(out: &[u8]) -> Vec<String> {
        let mut parser = RequestParser::default();
        assert_eq!(parser.parse(out, &Limits::default()), Ok(Some(out.len())));
        parser.args(out).iter().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
    }

    #[test]
    fn lists_filled_from_either_end_hold_the_same_and_no_element_twice() {
        let (head, tail) = (filled(End::Head), filled(End::Tail));
        assert_eq!(head.lists, tail.lists);
        let mut elements: Vec<u32> = tail.lists.iter().flatten().copied().collect();
        elements.sort_unstable();
        assert_eq!(elements, (0..2 * FILLED as u32).collect::<Vec<_>>());
    }

    #[test]
    fn every_request_is_what_it_stands_for_and_its_reply_what_the_list_then_holds() {
        let mut lists = filled(End::Tail);
        let text = |lists: &Lists, element: u32| {
            String::from_utf8(lists.elements.value(u64::from(element)).to_vec()).unwrap()
        };
        let mut ask = |request: &dyn Fn(&mut Lists, &mut Vec<u8>) -> Reply| {
            let mut out = Vec::new();
            let reply = request(&mut lists, &mut out);
            (words(&out), reply)
        };
        let of = |line: &str, elements: &[u32]| Reply { line: line.to_owned(), elements: elements.to_vec() };

        let (request, reply) = ask(&|lists, out| lists.index(1, 2, out));
        assert_eq!((request.join(" "), reply), ("LINDEX l:1 2".to_owned(), of("", &[7])));
        let (request, reply) = ask(&|lists, out| lists.range(0, 1..4, out));
        assert_eq!((request.join(" "), reply), ("LRANGE l:0 1 3".to_owned(), of("*3\r\n", &[1, 2, 3])));
        let (request, reply) = ask(&|lists, out| lists.set(0, 1, 9, out));
        assert_eq!((request[..3].join(" "), reply), ("LSET l:0 1".to_owned(), of("+OK\r\n", &[])));
        let (request, reply) = ask(&|lists, out| lists.push(0, End::Head, 8, out));
        assert_eq!((request[..2].join(" "), reply), ("LPUSH l:0".to_owned(), of(":6\r\n", &[])));
        let (request, reply) = ask(&|lists, out| lists.push(0, End::Tail, 6, out));
        assert_eq!((request[..2].join(" "), reply), ("RPUSH l:0".to_owned(), of(":7\r\n", &[])));
        let (_, reply) = ask(&|lists, out| lists.pop(0, out).unwrap());
        assert_eq!(reply, of("", &[6]));
        let (request, reply) = ask(&|lists, out| lists.whole(0, out));
        assert_eq!(
            (request.join(" "), reply),
            ("LRANGE l:0 0 -1".to_owned(), of("*6\r\n", &[8, 0, 9, 2, 3, 4]))
        );
        let mut out = Vec::new();
        lists.push(1, End::Tail, 3, &mut out);
        assert_eq!(words(&out)[2], text(&lists, 3));
    }

    #[test]
    fn an_empty_list_has_nothing_to_pop() {
        assert_eq!(lists().pop(0, &mut Vec::new()), None);
    }
}
