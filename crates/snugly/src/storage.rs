//! `snugly check` and `snugly compact`: a store on disk that no server has open.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

fn path_argument() -> Arg {
    Arg::new("path")
        .value_name("FOLDER")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("The store's folder, as given to `snugly serve --storage`")
}

fn path(matches: &ArgMatches) -> &PathBuf {
    matches.get_one("path").expect("clap requires it")
}

pub(crate) fn check_command(command: Command) -> Command {
    command
        .about("Verifies a store on disk: every checksum, and that keys, expiries and accounting agree")
        .after_help("Changes nothing. No server may have the store open. Exits with 1 if something is wrong.")
        .arg(path_argument())
}

pub(crate) fn check(matches: &ArgMatches) -> Result<()> {
    let path = path(matches);
    let progress = ProgressBar::new_spinner();
    progress.set_style(
        ProgressStyle::with_template("{spinner} {pos} keys, {per_sec}").expect("a valid template"),
    );
    let report = snugly_store::check(path, |seen| progress.set_position(seen))?;
    progress.finish_and_clear();
    println!(
        "{}: keys {}, of which expire {}; rows and values {}",
        path.display(),
        HumanCount(report.keys),
        HumanCount(report.volatile_keys),
        HumanBytes(report.bytes)
    );
    println!("the file uses {} of {}", HumanBytes(report.used_bytes), HumanBytes(report.file_bytes));
    if report.flushed_rows > 0 {
        println!("rows of flushed databases, still to be removed: {}", HumanCount(report.flushed_rows));
    }
    if report.journaled_changes > 0 {
        println!("changes in the journal, still to be taken over: {}", HumanCount(report.journaled_changes));
    }
    if report.is_journal_cut {
        println!(
            "the last record of the journal is not whole: it was being written when the server ended, and its changes \
             were not answered; or it is damaged, and they are lost"
        );
    }
    if report.orphaned_chunks > 0 {
        println!(
            "chunks that belong to no key, left behind by damaged rows: {}",
            HumanCount(report.orphaned_chunks)
        );
    }
    if report.orphaned_nodes > 0 {
        println!(
            "nodes that belong to no list, left behind by damaged rows: {}",
            HumanCount(report.orphaned_nodes)
        );
    }
    report.faults.iter().for_each(|fault| println!("fault: {fault}"));
    match report.fault_count {
        0 => {
            println!("no faults");
            Ok(())
        }
        count => bail!("{} has faults: {}", path.display(), HumanCount(count)),
    }
}

pub(crate) fn compact_command(command: Command) -> Command {
    command
        .about("Rewrites a store on disk without gaps, so that its file becomes as small as it can be")
        .after_help(
            "A file keeps the size that it once had, and uses what has become free in it again. No server may have the \
             store open. Needs room for a second file while it works.",
        )
        .arg(path_argument())
}

pub(crate) fn compact(matches: &ArgMatches) -> Result<()> {
    let path = path(matches);
    let (before, after) = snugly_store::compact(path)?;
    println!("{}: {} before, {} after", path.display(), HumanBytes(before), HumanBytes(after));
    Ok(())
}
