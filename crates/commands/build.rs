//! Makes static rows of the specification's table and key positions, and refuses what `spec/commands.md` does not define.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use serde_json::{Map, Value};

#[path = "src/word.rs"]
#[allow(dead_code, reason = "the build script places words, and looks none up")]
mod word;

use word::Word;

/// Names take at most half of the slots.
const SLOT_BITS: u32 = 10;
/// Options of a row are bits of this many.
const MOST_OPTIONS: usize = 64;

fn main() {
    let table = read("commands.json");
    let positions = read("key-positions.json");
    let mut out = String::new();
    reasons(&table, &mut out);
    shapes(&table, &mut out);
    commands(&table, object(&positions["commands"]), &mut out);
    let folder = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&folder).join("rows.rs"), out).expect("the folder can be written");
}

fn read(file: &str) -> Value {
    println!("cargo::rerun-if-changed={file}");
    let text = fs::read(file).unwrap_or_else(|error| panic!("{file} cannot be read: {error}"));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{file} is no JSON: {error}"))
}

fn reasons(table: &Value, out: &mut String) {
    let reasons = object(&table["reasons"]);
    writeln!(out, "pub(crate) const MESSAGE: &str = {:?};", text(&table["message"])).unwrap();
    writeln!(out, "static REASONS: [Reason; {}] = [", reasons.len()).unwrap();
    for (name, words) in reasons {
        writeln!(out, "    Reason {{ name: {name:?}, text: {:?} }},", text(words)).unwrap();
    }
    writeln!(out, "];").unwrap();
    writeln!(out, "pub(crate) static COMPARE: &Reason = {};", reason(table, "compare")).unwrap();
}

fn reason(table: &Value, name: &str) -> String {
    let at = object(&table["reasons"]).keys().position(|each| each == name);
    format!("&REASONS[{}]", at.unwrap_or_else(|| panic!("the table has no reason {name}")))
}

fn shapes(table: &Value, out: &mut String) {
    for (name, shape) in object(&table["shapes"]) {
        let inner = |field: &str| static_name(text(&shape[field]));
        let has_key = |from: &str| match &shape["key"] {
            Value::Null => false,
            Value::String(told) if told == from => true,
            other => panic!("the shape {name} cannot have a key from {other}"),
        };
        let made = match shape {
            Value::String(word) if word == "value" => "Value".to_owned(),
            Value::String(word) if word == "transaction" => "Transaction".to_owned(),
            _ if shape["each"].is_string() => {
                let (inner, has_keys) = (inner("each"), has_key("argument"));
                format!("Each {{ inner: &{inner}, has_arguments_keys: {has_keys} }}")
            }
            _ if shape["is"].is_string() => {
                let (at, inner) = (number(&shape["at"]), inner("is"));
                format!("Element {{ at: {at}, inner: &{inner}, has_key: {} }}", has_key("reply"))
            }
            _ if shape["pairs"].is_string() => {
                format!("Pairs {{ inner: &{}, has_key: {} }}", inner("pairs"), has_key("reply"))
            }
            _ => panic!("the table has a shape that nobody defined: {shape}"),
        };
        writeln!(out, "static {}: Shape = Shape::{made};", static_name(name)).unwrap();
    }
}

fn static_name(shape: &str) -> String {
    format!("SHAPE_{}", shape.to_uppercase().replace('-', "_"))
}

fn commands(table: &Value, positions: &Map<String, Value>, out: &mut String) {
    let rows = object(&table["commands"]).iter().map(|(name, row)| (name.as_str(), row_of(table, row)));
    let untouched = object(&table["untouched"]).values().flat_map(list);
    let others = list(&table["numbers"]).iter().chain(untouched);
    let others = others.map(|name| (text(name), "Row::NONE".to_owned()));
    let commands: BTreeMap<_, _> = rows.chain(others).collect();
    for name in positions.keys() {
        let container = name.split('|').next().expect("there is always one");
        assert!(commands.contains_key(container), "the table does not say what becomes of {name}");
    }

    writeln!(out, "static COMMANDS: [Command; {}] = [", commands.len()).unwrap();
    for (number, (name, row)) in commands.iter().enumerate() {
        let own = positions.get(*name).map(|own| format!("Some(&{})", positions_of(own)));
        let own = own.unwrap_or_else(|| "None".to_owned());
        let prefix = format!("{name}|");
        let subcommands = positions.iter().filter_map(|(full, own)| Some((full.strip_prefix(&prefix)?, own)));
        let subcommands = subcommands.map(|(word, own)| {
            format!("Subcommand {{ word: Word::of({word:?}), positions: &{} }}", positions_of(own))
        });
        let subcommands = array(subcommands);
        writeln!(
            out,
            "    Command {{ number: {number}, word: Word::of({name:?}), name: {name:?}, row: {row}, positions: {own}, subcommands: &{subcommands} }},"
        )
        .unwrap();
    }
    writeln!(out, "];").unwrap();
    slots(commands.keys().copied(), out);
}

