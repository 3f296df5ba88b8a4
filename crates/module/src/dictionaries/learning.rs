//! Learning on this node: the thread for it, the strings that it is shown, and the settings that it follows.

use std::cell::RefCell;

use super::known::Known;
use super::store::{log, with};
use super::training::{Trained, Training};
use crate::settings;

thread_local! {
    static TRAINING: RefCell<Option<Training>> = const { RefCell::new(None) };
}

/// Shows a client's string, to be learned from.
#[inline]
pub fn show(key: &[u8], string: &[u8]) {
    TRAINING.with_borrow(|training| {
        if let Some(training) = training {
            training.show(key, string);
        }
    });
}

/// Notes what has become of a string that was compressed with a dictionary, so that it is seen when strings change.
#[inline]
pub fn compressed(key: &[u8], len: usize, stored: usize) {
    TRAINING.with_borrow_mut(|training| {
        if let Some(training) = training {
            training.compressed(key, len, stored);
        }
    });
}

/// Lets the thread learn in this share of a processor, in percent.
pub fn follow(share: u32) {
    TRAINING.with_borrow_mut(|training| {
        if training.is_none() && share > 0 {
            match Training::begin(settings::choice()) {
                Ok(begun) => *training = Some(begun),
                Err(error) => log(c"warning", &format!("snugly learns no dictionaries: {error}")),
            }
        }
        if let Some(training) = training {
            let chosen = |known: &Known| {
                let chosen = known.chosen().iter();
                chosen
                    .map(|chosen| (chosen.pattern.text().to_vec(), chosen.dictionary.clone()))
                    .collect::<Vec<_>>()
            };
            training.follow(share, settings::choice(), with(chosen).into_iter());
        }
    });
}

/// Dictionaries that were learned since this was asked last.
pub fn take() -> Vec<Trained> {
    TRAINING.with_borrow(|training| training.iter().flat_map(Training::take).collect())
}

/// Learns none for this pattern for a long time: its dictionary is not wanted.
pub fn forget(pattern: &[u8]) {
    TRAINING.with_borrow(|training| {
        if let Some(training) = training {
            training.forget(pattern);
        }
    });
}

/// Ends the thread.
pub fn end() {
    TRAINING.set(None);
}
