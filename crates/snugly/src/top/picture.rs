//! The picture: the readings that are shown, and what the person who looks at them has chosen.
//!
//! Knows readings, their history, and keys. Must not know connections, terminals, or how it is drawn.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::rates::{History, Rates};
use super::readings::Reading;

/// Outcome of asking the server.
pub(crate) enum Update {
    Read(Box<Reading>),
    /// Why it did not answer.
    Lost(String),
}

/// A part of the numbers that has a page for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Savings,
    Work,
}

impl Section {
    pub(crate) const ALL: [Section; 3] = [Section::Overview, Section::Savings, Section::Work];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Section::Overview => "Overview",
            Section::Savings => "Savings",
            Section::Work => "Work",
        }
    }

    /// The one that many places further, around the end.
    fn moved(self, places: usize) -> Section {
        Section::ALL[(self as usize + places) % Section::ALL.len()]
    }
}

/// Order of the patterns of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Saved,
    Written,
    Pattern,
}

impl Order {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Saved => "most saved first",
            Order::Written => "most written first",
            Order::Pattern => "by pattern",
        }
    }

    fn next(self) -> Order {
        match self {
            Order::Saved => Order::Written,
            Order::Written => Order::Pattern,
            Order::Pattern => Order::Saved,
        }
    }
}

/// Intervals that + and - go through, in milliseconds.
const INTERVALS: [u64; 9] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

pub(crate) struct Picture {
    /// Address of the server.
    pub(crate) address: String,
    pub(crate) reading: Option<Box<Reading>>,
    pub(crate) history: History,
    /// Why the server did not answer when it was asked last.
    pub(crate) lost: Option<String>,
    /// Time since the latest reading, where it is longer than it should be.
    pub(crate) silence: Option<Duration>,
    pub(crate) is_paused: bool,
    pub(crate) interval: Duration,
    pub(crate) section: Section,
    pub(crate) order: Order,
    pub(crate) shows_help: bool,
    pub(crate) is_coloured: bool,
}

impl Picture {
    pub(crate) fn new(address: String, interval: Duration, is_coloured: bool) -> Picture {
        Picture {
            address,
            reading: None,
            history: History::default(),
            lost: None,
            silence: None,
            is_paused: false,
            interval,
            section: Section::Overview,
            order: Order::Saved,
            shows_help: false,
            is_coloured,
        }
    }

    pub(crate) fn take(&mut self, update: Update) {
        match update {
            Update::Read(reading) => {
                // Across the time that a server was away there is nothing to tell of each second.
                let before = self.reading.as_deref().filter(|_| self.lost.is_none());
                self.history.add(Rates::between(before, &reading));
                self.reading = Some(reading);
                self.lost = None;
            }
            Update::Lost(error) => {
                self.history.add_gap();
                self.lost = Some(error);
            }
        }
    }

    /// Does what a key asks for; whether it is to go on.
    pub(crate) fn press(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
            KeyCode::Char('?' | 'h') => self.shows_help = !self.shows_help,
            KeyCode::Esc if self.shows_help => self.shows_help = false,
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('+' | '=') => self.change_interval(true),
            KeyCode::Char('-') => self.change_interval(false),
            KeyCode::Char('1') => self.section = Section::Overview,
            KeyCode::Char('2') => self.section = Section::Savings,
            KeyCode::Char('3') => self.section = Section::Work,
            KeyCode::Tab | KeyCode::Right => self.section = self.section.moved(1),
            KeyCode::BackTab | KeyCode::Left => self.section = self.section.moved(Section::ALL.len() - 1),
            KeyCode::Char('s') => self.order = self.order.next(),
            _ => {}
        }
        true
    }

    fn change_interval(&mut self, is_longer: bool) {
        let mut intervals = INTERVALS.map(Duration::from_millis).into_iter();
        let changed = match is_longer {
            true => intervals.find(|interval| *interval > self.interval),
            false => intervals.rfind(|interval| *interval < self.interval),
        };
        self.interval = changed.unwrap_or(self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Picture {
        Picture::new("127.0.0.1:7684".to_owned(), Duration::from_millis(1_500), true)
    }

    fn press(picture: &mut Picture, code: KeyCode) -> bool {
        picture.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn escape_closes_the_help_and_then_the_program() {
        let mut picture = picture();
        assert!(press(&mut picture, KeyCode::Char('?')) && picture.shows_help);
        assert!(press(&mut picture, KeyCode::Esc) && !picture.shows_help);
        assert!(!press(&mut picture, KeyCode::Esc));
        assert!(!press(&mut picture, KeyCode::Char('q')));
        assert!(!picture.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(press(&mut picture, KeyCode::Char('c')));
    }

    #[test]
    fn intervals_go_up_and_down_to_their_ends() {
        let mut picture = picture();
        press(&mut picture, KeyCode::Char('+'));
        assert_eq!(picture.interval, Duration::from_secs(2));
        (0..20).for_each(|_| _ = press(&mut picture, KeyCode::Char('+')));
        assert_eq!(picture.interval, Duration::from_secs(60));
        (0..20).for_each(|_| _ = press(&mut picture, KeyCode::Char('-')));
        assert_eq!(picture.interval, Duration::from_millis(100));
    }

    #[test]
    fn sections_are_reached_by_number_and_around_the_end() {
        let mut picture = picture();
        press(&mut picture, KeyCode::Char('3'));
        assert_eq!(picture.section, Section::Work);
        press(&mut picture, KeyCode::Tab);
        assert_eq!(picture.section, Section::Overview);
        press(&mut picture, KeyCode::BackTab);
        assert_eq!(picture.section, Section::Work);
    }
}
