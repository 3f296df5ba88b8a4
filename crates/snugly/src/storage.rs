//! `snugly check`, `snugly restore`, `snugly compact` and `snugly repair`: a store on disk that no server has open.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

fn path_argument() -> Arg {
    Arg::new("path")
        .value_name("FOLDER")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("Folder of the store, as given to `snugly serve --storage`")
}

fn path(matches: &ArgMatches) -> &PathBuf {
    matches.get_one("path").expect("clap requires it")
}

/// Shows how many keys were looked at.
fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {pos} keys, {per_sec}").expect("a valid template");
    ProgressBar::new_spinner().with_style(style)
}

pub(crate) fn check_command(command: Command) -> Command {
    command
        .about("Verifies a store on disk: every page and checksum, and that keys, expiries and accounting agree")
        .after_help(
            "Changes nothing, and works on a copy that cannot be written. No server may have the store open. Exits with 1 if \
             something is wrong; snugly repair then makes a new store of the rest.",
        )
        .arg(path_argument())
}

pub(crate) fn check(matches: &ArgMatches) -> Result<()> {
    let path = path(matches);
    let progress = progress();
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
    if report.lost_pages > 0 {
        println!(
            "pages that belong to nothing, until the store is compacted: {}",
            HumanCount(report.lost_pages)
        );
    }
    report.faults.iter().for_each(|fault| println!("fault: {fault}"));
    let untold = report.fault_count - report.faults.len() as u64;
    if untold > 0 {
        println!("and {} more faults", HumanCount(untold));
    }
    match report.fault_count {
        0 => {
            println!("no faults");
            Ok(())
        }
        count => bail!(
            "{path} has {} faults: snugly repair {path} NEW makes a new store of what is whole",
            HumanCount(count),
            path = path.display()
        ),
    }
}

pub(crate) fn restore_command(command: Command) -> Command {
    command
        .about("Verifies a backup, and makes a store of it")
        .after_help(
            "Changes nothing in BACKUP, which is a folder that snugly backup has made, or any other copy of a store. FOLDER must \
             be empty or not exist. Exits with 1 if the backup has faults; then there is no store. Start the server with \
             --storage FOLDER afterwards.",
        )
        .arg(
            Arg::new("backup")
                .value_name("BACKUP")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Folder of the backup"),
        )
        .arg(path_argument())
}

pub(crate) fn restore(matches: &ArgMatches) -> Result<()> {
    let (path, backup) = (path(matches), matches.get_one::<PathBuf>("backup").expect("clap requires it"));
    let progress = progress();
    let report = snugly_store::restore(backup, path, |seen| progress.set_position(seen))?;
    progress.finish_and_clear();
    println!("{}: keys {}, no faults", path.display(), HumanCount(report.keys));
    Ok(())
}

pub(crate) fn repair_command(command: Command) -> Command {
    command
        .about("Makes a new store from the readable parts of a damaged one, and reports the losses")
        .after_help(
            "Changes nothing in FOLDER; NEW must be empty or not exist. No server may have the store open. Incomplete values \
             and everything on damaged pages are left out; a list with a damaged part is left out as a whole. \
             Start the server with --storage NEW afterwards.",
        )
        .arg(path_argument())
        .arg(
            Arg::new("new")
                .value_name("NEW")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Folder of the new store"),
        )
}

pub(crate) fn repair(matches: &ArgMatches) -> Result<()> {
    let (path, new) = (path(matches), matches.get_one::<PathBuf>("new").expect("clap requires it"));
    if std::fs::read_dir(new).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty: choose another folder for the new store", new.display());
    }
    let progress = progress();
    let report = snugly_store::repair(path, new, |seen| progress.set_position(seen))?;
    progress.finish_and_clear();
    report.losses.iter().for_each(|loss| println!("lost: {loss}"));
    let untold = report.loss_count - report.losses.len() as u64;
    if untold > 0 {
        println!("and {} more losses", HumanCount(untold));
    }
    if report.journaled_changes > 0 {
        println!("changes taken over from the journal: {}", HumanCount(report.journaled_changes));
    }
    println!(
        "{}: keys {}, and {} had {}",
        new.display(),
        HumanCount(report.keys),
        path.display(),
        HumanCount(report.recorded_keys)
    );
    if report.loss_count == 0 {
        println!("nothing is lost");
    }
    Ok(())
}

pub(crate) fn compact_command(command: Command) -> Command {
    command
        .about("Rewrites a store on disk without gaps, so that its file becomes as small as possible")
        .after_help(
            "A file never shrinks by itself, but reuses free space. No server may have the \
             store open. Needs room for a second file while it works.",
        )
        .arg(path_argument())
}

pub(crate) fn compact(matches: &ArgMatches) -> Result<()> {
    let path = path(matches);
    let style = ProgressStyle::with_template("{spinner} {bytes} of rows, {bytes_per_sec}");
    let progress = ProgressBar::new_spinner().with_style(style.expect("a valid template"));
    let (before, after) = snugly_store::compact(path, |written| progress.set_position(written))?;
    progress.finish_and_clear();
    println!("{}: {} before, {} after", path.display(), HumanBytes(before), HumanBytes(after));
    Ok(())
}
