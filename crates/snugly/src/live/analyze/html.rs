//! The findings as one page: charts are drawn into it, and nothing comes from elsewhere.

use std::fmt::{self, Write};

use super::findings::{Findings, Group, Outcome, Pattern, Type};
use super::text;
use crate::live::units;

const STYLE: &str = include_str!("page.css");
/// Number of patterns with a chart.
const CHARTS: usize = 12;
/// Of charts, in pixels: a row, where bars begin, and the longest bar.
const ROW: usize = 24;
const BARS_AT: usize = 260;
const LONGEST: f64 = 330.0;

/// Text in a page.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            letter => f.write_char(letter),
        })
    }
}

/// One bar of a chart.
struct Bar {
    name: String,
    length: f64,
    label: String,
    is_marked: bool,
}

pub(super) fn page(findings: &Findings) -> String {
    let mut body = format!("<h1>What there is to save</h1>\n<p>{}</p>\n", Escaped(&text::headline(findings)));
    if let Some(expiring) = findings.expiring {
        let _ = writeln!(body, "<p>{} of the keys expire.</p>", units::percent(expiring, 1.0));
    }
    for section in
        [advice(findings), savings(findings), inventory(findings), commands(findings), notes(findings)]
    {
        body.push_str(&section);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>snugly analyze: {}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n{body}</body>\n</html>\n",
        Escaped(&findings.server)
    )
}

fn chart(title: &str, bars: &[Bar]) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let longest = bars.iter().map(|bar| bar.length).fold(f64::MIN_POSITIVE, f64::max);
    let height = bars.len() * ROW + 4;
    let mut text = format!(
        "<figure><figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 800 {height}\" role=\"img\" \
         aria-label=\"{title}\">\n",
        title = Escaped(title)
    );
    for (place, bar) in bars.iter().enumerate() {
        let (top, width) = (place * ROW, (bar.length / longest * LONGEST).max(1.0));
        let class = if bar.is_marked { "bar best" } else { "bar" };
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" class=\"name\">{}</text><rect x=\"{BARS_AT}\" y=\"{}\" width=\"{width:.1}\" \
             height=\"16\" class=\"{class}\"/><text x=\"{:.1}\" y=\"{}\" class=\"label\">{}</text>",
            BARS_AT - 8,
            top + 16,
            Escaped(&shortened(&bar.name)),
            top + 4,
            BARS_AT as f64 + width + 6.0,
            top + 16,
            Escaped(&bar.label)
        );
    }
    text + "</svg></figure>\n"
}

