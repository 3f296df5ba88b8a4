//! Learning from cached values: which keys are of one kind, which dictionary their values have in common, and which
//! codec, level and dictionary are worth their time.
//!
//! - [`pattern`]: patterns of keys, such as `user:*`, and how they are learned from keys
//! - [`classes`]: values by pattern and size, and some samples of each
//! - [`samples`]: random samples in bounded memory
//! - [`study()`]: what is best for a class, measured on its samples
//! - [`Goal`]: what a saved byte may cost
//! - [`Stages`]: what is best for a value when it is written, and where it stays
//! - [`Decisions`]: what new values of each class are encoded with, and why
//! - [`Learner`]: all of it together, for those who keep no values themselves
//! - [`Drift`]: whether values still take what they took when that was decided
//!
//! Writers offer values to [`Classes`], which takes few of them; something in the background asks for a class that is
//! [`Ready`], [studies](study()) it and tells the classes. The crate does no I/O, starts no threads and knows no store and
//! no server: who uses it says how many bytes a value takes there, and gives the clock.

mod band;
mod class;
pub mod classes;
mod decisions;
mod drift;
mod form;
mod goal;
mod learner;
mod measured;
pub mod pattern;
pub mod samples;
mod stages;
mod study;

pub use band::Band;
pub use class::{Class, Ready};
pub use classes::Classes;
pub use decisions::{Decision, Decisions};
pub use drift::Drift;
pub use goal::Goal;
pub use learner::{Learner, LearnerSettings, Lesson};
pub use measured::Measured;
pub use pattern::{Pattern, Patterns};
pub use samples::Sample;
pub use stages::{ReadRate, Stages};
pub use study::{
    DICTIONARY_SIZES, Footprint, Method, SAMPLES_FOR_EACH_BYTE, Study, StudyParameters, measure_envelopes,
    study, study_envelopes, with_dictionary,
};
