//! A second reading of the table, word by word from the file, and replies as trees: what tests compare the crate with.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::collections::BTreeSet;
use std::iter::Map;
use std::slice;
use std::sync::LazyLock;

use serde_json::Value as Json;
use snugly_commands::{Found, Interpreter, Key, Meaning, Opened, Reply, ValueType};

pub static TABLE: LazyLock<Json> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../commands.json")).expect("the table can be read")
});

/// What a pattern finds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Finding {
    pub keys: Vec<usize>,
    pub values: Vec<(usize, usize)>,
    pub compared: Vec<usize>,
    pub options: BTreeSet<String>,
}

impl Finding {
    /// What the crate has found; it does not tell options by name.
    pub fn of(found: &Found, options: BTreeSet<String>) -> Finding {
        Finding {
            keys: found.keys().to_vec(),
            values: found.values().iter().map(|value| (value.at, value.key)).collect(),
            compared: found.compared().to_vec(),
            options,
        }
    }
}

/// The row of a command, if it has one.
pub fn row(args: &[Vec<u8>]) -> Option<&'static Json> {
    let rows = TABLE["commands"].as_object().unwrap();
    rows.get(&String::from_utf8(args.first()?.to_ascii_uppercase()).ok()?)
}

/// What the row's pattern finds; `None` if the arguments do not follow it.
pub fn find(args: &[Vec<u8>]) -> Option<Finding> {
    let row = row(args)?;
    let mut reading = Reading { args, row, at: 1, found: Finding::default() };
    let rest = serde_json::json!(["rest"]);
    reading.items(row.get("arguments").unwrap_or(&rest))?;
    (reading.at == args.len()).then_some(reading.found)
}

struct Reading<'a> {
    args: &'a [Vec<u8>],
    row: &'static Json,
    at: usize,
    found: Finding,
}

impl Reading<'_> {
    fn items(&mut self, items: &Json) -> Option<()> {
        items.as_array().unwrap().iter().try_for_each(|item| self.item(item))
    }

    fn item(&mut self, item: &Json) -> Option<()> {
        match item.as_str() {
            Some("key") => {
                let at = self.take()?;
                self.found.keys.push(at);
            }
            Some("value") => {
                let at = self.take()?;
                self.found.values.push((at, *self.found.keys.last().unwrap()));
            }
            Some("compared") => {
                let at = self.take()?;
                self.found.compared.push(at);
            }
            Some("id") => {
                let at = self.take()?;
                is_id(&self.args[at]).then_some(())?;
            }
            Some("rest") => self.at = self.args.len(),
            Some("options") => while self.option()? {},
            Some("tail") => {
                while self.at < self.args.len() {
                    if !self.option()? {
                        self.at += 1;
                    }
                }
            }
            Some(_) => {
                self.take()?;
            }
            None => self.group(item)?,
        }
        Some(())
    }

    fn group(&mut self, item: &Json) -> Option<()> {
        if let Some(words) = item["maybe"].as_array() {
            let word = self.word();
            self.at += usize::from(word.is_some_and(|word| words.iter().any(|each| *each == word)));
        } else if item["repeat"].is_array() {
            self.items(&item["repeat"])?;
            while self.at < self.args.len() {
                let before = (self.at, std::mem::take(&mut self.found));
                self.found = Finding { keys: before.1.keys.clone(), ..Finding::default() };
                let fits = self.items(&item["repeat"]).is_some();
                let more = std::mem::replace(&mut self.found, before.1);
                if !fits {
                    self.at = before.0;
                    break;
                }
                self.found.keys = more.keys;
                self.found.values.extend(more.values);
                self.found.compared.extend(more.compared);
                self.found.options.extend(more.options);
            }
        } else {
            let at = self.take()?;
            let digits = std::str::from_utf8(&self.args[at]).ok()?;
            let is_number =
                (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            let count: usize = is_number.then(|| digits.parse().unwrap())?;
            (0..count).try_for_each(|_| self.items(&item["counted"]))?;
        }
        Some(())
    }

    fn take(&mut self) -> Option<usize> {
        self.at += 1;
        (self.at <= self.args.len()).then_some(self.at - 1)
    }

    fn word(&self) -> Option<String> {
        String::from_utf8(self.args.get(self.at)?.to_ascii_uppercase()).ok()
    }

    fn option(&mut self) -> Option<bool> {
        let Some(word) = self.word() else { return Some(false) };
        let Some(own) = self.row.get("options").and_then(|options| options.get(&word)) else {
            return Some(false);
        };
        self.at += 1;
        self.found.options.insert(word);
        self.items(own)?;
        Some(true)
    }
}

fn is_id(word: &[u8]) -> bool {
    let Ok(word) = std::str::from_utf8(word) else { return false };
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match word.split_once('-') {
        None => word == "*" || are_digits(word),
        Some((first, second)) => are_digits(first) && (second == "*" || are_digits(second)),
    }
}

/// The reason for which a client that compresses values of this type refuses a command.
pub fn refusal(args: &[Vec<u8>], value_type: ValueType) -> Option<String> {
    let row = row(args)?;
    let finding = find(args).unwrap_or_default();
    let has =
        |list: &Json, word: &str| list.as_array().is_some_and(|list| list.iter().any(|each| each == word));
    for rule in row["refuse"].as_array().into_iter().flatten() {
        let is_met =
            rule.get("with").is_none_or(|with| finding.options.iter().any(|option| has(with, option)));
        if has(&rule["types"], value_type.name()) && is_met {
            return Some(rule["reason"].as_str().unwrap().to_owned());
        }
    }
    let is_long = |&at: &usize| args[at].len() >= 32 || args[at].starts_with(b"\0\x01\x02");
    let compares = row["type"] == value_type.name() && finding.compared.iter().any(is_long);
    compares.then(|| "compare".to_owned())
}