/// The numbers of commands, counted from 1, at the first empty slot from their word's own on.
fn slots<'a>(names: impl Iterator<Item = &'a str>, out: &mut String) {
    let mut slots = vec![0; 1 << SLOT_BITS];
    for (at, name) in names.enumerate() {
        let mut slot = Word::of(name).slot(SLOT_BITS);
        while slots[slot] != 0 {
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = at + 1;
    }
    writeln!(out, "const SLOT_BITS: u32 = {SLOT_BITS};").unwrap();
    writeln!(out, "static SLOTS: [u16; 1 << SLOT_BITS] = {slots:?};").unwrap();
}

fn row_of(table: &Value, row: &Value) -> String {
    let no_options = Map::new();
    let options = row.get("options").map_or(&no_options, object);
    assert!(options.len() <= MOST_OPTIONS, "a row has too many options: {row}");
    let pattern = row.get("arguments").map_or("&[Item::Rest]".to_owned(), items);
    let made_options = options
        .iter()
        .map(|(name, own)| format!("CommandOption {{ word: Word::of({name:?}), items: {} }}", items(own)));
    let rules = row.get("refuse").map_or(&[][..], list).iter().map(|rule| {
        let with = rule.get("with").map_or(&[][..], list);
        let names = array(with.iter().map(|name| format!("{:?}", text(name))));
        format!(
            "Rule {{ types: ValueTypes::of(&{}), with: {}, with_names: &{names}, reason: {} }}",
            array(list(&rule["types"]).iter().map(value_type)),
            given(options, with),
            reason(table, text(&rule["reason"])),
        )
    });
    let reply = row.get("reply").map(|reply| {
        let options_of = |field| given(options, reply.get(field).map_or(&[][..], list));
        let shape = static_name(text(&reply["shape"]));
        let (with, without) = (options_of("with"), options_of("without"));
        format!("Some(ReplyRule {{ shape: &{shape}, with: {with}, without: {without} }})")
    });
    let with_options = [row.get("arguments"), row.get("options")].map(|part| part.map(Value::to_string));
    let has = |item: &str| with_options.iter().flatten().any(|part| part.contains(&format!("{item:?}")));
    format!(
        "Row {{ value_type: {}, items: {pattern}, options: &{}, reply: {}, rules: &{}, has_keys: {}, has_values: {} }}",
        row.get("type").map_or("None".to_owned(), |kind| format!("Some({})", value_type(kind))),
        array(made_options),
        reply.unwrap_or_else(|| "None".to_owned()),
        array(rules),
        has("key"),
        has("value"),
    )
}

fn value_type(name: &Value) -> String {
    let name = match text(name) {
        "strings" => "Strings",
        "hashes" => "Hashes",
        "lists" => "Lists",
        "streams" => "Streams",
        other => panic!("the table has a type of values that nobody defined: {other}"),
    };
    format!("ValueType::{name}")
}

/// The bits of some options.
fn given(options: &Map<String, Value>, names: &[Value]) -> u64 {
    names.iter().fold(0, |bits, name| {
        let at = options.keys().position(|each| each == text(name));
        bits | 1 << at.unwrap_or_else(|| panic!("the row has no option {name}"))
    })
}

fn items(items: &Value) -> String {
    format!("&{}", array(list(items).iter().map(item)))
}

fn item(item: &Value) -> String {
    let kind = match item {
        Value::String(word) => match word.as_str() {
            "key" => "Key",
            "value" => "Value",
            "compared" => "Compared",
            "field" | "word" => "Word",
            "id" => "Id",
            "rest" => "Rest",
            "options" => "Options",
            "tail" => "Tail",
            _ => panic!("the table has a pattern item that nobody defined: {item}"),
        }
        .to_owned(),
        _ if item["maybe"].is_array() => {
            let words = list(&item["maybe"]).iter().map(|word| format!("Word::of({:?})", text(word)));
            format!("Maybe(&{})", array(words))
        }
        _ if item["repeat"].is_array() => format!("Repeat({})", group(&item["repeat"])),
        _ if item["counted"].is_array() => format!("Counted({})", group(&item["counted"])),
        _ => panic!("the table has a pattern item that nobody defined: {item}"),
    };
    format!("Item::{kind}")
}

/// Items that are matched again and again, and so must take an argument each time.
fn group(group: &Value) -> String {
    let takes = ["key", "value", "compared", "field", "word", "id"];
    let takes_some = list(group).iter().any(|item| item.as_str().is_some_and(|word| takes.contains(&word)));
    assert!(takes_some, "a group need not take an argument: {group}");
    items(group)
}

fn positions_of(positions: &Value) -> String {
    array(list(positions).iter().map(|position| {
        let first = match &position["keyword"] {
            Value::String(word) => {
                format!("Behind {{ word: Word::of({word:?}), from: {} }}", number(&position["startfrom"]))
            }
            _ => format!("At({})", number(&position["index"])),
        };
        let step = number(&position["keystep"]);
        assert!(step > 0, "keys that are no step apart: {position}");
        let keys = if position["lastkey"].is_i64() {
            let limit = position.get("limit").map(number);
            format!("Through {{ last: {}, step: {step}, limit: {limit:?} }}", number(&position["lastkey"]))
        } else {
            let (at, first) = (number(&position["keynumidx"]), number(&position["firstkey"]));
            format!("Counted {{ number: {at}, first: {first}, step: {step} }}")
        };
        let replaces = position.get("incomplete").is_some();
        format!("Position {{ first: First::{first}, keys: Keys::{keys}, replaces: {replaces} }}")
    }))
}

fn array(parts: impl Iterator<Item = String>) -> String {
    format!("[{}]", parts.collect::<Vec<_>>().join(", "))
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("the specification has no object here: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("the specification has no list here: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("the specification has no text here: {value}"))
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("the specification has no number here: {value}"))
}
