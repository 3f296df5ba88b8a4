//! Drawing of one panel into the cells that it was given, and the colours.
//!
//! Knows panels and cells. Must not know what the numbers mean, or where the panel is on the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{RenderDirection, Sparkline, Widget};

use super::panels::{Chart, Facts, Panel, Row, Table, Tail};

/// Cells between what is beside each other.
const SPACE: usize = 2;
/// Cells from which a bar or a line over time says something.
const LEAST_TAIL: u16 = 6;
/// A first column of a table is not made narrower for the others.
const LEAST_NAME: usize = 12;
/// A bar beside the rows of a table is no longer.
const LONGEST_BAR: u16 = 30;
/// Steps of a line over time; whole numbers are drawn.
const STEPS: f64 = 1e6;

/// Styles, by what they say.
pub(super) struct Theme {
    pub(super) title: Style,
    pub(super) quiet: Style,
    pub(super) chosen: Style,
    pub(super) good: Style,
    pub(super) warning: Style,
    pub(super) bad: Style,
    number: Style,
    trend: Style,
    bar: Style,
}

impl Theme {
    pub(super) fn new(is_coloured: bool) -> Theme {
        let coloured = |colour| if is_coloured { Style::new().fg(colour) } else { Style::new() };
        Theme {
            title: coloured(Color::Cyan).add_modifier(Modifier::BOLD),
            quiet: Style::new().add_modifier(Modifier::DIM),
            chosen: Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
            good: coloured(Color::Green),
            warning: coloured(Color::Yellow).add_modifier(Modifier::BOLD),
            bad: coloured(Color::Red).add_modifier(Modifier::BOLD),
            number: Style::new().add_modifier(Modifier::BOLD),
            trend: coloured(Color::Blue),
            bar: coloured(Color::Green),
        }
    }
}

/// Rows that all of the panel takes.
pub(super) fn height(panel: &Panel) -> u16 {
    let rows = match panel {
        Panel::Facts(facts) => 1 + facts.rows.len(),
        Panel::Table(table) => 2 + table.rows.len(),
        Panel::Chart(_) => 2,
    };
    rows.try_into().unwrap_or(u16::MAX)
}

/// Rows that it can do with.
pub(super) fn least_height(panel: &Panel) -> u16 {
    const ROWS_OF_TABLE: u16 = 5;
    match panel {
        Panel::Table(_) => height(panel).min(ROWS_OF_TABLE),
        _ => height(panel),
    }
}

pub(super) fn draw(panel: &Panel, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let inner = Rect { y: area.y + 1, height: area.height - 1, ..area };
    match panel {
        Panel::Facts(facts) => draw_facts(facts, theme, area, inner, buffer),
        Panel::Table(table) => {
            rule(&table.title, theme, area, buffer);
            draw_table(table, theme, inner, buffer);
        }
        Panel::Chart(Chart { title, trend, show }) => {
            let most = draw_trend(trend, theme, inner, buffer);
            rule(&format!("{title}, at most {}", show(most)), theme, area, buffer);
        }
    }
}

/// The title, in a line across.
fn rule(title: &str, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    buffer.set_string(area.x, area.y, "─".repeat(area.width.into()), theme.quiet);
    let title = Line::from(vec![Span::raw(" "), Span::styled(title.to_owned(), theme.title), Span::raw(" ")]);
    buffer.set_line(area.x + 1, area.y, &title, area.width.saturating_sub(2));
}

