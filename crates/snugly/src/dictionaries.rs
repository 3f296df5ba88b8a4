//! `snugly dictionaries`: what a running server has learned for values that are alike.
//!
//! It knows the fields that the server answers by their names; what they mean is in the reference.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use indicatif::{HumanBytes, HumanCount, HumanDuration};
use redis::{ErrorKind, Value};
use snugly_protocol::escape::{escape, unescape};

use crate::live::address::{Address, Trust};
use crate::live::node::{Node, told_by};

#[derive(Args, Debug)]
struct Options {
    /// Address of the server: snugly://[[user]:password@]host[:port], or snuglys:// with TLS, or unix:///path. A password may be
    /// in REDISCLI_AUTH instead, or in the file that SNUGLY_PASSWORD_FILE names
    #[arg(long, default_value = "snugly://127.0.0.1")]
    url: Address,

    #[command(flatten)]
    trust: Trust,

    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Lists all dictionaries
    List {
        /// List the classes of values instead, also classes without a dictionary
        #[arg(long)]
        classes: bool,
    },
    /// Shows everything about one dictionary
    Show {
        /// Number of the dictionary, as `list` shows it
        number: u32,
    },
    /// Trains dictionaries with some of the stored values; they are used if they are worth their memory
    Train {
        /// Pattern of the keys to train for, exactly as `list --classes` shows it, such as 'user:*'
        pattern: Option<String>,
    },
    /// Writes a dictionary in the format of zstd's own tools; it holds fragments of values
    Export {
        /// Number of the dictionary, as `list` shows it
        number: u32,
        /// New file, which only you can read; standard output if it is left out
        file: Option<PathBuf>,
        /// Overwrite an existing file
        #[arg(long)]
        force: bool,
    },
    /// Uses a dictionary that was exported from another server, without checking that it suits the values here
    Import {
        /// File that `export` has written
        file: PathBuf,
        /// Pattern of the keys that it is for, such as 'user:*'
        #[arg(long)]
        pattern: String,
        /// Length of a typical value, in bytes; the dictionary is used for all values of about this length
        #[arg(long, value_name = "BYTES")]
        length: usize,
    },
    /// Ends the use of a dictionary; values that need it are re-encoded first, and another one may be learned
    Forget {
        /// Number of the dictionary, as `list` shows it
        number: u32,
    },
}

