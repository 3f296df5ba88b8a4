//! The findings as text.

use std::fmt::Write;

use super::findings::{Findings, Outcome, Pattern};
use crate::live::traffic::Traffic;
use crate::live::units;
use crate::table::lay_out;

/// Number of patterns that are shown; JSON and the page have all.
const SHOWN: usize = 20;

/// The head of every report.
pub(super) fn headline(findings: &Findings) -> String {
    let nodes = if findings.nodes > 1 { format!(", {} primaries", findings.nodes) } else { String::new() };
    format!("{} ({}{nodes}); sampled {}", findings.server, findings.software, findings.sampling)
}

pub(super) fn report(findings: &Findings) -> String {
    let mut text = headline(findings) + "\n";
    if let Some(expiring) = findings.expiring {
        let _ = writeln!(text, "{} of the keys expire", units::percent(expiring, 1.0));
    }
    if findings.sampled == 0 {
        let told =
            if findings.keys == 0 { "there is nothing to compress: no keys" } else { "nothing was sampled" };
        let _ = writeln!(text, "\n{told}");
        return text + &notes(findings);
    }
    let sections = [types(findings), groups(findings), patterns(findings), ways(findings)];
    sections.into_iter().for_each(|section| text.push_str(&section));
    if let Some(traffic) = &findings.traffic {
        text.push_str(&commands(traffic));
    }
    text.push_str(&advice(findings));
    text + &notes(findings)
}

fn types(findings: &Findings) -> String {
    let row = |row: &super::findings::Type| {
        vec![
            row.name.clone(),
            units::count(row.keys),
            row.memory.map_or("-".to_owned(), units::bytes),
            row.compression.to_owned(),
        ]
    };
    let rows: Vec<_> = findings.types.iter().map(row).collect();
    format!("\n{}", lay_out(&["type", "keys", "memory", "in a compressing client"], &rows))
}

fn groups(findings: &Findings) -> String {
    let table = |title, groups: &[super::findings::Group]| {
        let row = |group: &super::findings::Group| {
            vec![group.name.clone(), units::count(group.values), units::bytes(group.bytes)]
        };
        let rows: Vec<_> = groups.iter().map(row).collect();
        if rows.is_empty() {
            String::new()
        } else {
            format!("\n{}", lay_out(&[title, "values", "bytes"], &rows))
        }
    };
    table("length of strings", &findings.sizes) + &table("strings are", &findings.shapes)
}

fn patterns(findings: &Findings) -> String {
    let row = |pattern: &Pattern| {
        vec![
            pattern.pattern.clone(),
            units::count(pattern.keys),
            pattern.types.join(" "),
            units::bytes(pattern.stored),
            pattern.memory.map_or("-".to_owned(), units::bytes),
            pattern.expiring.map_or("-".to_owned(), |share| units::percent(share, 1.0)),
            units::percent(pattern.enveloped + pattern.compressed, 1.0),
            units::percent(pattern.sampled as f64, pattern.keys as f64),
        ]
    };
    let rows: Vec<_> = findings.patterns.iter().take(SHOWN).map(row).collect();
    let titles = ["pattern", "keys", "types", "strings", "memory", "expire", "compressed", "sampled"];
    let more = findings.patterns.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("and {more} more patterns, which --json has\n") } else { String::new() };
    format!("\n{}{more}", lay_out(&titles, &rows))
}

/// The way as one cell has it, and whether it is the best.
pub(super) fn name_of(outcome: &Outcome, is_best: bool) -> String {
    format!("{}{}", outcome.way.name, if is_best { " *" } else { "" })
}

/// The saved share of the server's memory for these keys, if that is known.
pub(super) fn of_memory(pattern: &Pattern, outcome: &Outcome) -> String {
    pattern.memory.map_or("-".to_owned(), |all| units::percent(outcome.saved as f64, all as f64))
}

fn ways(findings: &Findings) -> String {
    let mut rows = Vec::new();
    for pattern in findings.patterns.iter().take(SHOWN) {
        for (place, outcome) in pattern.ways.iter().enumerate() {
            let way = &outcome.way;
            let title = if place == 0 { pattern.pattern.clone() } else { String::new() };
            rows.push(vec![
                title,
                name_of(outcome, pattern.best == Some(place)),
                units::saved(outcome.saved),
                units::percent(outcome.saved as f64, pattern.stored as f64),
                of_memory(pattern, outcome),
                units::microseconds(way.encode_microseconds),
                units::microseconds(way.decode_microseconds),
                outcome.processor_seconds_per_day.map_or("-".to_owned(), units::processor_time),
            ]);
        }
    }
    if rows.is_empty() {
        return "\nthere are too few strings of 64 bytes and more to say what compression would save\n"
            .to_owned();
    }
    let titles = ["pattern", "way", "saves", "of strings", "of memory", "write", "read", "processor a day"];
    format!("\n{}* is what the goal {} takes\n", lay_out(&titles, &rows), findings.goal)
}

fn commands(traffic: &Traffic) -> String {
    let mut text = format!(
        "\n{:.1} strings written and {:.1} read a second, {} (a call counts as one; rates are shared out by keys)\n",
        traffic.writes_per_second, traffic.reads_per_second, traffic.observed
    );
    let (conditional, always): (Vec<_>, Vec<_>) =
        traffic.refused.iter().partition(|row| !row.with.is_empty());
    if !always.is_empty() {
        text.push_str("in use, and refused by a compressing client:\n");
    }
    for refused in always {
        let condition = refused.condition();
        let condition = if condition.is_empty() { condition } else { format!(" {condition}") };
        let calls = units::count(refused.calls);
        let _ = writeln!(text, "  {}{condition}, {calls} calls: {}", refused.command, refused.reason);
    }
    if !conditional.is_empty() {
        text.push_str("in use, and refused only with options that the server does not count:\n");
    }
    for refused in conditional {
        let _ = writeln!(text, "  {} {}: {}", refused.command, refused.condition(), refused.reason);
    }
    if !traffic.opt_in.is_empty() {
        let names: Vec<String> =
            traffic.opt_in.iter().map(|row| format!("{} ({})", row.command, row.value_type)).collect();
        let _ = writeln!(
            text,
            "in use on values that are compressed with value_types only: {}",
            names.join(", ")
        );
    }
    text
}

fn advice(findings: &Findings) -> String {
    if findings.compresses_itself {
        return "\nthe server compresses all of this by itself: clients need not, and INFO compression tells what it \
                keeps\n"
            .to_owned();
    }
    let Some(advice) = &findings.advice else {
        return "\nnothing here is worth compressing for this goal\n".to_owned();
    };
    let saved = units::saved(advice.saved);
    let mut text = format!("\nthis saves {saved}. In clients:\n");
    for client in &advice.clients {
        let _ = writeln!(text, "  {:<7} {}", client.language, client.configuration);
    }
    for pattern in &advice.dictionaries {
        let _ = writeln!(text, "  snugly train URL --pattern '{pattern}' --publish");
    }
    let _ = writeln!(
        text,
        "or in the server, for every client (it chooses and learns by itself):\n  {}",
        advice.serve
    );
    text
}

fn notes(findings: &Findings) -> String {
    findings.notes.iter().map(|note| format!("note: {note}\n")).collect()
}
