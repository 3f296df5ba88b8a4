//! Placeholder replaced as the crate is written.
