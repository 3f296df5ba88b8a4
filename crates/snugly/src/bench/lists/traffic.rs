//! Requests for lists as a load. Each connection has lists of its own, so that what a list holds is known whatever the
//! order in which the server hears the connections; every byte of every reply is compared.

use anyhow::{Context, Result, ensure};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::model::{End, Lists, Reply};
use crate::bench::load::Traffic;

/// Elements of a range.
pub const RANGE: usize = 100;

/// A request to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Pushes until every list has its elements; the connection's lists take turns.
    Fill(End),
    Index(Position),
    /// [`RANGE`] elements.
    Range(Position),
    Set(Position),
    Push(End),
    /// From the tail.
    Pop,
    /// All elements of any list.
    Whole,
    /// All elements of every list, once.
    ReadBack,
}

/// A place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The same in all lists: this many thousandths of a filled one from its head.
    Fixed(usize),
    /// Anywhere, all as often.
    Random,
}

/// The traffic of one thread to all lists, on so many connections.
pub struct ListTraffic<'a> {
    name: &'static str,
    request: Request,
    lists: &'a mut Lists,
    connections: usize,
    random: Xoshiro256PlusPlus,
    /// Of requests that go through the lists in turn: how many each connection has sent.
    turns: Vec<usize>,
}

/// A reply that is awaited.
#[derive(Default)]
pub struct Awaited {
    list: usize,
    reply: Reply,
    /// Parts that have come and were right: the line, then each element. And their bytes.
    parts: usize,
    bytes: usize,
}

impl<'a> ListTraffic<'a> {
    /// `name` is what errors call the request.
    pub fn new(
        name: &'static str,
        request: Request,
        lists: &'a mut Lists,
        connections: usize,
        seed: u64,
    ) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { name, request, lists, connections, random, turns: vec![0; connections] }
    }

    /// Number of lists of a connection: of all, every so many-th.
    fn own(&self, connection: usize) -> usize {
        (self.lists.count() - connection).div_ceil(self.connections)
    }

    fn any_list(&mut self, connection: usize) -> usize {
        let own = self.own(connection);
        connection + self.connections * self.random.random_range(0..own)
    }

    /// The connection's lists one after the other, again and again, `rounds` times; `None` after that.
    fn next_list(&mut self, connection: usize, rounds: usize) -> Option<usize> {
        let (own, turn) = (self.own(connection), self.turns[connection]);
        self.turns[connection] += 1;
        (turn < own * rounds).then_some(connection + self.connections * (turn % own))
    }

    fn any_element(&mut self) -> u32 {
        self.random.random_range(0..self.lists.distinct())
    }

    /// The start of `width` elements.
    fn place(&mut self, place: Position, list: usize, width: usize) -> usize {
        let last = self.lists.len(list) - width;
        match place {
            Position::Fixed(thousandths) => last.min(self.lists.filled() * thousandths / 1000),
            Position::Random => self.random.random_range(0..=last),
        }
    }

    fn index(&mut self, list: usize, place: Position, out: &mut Vec<u8>) -> Reply {
        let index = self.place(place, list, 1);
        self.lists.index(list, index, out)
    }

    fn range(&mut self, list: usize, place: Position, out: &mut Vec<u8>) -> Reply {
        let width = RANGE.min(self.lists.len(list));
        let start = self.place(place, list, width);
        self.lists.range(list, start..start + width, out)
    }

    fn set(&mut self, list: usize, place: Position, out: &mut Vec<u8>) -> Reply {
        let (index, element) = (self.place(place, list, 1), self.any_element());
        self.lists.set(list, index, element, out)
    }

    /// Requests that read, replace or pop need an element.
    fn check_elements(&self, list: usize) -> Result<()> {
        let needed = !matches!(self.request, Request::Fill(_) | Request::Push(_) | Request::ReadBack);
        ensure!(
            !needed || self.lists.len(list) > 0,
            "{} has no element left for {}: ask for fewer requests, or more elements",
            self.lists.key(list),
            self.name
        );
        Ok(())
    }
}

impl Traffic for ListTraffic<'_> {
    type Request = Awaited;

    fn ask(&mut self, connection: usize, out: &mut Vec<u8>) -> Result<Option<Awaited>> {
        let list = match self.request {
            Request::Fill(_) => self.next_list(connection, self.lists.filled()),
            Request::ReadBack => self.next_list(connection, 1),
            _ => Some(self.any_list(connection)),
        };
        let Some(list) = list else { return Ok(None) };
        self.check_elements(list)?;
        let reply = match self.request {
            Request::Fill(end) => self.lists.fill(list, end, out).context("a list was filled before")?,
            Request::Index(place) => self.index(list, place, out),
            Request::Range(place) => self.range(list, place, out),
            Request::Set(place) => self.set(list, place, out),
            Request::Push(end) => {
                let element = self.any_element();
                self.lists.push(list, end, element, out)
            }
            Request::Pop => self.lists.pop(list, out).context("an empty list was checked for")?,
            Request::Whole | Request::ReadBack => self.lists.whole(list, out),
        };
        Ok(Some(Awaited { list, reply, ..Awaited::default() }))
    }

    fn hear(&mut self, awaited: &mut Awaited, input: &[u8]) -> Result<Option<usize>> {
        while awaited.parts <= awaited.reply.elements.len() {
            let part = match awaited.parts {
                0 => awaited.reply.line.as_bytes(),
                number => self.lists.bulk(awaited.reply.elements[number - 1]),
            };
            let come = &input[awaited.bytes..input.len().min(awaited.bytes + part.len())];
            ensure!(
                part.starts_with(come),
                "{} of {} was answered with {:?} where {:?} was due: do other clients write these lists?",
                self.name,
                self.lists.key(awaited.list),
                beginning(&input[awaited.bytes..]),
                beginning(part),
            );
            if come.len() < part.len() {
                return Ok(None);
            }
            awaited.parts += 1;
            awaited.bytes += part.len();
        }
        Ok(Some(awaited.bytes))
    }
}

