//! The view: where on the screen each panel is, for a screen of any size.
//!
//! A pure function of the picture. Knows panels and cells. Must not know connections or terminals.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use super::drawing::{Theme, draw, height, least_height};
use super::numbers::span;
use super::panels::{self, Panel};
use super::picture::{Picture, Section};

/// Cells between columns.
const GAP: u16 = 2;
/// Widths from which there are one column more.
const TWO_COLUMNS: u16 = 76;
const THREE_COLUMNS: u16 = 150;
/// Rows from which a chart says something.
const LEAST_CHART: u16 = 4;
/// More notes have no place.
const MOST_NOTES: usize = 3;

const HELP: &[(&str, &str)] = &[
    ("q Esc Ctrl-C", "quit"),
    ("p space", "pause, and go on"),
    ("+ -", "ask less often, or more often"),
    ("1 2 3 Tab", "overview, savings, work"),
    ("s", "sort patterns of keys by savings, writes, or name"),
    ("? h", "this help"),
    ("", ""),
    ("dataset", "keys and values, which the limit of snugly is about"),
    ("given, stored", "bytes before and after compression"),
    ("process", "memory that the server counts, all in all"),
    ("physical", "memory that the system gives it"),
    ("median, 99 %", "so many calls took no longer, since the last look"),
    ("-", "not known: nothing happened, or counts began anew"),
];

/// Draws the picture.
pub(super) fn show(picture: &Picture, buffer: &mut Buffer) {
    let theme = Theme::new(picture.is_coloured);
    let area = buffer.area;
    let mut top = area.y;
    let mut line = |line: Line<'_>, buffer: &mut Buffer| {
        if top < area.bottom() {
            buffer.set_line(area.x, top, &line, area.width);
            top += 1;
        }
    };
    line(head(picture, state(picture, &theme), &theme, area.width), buffer);
    line(sections(picture, &theme), buffer);
    for note in panels::notes(picture).into_iter().take(MOST_NOTES) {
        let style = if note.is_bad { theme.bad } else { theme.warning };
        line(Line::styled(format!(" {}", note.text), style), buffer);
    }
    let bottom = area.bottom().saturating_sub(1);
    let body = Rect { y: top, height: bottom.saturating_sub(top), ..area };
    for band in page(picture, body.width, body.height) {
        band.draw(body, &theme, buffer);
    }
    if bottom > top {
        let keys = " q quit   p pause   + - interval   1 2 3 Tab sections   s sort   ? help";
        buffer.set_line(area.x, bottom, &Line::styled(keys, theme.quiet), area.width);
    }
    if picture.shows_help {
        show_help(&theme, area, buffer);
    }
}

/// Everything as text, one section below the other, without what is for a screen.
pub(super) fn print(picture: &Picture, width: u16) -> String {
    let columns = columns(width);
    let sections = [
        (panels::overview(picture), columns),
        (panels::tables(picture), of_tables(columns)),
        (panels::work(picture), columns),
    ];
    let mut bands = Vec::new();
    let mut top = 1;
    for (mut panels, columns) in sections {
        panels.iter_mut().for_each(Panel::leave_out_trends);
        let band = Band::new(panels, columns, top, u16::MAX);
        top = top.saturating_add(band.height());
        bands.push(band);
    }
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, top));
    let theme = Theme::new(false);
    let observed = Span::raw(format!("rates over {} s ", picture.interval.as_secs_f64()));
    buffer.set_line(0, 0, &head(picture, observed, &theme, width), width);
    let area = buffer.area;
    bands.iter().for_each(|band| band.draw(area, &theme, &mut buffer));
    let notes = panels::notes(picture).into_iter().map(|note| format!(" {}\n", note.text));
    text(&buffer) + &notes.collect::<String>()
}