pub(crate) fn command(command: Command) -> Command {
    // They may stand behind the task as well.
    let command = Options::augment_args(command).mut_args(|option| option.global(true));
    command.about("Shows and manages the dictionaries of a running server").after_help(
        "Examples:\n  snugly dictionaries list\n  snugly dictionaries export 3 users.dict\n  snugly dictionaries \
         --url snugly://10.0.0.5 import users.dict --pattern 'user:*' --length 300",
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let Options { url, trust, task } = Options::from_arg_matches(matches)?;
    let client = &mut Node::open(&trust, &url)?;
    match task {
        Task::List { classes: false } => list(client),
        Task::List { classes: true } => list_classes(client),
        Task::Show { number } => show(client, number),
        Task::Train { pattern } => train(client, pattern),
        Task::Export { number, file, force } => export(client, number, file.as_deref(), force),
        Task::Import { file, pattern, length } => import(client, &file, &pattern, length),
        Task::Forget { number } => forget(client, number),
    }
}

/// Asks the server; what it says when it refuses is for people here, not for programs.
fn ask<A: AsRef<[u8]>>(client: &mut Node, args: &[A]) -> Result<Value> {
    client.query(args).map_err(|error| match (error.kind(), told_by(&error)) {
        (_, told) if told.starts_with("ERR unknown command") => {
            anyhow!("this is no snugly server, or an older one: it knows no DICTIONARY")
        }
        (ErrorKind::Server(_), told) if told.starts_with("ERR ") => anyhow!("{}", &told["ERR ".len()..]),
        _ => client.explain("DICTIONARY", &error),
    })
}

/// The server's fields of a dictionary or a class, by name.
struct Row(Vec<(Value, Value)>);

fn rows(client: &mut Node, subcommand: &str) -> Result<Vec<Row>> {
    let reply = ask(client, &["DICTIONARY", subcommand])?;
    let unexpected = || format!("the server does not answer DICTIONARY {subcommand} as snugly does");
    let Value::Array(rows) = reply else { bail!(unexpected()) };
    let row = |row| {
        let Value::Array(fields) = row else { return None };
        fields.len().is_multiple_of(2).then(|| Row(pairs(fields)))
    };
    rows.into_iter().map(row).collect::<Option<_>>().with_context(unexpected)
}

/// Maps are flat in RESP2.
fn pairs(fields: Vec<Value>) -> Vec<(Value, Value)> {
    let mut fields = fields.into_iter();
    std::iter::from_fn(|| Some((fields.next()?, fields.next()?))).collect()
}

impl Row {
    fn field(&self, wanted: &str) -> Result<&Value> {
        let is_wanted = |name: &Value| matches!(name, Value::BulkString(name) if name == wanted.as_bytes());
        let found = self.0.iter().find(|(name, _)| is_wanted(name)).map(|(_, value)| value);
        found.with_context(|| format!("the server does not tell {wanted}: it is of another version"))
    }

    fn number(&self, name: &str) -> Result<u64> {
        match self.field(name)? {
            Value::Int(number) => Ok(number.unsigned_abs()),
            other => bail!("the server answers {name} with {other:?}"),
        }
    }

    /// An amount of bytes, with its unit.
    fn size(&self, name: &str) -> Result<String> {
        Ok(HumanBytes(self.number(name)?).to_string())
    }

    fn count(&self, name: &str) -> Result<String> {
        Ok(HumanCount(self.number(name)?).to_string())
    }

    /// Three digits of a ratio, or that it was not measured.
    fn ratio(&self, name: &str) -> Result<String> {
        match self.field(name)? {
            Value::BulkString(text) => {
                let ratio = str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
                ratio.map(|ratio| format!("{ratio:.3}")).with_context(|| format!("{name} is no number"))
            }
            _ => Ok("-".to_owned()),
        }
    }

    fn pattern(&self) -> Result<String> {
        match self.field("pattern")? {
            Value::BulkString(pattern) => Ok(escape(pattern)),
            other => bail!("the server answers pattern with {other:?}"),
        }
    }

    /// The lengths of values that it is for, both ends included.
    fn lengths(&self) -> Result<String> {
        Ok(format!("{}-{}", self.number("min_len")?, self.number("max_len")?.saturating_sub(1)))
    }

    fn is_active(&self) -> Result<bool> {
        Ok(self.number("active")? == 1)
    }

    fn is_imported(&self) -> Result<bool> {
        Ok(self.number("samples")? == 0)
    }

    /// Of how many values it was made.
    fn samples(&self) -> Result<String> {
        if self.is_imported()? { Ok("imported".to_owned()) } else { self.count("samples") }
    }

    /// Time since it was made, by the clock of this machine.
    fn age(&self) -> Result<String> {
        let made = UNIX_EPOCH + Duration::from_millis(self.number("trained_at")?);
        let age = SystemTime::now().duration_since(made).unwrap_or_default();
        Ok(HumanDuration(age).to_string())
    }
}

/// Lines up the columns of a table, numbers to the right; what is in the last one may have any length.
fn print_table(rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let (last, others) = row.split_last().expect("a table has columns");
        let others = others.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}  "));
        println!("{}{last}", others.collect::<String>());
    }
}

fn titles<const N: usize>(titles: [&str; N]) -> Vec<String> {
    titles.map(str::to_owned).to_vec()
}

fn list(client: &mut Node) -> Result<()> {
    let dictionaries = rows(client, "LIST")?;
    if dictionaries.is_empty() {
        println!("no dictionaries yet: they are learned from values that are alike as these are written");
        return Ok(());
    }
    let mut table = vec![titles([
        "number",
        "in use",
        "value bytes",
        "before",
        "after",
        "values",
        "memory",
        "size",
        "samples",
        "age",
        "pattern",
    ])];
    for row in &dictionaries {
        table.push(vec![
            row.count("number")?,
            if row.is_active()? { "yes" } else { "no" }.to_owned(),
            row.lengths()?,
            row.ratio("ratio_before")?,
            row.ratio("ratio_after")?,
            row.count("records")?,
            row.size("memory")?,
            row.size("bytes")?,
            row.samples()?,
            row.age()?,
            row.pattern()?,
        ]);
    }
    print_table(&table);
    Ok(())
}

fn list_classes(client: &mut Node) -> Result<()> {
    let classes = rows(client, "CLASSES")?;
    if classes.is_empty() {
        println!(
            "no classes yet: they are told apart as values are written, or by `snugly dictionaries train`"
        );
        return Ok(());
    }
    let mut table = vec![titles(["dictionary", "value bytes", "written", "samples", "pattern"])];
    for row in &classes {
        let dictionary = match row.field("dictionary")? {
            Value::Int(number) => number.to_string(),
            _ => "-".to_owned(),
        };
        table.push(vec![
            dictionary,
            row.lengths()?,
            row.count("seen")?,
            row.count("samples")?,
            row.pattern()?,
        ]);
    }
    print_table(&table);
    Ok(())
}

