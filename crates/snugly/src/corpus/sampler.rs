//! Random words, names, numbers, times and tokens, as the fields of real records hold them.

use std::fmt::Write;

use rand::distr::uniform::{SampleRange, SampleUniform};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::vocabulary::{
    ADJECTIVES, FAMILY_NAMES, GIVEN_NAMES, NOUNS, PREPOSITIONS, TIME_ZONES, TOPICS, TOWNS, VERBS,
};

/// Draws one value's content; the same seed draws the same.
pub struct Sampler(Xoshiro256PlusPlus);

impl Sampler {
    /// A sampler of its own for each value of a corpus.
    pub fn new(seed: u64, index: u64) -> Self {
        // An odd factor spreads neighbouring indexes over all 64 bits; seed_from_u64 mixes them further.
        Self(Xoshiro256PlusPlus::seed_from_u64(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A number within `range`, all equally likely.
    pub fn number<T: SampleUniform, R: SampleRange<T>>(&mut self, range: R) -> T {
        self.0.random_range(range)
    }

    /// Whether something is so in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.number(0..100) < percent
    }

    /// One of `options`, all equally likely.
    pub fn one_of<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.number(0..options.len())]
    }

    /// A price, a count of views: numbers of which most are small.
    pub fn skewed(&mut self, max: u64) -> u64 {
        let fraction: f64 = self.0.random();
        (fraction.powi(3) * max as f64) as u64
    }

    /// Bytes that do not compress.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }

    /// A word of a table that starts with the frequent ones.
    fn word(&mut self, table: &[&'static str]) -> &'static str {
        let fraction: f64 = self.0.random();
        table[(fraction.powf(1.5) * table.len() as f64) as usize]
    }

    pub fn noun(&mut self) -> &'static str {
        self.word(&NOUNS)
    }

    pub fn verb(&mut self) -> &'static str {
        self.word(&VERBS)
    }

    pub fn adjective(&mut self) -> &'static str {
        self.word(&ADJECTIVES)
    }

    pub fn preposition(&mut self) -> &'static str {
        self.word(&PREPOSITIONS)
    }

    pub fn given_name(&mut self) -> &'static str {
        self.word(&GIVEN_NAMES)
    }

    pub fn family_name(&mut self) -> &'static str {
        self.word(&FAMILY_NAMES)
    }

    pub fn town(&mut self) -> &'static str {
        self.word(&TOWNS)
    }

    pub fn topic(&mut self) -> &'static str {
        self.word(&TOPICS)
    }

    pub fn time_zone(&mut self) -> &'static str {
        self.word(&TIME_ZONES)
    }

    /// `Given Family`.
    pub fn name(&mut self) -> String {
        format!("{} {}", self.given_name(), self.family_name())
    }

    /// A title of two to five words.
    pub fn title(&mut self) -> String {
        let (adjective, noun) = (capitalised(self.adjective()), capitalised(self.noun()));
        match self.number(0..5) {
            0 => format!("{adjective} {noun}"),
            1 => format!("The {adjective} {noun}"),
            2 => format!("{adjective} {noun} of {}", self.town()),
            3 => format!("A {noun} {} the {}", self.preposition(), capitalised(self.noun())),
            _ => format!("{noun} and {}", capitalised(self.noun())),
        }
    }

    /// Hexadecimal digits, of which zstd can save half.
    pub fn hex(&mut self, digits: usize) -> String {
        self.token(digits, b"0123456789abcdef")
    }

    /// A token such as sessions and signatures hold.
    pub fn base64(&mut self, length: usize) -> String {
        self.token(length, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    }

    fn token(&mut self, length: usize, alphabet: &[u8]) -> String {
        (0..length).map(|_| char::from(self.one_of(alphabet))).collect()
    }

    /// A day and time between 2019 and 2026 after ISO 8601.
    pub fn timestamp(&mut self) -> String {
        let date = self.date();
        let (hour, minute, second) = (self.number(0..24), self.number(0..60), self.number(0..60));
        format!("{date}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// A day between 2019 and 2026 after ISO 8601.
    pub fn date(&mut self) -> String {
        format!("{}-{:02}-{:02}", self.number(2019..2027), self.number(1..13), self.number(1..29))
    }

    /// An address of a network for documentation or home use.
    pub fn ip_address(&mut self) -> String {
        let network = self.one_of(&["192.168", "10.0", "203.0", "198.51", "172.16"]);
        format!("{network}.{}.{}", self.number(0..256), self.number(1..255))
    }

    /// Whole sentences of about `length` bytes about `subject` and others: as in real texts, what was named returns.
    pub fn prose(&mut self, subject: &str, length: usize) -> String {
        let people = [subject.to_owned(), self.name(), self.name()];
        let things = [self.noun(), self.noun(), self.noun()];
        let mut text = String::with_capacity(length + 80);
        while text.len() + 40 < length {
            if !text.is_empty() {
                text.push(' ');
            }
            self.sentence(&people, &things, &mut text);
        }
        text
    }

    fn sentence(&mut self, people: &[String], things: &[&'static str], out: &mut String) {
        let name = if self.chance(75) { people[self.number(0..people.len())].clone() } else { self.name() };
        let [noun, second, third] =
            [(); 3].map(|()| if self.chance(45) { self.one_of(things) } else { self.noun() });
        let (adjective, verb, preposition) = (self.adjective(), self.verb(), self.preposition());
        let year = self.number(1950..2027);
        let written = match self.number(0..9) {
            0 => write!(out, "The {adjective} {noun} {verb} the {second} {preposition} {}.", self.town()),
            1 => write!(out, "{name} {verb} a {noun} {preposition} the {adjective} {second} in {year}."),
            2 => write!(out, "In {year}, {name} {verb} {} {noun}s and a {adjective} {second}.", year % 90),
            3 => write!(out, "It {verb} {adjective} {noun}s {preposition} the {second}, but no {third}."),
            4 => write!(
                out,
                "{name} is an {adjective} {noun} {preposition} {} who {verb} her {second}.",
                self.town()
            ),
            5 => write!(
                out,
                "Although the {noun} was {adjective}, every {second} {verb} it {preposition} {year}."
            ),
            6 => write!(
                out,
                "This {noun} {verb} both {name} and the {second} {preposition} a {adjective} {third}."
            ),
            7 => write!(out, "When a {adjective} {noun} {verb} {name}, his {second} became a {third}."),
            _ => write!(
                out,
                "One {noun} {preposition} another, they {verb} what the {adjective} {second} had been."
            ),
        };
        written.expect("a String takes everything");
    }
}

/// `word` with a capital first letter.
pub fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// `title` as part of a URL: lower case, hyphens.
pub fn slug(title: &str) -> String {
    title.to_ascii_lowercase().replace(' ', "-")
}