/// The cells as lines of text.
pub(super) fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in buffer.content.chunks(usize::from(buffer.area.width).max(1)) {
        let mut line = String::new();
        let mut covered = 0;
        for cell in row {
            // What is wider than a cell covers the next one.
            if covered == 0 {
                line.push_str(cell.symbol());
                covered = Span::raw(cell.symbol()).width().max(1);
            }
            covered -= 1;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn columns(width: u16) -> usize {
    match width {
        THREE_COLUMNS.. => 3,
        TWO_COLUMNS.. => 2,
        _ => 1,
    }
}

/// Columns for tables, which are wider than facts.
fn of_tables(columns: usize) -> usize {
    columns.div_ceil(2)
}

/// Panels beside and below each other.
struct Band {
    /// Rows from the top of the page.
    top: u16,
    columns: Vec<Vec<(Panel, u16)>>,
}

impl Band {
    /// Puts each panel into the column that is the shortest, in so many rows at most.
    fn new(panels: Vec<Panel>, columns: usize, top: u16, most: u16) -> Band {
        let mut filled: Vec<Vec<(Panel, u16)>> = (0..columns).map(|_| Vec::new()).collect();
        for panel in panels {
            let shortest = filled.iter_mut().min_by_key(|column| rows(column));
            let needed = height(&panel);
            shortest.expect("there is a column").push((panel, needed));
        }
        filled.iter_mut().for_each(|column| shrink(column, most));
        filled.retain(|column| !column.is_empty());
        Band { top, columns: filled }
    }

    fn height(&self) -> u16 {
        self.columns.iter().map(|column| rows(column)).max().unwrap_or_default()
    }

    fn draw(&self, page: Rect, theme: &Theme, buffer: &mut Buffer) {
        let count = self.columns.len() as u16;
        if count == 0 {
            return;
        }
        let width = page.width.saturating_sub(GAP * (count - 1)) / count;
        for (place, column) in (0..).zip(&self.columns) {
            let x = page.x + place * (width + GAP);
            let mut y = page.y.saturating_add(self.top);
            for (panel, height) in column {
                draw(panel, theme, Rect { x, y, width, height: *height }.intersection(page), buffer);
                y = y.saturating_add(*height);
            }
        }
    }
}

fn rows(column: &[(Panel, u16)]) -> u16 {
    column.iter().map(|(_, height)| height).sum()
}

/// Takes rows from the highest panels until the column is no higher than this, as far as they can be lower.
fn shrink(column: &mut [(Panel, u16)], most: u16) {
    while rows(column) > most {
        let lower = column.iter_mut().filter(|(panel, height)| *height > least_height(panel));
        let Some((_, height)) = lower.max_by_key(|(_, height)| *height) else { return };
        *height -= 1;
    }
}

/// The bands of the chosen section: what it is about, and what else there is room for.
fn page(picture: &Picture, width: u16, height: u16) -> Vec<Band> {
    let columns = columns(width);
    let of_tables = of_tables(columns);
    let mut bands = Vec::new();
    let mut top = 0;
    let mut add = |panels: Vec<Panel>, columns: usize, is_needed: bool| {
        let left = height.saturating_sub(top);
        let band = Band::new(panels, columns, top, left);
        if is_needed || band.height() <= left {
            top += band.height();
            bands.push(band);
        }
    };
    match picture.section {
        Section::Overview => {
            add(panels::overview(picture), columns, true);
            add(panels::tables(picture), of_tables, false);
            add(panels::work(picture), columns, false);
        }
        Section::Savings => add(panels::tables(picture), of_tables, true),
        Section::Work => add(panels::work(picture), columns, true),
    }
    let left = height.saturating_sub(top);
    if left >= LEAST_CHART && picture.section != Section::Savings {
        let charts = panels::charts(picture).into_iter().take(columns);
        let columns = charts.map(|chart| vec![(chart, left)]).collect();
        bands.push(Band { top, columns });
    }
    bands
}

/// The first line: what is looked at, and `end` at its end.
fn head<'a>(picture: &Picture, end: Span<'a>, theme: &Theme, width: u16) -> Line<'a> {
    let mut words =
        vec![Span::styled(" snugly top", theme.title), Span::raw(format!("  {}", picture.address))];
    if let Some(reading) = picture.reading.as_deref() {
        words.push(Span::styled(format!("  {}", reading.software()), theme.quiet));
        if let Some(uptime) = reading.number("uptime_in_seconds") {
            words.push(Span::styled(format!(", up {}", span(uptime)), theme.quiet));
        }
    }
    let used: usize = words.iter().chain([&end]).map(Span::width).sum();
    words.push(Span::raw(" ".repeat(usize::from(width).saturating_sub(used).max(2))));
    words.push(end);
    Line::from(words)
}