/// The dictionary with this number.
fn find(client: &mut Node, number: u32) -> Result<Row> {
    for row in rows(client, "LIST")? {
        if row.number("number")? == u64::from(number) {
            return Ok(row);
        }
    }
    bail!("there is no dictionary {number}: see `snugly dictionaries list`")
}

fn show(client: &mut Node, number: u32) -> Result<()> {
    let row = find(client, number)?;
    let made = if row.is_imported()? { "imported" } else { "trained" };
    let measured_with = match row.is_imported()? {
        true => "nothing, for it was imported".to_owned(),
        false => format!("{} values", row.count("samples")?),
    };
    let shown = [
        ("number", row.number("number")?.to_string()),
        ("id", row.number("id")?.to_string()),
        ("in use", if row.is_active()? { "yes" } else { "no" }.to_owned()),
        ("keys", row.pattern()?),
        ("values", format!("of {} bytes", row.lengths()?)),
        ("needed by", format!("{} values", row.count("records")?)),
        ("size", row.size("bytes")?),
        ("memory", row.size("memory")?),
        (made, format!("{} ago", row.age()?)),
        ("measured with", measured_with),
        ("ratio before", row.ratio("ratio_before")?),
        ("ratio after", row.ratio("ratio_after")?),
        ("ratio now", row.ratio("ratio_now")?),
    ];
    shown.iter().for_each(|(name, value)| println!("{name}: {value}"));
    Ok(())
}

fn train(client: &mut Node, pattern: Option<String>) -> Result<()> {
    let mut request = vec![b"DICTIONARY".to_vec(), b"TRAIN".to_vec()];
    request.extend(pattern.as_ref().map(|pattern| unescape(pattern.as_bytes())));
    match ask(client, &request) {
        Ok(Value::Int(classes)) => {
            println!(
                "the values that are stored are being looked at; classes to train that are known so far: {classes}"
            );
            println!("see `snugly dictionaries list` for what comes of it");
            Ok(())
        }
        Ok(other) => bail!("the server answers DICTIONARY TRAIN with {other:?}"),
        Err(error) if error.to_string().starts_with("no class of values has the pattern") => bail!(
            "no class of values has the pattern {}: see `snugly dictionaries list --classes`, or leave the pattern out",
            pattern.unwrap_or_default()
        ),
        Err(error) => Err(error),
    }
}

fn export(client: &mut Node, number: u32, file: Option<&Path>, force: bool) -> Result<()> {
    ensure!(
        file.is_some() || !io::stdout().is_terminal(),
        "a dictionary is nothing for a terminal: name a file, or send the output to one"
    );
    find(client, number)?;
    let Value::BulkString(content) = ask(client, &["DICTIONARY", "EXPORT", &number.to_string()])? else {
        bail!("the server does not answer DICTIONARY EXPORT as snugly does");
    };
    let Some(file) = file else { return Ok(io::stdout().write_all(&content)?) };
    let written = create(file, force).and_then(|mut created| created.write_all(&content));
    written.with_context(|| match force || !file.exists() {
        true => format!("cannot write {}", file.display()),
        false => format!("cannot write {} without --force", file.display()),
    })
}

/// A file that nobody else may read, since the content has fragments of values.
fn create(file: &Path, force: bool) -> io::Result<File> {
    const OWNER_ALONE: u32 = 0o600;
    let mut options = OpenOptions::new();
    options.write(true).mode(OWNER_ALONE);
    let created = match force {
        true => options.create(true).truncate(true).open(file)?,
        false => options.create_new(true).open(file)?,
    };
    if created.metadata()?.is_file() {
        created.set_permissions(Permissions::from_mode(OWNER_ALONE))?;
    }
    Ok(created)
}

fn import(client: &mut Node, file: &Path, pattern: &str, length: usize) -> Result<()> {
    let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (keys, length) = (unescape(pattern.as_bytes()), length.to_string());
    let request = [b"DICTIONARY", &b"IMPORT"[..], &keys, length.as_bytes(), &content];
    let Value::Int(number) = ask(client, &request)? else {
        bail!("the server does not answer DICTIONARY IMPORT as snugly does");
    };
    println!("it is dictionary {number} of the server, for new values of {pattern} from now on");
    Ok(())
}

fn forget(client: &mut Node, number: u32) -> Result<()> {
    find(client, number)?;
    ask(client, &["DICTIONARY", "FORGET", &number.to_string()])?;
    println!("dictionary {number} is not used any more; it goes when no value needs it");
    println!(
        "another one may be learned: the server's setting dictionary-exclude says for which keys none is"
    );
    Ok(())
}
