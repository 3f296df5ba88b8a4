//! `snugly backup`: lets a server copy its store while it runs, and waits for that.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use jiff::Timestamp;
use redis::{FromRedisValue, Value};

use super::address::OneServer;
use super::node::Node;
use crate::interrupt::Interrupt;

const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn command(command: Command) -> Command {
    OneServer::augment_args(command)
        .about("Copies the store of a running server, and verifies the copy")
        .after_help(
            "The server writes the copy into a new folder inside its dir, on its own machine: a store with everything that was \
             answered before, which snugly check accepts. Clients are served meanwhile. Ctrl-C cancels the backup. Exits with 1 \
             if there is none; then nothing is left of it.\n\n\
             snugly restore makes a store of it again. A server that keeps nothing on disk has none: BGSAVE writes an RDB file.",
        )
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .help("Name of the folder [default: snugly- and the time, as in snugly-20261128T074500Z]"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let OneServer { url, trust } = OneServer::from_arg_matches(matches)?;
    let name = matches.get_one::<String>("name").cloned();
    let name = name.unwrap_or_else(|| Timestamp::now().strftime("snugly-%Y%m%dT%H%M%SZ").to_string());
    let stop = Interrupt::on_interrupt()?;
    let mut server = Node::open(&trust, &url)?;
    server.ask::<Value, _>(&["BACKUP", "CREATE", &name])?;
    let style =
        ProgressStyle::with_template("{spinner} {bytes} of at most {total_bytes}, {bytes_per_sec}{msg}");
    let progress = ProgressBar::new(0).with_style(style.expect("a valid template"));
    let mut is_cancelled = false;
    let ended = loop {
        let status = Status::of(&mut server)?;
        if status.text("state")? != "running" {
            break status;
        }
        progress.set_length(status.number("expected-bytes")?);
        progress.set_position(status.number("written-bytes")?);
        let verified = status.number("verified-rows")?;
        if verified > 0 {
            progress.set_message(format!("; {} rows verified", HumanCount(verified)));
        }
        if stop.is_set() && !is_cancelled {
            is_cancelled = true;
            server.ask::<Value, _>(&["BACKUP", "CANCEL"])?;
        }
        stop.sleep_until(Instant::now() + LOOK_EVERY);
    };
    progress.finish_and_clear();
    let folder = ended.text("folder")?;
    match ended.text("state")?.as_str() {
        "made" => {
            let (keys, seconds) = (ended.number("keys")?, ended.number("seconds")?);
            let bytes = HumanBytes(ended.number("written-bytes")?);
            println!("{folder}: keys {}, rows and values {bytes}, {seconds} s, no faults", HumanCount(keys));
            Ok(())
        }
        _ => bail!("there is no backup {folder}: {}", ended.text("reason")?),
    }
}

/// The reply to BACKUP STATUS.
struct Status(HashMap<String, Value>);

impl Status {
    fn of(server: &mut Node) -> Result<Status> {
        Ok(Status(server.ask(&["BACKUP", "STATUS"])?))
    }

    fn field<T: FromRedisValue>(&self, name: &str) -> Result<T> {
        let value = self.0.get(name).with_context(|| format!("BACKUP STATUS does not tell {name}"))?;
        Ok(T::from_redis_value(value.clone())?)
    }

    fn text(&self, name: &str) -> Result<String> {
        self.field(name)
    }

    fn number(&self, name: &str) -> Result<u64> {
        self.field(name)
    }
}