/// Whether the server answers, and how often it is asked.
fn state<'a>(picture: &Picture, theme: &Theme) -> Span<'a> {
    let (state, style) = match (picture.silence, picture.is_paused) {
        (_, true) => ("paused".to_owned(), theme.warning),
        (Some(silence), _) => (format!("no answer for {}", span(silence.as_secs_f64())), theme.bad),
        (None, _) => ("answers".to_owned(), theme.good),
    };
    Span::styled(format!("{state}, every {} s ", picture.interval.as_secs_f64()), style)
}

fn sections<'a>(picture: &Picture, theme: &Theme) -> Line<'a> {
    let section = |section: Section| {
        let style = if section == picture.section { theme.chosen } else { theme.quiet };
        [Span::raw(" "), Span::styled(format!(" {} {} ", section as usize + 1, section.name()), style)]
    };
    Line::from(Section::ALL.map(section).concat())
}

fn show_help(theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let names = HELP.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, meaning): &(&'static str, &'static str)| {
        Line::from(vec![Span::styled(format!(" {name:<names$}  "), theme.title), Span::raw(*meaning)])
    };
    let lines: Vec<Line<'_>> = HELP.iter().map(line).collect();
    let width = lines.iter().map(Line::width).max().unwrap_or_default() as u16 + 3;
    let (width, height) = (width.min(area.width), (lines.len() as u16 + 2).min(area.height));
    let (x, y) = (area.x + (area.width - width) / 2, area.y + (area.height - height) / 2);
    let window = Rect { x, y, width, height };
    Clear.render(window, buffer);
    Paragraph::new(lines).block(Block::bordered().title(" Help ")).render(window, buffer);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use redis::Value;

    use super::super::picture::Update;
    use super::super::readings::tests::{list, some_families, word};
    use super::super::readings::{Reading, Replies};
    use super::*;
    use crate::live::node::fields;

    const BEFORE: &str = "snugly_version:0.1.0\nredis_version:7.2.4\nuptime_in_seconds:200\nmaxmemory:67108864\n\
        maxmemory_policy:allkeys-lru\nused_memory:33554432\nused_memory_dataset:29360128\nused_memory_rss:40000000\n\
        total_commands_processed:1000\nkeyspace_hits:60\nkeyspace_misses:40\ncmdstat_get:calls=500\n\
        connected_clients:3\nmaxclients:10000\nblocked_clients:1\ndb0:keys=500,expires=20\ndictionary_classes:1\n\
        encoded_values_lz4:10\nencoded_bytes_in_lz4:4096\nencoded_bytes_out_lz4:1024\n";

    fn reading(at: Instant, info: &str, patterns: &[&str]) -> Update {
        let class = |pattern: &&str| {
            let fields = [
                word("pattern"),
                word(pattern),
                word("min_len"),
                Value::Int(128),
                word("seen"),
                Value::Int(9),
            ];
            list(&fields)
        };
        let replies = Replies {
            info: fields(info),
            classes: Some(Value::Array(patterns.iter().map(class).collect())),
            ..Replies::default()
        };
        Update::Read(Box::new(Reading::new(at, replies, &some_families())))
    }

    /// A server of snugly that was looked at twice, two seconds apart.
    fn picture(patterns: &[&str]) -> Picture {
        let mut picture = Picture::new("127.0.0.1:7684".to_owned(), Duration::from_secs(2), true);
        let start = Instant::now();
        let now = BEFORE
            .replace("processed:1000", "processed:3000")
            .replace("keyspace_hits:60", "keyspace_hits:90")
            .replace("keyspace_misses:40", "keyspace_misses:50")
            .replace("calls=500", "calls=1500");
        picture.take(reading(start, BEFORE, patterns));
        picture.take(reading(start + Duration::from_secs(2), &now, patterns));
        picture
    }

    /// What a screen of this size shows.
    fn screen(picture: &Picture, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| show(picture, frame.buffer_mut())).unwrap();
        text(terminal.backend().buffer())
    }

    fn has(screen: &str, texts: &[&str]) {
        for text in texts {
            assert!(screen.contains(text), "{text:?} is not in\n{screen}");
        }
    }

    #[test]
    fn a_small_screen_has_the_overview() {
        let shown = screen(&picture(&["user:*"]), 80, 24);
        assert_eq!(shown.lines().count(), 24);
        has(
            &shown,
            &[
                " snugly top  127.0.0.1:7684  snugly 0.1.0, up 3 min",
                "answers, every 2 s",
                "1 Overview   2 Savings   3 Work",
                "─ Commands per s  in all ─",
                " all       1,000   3,000",
                " reads       500   1,500",
                " found   75.0 %  64.3 %",
                " stored             500  20 expire",
                " limit     64.00 MiB  43.8 % full",
                " saved      3.00 KiB  75.0 %",
                " clients  3  of 10,000, 1 wait",
                "q quit",
            ],
        );
    }

    #[test]
    fn a_larger_screen_has_the_savings_as_well() {
        let shown = screen(&picture(&["user:*"]), 120, 40);
        has(
            &shown,
            &["─ Commands ", "─ By codec ─", " lz4        10  4.00 KiB  1.00 KiB  3.00 KiB  75.0 %  █"],
        );
        has(
            &shown,
            &[
                "─ By pattern of keys, most saved first ─",
                " user:*  128 B  undecided        9       -      -",
            ],
        );
        has(&shown, &["One is learned once", "─ Learning ─", "─ Commands per s, at most 1,000 ─"]);
    }

    #[test]
    fn sections_have_what_they_are_about() {
        let mut picture = picture(&["user:*"]);
        picture.section = Section::Savings;
        let shown = screen(&picture, 80, 24);
        has(&shown, &["─ By codec ─", "─ By pattern", "─ Dictionaries"]);
        assert!(!shown.contains("─ Latency"));
        picture.section = Section::Work;
        has(&screen(&picture, 80, 24), &["─ Learning ─", " classes  1"]);
        picture.shows_help = true;
        has(&screen(&picture, 80, 24), &["Help", "pause, and go on"]);
    }

    #[test]
    fn patterns_that_have_no_room_are_counted() {
        let patterns: Vec<String> = (0..40).map(|number| format!("{number}:*")).collect();
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let mut picture = picture(&patterns);
        picture.section = Section::Savings;
        let shown = screen(&picture, 80, 24);
        let rows = shown.lines().filter(|line| line.contains(":*")).count();
        has(&shown, &[&format!("and {} more", 40 - rows), "─ Dictionaries"]);
    }

    #[test]
    fn a_server_that_does_not_answer_is_told_and_what_it_said_last_stays() {
        let mut picture = picture(&[]);
        picture.take(Update::Lost("lost the connection".to_owned()));
        picture.silence = Some(Duration::from_secs(7));
        has(
            &screen(&picture, 80, 24),
            &["no answer for 7 s", "lost the connection. Trying again.", " all       1,000"],
        );
    }

    #[test]
    fn another_server_is_shown_as_far_as_it_tells() {
        let mut picture = Picture::new("h:1".to_owned(), Duration::from_secs(1), false);
        picture.take(reading(Instant::now(), "redis_version:7.0.0\nused_memory:1024\nmaxmemory:0\n", &[]));
        let shown = screen(&picture, 200, 60);
        has(&shown, &["Redis 7.0.0", " process  1.00 KiB", " limit        none", " reads  "]);
        for missing in ["By codec", "Dictionaries", "Values written", "Latency", "Disk", "dataset"] {
            assert!(!shown.contains(missing), "{missing} is in\n{shown}");
        }
    }

    #[test]
    fn no_size_is_too_small_or_too_large() {
        let mut picture =
            picture(&["ключ:*", "鍵:*", "a very long pattern of keys that has no room anywhere:*"]);
        for section in Section::ALL {
            picture.section = section;
            picture.shows_help = !picture.shows_help;
            for width in (0..90).chain([150, 300, 1_000]) {
                for height in (0..30).chain([60, 200]) {
                    screen(&picture, width, height);
                }
            }
        }
        (1..200).for_each(|width| _ = print(&picture, width));
    }

    #[test]
    fn colours_are_left_out_where_they_are_not_wanted() {
        let mut picture = picture(&["user:*"]);
        let colours = |picture: &Picture| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
            show(picture, &mut buffer);
            buffer.content.iter().filter(|cell| cell.fg != ratatui::style::Color::Reset).count()
        };
        assert_ne!(colours(&picture), 0);
        picture.is_coloured = false;
        assert_eq!(colours(&picture), 0);
    }

    #[test]
    fn what_is_printed_has_all_sections_and_no_keys() {
        let printed = print(&picture(&["user:*"]), 100);
        has(&printed, &["rates over 2 s", "─ Commands ", "─ By codec ─", "─ By pattern", "─ Learning ─"]);
        assert!(!printed.contains("q quit") && printed.lines().all(|line| line == line.trim_end()));
    }
}
