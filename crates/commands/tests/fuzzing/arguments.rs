//! Any arguments are read as the table says word by word, and no position lies outside of them. The first byte chooses a row
//! for the first argument; arguments end with a newline.

use snugly_commands::{Found, Interpreter, ValueType, command, keys};

use crate::reference::{self, Finding};

pub fn run(input: &[u8]) {
    let Some((&choice, rest)) = input.split_first() else { return };
    let mut args: Vec<Vec<u8>> = rest.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let names: Vec<&String> = reference::TABLE["commands"].as_object().unwrap().keys().collect();
    if let Some(name) = names.get(usize::from(choice)) {
        args.insert(0, name.as_bytes().to_vec());
    }
    check(&args);
}

/// Compares what the crate finds with what the table says.
pub fn check(args: &[Vec<u8>]) {
    let mut found = Found::default();
    if let Some(row) = reference::row(args) {
        let command = command(&args[0]).expect("a row has a command");
        let fits = command.find(args, &mut found);
        let finding = reference::find(args);
        assert_eq!(fits, finding.is_some(), "{row}");
        let finding = finding.unwrap_or_default();
        let options = finding.options.clone();
        assert_eq!(Finding::of(&found, options), finding);
        assert!(found.values().iter().all(|value| value.key < value.at && value.at < args.len()));
    }
    for value_type in ValueType::ALL {
        let read = Interpreter::new([value_type]).read(args, &mut found);
        let reason = read.err().map(|refused| refused.reason.name().to_owned());
        assert_eq!(reason, reference::refusal(args, value_type), "{}", value_type.name());
    }
    if let Some(keys) = keys(args, &mut found) {
        assert!(keys.iter().all(|&at| 0 < at && at < args.len()));
    }
}