fn draw_facts(facts: &Facts, theme: &Theme, area: Rect, inner: Rect, buffer: &mut Buffer) {
    rule(facts.title, theme, area, buffer);
    let columns = facts.rows.iter().map(|row| row.numbers.len()).max().unwrap_or_default();
    let width_of = |column: usize| {
        let of_row = |row: &Row| row.numbers.get(column).map_or(0, |number| number.chars().count());
        let head = facts.heads.get(column).map_or(0, |head| head.len());
        facts.rows.iter().map(of_row).fold(head, usize::max)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let names = facts.rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    // The first head is beside the title.
    let beside =
        facts.heads.first().map_or(0, |head| (facts.title.len() + head.len()).saturating_sub(widths[0]));
    let mut end = area.x + 1 + names.max(beside) as u16;
    let mut ends = Vec::new();
    for width in &widths {
        end += (SPACE + width) as u16;
        ends.push(end);
    }
    for (head, end) in facts.heads.iter().zip(&ends) {
        let word = Line::styled(format!(" {head} "), theme.quiet);
        let x = end.saturating_sub(head.len() as u16 + 1);
        buffer.set_line(x, area.y, &word, area.right().saturating_sub(x));
    }
    for (y, row) in (inner.y..inner.bottom()).zip(&facts.rows) {
        buffer.set_line(area.x + 1, y, &Line::raw(row.name), area.width - 1);
        for (number, end) in row.numbers.iter().zip(&ends) {
            let x = end.saturating_sub(number.chars().count() as u16);
            buffer.set_line(
                x,
                y,
                &Line::styled(number.as_str(), theme.number),
                area.right().saturating_sub(x),
            );
        }
        let x = end + SPACE as u16;
        let tail = Rect { x, y, width: (area.right().saturating_sub(x)), height: 1 };
        draw_tail(&row.tail, theme, tail, buffer);
    }
}

fn draw_tail(tail: &Tail, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    match tail {
        Tail::Note(note) => {
            let note = fitting(note, area.width.into());
            buffer.set_line(area.x, area.y, &Line::styled(note, theme.quiet), area.width);
        }
        Tail::Bar(part) if area.width >= LEAST_TAIL => draw_bar(*part, theme, area, buffer),
        Tail::Trend(trend) if area.width >= LEAST_TAIL => {
            draw_trend(trend, theme, area, buffer);
        }
        Tail::Nothing | Tail::Bar(_) | Tail::Trend(_) => {}
    }
}

/// As many of the parts between commas as there is room for, and the first one in any case.
fn fitting(mut note: &str, room: usize) -> &str {
    while note.len() > room
        && let Some((first, _)) = note.rsplit_once(", ")
    {
        note = first;
    }
    note
}

fn draw_bar(part: f64, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    const NEARLY_FULL: f64 = 0.95;
    let filled = (part.clamp(0.0, 1.0) * f64::from(area.width)).round() as usize;
    let rest = usize::from(area.width) - filled;
    let style = if part > NEARLY_FULL && part < 1.0 { theme.bad } else { theme.bar };
    let bar = vec![Span::styled("█".repeat(filled), style), Span::styled("░".repeat(rest), theme.quiet)];
    buffer.set_line(area.x, area.y, &Line::from(bar), area.width);
}

/// Numbers over time, from nothing to the most of those that are shown, which is returned.
fn draw_trend(trend: &[Option<f64>], theme: &Theme, area: Rect, buffer: &mut Buffer) -> f64 {
    let shown = &trend[..trend.len().min(area.width.into())];
    let most = shown.iter().flatten().copied().fold(0.0, f64::max);
    let step = |number: &Option<f64>| number.map(|number| (number.max(0.0) / most * STEPS) as u64);
    let steps: Vec<Option<u64>> = shown.iter().map(step).collect();
    Sparkline::default()
        .data(steps)
        .max(STEPS as u64)
        .direction(RenderDirection::RightToLeft)
        .style(theme.trend)
        .render(area, buffer);
    most
}

fn draw_table(table: &Table, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    if table.rows.is_empty() {
        buffer.set_line(area.x + 1, area.y, &Line::styled(table.empty, theme.quiet), area.width - 1);
        return;
    }
    let widths = column_widths(table, usize::from(area.width));
    let used: usize = widths.iter().map(|width| width + SPACE).sum();
    draw_cells(table.heads.iter().copied(), &widths, theme.quiet, area, area.y, buffer);
    let room = usize::from(area.height - 1);
    let whole = if table.rows.len() > room { room.saturating_sub(1) } else { room };
    let bar_width = (area.width.saturating_sub(used as u16 + 1)).min(LONGEST_BAR);
    for ((y, row), part) in (area.y + 1..).zip(&table.rows).zip(&table.bars).take(whole) {
        draw_cells(row.iter().map(String::as_str), &widths, Style::new(), area, y, buffer);
        let bar = Rect { x: area.x + 1 + used as u16, y, width: bar_width, height: 1 };
        draw_tail(&Tail::Bar(*part), theme, bar, buffer);
    }
    if table.rows.len() > room && room > 0 {
        let more = format!("and {} more", table.rows.len() - whole);
        buffer.set_line(area.x + 1, area.bottom() - 1, &Line::styled(more, theme.quiet), area.width - 1);
    }
}

/// Widths of the columns that have room, of which the first gives way to the others as far as it can.
fn column_widths(table: &Table, room: usize) -> Vec<usize> {
    let width_of = |column: usize| {
        let cells = table.rows.iter().map(|row| Span::raw(row[column].as_str()).width());
        cells.fold(table.heads[column].len(), usize::max)
    };
    let mut widths: Vec<usize> = (0..table.heads.len()).map(width_of).collect();
    let name = widths[0];
    let mut left = room.saturating_sub(1 + name.min(LEAST_NAME));
    let mut fitting = 1;
    for width in &widths[1..] {
        let Some(rest) = left.checked_sub(width + SPACE) else { break };
        left = rest;
        fitting += 1;
    }
    widths.truncate(fitting);
    widths[0] = name.min(name.min(LEAST_NAME) + left);
    widths
}

/// Draws the cells of a row, the first aligned to the left and the others to the right.
fn draw_cells<'a>(
    cells: impl Iterator<Item = &'a str>,
    widths: &[usize],
    style: Style,
    area: Rect,
    y: u16,
    buffer: &mut Buffer,
) {
    let mut start = usize::from(area.x) + 1;
    for (place, (cell, width)) in cells.zip(widths).enumerate() {
        let indent = if place == 0 { 0 } else { width.saturating_sub(Span::raw(cell).width()) };
        let x = (start + indent) as u16;
        buffer.set_line(x, y, &Line::styled(cell, style), (width - indent) as u16);
        start += width + SPACE;
    }
}
