//! Stands in the table for LZ4 in a build without it.

pub(super) const BACKEND: Option<super::Backend> = None;
