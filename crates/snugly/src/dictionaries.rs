//! `snugly dictionaries`: what a running server has learned for values that are alike.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use indicatif::{HumanBytes, HumanCount};
use snugly_protocol::resp::Value;

use crate::client::{Client, Target};

#[derive(Args, Debug)]
struct Options {
    /// The server: snugly://[:password@]host[:port]
    #[arg(long, default_value = "snugly://127.0.0.1", global = true)]
    url: Target,

    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Lists all dictionaries
    List,
    /// Shows everything about one
    Show { number: u32 },
    /// Trains dictionaries as soon as there are some samples, whether they are due or not
    Train {
        /// Of this pattern only, such as 'user:*'
        pattern: Option<String>,
    },
    /// Writes a dictionary, as zstd's own tools know it
    Export {
        number: u32,
        /// The file; standard output if it is left out
        file: Option<PathBuf>,
    },
    /// Uses a dictionary that was exported from another server
    Import {
        file: PathBuf,
        /// The keys that it is for, such as 'user:*'
        #[arg(long)]
        pattern: String,
        /// The length of a typical value, in bytes
        #[arg(long)]
        length: usize,
    },
    /// Ends the use of a dictionary; values that need it are encoded anew first
    Forget { number: u32 },
}

pub(crate) fn command(command: Command) -> Command {
    Options::augment_args(command).about("Shows and manages the dictionaries of a running server").after_help(
        "Examples:\n  snugly dictionaries list\n  snugly dictionaries export 3 users.dict\n  snugly dictionaries \
         --url snugly://10.0.0.5 import users.dict --pattern 'user:*' --length 300",
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let Options { url, task } = Options::from_arg_matches(matches)?;
    let mut client = Client::connect(&url)?;
    match task {
        Task::List => list(&mut client),
        Task::Show { number } => show(&mut client, number),
        Task::Train { pattern } => train(&mut client, pattern),
        Task::Export { number, file } => export(&mut client, number, file),
        Task::Import { file, pattern, length } => import(&mut client, file, &pattern, length),
        Task::Forget { number } => {
            client.command(&["DICTIONARY", "FORGET", &number.to_string()])?;
            println!("dictionary {number} is not used any more; it goes when no value needs it");
            Ok(())
        }
    }
}

/// A dictionary's fields, in the server's order.
type Fields = Vec<(String, String)>;

fn fetch(client: &mut Client) -> Result<Vec<Fields>> {
    let Value::Array(dictionaries) = client.command(&["DICTIONARY", "LIST"])? else {
        bail!("the server does not answer DICTIONARY LIST as snugly does");
    };
    Ok(dictionaries.into_iter().map(fields).collect())
}

fn fields(dictionary: Value) -> Fields {
    let pairs = match dictionary {
        Value::Map(pairs) => pairs,
        Value::Array(values) => {
            values.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        }
        _ => Vec::new(),
    };
    pairs.iter().map(|(name, value)| (text(name), text(value))).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) => bytes.escape_ascii().to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Double(number) => format!("{number:.3}"),
        _ => "-".to_owned(),
    }
}

fn field<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.iter().find(|(known, _)| known == name).map_or("-", |(_, value)| value)
}

fn list(client: &mut Client) -> Result<()> {
    let dictionaries = fetch(client)?;
    if dictionaries.is_empty() {
        println!("no dictionaries yet: they are learned from values that are alike as these are written");
        return Ok(());
    }
    println!(
        "{:>6}  {:<6}  {:>13}  {:>6}  {:>6}  {:>10}  {:>10}  pattern",
        "number", "in use", "value bytes", "before", "after", "values", "memory"
    );
    for fields in &dictionaries {
        let of = |name: &str| field(fields, name).to_owned();
        let count = |name: &str| of(name).parse().unwrap_or_default();
        println!(
            "{:>6}  {:<6}  {:>13}  {:>6}  {:>6}  {:>10}  {:>10}  {}",
            of("number"),
            if of("active") == "1" { "yes" } else { "no" },
            format!("{}-{}", of("min_len"), of("max_len")),
            ratio(&of("ratio_before")),
            ratio(&of("ratio_after")),
            HumanCount(count("records")).to_string(),
            HumanBytes(count("memory")).to_string(),
            of("pattern"),
        );
    }
    Ok(())
}

/// A ratio with as many digits as say something; RESP2 has all of them.
fn ratio(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), |ratio: f64| format!("{ratio:.3}"))
}

fn show(client: &mut Client, number: u32) -> Result<()> {
    let wanted = number.to_string();
    let dictionaries = fetch(client)?;
    let found = dictionaries.iter().find(|fields| field(fields, "number") == wanted);
    let found =
        found.with_context(|| format!("there is no dictionary {number}: see snugly dictionaries list"))?;
    found.iter().for_each(|(name, value)| println!("{name}: {value}"));
    Ok(())
}

fn train(client: &mut Client, pattern: Option<String>) -> Result<()> {
    let request: Vec<&str> = ["DICTIONARY", "TRAIN"].into_iter().chain(pattern.as_deref()).collect();
    match client.command(&request)? {
        Value::Integer(0) => bail!("no values of such keys were written since the server was started"),
        Value::Integer(classes) => {
            println!("kinds of values that are trained as samples are written: {classes}")
        }
        other => bail!("the server answers DICTIONARY TRAIN with {other:?}"),
    }
    Ok(())
}

fn export(client: &mut Client, number: u32, file: Option<PathBuf>) -> Result<()> {
    let Value::Bulk(content) = client.command(&["DICTIONARY", "EXPORT", &number.to_string()])? else {
        bail!("the server does not answer DICTIONARY EXPORT as snugly does");
    };
    match file {
        Some(file) => fs::write(&file, content).with_context(|| format!("cannot write {}", file.display())),
        None => Ok(std::io::stdout().write_all(&content)?),
    }
}

fn import(client: &mut Client, file: PathBuf, pattern: &str, length: usize) -> Result<()> {
    let content = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let length = length.to_string();
    let request = [b"DICTIONARY", &b"IMPORT"[..], pattern.as_bytes(), length.as_bytes(), &content];
    let number = text(&client.command(&request)?);
    println!("it is dictionary {number} of the server, for new values of {pattern} from now on");
    Ok(())
}
