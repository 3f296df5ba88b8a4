//! What is the same for all commands of a name and a number of words: where the values are, and where the reply has
//! some. Python knows the command table and is asked once for each; the answers are remembered here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};
use snugly_protocol::resp::{encode_array, encode_bulk};

/// Plans are remembered for commands of fewer words than this.
const REMEMBERED_WORDS: usize = 32;
/// And for so many names.
const MOST_NAMES: usize = 1000;

/// How a command is to be sent and its reply to be read.
#[derive(Clone)]
pub(crate) enum Plan {
    /// Not by this transport.
    Foreign,
    /// As Python says, which must see the arguments.
    Asked,
    /// As all of its length.
    Fixed(Arc<Fixed>),
}

pub(crate) struct Fixed {
    /// The array's head and the words of the name, ready to be sent.
    pub head: Box<[u8]>,
    /// Positions of values among the arguments, each with that of its key; the name is at 0.
    pub values: Box<[(usize, usize)]>,
    pub reply: Shape,
    /// Words, in capitals, that change all this where they are among the arguments from `tail` on.
    pub telling: Box<[Box<str>]>,
    pub tail: usize,
}

impl Fixed {
    pub fn is_told_by(&self, argument: &Bound<'_, PyAny>) -> bool {
        let is_one = |text: &[u8]| self.telling.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
        if let Ok(text) = argument.cast::<PyString>() {
            text.to_str().is_ok_and(|text| is_one(text.as_bytes()))
        } else if let Ok(bytes) = argument.cast::<PyBytes>() {
            is_one(bytes.as_bytes())
        } else {
            argument.is_instance_of::<PyByteArray>() || argument.is_instance_of::<PyMemoryView>()
        }
    }
}

/// Where a reply has values. The positions are those of the arguments that are their keys.
#[derive(Clone)]
pub(crate) enum Shape {
    Plain,
    /// It is one.
    Value(Option<usize>),
    /// It is one, or its elements are. There may be fewer keys than elements; the first then stands for all.
    Each(Arc<[usize]>),
}

/// Positions of values and of their keys, the reply's kind, positions of keys, telling words.
type Answer = (Vec<(usize, usize)>, Option<String>, Vec<usize>, Vec<String>);

/// The answers so far.
pub(crate) struct Plans {
    ask: Py<PyAny>,
    known: Mutex<HashMap<Box<str>, Vec<Option<Plan>>>>,
}

impl Plans {
    /// `ask` is called with a name and a number of words. It returns None for a command that is not for this
    /// transport, False for one of which the arguments must be seen, and else a tuple: positions of values, each with that of its key, whether the
    /// reply is a value (`"value"`), has values (`"each"`) or none (None), positions of keys, and words with which the
    /// arguments must be seen after all.
    pub fn new(ask: Py<PyAny>) -> Plans {
        Plans { ask, known: Mutex::default() }
    }

    pub fn of(&self, py: Python<'_>, name: &str, words: usize) -> PyResult<Plan> {
        if let Some(plan) = self.remembered(name, words) {
            return Ok(plan);
        }
        let plan = self.asked(py, name, words)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Applications use fewer names, unless they make names up.
        let is_room = known.len() < MOST_NAMES || known.contains_key(name);
        if words < REMEMBERED_WORDS && is_room && !matches!(plan, Plan::Foreign) {
            let plans = known.entry(name.into()).or_insert_with(|| vec![None; REMEMBERED_WORDS]);
            plans[words] = Some(plan.clone());
        }
        Ok(plan)
    }

    fn remembered(&self, name: &str, words: usize) -> Option<Plan> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name)?.get(words)?.clone()
    }

    fn asked(&self, py: Python<'_>, name: &str, words: usize) -> PyResult<Plan> {
        let answer = self.ask.bind(py).call1((name, words))?;
        if answer.is_none() {
            return Ok(Plan::Foreign);
        }
        let Ok((values, kind, keys, telling)) = answer.extract::<Answer>() else { return Ok(Plan::Asked) };
        let telling = telling.into_iter().map(Into::into).collect();
        let tail = values.iter().map(|(position, _)| position).chain(&keys).max().map_or(1, |last| last + 1);
        let reply = match kind.as_deref() {
            Some("value") => Shape::Value(keys.first().copied()),
            Some(_) => Shape::Each(keys.into()),
            None => Shape::Plain,
        };
        let name: Vec<&str> = name.split_ascii_whitespace().collect();
        let mut head = Vec::new();
        encode_array(name.len() + words - 1, &mut head);
        name.iter().for_each(|word| encode_bulk(word.as_bytes(), &mut head));
        Ok(Plan::Fixed(Arc::new(Fixed { head: head.into(), values: values.into(), reply, telling, tail })))
    }
}