/// A reply, as far as shapes tell one from another.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Bulk(String),
    Array(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
    Other,
}

type Borrow<'a> = fn(&'a (Tree, Tree)) -> (&'a Tree, &'a Tree);
type BorrowMut<'a> = fn(&'a mut (Tree, Tree)) -> (&'a mut Tree, &'a mut Tree);

impl<'a> Reply for &'a Tree {
    type Elements = slice::Iter<'a, Tree>;
    type Pairs = Map<slice::Iter<'a, (Tree, Tree)>, Borrow<'a>>;
    type Name = &'a str;

    fn open(self) -> Opened<Self> {
        match self {
            Tree::Bulk(_) => Opened::Bulk(self),
            Tree::Array(elements) => Opened::Array(elements.iter()),
            Tree::Map(pairs) => {
                Opened::Map(pairs.iter().map((|(first, second)| (first, second)) as Borrow<'a>))
            }
            Tree::Other => Opened::Other,
        }
    }

    fn name(self) -> &'a str {
        match self {
            Tree::Bulk(text) => text,
            _ => panic!("only bulk strings are asked for their text"),
        }
    }
}

impl<'a> Reply for &'a mut Tree {
    type Elements = slice::IterMut<'a, Tree>;
    type Pairs = Map<slice::IterMut<'a, (Tree, Tree)>, BorrowMut<'a>>;
    type Name = &'a str;

    fn open(self) -> Opened<Self> {
        match self {
            Tree::Bulk(_) => Opened::Bulk(self),
            Tree::Array(elements) => Opened::Array(elements.iter_mut()),
            Tree::Map(pairs) => {
                Opened::Map(pairs.iter_mut().map((|(first, second)| (first, second)) as BorrowMut<'a>))
            }
            Tree::Other => Opened::Other,
        }
    }

    fn name(self) -> &'a str {
        (&*self).name()
    }
}

/// A value in a reply, and its key if it has one.
pub type ValueInReply = (String, Option<String>);

/// The values in a reply to a command, by the crate.
pub fn values_in_reply(args: &[String], reply: &Tree) -> Vec<ValueInReply> {
    let mut found = Found::default();
    let meaning =
        Interpreter::new(ValueType::ALL).read(args, &mut found).expect("the command is not refused");
    let Meaning::Touched { reply: Some(shape) } = meaning else { return Vec::new() };
    let mut values = Vec::new();
    let done: Result<(), ()> = shape.walk(reply, |value, key| {
        let key = match key {
            Key::Argument(at) => found.keys().get(at).map(|&at| args[at].clone()),
            Key::Named(name) => Some(name.to_owned()),
        };
        values.push((value.name().to_owned(), key));
        Ok(())
    });
    done.expect("no visit fails");
    values
}

/// The values in a reply that has the shape of this name, by the table. `keys` are those of the arguments.
pub fn values_by_shape(shape: &str, reply: &Tree, keys: &[String]) -> Vec<ValueInReply> {
    let mut values = Vec::new();
    walk(shape, reply, keys.first().cloned(), keys, &mut values);
    values
}

fn walk(name: &str, reply: &Tree, key: Option<String>, keys: &[String], values: &mut Vec<ValueInReply>) {
    let shape = &TABLE["shapes"][name];
    let inner = |field: &str| shape[field].as_str().map(str::to_owned);
    let named = |first: &Tree| match first {
        Tree::Bulk(text) if shape["key"] == "reply" => Some(text.clone()),
        _ => key.clone(),
    };
    match (shape.as_str(), reply) {
        (Some("value"), Tree::Bulk(text)) => values.push((text.clone(), key)),
        (Some(_), _) => {}
        (None, _) if shape["each"].is_string() => {
            let inner = inner("each").unwrap();
            let Tree::Array(elements) = reply else { return walk(&inner, reply, key, keys, values) };
            for (at, element) in elements.iter().enumerate() {
                let own = if shape["key"] == "argument" { keys.get(at).cloned() } else { key.clone() };
                walk(&inner, element, own, keys, values);
            }
        }
        (None, Tree::Array(elements)) if shape["is"].is_string() => {
            if let Some(element) = elements.get(shape["at"].as_u64().unwrap() as usize) {
                walk(&inner("is").unwrap(), element, named(&elements[0]), keys, values);
            }
        }
        (None, _) if shape["pairs"].is_string() => {
            let pairs: Vec<(&Tree, &Tree)> = match reply {
                Tree::Map(pairs) => pairs.iter().map(|(first, second)| (first, second)).collect(),
                Tree::Array(elements) if matches!(elements.first(), Some(Tree::Array(_))) => elements
                    .iter()
                    .filter_map(|element| match element {
                        Tree::Array(two) if two.len() == 2 => Some((&two[0], &two[1])),
                        _ => None,
                    })
                    .collect(),
                Tree::Array(elements) => elements.chunks_exact(2).map(|two| (&two[0], &two[1])).collect(),
                _ => Vec::new(),
            };
            for (first, second) in pairs {
                walk(&inner("pairs").unwrap(), second, named(first), keys, values);
            }
        }
        _ => {}
    }
}