/// The name, shortened to fit beside a bar.
fn shortened(name: &str) -> String {
    const MOST: usize = 34;
    match name.chars().count() > MOST {
        true => name.chars().take(MOST - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn table(titles: &[&str], rows: &[Vec<String>]) -> String {
    let row = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        let cells: String = cells.map(|cell| format!("<{tag}>{}</{tag}>", Escaped(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let head = row("th", &mut titles.iter().copied());
    let rows: String = rows.iter().map(|cells| row("td", &mut cells.iter().map(String::as_str))).collect();
    format!("<div class=\"wide\"><table>\n{head}{rows}</table></div>\n")
}

fn advice(findings: &Findings) -> String {
    if findings.compresses_itself {
        return "<p>The server compresses all of this by itself: clients need not, and INFO compression tells what it \
                keeps.</p>\n"
            .to_owned();
    }
    let Some(advice) = &findings.advice else {
        return "<p>Nothing here is worth compressing for this goal.</p>\n".to_owned();
    };
    let configurations: String = advice
        .clients
        .iter()
        .map(|client| format!("{:<7} {}\n", client.language, client.configuration))
        .collect();
    let trainings: String = advice
        .dictionaries
        .iter()
        .map(|pattern| format!("snugly train URL --pattern '{pattern}' --publish\n"))
        .collect();
    format!(
        "<h2>What to do</h2>\n<p>For the goal {}, this saves <strong>{}</strong>. In clients:</p>\n\
         <pre>{}{}</pre>\n<p>Or in the server, for every client; it chooses and learns by itself:</p>\n<pre>{}</pre>\n",
        Escaped(&findings.goal),
        units::saved(advice.saved),
        Escaped(&configurations),
        Escaped(&trainings),
        Escaped(&advice.serve)
    )
}

fn savings(findings: &Findings) -> String {
    let mut text = "<h2>What each way would save</h2>\n".to_owned();
    let bar = |pattern: &Pattern, place: usize, outcome: &Outcome| Bar {
        name: outcome.way.name.clone(),
        length: outcome.saved.max(0) as f64,
        label: format!(
            "{} ({})",
            units::saved(outcome.saved),
            units::percent(outcome.saved as f64, pattern.stored as f64)
        ),
        is_marked: pattern.best == Some(place),
    };
    for pattern in
        findings.patterns.iter().filter(|pattern| pattern.best.is_some_and(|best| best > 0)).take(CHARTS)
    {
        let bars: Vec<Bar> =
            pattern.ways.iter().enumerate().map(|(place, outcome)| bar(pattern, place, outcome)).collect();
        text.push_str(&chart(&format!("{}: bytes saved", pattern.pattern), &bars));
    }
    let row = |pattern: &Pattern, place: usize, outcome: &Outcome| {
        vec![
            pattern.pattern.clone(),
            text::name_of(outcome, pattern.best == Some(place)),
            units::saved(outcome.saved),
            units::percent(outcome.saved as f64, pattern.stored as f64),
            text::of_memory(pattern, outcome),
            units::microseconds(outcome.way.encode_microseconds),
            units::microseconds(outcome.way.decode_microseconds),
            outcome.processor_seconds_per_day.map_or("-".to_owned(), units::processor_time),
        ]
    };
    let rows: Vec<Vec<String>> = (findings.patterns.iter())
        .flat_map(|pattern| pattern.ways.iter().enumerate().map(move |(place, way)| row(pattern, place, way)))
        .collect();
    let titles = [
        "pattern",
        "way (* is the goal's)",
        "saves",
        "of strings",
        "of memory",
        "write",
        "read",
        "processor a day",
    ];
    text + &table(&titles, &rows)
}

fn inventory(findings: &Findings) -> String {
    let of_type = |row: &Type| Bar {
        name: row.name.clone(),
        length: row.memory.unwrap_or(row.keys) as f64,
        label: format!(
            "{} keys, {}",
            units::count(row.keys),
            row.memory.map_or("-".to_owned(), units::bytes)
        ),
        is_marked: false,
    };
    let of_group = |group: &Group| Bar {
        name: group.name.clone(),
        length: group.bytes as f64,
        label: format!("{}, {} values", units::bytes(group.bytes), units::count(group.values)),
        is_marked: false,
    };
    let of_pattern = |pattern: &Pattern| Bar {
        name: pattern.pattern.clone(),
        length: pattern.stored as f64,
        label: format!("{}, {} keys", units::bytes(pattern.stored), units::count(pattern.keys)),
        is_marked: false,
    };
    let types: Vec<Bar> = findings.types.iter().map(of_type).collect();
    let sizes: Vec<Bar> = findings.sizes.iter().map(of_group).collect();
    let shapes: Vec<Bar> = findings.shapes.iter().map(of_group).collect();
    let patterns: Vec<Bar> = findings.patterns.iter().take(CHARTS).map(of_pattern).collect();
    let row = |pattern: &Pattern| {
        vec![
            pattern.pattern.clone(),
            units::count(pattern.keys),
            pattern.types.join(" "),
            units::bytes(pattern.stored),
            pattern.memory.map_or("-".to_owned(), units::bytes),
            pattern.expiring.map_or("-".to_owned(), |share| units::percent(share, 1.0)),
            units::percent(pattern.enveloped, 1.0),
            units::percent(pattern.compressed, 1.0),
            units::percent(pattern.sampled as f64, pattern.keys as f64),
        ]
    };
    let rows: Vec<Vec<String>> = findings.patterns.iter().map(row).collect();
    let titles = [
        "pattern",
        "keys",
        "types",
        "strings",
        "memory",
        "expire",
        "in envelopes",
        "compressed by others",
        "sampled",
    ];
    format!(
        "<h2>What is there</h2>\n{}{}{}{}{}",
        chart("Memory by type", &types),
        chart("Strings by length", &sizes),
        chart("Strings by what they are", &shapes),
        chart("Strings by pattern of keys", &patterns),
        table(&titles, &rows)
    )
}

fn commands(findings: &Findings) -> String {
    let Some(traffic) = &findings.traffic else { return String::new() };
    let refused: Vec<Vec<String>> = (traffic.refused.iter())
        .map(|row| vec![row.command.clone(), row.condition(), units::count(row.calls), row.reason.to_owned()])
        .collect();
    let opt_in: Vec<Vec<String>> = (traffic.opt_in.iter())
        .map(|row| vec![row.command.clone(), units::count(row.calls), row.value_type.to_owned()])
        .collect();
    let mut text = format!(
        "<h2>Commands in use</h2>\n<p>{:.1} strings written and {:.1} read a second, {}. A call counts as one \
         value, and rates are shared out by keys.</p>\n",
        traffic.writes_per_second,
        traffic.reads_per_second,
        Escaped(&traffic.observed)
    );
    if !refused.is_empty() {
        text.push_str("<p>A compressing client refuses:</p>\n");
        text.push_str(&table(&["command", "when", "calls", "why"], &refused));
    }
    if !opt_in.is_empty() {
        text.push_str("<p>Values of these are compressed only if value_types says so:</p>\n");
        text.push_str(&table(&["command", "calls", "value_types"], &opt_in));
    }
    text
}

fn notes(findings: &Findings) -> String {
    let notes: String = findings.notes.iter().map(|note| format!("<li>{}</li>\n", Escaped(note))).collect();
    if notes.is_empty() { notes } else { format!("<h2>Notes</h2>\n<ul>\n{notes}</ul>\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keys_are_called_cannot_become_markup() {
        let bars = [Bar {
            name: "<script>\"'&".to_owned(),
            length: 1.0,
            label: "1 < 2".to_owned(),
            is_marked: true,
        }];
        let text = chart("a & b", &bars) + &table(&["<"], &[vec!["<b>".to_owned()]]);
        assert!(text.contains("&lt;script&gt;&quot;&#39;&amp;") && text.contains("a &amp; b"));
        assert!(!text.contains("<script") && !text.contains("<b>"));
    }

    #[test]
    fn bars_are_as_long_as_what_they_stand_for() {
        let bar = |length| Bar { name: "x".repeat(100), length, label: String::new(), is_marked: false };
        let text = chart("c", &[bar(100.0), bar(50.0), bar(0.0)]);
        for width in ["330.0", "165.0", "1.0"] {
            assert!(text.contains(&format!("width=\"{width}\"")), "{text}");
        }
        assert!(text.contains('…'));
        assert!(chart("c", &[]).is_empty());
    }
}
