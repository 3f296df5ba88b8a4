//! Listing the dictionaries that are published, and ending the use of one.

use anyhow::{Result, ensure};
use snugly_dictionaries::{Catalogue, Entry, Keys};
use snugly_protocol::escape::escape;

use super::{Options, confirm, print};
use crate::interrupt::Interrupt;
use crate::live::deployment::Deployment;
use crate::live::sampling::{self, KeyFilter};
use crate::live::values::needed_dictionaries;
use crate::live::{catalogue, units};
use crate::table::lay_out;

/// So much of a value says which dictionary it needs, in bytes.
const ENVELOPE_BYTES: u64 = 64;

pub(super) fn list(deployment: &mut Deployment, keys: &Keys) -> Result<()> {
    let catalogue = catalogue::read(deployment, keys)?;
    if catalogue.dictionaries.is_empty() {
        return print("no dictionaries are published: snugly train URL --pattern 'user:*' --publish\n");
    }
    let mut rows = Vec::new();
    for entry in &catalogue.dictionaries {
        let key = keys.dictionary(entry.id);
        let is_there: i64 = deployment.node_of(&key)?.ask(&[b"EXISTS", &key[..]])?;
        rows.push(row(&catalogue, entry, is_there > 0));
    }
    let titles = ["id", "pattern", "in use", "there", "size", "samples", "before", "after", "trained"];
    print(&lay_out(&titles, &rows))?;
    if !catalogue.forgotten.is_empty() {
        println!("forgotten: {}", catalogue.forgotten.len());
    }
    Ok(())
}

/// Lists what is at keys of dictionaries and in no catalogue.
pub(super) fn list_orphans(options: &Options, deployment: &mut Deployment, keys: &Keys) -> Result<()> {
    let catalogue = catalogue::read(deployment, keys)?;
    let mut rows = Vec::new();
    for id in catalogue::ids_there(deployment, &options.prefix)? {
        if catalogue.dictionaries.iter().any(|entry| entry.id == id) {
            continue;
        }
        let what = match catalogue::fetch(deployment, keys, id)? {
            Some(dictionary) => units::bytes(dictionary.bytes().len() as u64),
            None => "not this dictionary".to_owned(),
        };
        rows.push(vec![id.to_string(), what]);
    }
    if rows.is_empty() {
        return print("every dictionary that is there is in the catalogue\n");
    }
    print(&lay_out(&["id", "size"], &rows))?;
    print(
        "values may need them. --forget ID --delete forgets one, if no sampled value does; clients that were given one \
         keep it until they end\n",
    )
}

fn row(catalogue: &Catalogue, entry: &Entry, is_there: bool) -> Vec<String> {
    let yes_or_no = |yes| if yes { "yes" } else { "no" }.to_owned();
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
    vec![
        entry.id.to_string(),
        escape(entry.pattern.as_bytes()),
        yes_or_no(catalogue.active.iter().any(|row| row.id == entry.id)),
        yes_or_no(is_there),
        units::bytes(entry.bytes),
        units::count(entry.samples),
        ratio(entry.ratio_before),
        ratio(entry.ratio_after),
        // Day and minute say enough here.
        entry.trained_at.chars().take("2026-01-31T12:00".len()).collect(),
    ]
}

pub(super) fn forget(options: &Options, deployment: &mut Deployment, keys: &Keys, id: u32) -> Result<()> {
    let catalogue = catalogue::read(deployment, keys)?;
    let entry = catalogue.dictionaries.iter().find(|entry| entry.id == id);
    let is_known = entry.is_some() || catalogue.active.iter().any(|row| row.id == id);
    if !is_known {
        let is_there: i64 =
            deployment.node_of(&keys.dictionary(id))?.ask(&[b"EXISTS", &keys.dictionary(id)[..]])?;
        ensure!(
            is_there > 0,
            "there is no dictionary {id}: snugly train {} --list, or --orphans",
            options.reach.url
        );
        ensure!(
            options.delete,
            "dictionary {id} is in no catalogue, so its use ends with the clients that were given it: --delete forgets it"
        );
    }
    if !options.delete {
        confirm(options, &format!("End the use of dictionary {id} for new values?"))?;
        catalogue::retire(deployment, keys, id)?;
        return print(&format!(
            "dictionary {id} is not used for new values any more. It stays, so that values that need it can be read; \
             --delete removes it\n"
        ));
    }
    let looked_at = refuse_if_needed(options, deployment, id)?;
    confirm(
        options,
        &format!("Delete dictionary {id}? {looked_at}. A value that needs it cannot be read any more."),
    )?;
    catalogue::delete(deployment, keys, id)?;
    print(&format!("dictionary {id} is deleted, and clients that have it let it go\n"))
}

/// Samples strings of all keys, and says how many were looked at.
///
/// # Errors
/// If a sampled value needs the dictionary.
fn refuse_if_needed(options: &Options, deployment: &mut Deployment, id: u32) -> Result<String> {
    let without = catalogue::all_keys(&options.prefix);
    let wanted = KeyFilter {
        keys: options.samples,
        pattern: None,
        only_strings: true,
        value_bytes: ENVELOPE_BYTES,
        without: without.as_bytes(),
    };
    let sampled = sampling::sample(deployment, &wanted, &options.speed, &Interrupt::on_interrupt()?)?;
    sampled.notes.iter().for_each(|note| eprintln!("note: {note}"));
    let values = || sampled.found.iter().filter_map(|found| found.value.as_ref());
    let need = values().filter(|value| needed_dictionaries(std::iter::once(*value)).contains(&id)).count();
    ensure!(
        need == 0,
        "{need} of {} sampled values need dictionary {id}: nothing was deleted. Without --delete its use ends, and it \
         can go when these have expired or were written anew",
        values().count()
    );
    let looked_at = format!(
        "No string that was looked at needs it (sampled {}; values of hashes, lists and streams were not looked at)",
        sampled.summary()
    );
    sampled.failure()?;
    Ok(looked_at)
}
