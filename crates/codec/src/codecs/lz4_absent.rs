//! Stands in the table for LZ4 in a build without it.

pub(super) const FUNCTIONS: Option<super::Functions> = None;
