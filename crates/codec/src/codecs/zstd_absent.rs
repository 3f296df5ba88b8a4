//! Stands in the table for zstd in a build without it; no dictionary can be loaded then.

use crate::dictionary::{LoadError, TrainError};

pub(super) const FUNCTIONS: Option<super::Functions> = None;

pub(crate) enum Prepared {}

impl Prepared {
    pub fn new(_: &[u8]) -> Result<Prepared, LoadError> {
        Err(LoadError::NotBuiltIn)
    }

    pub fn prepare(&self, _: &[u8], _: i32) {
        match *self {}
    }

    pub fn memory(&self) -> usize {
        match *self {}
    }
}

pub(crate) fn dictionary_header_len(_: &[u8]) -> Option<usize> {
    None
}

pub(crate) fn train(_: &[u8], _: &[usize], _: usize) -> Result<Vec<u8>, TrainError> {
    Err(TrainError::NotBuiltIn)
}
