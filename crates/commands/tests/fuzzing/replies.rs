//! Any reply to any command that reads has values where the table's shape says, and they can be changed in place. The first
//! byte chooses the command; the others are the reply, a byte for the type and length of each part.

use snugly_commands::{Found, Interpreter, Meaning, ValueType};

use crate::reference::{self, Tree, values_by_shape, values_in_reply};

/// A command of each shape.
const COMMANDS: [&str; 12] = [
    "GET a",
    "GET",
    "MGET a b",
    "HVALS a",
    "HGETALL a",
    "HSCAN a 0",
    "BLPOP a b 1",
    "LMPOP 2 a b LEFT",
    "XRANGE a - +",
    "XCLAIM a g c 0 1",
    "XAUTOCLAIM a g c 0 0",
    "XREAD STREAMS a 0",
];
const DEPTH: usize = 6;

pub fn run(input: &[u8]) {
    let Some((&choice, mut rest)) = input.split_first() else { return };
    let mut names = 0;
    check(COMMANDS[usize::from(choice) % COMMANDS.len()], &tree(&mut rest, DEPTH, &mut names));
}

/// A reply from bytes; each string in it is another one.
fn tree(rest: &mut &[u8], depth: usize, names: &mut usize) -> Tree {
    let Some((&byte, more)) = rest.split_first() else { return Tree::Other };
    *rest = more;
    let len = usize::from(byte >> 2) % 8;
    match byte & 3 {
        0 | 1 if depth == 0 => Tree::Other,
        0 => Tree::Array((0..len).map(|_| tree(rest, depth - 1, names)).collect()),
        1 => Tree::Map(
            (0..len).map(|_| (tree(rest, depth - 1, names), tree(rest, depth - 1, names))).collect(),
        ),
        2 => {
            *names += 1;
            Tree::Bulk(format!("string {names}"))
        }
        _ => Tree::Other,
    }
}

fn check(line: &str, reply: &Tree) {
    let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let row = &reference::TABLE["commands"][&args[0]];
    let found = reference::find(&args.iter().map(|arg| arg.clone().into_bytes()).collect::<Vec<_>>());
    let keys: Vec<String> = found.unwrap_or_default().keys.iter().map(|&at| args[at].clone()).collect();
    let values = values_in_reply(&args, reply);
    assert_eq!(values, values_by_shape(row["reply"]["shape"].as_str().unwrap(), reply, &keys));
    assert_eq!(marked(&args, reply), values.into_iter().map(|(value, _)| value).collect::<Vec<_>>());
}

/// The strings that are changed when all values are.
fn marked(args: &[String], reply: &Tree) -> Vec<String> {
    const MARK: &str = "changed ";
    let mut changed = reply.clone();
    let meaning = Interpreter::new(ValueType::ALL).read(args, &mut Found::default());
    let Ok(Meaning::Touched { reply: Some(shape) }) = meaning else { panic!("{args:?} reads values") };
    let done: Result<(), ()> = shape.walk(&mut changed, |value, _| {
        if let Tree::Bulk(text) = value {
            text.insert_str(0, MARK);
        }
        Ok(())
    });
    done.expect("no visit fails");
    let mut strings = Vec::new();
    collect(&changed, &mut strings);
    strings.iter().filter_map(|text| text.strip_prefix(MARK)).map(str::to_owned).collect()
}

fn collect<'a>(reply: &'a Tree, strings: &mut Vec<&'a str>) {
    match reply {
        Tree::Bulk(text) => strings.push(text),
        Tree::Array(elements) => elements.iter().for_each(|element| collect(element, strings)),
        Tree::Map(pairs) => pairs.iter().for_each(|(first, second)| {
            collect(first, strings);
            collect(second, strings);
        }),
        Tree::Other => {}
    }
}
