//! Lists: in every form in which a server has written them, and as the nodes of a quicklist, which is how they are given
//! and written here.

use std::borrow::Cow;

use snugly_listpack::{Element, Listpack, View};

use super::error::Fault;
use super::input::{Input, checked};
use super::{length, string, ziplist};

/// An element over this many bytes is a node of its own, and smaller ones share one up to this size: so does Valkey with
/// `list-max-listpack-size` as it is by default.
pub const NODE_BYTES: usize = 8 << 10;
/// The most bytes of one node, which is the limit of Valkey, too.
const MAX_NODE_BYTES: usize = 1 << 30;

// The mark of a node.
const PLAIN: u64 = 1;
const PACKED: u64 = 2;

/// Some elements of a list, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// Elements in a listpack. One that was read is valid, and not empty.
    Packed(Cow<'a, [u8]>),
    /// One large element.
    Plain(Cow<'a, [u8]>),
}

impl<'a> Node<'a> {
    /// The nodes for the elements of a listpack: itself up to [`NODE_BYTES`]. A larger one is split, and elements over
    /// that size stand by themselves. So no listpack holds an element of 16,378 bytes, for which Valkey 9.1 writes a back
    /// length that older servers refuse, and the other way round.
    pub fn of_listpack(listpack: &'a [u8]) -> Vec<Node<'a>> {
        if listpack.len() <= NODE_BYTES {
            return vec![Node::Packed(listpack.into())];
        }
        let mut nodes = Nodes::new(usize::MAX);
        for element in View::of_known(listpack).iter() {
            match element {
                Element::Bytes(bytes) if bytes.len() > NODE_BYTES => nodes.large(bytes.into()),
                element => element.with_bytes(|bytes| nodes.small(bytes)),
            }
        }
        nodes.complete()
    }

    /// The elements.
    pub fn elements(&self) -> impl Iterator<Item = Element<'_>> {
        let (plain, packed) = match self {
            Node::Packed(listpack) => (None, &listpack[..]),
            Node::Plain(element) => (Some(Element::Bytes(element)), &[][..]),
        };
        plain.into_iter().chain(View::of_known(packed).iter())
    }

    /// The mark of the node, and its bytes.
    pub(super) fn parts(&self) -> (u64, &[u8]) {
        match self {
            Node::Packed(listpack) => (PACKED, listpack),
            Node::Plain(element) => (PLAIN, element),
        }
    }

    /// Bytes that [`encode`](Node::encode) appends.
    pub(super) fn encoded_len(&self) -> usize {
        let (container, bytes) = self.parts();
        length::encoded_len(container) + string::encoded_len(bytes.len())
    }

    /// Appends the node.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let (container, bytes) = self.parts();
        length::encode(container, out);
        string::encode(bytes, out);
    }
}

/// The encoding of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A number of strings.
    Strings,
    /// One ziplist.
    Ziplist,
    /// A number of ziplists.
    Ziplists,
    /// A number of nodes that say what they are.
    Nodes,
}

/// Reads a list whose elements have at most `limit` bytes each, and together with what holds them `list_limit`; `None` if
/// there are no elements.
pub(super) fn read<'a>(
    form: Form,
    input: &mut impl Input<'a>,
    limit: usize,
    list_limit: usize,
) -> Result<Option<Vec<Node<'a>>>, Fault> {
    let mut nodes = Nodes::new(limit);
    let mut room = list_limit;
    let mut read = |input: &mut _, limit: usize| {
        let bytes = string::read(input, limit.min(room))?;
        room -= bytes.len();
        Ok::<_, Fault>(bytes)
    };
    let count = if form == Form::Ziplist { 1 } else { length::read_number(input)? };
    for _ in 0..count {
        match form {
            Form::Strings => nodes.element(read(input, limit)?)?,
            Form::Ziplist | Form::Ziplists => nodes.ziplist(&read(input, MAX_NODE_BYTES)?)?,
            Form::Nodes => match length::read_number(input)? {
                PLAIN => nodes.element(not_empty(read(input, limit)?)?)?,
                PACKED => nodes.listpack(read(input, MAX_NODE_BYTES)?)?,
                _ => return Err(Fault::Malformed("a node of a list is of no known kind")),
            },
        }
    }
    Ok(Some(nodes.complete()).filter(|nodes| !nodes.is_empty()))
}