/// The first bytes of an answer, for people.
fn beginning(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::values::Values;
    use crate::bench::workload::Bulks;
    use crate::corpus::{Corpus, Kind};

    const CONNECTIONS: usize = 3;

    fn filled() -> Lists {
        let values = Values::Generated(Corpus::new(Kind::Events, 500, 1));
        let mut lists = Lists::new(7, 250, "l:", Bulks::new(&values, 7 * 250));
        run(&mut lists, Request::Fill(End::Tail), 7 * 250);
        lists
    }

    /// Asks in turn on every connection, and hears what was due; returns which list each request was for.
    fn run(lists: &mut Lists, request: Request, most: usize) -> Vec<(usize, usize)> {
        let mut traffic = ListTraffic::new("a test", request, lists, CONNECTIONS, 1);
        let mut asked = Vec::new();
        for connection in (0..CONNECTIONS).cycle().take(most * CONNECTIONS) {
            let Some(mut awaited) = traffic.ask(connection, &mut Vec::new()).unwrap() else { continue };
            let reply = answer(&traffic, &awaited);
            assert_eq!(traffic.hear(&mut awaited, &reply).unwrap(), Some(reply.len()));
            asked.push((connection, awaited.list));
        }
        asked
    }

    fn answer(traffic: &ListTraffic<'_>, awaited: &Awaited) -> Vec<u8> {
        let elements = awaited.reply.elements.iter().map(|&element| traffic.lists.bulk(element));
        [awaited.reply.line.as_bytes()].into_iter().chain(elements).collect::<Vec<_>>().concat()
    }

    #[test]
    fn every_list_is_filled_and_read_back_and_each_connection_has_lists_of_its_own() {
        let mut lists = filled();
        assert!((0..7).all(|list| lists.len(list) == 250));
        let mut asked = run(&mut lists, Request::ReadBack, 7);
        assert!(asked.iter().all(|&(connection, list)| list % CONNECTIONS == connection));
        asked.sort_unstable_by_key(|&(_, list)| list);
        assert_eq!(asked.iter().map(|&(_, list)| list).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
        let any = run(&mut lists, Request::Index(Position::Random), 300);
        assert!(any.iter().all(|&(connection, list)| list % CONNECTIONS == connection));
        assert!((0..7).all(|list| any.iter().any(|&(_, asked)| asked == list)));
    }

    #[test]
    fn a_fixed_place_is_the_same_in_all_lists_and_random_ones_are_everywhere() {
        let mut lists = filled();
        let mut traffic = ListTraffic::new("a test", Request::Whole, &mut lists, CONNECTIONS, 1);
        assert_eq!(traffic.place(Position::Fixed(400), 0, RANGE), 100);
        assert_eq!(traffic.place(Position::Fixed(900), 0, RANGE), 150, "as far back as a range can begin");
        let places: Vec<usize> = (0..5000).map(|_| traffic.place(Position::Random, 3, 1)).collect();
        assert!((0..250).all(|place| places.contains(&place)));
    }

    #[test]
    fn a_reply_may_come_in_any_pieces() {
        let mut lists = filled();
        let mut traffic = ListTraffic::new("a test", Request::Range(Position::Random), &mut lists, 1, 1);
        let mut awaited = traffic.ask(0, &mut Vec::new()).unwrap().unwrap();
        let mut reply = answer(&traffic, &awaited);
        let length = reply.len();
        reply.extend_from_slice(b"*1\r\n");
        for come in (0..length).step_by(97) {
            assert_eq!(traffic.hear(&mut awaited, &reply[..come]).unwrap(), None, "{come} of {length}");
        }
        assert_eq!(
            traffic.hear(&mut awaited, &reply).unwrap(),
            Some(length),
            "what is behind is another reply"
        );
    }

    #[test]
    fn any_other_reply_is_an_error_that_says_what_was_due() {
        let mut lists = filled();
        let mut traffic = ListTraffic::new("a test", Request::Range(Position::Fixed(0)), &mut lists, 1, 1);
        for (at, other) in [(0, b'-'), (1, b'9'), (700, b'?'), (40_000, b'?')] {
            let mut awaited = traffic.ask(0, &mut Vec::new()).unwrap().unwrap();
            let mut reply = answer(&traffic, &awaited);
            reply[at] = other;
            let error = traffic.hear(&mut awaited, &reply).unwrap_err().to_string();
            assert!(error.starts_with("a test of l:"), "{error}");
        }
        let mut awaited = traffic.ask(0, &mut Vec::new()).unwrap().unwrap();
        let error = traffic.hear(&mut awaited, b"-WRONGTYPE\r\n").unwrap_err().to_string();
        assert!(error.contains(r#""-WRONGTYPE\r\n" where "*100\r\n" was due"#), "{error}");
    }

    #[test]
    fn popping_more_than_there_is_says_what_to_do() {
        let mut lists = filled();
        let mut traffic = ListTraffic::new("a test", Request::Pop, &mut lists, CONNECTIONS, 1);
        let error = (0..3000).find_map(|_| traffic.ask(0, &mut Vec::new()).err()).unwrap();
        assert!(error.to_string().contains("ask for fewer requests"), "{error}");
    }
}
