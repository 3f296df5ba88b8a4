//! Shapes of replies: the strings in a reply that are values, and the key that each belongs to.

/// Shape of a reply with values. It is applied to a reply as it came over the wire.
#[derive(Debug, PartialEq, Eq)]
pub enum Shape {
    /// A bulk string that is a value.
    Value,
    /// The reply of EXEC, whose elements are replies to the commands queued since MULTI, each with a shape of
    /// its own.
    Transaction,
    /// An array, each element of which has the inner shape; or the reply itself, if it is not an array.
    Each {
        /// Shape of an element.
        inner: &'static Shape,
        /// Whether element i belongs to the i-th key of the arguments.
        has_arguments_keys: bool,
    },
    /// An array, one element of which has the inner shape.
    Element {
        /// Index of the element, counted from 0.
        at: usize,
        /// Shape of the element.
        inner: &'static Shape,
        /// Whether element 0 is the key.
        has_key: bool,
    },
    /// Pairs, the second of each of which has the inner shape: in a map, an array of arrays of two, or an
    /// array that alternates.
    Pairs {
        /// Shape of the second.
        inner: &'static Shape,
        /// Whether the first is the key.
        has_key: bool,
    },
}

/// A reply, or a part of one, in the caller's representation: a reference, also a mutable one, or the handle
/// of an object.
pub trait Reply: Sized {
    /// Iterator over the elements of an array.
    type Elements: ExactSizeIterator<Item = Self>;
    /// Iterator over the pairs of a map.
    type Pairs: Iterator<Item = (Self, Self)>;
    /// Name of a key in a reply.
    type Name: Clone;

    /// Returns the reply by its type.
    fn open(self) -> Opened<Self>;

    /// Returns the text of a bulk string; called for nothing else.
    fn name(self) -> Self::Name;
}

/// A reply by its type.
pub enum Opened<R: Reply> {
    /// Bulk string, with the reply itself.
    Bulk(R),
    /// Elements of an array.
    Array(R::Elements),
    /// Pairs of a map, in order.
    Map(R::Pairs),
    /// Any other reply, which has no values.
    Other,
}

/// The key that a value belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key<N> {
    /// Number of a key of the arguments, counted from 0, if there are that many.
    Argument(usize),
    /// Key in the reply itself.
    Named(N),
}

impl Shape {
    /// Returns the shape of its parts, if it has some.
    pub fn inner(&self) -> Option<&'static Shape> {
        match self {
            Shape::Value | Shape::Transaction => None,
            Shape::Each { inner, .. } | Shape::Element { inner, .. } | Shape::Pairs { inner, .. } => {
                Some(inner)
            }
        }
    }

    /// Calls `visit` for each value in a reply, from left to right. A part that does not have the shape is
    /// left alone, and so is a transaction: its parts have the shapes of their own commands.
    ///
    /// # Errors
    ///
    /// The first error of `visit`, which ends the walk.
    pub fn walk<R: Reply, E>(
        &self,
        reply: R,
        mut visit: impl FnMut(R, Key<R::Name>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.apply(reply.open(), Key::Argument(0), &mut visit)
    }

    fn apply<R: Reply, E>(
        &self,
        reply: Opened<R>,
        key: Key<R::Name>,
        visit: &mut impl FnMut(R, Key<R::Name>) -> Result<(), E>,
    ) -> Result<(), E> {
        match (self, reply) {
            (Shape::Value, Opened::Bulk(value)) => visit(value, key),
            (Shape::Each { inner, has_arguments_keys }, Opened::Array(elements)) => {
                for (at, element) in elements.enumerate() {
                    let own = if *has_arguments_keys { Key::Argument(at) } else { key.clone() };
                    inner.apply(element.open(), own, visit)?;
                }
                Ok(())
            }
            (Shape::Each { inner, .. }, other) => inner.apply(other, key, visit),
            (Shape::Element { at, inner, has_key }, Opened::Array(mut elements)) => {
                let Some(first) = elements.next() else { return Ok(()) };
                let Some(between) = at.checked_sub(1) else { return inner.apply(first.open(), key, visit) };
                let Some(element) = elements.nth(between) else { return Ok(()) };
                inner.apply(element.open(), named(*has_key, first.open(), key), visit)
            }
            (Shape::Pairs { inner, has_key }, Opened::Map(pairs)) => {
                for (first, second) in pairs {
                    let own = named(*has_key, first.open(), key.clone());
                    inner.apply(second.open(), own, visit)?;
                }
                Ok(())
            }
            (Shape::Pairs { inner, has_key }, Opened::Array(elements)) => {
                pairs(inner, *has_key, elements, key, visit)
            }
            _ => Ok(()),
        }
    }
}

/// Visits an array of arrays of two, if its first element is an array, or else one that alternates.
fn pairs<R: Reply, E>(
    inner: &Shape,
    has_key: bool,
    mut elements: R::Elements,
    key: Key<R::Name>,
    visit: &mut impl FnMut(R, Key<R::Name>) -> Result<(), E>,
) -> Result<(), E> {
    let mut pair =
        |first: Opened<R>, second: R| inner.apply(second.open(), named(has_key, first, key.clone()), visit);
    let mut nested = |element: Opened<R>| match element {
        Opened::Array(mut two) if two.len() == 2 => match (two.next(), two.next()) {
            (Some(first), Some(second)) => pair(first.open(), second),
            _ => Ok(()),
        },
        _ => Ok(()),
    };
    let Some(first) = elements.next() else { return Ok(()) };
    match first.open() {
        first @ Opened::Array(_) => {
            nested(first)?;
            elements.try_for_each(|element| nested(element.open()))
        }
        first => {
            let Some(second) = elements.next() else { return Ok(()) };
            pair(first, second)?;
            while let (Some(first), Some(second)) = (elements.next(), elements.next()) {
                pair(first.open(), second)?;
            }
            Ok(())
        }
    }
}

/// Returns the key that stands in a reply, if it has one there.
fn named<R: Reply>(has_key: bool, first: Opened<R>, key: Key<R::Name>) -> Key<R::Name> {
    match first {
        Opened::Bulk(name) if has_key => Key::Named(name.name()),
        _ => key,
    }
}