fn not_empty(element: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, Fault> {
    if element.is_empty() { Err(Fault::Malformed("a node of a list is empty")) } else { Ok(element) }
}

/// Nodes that are made. Small elements that come one by one share some, so that a list takes no more memory than its bytes
/// make necessary.
struct Nodes<'a> {
    closed: Vec<Node<'a>>,
    /// The node that the next small elements are added to.
    open: Listpack,
    limit: usize,
}

impl<'a> Nodes<'a> {
    fn new(limit: usize) -> Nodes<'a> {
        Nodes { closed: Vec::new(), open: Listpack::new(), limit }
    }

    fn complete(mut self) -> Vec<Node<'a>> {
        self.close();
        self.closed
    }

    fn element(&mut self, element: Cow<'a, [u8]>) -> Result<(), Fault> {
        checked(element.len() as u64, self.limit)?;
        if element.len() > NODE_BYTES {
            self.large(element);
        } else {
            self.small(&element);
        }
        Ok(())
    }

    fn large(&mut self, element: Cow<'a, [u8]>) {
        self.close();
        self.closed.push(Node::Plain(element));
    }

    fn small(&mut self, element: &[u8]) {
        if self.open.as_bytes().len() + Element::of(element).encoded_len() > NODE_BYTES {
            self.close();
        }
        self.open.push_back(element);
    }

    fn ziplist(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        ziplist::each(bytes, |element| match element {
            Element::Bytes(bytes) if bytes.len() > NODE_BYTES => self.element(bytes.to_vec().into()),
            element => element.with_bytes(|bytes| {
                checked(bytes.len() as u64, self.limit)?;
                self.small(bytes);
                Ok(())
            }),
        })
    }

    fn listpack(&mut self, bytes: Cow<'a, [u8]>) -> Result<(), Fault> {
        let view = View::parse(&bytes).map_err(|error| Fault::Malformed(error.reason))?;
        if view.is_empty() {
            return Ok(());
        }
        for element in view.iter() {
            checked(element.with_bytes(<[u8]>::len) as u64, self.limit)?;
        }
        self.close();
        self.closed.push(Node::Packed(bytes));
        Ok(())
    }

    /// Makes a node of the small elements that are waiting.
    fn close(&mut self) {
        if !self.open.is_empty() {
            let listpack = std::mem::take(&mut self.open);
            self.closed.push(Node::Packed(listpack.as_bytes().to_vec().into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listpack(elements: &[&[u8]]) -> Vec<u8> {
        let mut listpack = Listpack::new();
        elements.iter().for_each(|element| listpack.push_back(element));
        listpack.as_bytes().to_vec()
    }

    fn seen(nodes: &[Node<'_>]) -> Vec<Vec<u8>> {
        nodes.iter().flat_map(Node::elements).map(|element| element.bytes().into_owned()).collect()
    }

    #[test]
    fn a_large_listpack_is_split_and_a_large_element_stands_by_itself() {
        let (large, most) = ([b'x'; NODE_BYTES + 1], [b'x'; NODE_BYTES]);
        let many = vec![&b"element"[..]; 2_000];
        for (elements, nodes) in [
            (&[&b"a"[..], b"12"][..], "packed"),
            (&[&most], "packed"),
            (&[&large], "plain"),
            (&[b"a", &large, b"1", b"2", &large, &large], "packed plain packed plain plain"),
            (&many, "packed packed packed"),
            (&[], "packed"),
        ] {
            let listpack = listpack(elements);
            let made = Node::of_listpack(&listpack);
            let kinds =
                made.iter().map(|node| if matches!(node, Node::Plain(_)) { "plain" } else { "packed" });
            assert_eq!(kinds.collect::<Vec<_>>().join(" "), nodes);
            assert_eq!(seen(&made), elements);
        }
    }

    #[test]
    fn a_listpack_is_borrowed_as_it_is() {
        let listpack = listpack(&[b"a"]);
        let nodes = Node::of_listpack(&listpack);
        assert!(matches!(&nodes[..], [Node::Packed(Cow::Borrowed(bytes))] if *bytes == listpack));
    }
}
